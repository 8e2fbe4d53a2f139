// SPDX-License-Identifier: Apache-2.0
// Deals the one-channel weight stream of a packed model out to N channels.
#ifndef MILLRACE_ENGINE_DEAL_H
#define MILLRACE_ENGINE_DEAL_H

#include "pack/packed.h"

// Writes channel `channel` of `channels`: mr_stream_beats(config, format, channels) * 64 bytes.
// Column group j goes to channel j mod channels; headers are regrouped.
void mr_deal_channel(const struct mr_packed *packed, int channels, int channel, uint8_t *out);

#endif
