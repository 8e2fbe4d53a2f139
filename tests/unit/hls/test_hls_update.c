// SPDX-License-Identifier: Apache-2.0
// The kernel `millrace_update` (hls/) as C++, with 1, 2, 4 and 16 lanes: its arithmetic against
// mr_update_plain() and num.h over random and extreme numbers; whole steps against the store, whose
// state and streams, dealt to N channels, it must write byte for byte, and nothing else.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "card/jobs.h"
#include "cmodel/num.h"
#include "store/patch.h"
#include "store/tile_kernels.h"
#include "unit/hls/hls_streams.h"
#include "unit/memory_store.h"
#include "unit/store/store_steps.h"

mr_update_kernel millrace_update_1, millrace_update_2, millrace_update_4, millrace_update_16;

// What a kernel reads and writes; the streams are dealt to the channels, `apart` beats each.
struct buffers {
    const void *old_state, *gradients;
    void *new_state, *stream[2];
    uint32_t channels;
    uint64_t apart[2];
};

static void run(mr_update_kernel *kernel, const struct mr_update_job *jobs, size_t count,
                const struct buffers *b, const struct mr_update_factors *a)
{
    kernel(jobs, b->old_state, b->gradients, b->new_state, b->stream[0], b->stream[0], b->stream[1],
           (uint32_t)count, b->channels, b->apart[0], b->apart[1], mr_bits(a->scale),
           mr_bits(a->keep1), mr_bits(a->add1), mr_bits(a->keep2), mr_bits(a->add2),
           mr_bits(a->root), mr_bits(a->epsilon), mr_bits(a->rate), mr_bits(a->decay));
}

// ---- arithmetic ---------------------------------------------------------------------------------

static const uint32_t extremes[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, // zeros, subnormals
    0x00800000, 0x80800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x80FFFFFF, // the smallest
    0x3F800000, 0xBF800000, 0x3F800001, 0x3F7FFFFF, 0x4B000000, 0xCB7FFFFF, // usual ones
    0x7F7FFFFF, 0xFF7FFFFF, 0x7F000000, 0x7E800001, 0x7F800000, 0xFF800000, // the largest, infinity
    0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFBFFFFF, 0x1F800000, 0x20000001, // NaNs; small squares
};

static float number(uint64_t r, int mode)
{
    uint32_t u = (uint32_t)mix(r);
    if (mode == 1 || (mode == 2 && u % 31 == 0))
        return mr_float(extremes[mix(r ^ 0x55) % (sizeof extremes / sizeof *extremes)]);
    if (mode == 2) // of nearly the same size, so that sums cancel and carry
        return mr_float((u & 0x80FFFFFFU) + 0x3E800000U);
    if (mode == 3) // around the flush
        return mr_float((u & 0x83FFFFFFU) | (u >> 28 & 1) << 26);
    return mr_float(u);
}

static struct mr_update_factors factors(uint64_t r, int mode)
{
    const struct mr_update_options o = {0.9, 0.999, 1e-8, 0.1, false, MR_ADAMW};
    struct mr_update_factors a =
        mr_update_factors_of(&o, 1 + (int)(mix(r) % 3000), 1e-3, 0.01, true);
    float *f = &a.scale;
    for (size_t i = 0; i < offsetof(struct mr_update_factors, join) / sizeof *f && r % 3 == 2; i++)
        f[i] = number(r * 16 + i, mode);
    return a;
}

enum { TILES = 3, ODD = 448, ELEMENTS = TILES * MR_TILE + ODD };

static void same(const float *is, const float *want, const char *what, size_t e, uint64_t r)
{
    if (mr_bits(*is) != mr_bits(*want))
        fail_msg("round %d, element %zu: %s is %08x, expected %08x", (int)r, e, what, mr_bits(*is),
                 mr_bits(*want));
}

