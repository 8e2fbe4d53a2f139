// SPDX-License-Identifier: Apache-2.0
// A step is atomic. A disk in memory counts every write and every sync of a step and stops at each
// of them in turn; of what was not synced it loses everything, nothing, or any sectors. The state
// that is opened afterwards is that before the step or that after it, and goes on from there.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "checkpoint/synthetic.h"
#include "store/patch.h"
#include "unit/store/store_older.h"
#include "unit/store/store_steps.h"

// ---- the disk -----------------------------------------------------------------------------------

enum { SECTOR = 512, NEVER = 1 << 30 };

// What a crash leaves of what was not synced.
enum leaves { NOTHING, EVERYTHING, SOME, OTHERS, LEAVES };

struct disk {
    struct mr_volume volume; // what the program sees
    unsigned char *safe[MR_V_FILES];
    int operations, last; // those from `last` on fail
};

static struct disk disk;

static int gone(struct mr_error *err)
{
    return mr_fail(err, MR_ERR_IO, "the disk is gone");
}

static int disk_write(struct mr_volume *v, enum mr_volume_file f, uint64_t at, const void *data,
                      size_t size, struct mr_error *err)
{
    struct disk *d = (struct disk *)v;
    int operation = d->operations++;
    if (operation > d->last)
        return gone(err);
    assert_true(at + size <= v->size[f]);
    memcpy(v->data[f] + at, data, operation == d->last ? size / 2 : size); // the last one is torn
    return operation == d->last ? gone(err) : 0;
}

static int disk_sync(struct mr_volume *v, enum mr_volume_file f, struct mr_error *err)
{
    struct disk *d = (struct disk *)v;
    if (d->operations++ >= d->last)
        return gone(err);
    memcpy(d->safe[f], v->data[f], v->size[f]);
    return 0;
}

static void disk_close(struct mr_volume *v)
{
    (void)v; // it is used again
}

static void crash(enum leaves leaves, uint64_t seed)
{
    for (int f = 0; f < MR_V_FILES; f++)
        for (uint64_t at = 0; at < disk.volume.size[f]; at += SECTOR) {
            uint64_t left = disk.volume.size[f] - at, n = left < SECTOR ? left : SECTOR;
            bool lucky = mix(seed * 7919 + at * 8 + (uint64_t)f) % 2;
            bool kept = leaves == EVERYTHING || (leaves >= SOME && lucky == (leaves == SOME));
            if (kept)
                memcpy(disk.safe[f] + at, disk.volume.data[f] + at, n);
            else
                memcpy(disk.volume.data[f] + at, disk.safe[f] + at, n);
        }
    disk.operations = 0;
    disk.last = NEVER;
}

// ---- states -------------------------------------------------------------------------------------

static const struct mr_config config = {.vocab_size = 150,
                                        .n_positions = 8,
                                        .n_embd = 16,
                                        .n_layer = 1,
                                        .n_head = 2,
                                        .head_dim = 8,
                                        .rotary_dim = 4,
                                        .n_inner = 20,
                                        .layer_norm_epsilon = 1e-5F};
static const struct mr_store_options one = {.threads = 1, .gap = 1};

static struct mr_store *open_disk(const struct mr_checkpoint *checkpoint)
{
    struct mr_error err = {0};
    struct mr_store *s;
    check(mr_store_open_volume(&s, &disk.volume, &config, checkpoint, &one, &err), &err);
    return s;
}

// All that a state is, wherever it lies in its files.
struct picture {
    uint64_t step, lineage;
    struct mr_params part[3];
    int units[64];
    char note[MR_STORE_NOTE];
};

