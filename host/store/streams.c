// SPDX-License-Identifier: Apache-2.0
#include "store/streams.h"

#include <stdlib.h>
#include <string.h>

#include "common/past.h"
#include "store/params.h"
#include "store/turned.h"

enum { BLOCK = 32, SECTION = 16, NONE = -1 };

// A tensor's part of the streams.
struct place {
    int item;            // of mr_stream_items(); NONE: of a table that is only looked up
    uint64_t at, turned; // where the item begins in W; where its first segment does in Wt
    struct mr_stream_item matrix, segment; // as it is in W, and the first segment of Wt
};

struct mr_streams {
    bool old;            // than the state
    struct place *place; // [tensors]
    // The largest codes of each patch: of its columns (blocks down), then of its rows (along).
    uint8_t (*top)[2][MR_PATCH];
};

static uint64_t bytes_of(const struct mr_stream_item *it)
{
    return (uint64_t)mr_item_beats(it, 1) * MR_BEAT;
}

static void find_places(struct mr_streams *x, const struct mr_config *c)
{
    uint64_t at = 0, turned = 0;
    for (int i = 0; i < mr_stream_items(c); i++) {
        struct mr_stream_item it = mr_stream_item(c, MR_FORMAT_MXINT8, i);
        struct place p = {i, at, turned, it, it};
        if (it.cols > 0)
            p.segment = mr_store_turned_item(c, i, 0);
        for (int part = 0; part < MR_PARTS; part++)
            if (mr_item_has(it.item, (enum mr_part)part))
                x->place[mr_params_index(c, it.layer, it.item, (enum mr_part)part)] = p;
        at += bytes_of(&it);
        for (int k = 0; k < mr_store_segments(c, i); k++) {
            struct mr_stream_item segment = mr_store_turned_item(c, i, k);
            turned += bytes_of(&segment);
        }
    }
}

int mr_streams_new(struct mr_streams **streams, const struct mr_store_layout *l,
                   struct mr_error *err)
{
    struct mr_streams *x = *streams = calloc(1, sizeof *x);
    if (x) {
        x->place = calloc(l->tensors, sizeof *x->place);
        x->top = calloc(l->patches, sizeof *x->top);
    }
    if (!x || !x->place || !x->top) {
        mr_streams_free(x);
        *streams = NULL;
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the streams of %zu patches", l->patches);
    }
    for (size_t i = 0; i < l->tensors; i++)
        x->place[i].item = NONE;
    find_places(x, l->config);
    return 0;
}

void mr_streams_free(struct mr_streams *x)
{
    if (!x)
        return;
    free(x->place);
    free(x->top);
    free(x);
}

// ---- matrices ----------------------------------------------------------------------------------

// Where 64 columns of a matrix begin, and a group of four of them behind their headers.
static uint64_t piece_at(const struct mr_stream_item *it, int col)
{
    int64_t beats = mr_header_beats(it) + 16 * mr_group_beats(it);
    return (uint64_t)(col / 64 * beats) * MR_BEAT;
}

static uint64_t group_at(const struct mr_stream_item *it, int col)
{
    return piece_at(it, col) +
           (uint64_t)(mr_header_beats(it) + col % 64 / 4 * mr_group_beats(it)) * MR_BEAT;
}

// Block `b` of `n` columns from `col` on.
static void put_blocks(const struct mr_stream_item *it, uint8_t *base, int col, int n, int b,
                       const int8_t (*element)[BLOCK], const uint8_t *code, uint8_t *top)
{
    const size_t section = MR_BEAT + SECTION * 4 * BLOCK;
    uint64_t inside = (uint64_t)(b / SECTION) * section;
    uint64_t step = (uint64_t)mr_group_beats(it) * MR_BEAT;
    uint8_t *to = base + group_at(it, col) + inside;
    for (int g = 0; g < n; g += 4, to += step) { // n columns lie in one piece
        memcpy(to + 4 * (b % SECTION), code + g, 4);
        mr_copy_past(to + MR_BEAT + (size_t)(b % SECTION) * 4 * BLOCK, element[g], 4 * BLOCK);
    }
    for (int c = 0; c < n; c++)
        top[c] = code[c] > top[c] ? code[c] : top[c];
}

