// SPDX-License-Identifier: Apache-2.0
// Opening a packed file: checked, and used where it lies in the mapping.
#pragma once

#include "pack/packed.h"

// Maps and checks a packed file, all of it; with `describe` and without `verify` no tensor beyond
// 1 MiB, so that the file is not read as a whole.
int mr_packed_open(struct mr_packed *packed, const char *path, const struct mr_pack_options *opt,
                   struct mr_error *err);
