// SPDX-License-Identifier: Apache-2.0
// Training with less device memory than all layers take: the bits of a device that holds them, from
// the least memory on, layer by layer; what a link would cost; copies that fail.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/configs.h"
#include "device/open.h"
#include "store/choice.h"
#include "train/pass.h"
#include "unit/check.h"
#include "unit/fixtures.h"
#include "unit/memory_store.h"
#include "unit/odd_model.h"

enum { LAYERS = 6, ROWS = 45, SEQUENCES = 3 };

struct subject {
    struct mr_checkpoint *checkpoint;
    const struct mr_config *config;
    struct mr_volume *volume;
    struct mr_store *store;
    int tokens[ROWS], targets[ROWS];
    struct mr_batch batch;
};

static const int lengths[SEQUENCES] = {16, 13, 16};

static void subject_open(struct subject *s, const char *type)
{
    struct mr_error err = {0};
    odd_model(type, LAYERS, 70);
    check(mr_checkpoint_open(&s->checkpoint, files_path(type), MR_DECODER, NULL, &err), &err);
    s->config = mr_checkpoint_config(s->checkpoint);
    s->store = memory_store(s->checkpoint, &s->volume);
    for (int i = 0; i < ROWS; i++) {
        s->tokens[i] = i * 37 % 96;
        s->targets[i] = i % 9 == 4 ? MR_NO_TARGET : i * 53 % 96;
    }
    s->batch = (struct mr_batch){
        .n_sequences = SEQUENCES, .lengths = lengths, .tokens = s->tokens, .targets = s->targets};
}

static void subject_close(struct subject *s)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s", files_path(s->config->arch->type));
    mr_store_close(s->store);
    mr_checkpoint_close(s->checkpoint);
    remove_dir(path);
}

// ---- a device with so much memory ---------------------------------------------------------------

struct limited {
    struct mr_device *dev;
    struct mr_pass *pass;
    struct mr_error err;
};

static bool alone; // copies are made between runs, not beside them

static int open_limited(struct limited *l, const struct subject *s, const char *device,
                        uint64_t room, struct mr_pass_options o)
{
    *l = (struct limited){0};
    o.rows = ROWS;
    check(mr_device_open(&l->dev, device, &l->err), &l->err);
    l->dev->info.room = room;
    l->dev->info.overlaps &= !alone;
    int rc = mr_pass_open(&l->pass, l->dev, s->config, &o, &l->err);
    if (rc == 0)
        check(mr_pass_weights(l->pass, s->store, &l->err), &l->err);
    else
        mr_device_close(l->dev);
    return rc;
}

static void close_limited(struct limited *l)
{
    mr_pass_close(l->pass);
    mr_device_close(l->dev);
}

static uint64_t hash_of(const struct subject *s, const struct limited *l,
                        const struct mr_loss *loss)
{
    uint64_t h = fnv(0xCBF29CE484222325u, &loss->sum, sizeof loss->sum);
    for (size_t i = 0; i < mr_tensor_specs(s->config); i++) {
        struct mr_pass_gradient g = mr_pass_gradient(l->pass, i);
        size_t tiles = (size_t)(g.rows + 31) / 32 * (size_t)(g.cols / 64);
        const int32_t head[] = {g.unit, (int32_t)g.peak, g.too_large, g.tiles != NULL};
        h = fnv(h, head, sizeof head);
        if (g.tiles)
            h = fnv(h, g.tiles, tiles * 2048 * sizeof *g.tiles);
    }
    size_t stride;
    const float *rows = mr_pass_row_gradient(l->pass, &stride);
    return fnv(h, rows, ROWS * stride * sizeof *rows);
}

