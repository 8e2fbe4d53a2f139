// SPDX-License-Identifier: Apache-2.0
// The weights of a packed stream in fp32, for the reference: the values that the device computes
// with, smoothing included.
#pragma once

#include "pack/packed.h"

struct mr_unpacked;

// On success the caller owns *unpacked until mr_unpacked_close(); it borrows the embedding of
// `packed`. Needs four bytes a weight.
int mr_unpack(struct mr_unpacked **unpacked, const struct mr_packed *packed, struct mr_error *err);
void mr_unpacked_close(struct mr_unpacked *unpacked); // NULL is allowed

// As mr_checkpoint_item(): of a matrix the values that the device multiplies with, of a table its
// own. NULL if there is no such tensor.
const struct mr_tensor *mr_unpacked_item(const struct mr_unpacked *unpacked, int layer,
                                         const struct mr_item *item, enum mr_part part);
