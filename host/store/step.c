// SPDX-License-Identifier: Apache-2.0
// The end of a step. Its order makes it atomic (docs/inside/store.md):
//
// 1. sums of squares and a hash of the gradients; nothing is written so far
// 2. the gradients are synced; a slot of the header says which update begins, and is synced
// 3. patches are written to the other side, as many as the gap holds, and synced; and so on
// 4. the other slot says that the step is done, and is synced
//
// What ends the program in 3 is completed by the next open: from the old patches that are not
// written over yet, the gradients and the factors in the header follow the same bits.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pack/hash.h"
#include "store/adapter_step.h"
#include "store/patch.h"
#include "store/streams.h"
#include "store/target.h"

enum {
    SUMMED = 1024, // elements whose squares and hash are made at once
    PIECE = 256,   // and that are updated while a piece of the tile before leaves
};

static const int32_t *gradients_of(const struct mr_store *s, const struct mr_store_patch *p)
{
    return (const int32_t *)(const void *)s->volume->data[MR_V_GRADIENTS] + p->first;
}

// ---- sums --------------------------------------------------------------------------------------

struct patch_sum {
    unsigned __int128 squares;
    uint64_t hash;
    uint32_t top; // the largest |gradient|
};

struct summing {
    const struct mr_store *s;
    const struct mr_tile_kernels *kernels;
    struct patch_sum *sum; // [patches]
};

static int check_padding(const struct mr_store *s, const struct mr_store_patch *p,
                         struct mr_error *err)
{
    const struct mr_store_tensor *t = &s->layout.tensor[p->tensor];
    const int32_t *g = gradients_of(s, p);
    char name[MR_NAME];
    if (t->count == (size_t)t->outputs * (size_t)t->inputs)
        return 0;
    for (size_t e = 0; e < p->count; e++)
        if (g[e] != 0 && mr_store_natural(t, p, e) == SIZE_MAX)
            return mr_fail(err, MR_ERR_FORMAT,
                           "the gradient of %s is not zero on padding; the device is at fault",
                           mr_store_own_name(s, p->tensor, name));
    return 0;
}

static int sum_patch(void *arg, size_t i, int worker, struct mr_error *err)
{
    const struct summing *x = arg;
    const struct mr_store_patch *p = &x->s->layout.patch[i];
    const int32_t *g = gradients_of(x->s, p);
    uint64_t low = 0, high = 0; // of less than 2^31 elements
    uint32_t top = 0;
    struct mr_stripes hash;
    (void)worker;
    if (mr_store_own_choice(x->s, p->tensor) & MR_CHOICE_FROZEN)
        return 0; // nobody has added them up
    mr_stripes_begin(&hash);
    for (size_t e = 0, n; e < p->count; e += n) {
        size_t left = p->count - e, held = left <= SUMMED ? MR_STRIPE : 0; // the end of the patch
        n = left < SUMMED ? left : SUMMED;
        mr_stripes_put(&hash, g + e, n * sizeof *g - held, left >= 3 * n ? g + e + 2 * n : NULL);
        uint32_t size = x->kernels->squares(g + e, n, &low, &high);
        top = size > top ? size : top;
    }
    const int32_t *end = g + p->count - MR_STRIPE / sizeof *g;
    x->sum[i] = (struct patch_sum){((unsigned __int128)high << 32) + low,
                                   mr_stripes_end(&hash, end, MR_STRIPE), top};
    return check_padding(x->s, p, err);
}

static int sum_all(const struct mr_store *s, struct patch_sum **sum, struct mr_error *err)
{
    *sum = calloc(s->layout.patches, sizeof **sum);
    if (!*sum)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for sums of squares");
    struct summing x = {s, mr_tile_kernels[mr_simd_best()], *sum};
    return mr_store_tasks(s->pool, 0, s->layout.patches, sum_patch, &x, err);
}

// Folds the hashes of patches, in their order.
static uint64_t hash_of(const struct mr_store *s, const struct patch_sum *sum)
{
    uint64_t hash = s->layout.patches;
    for (size_t i = 0; i < s->layout.patches; i++) {
        const uint64_t pair[2] = {hash, sum[i].hash};
        hash = XXH3_64bits(pair, sizeof pair);
    }
    return hash;
}

