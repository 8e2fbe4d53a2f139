// SPDX-License-Identifier: Apache-2.0
// mr_trainer_*: the public interface of training, on a small odd model.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_write.h"
#include "checkpoint/synthetic.h"
#include "common/file.h"
#include "millrace.h"
#include "unit/store_dirs.h"

enum { VOCAB = 37, HEAD = VOCAB * 36 };
#define MODEL TRAIN_FIXTURES "/gptj-d12-r4"

static const int32_t lengths[] = {3, 4}, tokens[] = {5, 6, 7, 1, 2, 3, 4};
static const struct mr_micro_batch plain = {.sequences = 2, .lengths = lengths, .tokens = tokens};
static const struct mr_trainer_update adamw = {
    .rate = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .clip = 1};

static struct mr_trainer *open_new(const char *name)
{
    struct mr_error err = {0};
    struct mr_trainer *t;
    check(mr_trainer_create(files_path(name), MODEL, 0, &err), &err);
    check(mr_trainer_open(&t, files_path(name), "model:tinyt", NULL, &err), &err);
    return t;
}

static void drop(struct mr_trainer *t, const char *name)
{
    mr_trainer_close(t);
    remove_dir(files_path(name));
}

static float *tensor(const struct mr_trainer *t, const char *name, size_t n, bool gradient)
{
    struct mr_error err = {0};
    float *x = allocate(n, sizeof *x);
    check((gradient ? mr_trainer_gradient : mr_trainer_weights)(t, name, x, n, &err), &err);
    return x;
}

static struct mr_trainer_done step(struct mr_trainer *t, const struct mr_micro_batch *b, int n)
{
    struct mr_error err = {0};
    struct mr_trainer_done done;
    check(mr_trainer_begin(t, n, &err), &err);
    for (int k = 0; k < n; k++)
        check(mr_trainer_backward(t, b, NULL, &err), &err);
    check(mr_trainer_apply(t, &adamw, &done, &err), &err);
    return done;
}

// A small step moves the loss by the gradient times the way. Steps before it take weights off the
// places where they round half up.
static void a_step_lowers_the_loss_by_its_gradient(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_trainer *t = open_new("state");
    struct mr_trainer_info info;
    struct mr_batch_loss before, after, here;
    struct mr_trainer_done done;
    struct mr_trainer_update u = adamw;
    double expected = 0;
    u.rate = 5e-4;
    mr_trainer_get_info(t, &info);
    for (int k = 0; k < 3; k++)
        (void)step(t, &plain, 1);
    float **gradient = allocate(info.tensors, sizeof *gradient);
    float **weights = allocate(info.tensors, sizeof *weights);
    check(mr_trainer_evaluate(t, &plain, &before, &err), &err);
    assert_int_equal(before.targets, 5); // the last token of a sequence has none
    check(mr_trainer_begin(t, 2, &err), &err);
    float one;
    assert_int_equal(mr_trainer_gradient(t, "lm_head.bias", &one, 1, &err), MR_ERR_USAGE);
    for (int k = 0; k < 2; k++) {
        check(mr_trainer_backward(t, &plain, &here, &err), &err);
        assert_true(here.loss == before.loss && here.targets == 5);
    }
    uint64_t parameters = 0;
    for (size_t i = 0; i < info.tensors; i++) {
        size_t n;
        char name[128];
        (void)snprintf(name, sizeof name, "%s", mr_trainer_tensor(t, i, &n));
        gradient[i] = tensor(t, name, n, true);
        weights[i] = tensor(t, name, n, false);
        parameters += n;
    }
    assert_int_equal(parameters, info.parameters);
    assert_null(mr_trainer_tensor(t, info.tensors, NULL));
    check(mr_trainer_apply(t, &u, &done, &err), &err);
    assert_true(done.step == 4 && done.targets == 10 && done.loss == before.loss);
    double norm = 0;
    for (size_t i = 0; i < info.tensors; i++) {
        size_t n;
        const char *name = mr_trainer_tensor(t, i, &n);
        char own[128];
        (void)snprintf(own, sizeof own, "%s", name);
        float *moved = tensor(t, own, n, false);
        for (size_t k = 0; k < n; k++) {
            double g = (double)gradient[i][k] / 10;
            expected += g * ((double)moved[k] - (double)weights[i][k]);
            norm += g * g;
        }
        free(moved);
        free(weights[i]);
        free(gradient[i]);
    }
    free(weights);
    free(gradient);
    check(mr_trainer_evaluate(t, &plain, &after, &err), &err);
    print_message("# loss %.6f, moved by %.6f, by the gradient %.6f\n", before.loss,
                  after.loss - before.loss, expected);
    assert_true(fabs(done.norm / sqrt(norm) - 1) < 1e-6);
    assert_true(expected < -0.001);
    assert_true(fabs((after.loss - before.loss) / expected - 1) < 0.5);
    drop(t, "state");
}

