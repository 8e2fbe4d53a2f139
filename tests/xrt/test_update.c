// SPDX-License-Identifier: Apache-2.0
// xrt: in emulation: the kernel `millrace_update` as a second compute unit, run by XRT on the
// memory of the card. Steps of a store that it does are those of a store on the host, byte for
// byte: state, header, and both streams in the memory that the engine reads. So are whole
// trainings. Run it with sim/xrt/run; XCLBINS names xclbins with one and with two channels,
// TRAINING one whose engine trains, WITHOUT_TRAINING one whose engine does not. XRT_PARTS=hangs: a
// kernel that never ends.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "card/update.h"
#include "checkpoint/synthetic.h"
#include "device/open.h"
#include "engine/engine.h"
#include "pack/packed.h"
#include "train/step.h"
#include "unit/hls/hls_streams.h"
#include "unit/memory_store.h"
#include "unit/store/store_steps.h"

enum { MOST_CHANNELS = 2 };

// Memory of the streams on the device, as a pass has it: Wt behind W, in each channel.
struct card {
    struct mr_device *dev;
    uint64_t addr[MOST_CHANNELS], beats[2];
    struct mr_device_streams streams;
    struct mr_card_update *update;
};

static uint64_t beats_of(const struct mr_store *s, bool turned, int channels)
{
    uint64_t beats = 0;
    for (int i = 0; i < mr_stream_items(&s->config); i++)
        for (int k = 0; k < (turned ? mr_store_segments(&s->config, i) : 1); k++) {
            struct mr_stream_item it = turned ? mr_store_turned_item(&s->config, i, k)
                                              : mr_stream_item(&s->config, MR_FORMAT_MXINT8, i);
            beats += (uint64_t)mr_item_beats(&it, channels);
        }
    return beats;
}

static void open_card(struct card *c, struct mr_store *s, const char *uri)
{
    struct mr_error err = {0};
    char why[160];
    *c = (struct card){0};
    check(mr_device_open(&c->dev, uri, &err), &err);
    c->streams.channels = mr_device_info(c->dev)->g.n;
    assert_in_range(c->streams.channels, 1, MOST_CHANNELS);
    for (int k = 0; k < 2; k++)
        c->beats[k] = beats_of(s, k, c->streams.channels);
    for (int i = 0; i < c->streams.channels; i++)
        check(mr_device_alloc(c->dev, i, (c->beats[0] + c->beats[1]) * MR_BEAT, NULL, &c->addr[i],
                              &err),
              &err);
    c->streams.stream[0] = c->addr[0];
    c->streams.stream[1] = c->addr[0] + c->beats[0] * MR_BEAT;
    c->streams.apart = c->addr[c->streams.channels - 1] - c->addr[0];
    check(mr_card_update_open(&c->update, s, c->dev, &c->streams, why, &err), &err);
    assert_string_equal(why, "");
    assert_non_null(c->update);
    assert_true(mr_card_update_bytes(c->update) > 12 * s->layout.elements);
}

static void close_card(struct card *c)
{
    mr_card_update_close(c->update);
    mr_device_close(c->dev);
}

static void same_streams(const struct card *c, const struct mr_store *want)
{
    struct mr_error err = {0};
    for (int k = 0; k < 2; k++) {
        uint64_t bytes = c->beats[k] * MR_BEAT;
        uint8_t *all = dealt(want, k, c->streams.channels, c->beats[k]);
        uint8_t *is = allocate(1, bytes);
        for (int i = 0; i < c->streams.channels; i++) {
            uint64_t at = c->addr[i] + (k ? c->beats[0] * MR_BEAT : 0);
            check(mr_device_read(c->dev, at, is, bytes, &err), &err);
            compare(is, all + (uint64_t)i * bytes, bytes, k ? "Wt" : "W", c->streams.channels);
        }
        free(is);
        free(all);
    }
}

// In step 1 some tensors are frozen, and others do not decay.
static int chosen_step(struct mr_store *s, int turn, struct mr_store_done *done,
                       struct mr_error *err)
{
    uint8_t choice[KEPT_TENSORS] = {0};
    if (turn != 1)
        return one_step(s, turn, done, err);
    for (size_t i = 0; i < mr_tensor_specs(mr_store_config(s)); i++)
        choice[i] = (uint8_t)(i % 3 == 1 ? MR_CHOICE_FROZEN : i % 2 ? MR_CHOICE_NO_DECAY : 0);
    struct mr_store_update u = update_of(s, NULL);
    mr_store_choose(s, choice);
    add_all(s, turn);
    int rc = mr_store_apply(s, &u, done, err);
    mr_store_choose(s, NULL);
    return rc;
}

