// SPDX-License-Identifier: Apache-2.0
// Weights that come over the link in each pass: the bits of a device that holds them all, what a
// link costs, and what happens when a copy fails.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device/mover.h"
#include "engine/stages.h"
#include "engine/synthetic.h"
#include "model/model.h"
#include "plan/streaming.h"
#include "unit/files.h"
#include "unit/fixtures.h"

struct limited {
    struct mr_device *dev;
    struct mr_backend *b;
    struct mr_error err;
    int seq[8];
};

static bool alone;     // copies are made between runs, not beside them
static int interrupts; // the so many-th call of what is copied on opening; 0: none

static int copied(void *arg, size_t done, size_t total)
{
    (void)arg;
    assert_true(done > 0 && done <= total);
    return interrupts > 0 && --interrupts == 0;
}

// `room`: of a channel, 0: not limited.
static int open_limited(struct limited *l, const struct mr_packed *packed, const char *device,
                        uint64_t room, const struct mr_engine_options *opt)
{
    *l = (struct limited){0};
    check(mr_device_open(&l->dev, device, &l->err), &l->err);
    l->dev->info.room = room;
    l->dev->info.overlaps &= !alone;
    l->dev->upload.progress = copied;
    int rc = mr_engine_open(&l->b, packed, l->dev, opt, &l->err);
    if (rc < 0) {
        mr_device_close(l->dev);
        return rc;
    }
    for (int s = 0; s < opt->max_seqs; s++)
        check(mr_backend_seq_new(l->b, &l->seq[s], &l->err), &l->err);
    return 0;
}

static void close_limited(struct limited *l)
{
    mr_backend_close(l->b);
    mr_device_close(l->dev);
}

// Prompts of two sequences, in runs with and without logits, then some tokens each.
static uint64_t hash_of(struct limited *l)
{
    enum { PROMPT = 21, STEPS = 3 };
    size_t vocab = (size_t)l->b->config.vocab_size;
    float *logits = allocate(2 * vocab, sizeof *logits);
    uint64_t h = 0xCBF29CE484222325u, kv;
    for (int step = 0; step <= STEPS; step++) {
        struct mr_row rows[2 * PROMPT];
        int n = 0, each = step == 0 ? PROMPT : 1;
        for (int s = 0; s < 2; s++)
            for (int i = 0; i < each - s * (step == 0); i++)
                rows[n++] = (struct mr_row){l->seq[s], (7 * i + 3 * s + step) % (int)vocab, false};
        rows[n - 1].want_logits = true;
        rows[each - 1].want_logits = step > 0;
        check(mr_backend_step(l->b, rows, n, logits, &l->err), &l->err);
        h = fnv(h, logits, (step > 0 ? 2 : 1) * vocab * sizeof *logits);
    }
    for (int s = 0; s < 2; s++) {
        check(mr_engine_kv_hash(l->b, l->seq[s], &kv, &l->err), &l->err);
        h = fnv(h, &kv, sizeof kv);
    }
    free(logits);
    return h;
}

static uint64_t grains(uint64_t bytes)
{
    return (bytes + MR_DEVICE_GRAIN - 1) / MR_DEVICE_GRAIN * MR_DEVICE_GRAIN;
}

// The least memory of a channel with which the model opens, a multiple of the grain.
static uint64_t least_room(const struct mr_packed *packed, const char *device,
                           const struct mr_engine_options *opt)
{
    uint64_t fails = 0, opens = (uint64_t)1 << 30;
    while (opens - fails > MR_DEVICE_GRAIN) {
        struct limited l;
        uint64_t room = grains((fails + opens) / 2);
        int rc = open_limited(&l, packed, device, room, opt);
        if (rc == 0)
            close_limited(&l);
        else
            assert_int_equal(rc, MR_ERR_FIT);
        *(rc == 0 ? &opens : &fails) = room;
    }
    return opens;
}

// On one device: from the least memory on, layer by layer, until all fits.
static void same_bits_on(const struct mr_packed *packed, const char *device, bool two_pass)
{
    struct mr_engine_options opt = {2, 16, two_pass};
    struct limited l;
    check(open_limited(&l, packed, device, 0, &opt), &l.err);
    uint64_t all = hash_of(&l);
    struct mr_backend_stats stats;
    mr_backend_stats(l.b, &stats);
    assert_int_equal(stats.units, 0);
    assert_true(stats.link_bytes == 0);
    int n = mr_device_info(l.dev)->g.n, steps = 0;
    close_limited(&l);
    uint64_t least = least_room(packed, device, &opt);
    uint64_t slot = mr_stages_least(&packed->config, packed->format, n) / 2;
    for (uint64_t room = least;; room += slot, steps++) {
        alone = steps == 1;
        check(open_limited(&l, packed, device, room, &opt), &l.err);
        alone = false;
        assert_true(hash_of(&l) == all);
        mr_backend_stats(l.b, &stats);
        int units = stats.units;
        assert_int_equal(stats.streamed, units > 0 ? units - steps : 0);
        assert_int_equal(stats.link_bytes > 0, units > 0);
        close_limited(&l);
        if (units == 0)
            break;
        interrupts = steps > 0; // copies of what stays on the device
        if (steps > 0)
            assert_refused(open_limited(&l, packed, device, room, &opt), MR_ERR_INTERRUPTED, &l.err,
                           "interrupted");
    }
    assert_true(steps >= 1);
}