static void what_is_saved_is_what_was_learnt(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_trainer *t = open_new("state"), *again;
    unsigned char note[MR_TRAINER_NOTE] = "a note";
    struct mr_trainer_done done;
    struct mr_trainer_update u = adamw;
    struct mr_trainer_info info;
    struct mr_checkpoint *saved;
    u.note = note;
    check(mr_trainer_begin(t, 1, &err), &err);
    check(mr_trainer_backward(t, &plain, NULL, &err), &err);
    check(mr_trainer_apply(t, &u, &done, &err), &err);
    assert_int_equal(mr_trainer_open(&again, files_path("state"), "model:tinyt", NULL, &err),
                     MR_ERR_IO); // somebody has it
    assert_null(again);
    check(mr_trainer_save(t, files_path("out"), MR_SAVE_F32, &err), &err);
    assert_true(mr_trainer_save(t, files_path("out"), MR_SAVE_F32, &err) < 0);
    assert_refused(mr_trainer_save(t, files_path("other"), (enum mr_save_format)3, &err),
                   MR_ERR_USAGE, &err, "there is no format 3 to save as");
    assert_int_equal(access(files_path("other"), F_OK), -1);
    mr_trainer_close(t);
    check(mr_trainer_open(&t, files_path("state"), "model:sim,train", NULL, &err), &err);
    mr_trainer_get_info(t, &info);
    assert_true(info.step == 1 && info.vocab_size == VOCAB);
    assert_memory_equal(info.note, note, sizeof note);
    check(mr_checkpoint_open(&saved, files_path("out"), MR_DECODER, NULL, &err), &err);
    for (size_t i = 0; i < info.tensors; i++) {
        size_t n;
        char name[128];
        (void)snprintf(name, sizeof name, "%s", mr_trainer_tensor(t, i, &n));
        struct mr_tensor_spec s = mr_tensor_spec(mr_checkpoint_config(saved), i);
        int layer = s.layer < 0 ? mr_checkpoint_config(saved)->n_layer : s.layer;
        float *want = tensor(t, name, n, false), *got = allocate(n, sizeof *got);
        read_tensor(mr_checkpoint_item(saved, layer, s.item, s.part), got);
        assert_memory_equal(got, want, n * sizeof *got);
        free(want);
        free(got);
    }
    mr_checkpoint_close(saved);
    (void)step(t, &plain, 1); // brings no note, and that of the step before is not this one's
    mr_trainer_get_info(t, &info);
    memset(note, 0, sizeof note);
    assert_true(info.step == 2);
    assert_memory_equal(info.note, note, sizeof note);
    remove_dir(files_path("out"));
    drop(t, "state");
}