// One store on the host, the other one's steps on the card: all bytes of their files are the same,
// and the streams of the one are what the card has.
static void steps_on(const char *model, const char *uri, int steps)
{
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    struct mr_volume *host_files, *card_files;
    struct mr_store_done a, b;
    struct card card;
    check(mr_checkpoint_open(&checkpoint, model, MR_DECODER, NULL, &err), &err);
    struct mr_store *host = memory_store(checkpoint, &host_files);
    struct mr_store *on_card = memory_store(checkpoint, &card_files);
    open_card(&card, on_card, uri);
    for (int step = 0; step < steps; step++) {
        check(chosen_step(host, step, &a, &err), &err);
        check(chosen_step(on_card, step, &b, &err), &err);
        assert_true(a.step == b.step && a.norm == b.norm);
        same_streams(&card, host);
        if (step == 1) // the streams of the host are made when they are asked for
            for (int k = 0; k < 2; k++) {
                uint8_t *x = dealt(host, k, 1, card.beats[k] * MOST_CHANNELS);
                uint8_t *y = dealt(on_card, k, 1, card.beats[k] * MOST_CHANNELS);
                compare(y, x, card.beats[k] * MOST_CHANNELS * MR_BEAT, "the host's", 1);
                free(x);
                free(y);
            }
    }
    for (int f = MR_V_HEADER; f <= MR_V_GRADIENTS; f++)
        compare(card_files->data[f], host_files->data[f], host_files->size[f],
                mr_volume_name((enum mr_volume_file)f), card.streams.channels);
    close_card(&card);
    mr_store_close(host);
    mr_store_close(on_card);
    mr_checkpoint_close(checkpoint);
    forget_regions();
}

static void each_xclbin(const char *model, const char *uri, int steps)
{
    char names[2048], *save = NULL;
    assert_non_null(getenv("XCLBINS"));
    (void)snprintf(names, sizeof names, "%s", getenv("XCLBINS"));
    for (char *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
        assert_int_equal(setenv("MILLRACE_XCLBIN", name, 1), 0);
        steps_on(model, uri, steps);
    }
}

static void xrt_steps_of_fixtures(void **state)
{
    (void)state;
    each_xclbin(TRAIN_FIXTURES "/gptj-d12-r4", "xrt:0,update=600", 3);
}

// More than a patch either way; the state in buffers of two patches each.
static void xrt_steps_in_several_buffers(void **state)
{
    static const struct mr_config c = {.vocab_size = 70,
                                       .n_positions = 8,
                                       .n_embd = 130,
                                       .n_layer = 1,
                                       .n_head = 2,
                                       .rotary_dim = 4,
                                       .n_inner = 1030,
                                       .eos_token_id = -1};
    struct mr_error err = {0};
    char model[512];
    (void)state;
    (void)snprintf(model, sizeof model, "%s", files_path("model"));
    assert_int_equal(mkdir(model, 0700), 0);
    check(mr_synthetic_write(model, &c, 7, &err), &err);
    each_xclbin(model, "xrt:0,bo=3,update=600", 2);
    remove_dir(model);
}

// ---- trainings ----------------------------------------------------------------------------------

static const struct mr_store_options plain;

// Steps of the state in `dir` from the one that it has on; the loss after each, on the weights that
// the device then has, is added to `loss`.
static void train(const char *dir, const char *uri, bool on_device, enum mr_update_kind kind,
                  int steps, struct mr_loss *loss)
{
    enum { TOKENS = 20, BATCHES = 2 };
    struct mr_error err = {0};
    struct mr_store *s;
    struct mr_device *dev;
    struct mr_step *step;
    struct mr_step_done done;
    const char *why;
    const struct mr_pass_options o = {.rows = TOKENS};
    check(mr_store_open(&s, dir, &plain, &err), &err);
    check(mr_device_open(&dev, uri, &err), &err);
    check(mr_step_open(&step, s, dev, &o, NULL, &err), &err);
    assert_true(mr_step_on_device(step, MR_ADAMW, &why) == on_device);
    assert_false(mr_step_on_device(step, kind, &why) && kind != MR_ADAMW);
    for (int end = (int)mr_store_step(s) + steps; (int)mr_store_step(s) < end;) {
        int lengths = TOKENS, tokens[TOKENS], targets[TOKENS];
        const struct mr_batch batch = {
            .n_sequences = 1, .lengths = &lengths, .tokens = tokens, .targets = targets};
        const struct mr_store_update u = {.adamw = {0.9, 0.99, 1e-8, 0.1, false, kind},
                                          .rate = 1e-2};
        check(mr_step_begin(step, BATCHES, &err), &err);
        for (int b = 0; b < BATCHES; b++) {
            for (int i = 0; i < TOKENS; i++) {
                uint64_t r = mix(mr_store_step(s) << 16 ^ (uint64_t)(b << 8 ^ i));
                tokens[i] = (int)(r % 37);
                targets[i] = (int)(r / 64 % 37);
            }
            check(mr_step_add(step, &batch, NULL, &err), &err);
        }
        check(mr_step_apply(step, &u, &done, &err), &err);
        check(mr_step_evaluate(step, &batch, loss, &err), &err);
    }
    mr_step_close(step);
    mr_device_close(dev);
    mr_store_close(s);
}