// A row of three tiles and a shorter one, which is in no stream, updated where it lies.
static void numbers_of_round(mr_update_kernel *kernel, uint64_t r)
{
    static float state[3 * ELEMENTS], want[3 * ELEMENTS], wide[MR_TILE];
    static int32_t g[ELEMENTS];
    int mode = (int)(r % 4), unit = (int)(mix(r) % 300) - 204;
    struct mr_update_factors a = factors(r, mode);
    struct mr_update_job job = {
        .kind = MR_UPDATE_TABLE, .decays = r % 2, .unit = unit, .rows = 1, .cols = ELEMENTS};
    for (size_t e = 0; e < sizeof state / sizeof *state; e++)
        state[e] = number(r * 65536 + e, mode);
    for (size_t e = 0; e < ELEMENTS; e++) {
        g[e] = (int32_t)mix(r * 99991 + e) >> mix(e ^ r) % 32;
        g[e] = e % 97 == 5 ? INT32_MIN : e % 97 == 6 ? INT32_MAX : g[e];
    }
    memcpy(want, state, sizeof want);
    run(kernel, &job, 1,
        &(struct buffers){.old_state = state, .gradients = g, .new_state = state, .channels = 1},
        &a);
    a.decay = job.decays ? a.decay : 0;
    for (size_t e = 0, n; e < ELEMENTS; e += n) {
        float *tile = want + 3 * e;
        n = ELEMENTS - e < MR_TILE ? ELEMENTS - e : MR_TILE;
        for (size_t k = 0; k < n; k++)
            wide[k] = mr_fscale((float)g[e + k], unit);
        mr_update_plain(&a, tile, tile + n, tile + 2 * n, wide, n);
        for (size_t k = 0; k < 3 * n; k++)
            same(state + 3 * e + k, tile + k, k < n ? "w" : k < 2 * n ? "m" : "v", e + k % n, r);
    }
}

static void numbers_are_those_of_the_rules(void **state)
{
    (void)state;
    mr_update_kernel *const kernels[] = {millrace_update_2, millrace_update_1, millrace_update_16};
    for (uint64_t r = 0; r < 60; r++)
        numbers_of_round(kernels[r % 5 ? 0 : 1 + r % 2], r);
}

// ---- whole steps --------------------------------------------------------------------------------

// What was there before a step.
struct before {
    void *state, *gradients;
    int32_t unit[KEPT_TENSORS];
    uint32_t side;
};

// Numbers that training meets seldom or never, where nothing is padding: in the state, and as sums.
static void put_extremes(const struct mr_store *s, struct mr_volume *v)
{
    int32_t *g = (int32_t *)(void *)v->data[MR_V_GRADIENTS];
    for (size_t i = 0; i < s->layout.patches; i++) {
        const struct mr_store_patch *p = &s->layout.patch[i];
        for (size_t e = i % 7; e < p->count; e += 1 + mix(e) % 199) {
            uint64_t r = mix(i << 32 ^ e);
            size_t n = mr_store_tile_size(p, e / MR_TILE);
            uint64_t at = mr_store_patch_at(s, p, s->header->side) + e / MR_TILE * MR_TILE * 12 +
                          r % 3 * n * 4 + e % MR_TILE * 4;
            uint32_t u = extremes[mix(r) % 22]; // finite ones
            if (r % 64 == 1)
                u = extremes[22 + r / 64 % 6];
            if (mr_store_natural(&s->layout.tensor[p->tensor], p, e) == SIZE_MAX)
                continue;
            u &= r % 3 == 2 ? 0x7FFFFFFFU : 0xFFFFFFFFU; // no second moment is negative
            memcpy(v->data[MR_V_STATE] + at, &u, sizeof u);
            if (r % 9 == 0)
                g[p->first + e] = r % 2 ? INT32_MIN : r % 4 ? INT32_MAX : 0;
        }
    }
}

static void *copy(const struct mr_volume *v, enum mr_volume_file f)
{
    void *to = allocate(1, v->size[f]);
    memcpy(to, v->data[f], v->size[f]);
    return to;
}

// The state that the step wrote, tiles alone, in zeros.
static void *tiles_of(const struct mr_store *s, const struct mr_volume *v)
{
    unsigned char *to = allocate(1, v->size[MR_V_STATE]);
    for (size_t i = 0; i < s->layout.patches; i++) {
        const struct mr_store_patch *p = &s->layout.patch[i];
        uint64_t at = mr_store_patch_at(s, p, s->header->side);
        memcpy(to + at, v->data[MR_V_STATE] + at, p->count * 12);
    }
    return to;
}

