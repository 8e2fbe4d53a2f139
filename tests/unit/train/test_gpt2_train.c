// SPDX-License-Identifier: Apache-2.0
// Training of GPT-2, whose q, k and v are one tensor of the file: the fixture toy-d10 is a GPT-2 of
// PyTorch's under other names, each a tensor of its own. Under GPT-2's names it must give the same
// bits, in fp32 and on `model:`. Then the C interface, by the file's tensors.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "checkpoint/safetensors_write.h"
#include "device/open.h"
#include "train/step.h"
#include "unit/memory_store.h"
#include "unit/store_dirs.h"
#include "unit/train/train_fixtures.h"

#define C_ATTN "transformer.h.1.attn.c_attn.weight"

static struct fixture original;

// All of a file's tensor, of which p[i] is the first share: the shares side by side in each line.
static float *gather(const struct mr_params *p, size_t i, const struct mr_file_tensor *whole)
{
    size_t n = whole->lines * whole->run;
    float *all = allocate(n * (size_t)whole->shares, sizeof *all);
    for (int k = 0; k < whole->shares; k++) {
        float *one = allocate(n, sizeof *one);
        mr_params_export(p, i + (size_t)k * whole->step, one);
        for (size_t e = 0; e < n; e++)
            all[(e / whole->run * (size_t)whole->shares + (size_t)k) * whole->run +
                e % whole->run] = one[e];
        free(one);
    }
    return all;
}

// Writes p, in the order of its tensors, as model.safetensors of the configuration.
static void write_weights(const struct mr_config *c, const struct mr_params *p, const char *path)
{
    struct mr_safetensors_header h;
    size_t size;
    mr_safetensors_begin(&h);
    for (int pass = 0; pass < 2; pass++) {
        FILE *f = pass ? fopen(path, "wb") : NULL;
        char *text = pass ? mr_safetensors_end(&h, &size) : NULL;
        assert_true(!pass || (f && text && fwrite(text, 1, size, f) == size));
        for (size_t i = 0; i < p->count; i++) {
            char name[MR_NAME];
            struct mr_tensor_spec t = mr_tensor_spec(c, i);
            struct mr_file_tensor whole = mr_file_tensor(&t);
            size_t n = whole.lines * whole.run * (size_t)whole.shares;
            if (t.item->share > 0)
                continue;
            if (!pass) {
                mr_safetensors_add(&h, name_of(c, i, name), "F32", whole.rows, whole.cols, 4 * n);
                continue;
            }
            float *all = gather(p, i, &whole);
            assert_int_equal(fwrite(all, sizeof *all, n, f), n);
            free(all);
        }
        free(text);
        assert_true(!f || fclose(f) == 0);
    }
}

// The toy as a directory of GPT-2's: its list of tensors is the same.
static int make_gpt2(void **state)
{
    struct mr_error err = {0};
    struct mr_config c;
    struct mr_params p;
    size_t n;
    if (files_setup(state) < 0)
        return -1;
    open_fixture(&original, "toy-d10");
    char *text = files_read(TRAIN_FIXTURES "/toy-d10/config.json", &n);
    char *type = strstr(text, "\"toy\"");
    assert_non_null(type);
    assert_int_equal(mkdir(files_path("gpt2"), 0700), 0);
    FILE *f = fopen(files_path("gpt2/config.json"), "wb");
    assert_non_null(f);
    fprintf(f, "%.*s\"gpt2\"%s", (int)(type - text), text, type + 5);
    assert_int_equal(fclose(f), 0);
    free(text);
    check(mr_config_load_from(&c, files_path("gpt2"), &err), &err);
    check(mr_params_new(&p, &c, &err), &err);
    assert_int_equal(p.count, original.weights.count);
    assert_int_equal(p.first[p.count], original.weights.first[p.count]);
    memcpy(p.data, original.weights.data, p.first[p.count] * sizeof *p.data);
    write_weights(&c, &p, files_path("gpt2/model.safetensors"));
    mr_params_free(&p);
    return 0;
}

static int remove_gpt2(void **state)
{
    close_fixture(&original);
    remove_dir(files_path("gpt2"));
    return files_teardown(state);
}

// ---- the same bits ------------------------------------------------------------------------------

