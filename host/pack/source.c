// SPDX-License-Identifier: Apache-2.0
#include "pack/source.h"

#include <string.h>

void mr_source_find(struct mr_source *s, const struct mr_checkpoint *ck,
                    const struct mr_smooth *smooth, const struct mr_stream_item *item)
{
    const struct mr_config *c = mr_checkpoint_config(ck);
    const struct mr_list *list = mr_items_of(c, item->layer);
    *s = (struct mr_source){
        .shape = mr_matrix_shape(c, item),
        .weight = mr_checkpoint_item(ck, item->layer, item->item, MR_WEIGHT),
        .bias = mr_checkpoint_item(ck, item->layer, item->item, MR_BIAS),
    };
    struct mr_scaling scaling = mr_item_scaling(mr_arch_of(c), list, item->index);
    if (scaling.rows >= 0) {
        s->row_exp = mr_smooth_group(smooth, item->layer, scaling.rows);
        s->row_sign = scaling.row_sign;
    }
    if (scaling.cols >= 0)
        s->col_exp = mr_smooth_group(smooth, item->layer, scaling.cols);
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
    if (!in)
        (void)mr_tensor_read_f32(s->weight, (size_t)r * n, n, raw); // of a checkpoint
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