static void take(struct picture *p, const struct mr_store *s)
{
    struct mr_error err = {0};
    p->step = mr_store_step(s);
    p->lineage = s->header->lineage;
    memcpy(p->note, mr_store_note(s), sizeof p->note);
    for (int k = 0; k < 3; k++) {
        check(mr_params_new(&p->part[k], &config, &err), &err);
        for (size_t i = 0; i < p->part[k].count; i++) {
            mr_store_read(s, i, (enum mr_store_part)k, mr_params_at(&p->part[k], i));
            p->units[i] = mr_store_unit(s, i);
        }
    }
}

static void drop(struct picture *p)
{
    for (int k = 0; k < 3; k++)
        mr_params_free(&p->part[k]);
}

static bool from_older; // by a program whose states have no lineage

static bool same(const struct picture *a, const struct picture *b)
{
    bool equal = a->step == b->step && (from_older || a->lineage == b->lineage);
    equal = equal && memcmp(a->note, b->note, sizeof a->note) == 0;
    size_t n = a->part[0].first[a->part[0].count] * sizeof(float);
    equal = equal && memcmp(a->units, b->units, a->part[0].count * sizeof *a->units) == 0;
    for (int k = 0; k < 3; k++)
        equal = equal && memcmp(a->part[k].data, b->part[k].data, n) == 0;
    return equal;
}

// ---- crashes ------------------------------------------------------------------------------------

static unsigned char *image[MR_V_FILES];    // of the disk before the step
static struct picture before, after, later; // and of the state before, after, and a step later

static void save_image(void)
{
    for (int f = 0; f < MR_V_FILES; f++)
        memcpy(image[f], disk.volume.data[f], disk.volume.size[f]);
}

static void load_image(void)
{
    for (int f = 0; f < MR_V_FILES; f++) {
        memcpy(disk.volume.data[f], image[f], disk.volume.size[f]);
        memcpy(disk.safe[f], image[f], disk.volume.size[f]);
    }
    disk.operations = 0;
    disk.last = NEVER;
}

// The step that every crash is about. `until`: its last operation.
static int step_until(int until, int *operations)
{
    struct mr_error err = {0};
    struct mr_store_done done;
    load_image();
    struct mr_store *s = open_disk(NULL);
    disk.operations = 0;
    disk.last = until;
    int rc = one_step(s, 0, &done, &err);
    *operations = disk.operations;
    if (rc < 0) { // nothing goes on before the state is opened again
        struct mr_error again = {0};
        assert_int_equal(rc, MR_ERR_IO);
        const char *words = until == 0  ? "stays as it was before the step"
                            : until < 3 ? "completes the step if it has begun"
                                        : "the step is completed when";
        assert_non_null(strstr(err.text, words)); // by then the header says so, or it does not
        assert_refused(mr_store_begin(s, 1, &again), MR_ERR_IO, &again, "open the state again");
    }
    mr_store_close(s);
    return rc;
}

// The state is one of the two; if the step was done, it is the later. A step more has the same bits
// as without a crash.
static bool check_state(bool done, const char *what, int operation, int leaves)
{
    struct mr_error err = {0};
    struct mr_store_done ignored;
    struct picture now;
    struct mr_store *s = open_disk(NULL);
    take(&now, s);
    bool is_after = same(&now, &after);
    if (!is_after && (done || !same(&now, &before)))
        fail_msg("%s %d, leaving %d: the state is neither (step %d)", what, operation, leaves,
                 (int)now.step);
    drop(&now);
    if (operation % 7 == 0) {
        if (!is_after)
            check(one_step(s, 1, &ignored, &err), &err);
        check(one_step(s, 0, &ignored, &err), &err);
        take(&now, s);
        assert_true(same(&now, &later));
        drop(&now);
    }
    mr_store_close(s);
    return is_after;
}

