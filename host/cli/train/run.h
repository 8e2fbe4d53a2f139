// SPDX-License-Identifier: Apache-2.0
// What `millrace train` does when it knows what is asked for: steps, evaluations, checkpoints.
#pragma once

#include "cli/train/args.h"

// Steps, with what stands between them.
int train_run(struct train_run *r, struct mr_error *err);
// Losses of held-out data alone: of the state, or of checkpoints.
int train_run_eval(struct train_run *r, struct mr_error *err);
// Also after a failure.
void train_run_close(struct train_run *r);
