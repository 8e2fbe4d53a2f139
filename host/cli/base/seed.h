// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/base/shared_options.h"

// Where tokens are sampled and no --seed was given: draws one, so that two runs differ, and says
// which on standard error (not with -q), so that the run can be repeated. EXIT_OK, or another
// status with a line.
int cli_draw_seed(struct cli_text_options *text, const struct cli_common *c);
