// SPDX-License-Identifier: Apache-2.0
#include "store/adapter_step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pack/layout.h"
#include "store/streams.h"
#include "store/target.h"

// ---- gradients ---------------------------------------------------------------------------------

enum { PEAK_BITS = 30 }; // of the integers that become of them

// The parts that a patch has in both sums: [MR_PATCH][rank] of its rows, then of its columns.
struct part {
    double *rows, *cols;
};

struct summing {
    const struct mr_store *s;
    size_t tensor; // of the model
    int share, rank;
    const double *a, *b; // [inputs][rank], [outputs of all shares][rank]
    struct part *part;   // [patches of the tensor]
};

// What a padded place of an axis has beside it: the other factor's row, or NULL on padding.
static const double *factor_of(const struct summing *x, bool output, int at)
{
    const struct mr_store_tensor *t = &x->s->model->tensor[x->tensor];
    int place =
        output ? mr_unpad(at, t->output_head, t->outputs) : mr_unpad(at, t->input_head, t->inputs);
    if (place < 0)
        return NULL;
    return output ? x->b + (size_t)(x->share * t->outputs + place) * (size_t)x->rank
                  : x->a + (size_t)place * (size_t)x->rank;
}

// to[k] += g * with[k]: each element is one sum, whatever the compiler does side by side.
static void add(double *to, double g, const double *with, int rank)
{
    for (int k = 0; k < rank; k++)
        to[k] += g * with[k];
}

static int sum_patch(void *arg, size_t i, int worker, struct mr_error *err)
{
    const struct summing *x = arg;
    const struct mr_store_tensor *t = &x->s->model->tensor[x->tensor];
    const struct mr_store_patch *p = &x->s->model->patch[t->patch + i];
    const int32_t *sums = mr_store_sums(x->s, x->tensor) + (p->first - t->first);
    size_t rank = (size_t)x->rank, side = MR_PATCH * rank;
    bool turned = t->inputs_resident; // rows stand for inputs
    int wide = p->cols / MR_TILE_COLS;
    (void)worker;
    double *all = calloc(2 * side, sizeof *all);
    if (!all)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the gradients of a pair");
    x->part[i] = (struct part){all, all + side};
    for (size_t e = 0; e < p->count; e += MR_TILE_COLS) {
        int tile = (int)(e / MR_TILE), line = (int)(e % MR_TILE) / MR_TILE_COLS;
        int row = tile / wide * MR_TILE_ROWS + line, col = tile % wide * MR_TILE_COLS;
        const double *beside_row = factor_of(x, !turned, p->row + row);
        for (int c = 0; beside_row && c < MR_TILE_COLS; c++) {
            const double *beside_col = factor_of(x, turned, p->col + col + c);
            if (!beside_col)
                continue;
            double g = (double)sums[e + (size_t)c];
            add(x->part[i].rows + (size_t)row * rank, g, beside_col, x->rank);
            add(x->part[i].cols + (size_t)(col + c) * rank, g, beside_row, x->rank);
        }
    }
    return 0;
}

// Adds a part's lines to the sums of an axis; the patch begins at `first` of it.
static void collect(const struct summing *x, bool output, int first, int n, const double *part,
                    int unit, double *sum)
{
    const struct mr_store_tensor *t = &x->s->model->tensor[x->tensor];
    size_t rank = (size_t)x->rank;
    for (int i = 0; i < n; i++) {
        int place = output ? mr_unpad(first + i, t->output_head, t->outputs)
                           : mr_unpad(first + i, t->input_head, t->inputs);
        if (place < 0)
            continue;
        double *to = sum + (size_t)(output ? x->share * t->outputs + place : place) * rank;
        for (size_t k = 0; k < rank; k++)
            to[k] += ldexp(part[(size_t)i * rank + k], unit);
    }
}

// Both sums of one tensor of the model: da[inputs][rank], db[outputs of all shares][rank].
static int sum_tensor(struct summing *x, double *da, double *db, struct mr_error *err)
{
    const struct mr_store_tensor *t = &x->s->model->tensor[x->tensor];
    int unit = mr_store_unit(x->s, x->tensor);
    x->part = calloc(t->patches, sizeof *x->part);
    if (!x->part)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the gradients of a pair");
    int rc = mr_store_tasks(x->s->pool, 0, t->patches, sum_patch, x, err);
    for (size_t i = 0; i < t->patches; i++) {
        const struct mr_store_patch *p = &x->s->model->patch[t->patch + i];
        bool turned = t->inputs_resident;
        if (rc == 0) {
            collect(x, !turned, p->row, p->rows, x->part[i].rows, unit, turned ? da : db);
            collect(x, turned, p->col, p->cols, x->part[i].cols, unit, turned ? db : da);
        }
        free(x->part[i].rows);
    }
    free(x->part);
    return rc;
}

