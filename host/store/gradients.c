// SPDX-License-Identifier: Apache-2.0
// Gradients into the store: sums of integers over micro-batches, and the units that they are in.
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "store/adapter.h"
#include "store/patch.h"
#include "store/tile_kernels.h"

enum { RECORD = 64, LARGE = 1, INFINITE = 2, TILES_A_TASK = 64 };

struct record {
    uint32_t flags, peak;
    uint32_t zero[14];
};

_Static_assert(sizeof(struct record) == RECORD, "the record is that of GRAD");

// ---- units -------------------------------------------------------------------------------------

static bool is_table(const struct mr_store *s, size_t i)
{
    return mr_tensor_spec(&s->config, i).item->kind == MR_EMBED;
}

// Is it a table that is the head's matrix, too?
static bool is_tied(const struct mr_store *s, size_t i)
{
    const struct mr_arch *arch = mr_arch_of(&s->config);
    const char *name = mr_tensor_spec(&s->config, i).item->name;
    bool tied = false;
    for (int k = 0; k < arch->tail.count && is_table(s, i); k++)
        tied |=
            mr_item_tied(arch, &arch->tail.items[k]) && strcmp(arch->tail.items[k].name, name) == 0;
    return tied;
}

// ---- which tensors learn -----------------------------------------------------------------------

void mr_store_choose(struct mr_store *s, const uint8_t *choice)
{
    for (size_t i = 0; i < s->model->tensors; i++)
        s->choice[i] = choice ? choice[i] % MR_CHOICES : 0;
    if (s->adapter)
        mr_adapter_choose(s->adapter, s->choice);
}

const uint8_t *mr_store_choices(const struct mr_store *s)
{
    return s->choice;
}

bool mr_store_learns(const struct mr_store *s, size_t i)
{
    struct mr_tensor_spec t = mr_tensor_spec(&s->config, i);
    return !(s->choice[i] & MR_CHOICE_FROZEN) && !mr_item_gradient_is_zero(t.item, t.part);
}

// A tensor that was frozen so far has the unit of a new state, as all have before the first step.
bool mr_store_has_units(const struct mr_store *s)
{
    bool has = true;
    for (size_t i = 0; i < s->model->tensors; i++)
        has &= !mr_store_learns(s, i) || mr_store_unit(s, i) != 0;
    return has;
}

int32_t mr_store_limit(const struct mr_store *s, size_t i)
{
    return s->micro_batches ? INT32_MAX / s->micro_batches / (is_tied(s, i) ? 2 : 1) : 0;
}

// Behind those of an adapter's tensors stand its model's.
static struct mr_store_unit *unit_of(const struct mr_store *s, size_t i)
{
    return &mr_store_units(s->header)[s->layout.units - s->model->tensors + i];
}

int mr_store_unit(const struct mr_store *s, size_t i)
{
    return unit_of(s, i)->now;
}

int mr_store_set_unit(struct mr_store *s, size_t i, int unit, struct mr_error *err)
{
    char name[MR_NAME];
    if (s->ended > 0 || s->tally[i].region || s->tally[i].rows || unit > MR_UNIT_LIMIT ||
        unit < -MR_UNIT_LIMIT)
        return mr_fail(err, MR_ERR_USAGE,
                       "the unit of %s cannot become 2^%d: within 2^-%d to 2^%d, before the step's "
                       "first gradient",
                       mr_store_tensor_name(s, i, name), unit, MR_UNIT_LIMIT, MR_UNIT_LIMIT);
    unit_of(s, i)->now = unit;
    return 0;
}

static int bits_of(uint32_t x)
{
    return x ? 32 - __builtin_clz(x) : 0;
}

static int bounded(int unit)
{
    return unit < -MR_UNIT_LIMIT ? -MR_UNIT_LIMIT : unit > MR_UNIT_LIMIT ? MR_UNIT_LIMIT : unit;
}