struct way {
    mr_update_kernel *kernel;
    int channels;
};

static void same_step(const struct mr_store *s, const struct mr_volume *v, const struct before *b,
                      const struct mr_update_options *o, const struct mr_update_factors *a,
                      struct way way)
{
    struct mr_error err = {0};
    struct mr_update_jobs jobs;
    uint64_t gap = s->header->gap, old_at = b->side ? gap : 0, new_at = b->side ? 0 : gap;
    check(mr_update_jobs_make(&jobs, &s->layout, o, b->unit, way.channels, old_at, new_at, &err),
          &err);
    assert_true(jobs.count <= jobs.room);
    void *want = tiles_of(s, v), *streams[2];
    struct buffers to = {.old_state = b->state,
                         .gradients = b->gradients,
                         .new_state = allocate(1, v->size[MR_V_STATE]),
                         .channels = (uint32_t)way.channels};
    for (int k = 0; k < 2; k++) {
        to.apart[k] = jobs.beats[k] + 3;
        to.stream[k] = allocate((size_t)way.channels, to.apart[k] * MR_BEAT);
        streams[k] = dealt(s, k, way.channels, to.apart[k]);
    }
    run(way.kernel, jobs.job, jobs.count, &to, a);
    compare(to.new_state, want, v->size[MR_V_STATE], "the state", way.channels);
    for (int k = 0; k < 2; k++) {
        compare(to.stream[k], streams[k], to.apart[k] * to.channels * MR_BEAT, k ? "Wt" : "W",
                way.channels);
        free(to.stream[k]);
        free(streams[k]);
    }
    free(to.new_state);
    free(want);
    mr_update_jobs_free(&jobs);
}

static void steps_of(const char *from, const struct way *ways, size_t n_ways, int steps)
{
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    struct mr_volume *v;
    struct mr_store_done done;
    struct before b;
    check(mr_checkpoint_open(&checkpoint, from, MR_DECODER, NULL, &err), &err);
    struct mr_store *s = memory_store(checkpoint, &v);
    assert_true(s->layout.tensors <= KEPT_TENSORS);
    set_units(s);
    for (int step = 0; step < steps; step++) {
        struct mr_store_update u = update_of(s, NULL);
        u.adamw.decay_all = step == 1;
        add_all(s, step);
        put_extremes(s, v);
        b = (struct before){copy(v, MR_V_STATE), copy(v, MR_V_GRADIENTS), {0}, s->header->side};
        for (size_t i = 0; i < s->layout.tensors; i++)
            b.unit[i] = mr_store_unit(s, i);
        check(mr_store_apply(s, &u, &done, &err), &err);
        double factor = u.clip > 0 && done.norm > u.clip ? u.clip / done.norm : 1.0;
        struct mr_update_factors a =
            mr_update_factors_of(&u.adamw, step + 1, u.rate, factor / (double)u.targets, true);
        for (size_t k = 0; k < n_ways; k++)
            same_step(s, v, &b, &u.adamw, &a, ways[k]);
        free(b.state);
        free(b.gradients);
    }
    mr_store_close(s);
    mr_checkpoint_close(checkpoint);
    forget_regions();
}

static void steps_of_fixtures_are_the_stores(void **state)
{
    (void)state;
    static const struct way ways[] = {{millrace_update_1, 1},
                                      {millrace_update_2, 2},
                                      {millrace_update_4, 4},
                                      {millrace_update_16, 16}};
    struct mr_error err = {0};
    check(toy_register(&err), &err);
    steps_of(TRAIN_FIXTURES "/gptj-d12-r4", ways, 4, 2);
    steps_of(TRAIN_FIXTURES "/toy-d10", ways, 4, 2);
}

static void steps_of_size(const struct mr_config *c, struct way way)
{
    char model[512];
    write_model(model, c);
    steps_of(model, &way, 1, 1);
    remove_dir(model);
}

// More than a patch either way, with rests of 64 and of 128, on 8 channels.
static void steps_of_several_patches_are_the_stores(void **state)
{
    (void)state;
    steps_of_size(&several_patches, (struct way){millrace_update_2, 8});
}