// The norm of the whole gradient, exact but for a rounding a tensor and one each to add it.
static int norm_of(const struct mr_store *s, const struct patch_sum *sum, double *norm,
                   struct mr_error *err)
{
    double all = 0;
    char name[MR_NAME];
    for (size_t i = 0; i < s->layout.tensors; i++) {
        const struct mr_store_tensor *t = &s->layout.tensor[i];
        int unit = mr_store_units(s->header)[i].now;
        unsigned __int128 squares = 0;
        uint32_t top = 0;
        for (size_t k = t->patch; k < t->patch + t->patches; k++) {
            squares += sum[k].squares;
            top = sum[k].top > top ? sum[k].top : top;
        }
        if (ldexp((double)(float)top, unit) >= 0x1p128)
            return mr_fail(err, MR_ERR_FORMAT,
                           "the gradient of %s is infinite; the weights stay as they were",
                           mr_store_own_name(s, i, name));
        all += ldexp((double)squares, 2 * unit);
    }
    *norm = sqrt(all);
    return 0;
}

// ---- the update --------------------------------------------------------------------------------

struct updating {
    struct mr_store *s;
    const struct mr_tile_kernels *kernels;
    mr_update_mover *move;
    struct mr_update_factors factors[2]; // without and with decay
    struct mr_store_point now, after;
    bool found; // an update that was under way: patches may be written already
    const struct mr_store_target *target; // has done the step, or NULL
    size_t finished;                      // tensors whose streams are, in the order of writing
};

static struct mr_update_options options_of(const struct mr_store_header *h)
{
    return (struct mr_update_options){
        h->beta1,        h->beta2, h->epsilon, h->decay, (h->rule & MR_RULE_DECAY_ALL) != 0,
        mr_store_kind(h)};
}

// What is frozen moves as it is.
static void keep(const struct mr_update_factors *unused, const struct mr_update_move *p, size_t n)
{
    (void)unused;
    memcpy(p->to_w, p->w, n * sizeof *p->w);
    memcpy(p->to_m, p->m, n * sizeof *p->m);
    memcpy(p->to_v, p->v, n * sizeof *p->v);
}

// A tile whose update is done, on its way out.
struct leaving {
    const char *data;           // NULL: none
    size_t bytes, summed, done; // of them are hashed, and written
};

// The next of so many pieces. Memory works meanwhile: it has what is updated next, as much of it.
static int leave(struct leaving *l, struct mr_store_writer *w, size_t pieces, const float *next,
                 struct mr_error *err)
{
    size_t at = l->summed, rest = l->bytes - at;
    size_t size = pieces > 1 ? rest / pieces / MR_STRIPE * MR_STRIPE : rest;
    if (!l->data)
        return 0;
    mr_store_write_sum(w, l->data + at, size, next ? (const char *)next + at : NULL);
    l->summed += size;
    if (l->summed < l->bytes && !w->store->volume->memory)
        return 0;
    at = l->done;
    l->done = l->summed;
    return mr_store_write_put(w, l->data + at, l->done - at, err);
}

// All of an adapter does.
static bool can_decay(const struct mr_store *s, const struct mr_update_options *o, size_t i)
{
    if (s->adapter)
        return true;
    struct mr_tensor_spec t = mr_tensor_spec(&s->config, i);
    return mr_update_decays(o, mr_arch_of(&s->config), t.item, t.part);
}

// The new tiles of a patch. A tile is updated piece by piece, and between two pieces one of the
// tile before is hashed and written, so that memory has to do all the time.
static int put_tiles(const struct updating *u, size_t i, struct mr_store_writer *w, float *out,
                     struct mr_error *err)
{
    const struct mr_store *s = u->s;
    const struct mr_store_patch *p = &s->layout.patch[i];
    const struct mr_update_options o = options_of(s->header);
    int choice = mr_store_own_choice(s, p->tensor);
    int unit = mr_store_units(s->header)[p->tensor].now;
    bool decays = can_decay(s, &o, p->tensor) && !(choice & MR_CHOICE_NO_DECAY);
    mr_update_mover *move_some = choice & MR_CHOICE_FROZEN ? keep : u->move;
    size_t tiles = (p->count + MR_TILE - 1) / MR_TILE, last = tiles - 1;
    struct leaving before = {0};
    int rc = 0;
    for (size_t k = 0; k < tiles && rc == 0; k++) {
        size_t n = mr_store_tile_size(p, k);
        const float *from = mr_store_tile_at(s, p, k, s->header->side);
        bool more = k < last && mr_store_tile_size(p, k + 1) == n; // a vector's last may be shorter
        const float *next = more ? from + 3 * n : NULL;
        const int32_t *g = gradients_of(s, p) + k * MR_TILE;
        float *tile = out + k % 2 * 3 * MR_TILE;
        for (size_t e = 0; e < n && rc == 0; e += PIECE) {
            const struct mr_update_move move = {.w = from + e,
                                                .m = from + n + e,
                                                .v = from + 2 * n + e,
                                                .to_w = tile + e,
                                                .to_m = tile + n + e,
                                                .to_v = tile + 2 * n + e,
                                                .g = g + e,
                                                .next = g + e + (more ? n : 0),
                                                .unit = unit};
            move_some(&u->factors[decays], &move, n - e < PIECE ? n - e : PIECE);
            rc = leave(&before, w, (n - e + PIECE - 1) / PIECE, next, err);
        }
        if (!u->found && !s->adapter) // else the streams are made when the step is complete
            mr_streams_tile(s, i, k, tile, u->kernels);
        before = (struct leaving){(const char *)tile, 3 * n * sizeof *tile, 0, 0};
    }
    return rc < 0 ? rc : leave(&before, w, 1, NULL, err);
}