int mr_store_next_unit(const struct mr_store *s, size_t i)
{
    const struct mr_store_tally *t = &s->tally[i];
    int now = mr_store_unit(s, i);
    if (t->flags & LARGE)
        return bounded(now + 8);
    return t->peak == 0
               ? now
               : bounded(now + bits_of(t->peak) - bits_of((uint32_t)mr_store_limit(s, i)) + 3);
}

size_t mr_store_raise(struct mr_store *s)
{
    size_t raised = 0;
    for (size_t i = 0; i < s->model->tensors; i++)
        if (s->tally[i].flags & LARGE) {
            unit_of(s, i)->now = mr_store_next_unit(s, i);
            raised++;
        }
    return raised;
}

int mr_store_refuse_infinite(const struct mr_store *s, struct mr_error *err)
{
    char name[MR_NAME];
    for (size_t i = 0; i < s->model->tensors; i++)
        if (s->tally[i].flags & INFINITE)
            return mr_fail(err, MR_ERR_FORMAT,
                           "the gradient of %s is infinite or not a number; the weights stay as "
                           "they were",
                           mr_store_tensor_name(s, i, name));
    return 0;
}

// ---- the step ----------------------------------------------------------------------------------

int32_t *mr_store_sums(const struct mr_store *s, size_t i)
{
    return s->adapter
               ? mr_adapter_sums(s->adapter, i)
               : (int32_t *)(void *)s->volume->data[MR_V_GRADIENTS] + s->model->tensor[i].first;
}

int mr_store_begin(struct mr_store *s, int micro_batches, struct mr_error *err)
{
    enum { MOST = 1 << 20 };
    if (s->broken)
        return mr_fail(err, MR_ERR_IO,
                       "%s: a write has failed; open the state again, which completes the step",
                       mr_store_where(s));
    if (micro_batches < 1 || micro_batches > MOST)
        return mr_fail(err, MR_ERR_USAGE, "a step of %d micro-batches; 1 to %d", micro_batches,
                       MOST);
    s->micro_batches = micro_batches;
    s->ended = 0;
    memset(s->tally, 0, s->model->tensors * sizeof *s->tally);
    for (size_t i = 0; i < s->model->tensors; i++) // rows are added where there may be none yet
        if (!(s->choice[i] & MR_CHOICE_FROZEN) && (is_table(s, i) || !mr_store_learns(s, i)))
            memset(mr_store_sums(s, i), 0, s->model->tensor[i].count * sizeof(int32_t));
    return 0;
}

int mr_store_end(struct mr_store *s, struct mr_error *err)
{
    char name[MR_NAME];
    if (s->ended >= s->micro_batches)
        return mr_fail(err, MR_ERR_USAGE, "the step has all of its %d micro-batches",
                       s->micro_batches);
    for (size_t i = 0; i < s->model->tensors; i++) {
        const struct mr_store_tally *t = &s->tally[i];
        bool whole = is_tied(s, i) ? t->region && t->rows : t->region || t->rows;
        if (!whole && mr_store_learns(s, i))
            return mr_fail(err, MR_ERR_USAGE, "the micro-batch has no gradient of %s",
                           mr_store_tensor_name(s, i, name));
    }
    for (size_t i = 0; i < s->model->tensors; i++)
        s->tally[i].region = s->tally[i].rows = false;
    s->ended++;
    return 0;
}

int mr_store_settle(struct mr_store *s, struct mr_error *err)
{
    int rc = mr_store_refuse_infinite(s, err);
    bool again = false;
    for (size_t i = 0; i < s->model->tensors && rc == 0; i++) {
        again |= (s->tally[i].flags & LARGE) != 0;
        unit_of(s, i)->now = mr_store_next_unit(s, i);
    }
    s->micro_batches = s->ended = 0;
    memset(s->tally, 0, s->model->tensors * sizeof *s->tally);
    return rc < 0 ? rc : again ? MR_STORE_AGAIN : 0;
}

