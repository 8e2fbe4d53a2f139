// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pack/packed.h"

// A number for what decides the model's results: configuration, weights and embedding. The same for
// a packed file and the directory that it was made from (with the same options). Of a packed file
// its checksums are taken, otherwise all weights are read.
int mr_packed_identity(const struct mr_packed *packed, uint64_t *identity, struct mr_error *err);
