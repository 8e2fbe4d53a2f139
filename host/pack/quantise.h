// SPDX-License-Identifier: Apache-2.0
// One matrix or vector pair of the checkpoint into its part of the weight stream.
#ifndef MILLRACE_PACK_QUANTISE_H
#define MILLRACE_PACK_QUANTISE_H

#include "pack/layout.h"
#include "pack/smooth.h"

// Writes mr_item_beats(item, 1) beats to out. progress as in mr_pack_options, called per 64 columns
// with the bytes written since the last call; may be NULL.
int mr_quantise_item(const struct mr_checkpoint *ck, const struct mr_smooth *smooth,
                     const struct mr_stream_item *item, uint8_t *out,
                     int (*progress)(void *arg, size_t bytes), void *arg, struct mr_error *err);

#endif