// May a gradient of tensor i come now?
static int expects(const struct mr_store *s, size_t i, bool had, struct mr_error *err)
{
    char name[MR_NAME];
    if (s->ended >= s->micro_batches)
        return mr_fail(err, MR_ERR_USAGE,
                       "a gradient of %s before a step begins, or behind its "
                       "last micro-batch",
                       mr_store_tensor_name(s, i, name));
    if (had)
        return mr_fail(err, MR_ERR_USAGE, "a second gradient of %s in one micro-batch",
                       mr_store_tensor_name(s, i, name));
    return 0;
}

static void note(struct mr_store *s, size_t i, uint32_t peak, uint32_t flags)
{
    struct mr_store_tally *t = &s->tally[i];
    t->peak = peak > t->peak ? peak : t->peak;
    t->flags |= (uint8_t)(flags & (LARGE | INFINITE));
    if (peak > (uint32_t)mr_store_limit(s, i))
        t->flags |= LARGE;
}

// ---- regions -----------------------------------------------------------------------------------

size_t mr_store_region(const struct mr_store *s, size_t i)
{
    return mr_store_tiles(&s->model->tensor[i]) * MR_TILE * sizeof(int32_t) + RECORD;
}

struct adding {
    struct mr_store *s;
    const struct mr_store_tensor *t;
    int32_t *sums;
    const int32_t *tiles;
    size_t count;
    bool more;
    atomic_uint peak;
    const struct mr_tile_kernels *kernels;
};

static void add_tiles(void *arg, int task, int worker)
{
    struct adding *a = arg;
    uint32_t top = 0;
    (void)worker;
    size_t from = (size_t)task * TILES_A_TASK, to = from + TILES_A_TASK;
    for (size_t k = from; k < (to < a->count ? to : a->count); k++) {
        size_t patch, inner, at = k * MR_TILE_COLS, n = MR_TILE_COLS;
        if (!a->t->vector) {
            mr_store_tile(a->t, k, &patch, &inner);
            at = a->s->model->patch[a->t->patch + patch].first - a->t->first + inner * MR_TILE;
            n = MR_TILE;
        }
        uint32_t peak = a->kernels->add(a->sums + at, a->tiles + k * MR_TILE, n, a->more);
        top = peak > top ? peak : top;
    }
    unsigned was = atomic_load(&a->peak);
    while (was < top && !atomic_compare_exchange_weak(&a->peak, &was, top))
        ;
}

int mr_store_add(struct mr_store *s, size_t i, const void *region, struct mr_error *err)
{
    int rc = expects(s, i, s->tally[i].region, err);
    if (rc < 0 || s->choice[i] & MR_CHOICE_FROZEN)
        return rc;
    struct adding a = {
        .s = s, .t = &s->model->tensor[i], .kernels = mr_tile_kernels[mr_simd_best()]};
    a.sums = mr_store_sums(s, i);
    a.tiles = region;
    a.count = mr_store_tiles(a.t);
    a.more = s->ended > 0 || is_table(s, i);
    mr_pool_run(s->pool, (int)((a.count + TILES_A_TASK - 1) / TILES_A_TASK), add_tiles, &a, true);
    struct record r;
    memcpy(&r, a.tiles + a.count * MR_TILE, sizeof r);
    note(s, i, a.peak > r.peak ? a.peak : r.peak, r.flags);
    s->tally[i].region = true;
    return 0;
}

// x / 2^unit to the nearest integer within 32 bits.
static int64_t rounded(float x, int unit, uint32_t *flags)
{
    double y = ldexp((double)x, -unit);
    if (!isfinite(x)) {
        *flags |= INFINITE;
        return 0;
    }
    if (fabs(y) > INT32_MAX) {
        *flags |= LARGE;
        return y < 0 ? -(int64_t)INT32_MAX : INT32_MAX;
    }
    return (int64_t)nearbyint(y);
}

