// SPDX-License-Identifier: Apache-2.0
#include "cli/base/flush.h"

#include <errno.h>
#include <stdio.h>

int cli_flush(void)
{
    static int first;
    if ((fflush(stdout) != 0 || ferror(stdout)) && first == 0)
        first = errno != 0 ? errno : EIO;
    return first;
}
