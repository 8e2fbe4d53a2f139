// SPDX-License-Identifier: Apache-2.0
// Where matrices and vectors lie in the streams of N channels (host/pack/layout.h), as the host
// says it to a kernel of hls/. In C and C++. All places are in beats of 64 bytes from the start of
// a port.
#pragma once

#include <stdint.h>

struct mr_beat {
    uint32_t word[16];
};
struct mr_quad { // four floats: what a channel has of a vector, one after the other
    uint32_t word[4];
};

enum { MR_STREAM_TOPS = 65536 }; // the most columns, over all segments, that one matrix may have

// Where columns of a matrix go in one of the streams. For a vector, `at` is where its first quad
// goes, every 16 quads of a channel are `piece` beats apart.
struct mr_stream_side {
    uint64_t at;      // where the matrix begins, in each channel
    uint32_t piece;   // beats of a header and its 16 groups of four columns
    uint32_t group;   // beats of a group
    uint32_t header;  // beats of a header
    uint32_t first;   // the first group, counted over all channels
    uint32_t section; // of each group
    uint32_t top;     // on the chip, where the largest codes of the matrix' columns begin
    uint32_t turned;  // 0: in W, 1: in Wt
    uint32_t zero;
};
