// SPDX-License-Identifier: Apache-2.0
#include "pack/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/directory.h"
#include "checkpoint/safetensors_write.h"
#include "pack/decode.h"

struct export
{
    const struct mr_packed *packed;
    struct mr_directory dir;
    struct mr_error *err;
};

static int put_bytes(const struct export *u, FILE *f, const void *data, size_t size)
{
    return mr_directory_put(&u->dir, f, data, size, u->err);
}

// ---- configuration and tokenizer ---------------------------------------------------------------

// The checkpoint's own text, but for the type: matrices here are bf16 and vectors fp32, so nothing
// is lost with fp32.
static int put_config(void *arg, FILE *f, struct mr_error *err)
{
    const struct export *u = arg;
    char *text;
    int rc = mr_config_with_dtype(&text, u->packed->config_text, u->packed->config_bytes, "float32",
                                  u->dir.dir, err);
    if (rc == 0)
        rc = put_bytes(u, f, text, strlen(text));
    free(text);
    return rc;
}

static int put_tokenizer(void *arg, FILE *f, struct mr_error *err)
{
    const struct export *u = arg;
    (void)err; // it is u's
    return put_bytes(u, f, u->packed->tokenizer_text, u->packed->tokenizer_bytes);
}

// ---- weights -----------------------------------------------------------------------------------

// The tensors of a stream item: gain and bias of a LayerNorm, or a matrix and perhaps its bias.
struct part {
    char name[MR_NAME];
    const char *dtype;
    int rows, cols; // cols = 0: a vector
    size_t bytes;
};

static int parts_of(const struct mr_config *c, const struct mr_stream_item *item,
                    struct part part[MR_PARTS])
{
    int n = 0;
    struct mr_matrix_shape s = mr_matrix_shape(c, item);
    for (int i = 0; i < MR_PARTS; i++) {
        struct part *p = &part[n];
        bool matrix = i == MR_WEIGHT && item->cols > 0;
        if (!mr_item_has(item->item, (enum mr_part)i) ||
            (i == MR_WEIGHT && mr_item_tied(mr_arch_of(c), item->item)))
            continue;
        mr_tensor_name(c, item->layer, item->item, (enum mr_part)i, p->name);
        p->dtype = matrix ? "BF16" : "F32";
        p->rows = item->cols == 0 ? c->n_embd : s.rows;
        p->cols = matrix ? s.cols : 0;
        p->bytes = matrix ? (size_t)s.rows * (size_t)s.cols * 2 : (size_t)p->rows * sizeof(float);
        if (matrix && item->item->transposed) {
            p->rows = s.cols;
            p->cols = s.rows;
        }
        n++;
    }
    return n;
}

static int put_header(const struct export *u, FILE *f)
{
    const struct mr_packed *p = u->packed;
    const struct mr_list *tables = &mr_arch_of(&p->config)->tables;
    struct mr_safetensors_header header;
    mr_safetensors_begin(&header);
    for (int i = 0; i < tables->count; i++) {
        const struct mr_tensor *e = mr_packed_table(p, i);
        char name[MR_NAME];
        mr_safetensors_add(&header,
                           mr_tensor_name(&p->config, -1, &tables->items[i], MR_WEIGHT, name),
                           mr_dtype_name(e->dtype), (int)e->shape[0], (int)e->shape[1], e->bytes);
    }
    for (int i = 0; i < mr_stream_items(&p->config); i++) {
        struct mr_stream_item item = mr_stream_item(&p->config, p->format, i);
        struct part part[MR_PARTS];
        int n = parts_of(&p->config, &item, part);
        for (int k = 0; k < n; k++)
            mr_safetensors_add(&header, part[k].name, part[k].dtype, part[k].rows, part[k].cols,
                               part[k].bytes);
    }
    size_t size;
    char *text = mr_safetensors_end(&header, &size);
    int rc = text ? put_bytes(u, f, text, size)
                  : mr_fail(u->err, MR_ERR_MEMORY, "%s: no memory for the header", u->dir.dir);
    free(text);
    return rc;
}

struct scratch {
    float *col;
    uint16_t *row;
};

// A row in the order of the checkpoint.
static int fill_row(const struct export *u, const struct mr_stream_item *item,
                    const struct mr_matrix_shape *shape, const struct scratch *s)
{
    char label[MR_NAME];
    for (int i = 0; i < item->k; i++) {
        int c = mr_unpad(i, shape->col_head, shape->cols);
        uint32_t bits;
        if (c < 0)
            continue;
        memcpy(&bits, &s->col[i], sizeof bits);
        if (!isfinite(s->col[i]))
            return mr_fail(u->err, MR_ERR_FORMAT,
                           "%s: %s has a NaN block or a value beyond bf16; the packed file was "
                           "not made by this program",
                           u->dir.dir,
                           mr_item_label(&u->packed->config, item->layer, item->item, label));
        s->row[c] = (uint16_t)(bits >> 16); // exact: at most 8 significant bits
    }
    return 0;
}

