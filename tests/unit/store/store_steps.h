// SPDX-License-Identifier: Apache-2.0
// Steps of a store with gradients from a seed. Include <cmocka.h> and what it needs first.
#ifndef MILLRACE_TESTS_UNIT_STORE_STEPS_H
#define MILLRACE_TESTS_UNIT_STORE_STEPS_H

#include "reference/params.h"
#include "store/header.h"
#include "unit/store_dirs.h"

enum { MICRO_BATCHES = 3, TARGETS = 37 };

// Numbers that follow from where they stand alone.
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9E3779B97F4A7C15U;
    x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9U;
    return x ^ x >> 32;
}

// The gradient of one element in a micro-batch, as an integer; of all sizes.
static inline int32_t draw(uint64_t step, int batch, size_t tensor, size_t element)
{
    uint64_t r = mix(mix(step * 64 + (uint64_t)batch) ^ mix(tensor << 32 ^ element));
    return (int32_t)((int64_t)(r & 0x3FFFFFF) - 0x2000000) >> (r >> 40 & 15);
}

// That of a tensor as GRAD writes it, padding zero. The caller frees it.
static inline void *make_region(const struct mr_store *s, uint64_t step, int batch, size_t i)
{
    struct mr_store_layout l;
    struct mr_error err = {0};
    check(mr_store_layout_make(&l, mr_store_config(s), &err), &err);
    const struct mr_store_tensor *t = &l.tensor[i];
    int32_t *region = allocate(1, mr_store_region(s, i));
    uint32_t peak = 0;
    for (size_t k = 0; k < mr_store_tiles(t); k++) {
        size_t patch = 0, inner = 0, n = t->vector ? MR_TILE_COLS : MR_TILE;
        if (!t->vector)
            mr_store_tile(t, k, &patch, &inner);
        for (size_t e = 0; e < n; e++) {
            size_t in_patch = t->vector ? k * MR_TILE_COLS + e : inner * MR_TILE + e;
            size_t at = mr_store_natural(t, &l.patch[t->patch + patch], in_patch);
            int32_t v = at == SIZE_MAX ? 0 : draw(step, batch, i, at);
            uint32_t size = (uint32_t)(v < 0 ? -v : v);
            region[k * MR_TILE + e] = v;
            peak = size > peak ? size : peak;
        }
    }
    region[mr_store_tiles(t) * MR_TILE + 1] = (int32_t)peak;
    mr_store_layout_free(&l);
    return region;
}

static enum mr_update_kind steps_kind; // AdamW, unless a test says otherwise
static const uint8_t *steps_choice;    // of tensors, likewise

static inline struct mr_store_update update_of(const struct mr_store *s, const void *note)
{
    double second = steps_kind == MR_SGD_NESTEROV ? 0 : 0.99;
    return (struct mr_store_update){.adamw = {0.9, second, 1e-8, 0.1, false, steps_kind},
                                    .rate = 1e-2 / (double)(mr_store_step(s) + 1),
                                    .clip = mr_store_step(s) % 2 ? 0.5 : 0,
                                    .targets = TARGETS,
                                    .note = note};
}

// Regions are made once, for tests that do the same step again and again with the same model.
enum { KEPT_STEPS = 4, KEPT_TENSORS = 64 };
static void *kept_regions[KEPT_STEPS][MICRO_BATCHES][KEPT_TENSORS];

static inline const void *keep_region(const struct mr_store *s, uint64_t step, int batch, size_t i)
{
    assert_true(step < KEPT_STEPS && i < KEPT_TENSORS);
    void **kept = &kept_regions[step][batch][i];
    if (!*kept)
        *kept = make_region(s, step, batch, i);
    return *kept;
}

static inline void forget_regions(void)
{
    void **kept = &kept_regions[0][0][0];
    for (size_t k = 0; k < (size_t)KEPT_STEPS * MICRO_BATCHES * KEPT_TENSORS; k++) {
        free(kept[k]);
        kept[k] = NULL;
    }
}

// All micro-batches of the next step; `turn` changes their order and that of the tensors.
static inline void add_all(struct mr_store *s, int turn)
{
    struct mr_error err = {0};
    uint64_t step = mr_store_step(s);
    size_t tensors = mr_tensor_specs(mr_store_config(s));
    check(mr_store_begin(s, MICRO_BATCHES, &err), &err);
    for (int b = 0; b < MICRO_BATCHES; b++) {
        for (size_t k = 0; k < tensors; k++) {
            size_t i = turn % 2 ? tensors - 1 - k : k;
            const void *region = keep_region(s, step, (b + turn) % MICRO_BATCHES, i);
            if (mr_tensor_spec(mr_store_config(s), i).item->kind == MR_EMBED)
                check(mr_store_add_rows(s, i, NULL, 0, NULL, 0, &err), &err);
            check(mr_store_add(s, i, region, &err), &err);
        }
        check(mr_store_end(s, &err), &err);
    }
}

static inline void set_units(struct mr_store *s)
{
    struct mr_error err = {0};
    for (size_t i = 0; i < mr_tensor_specs(mr_store_config(s)); i++)
        check(mr_store_set_unit(s, i, -20 - (int)(i % 5), &err), &err);
}

static inline int one_step(struct mr_store *s, int turn, struct mr_store_done *done,
                           struct mr_error *err)
{
    char note[MR_STORE_NOTE] = {0};
    if (mr_store_step(s) == 0)
        set_units(s);
    mr_store_choose(s, steps_choice);
    add_all(s, turn);
    (void)snprintf(note, sizeof note, "step %d", (int)mr_store_step(s) + 1);
    struct mr_store_update u = update_of(s, note);
    return mr_store_apply(s, &u, done, err);
}

#endif
