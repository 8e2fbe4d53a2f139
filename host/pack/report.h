// SPDX-License-Identifier: Apache-2.0
// How far the values of a weight stream are from the checkpoint's, matrix by matrix.
#pragma once

#include <signal.h>

#include "pack/packed.h"

// One entry for each matrix, in stream order, in new memory. `checkpoint` is what `packed` was made
// from; smoothing, which the packed values have in them, is planned again and taken out.
int mr_report(const struct mr_packed *packed, const struct mr_checkpoint *checkpoint,
              const volatile sig_atomic_t *stop, struct mr_quality **list, size_t *count,
              struct mr_error *err);