static void bits_do_not_depend_on_memory(void **state)
{
    static const char *const models[] = {"bf16-d32-r6", "bf16-d24"};
    (void)state;
    for (int m = 0; m < 2; m++)
        for (int fp4 = 0; fp4 < 2; fp4++) {
            struct fixture f;
            open_fixture(&f, models[m], fp4 ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8);
            same_bits_on(&f.packed, m == fp4 ? "model:tiny" : "model:wide", false);
            same_bits_on(&f.packed, "model:sim4", true);
            close_fixture(&f);
        }
}

// A head that is larger than a layer comes in pieces.
static void a_head_comes_in_pieces(void **state)
{
    static const struct mr_config c = {.arch = &mr_arch_gptj,
                                       .vocab_size = 2500,
                                       .n_positions = 40,
                                       .n_embd = 64,
                                       .n_layer = 5,
                                       .n_head = 2,
                                       .head_dim = 32,
                                       .rotary_dim = 8,
                                       .n_inner = 256,
                                       .layer_norm_epsilon = 1e-5F};
    static const char *const devices[] = {"model:tiny", "model:sim2", "model:wide"};
    static const int pieces[] = {3, 3, 5}; // of at most 14, 7 and 1 times 64 N columns
    struct mr_pack_options pack = {.smooth = true};
    struct mr_packed packed;
    struct mr_error err = {0};
    (void)state;
    check(mr_packed_synthetic(&packed, &c, &pack, 5, &err), &err);
    for (int d = 0; d < 3; d++) {
        struct mr_stages stages;
        int n = d == 0 ? 1 : d == 1 ? 2 : 8;
        uint64_t least = mr_stages_least(&c, packed.format, n);
        check(mr_stages_make(&stages, &c, packed.format, n, least, 0, &err), &err);
        assert_int_equal(stages.units, c.n_layer + pieces[d]);
        assert_int_equal(stages.count, stages.units);
        mr_stages_free(&stages);
        same_bits_on(&packed, devices[d], d == 1);
    }
    mr_packed_close(&packed);
}

// ---- the link ----------------------------------------------------------------------------------

static int nothing(void *arg, struct mr_error *err)
{
    (void)arg;
    (void)err;
    return 0;
}

// At 300 MHz a link of 12 GB/s carries 40 bytes a cycle, one of 24 GB/s 80.
static void waiting_is_counted_in_cycles(void **state)
{
    struct mr_device *dev;
    struct mr_mover *m;
    struct mr_error err = {0};
    struct mr_move a = {.work = nothing, .up = 4000}, b = {.work = nothing, .up = 8000},
                   c = {.work = nothing, .down = 4000};
    (void)state;
    check(mr_device_open(&dev, "model:sim", &err), &err);
    assert_int_equal(mr_device_info(dev)->clock_khz, 300000);
    check(mr_mover_new(&m, mr_device_info(dev)->clock_khz, mr_device_info(dev)->overlaps, &err),
          &err);
    mr_mover_begin(m, &a); // up until 100 and 50
    mr_mover_begin(m, &b); // until 300 and 150
    mr_mover_begin(m, &c); // down until 100 and 50, beside them
    check(mr_mover_end(m, &a, &err), &err);
    check(mr_mover_end(m, &c, &err), &err);
    struct mr_mover_stats s = mr_mover_stats(m);
    assert_true(s.up == 12000 && s.down == 4000);
    assert_true(s.waited[0] == 100 && s.waited[1] == 50);
    mr_mover_ran(m, 120); // until 220 and 170
    check(mr_mover_end(m, &b, &err), &err);
    s = mr_mover_stats(m);
    assert_true(s.waited[0] == 180 && s.waited[1] == 50);
    mr_mover_begin(m, &a); // from 300 and 170, until 400 and 220
    mr_mover_ran(m, 1000);
    check(mr_mover_end(m, &a, &err), &err);
    s = mr_mover_stats(m);
    assert_true(s.waited[0] == 180 && s.waited[1] == 50);
    mr_mover_free(m);
    mr_device_close(dev);
}