// A mask is the same as targets that are not there.
static void masks_hide_targets(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_trainer *a = open_new("a"), *b = open_new("b");
    static const uint8_t mask[] = {0, 1, 0, 1, 1, 0, 0};
    static const int32_t targets[] = {-1, 7, -1, 2, 3, -1, -1};
    struct mr_micro_batch masked = plain, named = plain;
    masked.mask = mask;
    named.targets = targets;
    struct mr_trainer_done x = step(a, &masked, 2), y = step(b, &named, 2);
    assert_true(x.loss == y.loss && x.norm == y.norm && x.targets == 6 && y.targets == 6);
    float *p = tensor(a, "lm_head.weight", HEAD, false);
    float *q = tensor(b, "lm_head.weight", HEAD, false);
    assert_memory_equal(p, q, HEAD * sizeof *p);
    free(p);
    free(q);
    // Both at once: the mask chooses among the targets.
    static const uint8_t all[] = {0, 1, 0, 1, 1, 1, 0};
    named.mask = all;
    check(mr_trainer_begin(b, 1, &err), &err);
    assert_int_equal(mr_trainer_backward(b, &named, NULL, &err), MR_ERR_USAGE);
    assert_non_null(strstr(err.text, "token 5 of the batch has no target, but mask[5]"));
    drop(a, "a");
    drop(b, "b");
}

static void refused(struct mr_trainer *t, const struct mr_micro_batch *b, const char *words)
{
    struct mr_error err = {0};
    if (mr_trainer_backward(t, b, NULL, &err) != MR_ERR_USAGE || !strstr(err.text, words))
        fail_msg("expected '%s', got %d: %s", words, err.status, err.text);
}

static void bad_batches_are_refused(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_trainer *t = open_new("state");
    struct mr_trainer_info info;
    struct mr_micro_batch b = plain;
    mr_trainer_get_info(t, &info);
    const int32_t long_one[] = {info.n_positions + 1}, none[] = {0, 7},
                  beyond[] = {5, VOCAB, 7, 1, 2, 3, 4}, below[] = {-2, 1, 1, 1, 1, 1, 1};
    static const uint8_t hidden[7] = {0}, two[] = {2, 0, 0, 0, 0, 0, 0},
                         last[] = {0, 0, 1, 0, 0, 0, 0};
    refused(t, &plain, "before a step begins");
    check(mr_trainer_begin(t, 1, &err), &err);
    b.lengths = long_one;
    b.sequences = 1;
    refused(t, &b, "tokens; 1 to");
    b.sequences = 0;
    refused(t, &b, "no sequence");
    b = plain;
    b.lengths = none;
    refused(t, &b, "0 tokens");
    b = plain;
    b.tokens = beyond;
    refused(t, &b, "the vocabulary has 37");
    b = plain;
    b.targets = beyond;
    refused(t, &b, "target 1 of the batch is 37");
    b.targets = below;
    refused(t, &b, "target 0 of the batch is -2");
    b = plain;
    b.mask = hidden;
    refused(t, &b, "nothing to learn");
    b.mask = two;
    refused(t, &b, "mask[0] is 2");
    b.mask = last;
    refused(t, &b, "token 2 of the batch has no target");
    float x[4];
    check(mr_trainer_backward(t, &plain, NULL, &err), &err);
    assert_int_equal(mr_trainer_gradient(t, "lm_head.nonesuch", x, 4, &err), MR_ERR_USAGE);
    assert_int_equal(mr_trainer_gradient(t, "lm_head.bias", x, 4, &err), MR_ERR_USAGE);
    assert_non_null(strstr(err.text, "has 37 elements, not 4"));
    struct mr_trainer_done done;
    struct mr_trainer_update u = adamw;
    u.rate = NAN;
    assert_int_equal(mr_trainer_apply(t, &u, &done, &err), MR_ERR_USAGE);
    mr_trainer_get_info(t, &info);
    assert_int_equal(info.step, 0);
    drop(t, "state");
}

