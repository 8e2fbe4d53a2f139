// SPDX-License-Identifier: Apache-2.0
#include "pack/quantise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/num.h"
#include "pack/mxfp4.h"
#include "pack/source.h"

// ---- inputs ----

void mr_inputs_free(struct mr_inputs *inputs)
{
    mr_compensator_free(&inputs->compensator);
    free(inputs->mean);
    inputs->mean = NULL;
    inputs->item = (struct mr_stream_item){0};
}

// Moments of the input as the device gets it, smoothed and padded. Where a bias can take up the
// mean error, the moments are those about the mean.
static int make_inputs(struct mr_inputs *in, const struct mr_source *s,
                       const struct mr_stream_item *item, struct mr_error *err)
{
    bool out = item->id == MR_T_OUT, fed = item->id == MR_T_FC_OUT;
    if (in->item.k > 0 && in->item.layer == item->layer && in->item.bias == item->bias &&
        (in->item.id == MR_T_OUT) == out && (in->item.id == MR_T_FC_OUT) == fed)
        return 0;
    mr_inputs_free(in);
    const struct mr_moments *m;
    int rc = mr_calibration_moments(in->calibration, item, &m, err);
    if (rc < 0)
        return rc;
    size_t k = (size_t)item->k;
    double *h = calloc(k * k, sizeof *h), n = (double)m->rows;
    in->mean = calloc(k, sizeof *in->mean);
    if (!h || !in->mean) {
        free(h);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for moments of %d inputs", item->k);
    }
    for (size_t i = 0; i < k; i++) {
        int ci = mr_unpad((int)i, s->shape.col_head, s->shape.cols);
        if (ci < 0)
            continue;
        int ei = s->col_exp ? -s->col_exp[ci] : 0;
        in->mean[i] = ldexp((double)m->sum[ci] / n, ei);
        for (size_t j = 0; j <= i; j++) {
            int cj = mr_unpad((int)j, s->shape.col_head, s->shape.cols);
            if (cj < 0)
                continue;
            int e = ei + (s->col_exp ? -s->col_exp[cj] : 0);
            double v = ldexp((double)m->outer[(size_t)ci * (size_t)m->n + (size_t)cj] / n, e);
            if (item->bias)
                v -= in->mean[i] * in->mean[j];
            h[i * k + j] = h[j * k + i] = v;
        }
    }
    in->item = *item;
    return mr_compensator_make(&in->compensator, item->k, h, err);
}

// ---- matrices ----

enum { COLS = 64 }; // outputs at a time: sixteen groups of four

struct columns {
    float *w, *error; // [COLS][k]
    uint8_t *code;    // [COLS][k/32]
    int8_t *element;  // [COLS][k]
    float *raw;       // one row of the checkpoint
    float bias[COLS];
};

static int read_columns(const struct mr_source *s, const struct mr_stream_item *item, int base,
                        struct columns *c, struct mr_error *err)
{
    for (int o = 0; o < COLS; o++) {
        float *col = c->w + (size_t)o * (size_t)item->k;
        int r = mr_unpad(base + o, s->shape.row_head, s->shape.rows);
        int rc = mr_source_read(s, base + o, item->k, col, c->raw, err);
        if (rc < 0)
            return rc;
        c->bias[o] = 0;
        if (item->bias && r >= 0 && mr_tensor_read_f32(s->bias, (size_t)r, 1, &c->bias[o]) < 0)
            return mr_fail(err, MR_ERR_FORMAT, "%s: cannot be read as fp32", s->bias->name);
        bool finite = mr_expo(c->bias[o]) != 255;
        for (int i = 0; i < item->k; i++)
            finite = finite && mr_expo(col[i]) != 255;
        if (!finite)
            return mr_fail(err, MR_ERR_FORMAT,
                           "%s: output %d has an infinite or NaN weight; the checkpoint is damaged "
                           "or its training diverged",
                           s->weight->name, r);
    }
    return 0;
}

static int round_columns(const struct mr_stream_item *item, const struct mr_inputs *inputs,
                         struct columns *c, struct mr_error *err)
{
    size_t k = (size_t)item->k;
    if (!inputs->calibration) {
        for (size_t at = 0; at < COLS * k; at += 32)
            c->code[at / 32] = item->format == MR_FORMAT_MXFP4
                                   ? mr_mxfp4_quantise(c->w + at, (uint8_t *)c->element + at)
                                   : mr_mxint8_quantise(c->w + at, c->element + at);
        return 0;
    }
    int rc = mr_compensate(&inputs->compensator, item->format, COLS, c->w, c->code, c->element,
                           c->error, err);
    for (size_t o = 0; rc == 0 && item->bias && o < COLS; o++) {
        double lost = 0; // of the mean output
        for (size_t i = 0; i < k; i++)
            lost += (double)c->error[o * k + i] * inputs->mean[i];
        c->bias[o] = (float)((double)c->bias[o] + lost);
    }
    return rc;
}