// Two passes, and between them one without gradients.
static uint64_t train(const struct subject *s, struct limited *l)
{
    struct mr_loss loss = {0}, alone_loss = {0};
    uint64_t h = 0;
    for (int k = 0; k < 2; k++) {
        check(mr_pass_run(l->pass, &s->batch, &loss, &l->err), &l->err);
        h = fnv(h, &(uint64_t){hash_of(s, l, &loss)}, sizeof h);
        if (k == 0)
            check(mr_pass_evaluate(l->pass, &s->batch, &alone_loss, &l->err), &l->err);
    }
    assert_true(2 * alone_loss.sum == loss.sum);
    return h;
}

static uint64_t grains(uint64_t bytes)
{
    return (bytes + MR_DEVICE_GRAIN - 1) / MR_DEVICE_GRAIN * MR_DEVICE_GRAIN;
}

// The least memory of a channel with which training opens, and no more than `most` units stream.
static uint64_t least_room(const struct subject *s, const char *device, struct mr_pass_options o,
                           int most)
{
    uint64_t fails = 0, opens = (uint64_t)1 << 30;
    while (opens - fails > MR_DEVICE_GRAIN) {
        struct limited l;
        uint64_t room = grains((fails + opens) / 2);
        int rc = open_limited(&l, s, device, room, o);
        bool few = rc == 0 && mr_pass_streaming(l.pass).streamed <= most;
        if (rc == 0)
            close_limited(&l);
        else {
            assert_int_equal(rc, MR_ERR_FIT);
            assert_non_null(strstr(l.err.text, "is too small for training"));
        }
        *(few ? &opens : &fails) = room;
    }
    return opens;
}

// ---- bits ---------------------------------------------------------------------------------------

static void same_bits_on(const struct subject *s, const char *device, struct mr_pass_options o)
{
    struct limited l;
    check(open_limited(&l, s, device, 0, o), &l.err);
    uint64_t all = train(s, &l);
    struct mr_pass_streaming none = mr_pass_streaming(l.pass);
    assert_true(none.streamed == 0 && none.units == LAYERS + 1 && none.up + none.down == 0);
    close_limited(&l);
    uint64_t before = 0;
    for (int streamed = LAYERS + 1; streamed >= 0; streamed--) {
        if (streamed == 1 || streamed == 2)
            continue; // as much memory as all take
        uint64_t room = least_room(s, device, o, streamed);
        alone = streamed == 4;
        check(open_limited(&l, s, device, room, o), &l.err);
        alone = false;
        struct mr_pass_streaming has = mr_pass_streaming(l.pass);
        printf("# %s, %s%s: %llu bytes a channel, %d of %d units stream\n", s->config->arch->type,
               device, o.recompute ? " again" : "", (unsigned long long)room, has.streamed,
               has.units);
        assert_int_equal(has.streamed, streamed);
        assert_true(room > before);
        assert_true(train(s, &l) == all);
        has = mr_pass_streaming(l.pass);
        assert_int_equal(has.up > 0, streamed > 0);
        close_limited(&l);
        before = room;
    }
}

static void bits_do_not_depend_on_memory(void **unused)
{
    static const char *const types[] = {"gptj", "gpt2"};
    (void)unused;
    for (int t = 0; t < 2; t++) {
        struct subject s;
        subject_open(&s, types[t]);
        same_bits_on(&s, t ? "model:sim,train" : "model:tinyt", (struct mr_pass_options){0});
        same_bits_on(&s, t ? "model:tinyt" : "model:wide,train",
                     (struct mr_pass_options){.chunk = 32});
        same_bits_on(&s, "model:tinyt", (struct mr_pass_options){.recompute = true});
        subject_close(&s);
    }
}