static void devices_that_cannot_train_are_refused(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_trainer *t = open_new("state");
    mr_trainer_close(t);
    const struct mr_trainer_options none = {.tokens = -1}, odd = {.chunk = 33};
    static const char *const uris[] = {"model:tiny", "cpu:", "nonesuch:", "sim:u50,memory=hbm2"};
    for (size_t i = 0; i < sizeof uris / sizeof *uris; i++) {
        int rc = mr_trainer_open(&t, files_path("state"), uris[i], NULL, &err);
        assert_true(rc < 0);
        assert_null(t);
        assert_true(i != 1 || strstr(err.text, "device cpu: cannot train"));
        assert_true(i != 3 ||
                    strstr(err.text, "hbm2 cannot train; with ',train'"));  // not: build it
        assert_int_equal(mr_trainer_check(MODEL, uris[i], NULL, &err), rc); // without a state
    }
    assert_int_equal(mr_trainer_check(MODEL, "model:tinyt", &none, &err), MR_ERR_USAGE);
    assert_int_equal(mr_trainer_check(MODEL, "model:tinyt", &odd, &err), MR_ERR_USAGE);
    assert_int_equal(mr_trainer_check(TRAIN_FIXTURES, "model:tinyt", NULL, &err), MR_ERR_IO);
    check(mr_trainer_check(MODEL, "model:tinyt", NULL, &err), &err);
    assert_int_equal(mr_trainer_open(&t, files_path("state"), "model:tinyt", &none, &err),
                     MR_ERR_USAGE);
    assert_int_equal(mr_trainer_open(&t, files_path("state"), "model:tinyt", &odd, &err),
                     MR_ERR_USAGE);
    assert_true(mr_trainer_open(&t, files_path("nowhere"), "model:tinyt", NULL, &err) < 0);
    assert_true(mr_trainer_create(files_path("new"), "tests/fixtures", 0, &err) < 0);
    drop(NULL, "state");
}

// A copy of MODEL whose config.json has so many positions.
static void copy_model(const char *name, int positions)
{
    static const char *const names[] = {"config.json", "model.safetensors"};
    char path[600];
    struct mr_error err = {0};
    assert_int_equal(mkdir(files_path(name), 0700), 0);
    for (int i = 0; i < 2; i++) {
        struct mr_file from;
        char *text = NULL;
        (void)snprintf(path, sizeof path, "%s/%s", MODEL, names[i]);
        check(mr_file_map(&from, path, &err), &err);
        (void)snprintf(path, sizeof path, "%s/%s", files_path(name), names[i]);
        if (i == 0)
            check(mr_config_with_integer(&text, (const char *)from.data, from.size, "n_positions",
                                         positions, path, &err),
                  &err);
        FILE *f = fopen(path, "wb");
        size_t n = text ? strlen(text) : from.size;
        assert_non_null(f);
        assert_int_equal(fwrite(text ? (const void *)text : from.data, 1, n, f), n);
        assert_int_equal(fclose(f), 0);
        mr_file_unmap(&from);
        free(text);
    }
}

static int open_as(const char *name, const char *model, struct mr_error *err)
{
    struct mr_trainer *t;
    const struct mr_trainer_options o = {.model = files_path(model)};
    int rc = mr_trainer_open(&t, files_path(name), "model:tinyt", &o, err);
    if (rc == 0)
        mr_trainer_close(t);
    return rc;
}

// The model may have moved. A weight that differs, or what the state has learnt, is another model.
static void states_that_began_from_other_weights_are_refused(void **state)
{
    (void)state;
    static const char words[] = "is the state of another model: of the same sizes, but it began";
    struct mr_error err = {0};
    struct mr_trainer *t = open_new("state");
    check(mr_trainer_save(t, files_path("first"), MR_SAVE_F32, &err), &err);
    (void)step(t, &plain, 1);
    check(mr_trainer_save(t, files_path("tuned"), MR_SAVE_F32, &err), &err);
    mr_trainer_close(t);
    copy_model("moved", 24);
    check(open_as("state", "moved", &err), &err);
    check(open_as("state", "first", &err), &err);
    assert_refused(open_as("state", "tuned", &err), MR_ERR_FIT, &err, words);
    int fd = open(files_path("moved/model.safetensors"), O_RDWR);
    struct stat st;
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    assert_int_equal(pwrite(fd, "\1", 1, st.st_size - 4), 1); // the last bits of a weight
    assert_int_equal(close(fd), 0);
    assert_refused(open_as("state", "moved", &err), MR_ERR_FIT, &err, words);
    check(mr_trainer_open(&t, files_path("state"), "model:tinyt", NULL, &err), &err);
    drop(t, "state"); // it is as it was
    const char *const made[] = {"first", "tuned", "moved"};
    for (int i = 0; i < 3; i++)
        remove_dir(files_path(made[i]));
}