// A head of more outputs than a segment of Wt has.
static void steps_of_segments_are_the_stores(void **state)
{
    (void)state;
    static const struct mr_config c = {.vocab_size = 16500,
                                       .n_positions = 8,
                                       .n_embd = 16,
                                       .n_layer = 1,
                                       .n_head = 1,
                                       .rotary_dim = 4,
                                       .n_inner = 16,
                                       .eos_token_id = -1};
    steps_of_size(&c, (struct way){millrace_update_2, 1});
}

static void frozen_tensors_have_no_jobs(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store_layout l;
    struct mr_update_jobs jobs;
    struct mr_config c = one_layer(1024, 16, 4, 4096);
    const struct mr_update_options o = {0.9, 0.99, 1e-8, 0.1, false, MR_ADAMW};
    static const int32_t unit[KEPT_TENSORS];
    uint8_t choice[KEPT_TENSORS] = {[0] = MR_CHOICE_FROZEN, [1] = MR_CHOICE_NO_DECAY};
    size_t of[KEPT_TENSORS] = {0}, left[KEPT_TENSORS] = {0};
    check(mr_store_layout_make(&l, &c, &err), &err);
    check(mr_update_jobs_make(&jobs, &l, &o, unit, 1, 0, 0, &err), &err);
    for (size_t i = 0; i < jobs.count; i++)
        of[jobs.tensor[i]]++;
    mr_update_jobs_choose(&jobs, choice);
    for (size_t i = 0; i < jobs.count; i++) {
        left[jobs.tensor[i]]++;
        assert_true(jobs.tensor[i] != 1 || !jobs.job[i].decays);
    }
    assert_true(of[0] > 0 && of[1] > 0 && left[0] == 0);
    for (size_t i = 1; i < l.tensors; i++)
        assert_int_equal(left[i], of[i]);
    mr_update_jobs_free(&jobs);
    mr_store_layout_free(&l);
}

// What has no room, or no meaning, is refused.
static void other_sizes_are_refused(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store_layout l;
    struct mr_update_jobs jobs;
    struct mr_config c = one_layer(1024, 16, 4, 4096);
    const struct mr_update_options o = {0.9, 0.99, 1e-8, 0, false, MR_ADAMW};
    static const int32_t unit[KEPT_TENSORS];
    check(mr_store_layout_make(&l, &c, &err), &err);
    for (int n = 0; n < 20; n++) {
        bool fits = n == 1 || n == 2 || n == 4 || n == 8 || n == 16;
        int rc = mr_update_jobs_make(&jobs, &l, &o, unit, n, 0, 0, &err);
        assert_int_equal(rc, fits ? 0 : MR_ERR_USAGE);
        if (fits)
            mr_update_jobs_free(&jobs);
    }
    const struct mr_update_options sgd = {.beta1 = 0.9, .kind = MR_SGD};
    assert_int_equal(mr_update_jobs_make(&jobs, &l, &sgd, unit, 1, 0, 0, &err), MR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "has AdamW's update, not SGD's"));
    mr_store_layout_free(&l);
    c.vocab_size = MR_STREAM_TOPS + 1;
    check(mr_store_layout_make(&l, &c, &err), &err);
    assert_int_equal(mr_update_jobs_make(&jobs, &l, &o, unit, 1, 0, 0, &err), MR_ERR_FIT);
    assert_non_null(strstr(err.text, "65600 x 1024"));
    mr_store_layout_free(&l);
    c = one_layer(32768, 16, 4, 40960); // three segments, each with so many tops
    check(mr_store_layout_make(&l, &c, &err), &err);
    assert_int_equal(mr_update_jobs_make(&jobs, &l, &o, unit, 1, 0, 0, &err), MR_ERR_FIT);
    assert_non_null(strstr(err.text, "40960 x 32768"));
    mr_store_layout_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_the_rules),
        cmocka_unit_test(steps_of_fixtures_are_the_stores),
        cmocka_unit_test(steps_of_several_patches_are_the_stores),
        cmocka_unit_test(steps_of_segments_are_the_stores),
        cmocka_unit_test(frozen_tensors_have_no_jobs),
        cmocka_unit_test(other_sizes_are_refused),
    };
    return cmocka_run_group_tests_name("hls_update", tests, files_setup, files_teardown);
}