// Puts column o into its group; codes and elements of k-block b go to section b / 16. Returns the
// largest code.
static uint8_t put_column(const struct mr_stream_item *item, const struct columns *c, int o,
                          uint8_t *group)
{
    int kb = item->k / 32, fp4 = item->format == MR_FORMAT_MXFP4, lane = o % 4;
    size_t per_block = fp4 ? 64 : 128; // bytes of the four columns
    uint8_t top = 0;
    for (int b = 0; b < kb; b++) {
        uint8_t *section = group + (size_t)(b / 16) * (MR_BEAT + 16 * per_block);
        uint8_t *data = section + MR_BEAT + (size_t)(b % 16) * per_block;
        size_t block = (size_t)o * (size_t)kb + (size_t)b;
        const int8_t *e = c->element + 32 * block;
        if (fp4)
            for (int i = 0; i < 16; i++)
                data[16 * lane + i] = (uint8_t)(e[2 * i] | e[2 * i + 1] << 4);
        else
            memcpy(data + 32 * lane, e, 32);
        section[4 * (b % 16) + lane] = c->code[block];
        top = c->code[block] > top ? c->code[block] : top;
    }
    return top;
}

static int quantise_columns(const struct mr_source *s, struct mr_inputs *inputs,
                            const struct mr_stream_item *item, struct columns *c, uint8_t *out,
                            int (*progress)(void *, size_t), void *arg, struct mr_error *err)
{
    size_t group_bytes = (size_t)mr_group_beats(item) * MR_BEAT;
    size_t header_bytes = (size_t)mr_header_beats(item) * MR_BEAT;
    size_t bytes = header_bytes + COLS / 4 * group_bytes;
    for (int base = 0; base < item->cols; base += COLS, out += bytes) {
        int rc = read_columns(s, item, base, c, err);
        if (rc == 0 &&
            inputs->calibration) // after the first look at the weights: NaN is said there
            rc = make_inputs(inputs, s, item, err);
        if (rc == 0)
            rc = round_columns(item, inputs, c, err);
        if (rc < 0)
            return rc;
        memset(out, 0, bytes);
        for (int o = 0; o < COLS; o++)
            out[o] = put_column(item, c, o, out + header_bytes + (size_t)(o / 4) * group_bytes);
        if (item->bias)
            memcpy(out + MR_BEAT, c->bias, sizeof c->bias);
        if (progress && progress(arg, bytes))
            return mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
    }
    return 0;
}

static int quantise_matrix(const struct mr_source *s, struct mr_inputs *inputs,
                           const struct mr_stream_item *item, uint8_t *out,
                           int (*progress)(void *, size_t), void *arg, struct mr_error *err)
{
    size_t n = COLS * (size_t)item->k;
    struct columns c = {malloc(n * sizeof(float)),
                        malloc(n * sizeof(float)),
                        malloc(n / 32),
                        malloc(n),
                        malloc((size_t)s->shape.cols * sizeof(float)),
                        {0}};
    int rc = c.w && c.error && c.code && c.element && c.raw
                 ? quantise_columns(s, inputs, item, &c, out, progress, arg, err)
                 : mr_fail(err, MR_ERR_MEMORY, "no memory for weight columns");
    free(c.w);
    free(c.error);
    free(c.code);
    free(c.element);
    free(c.raw);
    return rc;
}

static int quantise_vectors(const struct mr_checkpoint *ck, const struct mr_smooth *smooth,
                            const struct mr_stream_item *item, uint8_t *out, struct mr_error *err)
{
    const struct mr_config *c = mr_checkpoint_config(ck);
    bool last = item->id == MR_T_LN_F;
    const int8_t *exp = smooth->ln + (size_t)item->layer * (size_t)c->n_embd;
    size_t half = (size_t)mr_item_beats(item, 1) / 2 * MR_BEAT;
    memset(out, 0, 2 * half);
    for (int part = 0; part < 2; part++) {
        const struct mr_tensor *t =
            last ? mr_checkpoint_tensor(ck,
                                        part ? "transformer.ln_f.bias" : "transformer.ln_f.weight")
                 : mr_checkpoint_layer_tensor(ck, item->layer, part ? "ln_1.bias" : "ln_1.weight");
        for (int i = 0; t && i < c->n_embd; i++) {
            float v;
            if (mr_tensor_read_f32(t, (size_t)i, 1, &v) < 0 || mr_expo(v) == 255)
                return mr_fail(err, MR_ERR_FORMAT, "%s: element %d is infinite, NaN or unreadable",
                               t->name, i);
            v = mr_fscale(v, -exp[i]);
            memcpy(out + (size_t)part * half + 4 * (size_t)i, &v, 4);
        }
        if (!t)
            return mr_fail(err, MR_ERR_FORMAT, "LayerNorm of layer %d is missing", item->layer);
    }
    return 0;
}

int mr_quantise_item(const struct mr_checkpoint *ck, const struct mr_smooth *smooth,
                     struct mr_inputs *inputs, const struct mr_stream_item *item, uint8_t *out,
                     int (*progress)(void *, size_t), void *arg, struct mr_error *err)
{
    if (item->cols == 0)
        return quantise_vectors(ck, smooth, item, out, err);
    struct mr_source s;
    int rc = mr_source_find(&s, ck, smooth, item, err);
    return rc < 0 ? rc : quantise_matrix(&s, inputs, item, out, progress, arg, err);
}