// What is frozen has no sums that leave, and what lies below all that learns does not come back.
static void frozen_layers_stay_where_they_are(void **unused)
{
    (void)unused;
    struct subject s;
    struct mr_error err = {0};
    uint8_t choice[128] = {0};
    const char *const patterns[] = {"*", "!*.h.4.*", "!*.h.5.mlp.*", NULL};
    subject_open(&s, "gpt2");
    assert_true(mr_tensor_specs(s.config) <= sizeof choice);
    check(mr_choose(choice, s.config, MR_CHOICE_FROZEN, patterns, "test", &err), &err);
    same_bits_on(&s, "model:tinyt", (struct mr_pass_options){.choice = choice});
    struct limited some, all;
    uint64_t room = least_room(&s, "model:tinyt", (struct mr_pass_options){0}, LAYERS + 1);
    check(open_limited(&all, &s, "model:tinyt", room, (struct mr_pass_options){0}), &all.err);
    room = least_room(&s, "model:tinyt", (struct mr_pass_options){.choice = choice}, LAYERS + 1);
    check(open_limited(&some, &s, "model:tinyt", room, (struct mr_pass_options){.choice = choice}),
          &some.err);
    (void)train(&s, &all);
    (void)train(&s, &some);
    struct mr_pass_streaming a = mr_pass_streaming(all.pass), b = mr_pass_streaming(some.pass);
    assert_int_equal(a.streamed, b.streamed);
    assert_true(b.up < a.up && 2 * b.down < a.down);
    close_limited(&some);
    close_limited(&all);
    subject_close(&s);
}

// A step of six layers in the memory of three, on the RTL: the bits of the C model that holds all.
static void the_rtl_streams(void **unused)
{
    (void)unused;
    struct subject s;
    struct limited l;
    struct mr_pass_options o = {0};
    subject_open(&s, "gptj");
    check(open_limited(&l, &s, "model:tinyt", 0, o), &l.err);
    uint64_t want = train(&s, &l);
    close_limited(&l);
    uint64_t room = least_room(&s, "model:tinyt", o, LAYERS);
    check(open_limited(&l, &s, "sim:tinyt", room, o), &l.err);
    assert_true(train(&s, &l) == want);
    struct mr_pass_streaming has = mr_pass_streaming(l.pass);
    double cycles = (double)mr_pass_counts(l.pass).counter[MR_CNT_CYCLES];
    assert_int_equal(has.streamed, LAYERS);
    printf("# %d of %d units stream, %.0f cycles; of 12 GB/s %.0f more, of 24 %.0f\n", has.streamed,
           has.units, cycles, has.waited[0], has.waited[1]);
    assert_true(has.waited[0] >= has.waited[1] && has.up > 0 && has.down > 0);
    close_limited(&l);
    subject_close(&s);
}

// ---- what a link costs --------------------------------------------------------------------------

static int takes(void *arg, const struct mr_pass_program *program)
{
    (void)program;
    void **of = arg;
    mr_pass_took(of[0], *(double *)of[1]);
    return 0;
}

// Programs of so many cycles each, in a plan of `capacity` bytes: at 300 MHz a link of 12 GB/s
// carries 40 bytes a cycle, one of 24 GB/s 80.
static struct mr_pass_streaming planned(const struct subject *s, uint64_t capacity, double cycles)
{
    struct mr_error err = {0};
    struct mr_pass *plan;
    struct mr_pass_options o = {.rows = ROWS, .capacity = capacity, .clock_khz = 300000};
    check(mr_pass_plan(&plan, &mr_config_named("tinyt")->g, "tinyt", s->config, &o, &err), &err);
    void *of[] = {plan, &cycles};
    check(mr_pass_programs(plan, lengths, SEQUENCES, takes, of, &err), &err);
    struct mr_pass_streaming has = mr_pass_streaming(plan);
    struct mr_pass_memory m = mr_pass_memory(plan);
    assert_true(capacity == 0 || mr_pass_bytes(&m) <= capacity);
    mr_pass_close(plan);
    return has;
}