static int update_patch(void *arg, size_t i, int worker, struct mr_error *err)
{
    const struct updating *u = arg;
    struct mr_store *s = u->s;
    const struct mr_store_header *h = s->header;
    struct mr_store_writer w;
    (void)worker;
    if (u->found && mr_store_patch_check(s, i, !h->side, u->after) == MR_PATCH_GOOD)
        return 0;
    enum mr_store_condition old =
        u->found ? mr_store_patch_check(s, i, h->side, u->now) : MR_PATCH_GOOD;
    if (old != MR_PATCH_GOOD)
        return mr_store_patch_refuse(s, i, old,
                                     ", and the step that was under way cannot be completed", err);
    float *out = aligned_alloc(64, 2 * 3 * MR_TILE * sizeof *out);
    if (!out)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a patch of weights");
    mr_store_write_begin(&w, s, i, !h->side, u->after);
    int rc = mr_store_write_end(&w, put_tiles(u, i, &w, out, err), err);
    free(out);
    return rc;
}

// Patches that a target has updated, one after the other.
static int fetch_patches(const struct updating *u, size_t first, size_t count, struct mr_error *err)
{
    const struct mr_store *s = u->s;
    unsigned char *out = aligned_alloc(64, s->layout.largest);
    int rc = out ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for a patch of weights");
    for (size_t i = first; i < first + count && rc == 0; i++) {
        const struct mr_store_patch *p = &s->layout.patch[i];
        struct mr_store_writer w;
        mr_store_write_begin(&w, s, i, !s->header->side, u->after);
        rc = u->target->read(u->target->arg, p, out, err);
        if (rc == 0) {
            mr_store_write_sum(&w, out, p->count * 12, NULL);
            rc = mr_store_write_put(&w, out, p->count * 12, err);
        }
        rc = mr_store_write_end(&w, rc, err);
    }
    free(out);
    return rc;
}

// The next patches in the order of writing, at most `gap` bytes of them: [*first, *first + *count).
static void next_batch(const struct mr_store *s, size_t *first, size_t *count)
{
    const struct mr_store_patch *p = s->layout.patch;
    bool up = s->header->side == 0; // to higher addresses: from the last patch on
    size_t end = *first + *count, at = up ? *first : end;
    uint64_t bytes = 0;
    *count = 0;
    while (up ? at > 0 : at < s->layout.patches) {
        bytes += p[up ? at - 1 : at].bytes;
        if (bytes > s->header->gap)
            break;
        at += up ? -(size_t)1 : 1;
        ++*count;
    }
    *first = up ? at : end;
}

static void expect(const struct mr_store *s, size_t first, size_t count)
{
    struct mr_volume *v = s->volume;
    if (!v->soon || count == 0)
        return;
    const struct mr_store_patch *a = &s->layout.patch[first], *b = a + count - 1;
    v->soon(v, MR_V_STATE, mr_store_patch_at(s, a, s->header->side), b->at + b->bytes - a->at);
    v->soon(v, MR_V_GRADIENTS, a->first * sizeof(int32_t),
            (b->first + b->count - a->first) * sizeof(int32_t));
}

// Streams of the tensors whose last patches have been written now.
static void finish_tensors(struct updating *u, size_t first, size_t count)
{
    const struct mr_store *s = u->s;
    const struct mr_store_tensor *t = s->layout.tensor;
    bool up = s->header->side == 0; // from the last tensor on
    size_t n = s->layout.tensors, from = u->finished, to = from;
    while (to < n &&
           (up ? t[n - 1 - to].patch >= first : t[to].patch + t[to].patches <= first + count))
        to++;
    if (u->found || u->target || s->adapter || to == from)
        return;
    size_t begin = up ? n - to : from, end = up ? n - from : to;
    u->finished = to;
    mr_streams_finish_some(s, begin, end, !s->header->side);
    if (s->target && s->target->ready)
        s->target->ready(s->target->arg, begin, end - begin);
}

