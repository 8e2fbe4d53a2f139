// SPDX-License-Identifier: Apache-2.0
#include "train/streams.h"

#include <string.h>

#include "cmodel/num.h"
#include "cmodel/tiles.h"

int mr_segments(int kblocks)
{
    return (kblocks + MR_SEGMENT_KBLOCKS - 1) / MR_SEGMENT_KBLOCKS;
}

int mr_segment_kblocks(int kblocks, int segment)
{
    int left = kblocks - segment * MR_SEGMENT_KBLOCKS;
    return left < MR_SEGMENT_KBLOCKS ? left : MR_SEGMENT_KBLOCKS;
}

uint64_t mr_turned_beats(const struct mr_stream_item *item, int channels)
{
    uint64_t beats = 0;
    for (int s = 0; s < mr_segments(item->cols / 32); s++) {
        const struct mr_tiles_shape shape = {channels, mr_segment_kblocks(item->cols / 32, s),
                                             false};
        beats += mr_tiles_beats(&shape, item->k);
    }
    return beats;
}

// A matrix of the model: element (output, input) at padded places, 0 on padding.
struct matrix {
    const float *data;
    struct mr_matrix_shape shape;
};

static struct matrix matrix_of(const struct mr_params *weights, const struct mr_stream_item *item)
{
    size_t i = mr_params_index(weights->config, item->layer, item->item, MR_WEIGHT);
    return (struct matrix){mr_params_at(weights, i), mr_matrix_shape(weights->config, item)};
}

static float element(const struct matrix *m, int out, int in)
{
    int r = mr_unpad(out, m->shape.row_head, m->shape.rows);
    int c = mr_unpad(in, m->shape.col_head, m->shape.cols);
    return r < 0 || c < 0 ? 0.0F : m->data[(size_t)r * (size_t)m->shape.cols + (size_t)c];
}

static void put_block(const struct mr_tiles_shape *t, uint8_t *const *out, int col, int kblock,
                      const float v[MR_BLOCK])
{
    struct mr_tile_place at = mr_tile_place(t, col, kblock);
    uint8_t *to = out[at.channel];
    to[at.code] = mr_mxint8_quantise(v, (int8_t *)to + at.elements);
    if (kblock == 0 || to[at.code] > to[at.largest])
        to[at.largest] = to[at.code];
}

static void put_vectors(const struct mr_params *weights, const struct mr_stream_item *item,
                        int channels, uint8_t *const *out)
{
    size_t half = (size_t)mr_item_beats(item, channels) / 2 * MR_BEAT;
    for (int c = 0; c < channels; c++)
        memset(out[c], 0, 2 * half);
    for (int part = 0; part < MR_PARTS; part++) {
        size_t t = mr_params_index(weights->config, item->layer, item->item, (enum mr_part)part);
        const float *v = mr_params_at(weights, t);
        for (int i = 0; i < weights->config->n_embd; i++) {
            size_t at = 16 * (size_t)(i / 4 / channels) + 4 * (size_t)(i % 4);
            memcpy(out[i / 4 % channels] + (size_t)part * half + at, &v[i], 4);
        }
    }
}

void mr_stream_weights(const struct mr_params *weights, const struct mr_stream_item *item,
                       int channels, uint8_t *const *out)
{
    if (item->cols == 0) {
        put_vectors(weights, item, channels, out);
        return;
    }
    const struct mr_tiles_shape t = {channels, item->k / 32, item->bias};
    const struct matrix m = matrix_of(weights, item);
    const float *bias = NULL;
    if (item->bias)
        bias = mr_params_at(weights,
                            mr_params_index(weights->config, item->layer, item->item, MR_BIAS));
    for (int c = 0; c < channels; c++)
        memset(out[c], 0, (size_t)mr_item_beats(item, channels) * MR_BEAT);
    for (int o = 0; o < item->cols; o++) {
        for (int k = 0; k < item->k / 32; k++) {
            float v[MR_BLOCK];
            for (int i = 0; i < MR_BLOCK; i++)
                v[i] = element(&m, o, 32 * k + i);
            put_block(&t, out, o, k, v);
        }
        int r = mr_unpad(o, m.shape.row_head, m.shape.rows);
        struct mr_tile_place at = mr_tile_place(&t, o, 0);
        if (bias && r >= 0)
            memcpy(out[at.channel] + at.bias, &bias[r], 4);
    }
}

void mr_stream_turned(const struct mr_params *weights, const struct mr_stream_item *item,
                      int channels, uint8_t *const *out)
{
    const struct matrix m = matrix_of(weights, item);
    uint8_t *at[64];
    memcpy(at, out, (size_t)channels * sizeof *at);
    for (int s = 0; s < mr_segments(item->cols / 32); s++) {
        const struct mr_tiles_shape t = {channels, mr_segment_kblocks(item->cols / 32, s), false};
        size_t bytes = mr_tiles_beats(&t, item->k) * MR_BEAT;
        for (int c = 0; c < channels; c++)
            memset(at[c], 0, bytes);
        for (int i = 0; i < item->k; i++)
            for (int k = 0; k < t.kblocks; k++) {
                float v[MR_BLOCK];
                for (int o = 0; o < MR_BLOCK; o++)
                    v[o] = element(&m, 32 * (s * MR_SEGMENT_KBLOCKS + k) + o, i);
                put_block(&t, at, i, k, v);
            }
        for (int c = 0; c < channels; c++)
            at[c] += bytes;
    }
}
