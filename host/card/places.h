// SPDX-License-Identifier: Apache-2.0
// Where a model's weights lie in the streams of N channels: the host's side of hls/places.h, from
// host/pack/layout.h and, for Wt, host/store/turned.h.
#pragma once

#include <stdbool.h>

#include "hls/places.h"
#include "model/config.h"

// Where a tensor's item begins in each channel, in beats.
struct mr_stream_place {
    bool known;     // no: of a table that is only looked up
    int item;       // of the stream
    uint64_t at[2]; // in W; its first segment in Wt
};

// place[mr_tensor_specs()], by mr_params_index(); beats[2] of a channel of W and of one of Wt.
void mr_stream_places(const struct mr_config *c, int channels, struct mr_stream_place *place,
                      uint64_t beats[2]);
// A matrix in W, or segment `segment` of it in Wt, its columns from `first` on.
struct mr_stream_side mr_stream_side_of(const struct mr_config *c, int channels,
                                        const struct mr_stream_place *p, bool turned, int segment,
                                        int first);
// The same at element `k` of the contraction, a multiple of 512.
struct mr_stream_side mr_stream_side_at(const struct mr_config *c, int channels,
                                        const struct mr_stream_place *p, bool turned, int k,
                                        int first);
// A bias stands behind the largest codes; LayerNorm's vectors stand one behind the other.
struct mr_stream_side mr_stream_vector(const struct mr_config *c, int channels,
                                       const struct mr_stream_place *p, bool bias);