static int update_all(struct updating *u, struct mr_error *err)
{
    struct mr_store *s = u->s;
    size_t first = s->header->side == 0 ? s->layout.patches : 0, count = 0;
    int rc = 0;
    next_batch(s, &first, &count);
    expect(s, first, count);
    while (rc == 0 && count > 0) {
        size_t next = first, more = count;
        next_batch(s, &next, &more);
        expect(s, next, more);
        rc = u->target ? fetch_patches(u, first, count, err)
                       : mr_store_tasks(s->pool, first, count, update_patch, u, err);
        if (rc == 0)
            finish_tensors(u, first, count);
        if (rc == 0)
            rc = s->volume->sync(s->volume, MR_V_STATE, err);
        first = next;
        count = more;
    }
    return rc;
}

// All patches by the target.
static int update_on_target(struct updating *u, struct mr_error *err)
{
    const struct mr_store *s = u->s;
    const struct mr_store_work work = {
        .layout = &s->layout,
        .state = s->volume->data[MR_V_STATE] + (s->header->side ? s->header->gap : 0),
        .gradients = (const int32_t *)(const void *)s->volume->data[MR_V_GRADIENTS],
        .options = options_of(s->header),
        .factors = u->factors[1],
        .choice = s->choice,
        .now = u->now,
        .after = u->after,
    };
    u->target = s->target;
    return u->target->update(u->target->arg, &work, err);
}

// From a header that says which update is under way, to one that says it is done.
static int update(struct mr_store *s, bool found, struct mr_error *err)
{
    struct mr_store_header *h = s->header;
    const struct mr_update_options o = options_of(h);
    struct updating u = {.s = s,
                         .kernels = mr_tile_kernels[mr_simd_best()],
                         .move = mr_update_movers[mr_simd_best()]};
    u.found = found;
    u.now = mr_store_now(h);
    u.after = mr_store_after(h);
    for (int k = 0; k < 2; k++)
        u.factors[k] = mr_update_factors_of(&o, (int)h->step + 1, h->rate, h->scale, k == 1);
    bool on_target = s->target && s->target->update && s->target->kind == o.kind;
    int rc = on_target ? update_on_target(&u, err) : 0;
    if (rc == 0)
        rc = update_all(&u, err);
    if (rc < 0)
        return rc;
    struct mr_store_unit *unit = mr_store_units(h);
    for (size_t i = 0; i < s->layout.units; i++)
        unit[i].now = unit[i].next = mr_store_unit_next(&unit[i]);
    memcpy(h->note, h->next_note, sizeof h->note);
    memset(h->next_note, 0, sizeof h->next_note);
    h->step = u.after.step;
    h->lineage = u.after.lineage;
    h->side = !h->side;
    h->updating = 0;
    h->gradients = 0;
    h->rate = h->scale = h->beta1 = h->beta2 = h->epsilon = h->decay = 0;
    h->rule = mr_update_family(o.kind) * MR_RULE_KIND; // whose moments they are from now on
    if (s->adapter)
        mr_adapter_follow(s, !found);
    else if (!found)
        mr_streams_leave(s, u.target != NULL);
    return mr_store_header_write(h, s->volume, err);
}

static const char completed[] = "the step is completed when the state is opened again";

int mr_store_complete(struct mr_store *s, struct mr_error *err)
{
    struct patch_sum *sum;
    const struct mr_store_point after = mr_store_after(s->header);
    size_t done = 0;
    for (size_t i = 0; i < s->layout.tensors && !s->adapter; i++)
        s->choice[i] = (uint8_t)mr_store_choice(&mr_store_units(s->header)[i]);
    while (done < s->layout.patches &&
           mr_store_patch_check(s, done, !s->header->side, after) == MR_PATCH_GOOD)
        done++;
    int rc = done == s->layout.patches ? 0 : sum_all(s, &sum, err);
    if (done < s->layout.patches) {
        if (rc == 0 && hash_of(s, sum) != s->header->gradients)
            rc = mr_fail(err, MR_ERR_FORMAT,
                         "%s: its gradients are damaged (checksum) or of another training, and the "
                         "step that was under way cannot be completed; take a copy of the state, "
                         "or begin again",
                         mr_store_where(s));
        free(sum);
    }
    if (rc == 0)
        rc = update(s, true, err);
    mr_store_choose(s, NULL);
    return rc < 0 ? mr_advise(err, completed) : 0;
}