// The stream whose columns are a tensor's outputs (W) or inputs (Wt), at a block of its
// contraction; *b becomes that within the segment.
static uint8_t *stream_of(const struct mr_store *s, const struct place *p, bool turned,
                          struct mr_stream_item *it, int *b)
{
    if (!turned) {
        *it = p->matrix;
        return s->volume->data[MR_V_STREAM] + p->at;
    }
    int segment = *b / MR_SEGMENT_KBLOCKS;
    *it = p->segment;
    it->k = BLOCK * mr_segment_kblocks(p->matrix.cols / BLOCK, segment);
    *b %= MR_SEGMENT_KBLOCKS;
    return s->volume->data[MR_V_TURNED] + p->turned + (uint64_t)segment * bytes_of(&p->segment);
}

void mr_streams_tile(const struct mr_store *s, size_t patch, size_t k, const float *weights,
                     const struct mr_tile_kernels *kernels)
{
    const struct mr_store_patch *p = &s->model->patch[patch];
    const struct mr_store_tensor *t = &s->model->tensor[p->tensor];
    const struct place *place = &s->streams->place[p->tensor];
    struct mr_tile_blocks blocks;
    struct mr_stream_item it;
    if (place->item == NONE || t->vector)
        return;
    uint8_t(*top)[MR_PATCH] = s->streams->top[patch];
    int wide = p->cols / MR_TILE_COLS, r = (int)k / wide * MR_TILE_ROWS,
        c = (int)k % wide * MR_TILE_COLS;
    if (k == 0)
        memset(top, 0, 2 * sizeof *top);
    kernels->blocks(weights, &blocks);
    int b = (p->row + r) / BLOCK;
    uint8_t *base = stream_of(s, place, !t->inputs_resident, &it, &b);
    put_blocks(&it, base, p->col + c, MR_TILE_COLS, b, blocks.down, blocks.down_code, top[0] + c);
    for (int half = 0; half < 2; half++) {
        b = (p->col + c) / BLOCK + half;
        base = stream_of(s, place, t->inputs_resident, &it, &b);
        put_blocks(&it, base, p->row + r, MR_TILE_ROWS, b, blocks.along + half * MR_TILE_ROWS,
                   blocks.along_code + half * MR_TILE_ROWS, top[1] + r);
    }
}

// ---- headers -----------------------------------------------------------------------------------

// The largest codes of the columns of a patch's part of a stream, into its headers.
static void put_tops(const struct mr_stream_item *it, uint8_t *base, int col, int n,
                     const uint8_t *top)
{
    for (int c = 0; c < n; c++) {
        uint8_t *to = base + piece_at(it, col + c) + (col + c) % 64;
        *to = top[c] > *to ? top[c] : *to;
    }
}

static void clear_tops(const struct mr_stream_item *it, uint8_t *base)
{
    for (int c = 0; c < it->cols; c += 64)
        memset(base + piece_at(it, c), 0, MR_BEAT);
}

static void finish_matrix(const struct mr_store *s, size_t i)
{
    const struct mr_store_tensor *t = &s->model->tensor[i];
    const struct place *place = &s->streams->place[i];
    struct mr_stream_item it;
    uint8_t *base = s->volume->data[MR_V_STREAM] + place->at;
    clear_tops(&place->matrix, base);
    for (int k = 0; k < mr_store_segments(&s->config, place->item); k++) {
        int b = k * MR_SEGMENT_KBLOCKS;
        base = stream_of(s, place, true, &it, &b);
        clear_tops(&it, base);
    }
    for (size_t k = t->patch; k < t->patch + t->patches; k++) {
        const struct mr_store_patch *p = &s->model->patch[k];
        int b = p->row / BLOCK;
        base = stream_of(s, place, !t->inputs_resident, &it, &b);
        put_tops(&it, base, p->col, p->cols, s->streams->top[k][0]);
        b = p->col / BLOCK;
        base = stream_of(s, place, t->inputs_resident, &it, &b);
        put_tops(&it, base, p->row, p->rows, s->streams->top[k][1]);
    }
}

