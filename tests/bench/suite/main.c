// SPDX-License-Identifier: Apache-2.0
// make bench: this project's figures at GPT-J-6B's size against their bars.
#include <stdio.h>
#include <string.h>

#include "bench/suite/report.h"

int main(int argc, char **argv)
{
    if (argc != 3 || (strcmp(argv[1], "full") != 0 && strcmp(argv[1], "quick") != 0)) {
        fprintf(stderr, "usage: suite full|quick FILE  (FILE gets the results as JSON)\n");
        return EXIT_USAGE;
    }
    return suite_run(argv[1], argv[2]);
}