// A decode step is bound by the link, and a prompt by the array: of the RTL's own cycles.
static void a_prompt_hides_the_link(void **state)
{
    enum { ROWS = 16 };
    struct mr_engine_options opt = {.max_seqs = 1};
    struct fixture f;
    struct mr_backend_stats s[2][2]; // [again][decode]
    (void)state;
    open_fixture(&f, "bf16-d32-r6", MR_FORMAT_MXINT8);
    uint64_t room = least_room(&f.packed, "model:sim", &opt);
    for (int again = 0; again < 2; again++) {
        struct limited l;
        float *logits = allocate((size_t)f.vocab, sizeof *logits);
        check(open_limited(&l, &f.packed, "sim:sim", room, &opt), &l.err);
        struct mr_row rows[ROWS];
        for (int i = 0; i < ROWS; i++)
            rows[i] = (struct mr_row){l.seq[0], i, i == ROWS - 1};
        check(mr_backend_step(l.b, rows, ROWS, logits, &l.err), &l.err);
        mr_backend_stats(l.b, &s[again][0]);
        check(mr_backend_step(l.b, rows, 1, logits, &l.err), &l.err);
        mr_backend_stats(l.b, &s[again][1]);
        close_limited(&l);
        free(logits);
    }
    assert_memory_equal(s[0], s[1], sizeof s[0]);
    double waited[2], cycles[2];
    for (int i = 0; i < 2; i++) {
        const struct mr_backend_stats *prompt = &s[0][0], *all = &s[0][1];
        waited[i] = all->link_waited[i] - prompt->link_waited[i];
        cycles[i] = (double)(all->counter[MR_CNT_CYCLES] - prompt->counter[MR_CNT_CYCLES]);
        print_message("# %d GB/s: a prompt of %d waits %.0f of %.0f cycles, a token %.0f of %.0f\n",
                      12 * (i + 1), ROWS, prompt->link_waited[i],
                      (double)prompt->counter[MR_CNT_CYCLES], waited[i], cycles[i]);
    }
    assert_true(waited[0] >= waited[1]);
    // All of a pass's weights take this long; the two first stages are there when a step begins.
    double bytes = (double)s[0][1].link_bytes / 2;
    assert_true(cycles[0] + waited[0] >= bytes / 40 * (s[0][0].units - 2) / s[0][0].units);
    assert_true(waited[0] <= bytes / 40);
    close_fixture(&f);
}

// The third token after a prompt of 16 of the demo model.
static void plan_predicts_cycles_and_waiting(void **state)
{
    enum { PROMPT = 16 };
    struct mr_engine_options opt = {.max_seqs = 1};
    struct mr_pack_options pack = {.smooth = true};
    struct mr_plan_memory memory;
    struct mr_plan_streaming s;
    struct mr_packed packed;
    struct limited l;
    struct mr_backend_stats stats[2];
    struct mr_row rows[PROMPT];
    (void)state;
    check(mr_pack_directory(&packed, "models/demo", &pack, &l.err), &l.err);
    uint64_t room = least_room(&packed, "model:sim", &opt);
    check(open_limited(&l, &packed, "sim:sim", room, &opt), &l.err);
    float *logits = allocate((size_t)packed.config.vocab_size, sizeof *logits);
    for (int i = 0; i < PROMPT; i++)
        rows[i] = (struct mr_row){l.seq[0], i, i == PROMPT - 1};
    check(mr_backend_step(l.b, rows, PROMPT, logits, &l.err), &l.err);
    rows[0].want_logits = true;
    for (int token = 0; token < 3; token++) {
        mr_backend_stats(l.b, &stats[0]);
        check(mr_backend_step(l.b, rows, 1, logits, &l.err), &l.err);
    }
    mr_backend_stats(l.b, &stats[1]);
    check(mr_plan_memory_of(&memory, "ddr4-2400", &l.err), &l.err);
    const struct mr_plan_job job = {
        .model = &packed.config, .g = &mr_device_info(l.dev)->g, .memory = &memory, .head = true};
    const struct mr_plan_point at = {1, PROMPT + 2, 1};
    uint64_t least = mr_stages_least(&packed.config, packed.format, 1);
    check(mr_plan_streaming_of(&s, &job, least, 300, &at, &l.err), &l.err);
    assert_int_equal(s.units, stats[1].units);
    assert_int_equal(s.streamed, stats[1].streamed);
    assert_true(s.bytes == (double)(stats[1].link_bytes - stats[0].link_bytes));
    double cycles = (double)(stats[1].counter[MR_CNT_CYCLES] - stats[0].counter[MR_CNT_CYCLES]);
    print_message("# %.0f cycles, planned %.0f\n", cycles, s.cycles);
    assert_true(fabs(s.cycles - cycles) <= 0.01 * cycles);
    for (int i = 0; i < MR_LINKS; i++) {
        double waited = stats[1].link_waited[i] - stats[0].link_waited[i];
        print_message("# waited %.0f, planned %.0f\n", waited, s.waited[i]);
        assert_true(fabs(s.waited[i] - waited) <= 0.01 * cycles);
    }
    free(logits);
    close_limited(&l);
    mr_packed_close(&packed);
}

