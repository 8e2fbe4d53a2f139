// SPDX-License-Identifier: Apache-2.0
#include "engine/encode_chunks.h"

#include <stdlib.h>

#include "engine/deal.h"
#include "engine/stages.h"

static struct mr_program_stage stage_at(int i)
{
    return (struct mr_program_stage){.first = i, .last = i + 1, .chunks = true};
}

// ---- making it ---------------------------------------------------------------------------------

static int64_t stage_beats(const struct mr_encode *e, const struct mr_program_stage *stage)
{
    int64_t beats = 0;
    for (int i = 0; i < mr_stage_items(e->c, stage); i++) {
        struct mr_stream_item it = mr_stage_item(e->c, MR_FORMAT_MXINT8, stage, i);
        beats += mr_item_beats(&it, e->channels);
    }
    return beats;
}

// The next buffer. A device gives none back before it is closed, so those that were there when
// memory ran out are used when the next such text tries again.
static int take(struct mr_encode *e, int channel, size_t bytes, const void *map, uint64_t *addr,
                struct mr_error *err)
{
    struct encode_chunks *x = &e->chunks;
    int rc = x->next < x->taken ? 0 : mr_device_alloc(e->dev, channel, bytes, map, addr, err);
    x->next += rc == 0;
    x->taken = x->next > x->taken ? x->next : x->taken;
    return rc;
}

// The weights of all stages on a channel, one behind the other.
static int upload(struct mr_encode *e, int channel, struct mr_error *err)
{
    struct encode_chunks *x = &e->chunks;
    size_t bytes = 0, at = 0;
    for (int s = 0; s < x->n; s++)
        bytes += (size_t)x->beats[s] * BEAT;
    if (x->next < x->taken)
        return take(e, channel, bytes, NULL, NULL, err);
    uint8_t *to = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    uint64_t addr = 0;
    if (!to)
        return encode_no_memory("weights", err);
    x->dealt[channel] = to;
    for (int s = 0; s < x->n; s++) {
        const struct mr_program_stage stage = stage_at(s);
        for (int i = 0; i < mr_stage_items(e->c, &stage); i++) {
            const struct mr_stream_entry *p =
                &e->packed->list.entries[mr_stage_index(e->c, &stage, i)];
            (void)mr_deal_item(&p->item, e->channels, channel, e->packed->stream + p->at, to);
            to += (size_t)mr_item_beats(&p->item, e->channels) * BEAT;
        }
    }
    int rc = take(e, channel, bytes, x->dealt[channel], &addr, err);
    if (rc < 0 || mr_device_info(e->dev)->copies) {
        free(x->dealt[channel]);
        x->dealt[channel] = NULL;
    }
    for (int s = 0; s < x->n; s++) {
        x->weights[s * e->channels + channel] = addr + at;
        at += (size_t)x->beats[s] * BEAT;
    }
    return rc;
}

static int build(struct mr_encode *e, struct mr_error *err)
{
    struct encode_chunks *x = &e->chunks;
    int rc = 0;
    for (int s = 0; rc == 0 && s < x->n; s++) {
        const struct mr_program_stage stage = stage_at(s);
        struct mr_program *p = &x->programs[s];
        x->beats[s] = (uint32_t)stage_beats(e, &stage);
        if (!p->count)
            rc = mr_program_build(p, e->c, MR_FORMAT_MXINT8, &stage, err);
        if (rc == 0)
            rc = take(e, 0, (size_t)p->count * BEAT, NULL, &x->program_at[s], err);
        if (rc == 0)
            rc = mr_device_write(e->dev, x->program_at[s], p->cmds, (size_t)p->count * BEAT, err);
    }
    return rc;
}

// Of a chunk's input window.
static size_t window_bytes(const struct mr_encode *e)
{
    return (size_t)(e->program.res_off + e->chunk * e->program.res_beats) * BEAT;
}

static int make_room(struct mr_encode *e, struct mr_error *err)
{
    struct encode_chunks *x = &e->chunks;
    int positions = (e->c->n_positions + e->channels - 1) / e->channels, rc = 0;
    size_t chunks = (size_t)((e->c->n_positions + e->chunk - 1) / e->chunk);
    x->kv_area = (uint32_t)positions * e->kv_rec;
    x->kv_layer = 3 * x->kv_area;
    for (int c = 0; rc == 0 && c < e->channels; c++)
        rc = take(e, c, (size_t)x->kv_layer * (size_t)e->c->n_layer * BEAT, NULL, &x->kv[c], err);
    for (int side = 0; rc == 0 && side < 2; side++)
        rc = take(e, 0, chunks * window_bytes(e), NULL, &x->input[side], err);
    return rc;
}

