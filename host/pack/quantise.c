// SPDX-License-Identifier: Apache-2.0
#include "pack/quantise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/num.h"
#include "pack/mxfp4.h"

// Where a matrix comes from and how its checkpoint indices map to padded ones.
struct source {
    const struct mr_tensor *weight, *bias;
    int rows, cols;         // in the checkpoint: [rows outputs][cols inputs]
    int row_head, col_head; // head_dim where the axis is split into heads, else 0
    const int8_t *row_exp;  // output r is scaled by 2^(row_sign * row_exp[r])
    int row_sign;
    const int8_t *col_exp; // input c is scaled by 2^col_exp[c]
};

static int find_source(const struct mr_checkpoint *ck, const struct mr_smooth *smooth,
                       const struct mr_stream_item *item, struct source *s, struct mr_error *err)
{
    static const char *const names[] = {
        [MR_T_Q] = "attn.q_proj.weight",     [MR_T_K] = "attn.k_proj.weight",
        [MR_T_V] = "attn.v_proj.weight",     [MR_T_FC_IN] = "mlp.fc_in.weight",
        [MR_T_FC_OUT] = "mlp.fc_out.weight", [MR_T_OUT] = "attn.out_proj.weight",
    };
    const struct mr_config *c = mr_checkpoint_config(ck);
    size_t n = (size_t)c->n_embd, l = (size_t)item->layer;
    *s = (struct source){0};
    if (item->id == MR_T_HEAD) {
        s->weight = mr_checkpoint_tensor(ck, "lm_head.weight");
        s->bias = mr_checkpoint_tensor(ck, "lm_head.bias");
    } else {
        s->weight = mr_checkpoint_layer_tensor(ck, item->layer, names[item->id]);
        if (item->id == MR_T_FC_IN)
            s->bias = mr_checkpoint_layer_tensor(ck, item->layer, "mlp.fc_in.bias");
        if (item->id == MR_T_FC_OUT)
            s->bias = mr_checkpoint_layer_tensor(ck, item->layer, "mlp.fc_out.bias");
    }
    if (!s->weight || (item->bias && !s->bias))
        return mr_fail(err, MR_ERR_FORMAT, "a tensor of layer %d is missing", item->layer);
    s->rows = (int)s->weight->shape[0];
    s->cols = (int)s->weight->shape[1];
    switch (item->id) {
    case MR_T_Q:
    case MR_T_K:
        s->row_exp = smooth->kq + l * n;
        s->row_sign = item->id == MR_T_Q ? 1 : -1;
        s->row_head = c->head_dim;
        s->col_exp = smooth->ln + l * n;
        break;
    case MR_T_V:
        s->row_exp = smooth->vo + l * n;
        s->row_sign = -1;
        s->row_head = c->head_dim;
        s->col_exp = smooth->ln + l * n;
        break;
    case MR_T_FC_IN:
    case MR_T_HEAD:
        s->col_exp = smooth->ln + l * n;
        break;
    case MR_T_OUT:
        s->col_head = c->head_dim;
        s->col_exp = smooth->vo + l * n;
        break;
    default:
        break;
    }
    return 0;
}

// Padded index -> checkpoint index, or -1 on padding.
static int unpad(int i, int head, int n)
{
    if (head == 0)
        return i < n ? i : -1;
    int lanes = (head + 63) / 64 * 64;
    return i % lanes < head ? i / lanes * head + i % lanes : -1;
}

// Output `o` (padded index) as K floats, zero on padding.
static int read_column(const struct source *s, int o, int k, float *col, float *raw,
                       struct mr_error *err)
{
    memset(col, 0, (size_t)k * sizeof *col);
    int r = unpad(o, s->row_head, s->rows);
    if (r < 0)
        return 0;
    size_t n = (size_t)s->cols;
    if (mr_tensor_read_f32(s->weight, (size_t)r * n, n, raw) < 0)
        return mr_fail(err, MR_ERR_FORMAT, "%s: row %d cannot be read as fp32", s->weight->name, r);
    int row_exp = s->row_exp ? s->row_sign * s->row_exp[r] : 0;
    for (int i = 0; i < k; i++) {
        int c = unpad(i, s->col_head, s->cols);
        if (c >= 0)
            col[i] = mr_fscale(raw[c], row_exp + (s->col_exp ? s->col_exp[c] : 0));
    }
    return 0;
}

