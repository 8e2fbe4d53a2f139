// SPDX-License-Identifier: Apache-2.0
#include "pack/source.h"

#include <string.h>

int mr_source_find(struct mr_source *s, const struct mr_checkpoint *ck,
                   const struct mr_smooth *smooth, const struct mr_stream_item *item,
                   struct mr_error *err)
{
    static const char *const names[] = {
        [MR_T_Q] = "attn.q_proj.weight",     [MR_T_K] = "attn.k_proj.weight",
        [MR_T_V] = "attn.v_proj.weight",     [MR_T_FC_IN] = "mlp.fc_in.weight",
        [MR_T_FC_OUT] = "mlp.fc_out.weight", [MR_T_OUT] = "attn.out_proj.weight",
    };
    const struct mr_config *c = mr_checkpoint_config(ck);
    size_t n = (size_t)c->n_embd, l = (size_t)item->layer;
    *s = (struct mr_source){.shape = mr_matrix_shape(c, item)};
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
    switch (item->id) {
    case MR_T_Q:
    case MR_T_K:
        s->row_exp = smooth->kq + l * n;
        s->row_sign = item->id == MR_T_Q ? 1 : -1;
        s->col_exp = smooth->ln + l * n;
        break;
    case MR_T_V:
        s->row_exp = smooth->vo + l * n;
        s->row_sign = -1;
        s->col_exp = smooth->ln + l * n;
        break;
    case MR_T_FC_IN:
    case MR_T_HEAD:
        s->col_exp = smooth->ln + l * n;
        break;
    case MR_T_OUT:
        s->col_exp = smooth->vo + l * n;
        break;
    default:
        break;
    }
    return 0;
}

int mr_source_read(const struct mr_source *s, const struct mr_row_kernels *kernels, int o, int k,
                   float *col, float *raw, struct mr_error *err)
{
    int r = mr_unpad(o, s->shape.row_head, s->shape.rows);
    if (r < 0) {
        memset(col, 0, (size_t)k * sizeof *col);
        return 0;
    }
    size_t n = (size_t)s->shape.cols, head = s->shape.col_head ? (size_t)s->shape.col_head : n;
    size_t lanes = s->shape.col_head ? (head + 63) / 64 * 64 : (size_t)k;
    const float *in = mr_tensor_view_f32(s->weight, (size_t)r * n, n);
    if (!in && mr_tensor_read_f32(s->weight, (size_t)r * n, n, raw) < 0)
        return mr_fail(err, MR_ERR_FORMAT, "%s: row %d cannot be read as fp32", s->weight->name, r);
    in = in ? in : raw;
    int row_exp = s->row_exp ? s->row_sign * s->row_exp[r] : 0;
    bool finite = true;
    for (size_t from = 0, to = 0; from < n; from += head, to += lanes) {
        const int8_t *exp = s->col_exp ? s->col_exp + from : NULL;
        finite = kernels->scale(in + from, exp, row_exp, head, col + to) && finite;
        memset(col + to + head, 0, (lanes - head) * sizeof *col);
    }
    if (!finite)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: output %d has an infinite or NaN weight; the checkpoint is damaged or "
                       "its training diverged",
                       s->weight->name, r);
    return 0;
}
