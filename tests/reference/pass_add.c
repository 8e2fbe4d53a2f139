// SPDX-License-Identifier: Apache-2.0
#include "reference/pass_add.h"

#include <math.h>

#include "train/pass_impl.h"

static float value_at(const struct mr_pass_gradient *g, int row, int col)
{
    size_t tile = (size_t)(row / 32) * (size_t)(g->cols / 64) + (size_t)(col / 64);
    return ldexpf((float)g->tiles[2048 * tile + (size_t)(64 * (row % 32) + col % 64)], g->unit);
}

static void add_matrix(const struct mr_pass *p, const struct mr_stream_item *it, float *to)
{
    struct mr_matrix_shape m = mr_matrix_shape(p->c, it);
    struct mr_pass_gradient g =
        mr_pass_gradient(p, mr_params_index(p->c, it->layer, it->item, MR_WEIGHT));
    if (!g.tiles)
        return;
    for (int o = 0; o < it->cols; o++)
        for (int i = 0; i < it->k; i++) {
            int r = mr_unpad(o, m.row_head, m.rows), c = mr_unpad(i, m.col_head, m.cols);
            if (r >= 0 && c >= 0)
                to[(size_t)r * (size_t)m.cols + (size_t)c] +=
                    g.inputs_are_rows ? value_at(&g, i, o) : value_at(&g, o, i);
        }
}

static void add_vector(const struct mr_pass *p, const struct mr_stream_item *it, enum mr_part part,
                       float *to)
{
    struct mr_pass_gradient g =
        mr_pass_gradient(p, mr_params_index(p->c, it->layer, it->item, part));
    if (!g.tiles)
        return;
    enum mr_axis axis = mr_place_axis(it->item->to);
    int head = axis == MR_AXIS_HEADS ? p->c->head_dim : 0, n = mr_axis_length(p->c, axis);
    for (int i = 0; i < g.cols; i++) {
        int k = mr_unpad(i, head, n);
        if (k >= 0)
            to[k] += value_at(&g, 0, i);
    }
}

static void add_tables(const struct mr_pass *p, const struct mr_batch *batch,
                       struct mr_params *gradient)
{
    const struct mr_list *tables = &mr_arch_of(p->c)->tables;
    size_t n = (size_t)p->c->n_embd;
    if (!p->tables_learn)
        return;
    for (int t = 0; t < tables->count; t++) {
        const struct mr_item *item = &tables->items[t];
        float *to = mr_params_at(gradient, mr_params_index(p->c, p->c->n_layer, item, MR_WEIGHT));
        for (int r = 0; r < p->batch.rows; r++) {
            int type = batch->types ? batch->types[r] : 0;
            int at = item->by == MR_BY_TOKEN  ? batch->tokens[r]
                     : item->by == MR_BY_TYPE ? type
                                              : p->batch.pos[r];
            for (size_t k = 0; k < n; k++)
                to[(size_t)at * n + k] += p->host.row_grad[(size_t)r * (size_t)p->d.d + k];
        }
    }
}

void mr_pass_add(const struct mr_pass *pass, const struct mr_batch *batch,
                 struct mr_params *gradient)
{
    for (size_t i = 0; i < mr_tensor_specs(pass->c); i++) {
        size_t count;
        const float *own = mr_pass_host_gradient(pass, i, &count);
        for (size_t k = 0; own && k < count; k++)
            mr_params_at(gradient, i)[k] += own[k];
    }
    for (int s = 0; s < mr_stream_items(pass->c); s++) {
        struct mr_stream_item it = mr_stream_item(pass->c, MR_FORMAT_MXINT8, s);
        for (int part = 0; part < MR_PARTS; part++) {
            if (!mr_item_has(it.item, (enum mr_part)part))
                continue;
            float *to = mr_params_at(
                gradient, mr_params_index(pass->c, it.layer, it.item, (enum mr_part)part));
            if (part == MR_WEIGHT && it.cols > 0)
                add_matrix(pass, &it, to);
            else
                add_vector(pass, &it, (enum mr_part)part, to);
        }
    }
    add_tables(pass, batch, gradient);
}