static void states_of_other_models_are_refused(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_trainer *t = open_new("state");
    mr_trainer_close(t);
    const struct mr_trainer_options other = {.model = TRAIN_FIXTURES "/gptj-d6-r6-long"},
                                    nowhere = {.model = TRAIN_FIXTURES}, same = {.model = MODEL};
    assert_int_equal(mr_trainer_open(&t, files_path("state"), "model:tinyt", &other, &err),
                     MR_ERR_FIT);
    assert_non_null(strstr(err.text, "is the state of another model"));
    assert_null(t);
    assert_int_equal(mr_trainer_open(&t, files_path("state"), "model:tinyt", &nowhere, &err),
                     MR_ERR_IO);
    check(mr_trainer_open(&t, files_path("state"), "model:tinyt", &same, &err), &err);
    drop(t, "state");
}

// Layers keep no stash: less device memory, and the same weights.
static void recomputation_changes_no_bit(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_trainer *a = open_new("a"), *b = open_new("b");
    struct mr_trainer_info kept, again;
    const struct mr_trainer_options o = {.recompute = true, .model = MODEL};
    mr_trainer_close(b);
    check(mr_trainer_open(&b, files_path("b"), "model:tinyt", &o, &err), &err);
    mr_trainer_get_info(a, &kept);
    mr_trainer_get_info(b, &again);
    print_message("# %llu bytes of device memory, %llu with recomputation\n",
                  (unsigned long long)kept.device_bytes, (unsigned long long)again.device_bytes);
    assert_true(again.device_bytes < kept.device_bytes);
    for (int k = 0; k < 3; k++) {
        struct mr_trainer_done x = step(a, &plain, 2), y = step(b, &plain, 2);
        assert_true(x.loss == y.loss && x.norm == y.norm);
    }
    for (size_t i = 0; i < kept.tensors; i++) {
        size_t n;
        char name[128];
        (void)snprintf(name, sizeof name, "%s", mr_trainer_tensor(a, i, &n));
        float *p = tensor(a, name, n, false), *q = tensor(b, name, n, false);
        assert_memory_equal(p, q, n * sizeof *p);
        free(p);
        free(q);
    }
    drop(a, "a");
    drop(b, "b");
}

// Two steps with a sequence of 40, and the file that is saved.
static void learn_long(const char *state, const char *model, int positions, const char *saved)
{
    enum { LONG = 40 };
    struct mr_error err = {0};
    struct mr_trainer *t;
    struct mr_trainer_info info;
    int32_t ids[LONG];
    const int32_t length = LONG;
    const struct mr_micro_batch b = {.sequences = 1, .lengths = &length, .tokens = ids};
    const struct mr_trainer_options o = {.model = model, .positions = positions};
    for (int i = 0; i < LONG; i++)
        ids[i] = i * 7 % VOCAB;
    check(mr_trainer_create(files_path(state), model, positions, &err), &err);
    check(mr_trainer_open(&t, files_path(state), "model:tinyt", &o, &err), &err);
    mr_trainer_get_info(t, &info);
    assert_int_equal(info.n_positions, LONG);
    (void)step(t, &b, 1);
    (void)step(t, &b, 1);
    check(mr_trainer_save(t, files_path(saved), MR_SAVE_F32, &err), &err);
    mr_trainer_close(t);
}

