// SPDX-License-Identifier: Apache-2.0
// Deals a one-channel weight stream, of a packed model or of a store, out to N channels.
#pragma once

#include "pack/packed.h"

// Writes channel `channel` of `channels`: mr_stream_beats(config, format, channels) * 64 bytes.
// Column group j goes to channel j mod channels; headers are regrouped.
void mr_deal_channel(const struct mr_packed *packed, int channels, int channel, uint8_t *out);

// The same of one item at `in`: mr_item_beats(item, channels) * 64 bytes. Returns where the next
// item begins.
const uint8_t *mr_deal_item(const struct mr_stream_item *item, int channels, int channel,
                            const uint8_t *in, uint8_t *out);
