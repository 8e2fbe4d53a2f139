// SPDX-License-Identifier: Apache-2.0
#include "pack/packed.h"

#include <stdlib.h>
#include <string.h>

#include "pack/decode.h"

struct entry {
    int layer; // n_layer: the tail's
    const struct mr_item *item;
    enum mr_part part;
    struct mr_tensor tensor;
    float *values;
};

struct mr_unpacked {
    const struct mr_packed *packed;
    struct entry *entries;
    int count;
};

static float *add(struct mr_unpacked *u, const struct mr_stream_item *it, enum mr_part part,
                  int rows, int cols, struct mr_error *err)
{
    size_t count = (size_t)rows * (size_t)(cols ? cols : 1);
    struct entry *e = &u->entries[u->count];
    e->values = calloc(count, sizeof(float));
    if (!e->values) {
        mr_fail(err, MR_ERR_MEMORY, "no memory for %zu bytes of fp32 weights", 4 * count);
        return NULL;
    }
    e->layer = it->layer;
    e->item = it->item;
    e->part = part;
    e->tensor = (struct mr_tensor){
        .name = it->item->name,
        .dtype = MR_DTYPE_F32,
        .rank = cols ? 2 : 1,
        .shape = {rows, cols},
        .count = count,
        .data = (const unsigned char *)e->values,
        .bytes = 4 * count,
    };
    u->count++;
    return e->values;
}

struct matrix {
    struct mr_stream_item item;
    struct mr_matrix_shape shape;
    float *weight, *bias; // bias: NULL if there is none
};

// col: scratch for one output.
static void decode(const struct matrix *m, const uint8_t *in, float *col)
{
    for (int o = 0; o < m->item.cols; o++) {
        int row = mr_unpad(o, m->shape.row_head, m->shape.rows);
        if (row < 0)
            continue;
        if (m->bias)
            m->bias[row] = mr_decode_bias(&m->item, in, o);
        mr_decode_column(&m->item, in, o, col);
        for (int i = 0; i < m->item.k; i++) {
            int at = mr_unpad(i, m->shape.col_head, m->shape.cols);
            if (at >= 0)
                m->weight[(size_t)row * (size_t)m->shape.cols + (size_t)at] = col[i];
        }
    }
}

static int item(struct mr_unpacked *u, const struct mr_stream_entry *place, struct mr_error *err)
{
    const struct mr_config *c = &u->packed->config;
    const struct mr_stream_item *it = &place->item;
    const uint8_t *in = u->packed->stream + place->at;
    bool vectors = it->cols == 0;
    struct matrix m = {.item = *it, .shape = mr_matrix_shape(c, it)};
    int rows = vectors ? c->n_embd : m.shape.rows;
    m.weight = add(u, it, MR_WEIGHT, rows, m.shape.cols, err);
    if (m.weight && it->bias)
        m.bias = add(u, it, MR_BIAS, rows, 0, err);
    if (!m.weight || (it->bias && !m.bias))
        return MR_ERR_MEMORY;
    float *col = malloc((size_t)it->k * sizeof *col);
    if (!col)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %d weights", it->k);
    if (!vectors)
        decode(&m, in, col);
    for (int part = 0; part < 2 && vectors; part++) {
        mr_decode_vector(it, in, part, col);
        memcpy(part ? m.bias : m.weight, col, (size_t)rows * sizeof *col);
    }
    free(col);
    return 0;
}

int mr_unpack(struct mr_unpacked **unpacked, const struct mr_packed *packed, struct mr_error *err)
{
    int n = packed->list.count, rc = 0;
    *unpacked = NULL;
    struct mr_unpacked *u = calloc(1, sizeof *u);
    if (u)
        u->entries = calloc((size_t)n * 2, sizeof *u->entries);
    if (!u || !u->entries) {
        mr_unpacked_close(u);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a list of %d tensors", 2 * n);
    }
    u->packed = packed;
    for (int i = 0; i < n && rc == 0; i++)
        rc = item(u, &packed->list.entries[i], err);
    if (rc == 0)
        *unpacked = u;
    else
        mr_unpacked_close(u);
    return rc;
}

void mr_unpacked_close(struct mr_unpacked *u)
{
    if (!u)
        return;
    for (int i = 0; i < u->count; i++)
        free(u->entries[i].values);
    free(u->entries);
    free(u);
}

// Table i of the model's description, if that is what `item` is.
static const struct mr_tensor *table(const struct mr_unpacked *u, const struct mr_item *item)
{
    const struct mr_list *tables = &mr_arch_of(&u->packed->config)->tables;
    for (int i = 0; i < tables->count; i++)
        if (item == &tables->items[i])
            return mr_packed_table(u->packed, i);
    return NULL;
}

const struct mr_tensor *mr_unpacked_item(const struct mr_unpacked *u, int layer,
                                         const struct mr_item *item, enum mr_part part)
{
    if (item->kind == MR_EMBED)
        return part == MR_WEIGHT ? table(u, item) : NULL;
    for (int i = 0; i < u->count; i++)
        if (u->entries[i].layer == layer && u->entries[i].item == item &&
            u->entries[i].part == part)
            return &u->entries[i].tensor;
    return NULL;
}