// A bias behind the maxima of 64 columns each, or half of a pair of LayerNorm's vectors.
static void put_vector(const struct mr_store *s, size_t i, uint32_t side)
{
    const struct mr_store_patch *p = &s->model->patch[s->model->tensor[i].patch];
    const struct place *place = &s->streams->place[i];
    const struct mr_stream_item *it = &place->matrix;
    bool bias = mr_tensor_spec(&s->config, i).part == MR_BIAS;
    uint8_t *base = s->volume->data[MR_V_STREAM] + place->at;
    float buffer[MR_TILE];
    const float *tile = NULL;
    for (size_t e = 0; e < p->count; e += 64) {
        if (e % MR_TILE == 0)
            tile = mr_store_weights(s, p, e / MR_TILE, side, buffer);
        uint8_t *to = it->cols ? base + piece_at(it, (int)e) + MR_BEAT
                               : base + (bias ? bytes_of(it) / 2 : 0) + e * sizeof *tile;
        memcpy(to, tile + e % MR_TILE, 64 * sizeof *tile);
    }
}

void mr_streams_finish_some(const struct mr_store *s, size_t first, size_t end, uint32_t side)
{
    for (size_t i = first; i < end; i++) {
        if (s->streams->place[i].item == NONE)
            continue;
        if (s->model->tensor[i].vector)
            put_vector(s, i, side);
        else
            finish_matrix(s, i);
    }
}

struct making {
    const struct mr_store *s;
    size_t first; // patch
    const struct mr_tile_kernels *kernels;
};

static void make_patch(void *arg, int i, int worker)
{
    const struct making *m = arg;
    const struct mr_store_patch *p = &m->s->model->patch[m->first + (size_t)i];
    (void)worker;
    for (size_t k = 0; k * MR_TILE < p->count; k++) {
        float buffer[MR_TILE];
        mr_streams_tile(m->s, m->first + (size_t)i, k,
                        mr_store_weights(m->s, p, k, m->s->header->side, buffer), m->kernels);
    }
    mr_past_end();
}

void mr_streams_make(const struct mr_store *s)
{
    struct making m = {s, 0, mr_tile_kernels[mr_simd_best()]};
    mr_pool_run(s->pool, (int)s->model->patches, make_patch, &m, true);
    s->streams->old = false;
    mr_streams_finish_some(s, 0, s->model->tensors, s->header->side);
}

void mr_streams_make_tensor(const struct mr_store *s, size_t i)
{
    const struct mr_store_tensor *t = &s->model->tensor[i];
    struct making m = {s, t->patch, mr_tile_kernels[mr_simd_best()]};
    mr_pool_run(s->pool, (int)t->patches, make_patch, &m, true);
    mr_streams_finish_some(s, i, i + 1, s->header->side);
}

void mr_streams_leave(struct mr_store *s, bool old)
{
    s->streams->old = old;
}

static const uint8_t *stream(const struct mr_store *s, enum mr_volume_file f, uint64_t *bytes)
{
    if (s->streams->old)
        mr_streams_make(s);
    *bytes = s->volume->size[f];
    return s->volume->data[f];
}

const uint8_t *mr_store_stream(const struct mr_store *s, uint64_t *bytes)
{
    return stream(s, MR_V_STREAM, bytes);
}

const uint8_t *mr_store_turned(const struct mr_store *s, uint64_t *bytes)
{
    return stream(s, MR_V_TURNED, bytes);
}