// The file of one directory has the bytes of the other's.
static void same_file(const char *a, const char *b, const char *name)
{
    struct mr_error err = {0};
    struct mr_file x, y;
    char path[600];
    (void)snprintf(path, sizeof path, "%s/%s", files_path(a), name);
    check(mr_file_map(&x, path, &err), &err);
    (void)snprintf(path, sizeof path, "%s/%s", files_path(b), name);
    check(mr_file_map(&y, path, &err), &err);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
    mr_file_unmap(&x);
    mr_file_unmap(&y);
}

// More positions than the checkpoint's are those of a checkpoint that says so.
static void more_positions_are_as_if_always_there(void **unused)
{
    (void)unused;
    char model[512];
    copy_model("model", 40);
    (void)snprintf(model, sizeof model, "%s", files_path("model"));
    learn_long("a", MODEL, 40, "saved-a");
    learn_long("b", model, 0, "saved-b");
    static const char *const saved[] = {"model.safetensors", "config.json"};
    static const char *const kept[] = {"state", "w.stream", "wt.stream", "config.json"};
    for (int i = 0; i < 2; i++)
        same_file("saved-a", "saved-b", saved[i]);
    for (int i = 0; i < 4; i++)
        same_file("a", "b", kept[i]);
    struct mr_error err = {0};
    struct mr_trainer *t;
    const struct mr_trainer_options fewer = {.model = MODEL};
    assert_refused(mr_trainer_open(&t, files_path("a"), "model:tinyt", &fewer, &err), MR_ERR_FIT,
                   &err, "of 40 positions, not 24");
    const char *const all[] = {"model", "a", "b", "saved-a", "saved-b"};
    for (int i = 0; i < 5; i++)
        remove_dir(files_path(all[i]));
}

static void positions_that_cannot_be_are_refused(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    const char *gpt2 = "tests/fixtures/gpt2/fp32-d16-bare-buffers", *no = files_path("no");
    assert_refused(mr_trainer_create(no, gpt2, 4000, &err), MR_ERR_USAGE, &err,
                   "GPT-2 has learned positions (transformer.wpe)");
    assert_refused(mr_trainer_create(no, MODEL, 23, &err), MR_ERR_USAGE, &err,
                   "the model has 24; from there to 4096");
    assert_refused(mr_trainer_create(no, MODEL, 4097, &err), MR_ERR_USAGE, &err,
                   "the model has 24; from there to 4096");
    assert_refused(mr_trainer_create(no, MODEL, -1, &err), MR_ERR_USAGE, &err, "n_positions -1");
    assert_int_equal(access(no, F_OK), -1);
}

// Weights of 0.02 N(0, 1): all tokens are about equally likely.
static void a_training_from_scratch_begins_at_chance(void **state)
{
    (void)state;
    static const struct mr_config c = {.vocab_size = VOCAB,
                                       .n_positions = 8,
                                       .n_embd = 64,
                                       .n_layer = 1,
                                       .n_head = 2,
                                       .rotary_dim = 8,
                                       .n_inner = 64,
                                       .eos_token_id = -1};
    struct mr_error err = {0};
    struct mr_trainer *t;
    struct mr_batch_loss loss;
    double sum = 0, squares = 0;
    assert_int_equal(mkdir(files_path("model"), 0700), 0);
    check(mr_synthetic_start(files_path("model"), &c, 1, NULL, &err), &err);
    check(mr_trainer_create(files_path("state"), files_path("model"), 0, &err), &err);
    check(mr_trainer_open(&t, files_path("state"), "model:tinyt", NULL, &err), &err);
    check(mr_trainer_evaluate(t, &plain, &loss, &err), &err);
    float *head = tensor(t, "lm_head.weight", VOCAB * 64, false);
    float *gain = tensor(t, "transformer.h.0.ln_1.weight", 64, false);
    float *bias = tensor(t, "transformer.h.0.mlp.fc_in.bias", 64, false);
    for (int i = 0; i < VOCAB * 64; i++) {
        sum += (double)head[i];
        squares += (double)head[i] * (double)head[i];
    }
    for (int i = 0; i < 64; i++)
        assert_true(gain[i] == 1 && bias[i] == 0);
    print_message("# loss %.3f of %d tokens, weights of %.4f\n", loss.loss, VOCAB,
                  sqrt(squares / (VOCAB * 64)));
    assert_true(fabs(loss.loss - log(VOCAB)) < 0.3);
    assert_true(fabs(sqrt(squares / (VOCAB * 64)) / 0.02 - 1) < 0.05);
    assert_true(fabs(sum) / (VOCAB * 64) < 0.002);
    free(head);
    free(gain);
    free(bias);
    remove_dir(files_path("model"));
    drop(t, "state");
}

