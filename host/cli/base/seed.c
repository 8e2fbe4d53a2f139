// SPDX-License-Identifier: Apache-2.0
#include "cli/base/shared_options.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "common/error.h"

int cli_draw_seed(struct cli_text_options *text, const struct cli_common *c)
{
    uint32_t seed; // short enough to be typed
    if (text->sampling.temperature <= 0 || text->seed_given)
        return EXIT_OK;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
        struct mr_error err = {0};
        (void)mr_fail(&err, MR_ERR_IO, "no random seed: %s; give one with --seed", strerror(errno));
        return cli_fail(&err);
    }
    text->sampling.seed = seed;
    if (!c->quiet)
        fprintf(stderr, "millrace: sampled with --seed %u, which gives the same text again\n",
                seed);
    return EXIT_OK;
}
