// SPDX-License-Identifier: Apache-2.0
#include "pack/packed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "pack/decode.h"
#include "pack/source.h"

struct sums {
    double weight2, error2, largest;
};

struct scratch {
    float *col, *raw; // one output of the stream, one row of the checkpoint
};

// Row r of the checkpoint against what the stream has for it, in the checkpoint's units.
static void add_row(const struct mr_source *s, const struct mr_stream_item *item, int r,
                    const struct scratch *w, struct sums *sums)
{
    size_t n = (size_t)s->shape.cols;
    (void)mr_tensor_read_f32(s->weight, (size_t)r * n, n, w->raw); // of a checkpoint
    int row_exp = s->row_exp ? s->row_sign * s->row_exp[r] : 0;
    for (int i = 0; i < item->k; i++) {
        int c = mr_unpad(i, s->shape.col_head, s->shape.cols);
        if (c < 0)
            continue;
        int exp = row_exp + (s->col_exp ? s->col_exp[c] : 0);
        double v = (double)w->raw[c], d = v - (double)(exp ? ldexpf(w->col[i], -exp) : w->col[i]);
        sums->weight2 += v * v;
        sums->error2 += d * d;
        sums->largest = fmax(sums->largest, fabs(d));
    }
}

static int measure(const struct mr_source *s, const struct mr_stream_item *item, const uint8_t *at,
                   const struct scratch *w, const volatile sig_atomic_t *stop, struct mr_quality *q,
                   struct mr_error *err)
{
    struct sums sums = {0};
    for (int o = 0; o < item->cols; o++) {
        int r = mr_unpad(o, s->shape.row_head, s->shape.rows);
        if (r < 0)
            continue;
        if (stop && *stop)
            return mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
        mr_decode_column(item, at, o, w->col);
        add_row(s, item, r, w, &sums);
    }
    double count = (double)s->shape.rows * (double)s->shape.cols;
    q->format = item->format == MR_FORMAT_MXFP4 ? MR_WEIGHTS_MXFP4 : MR_WEIGHTS_MXINT8;
    q->rows = s->shape.rows;
    q->cols = s->shape.cols;
    q->rms_weight = sqrt(sums.weight2 / count);
    q->rms_error = sqrt(sums.error2 / count);
    q->largest_error = sums.largest;
    return 0;
}

static int measure_all(const struct mr_packed *packed, const struct mr_checkpoint *checkpoint,
                       const struct mr_smooth *smooth, const struct scratch *w,
                       const volatile sig_atomic_t *stop, struct mr_quality *list, size_t *count,
                       struct mr_error *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < packed->list.count; i++) {
        const struct mr_stream_entry *place = &packed->list.entries[i];
        const struct mr_stream_item *item = &place->item;
        struct mr_source s;
        struct mr_quality *q = &list[*count];
        char label[MR_NAME];
        if (item->cols == 0)
            continue;
        snprintf(q->name, sizeof q->name, "%.47s",
                 mr_item_label(&packed->config, item->layer, item->item, label));
        mr_source_find(&s, checkpoint, smooth, item);
        rc = measure(&s, item, packed->stream + place->at, w, stop, q, err);
        ++*count;
    }
    return rc;
}

static bool same_shape(const struct mr_config *a, const struct mr_config *b)
{
    return mr_arch_of(a) == mr_arch_of(b) && a->vocab_size == b->vocab_size &&
           a->n_embd == b->n_embd && a->n_layer == b->n_layer && a->n_head == b->n_head &&
           a->n_inner == b->n_inner && a->rotary_dim == b->rotary_dim;
}

int mr_report(const struct mr_packed *packed, const struct mr_checkpoint *checkpoint,
              const volatile sig_atomic_t *stop, struct mr_quality **list, size_t *count,
              struct mr_error *err)
{
    const struct mr_config *c = &packed->config;
    *list = NULL;
    *count = 0;
    if (!same_shape(c, mr_checkpoint_config(checkpoint)))
        return mr_fail(err, MR_ERR_FORMAT,
                       "the packed model has another shape than the checkpoint that it is to be "
                       "compared with");
    size_t longest = (size_t)mr_dims_of(c).longest;
    struct scratch w = {malloc(longest * sizeof *w.col), malloc(longest * sizeof *w.raw)};
    struct mr_smooth smooth = {0};
    struct mr_quality *q = calloc((size_t)packed->list.count, sizeof *q);
    int rc = w.col && w.raw && q ? mr_smooth_plan(&smooth, checkpoint, packed->smooth, err)
                                 : mr_fail(err, MR_ERR_MEMORY, "no memory for the report");
    if (rc == 0)
        rc = measure_all(packed, checkpoint, &smooth, &w, stop, q, count, err);
    mr_smooth_free(&smooth);
    free(w.col);
    free(w.raw);
    if (rc < 0) {
        free(q);
        *count = 0;
        return rc;
    }
    *list = q;
    return 0;
}