// ---- faults ------------------------------------------------------------------------------------

static const struct mr_device_ops *sound;
static int fails_in; // the so many-th write from now on of weights' size; -1: none

static int faulty_write(struct mr_device *dev, uint64_t addr, const void *data, size_t bytes,
                        struct mr_error *err)
{
    if (bytes > 16384 && fails_in >= 0 && fails_in-- == 0)
        return mr_fail(err, MR_ERR_DEVICE, "the link is down");
    return sound->write(dev, addr, data, bytes, err);
}

// Wherever a copy fails, the step fails with its error, and the same step goes on from there.
static void a_failed_copy_loses_nothing(void **state)
{
    enum { ROWS = 8 };
    struct mr_engine_options opt = {.max_seqs = 1};
    struct fixture f;
    (void)state;
    open_fixture(&f, "bf16-d32-r6", MR_FORMAT_MXINT8);
    size_t bytes = (size_t)f.vocab * sizeof(float);
    float *want = allocate((size_t)f.vocab, sizeof *want),
          *got = allocate((size_t)f.vocab, sizeof *got);
    uint64_t room = least_room(&f.packed, "model:sim", &opt);
    int failed = 0;
    for (int at = -1; at < 8; at++) {
        struct limited l;
        struct mr_device_ops ops;
        check(open_limited(&l, &f.packed, "model:sim", room, &opt), &l.err);
        sound = l.dev->ops;
        ops = *sound;
        ops.write = faulty_write;
        l.dev->ops = &ops;
        fails_in = at;
        struct mr_row rows[ROWS];
        for (int step = 0; step < 3; step++) {
            for (int i = 0; i < ROWS; i++)
                rows[i] = (struct mr_row){l.seq[0], 5 * i + step, i == ROWS - 1};
            int rc = mr_backend_step(l.b, rows, ROWS, got, &l.err);
            if (rc < 0) {
                assert_int_equal(rc, MR_ERR_DEVICE);
                assert_non_null(strstr(l.err.text, "weights did not get to the device: the link"));
                assert_int_equal(mr_engine_seq_length(l.b, l.seq[0]), step * ROWS);
                failed++;
                step--;
            }
        }
        if (at < 0)
            memcpy(want, got, bytes);
        assert_memory_equal(want, got, bytes);
        close_limited(&l);
    }
    assert_int_equal(failed, 8);
    free(want);
    free(got);
    close_fixture(&f);
}

static void capacity_is_an_option_of_all_devices(void **state)
{
    static const struct {
        const char *uri;
        uint64_t room;
    } good[] = {{"model:tiny,capacity=1M", 1 << 20},
                {"model:capacity=64K", 65536}, // of sim
                {"model:tiny,capacity=64k", 65536},
                {"model:sim4,capacity=8M,units=2", 2 << 20},
                {"model:wide,capacity=1G", (uint64_t)1 << 27},
                {"model:tinyt,capacity=12345", 12345}};
    static const char *const bad[] = {"model:sim,capacity=", "model:sim,capacity=0",
                                      "model:sim,capacity=1T", "model:sim,capacity=-1",
                                      "model:sim,capacity=1M,capacity=2M"};
    struct mr_error err = {0};
    struct mr_device *dev;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t addr;
        check(mr_device_open(&dev, good[i].uri, &err), &err);
        assert_true(mr_device_info(dev)->room == good[i].room);
        assert_int_equal(mr_device_alloc(dev, 0, good[i].room + 1, NULL, &addr, &err),
                         MR_ERR_MEMORY);
        mr_device_close(dev);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mr_device_open(&dev, bad[i], &err), MR_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_do_not_depend_on_memory),
        cmocka_unit_test(a_head_comes_in_pieces),
        cmocka_unit_test(waiting_is_counted_in_cycles),
        cmocka_unit_test(a_prompt_hides_the_link),
        cmocka_unit_test(plan_predicts_cycles_and_waiting),
        cmocka_unit_test(a_failed_copy_loses_nothing),
        cmocka_unit_test(capacity_is_an_option_of_all_devices),
    };
    return cmocka_run_group_tests_name("streaming", tests, NULL, NULL);
}