void mr_store_round(const struct mr_store *s, size_t i, const float *gradient, void *region)
{
    const struct mr_store_tensor *t = &s->model->tensor[i];
    int32_t *tiles = region;
    struct record r = {0};
    int unit = mr_store_unit(s, i);
    size_t count = mr_store_tiles(t);
    memset(region, 0, mr_store_region(s, i));
    for (size_t tile = 0; tile < count; tile++) {
        size_t patch = 0, first = tile * MR_TILE_COLS, n = MR_TILE_COLS;
        if (!t->vector) {
            mr_store_tile(t, tile, &patch, &first);
            first *= MR_TILE;
            n = MR_TILE;
        }
        for (size_t k = 0; k < n; k++) {
            size_t at = mr_store_natural(t, &s->model->patch[t->patch + patch], first + k);
            int64_t value = at == SIZE_MAX ? 0 : rounded(gradient[at], unit, &r.flags);
            uint32_t size = (uint32_t)(value < 0 ? -value : value);
            r.peak = size > r.peak ? size : r.peak;
            tiles[tile * MR_TILE + k] = (int32_t)value;
        }
    }
    if (r.peak > (uint32_t)mr_store_limit(s, i))
        r.flags |= LARGE;
    memcpy(tiles + count * MR_TILE, &r, sizeof r);
}

// ---- rows of tables ----------------------------------------------------------------------------

struct lookup {
    int row;
    size_t at; // in `rows`
};

static int by_row(const void *a, const void *b)
{
    const struct lookup *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

// All of one row's gradients: n lookups.
static void add_row(struct mr_store *s, size_t i, const struct lookup *lookup, size_t n,
                    const float *rows, size_t stride)
{
    const struct mr_store_tensor *t = &s->model->tensor[i];
    int32_t *sums = mr_store_sums(s, i);
    int unit = mr_store_unit(s, i);
    uint32_t flags = 0, peak = 0;
    for (int k = 0; k < t->inputs; k++) {
        int64_t sum = 0;
        for (size_t j = 0; j < n; j++)
            sum += rounded(rows[lookup[j].at * stride + (size_t)k], unit, &flags);
        int64_t size = sum < 0 ? -sum : sum;
        peak = size > UINT32_MAX ? UINT32_MAX : size > peak ? (uint32_t)size : peak;
        struct mr_store_spot spot = mr_store_spot(t, lookup->row, k);
        size_t at =
            s->model->patch[spot.patch].first - t->first + spot.tile * MR_TILE + spot.element;
        sums[at] = (int32_t)((uint32_t)sums[at] + (uint32_t)sum);
    }
    note(s, i, peak, flags);
}

int mr_store_add_rows(struct mr_store *s, size_t i, const int *index, size_t n, const float *rows,
                      size_t stride, struct mr_error *err)
{
    const struct mr_store_tensor *t = &s->model->tensor[i];
    char name[MR_NAME];
    int rc = expects(s, i, s->tally[i].rows, err);
    if (rc < 0)
        return rc;
    if (!is_table(s, i))
        return mr_fail(err, MR_ERR_USAGE, "%s is no table", mr_store_tensor_name(s, i, name));
    for (size_t k = 0; k < n; k++)
        if (index[k] < 0 || index[k] >= t->outputs)
            return mr_fail(err, MR_ERR_USAGE, "%s has no row %d", mr_store_tensor_name(s, i, name),
                           index[k]);
    if (s->choice[i] & MR_CHOICE_FROZEN)
        return 0;
    struct lookup *lookup = malloc((n + 1) * sizeof *lookup);
    if (!lookup)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the gradients of %zu rows", n);
    for (size_t k = 0; k < n; k++)
        lookup[k] = (struct lookup){index[k], k};
    qsort(lookup, n, sizeof *lookup, by_row);
    for (size_t k = 0, same; k < n; k += same) {
        for (same = 1; k + same < n && lookup[k + same].row == lookup[k].row; same++)
            ;
        add_row(s, i, lookup + k, same, rows, stride);
    }
    free(lookup);
    s->tally[i].rows = true;
    return 0;
}