static void a_plan_knows_what_crosses_the_link(void **unused)
{
    (void)unused;
    struct subject s;
    struct limited l;
    struct mr_loss loss = {0};
    subject_open(&s, "gpt2");
    uint64_t room = least_room(&s, "model:tinyt", (struct mr_pass_options){0}, LAYERS + 1);
    check(open_limited(&l, &s, "model:tinyt", room, (struct mr_pass_options){0}), &l.err);
    check(mr_pass_run(l.pass, &s.batch, &loss, &l.err), &l.err);
    struct mr_pass_streaming is = mr_pass_streaming(l.pass);
    struct mr_pass_streaming slow = planned(&s, room, 0), fast = planned(&s, room, 1e9);
    assert_true(planned(&s, 0, 0).streamed == 0);
    assert_true(slow.streamed == is.streamed && slow.up == is.up && slow.down == is.down);
    // An engine that takes no time waits for all but the last sums on their way out.
    for (int i = 0; i < MR_LINKS; i++) {
        double rate = 40.0 * (i + 1);
        assert_true(slow.waited[i] * rate >= (double)is.up);
        assert_true(slow.waited[i] * rate <= (double)(is.up + is.down));
    }
    // A slow one waits for the first layer's W alone.
    assert_true(fast.waited[0] > 0 && fast.waited[0] * 40 < (double)is.up / LAYERS);
    assert_true(fabs(fast.waited[0] - 2 * fast.waited[1]) < 1e-6 * fast.waited[0]);
    close_limited(&l);
    subject_close(&s);
}

// ---- faults -------------------------------------------------------------------------------------

static const struct mr_device_ops *sound;
static int fails_in; // the so many-th copy of such a size from now on; -1: none
static bool reads;   // of those from the device

static int faulty_write(struct mr_device *dev, uint64_t addr, const void *data, size_t bytes,
                        struct mr_error *err)
{
    if (!reads && bytes >= 1024 && fails_in >= 0 && fails_in-- == 0)
        return mr_fail(err, MR_ERR_DEVICE, "the link is down");
    return sound->write(dev, addr, data, bytes, err);
}

static int faulty_read(struct mr_device *dev, uint64_t addr, void *data, size_t bytes,
                       struct mr_error *err)
{
    if (reads && bytes >= 1024 && fails_in >= 0 && fails_in-- == 0)
        return mr_fail(err, MR_ERR_DEVICE, "the link is down");
    return sound->read(dev, addr, data, bytes, err);
}

// Wherever a copy fails, the pass fails with its error, and the next one has its bits.
static void a_failed_copy_loses_nothing(void **unused)
{
    (void)unused;
    struct subject s;
    struct limited l;
    struct mr_pass_options o = {0};
    int failed[2] = {0, 0};
    subject_open(&s, "gptj");
    uint64_t room = least_room(&s, "model:tinyt", o, LAYERS + 1);
    check(open_limited(&l, &s, "model:tinyt", room, o), &l.err);
    uint64_t want = train(&s, &l);
    struct mr_device_ops ops = *(sound = l.dev->ops);
    ops.write = faulty_write;
    ops.read = faulty_read;
    l.dev->ops = &ops;
    for (int k = 0; k < 2; k++)
        for (int at = 0;; at += k ? 2 : 11) {
            struct mr_loss loss = {0};
            reads = k;
            fails_in = at;
            int rc = mr_pass_run(l.pass, &s.batch, &loss, &l.err);
            bool was = fails_in < 0;
            fails_in = -1;
            assert_int_equal(rc, was ? MR_ERR_DEVICE : 0);
            if (!was)
                break;
            assert_non_null(strstr(l.err.text, "the link is down"));
            failed[k]++;
        }
    printf("# %d passes with a write that fails, %d with a read\n", failed[0], failed[1]);
    assert_true(failed[0] > 5 && failed[1] > 5);
    assert_true(train(&s, &l) == want);
    close_limited(&l);
    subject_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_do_not_depend_on_memory),
        cmocka_unit_test(frozen_layers_stay_where_they_are),
        cmocka_unit_test(the_rtl_streams),
        cmocka_unit_test(a_plan_knows_what_crosses_the_link),
        cmocka_unit_test(a_failed_copy_loses_nothing),
    };
    return cmocka_run_group_tests_name("streamed training", tests, files_setup, files_teardown);
}