static void make_disk(void)
{
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    const char *model = files_path("model");
    assert_int_equal(mkdir(model, 0700), 0);
    check(mr_synthetic_write(model, &config, 5, &err), &err);
    check(mr_checkpoint_open(&checkpoint, model, MR_DECODER, NULL, &err), &err);
    disk = (struct disk){.volume = {.write = disk_write, .sync = disk_sync, .close = disk_close},
                         .last = NEVER};
    check(mr_store_sizes(&config, one.gap, disk.volume.size, &err), &err);
    for (int f = 0; f < MR_V_FILES; f++) {
        disk.volume.data[f] =
            aligned_alloc(4096, disk.volume.size[f] + 4096 - disk.volume.size[f] % 4096);
        disk.safe[f] = allocate(1, disk.volume.size[f]);
        image[f] = allocate(1, disk.volume.size[f]);
        assert_non_null(disk.volume.data[f]);
        memset(disk.volume.data[f], 0, disk.volume.size[f]);
    }
    struct mr_store *s = open_disk(checkpoint);
    mr_store_close(s);
    mr_checkpoint_close(checkpoint);
    remove_dir(model);
}

// A step moves the state to higher places, the next one to lower ones: `first` says which.
static void prepare(int first)
{
    struct mr_error err = {0};
    struct mr_store_done done;
    make_disk();
    struct mr_store *s = open_disk(NULL);
    for (int k = 0; k < first; k++)
        check(one_step(s, 0, &done, &err), &err);
    mr_store_close(s);
    crash(EVERYTHING, 0);
    save_image();
    s = open_disk(NULL);
    take(&before, s);
    check(one_step(s, 0, &done, &err), &err);
    take(&after, s);
    check(one_step(s, 0, &done, &err), &err);
    take(&later, s);
    mr_store_close(s);
}

static void finish(void)
{
    forget_regions();
    drop(&before);
    drop(&after);
    drop(&later);
    for (int f = 0; f < MR_V_FILES; f++) {
        free(disk.volume.data[f]);
        free(disk.safe[f]);
        free(image[f]);
    }
}

// Every `stride`-th of them, and the last.
static void at_operations(int first, int stride)
{
    int all, operations, afters = 0, states = 0;
    prepare(first);
    assert_int_equal(step_until(NEVER, &all), 0);
    assert_true(all > 40); // many patches, many syncs
    for (int k = 0; k < all + stride; k += stride)
        for (int leaves = NOTHING, until = k < all ? k : all; leaves < LEAVES; leaves++) {
            int rc = step_until(until, &operations);
            assert_int_equal(rc == 0, until == all);
            crash((enum leaves)leaves, (uint64_t)until);
            afters += check_state(rc == 0, "operation", until, leaves);
            states++;
        }
    print_message("# %d operations, %d crashes: %d before the step, %d after it\n", all, states,
                  states - afters, afters);
    assert_true(afters > states / 2 && afters < states);
    finish();
}

static void killed_at_every_write_of_a_step_upwards(void **state)
{
    (void)state;
    at_operations(0, 1);
}

static void killed_at_every_write_of_a_step_downwards(void **state)
{
    (void)state;
    at_operations(1, 1);
}

static void killed_in_a_step_of_another_optimizer(void **state)
{
    (void)state;
    for (int kind = MR_ADAM; kind < MR_UPDATE_KINDS; kind++) {
        steps_kind = (enum mr_update_kind)kind;
        at_operations(kind % 2, 9);
    }
    steps_kind = MR_ADAMW;
}

// The open that completes a step is killed as well, at each of its own operations.
// What is chosen is in the header while the step is under way.
static void killed_in_a_step_with_choices(void **state)
{
    (void)state;
    static uint8_t choice[KEPT_TENSORS];
    for (int i = 0; i < KEPT_TENSORS; i++)
        choice[i] = (uint8_t)(i * 3 % MR_CHOICES);
    steps_choice = choice;
    at_operations(1, 9);
    steps_choice = NULL;
}

