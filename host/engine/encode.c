// SPDX-License-Identifier: Apache-2.0
#include "engine/encode.h"

#include <stdlib.h>
#include <string.h>

#include "cmodel/num.h"
#include "engine/deal.h"
#include "engine/engine.h"

enum { BEAT = MR_BEAT, DESC_WORDS = 16 * 9 };

struct mr_encode {
    const struct mr_packed *packed;
    const struct mr_config *c;
    struct mr_device *dev;
    struct mr_dims d;
    struct mr_program program;
    int channels, chunk;         // rows a run
    uint64_t stream[64], kv[64]; // of each channel
    uint64_t input, result, desc, program_at;
    uint32_t beats, kv_rec, kv_area; // of a channel: the stream; a record; all records
    uint8_t *dealt[64];              // host copies where the device maps them
    float *row;                      // [d]: of a token, zero beyond n_embd
    float *part;                     // [n_embd]: of a table
    uint64_t counter[MR_COUNTERS];   // of all runs
};

static int no_memory(const char *what, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_MEMORY, "no memory for an encoder's %s", what);
}

// ---- weights -----------------------------------------------------------------------------------

static int upload_channel(struct mr_encode *e, int channel, const uint8_t *stream,
                          struct mr_error *err)
{
    size_t bytes = (size_t)e->beats * BEAT;
    uint8_t *to = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!to)
        return no_memory("weights", err);
    e->dealt[channel] = to;
    for (int i = 0; i < mr_stream_items(e->c); i++) {
        struct mr_stream_item it = mr_stream_item(e->c, MR_FORMAT_MXINT8, i);
        stream = mr_deal_item(&it, e->channels, channel, stream, to);
        to += (size_t)mr_item_beats(&it, e->channels) * BEAT;
    }
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
        rc = upload_channel(e, c, e->packed->stream, err);
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
        rc = mr_device_alloc(e->dev, 0, DESC_WORDS * 4, NULL, &e->desc, err);
    if (rc == 0)
        rc = mr_device_alloc(e->dev, 0, (size_t)p->count * BEAT, NULL, &e->program_at, err);
    if (rc == 0)
        rc = mr_device_write(e->dev, e->program_at, p->cmds, (size_t)p->count * BEAT, err);
    return rc;
}

int mr_encode_open(struct mr_encode **encode, const struct mr_packed *packed, struct mr_device *dev,
                   struct mr_error *err)
{
    const struct mr_device_info *info = mr_device_info(dev);
    struct mr_encode *e = calloc(1, sizeof *e);
    *encode = NULL;
    if (!e)
        return no_memory("state", err);
    *e = (struct mr_encode){.packed = packed,
                            .c = &packed->config,
                            .dev = dev,
                            .channels = info->g.n,
                            .chunk = info->g.t < MR_PROGRAM_ROWS ? info->g.t : MR_PROGRAM_ROWS};
    e->d = mr_dims_of(e->c);
    int64_t beats = mr_stream_beats(e->c, MR_FORMAT_MXINT8, e->channels);
    const struct mr_program_stage all = {.last = e->c->n_layer, .save = true};
    int rc = mr_engine_holds(&info->g, info->config, e->c, false, err);
    if (rc == 0 && beats > UINT32_MAX)
        rc = mr_fail(err, MR_ERR_FIT, "the weight stream has more than 2^32 beats a channel");
    e->beats = (uint32_t)beats;
    e->row = calloc((size_t)e->d.d, sizeof *e->row);
    e->part = calloc((size_t)e->c->n_embd, sizeof *e->part);
    if (rc == 0 && (!e->row || !e->part))
        rc = no_memory("rows", err);
    if (rc == 0)
        rc = mr_program_build_stage(&e->program, e->c, MR_FORMAT_MXINT8, &all, err);
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
    mr_program_free(&encode->program);
    for (int c = 0; c < encode->channels; c++)
        free(encode->dealt[c]);
    free(encode->row);
    free(encode->part);
    free(encode);
}

int mr_encode_most(const struct mr_encode *encode)
{
    return encode->chunk < encode->c->n_positions ? encode->chunk : encode->c->n_positions;
}

// ---- runs --------------------------------------------------------------------------------------

static void put_u64(uint32_t *w, uint64_t v)
{
    w[0] = (uint32_t)v;
    w[1] = (uint32_t)(v >> 32);
}

