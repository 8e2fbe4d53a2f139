// SPDX-License-Identifier: Apache-2.0
// Which weights a state began from: what the header's number knows and what it does not look at.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "checkpoint/synthetic.h"
#include "store/origin.h"
#include "unit/store/store_older.h"
#include "unit/store_dirs.h"

static const struct mr_store_options one = {.threads = 1};

// A model with a table of more elements than are looked at: in bf16.
static void make_model(const char *name, uint64_t seed)
{
    struct mr_error err = {0};
    const struct mr_config c = {.arch = mr_arch_find("gptj"),
                                .vocab_size = 320,
                                .n_positions = 8,
                                .n_embd = 64,
                                .n_layer = 1,
                                .n_head = 4,
                                .head_dim = 16,
                                .rotary_dim = 8,
                                .n_inner = 128,
                                .layer_norm_epsilon = 1e-5F};
    assert_int_equal(mkdir(files_path(name), 0700), 0);
    check(mr_synthetic_write(files_path(name), &c, seed, &err), &err);
}

// Two for each test.
static int make_models(void **state)
{
    (void)state;
    make_model("model", 1);
    make_model("other", 2);
    return 0;
}

static int remove_all(void **state)
{
    static const char *const made[] = {"model", "other", "state", "saved"};
    (void)state;
    for (int i = 0; i < 4; i++)
        if (access(files_path(made[i]), F_OK) == 0)
            remove_dir(files_path(made[i]));
    return 0;
}

static uint32_t origin_of(const struct mr_checkpoint *checkpoint)
{
    struct mr_error err = {0};
    uint32_t origin = 0;
    check(mr_store_origin(&origin, checkpoint, &err), &err);
    assert_int_not_equal(origin, 0);
    return origin;
}

static uint32_t origin_in(const char *name)
{
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    check(mr_checkpoint_open(&checkpoint, files_path(name), MR_DECODER, NULL, &err), &err);
    uint32_t origin = origin_of(checkpoint);
    mr_checkpoint_close(checkpoint);
    return origin;
}

// Whether it tells that an element of a tensor is another one.
static bool tells(const struct mr_checkpoint *checkpoint, size_t tensor, size_t element)
{
    struct mr_tensor *t = (struct mr_tensor *)(uintptr_t)mr_checkpoint_at(checkpoint, tensor);
    const unsigned char *was = t->data;
    uint32_t before = origin_of(checkpoint);
    unsigned char *other = allocate(1, t->bytes);
    memcpy(other, was, t->bytes);
    other[element * 2] ^= 1; // the last bit of a bf16
    t->data = other;
    uint32_t after = origin_of(checkpoint);
    t->data = was;
    free(other);
    return before != after;
}

static void every_tensor_counts_from_end_to_end(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    size_t large = 0;
    check(mr_checkpoint_open(&checkpoint, files_path("model"), MR_DECODER, NULL, &err), &err);
    for (size_t i = 0; i < mr_checkpoint_count(checkpoint); i++) {
        size_t n = mr_checkpoint_at(checkpoint, i)->count;
        assert_true(tells(checkpoint, i, 0));
        assert_true(tells(checkpoint, i, n - 1));
        if (n <= 16384) { // all of it
            assert_true(tells(checkpoint, i, n / 3));
            continue;
        }
        large++;
        for (size_t k = 0; k < 16; k++) {
            size_t first = (n - 1024) * k / 15;
            assert_true(tells(checkpoint, i, first) && tells(checkpoint, i, first + 1023));
        }
        assert_false(tells(checkpoint, i, 1024)); // between two pieces
    }
    assert_true(large > 0);
    mr_checkpoint_close(checkpoint);
}

// bf16 in the checkpoint, fp32 in the export: the same weights.
static void the_form_of_the_files_does_not_matter(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store *s;
    check(mr_store_create(files_path("state"), files_path("model"), &one, &err), &err);
    check(mr_store_open(&s, files_path("state"), &one, &err), &err);
    check(mr_store_export(s, files_path("saved"), MR_DTYPE_F32, NULL, &err), &err);
    mr_store_close(s);
    assert_int_equal(origin_in("model"), origin_in("saved"));
    assert_int_not_equal(origin_in("model"), origin_in("other"));
}

static void other_weights_of_the_same_sizes_are_refused(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store *s;
    check(mr_store_create(files_path("state"), files_path("model"), &one, &err), &err);
    struct mr_store_options same = {.threads = 1, .origin = origin_in("model")},
                            other = {.threads = 1, .origin = origin_in("other")};
    assert_refused(mr_store_open(&s, files_path("state"), &other, &err), MR_ERR_FIT, &err,
                   "it began from other weights; name the model that it was made from");
    check(mr_store_open(&s, files_path("state"), &same, &err), &err);
    mr_store_close(s);
    make_older_in(files_path("state"), 1); // does not say what it began from
    check(mr_store_open(&s, files_path("state"), &other, &err), &err);
    assert_int_equal(mr_store_step(s), 0);
    mr_store_close(s);
}

#define ORIGIN_TEST(f) cmocka_unit_test_setup_teardown(f, make_models, remove_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ORIGIN_TEST(every_tensor_counts_from_end_to_end),
        ORIGIN_TEST(the_form_of_the_files_does_not_matter),
        ORIGIN_TEST(other_weights_of_the_same_sizes_are_refused),
    };
    return cmocka_run_group_tests_name("origin", tests, files_setup, files_teardown);
}