static void the_reference_has_the_same_gradient(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    struct mr_params weights, gradient;
    struct mr_reference *reference;
    struct mr_loss a = {0}, b = {0};
    struct numbers n;
    size_t all = original.weights.first[original.weights.count];
    check(mr_checkpoint_open(&checkpoint, files_path("gpt2"), MR_DECODER, NULL, &err), &err);
    const struct mr_config *c = mr_checkpoint_config(checkpoint);
    check(mr_params_new(&weights, c, &err), &err);
    check(mr_params_new(&gradient, c, &err), &err);
    check(mr_params_read(&weights, checkpoint, &err), &err);
    assert_memory_equal(weights.data, original.weights.data, all * sizeof(float));
    check(mr_reference_open(&reference, &weights, &err), &err);
    read_batch(&original, 0, &n);
    check(mr_reference_run(reference, &n.batch, &a, &gradient, &err), &err);
    check(mr_reference_run(original.reference, &n.batch, &b, &original.gradient, &err), &err);
    assert_true(a.sum == b.sum && a.rows == b.rows);
    assert_memory_equal(gradient.data, original.gradient.data, all * sizeof(float));
    mr_reference_close(reference);
    mr_params_free(&weights);
    mr_params_free(&gradient);
    mr_checkpoint_close(checkpoint);
}

struct training {
    struct mr_store *store;
    struct mr_device *dev;
    struct mr_step *step;
};

static void train(struct training *t, const char *model, const char *uri)
{
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    struct mr_volume *volume;
    const struct mr_pass_options o = {.rows = MOST};
    const struct mr_store_update u = {.adamw = {0.9, 0.98, 1e-8, 0.05, false, MR_ADAMW},
                                      .rate = 5e-3};
    check(mr_checkpoint_open(&checkpoint, model, MR_DECODER, NULL, &err), &err);
    t->store = memory_store(checkpoint, &volume);
    mr_checkpoint_close(checkpoint);
    check(mr_device_open(&t->dev, uri, &err), &err);
    check(mr_step_open(&t->step, t->store, t->dev, &o, NULL, &err), &err);
    for (int s = 0; s < 4; s++) {
        struct mr_step_done done;
        struct numbers n;
        read_batch(&original, s, &n);
        check(mr_step_begin(t->step, 1, &err), &err);
        check(mr_step_add(t->step, &n.batch, NULL, &err), &err);
        check(mr_step_apply(t->step, &u, &done, &err), &err);
    }
}

static void train_close(struct training *t)
{
    mr_step_close(t->step);
    mr_device_close(t->dev);
    mr_store_close(t->store);
}

static void steps_on_the_device_have_the_same_bits(void **state)
{
    (void)state;
    struct training a, b;
    train(&a, TRAIN_FIXTURES "/toy-d10", "model:tinyt");
    train(&b, files_path("gpt2"), "model:sim,train");
    double moved = 0;
    for (size_t i = 0; i < original.weights.count; i++) {
        size_t n = mr_params_size(&original.weights, i);
        float *x = allocate(n, sizeof *x), *y = allocate(n, sizeof *y);
        for (int part = MR_MASTER; part <= MR_SQUARE; part++) {
            mr_store_read(a.store, i, (enum mr_store_part)part, x);
            mr_store_read(b.store, i, (enum mr_store_part)part, y);
            assert_memory_equal(x, y, n * sizeof *x);
        }
        mr_store_read(b.store, i, MR_MASTER, y);
        for (size_t k = 0; k < n; k++)
            moved += fabs((double)y[k] - (double)mr_params_at(&original.weights, i)[k]);
        free(x);
        free(y);
    }
    assert_true(moved > 1);
    train_close(&a);
    train_close(&b);
}

// ---- by the file's tensors ----------------------------------------------------------------------

static float *tensor(const struct mr_trainer *t, const char *name, size_t n, bool gradient)
{
    struct mr_error err = {0};
    float *x = allocate(n, sizeof *x);
    check((gradient ? mr_trainer_gradient : mr_trainer_weights)(t, name, x, n, &err), &err);
    return x;
}