void mr_store_set_target(struct mr_store *s, const struct mr_store_target *target)
{
    s->target = target;
}

// ---- the step ----------------------------------------------------------------------------------

static int check_update(const struct mr_store *s, const struct mr_store_update *u,
                        struct mr_error *err)
{
    if (s->micro_batches == 0 || s->ended < s->micro_batches)
        return mr_fail(err, MR_ERR_USAGE, "the step has %d of its %d micro-batches", s->ended,
                       s->micro_batches);
    if (!(u->rate >= 0 && u->rate <= 1))
        return mr_fail(err, MR_ERR_USAGE, "a learning rate of %g; 0 to 1", u->rate);
    if (!(u->clip >= 0 && u->clip < INFINITY))
        return mr_fail(err, MR_ERR_USAGE, "a norm to clip at of %g; 0 (off) or more", u->clip);
    if (u->targets < 1)
        return mr_fail(err, MR_ERR_USAGE, "a step of %lld targets; 1 or more",
                       (long long)u->targets);
    int rc = mr_update_check(&u->adamw, err);
    enum mr_update_kind was = mr_store_kind(s->header), is = u->adamw.kind;
    if (rc == 0 && s->header->step > 0 && was != mr_update_family(is))
        rc = mr_fail(err, MR_ERR_USAGE,
                     "the state's moments are %s's, not %s's; go on with that, or begin again with "
                     "the weights",
                     mr_update_name(was), mr_update_name(is));
    return rc;
}

static int write_update(struct mr_store *s, const struct mr_store_update *u,
                        const struct patch_sum *sum, double norm, struct mr_error *err)
{
    struct mr_store_header *h = s->header;
    struct mr_store_unit *unit = mr_store_units(h);
    double factor = u->clip > 0 && norm > u->clip ? u->clip / norm : 1.0;
    const size_t own = s->adapter ? s->layout.tensors : 0;
    for (size_t i = 0; i < own; i++) // found anew in each step
        unit[i].next = unit[i].now;
    for (size_t i = 0; i < s->model->tensors; i++)
        unit[own + i].next =
            mr_store_coded(mr_store_next_unit(s, i), s->adapter ? 0 : s->choice[i]);
    h->updating = 1;
    h->gradients = hash_of(s, sum);
    h->rate = u->rate;
    h->scale = factor / (double)u->targets;
    h->beta1 = u->adamw.beta1;
    h->beta2 = u->adamw.beta2;
    h->epsilon = u->adamw.epsilon;
    h->decay = u->adamw.decay;
    h->rule = (u->adamw.decay_all ? MR_RULE_DECAY_ALL : 0) + (uint32_t)u->adamw.kind * MR_RULE_KIND;
    memset(h->next_note, 0, sizeof h->next_note); // a note is of the step that it came with
    if (u->note)
        memcpy(h->next_note, u->note, sizeof h->next_note);
    int rc = s->volume->sync(s->volume, MR_V_GRADIENTS, err);
    s->broken = true; // until all is done
    if (rc < 0)
        return mr_advise(err, "the state stays as it was before the step; open it again");
    rc = mr_store_header_write(h, s->volume, err);
    if (rc < 0)
        return mr_advise(err, "open the state again, which completes the step if it has begun");
    rc = update(s, false, err);
    if (rc < 0)
        return mr_advise(err, completed);
    s->broken = false;
    return 0;
}

int mr_store_apply(struct mr_store *s, const struct mr_store_update *u, struct mr_store_done *done,
                   struct mr_error *err)
{
    struct patch_sum *sum = NULL;
    double norm = 0;
    *done = (struct mr_store_done){.step = s->header->step};
    int rc = check_update(s, u, err);
    if (rc < 0)
        return rc;
    rc = mr_store_refuse_infinite(s, err);
    if (rc == 0)
        done->saturated = mr_store_raise(s);
    if (rc == 0 && done->saturated == 0) {
        rc = s->adapter ? mr_adapter_gradients(s, err) : 0;
        if (rc == 0)
            rc = sum_all(s, &sum, err);
        if (rc == 0)
            rc = norm_of(s, sum, &norm, err);
        done->norm = norm / (double)u->targets;
        if (rc == 0)
            rc = write_update(s, u, sum, done->norm, err);
        free(sum);
    }
    s->micro_batches = s->ended = 0; // the step begins anew in any case
    done->step = s->header->step;
    return rc < 0 ? rc : done->saturated ? MR_STORE_AGAIN : 0;
}