static void same_files(const char *is, const char *want)
{
    struct mr_error err = {0};
    struct mr_volume *a, *b;
    check(mr_volume_open(&a, is, &err), &err);
    check(mr_volume_open(&b, want, &err), &err);
    for (int f = MR_V_HEADER; f <= MR_V_GRADIENTS; f++) {
        assert_true(a->size[f] == b->size[f]);
        compare(a->data[f], b->data[f], a->size[f], mr_volume_name((enum mr_volume_file)f), 1);
    }
    a->close(a);
    b->close(b);
}

// Engine, stash, gradients and update on the card, through XRT; then half of it there and half of
// it on the host.
static void xrt_trainings(void **state)
{
    struct mr_error err = {0};
    struct mr_loss loss[3] = {{0}};
    char dir[3][512];
    (void)state;
    assert_non_null(getenv("TRAINING"));
    assert_int_equal(setenv("MILLRACE_XCLBIN", getenv("TRAINING"), 1), 0);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(dir[i], sizeof dir[i], "%s", files_path(i == 0 ? "a" : i == 1 ? "b" : "c"));
        check(mr_store_create(dir[i], TRAIN_FIXTURES "/gptj-d12-r4", &plain, &err), &err);
    }
    train(dir[0], "model:tinyt", false, MR_ADAMW, 2, &loss[0]);
    train(dir[1], "xrt:", true, MR_ADAMW, 2, &loss[1]);
    train(dir[2], "xrt:", true, MR_ADAMW, 1, &loss[2]);
    train(dir[2], "model:tinyt", false, MR_ADAMW, 1, &loss[2]);
    for (int i = 1; i < 3; i++) {
        same_files(dir[i], dir[0]);
        assert_memory_equal(&loss[i], &loss[0], sizeof loss[i]);
    }
    for (int i = 0; i < 3; i++)
        remove_dir(dir[i]);
}

// What the kernel does not have is the host's work, whose streams go to the card.
static void xrt_training_by_another_optimizer(void **state)
{
    struct mr_error err = {0};
    struct mr_loss loss[2] = {{0}};
    (void)state;
    assert_int_equal(setenv("MILLRACE_XCLBIN", getenv("TRAINING"), 1), 0);
    for (int i = 0; i < 2; i++) {
        char dir[512];
        (void)snprintf(dir, sizeof dir, "%s", files_path("adam"));
        check(mr_store_create(dir, TRAIN_FIXTURES "/gptj-d12-r4", &plain, &err), &err);
        train(dir, i ? "xrt:" : "model:tinyt", i, MR_ADAM, 1, &loss[i]);
        remove_dir(dir);
    }
    assert_memory_equal(&loss[1], &loss[0], sizeof loss[1]);
}

// ---- an engine without training's commands reads what the kernel has just written
// -----------------

static struct {
    const struct mr_device_ops *ops; // the device's own
    uint64_t addr[MOST_CHANNELS], bytes;
    int asked; // how often weights were to be put on the device
} in_place;

// Weights are on the device already: nothing is copied.
static int alloc_in_place(struct mr_device *dev, int channel, size_t bytes, const void *map,
                          uint64_t *addr, struct mr_error *err)
{
    if (!map)
        return in_place.ops->alloc(dev, channel, bytes, map, addr, err);
    assert_true(bytes == in_place.bytes);
    *addr = in_place.addr[channel];
    in_place.asked++;
    return 0;
}

static void logits_of(struct mr_device *dev, const struct mr_packed *packed, float *logits)
{
    enum { ROWS = 6 };
    static const struct mr_engine_options one = {.max_seqs = 1};
    struct mr_error err = {0};
    struct mr_backend *b;
    struct mr_row row[ROWS];
    int seq;
    check(mr_engine_open(&b, packed, dev, &one, &err), &err);
    check(mr_backend_seq_new(b, &seq, &err), &err);
    for (int i = 0; i < ROWS; i++)
        row[i] = (struct mr_row){seq, 5 * i + 3, i == ROWS - 1};
    check(mr_backend_step(b, row, ROWS, logits, &err), &err);
    mr_backend_close(b);
}