// SGD's first step is rate x gradient; the state keeps to SGD from then on.
static void a_state_keeps_to_its_optimizer(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_trainer *t = open_new("sgd");
    struct mr_trainer_info info;
    struct mr_trainer_done done;
    struct mr_trainer_update u = {
        .rate = 0.5, .optimizer = MR_OPTIMIZER_SGD, .momentum = 0.9, .nesterov = true};
    const char *name = "transformer.ln_f.weight";
    mr_trainer_get_info(t, &info);
    assert_int_equal(info.optimizer, MR_OPTIMIZERS);
    assert_false(mr_trainer_on_device(t, MR_OPTIMIZER_SGD, NULL)); // the C model has no updates
    check(mr_trainer_begin(t, 1, &err), &err);
    check(mr_trainer_backward(t, &plain, NULL, &err), &err);
    float *before = tensor(t, name, 36, false), *g = tensor(t, name, 36, true);
    u.dampening = 0.1;
    assert_refused(mr_trainer_apply(t, &u, &done, &err), MR_ERR_USAGE, &err, "no dampening");
    u.dampening = 0;
    for (int i = 0; i < 3; i++) {
        const struct mr_trainer_update other = {.rate = 0.5,
                                                .optimizer = MR_OPTIMIZER_ADAM,
                                                .momentum = i == 0 ? 0.9 : 0,
                                                .dampening = i == 1 ? 0.1 : 0,
                                                .nesterov = i == 2};
        assert_refused(mr_trainer_apply(t, &other, &done, &err), MR_ERR_USAGE, &err, "are SGD's");
    }
    u.optimizer = MR_OPTIMIZERS;
    assert_refused(mr_trainer_apply(t, &u, &done, &err), MR_ERR_USAGE, &err, "no optimizer 3");
    u.optimizer = MR_OPTIMIZER_SGD;
    err = (struct mr_error){0};
    check(mr_trainer_begin(t, 1, &err), &err);
    check(mr_trainer_backward(t, &plain, NULL, &err), &err);
    check(mr_trainer_apply(t, &u, &done, &err), &err);
    float *after = tensor(t, name, 36, false);
    for (int i = 0; i < 36; i++) // with Nesterov, the gradient and 0.9 of it
        assert_true(fabsf(after[i] - (before[i] - 0.5F * 1.9F * g[i] / 5)) < 1e-6F);
    free(before);
    free(after);
    free(g);
    mr_trainer_get_info(t, &info);
    assert_int_equal(info.optimizer, MR_OPTIMIZER_SGD);
    check(mr_trainer_begin(t, 1, &err), &err);
    check(mr_trainer_backward(t, &plain, NULL, &err), &err);
    assert_refused(mr_trainer_apply(t, &adamw, &done, &err), MR_ERR_USAGE, &err,
                   "the state's moments are SGD's, not AdamW's");
    drop(t, "sgd");
}

