// SPDX-License-Identifier: Apache-2.0
// What tests of the kernels of hls/ share: the streams of a store as they must write them, and a
// model for them. Include <cmocka.h> and what it needs first.
#ifndef MILLRACE_TESTS_UNIT_HLS_STREAMS_H
#define MILLRACE_TESTS_UNIT_HLS_STREAMS_H

#include <string.h>

#include "checkpoint/synthetic.h"
#include "engine/deal.h"
#include "store/patch.h"
#include "store/turned.h"
#include "unit/check.h"
#include "unit/store_dirs.h"

// More than a patch either way, with rests of 64 and of 128, and heads that are padded.
static const struct mr_config several_patches = {.vocab_size = 70,
                                                 .n_positions = 8,
                                                 .n_embd = 514,
                                                 .n_layer = 1,
                                                 .n_head = 2,
                                                 .rotary_dim = 4,
                                                 .n_inner = 1030,
                                                 .eos_token_id = -1};

// A checkpoint in a directory of its own, whose path goes into `path`.
static inline void write_model(char path[512], const struct mr_config *c)
{
    struct mr_error err = {0};
    (void)snprintf(path, 512, "%s", files_path("model"));
    assert_int_equal(mkdir(path, 0700), 0);
    check(mr_synthetic_write(path, c, 7, &err), &err);
}

// W or Wt, dealt to channels that begin `beats` apart.
static inline void *dealt(const struct mr_store *s, bool turned, int channels, uint64_t beats)
{
    uint64_t bytes;
    uint8_t *to = allocate((size_t)channels, beats * MR_BEAT);
    const uint8_t *all = turned ? mr_store_turned(s, &bytes) : mr_store_stream(s, &bytes);
    for (int c = 0; c < channels; c++) {
        const uint8_t *in = all;
        uint8_t *out = to + (uint64_t)c * beats * MR_BEAT;
        for (int i = 0; i < mr_stream_items(&s->config); i++)
            for (int k = 0; k < (turned ? mr_store_segments(&s->config, i) : 1); k++) {
                struct mr_stream_item it = turned ? mr_store_turned_item(&s->config, i, k)
                                                  : mr_stream_item(&s->config, MR_FORMAT_MXINT8, i);
                in = mr_deal_item(&it, channels, c, in, out);
                out += (uint64_t)mr_item_beats(&it, channels) * MR_BEAT;
            }
        assert_true(in == all + bytes);
    }
    return to;
}

static inline void compare(const void *is, const void *want, uint64_t bytes, const char *what,
                           int channels)
{
    const uint8_t *a = is, *b = want;
    if (memcmp(a, b, bytes) == 0)
        return;
    for (uint64_t k = 0; k < bytes; k++)
        if (a[k] != b[k])
            fail_msg("byte %llu of %s, %d channels, is %d; the store has %d", (unsigned long long)k,
                     what, channels, a[k], b[k]);
}

#endif