// Into the file, as integers x 2^unit; number (k, i) of `sum` is at from[i][k].
static int put(struct mr_store *s, size_t own, const double *from, int count, bool by_rank,
               struct mr_error *err)
{
    const struct mr_store_tensor *t = &s->layout.tensor[own];
    int32_t *to = (int32_t *)(void *)s->volume->data[MR_V_GRADIENTS] + t->first;
    const double factor = (double)mr_lora_factor(&s->adapter->lora);
    size_t rank = (size_t)s->adapter->lora.rank, n = (size_t)count;
    double peak = 0;
    int exponent = 0;
    char name[MR_NAME];
    for (size_t e = 0; e < n * rank; e++)
        peak = fabs(from[e] * factor) > peak || isnan(from[e]) ? fabs(from[e] * factor) : peak;
    if (!isfinite(peak) || peak >= 0x1p128)
        return mr_fail(err, MR_ERR_FORMAT,
                       "the gradient of %s is infinite or not a number; the weights stay as they "
                       "were",
                       mr_store_own_name(s, own, name));
    (void)frexp(peak, &exponent);
    int unit = peak > 0 ? exponent - PEAK_BITS : 0;
    unit = unit < -MR_UNIT_LIMIT ? -MR_UNIT_LIMIT : unit;
    memset(to, 0, t->count * sizeof *to);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < rank; k++)
            to[by_rank ? k * n + i : i * rank + k] =
                (int32_t)nearbyint(ldexp(from[i * rank + k] * factor, -unit));
    mr_store_units(s->header)[own].now = unit;
    return 0;
}

static int pair_gradients(struct mr_store *s, size_t k, double *memory, struct mr_error *err)
{
    const struct mr_lora *l = &s->adapter->lora;
    const struct mr_lora_pair *p = &l->pair[k];
    size_t rank = (size_t)l->rank, inputs = (size_t)p->inputs, outputs = (size_t)p->outputs;
    double *a = memory, *b = a + inputs * rank, *da = b + outputs * rank, *db = da + inputs * rank;
    for (size_t i = 0; i < inputs; i++)
        for (size_t r = 0; r < rank; r++)
            a[i * rank + r] = (double)p->a[r * inputs + i];
    for (size_t e = 0; e < outputs * rank; e++)
        b[e] = (double)p->b[e];
    memset(da, 0, (inputs + outputs) * rank * sizeof *da);
    int rc = 0;
    for (int share = 0; share < p->shares && rc == 0; share++) {
        struct summing x = {.s = s, .share = share, .rank = l->rank, .a = a, .b = b};
        x.tensor = p->tensor + (size_t)share * p->step;
        rc = sum_tensor(&x, da, db, err);
    }
    if (rc == 0)
        rc = put(s, 2 * k, da, p->inputs, true, err);
    return rc < 0 ? rc : put(s, 2 * k + 1, db, p->outputs, false, err);
}

int mr_adapter_gradients(struct mr_store *s, struct mr_error *err)
{
    const struct mr_lora *l = &s->adapter->lora;
    int rc = 0;
    for (size_t k = 0; k < l->count && rc == 0; k++) {
        size_t n = 2 * (size_t)l->rank * ((size_t)l->pair[k].inputs + (size_t)l->pair[k].outputs);
        double *memory = malloc(n * sizeof *memory);
        rc = memory ? pair_gradients(s, k, memory, err)
                    : mr_fail(err, MR_ERR_MEMORY, "no memory for the gradients of a pair");
        free(memory);
    }
    return rc;
}

// ---- behind a step -----------------------------------------------------------------------------

void mr_adapter_follow(struct mr_store *s, bool streams)
{
    struct mr_adapter *a = s->adapter;
    for (size_t i = 0; i < s->layout.tensors; i++) {
        const struct mr_store_tensor *t = &s->layout.tensor[i];
        const struct mr_store_patch *p = &s->layout.patch[t->patch];
        float *to = i % 2 ? a->lora.pair[i / 2].b : a->lora.pair[i / 2].a;
        for (size_t e = 0; e < (size_t)t->outputs; e += MR_TILE) {
            size_t left = (size_t)t->outputs - e;
            memcpy(to + e, mr_store_tile_at(s, p, e / MR_TILE, s->header->side),
                   (left < MR_TILE ? left : MR_TILE) * sizeof *to);
        }
    }
    for (size_t i = 0; i < a->layout.tensors && streams; i++) {
        if (!a->tensor[i].pair)
            continue;
        mr_streams_make_tensor(s, i);
        if (s->target && s->target->ready)
            s->target->ready(s->target->arg, i, 1);
    }
}
