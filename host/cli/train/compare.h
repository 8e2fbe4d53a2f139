// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/train/run.h"

// Whether this rank has what rank 0 has: the version, the model, the configuration and the data.
int train_compare(struct train_run *r, struct mr_error *err);
