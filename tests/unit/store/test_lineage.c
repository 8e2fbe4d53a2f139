// SPDX-License-Identifier: Apache-2.0
// Which training a state is of: files of trainings that began alike and differ in anything since
// are not taken for one state; those of the same training are, however it came there.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/patch.h"
#include "unit/store/store_older.h"
#include "unit/store/store_steps.h"

static const char model[] = TRAIN_FIXTURES "/gptj-d12-r4";

// What a step does otherwise than the usual one.
enum change { NOTHING, RATE, DECAY, DECAY_ALL, NOTE, GRADIENT, UNIT, CHANGES };

static struct mr_store *open_state(const char *name, int threads)
{
    struct mr_error err = {0};
    struct mr_store_options options = {.threads = threads};
    struct mr_store *s;
    check(mr_store_open(&s, files_path(name), &options, &err), &err);
    return s;
}

static void make_state(const char *name, uint64_t gap)
{
    struct mr_error err = {0};
    struct mr_store_options options = {.threads = 1, .gap = gap};
    check(mr_store_create(files_path(name), model, &options, &err), &err);
}

static void step(struct mr_store *s, enum change change, int turn)
{
    struct mr_error err = {0};
    struct mr_store_done done;
    char note[MR_STORE_NOTE] = "usual";
    if (mr_store_step(s) == 0)
        set_units(s);
    if (change == UNIT)
        check(mr_store_set_unit(s, 2, mr_store_unit(s, 2) - 1, &err), &err);
    add_all(s, turn);
    if (change == GRADIENT)
        s->volume->data[MR_V_GRADIENTS][0] ^= 1;
    struct mr_store_update u = update_of(s, note);
    u.rate *= change == RATE ? 0x1.0000001p0 : 1;
    u.adamw.decay *= change == DECAY ? 2 : 1;
    u.adamw.decay_all = change == DECAY_ALL;
    note[MR_STORE_NOTE - 1] = change == NOTE;
    check(mr_store_apply(s, &u, &done, &err), &err);
}

static void step_in(const char *name, enum change change)
{
    struct mr_store *s = open_state(name, 1);
    step(s, change, 0);
    mr_store_close(s);
}

static uint64_t lineage_in(const char *name)
{
    struct mr_store *s = open_state(name, 1);
    uint64_t lineage = s->header->lineage;
    mr_store_close(s);
    return lineage;
}

static void copy(const char *from, const char *to, const char *file)
{
    char path[64];
    size_t n;
    (void)snprintf(path, sizeof path, "%s/%s", from, file);
    char *data = files_read(files_path(path), &n);
    (void)snprintf(path, sizeof path, "%s/%s", to, file);
    (void)files_write(path, data, n);
    free(data);
}

// "b" with a file of "a": it opens, or it says that they are two trainings.
static void exchange(const char *file, bool opens)
{
    struct mr_error err = {0};
    struct mr_store_options one = {.threads = 1};
    struct mr_store *s;
    char path[64];
    size_t n;
    (void)snprintf(path, sizeof path, "b/%s", file);
    char *was = files_read(files_path(path), &n);
    copy("a", "b", file);
    int rc = mr_store_open(&s, files_path("b"), &one, &err);
    if (opens)
        check(rc, &err);
    else
        assert_refused(rc, MR_ERR_FORMAT, &err, "is of another training than the header");
    mr_store_close(s);
    (void)files_write(path, was, n);
    free(was);
}

static void files_of_siblings_are_refused(void **state)
{
    (void)state;
    for (enum change change = NOTHING; change < CHANGES; change++) {
        bool one = change == NOTHING || change == NOTE; // a note is the caller's
        make_state("a", 0);
        make_state("b", 0);
        assert_true(lineage_in("a") == lineage_in("b")); // as long as nothing differs
        step_in("a", NOTHING);
        step_in("b", change);
        for (int later = 0; later < 2; later++) { // and then what both do
            assert_int_equal(lineage_in("a") == lineage_in("b"), one);
            exchange("state", one);
            exchange("header", one);
            exchange("gradients", true); // of a step that is done
            exchange("w.stream", true);  // made anew
            step_in("a", NOTHING);
            step_in("b", NOTHING);
        }
        copy("a", "b", "header");
        copy("a", "b", "state"); // that is all that "a" is
        assert_true(lineage_in("a") == lineage_in("b"));
        remove_dir(files_path("a"));
        remove_dir(files_path("b"));
    }
}

// Threads, the order of micro-batches, the gap, and being stopped between steps.
static void the_same_training_has_the_same_lineage(void **state)
{
    (void)state;
    make_state("a", 0);
    make_state("b", 1);
    for (int k = 0; k < 3; k++) {
        uint64_t before = lineage_in("a");
        step_in("a", NOTHING);
        assert_true(lineage_in("a") != before);
    }
    struct mr_store *s = open_state("b", 2);
    for (int k = 0; k < 3; k++)
        step(s, NOTHING, k + 1);
    mr_store_close(s);
    assert_true(lineage_in("a") == lineage_in("b"));
    remove_dir(files_path("a"));
    remove_dir(files_path("b"));
}

// Weights and moments of both are the same bits.
static void check_same(void)
{
    struct mr_store *a = open_state("a", 1), *b = open_state("b", 1);
    assert_int_equal(mr_store_step(a), mr_store_step(b));
    for (size_t i = 0; i < a->layout.tensors; i++) {
        size_t n = (size_t)a->layout.tensor[i].outputs * (size_t)a->layout.tensor[i].inputs;
        float *x = allocate(n, sizeof *x), *y = allocate(n, sizeof *y);
        for (enum mr_store_part part = MR_MASTER; part <= MR_SQUARE; part++) {
            mr_store_read(a, i, part, x);
            mr_store_read(b, i, part, y);
            assert_memory_equal(x, y, n * sizeof *x);
        }
        free(x);
        free(y);
    }
    mr_store_close(a);
    mr_store_close(b);
}

// They do not say what they are of, and are taken; with their next step they do.
static void states_of_older_versions_open(void **state)
{
    (void)state;
    for (uint32_t version = 1; version < MR_STORE_LINEAGE; version++) {
        make_state("a", 0);
        make_state("b", 0);
        step_in("a", NOTHING);
        step_in("b", NOTHING);
        make_older_in(files_path("b"), version);
        exchange("state", false); // of a newer one
        check_same();
        assert_int_equal(lineage_in("b"), 0);
        step_in("a", NOTHING);
        step_in("b", NOTHING);
        check_same();
        struct mr_store *s = open_state("b", 1);
        assert_int_equal(s->header->version, MR_STORE_LINEAGE); // AdamW's newest
        assert_int_equal(s->header->origin == 0, version < MR_STORE_ORIGIN);
        assert_true(s->header->lineage != 0);
        mr_store_close(s);
        exchange("state", false);
        remove_dir(files_path("a"));
        remove_dir(files_path("b"));
    }
}

static int teardown(void **state)
{
    forget_regions();
    return files_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_siblings_are_refused),
        cmocka_unit_test(the_same_training_has_the_same_lineage),
        cmocka_unit_test(states_of_older_versions_open),
    };
    return cmocka_run_group_tests_name("lineage", tests, files_setup, teardown);
}
