// SPDX-License-Identifier: Apache-2.0
#include "pack/unpack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/num.h"

struct entry {
    int layer; // -1: the model's own
    const char *name;
    struct mr_tensor tensor;
    float *values;
};

struct mr_unpacked {
    const struct mr_tensor *embedding;
    struct entry *entries;
    int count;
};

static float *add(struct mr_unpacked *u, int layer, const char *name, int rows, int cols,
                  struct mr_error *err)
{
    size_t count = (size_t)rows * (size_t)(cols ? cols : 1);
    struct entry *e = &u->entries[u->count];
    e->values = calloc(count, sizeof(float));
    if (!e->values) {
        mr_fail(err, MR_ERR_MEMORY, "no memory for %zu bytes of fp32 weights", 4 * count);
        return NULL;
    }
    e->layer = layer;
    e->name = name;
    e->tensor = (struct mr_tensor){
        .name = name,
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

// Block of one column: element 0..31, their scale code, into out[32].
static void block(const uint8_t *elements, uint8_t code, bool fp4, float out[MR_BLOCK])
{
    for (int i = 0; i < MR_BLOCK; i++) {
        int v = fp4 ? mr_mxfp4_twice[elements[i / 2] >> (4 * (i % 2)) & 15] : (int8_t)elements[i];
        out[i] = code == MR_CODE_NAN ? mr_qnan() : ldexpf((float)v, code - 127 - (fp4 ? 1 : 6));
    }
}

struct matrix {
    struct mr_stream_item item;
    struct mr_matrix_shape shape;
    float *weight, *bias; // bias: NULL if there is none
};

// Four columns of the stream, from `in`, as rows of the matrix.
static const uint8_t *group(const struct matrix *m, int first, const uint8_t *in)
{
    bool fp4 = m->item.format == MR_FORMAT_MXFP4;
    size_t bytes = fp4 ? 16 : 32; // of a column's block
    const uint8_t *codes = in;
    for (int k = 0; k < m->item.k / MR_BLOCK; k++) {
        if (k % 16 == 0) {
            codes = in;
            in += MR_BEAT;
        }
        for (int c = 0; c < 4; c++, in += bytes) {
            float values[MR_BLOCK];
            int row = mr_unpad(first + c, m->shape.row_head, m->shape.rows);
            if (row < 0)
                continue;
            block(in, codes[4 * (k % 16) + c], fp4, values);
            for (int i = 0; i < MR_BLOCK; i++) {
                int col = mr_unpad(MR_BLOCK * k + i, m->shape.col_head, m->shape.cols);
                if (col >= 0)
                    m->weight[(size_t)row * (size_t)m->shape.cols + (size_t)col] = values[i];
            }
        }
    }
    return in;
}

static const uint8_t *matrix(const struct matrix *m, const uint8_t *in)
{
    for (int j = 0; j < m->item.cols / 4; j++) {
        if (j % 16 == 0) {
            for (int c = 0; m->bias && c < 64; c++) {
                int row = mr_unpad(4 * j + c, m->shape.row_head, m->shape.rows);
                if (row >= 0)
                    memcpy(&m->bias[row], in + MR_BEAT + 4 * (size_t)c, 4);
            }
            in += (size_t)mr_header_beats(&m->item) * MR_BEAT;
        }
        in = group(m, 4 * j, in);
    }
    return in;
}

static const uint8_t *item(struct mr_unpacked *u, const struct mr_config *c,
                           const struct mr_stream_item *it, const uint8_t *in, struct mr_error *err)
{
    static const struct {
        const char *weight, *bias;
    } names[] = {
        [MR_T_LN] = {"ln_1.weight", "ln_1.bias"},
        [MR_T_Q] = {"attn.q_proj.weight", NULL},
        [MR_T_K] = {"attn.k_proj.weight", NULL},
        [MR_T_V] = {"attn.v_proj.weight", NULL},
        [MR_T_FC_IN] = {"mlp.fc_in.weight", "mlp.fc_in.bias"},
        [MR_T_FC_OUT] = {"mlp.fc_out.weight", "mlp.fc_out.bias"},
        [MR_T_OUT] = {"attn.out_proj.weight", NULL},
        [MR_T_LN_F] = {"transformer.ln_f.weight", "transformer.ln_f.bias"},
        [MR_T_HEAD] = {"lm_head.weight", "lm_head.bias"},
    };
    int layer = it->layer < c->n_layer ? it->layer : -1;
    bool vectors = it->cols == 0;
    struct matrix m = {.item = *it};
    if (!vectors)
        m.shape = mr_matrix_shape(c, it);
    int rows = vectors ? c->n_embd : m.shape.rows;
    m.weight = add(u, layer, names[it->id].weight, rows, m.shape.cols, err);
    if (m.weight && names[it->id].bias)
        m.bias = add(u, layer, names[it->id].bias, rows, 0, err);
    if (!m.weight || (names[it->id].bias && !m.bias))
        return NULL;
    if (!vectors)
        return matrix(&m, in);
    size_t half = (size_t)mr_item_beats(it, 1) / 2 * MR_BEAT;
    memcpy(m.weight, in, (size_t)rows * 4);
    memcpy(m.bias, in + half, (size_t)rows * 4);
    return in + 2 * half;
}

int mr_unpack(struct mr_unpacked **unpacked, const struct mr_packed *packed, struct mr_error *err)
{
    const struct mr_config *c = &packed->config;
    int n = mr_stream_items(c);
    *unpacked = NULL;
    struct mr_unpacked *u = calloc(1, sizeof *u);
    if (u)
        u->entries = calloc((size_t)n * 2, sizeof *u->entries);
    if (!u || !u->entries) {
        mr_unpacked_close(u);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a list of %d tensors", 2 * n);
    }
    u->embedding = &packed->embedding;
    const uint8_t *in = packed->stream;
    for (int i = 0; i < n; i++) {
        struct mr_stream_item it = mr_stream_item(c, packed->format, i);
        in = item(u, c, &it, in, err);
        if (!in) {
            mr_unpacked_close(u);
            return MR_ERR_MEMORY;
        }
    }
    *unpacked = u;
    return 0;
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

const struct mr_tensor *mr_unpacked_find(const struct mr_unpacked *u, int layer, const char *name)
{
    if (layer < 0 && strcmp(name, "transformer.wte.weight") == 0)
        return u->embedding;
    for (int i = 0; i < u->count; i++)
        if (u->entries[i].layer == layer && strcmp(u->entries[i].name, name) == 0)
            return &u->entries[i].tensor;
    return NULL;
}
