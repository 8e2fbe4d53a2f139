// SPDX-License-Identifier: Apache-2.0
#include "engine/encode.h"

#include <stdlib.h>
#include <string.h>

#include "engine/deal.h"
#include "engine/encode_chunks.h"
#include "engine/engine.h"

// ---- weights -----------------------------------------------------------------------------------

static int upload_channel(struct mr_encode *e, int channel, struct mr_error *err)
{
    size_t bytes = (size_t)e->beats * BEAT;
    uint8_t *to = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!to)
        return encode_no_memory("weights", err);
    e->dealt[channel] = to;
    mr_deal_channel(e->packed, e->channels, channel, to);
    int rc = mr_device_alloc(e->dev, channel, bytes, e->dealt[channel], &e->stream[channel], err);
    if (mr_device_info(e->dev)->copies) {
        free(e->dealt[channel]);
        e->dealt[channel] = NULL;
    }
    return rc;
}

static int upload(struct mr_encode *e, struct mr_error *err)
{
    int rc = 0;
    e->dev->upload.total = (size_t)e->channels * (size_t)e->beats * BEAT;
    for (int c = 0; rc == 0 && c < e->channels; c++)
        rc = upload_channel(e, c, err);
    return rc;
}

// ---- opening -----------------------------------------------------------------------------------

// K, V and maxima of a run's texts lie one behind the other, and those of a layer where the layer
// before has had them.
static int make_room(struct mr_encode *e, struct mr_error *err)
{
    const struct mr_program *p = &e->program;
    uint32_t wbeats = (uint32_t)e->d.w / 64;
    size_t rows = (size_t)e->chunk * (size_t)p->res_beats * BEAT, kv;
    int rc = 0;
    e->kv_rec = wbeats + (2 * wbeats + 63) / 64;
    e->kv_area = (uint32_t)e->chunk * e->kv_rec;
    kv = 3 * (size_t)e->kv_area * BEAT;
    for (int c = 0; rc == 0 && c < e->channels; c++)
        rc = mr_device_alloc(e->dev, c, kv, NULL, &e->kv[c], err);
    if (rc == 0)
        rc = mr_device_alloc(e->dev, 0, (size_t)p->res_off * BEAT + rows, NULL, &e->input, err);
    if (rc == 0)
        rc = mr_device_alloc(e->dev, 0, rows, NULL, &e->result, err);
    if (rc == 0)
        rc = mr_device_alloc(e->dev, 0, ENCODE_DESC_BYTES, NULL, &e->desc, err);
    if (rc == 0)
        rc = mr_device_alloc(e->dev, 0, (size_t)p->count * BEAT, NULL, &e->program_at, err);
    if (rc == 0)
        rc = mr_device_write(e->dev, e->program_at, p->cmds, (size_t)p->count * BEAT, err);
    return rc;
}

int mr_encode_open(struct mr_encode **encode, const struct mr_packed *packed, struct mr_device *dev,
                   bool two_pass, struct mr_error *err)
{
    const struct mr_device_info *info = mr_device_info(dev);
    int slots = two_pass ? info->g.t / 2 : info->g.t;
    struct mr_encode *e = calloc(1, sizeof *e);
    *encode = NULL;
    if (!e)
        return encode_no_memory("state", err);
    *e = (struct mr_encode){.packed = packed,
                            .c = &packed->config,
                            .dev = dev,
                            .channels = info->g.n,
                            .two_pass = two_pass,
                            .chunk = slots < MR_PROGRAM_ROWS ? slots : MR_PROGRAM_ROWS};
    e->d = mr_dims_of(e->c);
    int64_t beats = mr_stream_beats(e->c, MR_FORMAT_MXINT8, e->channels);
    const struct mr_program_stage all = {.last = e->c->n_layer, .save = true};
    int rc = mr_engine_holds(&info->g, info->config, e->c, two_pass, err);
    if (rc == 0 && beats > UINT32_MAX)
        rc = mr_fail(err, MR_ERR_FIT, "the weight stream has more than 2^32 beats a channel");
    e->beats = (uint32_t)beats;
    e->row = calloc((size_t)e->d.d, sizeof *e->row);
    e->part = calloc((size_t)e->c->n_embd, sizeof *e->part);
    if (rc == 0 && (!e->row || !e->part))
        rc = encode_no_memory("rows", err);
    if (rc == 0)
        rc = mr_program_build(&e->program, e->c, MR_FORMAT_MXINT8, &all, err);
    if (rc == 0)
        rc = upload(e, err);
    if (rc == 0)
        rc = make_room(e, err);
    if (rc < 0) {
        mr_encode_close(e);
        return rc;
    }
    *encode = e;
    return 0;
}

void mr_encode_close(struct mr_encode *encode)
{
    if (!encode)
        return;
    encode_chunks_free(encode);
    mr_program_free(&encode->program);
    for (int c = 0; c < encode->channels; c++)
        free(encode->dealt[c]);
    free(encode->row);
    free(encode->part);
    free(encode);
}

// ---- runs --------------------------------------------------------------------------------------

// Texts whose rows fit into a run together.
static int run_texts(struct mr_encode *e, int count, const struct mr_cpu_text *texts, int n,
                     float *rows, struct mr_error *err)
{
    const struct encode_run run = {.program = &e->program,
                                   .program_at = e->program_at,
                                   .input = e->input,
                                   .result = e->result,
                                   .weights = e->stream,
                                   .kv = e->kv,
                                   .weight_beats = e->beats,
                                   .kv_beats = 3 * e->kv_area,
                                   .kv_area = e->kv_area,
                                   .rows = n};
    uint32_t kv_off = 0;
    int at = 0, rc = 0;
    for (int t = 0; rc == 0 && t < count; t++) {
        rc = encode_write(e, &texts[t], 0, texts[t].count, e->input, at, kv_off, err);
        at += texts[t].count;
        kv_off += (uint32_t)((texts[t].count + e->channels - 1) / e->channels) * e->kv_rec;
    }
    if (rc == 0)
        rc = encode_run(e, &run, err);
    return rc == 0 ? encode_read(e, e->result, n, rows, err) : rc;
}

int mr_encode_rows(struct mr_encode *encode, int count, const struct mr_cpu_text *texts,
                   float *rows, struct mr_error *err)
{
    int rc = 0;
    for (int first = 0, end; rc == 0 && first < count; first = end) {
        int n = 0;
        for (end = first; end < count && n + texts[end].count <= encode->chunk; end++)
            n += texts[end].count;
        if (end == first) {
            n = texts[end++].count;
            rc = encode_chunks(encode, &texts[first], rows, err);
        } else {
            rc = run_texts(encode, end - first, texts + first, n, rows, err);
        }
        rows += (size_t)n * (size_t)encode->c->n_embd;
    }
    return rc;
}

void mr_encode_counters(const struct mr_encode *encode, uint64_t *counter)
{
    memcpy(counter, encode->counter, sizeof encode->counter);
}

const struct mr_program *mr_encode_program(const struct mr_encode *encode)
{
    return &encode->program;
}
