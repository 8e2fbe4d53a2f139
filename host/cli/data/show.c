// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "cli/data/args.h"
#include "common/clock.h"

void data_show(struct cli_line *line, const struct mr_source *s, const char *what, uint64_t read,
               uint64_t tokens, double start)
{
    char text[160];
    double passed = mr_seconds() - start, share = (double)s->taken / (double)s->size;
    int n = snprintf(text, sizeof text, "%llu %s%s, %llu tokens, %.0f tokens/s",
                     (unsigned long long)read, what, read == 1 ? "" : "s",
                     (unsigned long long)tokens, (double)tokens / passed);
    if (s->size > 0 && share > 0 && n > 0 && (size_t)n < sizeof text)
        (void)snprintf(text + n, sizeof text - (size_t)n, ", %.0f %%, %.0f s left", 100 * share,
                       passed * (1 - share) / share);
    cli_line_show(line, text);
}
