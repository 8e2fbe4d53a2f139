// SPDX-License-Identifier: Apache-2.0
// Which weights a state began from: a number that knows a checkpoint by samples of its weights,
// wherever and in whichever form it lies (docs/inside/store.md). Reading it takes about 16 pages a
// tensor.
#pragma once

#include "checkpoint/checkpoint.h"

// Never 0, which stands for a state that does not say.
int mr_store_origin(uint32_t *origin, const struct mr_checkpoint *checkpoint, struct mr_error *err);