static int write_descriptor(struct mr_encode *e, int rows, struct mr_error *err)
{
    uint32_t w[DESC_WORDS] = {0};
    const struct mr_program *p = &e->program;
    w[MR_RUN_MAGIC] = MR_MAGIC_RUN;
    w[MR_RUN_N_CMDS] = w[MR_RUN_PROG_BEATS] = (uint32_t)p->count;
    w[MR_RUN_N_ROWS] = (uint32_t)rows;
    put_u64(w + MR_RUN_PROG_LO, e->program_at);
    put_u64(w + MR_RUN_INPUT_LO, e->input);
    put_u64(w + MR_RUN_RESULT_LO, e->result);
    w[MR_RUN_INPUT_BEATS] = (uint32_t)(p->res_off + e->chunk * p->res_beats);
    w[MR_RUN_RESULT_BEATS] = (uint32_t)(e->chunk * p->res_beats);
    w[MR_RUN_KV_V_BEATS] = e->kv_area;
    w[MR_RUN_KV_PM_BEATS] = 2 * e->kv_area;
    for (int c = 0; c < e->channels; c++) {
        uint32_t *ch = w + MR_RUN_CHANNEL(c);
        put_u64(ch + MR_CHANNEL_WEIGHTS_LO, e->stream[c]);
        ch[MR_CHANNEL_WEIGHTS_BEATS] = e->beats;
        put_u64(ch + MR_CHANNEL_KV_LO, e->kv[c]);
        ch[MR_CHANNEL_KV_BEATS] = 3 * e->kv_area;
    }
    return mr_device_write(e->dev, e->desc, w, sizeof w, err);
}

// e->row = the sum of the tables' rows, in fp32.
static int look_up(struct mr_encode *e, int token, int position, int type, struct mr_error *err)
{
    const struct mr_list *tables = &e->c->arch->tables;
    size_t n = (size_t)e->c->n_embd;
    for (int t = 0; t < tables->count; t++) {
        const struct mr_item *item = &tables->items[t];
        const struct mr_tensor *table = mr_packed_table(e->packed, t);
        int at = item->by == MR_BY_TOKEN ? token : item->by == MR_BY_POSITION ? position : type;
        float *to = t == 0 ? e->row : e->part;
        if (mr_tensor_read_f32(table, (size_t)at * n, n, to) < 0)
            return mr_fail(err, MR_ERR_FORMAT, "%s: row %d cannot be read", table->name, at);
        for (size_t i = 0; t > 0 && i < n; i++)
            e->row[i] = mr_fadd(e->row[i], to[i]);
    }
    return 0;
}

static int write_text(struct mr_encode *e, const struct mr_cpu_text *text, int first,
                      uint32_t kv_off, struct mr_error *err)
{
    const struct mr_program *p = &e->program;
    size_t bytes = (size_t)p->res_beats * BEAT;
    int rc = 0;
    for (int i = 0; rc == 0 && i < text->count; i++) {
        const uint32_t row[4] = {kv_off, (uint32_t)i, i > 0 ? 2 : 0, (uint32_t)text->count};
        uint64_t n = (uint64_t)(first + i);
        rc = look_up(e, text->tokens[i], i, text->types ? text->types[i] : 0, err);
        if (rc == 0)
            rc = mr_device_write(e->dev, e->input + 16 * n, row, sizeof row, err);
        if (rc == 0)
            rc = mr_device_write(e->dev, e->input + (uint64_t)p->res_off * BEAT + n * bytes, e->row,
                                 bytes, err);
    }
    return rc;
}

// Texts whose rows fit into a run together.
static int run(struct mr_encode *e, int count, const struct mr_cpu_text *texts, int n, float *rows,
               struct mr_error *err)
{
    size_t bytes = (size_t)e->program.res_beats * BEAT, width = (size_t)e->c->n_embd;
    uint64_t counter[MR_ALL_COUNTERS];
    uint32_t kv_off = 0;
    int at = 0, rc = 0;
    for (int t = 0; rc == 0 && t < count; t++) {
        rc = write_text(e, &texts[t], at, kv_off, err);
        at += texts[t].count;
        kv_off += (uint32_t)((texts[t].count + e->channels - 1) / e->channels) * e->kv_rec;
    }
    if (rc == 0)
        rc = write_descriptor(e, n, err);
    if (rc == 0)
        rc = mr_device_run(e->dev, e->desc, err);
    if (rc == 0)
        rc = mr_device_counters(e->dev, counter, err);
    for (int k = 0; rc == 0 && k < (int)MR_COUNTERS; k++)
        e->counter[k] += counter[k];
    for (int i = 0; rc == 0 && i < n; i++)
        rc = mr_device_read(e->dev, e->result + (uint64_t)i * bytes, rows + (size_t)i * width,
                            width * sizeof *rows, err);
    return rc;
}

int mr_encode_rows(struct mr_encode *encode, int count, const struct mr_cpu_text *texts,
                   float *rows, struct mr_error *err)
{
    int most = mr_encode_most(encode), rc = 0;
    for (int first = 0, end; rc == 0 && first < count; first = end) {
        int n = 0;
        for (end = first; end < count && n + texts[end].count <= encode->chunk; end++) {
            if (texts[end].count > most)
                break;
            n += texts[end].count;
        }
        if (end == first)
            return mr_fail(err, MR_ERR_FIT,
                           "a text of %d tokens is longer than the %d rows of %s; take a larger "
                           "configuration ('millrace devices' lists them) or cpu:",
                           texts[first].count, most, mr_device_info(encode->dev)->uri);
        rc = run(encode, end - first, texts + first, n, rows, err);
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