// Quantises one column into its places in a group. codes and elements of k-block b, column c go to
// section b / 16. Returns the largest code, or -1 if a value is Inf or NaN.
static int put_column(const struct mr_stream_item *item, const float *col, int c, uint8_t *group)
{
    int kb = item->k / 32, fp4 = item->format == MR_FORMAT_MXFP4;
    int per_block = fp4 ? 64 : 128; // bytes of the four columns
    int top = 0;
    for (int b = 0; b < kb; b++) {
        uint8_t *section = group + (size_t)(b / 16) * (MR_BEAT + 16 * (size_t)per_block);
        uint8_t *data = section + MR_BEAT + (size_t)(b % 16) * (size_t)per_block;
        int code;
        if (fp4) {
            uint8_t nib[32];
            code = mr_mxfp4_quantise(col + 32 * b, nib);
            for (int i = 0; i < 16; i++)
                data[16 * c + i] = (uint8_t)(nib[2 * i] | nib[2 * i + 1] << 4);
        } else {
            code = mr_mxint8_quantise(col + 32 * b, (int8_t *)data + 32 * c);
        }
        if (code == MR_CODE_NAN)
            return -1;
        section[4 * (b % 16) + c] = (uint8_t)code;
        top = code > top ? code : top;
    }
    return top;
}

static int quantise_matrix(const struct source *s, const struct mr_stream_item *item, uint8_t *out,
                           int (*progress)(void *, size_t), void *arg, struct mr_error *err)
{
    size_t group_bytes = (size_t)mr_group_beats(item) * MR_BEAT;
    size_t header_bytes = (size_t)mr_header_beats(item) * MR_BEAT;
    float *col = malloc((size_t)item->k * sizeof *col);
    float *raw = malloc((size_t)s->cols * sizeof *raw);
    int rc = col && raw ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for a weight column");
    for (int base = 0; rc == 0 && base < item->cols; base += 64) {
        uint8_t *header = out;
        memset(out, 0, header_bytes + 16 * group_bytes);
        for (int o = 0; rc == 0 && o < 64; o++) {
            rc = read_column(s, base + o, item->k, col, raw, err);
            if (rc < 0)
                break;
            int top =
                put_column(item, col, o % 4, out + header_bytes + (size_t)(o / 4) * group_bytes);
            int r = unpad(base + o, s->row_head, s->rows);
            float bias = 0;
            if (item->bias && r >= 0 && mr_tensor_read_f32(s->bias, (size_t)r, 1, &bias) < 0)
                rc = mr_fail(err, MR_ERR_FORMAT, "%s: cannot be read as fp32", s->bias->name);
            if (top < 0 || mr_expo(bias) == 255)
                rc = mr_fail(
                    err, MR_ERR_FORMAT,
                    "%s: output %d has an infinite or NaN weight; the checkpoint is damaged "
                    "or its training diverged",
                    s->weight->name, r);
            header[o] = (uint8_t)top;
            if (item->bias)
                memcpy(header + MR_BEAT + 4 * (size_t)o, &bias, 4);
        }
        out += header_bytes + 16 * group_bytes;
        if (rc == 0 && progress && progress(arg, header_bytes + 16 * group_bytes))
            rc = mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
    }
    free(col);
    free(raw);
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
                     const struct mr_stream_item *item, uint8_t *out,
                     int (*progress)(void *, size_t), void *arg, struct mr_error *err)
{
    if (item->cols == 0)
        return quantise_vectors(ck, smooth, item, out, err);
    struct source s;
    int rc = find_source(ck, smooth, item, &s, err);
    return rc < 0 ? rc : quantise_matrix(&s, item, out, progress, arg, err);
}
