// SPDX-License-Identifier: Apache-2.0
// A model from wherever it is: the one place that knows both packing and packed files.
#pragma once

#include "pack/packed.h"

// Packs the Hugging Face directory `path` in memory, or opens the packed file `path`.
// On success the caller owns *packed until mr_packed_close(); on failure it is all zero.
int mr_packed_load(struct mr_packed *packed, const char *path, const struct mr_pack_options *opt,
                   struct mr_error *err);