// Names of the tensors that a step with these patterns moves: those of layer 1's norm alone.
static void patterns_freeze_by_name(void **unused)
{
    (void)unused;
    static const char *const freeze[] = {"*", "!transformer.h.1.ln_?.*", NULL},
                             *const none[] = {"transformer.h.7.*", NULL},
                             *const without_first[] = {"*", "!h.1.*", NULL};
    const struct mr_trainer_options o = {.freeze = freeze}, wrong = {.freeze = none},
                                    short_ones = {.freeze = without_first},
                                    wrong_too = {.no_decay = none};
    struct mr_error err = {0};
    struct mr_trainer *t = open_new("frozen");
    struct mr_trainer_info info;
    mr_trainer_close(t);
    assert_refused(mr_trainer_check(MODEL, "model:tinyt", &wrong, &err), MR_ERR_USAGE, &err,
                   "freeze 'transformer.h.7.*': no tensor has such a name; the last one is");
    assert_refused(mr_trainer_check(MODEL, "model:tinyt", &short_ones, &err), MR_ERR_USAGE, &err,
                   "freeze '!h.1.*': no tensor has such a name; did you mean '!*.h.1.*', which");
    assert_refused(mr_trainer_open(&t, files_path("frozen"), "model:tinyt", &wrong_too, &err),
                   MR_ERR_USAGE, &err, "no decay 'transformer.h.7.*'");
    check(mr_trainer_open(&t, files_path("frozen"), "model:tinyt", &o, &err), &err);
    mr_trainer_get_info(t, &info);
    float **before = allocate(info.tensors, sizeof *before);
    size_t n;
    char name[256];
    for (size_t i = 0; i < info.tensors; i++) {
        (void)snprintf(name, sizeof name, "%s", mr_trainer_tensor(t, i, &n));
        before[i] = tensor(t, name, n, false);
    }
    (void)step(t, &plain, 1);
    for (size_t i = 0; i < info.tensors; i++) {
        (void)snprintf(name, sizeof name, "%s", mr_trainer_tensor(t, i, &n));
        float *now = tensor(t, name, n, false);
        bool moves = strncmp(name, "transformer.h.1.ln_", 19) == 0;
        assert_int_equal(memcmp(before[i], now, n * sizeof *now) != 0, moves);
        free(now);
        free(before[i]);
    }
    free(before);
    mr_trainer_close(t);
    // What was frozen has no unit yet: the first step in which it learns finds one.
    check(mr_trainer_open(&t, files_path("frozen"), "model:tinyt", NULL, &err), &err);
    for (size_t i = 0; i < info.tensors; i++) {
        (void)snprintf(name, sizeof name, "%s", mr_trainer_tensor(t, i, &n));
        if (strcmp(name, "transformer.h.0.attn.q_proj.weight") != 0)
            continue;
        float *was = tensor(t, name, n, false);
        (void)step(t, &plain, 1);
        float *now = tensor(t, name, n, false);
        size_t moved = 0;
        for (size_t k = 0; k < n; k++)
            moved += was[k] != now[k];
        assert_true(moved > n * 9 / 10);
        free(was);
        free(now);
    }
    drop(t, "frozen");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_lowers_the_loss_by_its_gradient),
        cmocka_unit_test(what_is_saved_is_what_was_learnt),
        cmocka_unit_test(masks_hide_targets),
        cmocka_unit_test(bad_batches_are_refused),
        cmocka_unit_test(devices_that_cannot_train_are_refused),
        cmocka_unit_test(states_of_other_models_are_refused),
        cmocka_unit_test(states_that_began_from_other_weights_are_refused),
        cmocka_unit_test(recomputation_changes_no_bit),
        cmocka_unit_test(more_positions_are_as_if_always_there),
        cmocka_unit_test(positions_that_cannot_be_are_refused),
        cmocka_unit_test(a_training_from_scratch_begins_at_chance),
        cmocka_unit_test(a_state_keeps_to_its_optimizer),
        cmocka_unit_test(patterns_freeze_by_name),
    };
    if (setenv("MILLRACE_THREADS", "1", 1) || setenv("OPENBLAS_NUM_THREADS", "1", 1))
        return 1;
    return cmocka_run_group_tests_name("trainer", tests, files_setup, files_teardown);
}