static void killed_again_while_the_step_is_completed(void **state)
{
    (void)state;
    int all, operations, more = 0;
    prepare(1);
    assert_int_equal(step_until(NEVER, &all), 0);
    for (int until = 5; until < all; until += 17)
        for (int again = 0; again < all; again += 3) {
            struct mr_error err = {0};
            struct mr_store *s;
            (void)step_until(until, &operations);
            crash(again % 2 ? SOME : NOTHING, (uint64_t)until);
            disk.last = again;
            int rc = mr_store_open_volume(&s, &disk.volume, &config, NULL, &one, &err);
            bool opened = rc == 0;
            mr_store_close(s);
            crash(again % 4 < 2 ? OTHERS : NOTHING, (uint64_t)again);
            more += !opened;
            (void)check_state(false, "again", again, until);
            if (opened)
                break;
        }
    print_message("# %d crashes of a second kind\n", more);
    assert_true(more > 20);
    finish();
}

// A program of an older version began the step: the patches that it has written count.
static void a_step_of_an_older_version_is_completed(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store_layout l;
    int all, operations, afters = 0;
    prepare(0);
    check(mr_store_layout_make(&l, &config, &err), &err);
    assert_int_equal(step_until(NEVER, &all), 0);
    from_older = true;
    for (int until = 0; until < all; until += 7) {
        (void)step_until(until, &operations);
        crash(EVERYTHING, 1);
        make_older(&disk.volume, &l, 2);
        afters += check_state(false, "operation", until, EVERYTHING);
    }
    from_older = false;
    assert_true(afters > 5);
    mr_store_layout_free(&l);
    finish();
}

// Nor do patches of another training complete a step.
static void other_patches_do_not_complete_a_step(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store_layout l;
    struct mr_store *s;
    int operations;
    prepare(0);
    check(mr_store_layout_make(&l, &config, &err), &err);
    (void)step_until(3, &operations);
    crash(EVERYTHING, 1);
    reseal(&disk.volume, &l, before.lineage + 1);
    assert_refused(mr_store_open_volume(&s, &disk.volume, &config, NULL, &one, &err), MR_ERR_FORMAT,
                   &err,
                   "another training than the header, and the step that was under way cannot");
    mr_store_layout_free(&l);
    finish();
}

// Gradients that are damaged while a step is under way cannot complete it; the error says so.
static void damaged_gradients_do_not_complete_a_step(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store *s;
    int all, operations;
    prepare(0);
    assert_int_equal(step_until(NEVER, &all), 0);
    (void)step_until(all / 2, &operations);
    crash(EVERYTHING, 1);
    disk.volume.data[MR_V_GRADIENTS][1000] ^= 4;
    assert_refused(mr_store_open_volume(&s, &disk.volume, &config, NULL, &one, &err), MR_ERR_FORMAT,
                   &err, "gradients are damaged (checksum)");
    disk.volume.data[MR_V_GRADIENTS][1000] ^= 4;
    assert_true(check_state(false, "operation", 0, 0));
    // So does a patch of which neither the old nor the new one is whole.
    (void)step_until(all / 2, &operations);
    crash(EVERYTHING, 1);
    for (uint64_t at = 0; at < disk.volume.size[MR_V_STATE]; at += 4096)
        disk.volume.data[MR_V_STATE][at] ^= 1;
    assert_refused(mr_store_open_volume(&s, &disk.volume, &config, NULL, &one, &err), MR_ERR_FORMAT,
                   &err, "cannot be completed");
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_every_write_of_a_step_upwards),
        cmocka_unit_test(killed_at_every_write_of_a_step_downwards),
        cmocka_unit_test(killed_in_a_step_of_another_optimizer),
        cmocka_unit_test(killed_in_a_step_with_choices),
        cmocka_unit_test(killed_again_while_the_step_is_completed),
        cmocka_unit_test(a_step_of_an_older_version_is_completed),
        cmocka_unit_test(other_patches_do_not_complete_a_step),
        cmocka_unit_test(damaged_gradients_do_not_complete_a_step),
    };
    return cmocka_run_group_tests_name("store_crash", tests, files_setup, files_teardown);
}
