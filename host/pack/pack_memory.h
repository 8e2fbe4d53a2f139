// SPDX-License-Identifier: Apache-2.0
// A checkpoint packed in memory, for a session that is not to leave a file.
#pragma once

#include "pack/packed.h"

// Packs the Hugging Face directory `dir` in memory. Refuses Inf and NaN weights.
// On success the caller owns *packed until mr_packed_close(); on failure it is all zero.
int mr_pack_directory(struct mr_packed *packed, const char *dir, const struct mr_pack_options *opt,
                      struct mr_error *err);