static void tensors_are_those_of_the_file(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_trainer *t;
    struct mr_trainer_info info;
    struct mr_checkpoint *checkpoint;
    size_t n, seen = 0;
    check(mr_trainer_create(files_path("state"), files_path("gpt2"), 0, &err), &err);
    check(mr_trainer_open(&t, files_path("state"), "model:tinyt", NULL, &err), &err);
    mr_trainer_get_info(t, &info);
    check(mr_checkpoint_open(&checkpoint, files_path("gpt2"), MR_DECODER, NULL, &err), &err);
    assert_int_equal(info.tensors, mr_checkpoint_count(checkpoint));
    assert_int_equal(info.parameters, original.weights.first[original.weights.count]);
    for (size_t i = 0; i < info.tensors; i++) {
        char name[128];
        (void)snprintf(name, sizeof name, "%s", mr_trainer_tensor(t, i, &n));
        const struct mr_tensor *file = mr_checkpoint_tensor(checkpoint, name);
        assert_non_null(file);
        assert_int_equal(n, file->count);
        float *weights = tensor(t, name, n, false), *want = allocate(n, sizeof *want);
        read_tensor(file, want);
        assert_memory_equal(weights, want, n * sizeof *want);
        free(weights);
        free(want);
        seen += strcmp(name, C_ATTN) == 0;
    }
    assert_int_equal(seen, 1);
    assert_null(mr_trainer_tensor(t, info.tensors, NULL));
    // And so they are saved.
    struct mr_checkpoint *saved;
    check(mr_trainer_save(t, files_path("saved"), MR_SAVE_F32, &err), &err);
    check(mr_checkpoint_open(&saved, files_path("saved"), MR_DECODER, NULL, &err), &err);
    const struct mr_tensor *was = mr_checkpoint_tensor(checkpoint, C_ATTN),
                           *is = mr_checkpoint_tensor(saved, C_ATTN);
    float *x = allocate(was->count, sizeof *x), *y = allocate(was->count, sizeof *y);
    read_tensor(was, x);
    read_tensor(is, y);
    assert_memory_equal(x, y, was->count * sizeof *x);
    free(x);
    free(y);
    mr_checkpoint_close(saved);
    mr_checkpoint_close(checkpoint);
    remove_dir(files_path("saved"));
    mr_trainer_close(t);
    remove_dir(files_path("state"));
}

static void gradients_are_those_of_the_file(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_trainer *t;
    size_t n, d = (size_t)original.config->n_embd;
    struct numbers b;
    const struct mr_trainer_options o = {.tokens = 64};
    // Of the gradient of q, k and v each third is near the reference's.
    read_batch(&original, 0, &b);
    int rows = 0;
    for (int s = 0; s < b.batch.n_sequences; s++)
        rows += b.lengths[s];
    const struct mr_micro_batch batch = {.sequences = b.batch.n_sequences,
                                         .lengths = b.lengths,
                                         .tokens = b.tokens,
                                         .targets = b.targets};
    assert_true(rows <= 64);
    check(mr_trainer_create(files_path("state"), files_path("gpt2"), 0, &err), &err);
    check(mr_trainer_open(&t, files_path("state"), "model:tinyt", &o, &err), &err);
    check(mr_trainer_begin(t, 1, &err), &err);
    check(mr_trainer_backward(t, &batch, NULL, &err), &err);
    float *got = tensor(t, C_ATTN, 3 * d * d, true);
    for (size_t share = 0; share < 3; share++) {
        static const char *const names[] = {"q", "k", "v"};
        char name[64];
        double error = 0, size = 0;
        (void)snprintf(name, sizeof name, "gradient.toy.h.1.attn.%s.weight", names[share]);
        float *want = floats(&original, name, &n);
        assert_int_equal(n, d * d);
        for (size_t e = 0; e < n; e++) {
            double g = (double)got[(e / d * 3 + share) * d + e % d], w = (double)want[e];
            error += (g - w) * (g - w);
            size += w * w;
        }
        print_message("# %s: %.1f dB\n", name, 10 * log10(size / error));
        assert_true(10 * log10(size / error) > 18);
        free(want);
    }
    free(got);
    mr_trainer_close(t);
    remove_dir(files_path("state"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_has_the_same_gradient),
        cmocka_unit_test(steps_on_the_device_have_the_same_bits),
        cmocka_unit_test(tensors_are_those_of_the_file),
        cmocka_unit_test(gradients_are_those_of_the_file),
    };
    if (setenv("MILLRACE_THREADS", "1", 1) || setenv("OPENBLAS_NUM_THREADS", "1", 1))
        return 1;
    return cmocka_run_group_tests_name("gpt2_train", tests, make_gpt2, remove_gpt2);
}
