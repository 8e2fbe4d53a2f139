// SPDX-License-Identifier: Apache-2.0
#include "engine/encode_run.h"

#include "cmodel/num.h"

int encode_no_memory(const char *what, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_MEMORY, "no memory for an encoder's %s", what);
}

static void put_u64(uint32_t *w, uint64_t v)
{
    w[0] = (uint32_t)v;
    w[1] = (uint32_t)(v >> 32);
}

int encode_run(struct mr_encode *e, const struct encode_run *run, struct mr_error *err)
{
    uint32_t w[ENCODE_DESC_BYTES / 4] = {0};
    uint64_t counter[MR_ALL_COUNTERS];
    const struct mr_program *p = run->program;
    w[MR_RUN_MAGIC] = MR_MAGIC_RUN;
    w[MR_RUN_N_CMDS] = w[MR_RUN_PROG_BEATS] = (uint32_t)p->count;
    w[MR_RUN_N_ROWS] = (uint32_t)run->rows;
    w[MR_RUN_FLAGS] = e->two_pass;
    put_u64(w + MR_RUN_PROG_LO, run->program_at);
    put_u64(w + MR_RUN_INPUT_LO, run->input);
    put_u64(w + MR_RUN_RESULT_LO, run->result);
    w[MR_RUN_INPUT_BEATS] = (uint32_t)(p->res_off + e->chunk * p->res_beats);
    w[MR_RUN_RESULT_BEATS] = (uint32_t)(e->chunk * p->res_beats);
    w[MR_RUN_KV_LAYER_BEATS] = run->kv_layer;
    w[MR_RUN_KV_V_BEATS] = run->kv_area;
    w[MR_RUN_KV_PM_BEATS] = 2 * run->kv_area;
    for (int c = 0; c < e->channels; c++) {
        uint32_t *ch = w + MR_RUN_CHANNEL(c);
        put_u64(ch + MR_CHANNEL_WEIGHTS_LO, run->weights[c]);
        ch[MR_CHANNEL_WEIGHTS_BEATS] = run->weight_beats;
        put_u64(ch + MR_CHANNEL_KV_LO, run->kv[c]);
        ch[MR_CHANNEL_KV_BEATS] = run->kv_beats;
    }
    int rc = mr_device_write(e->dev, e->desc, w, sizeof w, err);
    if (rc == 0)
        rc = mr_device_run(e->dev, e->desc, err);
    if (rc == 0)
        rc = mr_device_counters(e->dev, counter, err);
    for (int k = 0; rc == 0 && k < (int)MR_COUNTERS; k++)
        e->counter[k] += counter[k];
    return rc;
}

// e->row = the sum of the tables' rows, in fp32.
static void look_up(struct mr_encode *e, int token, int position, int type)
{
    const struct mr_list *tables = &e->c->arch->tables;
    size_t n = (size_t)e->c->n_embd;
    for (int t = 0; t < tables->count; t++) {
        const struct mr_item *item = &tables->items[t];
        const struct mr_tensor *table = mr_packed_table(e->packed, t);
        int at = item->by == MR_BY_TOKEN ? token : item->by == MR_BY_POSITION ? position : type;
        float *to = t == 0 ? e->row : e->part;
        (void)mr_tensor_read_f32(table, (size_t)at * n, n, to); // the text was checked
        for (size_t i = 0; t > 0 && i < n; i++)
            e->row[i] = mr_fadd(e->row[i], to[i]);
    }
}

int encode_write(struct mr_encode *e, const struct mr_cpu_text *text, int first, int n,
                 uint64_t input, int at, uint32_t kv_off, struct mr_error *err)
{
    const struct mr_program *p = &e->program;
    size_t bytes = (size_t)p->res_beats * BEAT;
    int rc = 0;
    for (int i = 0; rc == 0 && i < n; i++) {
        int pos = first + i;
        const uint32_t row[4] = {kv_off, (uint32_t)pos, i > 0 ? 2 : 0, (uint32_t)text->count};
        uint64_t to = (uint64_t)(at + i);
        rc = mr_device_write(e->dev, input + 16 * to, row, sizeof row, err);
        look_up(e, text->tokens[pos], pos, text->types ? text->types[pos] : 0);
        if (rc == 0)
            rc = mr_device_write(e->dev, input + (uint64_t)p->res_off * BEAT + to * bytes, e->row,
                                 bytes, err);
    }
    return rc;
}

int encode_read(struct mr_encode *e, uint64_t from, int n, float *rows, struct mr_error *err)
{
    size_t bytes = (size_t)e->program.res_beats * BEAT, width = (size_t)e->c->n_embd;
    int rc = 0;
    for (int i = 0; rc == 0 && i < n; i++)
        rc = mr_device_read(e->dev, from + (uint64_t)i * bytes, rows + (size_t)i * width,
                            width * sizeof *rows, err);
    return rc;
}