static int begin(struct mr_encode *e, struct mr_error *err)
{
    struct encode_chunks *x = &e->chunks;
    size_t n = (size_t)e->c->n_layer + 1;
    x->n = (int)n;
    x->programs = calloc(n, sizeof *x->programs);
    x->program_at = calloc(n, sizeof *x->program_at);
    x->weights = calloc(n * (size_t)e->channels, sizeof *x->weights);
    x->beats = calloc(n, sizeof *x->beats);
    if (x->programs && x->program_at && x->weights && x->beats)
        return 0;
    encode_chunks_free(e);
    return encode_no_memory("stages", err);
}

static int make(struct mr_encode *e, struct mr_error *err)
{
    struct encode_chunks *x = &e->chunks;
    int rc = x->n ? 0 : begin(e, err);
    if (rc < 0)
        return rc;
    x->next = 0;
    rc = build(e, err);
    for (int c = 0; rc == 0 && c < e->channels; c++)
        rc = upload(e, c, err);
    if (rc == 0)
        rc = make_room(e, err);
    x->made = rc == 0;
    return rc;
}

void encode_chunks_free(struct mr_encode *e)
{
    struct encode_chunks *x = &e->chunks;
    for (int s = 0; x->programs && s < x->n; s++)
        mr_program_free(&x->programs[s]);
    for (int c = 0; c < e->channels; c++)
        free(x->dealt[c]);
    free(x->programs);
    free(x->program_at);
    free(x->weights);
    free(x->beats);
    *x = (struct encode_chunks){0};
}

// ---- runs --------------------------------------------------------------------------------------

// Stage 0 saves no rows: stage 1 loads them once more.
static int run_stage(struct mr_encode *e, int s, int chunk, int rows, struct mr_error *err)
{
    const struct encode_chunks *x = &e->chunks;
    uint64_t at = (uint64_t)chunk * window_bytes(e);
    int from = s > 0 ? (s - 1) % 2 : 0;
    const struct encode_run run = {
        .program = &x->programs[s],
        .program_at = x->program_at[s],
        .input = x->input[from] + at,
        .result = x->input[!from] + at + (uint64_t)e->program.res_off * BEAT,
        .weights = x->weights + (size_t)s * (size_t)e->channels,
        .kv = x->kv,
        .weight_beats = x->beats[s],
        .kv_beats = x->kv_layer * (uint32_t)e->c->n_layer,
        .kv_layer = x->kv_layer,
        .kv_area = x->kv_area,
        .rows = rows,
    };
    return encode_run(e, &run, err);
}

int encode_chunks(struct mr_encode *e, const struct mr_cpu_text *text, float *rows,
                  struct mr_error *err)
{
    struct encode_chunks *x = &e->chunks;
    int rc = x->made ? 0 : make(e, err), last = e->c->n_layer % 2;
    size_t window = window_bytes(e);
    for (int at = 0, i = 0; rc == 0 && at < text->count; at += e->chunk, i++) {
        int n = text->count - at < e->chunk ? text->count - at : e->chunk;
        for (int side = 0; rc == 0 && side < 2; side++)
            rc = encode_write(e, text, at, n, x->input[side] + (uint64_t)i * window, 0, 0, err);
    }
    for (int s = 0; rc == 0 && s < x->n; s++)
        for (int at = 0, i = 0; rc == 0 && at < text->count; at += e->chunk, i++)
            rc = run_stage(e, s, i, text->count - at < e->chunk ? text->count - at : e->chunk, err);
    for (int at = 0, i = 0; rc == 0 && at < text->count; at += e->chunk, i++) {
        int n = text->count - at < e->chunk ? text->count - at : e->chunk;
        uint64_t from = x->input[last] + (uint64_t)i * window + (uint64_t)e->program.res_off * BEAT;
        rc = encode_read(e, from, n, rows + (size_t)at * (size_t)e->c->n_embd, err);
    }
    return rc;
}
