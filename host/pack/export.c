// SPDX-License-Identifier: Apache-2.0
#include "pack/packed.h"

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

// As the file has it: those of all shares stand with the first.

static int parts_of(const struct mr_config *c, const struct mr_stream_item *item,
                    struct part part[MR_PARTS])
{
    int n = 0;
    for (int i = 0; i < MR_PARTS; i++) {
        struct part *p = &part[n];
        bool matrix = i == MR_WEIGHT && item->cols > 0;
        if (!mr_item_has(item->item, (enum mr_part)i) || item->item->share > 0 ||
            (i == MR_WEIGHT && mr_item_tied(mr_arch_of(c), item->item)))
            continue;
        struct mr_tensor_spec t = mr_item_spec(c, item->layer, item->item, (enum mr_part)i);
        struct mr_file_tensor whole = mr_file_tensor(&t);
        mr_tensor_name(c, item->layer, item->item, (enum mr_part)i, p->name);
        p->dtype = matrix ? "BF16" : "F32";
        p->rows = whole.rows;
        p->cols = whole.cols;
        p->bytes = whole.lines * whole.run * (size_t)whole.shares *
                   (matrix ? sizeof(uint16_t) : sizeof(float));
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
    for (int i = 0; i < p->list.count; i++) {
        struct part part[MR_PARTS];
        int n = parts_of(&p->config, &p->list.entries[i].item, part);
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
    // Of a tensor that does not come row by row, until its last share is there; or NULL.
    uint16_t *matrix;
    float *bias;
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

// The rows of a matrix: to the file or, where that has another order, to their places in s->matrix.
static int put_rows(const struct export *u, FILE *f, const struct mr_stream_item *item,
                    const uint8_t *at, const struct scratch *s)
{
    struct mr_matrix_shape shape = mr_matrix_shape(&u->packed->config, item);
    size_t rows = (size_t)shape.rows, cols = (size_t)shape.cols;
    size_t shares = item->item->shares > 0 ? (size_t)item->item->shares : 1;
    size_t first = (size_t)item->item->share * rows;
    int rc = 0;
    for (int o = 0; o < item->cols && rc == 0; o++) {
        int r = mr_unpad(o, shape.row_head, shape.rows);
        if (r < 0)
            continue; // padding; the others come in the order of the checkpoint
        mr_decode_column(item, at, o, s->col);
        rc = fill_row(u, item, &shape, s);
        for (size_t i = 0; s->matrix && i < cols; i++)
            s->matrix[item->item->transposed ? i * rows * shares + first + (size_t)r
                                             : (first + (size_t)r) * cols + i] = s->row[i];
        if (rc == 0 && !s->matrix)
            rc = put_bytes(u, f, s->row, cols * sizeof *s->row);
    }
    return rc;
}

// Room for what comes before the last share, or before a column is whole.
static int begin_matrix(const struct export *u, const struct mr_stream_item *item,
                        struct scratch *s)
{
    struct mr_matrix_shape shape = mr_matrix_shape(&u->packed->config, item);
    size_t shares = item->item->shares > 0 ? (size_t)item->item->shares : 1;
    size_t rows = (size_t)shape.rows * shares;
    bool whole = item->item->transposed || shares > 1;
    s->matrix = whole ? malloc(rows * (size_t)shape.cols * sizeof *s->matrix) : NULL;
    s->bias = malloc(rows * sizeof *s->bias);
    return s->bias && (s->matrix || !whole)
               ? 0
               : mr_fail(u->err, MR_ERR_MEMORY, "%s: no memory for a matrix", u->dir.dir);
}

static void end_matrix(struct scratch *s)
{
    free(s->matrix);
    free(s->bias);
    s->matrix = NULL;
    s->bias = NULL;
}

static int put_matrix(const struct export *u, FILE *f, const struct mr_stream_item *item,
                      const uint8_t *at, struct scratch *s)
{
    const struct mr_config *c = &u->packed->config;
    struct mr_matrix_shape shape = mr_matrix_shape(c, item);
    const struct mr_item *of = item->item;
    size_t rows = (size_t)shape.rows, first = (size_t)of->share * rows, all = first + rows;
    int rc = of->share == 0 ? begin_matrix(u, item, s) : 0;
    // What is tied has been written as a table.
    if (rc == 0 && !mr_item_tied(mr_arch_of(c), of))
        rc = put_rows(u, f, item, at, s);
    for (int o = 0; o < item->cols && rc == 0 && item->bias; o++) {
        int r = mr_unpad(o, shape.row_head, shape.rows);
        if (r >= 0)
            s->bias[first + (size_t)r] = mr_decode_bias(item, at, o);
    }
    if (rc < 0 || of->share + 1 < of->shares)
        return rc;
    if (s->matrix)
        rc = put_bytes(u, f, s->matrix, all * (size_t)shape.cols * sizeof *s->matrix);
    if (rc == 0 && item->bias)
        rc = put_bytes(u, f, s->bias, all * sizeof *s->bias);
    end_matrix(s);
    return rc;
}

static int put_items(const struct export *u, FILE *f, struct scratch *s)
{
    const struct mr_packed *p = u->packed;
    int rc = 0;
    for (int i = 0; i < mr_arch_of(&p->config)->tables.count && rc == 0; i++)
        rc = put_bytes(u, f, mr_packed_table(p, i)->data, mr_packed_table(p, i)->bytes);
    for (int i = 0; rc == 0 && i < p->list.count; i++) {
        const struct mr_stream_item *item = &p->list.entries[i].item;
        const uint8_t *at = p->stream + p->list.entries[i].at;
        for (int part = 0; rc == 0 && part < 2 && item->cols == 0; part++) {
            mr_decode_vector(item, at, part, s->col);
            rc = put_bytes(u, f, s->col, (size_t)p->config.n_embd * sizeof *s->col);
        }
        if (rc == 0 && item->cols > 0)
            rc = put_matrix(u, f, item, at, s);
    }
    return rc;
}

static int put_weights(void *arg, FILE *f, struct mr_error *err)
{
    const struct export *u = arg;
    size_t longest = (size_t)mr_dims_of(&u->packed->config).longest;
    struct scratch s = {malloc(longest * sizeof *s.col), malloc(longest * sizeof *s.row), NULL,
                        NULL};
    int rc = s.col && s.row ? put_header(u, f)
                            : mr_fail(err, MR_ERR_MEMORY, "%s: no memory for a row", u->dir.dir);
    if (rc == 0)
        rc = put_items(u, f, &s);
    end_matrix(&s);
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
    return mr_directory_end(&u.dir, rc, err);
}