static void xrt_engine_reads_what_was_written(void **state)
{
    static const struct mr_pack_options plain_weights = {.smooth = false};
    struct mr_error err = {0};
    struct mr_store_done done;
    struct mr_packed packed;
    struct mr_store *s;
    struct mr_device *model;
    struct card card;
    char dir[512], exported[512];
    (void)state;
    (void)snprintf(dir, sizeof dir, "%s", files_path("d"));
    (void)snprintf(exported, sizeof exported, "%s", files_path("exported"));
    assert_non_null(getenv("WITHOUT_TRAINING"));
    assert_int_equal(setenv("MILLRACE_XCLBIN", getenv("WITHOUT_TRAINING"), 1), 0);
    check(mr_store_create(dir, TRAIN_FIXTURES "/gptj-d12-r4", &plain, &err), &err);
    check(mr_store_open(&s, dir, &plain, &err), &err);
    open_card(&card, s, "xrt:0,update=600");
    assert_false(mr_device_info(card.dev)->g.train);
    for (int step = 0; step < 2; step++)
        check(one_step(s, step, &done, &err), &err);
    check(mr_store_export(s, exported, MR_DTYPE_F32, NULL, &err), &err);
    check(mr_pack_directory(&packed, exported, &plain_weights, &err), &err);

    size_t vocab = (size_t)packed.config.vocab_size;
    float *want = allocate(vocab, sizeof *want), *is = allocate(vocab, sizeof *is);
    check(mr_device_open(&model, "model:tiny", &err), &err);
    logits_of(model, &packed, want);
    mr_device_close(model);

    struct mr_device_ops ops = *card.dev->ops;
    in_place.ops = card.dev->ops;
    in_place.bytes = card.beats[0] * MR_BEAT;
    in_place.asked = 0;
    memcpy(in_place.addr, card.addr, sizeof card.addr);
    ops.alloc = alloc_in_place;
    card.dev->ops = &ops;
    logits_of(card.dev, &packed, is);
    card.dev->ops = in_place.ops;
    assert_int_equal(in_place.asked, card.streams.channels);
    compare(is, want, vocab * sizeof *want, "logits", 1);
    free(want);
    free(is);
    mr_packed_close(&packed);
    close_card(&card);
    mr_store_close(s);
    remove_dir(dir);
    remove_dir(exported);
    forget_regions();
}

// The kernel of this simulator never ends: the step fails, and is completed by the host when the
// state is opened again.
static void xrt_update_that_hangs(void **state)
{
    struct mr_error err = {0};
    struct mr_store_done a, b;
    struct card card;
    struct mr_store *s[2];
    char dir[2][512];
    (void)state;
    for (int i = 0; i < 2; i++) {
        (void)snprintf(dir[i], sizeof dir[i], "%s", files_path(i ? "card" : "host"));
        check(mr_store_create(dir[i], TRAIN_FIXTURES "/gptj-d12-r4", &plain, &err), &err);
        check(mr_store_open(&s[i], dir[i], &plain, &err), &err);
    }
    check(one_step(s[0], 0, &a, &err), &err);
    open_card(&card, s[1], "xrt:0,update=2");
    assert_int_equal(one_step(s[1], 0, &b, &err), MR_ERR_DEVICE);
    assert_non_null(strstr(err.text, "millrace_update_1 has not ended an update within 2 s"));
    assert_non_null(strstr(err.text, "completed when the state is opened again"));
    assert_int_equal(mr_store_step(s[1]), 0);
    close_card(&card);
    mr_store_close(s[1]);
    check(mr_store_open(&s[1], dir[1], &plain, &err), &err);
    assert_int_equal(mr_store_step(s[1]), 1);
    compare(s[1]->volume->data[MR_V_STATE], s[0]->volume->data[MR_V_STATE],
            s[0]->volume->size[MR_V_STATE], "the state", 1);
    for (int i = 0; i < 2; i++) {
        mr_store_close(s[i]);
        remove_dir(dir[i]);
    }
    forget_regions();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xrt_steps_of_fixtures),
        cmocka_unit_test(xrt_steps_in_several_buffers),
        cmocka_unit_test(xrt_trainings),
        cmocka_unit_test(xrt_training_by_another_optimizer),
        cmocka_unit_test(xrt_engine_reads_what_was_written),
    };
    const struct CMUnitTest hangs[] = {cmocka_unit_test(xrt_update_that_hangs)};
    const char *parts = getenv("XRT_PARTS");
    if (parts && strcmp(parts, "hangs") == 0)
        return cmocka_run_group_tests_name("update", hangs, files_setup, files_teardown);
    return cmocka_run_group_tests_name("update", tests, files_setup, files_teardown);
}