static int put_weight(const struct export *u, FILE *f, const struct mr_stream_item *item,
                      const uint8_t *at, const struct scratch *s)
{
    struct mr_matrix_shape shape = mr_matrix_shape(&u->packed->config, item);
    size_t rows = (size_t)shape.rows, cols = (size_t)shape.cols;
    uint16_t *turned = item->item->transposed ? malloc(rows * cols * sizeof *turned) : NULL;
    int rc = 0;
    if (item->item->transposed && !turned)
        return mr_fail(u->err, MR_ERR_MEMORY, "%s: no memory for a matrix", u->dir.dir);
    for (int o = 0; o < item->cols && rc == 0; o++) {
        int r = mr_unpad(o, shape.row_head, shape.rows);
        if (r < 0)
            continue; // padding; the others come in the order of the checkpoint
        mr_decode_column(item, at, o, s->col);
        rc = fill_row(u, item, &shape, s);
        for (size_t i = 0; turned && i < cols; i++)
            turned[i * rows + (size_t)r] = s->row[i];
        if (rc == 0 && !turned)
            rc = put_bytes(u, f, s->row, cols * sizeof *s->row);
    }
    if (rc == 0 && turned)
        rc = put_bytes(u, f, turned, rows * cols * sizeof *turned);
    free(turned);
    return rc;
}

static int put_matrix(const struct export *u, FILE *f, const struct mr_stream_item *item,
                      const uint8_t *at, const struct scratch *s)
{
    const struct mr_config *c = &u->packed->config;
    struct mr_matrix_shape shape = mr_matrix_shape(c, item);
    // What is tied has been written as a table.
    int rc = mr_item_tied(mr_arch_of(c), item->item) ? 0 : put_weight(u, f, item, at, s);
    for (int o = 0; o < item->cols && rc == 0 && item->bias; o++) {
        if (mr_unpad(o, shape.row_head, shape.rows) < 0)
            continue;
        float bias = mr_decode_bias(item, at, o);
        rc = put_bytes(u, f, &bias, sizeof bias);
    }
    return rc;
}

static int put_items(const struct export *u, FILE *f, struct scratch *s)
{
    const struct mr_packed *p = u->packed;
    const uint8_t *at = p->stream;
    int rc = 0;
    for (int i = 0; i < mr_arch_of(&p->config)->tables.count && rc == 0; i++)
        rc = put_bytes(u, f, mr_packed_table(p, i)->data, mr_packed_table(p, i)->bytes);
    for (int i = 0; rc == 0 && i < mr_stream_items(&p->config); i++) {
        struct mr_stream_item item = mr_stream_item(&p->config, p->format, i);
        for (int part = 0; rc == 0 && part < 2 && item.cols == 0; part++) {
            mr_decode_vector(&item, at, part, s->col);
            rc = put_bytes(u, f, s->col, (size_t)p->config.n_embd * sizeof *s->col);
        }
        if (rc == 0 && item.cols > 0)
            rc = put_matrix(u, f, &item, at, s);
        at += (size_t)mr_item_beats(&item, 1) * MR_BEAT;
    }
    return rc;
}

static int put_weights(void *arg, FILE *f, struct mr_error *err)
{
    const struct export *u = arg;
    size_t longest = (size_t)mr_dims_of(&u->packed->config).longest;
    struct scratch s = {malloc(longest * sizeof *s.col), malloc(longest * sizeof *s.row)};
    int rc = s.col && s.row ? put_header(u, f)
                            : mr_fail(err, MR_ERR_MEMORY, "%s: no memory for a row", u->dir.dir);
    if (rc == 0)
        rc = put_items(u, f, &s);
    free(s.col);
    free(s.row);
    return rc;
}

int mr_export(const struct mr_packed *packed, const char *dir, const volatile sig_atomic_t *stop,
              struct mr_error *err)
{
    if (!packed->config_text)
        return mr_fail(err, MR_ERR_USAGE, "%s: only a packed file can be unpacked", dir);
    struct export u = {.packed = packed, .err = err};
    int rc = mr_directory_open(&u.dir, dir, stop, err);
    if (rc == 0)
        rc = mr_directory_file(&u.dir, "config.json", put_config, &u, err);
    if (rc == 0 && packed->tokenizer)
        rc = mr_directory_file(&u.dir, "tokenizer.json", put_tokenizer, &u, err);
    if (rc == 0)
        rc = mr_directory_file(&u.dir, "model.safetensors", put_weights, &u, err);
    if (rc == 0)
        return mr_directory_commit(&u.dir, err);
    mr_directory_abandon(&u.dir);
    return rc;
}
