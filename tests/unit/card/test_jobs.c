// SPDX-License-Identifier: Apache-2.0
// The list of jobs of a card's update (card/jobs.h): what is in it, what is left out, where its
// memory is. What the kernel makes of it is test_hls_update's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "card/jobs.h"
#include "checkpoint/checkpoint.h"
#include "pack/layout.h"
#include "store/choice.h"
#include "unit/check.h"
#include "unit/store_dirs.h"

enum { TENSORS = 64 };

static struct mr_checkpoint *checkpoint;
static struct mr_store_layout layout;
static const int32_t units[TENSORS];
static const struct mr_update_options adamw = {.decay = 0.1};

static int set_up(void **state)
{
    struct mr_error err = {0};
    (void)state;
    check(mr_checkpoint_open(&checkpoint, TRAIN_FIXTURES "/gptj-d12-r4", MR_DECODER, NULL, &err),
          &err);
    check(mr_store_layout_make(&layout, mr_checkpoint_config(checkpoint), &err), &err);
    return layout.tensors <= TENSORS ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    mr_store_layout_free(&layout);
    mr_checkpoint_close(checkpoint);
    return 0;
}

static void make(struct mr_update_jobs *jobs, uint64_t old_at, uint64_t new_at)
{
    struct mr_error err = {0};
    check(mr_update_jobs_make(jobs, &layout, &adamw, units, 2, old_at, new_at, &err), &err);
    assert_in_range(jobs->count, layout.patches + 1, jobs->room);
}

// Each patch once, in the state's order; after the patches of a matrix of the streams come
// its headers: those of W, and those of each segment of Wt.
static void each_patch_is_done_once(void **state)
{
    struct mr_update_jobs jobs;
    size_t patch = 0, headers = 0, matrices = 0;
    (void)state;
    make(&jobs, 1 << 20, 1 << 24);
    for (size_t i = 0; i < jobs.count; i++) {
        const struct mr_update_job *job = &jobs.job[i];
        if (job->kind == MR_UPDATE_HEADERS) {
            assert_true(patch > 0 && jobs.tensor[i] == layout.patch[patch - 1].tensor);
            headers++;
            continue;
        }
        const struct mr_store_patch *p = &layout.patch[patch++];
        assert_int_equal(jobs.tensor[i], p->tensor);
        assert_int_equal(job->from * MR_BEAT, p->at + (1 << 20));
        assert_int_equal(job->to * MR_BEAT, p->at + (1 << 24));
        assert_int_equal(job->gradients * MR_BEAT, p->first * 4);
        assert_int_equal(job->rows, p->rows);
        assert_int_equal(job->cols, p->cols);
        assert_int_equal(job->kind == MR_UPDATE_VECTOR, layout.tensor[p->tensor].vector);
        matrices += job->kind == MR_UPDATE_PATCH && p->row == 0 && p->col == 0;
    }
    assert_int_equal(patch, layout.patches);
    assert_int_equal(headers, 2 * matrices); // so small that Wt has one segment of each
    mr_update_jobs_free(&jobs);
}

static void frozen_tensors_are_left_out(void **state)
{
    struct mr_update_jobs jobs, all;
    uint8_t choice[TENSORS];
    size_t n = 0;
    (void)state;
    for (size_t i = 0; i < TENSORS; i++)
        choice[i] = (uint8_t)(i * 3 % MR_CHOICES);
    make(&all, 0, 0);
    make(&jobs, 0, 0);
    mr_update_jobs_choose(&jobs, choice);
    for (size_t i = 0; i < all.count; i++) {
        if (choice[all.tensor[i]] & MR_CHOICE_FROZEN)
            continue;
        bool decays = all.job[i].decays && !(choice[all.tensor[i]] & MR_CHOICE_NO_DECAY);
        assert_int_equal(jobs.tensor[n], all.tensor[i]);
        assert_int_equal(jobs.job[n].kind, all.job[i].kind);
        assert_int_equal(jobs.job[n].from, all.job[i].from);
        assert_int_equal(jobs.job[n++].decays, decays);
    }
    assert_int_equal(jobs.count, n);
    assert_in_range(n, 1, all.count - 1);
    mr_update_jobs_free(&jobs);
    mr_update_jobs_free(&all);
}

// A state in two buffers, the second of which has the lower address.
static void jobs_get_addresses_of_the_device(void **state)
{
    size_t half = layout.patches / 2;
    const struct mr_store_patch *p = &layout.patch[half];
    const struct mr_update_piece of_state[] = {{0, 1 << 30}, {p->at, 1 << 20}},
                                 gradients[] = {{0, 1 << 29}, {p->first * 4, 1 << 28}};
    const struct mr_update_places places = {of_state, gradients, 2, {1 << 26, 1 << 27}};
    struct mr_update_jobs jobs, before;
    size_t first = 0, second = 0;
    (void)state;
    make(&before, 0, 0);
    make(&jobs, 0, 0);
    mr_update_jobs_place(&jobs, &places);
    for (size_t i = 0; i < jobs.count; i++) {
        const struct mr_update_job *job = &jobs.job[i], *was = &before.job[i];
        if (job->kind != MR_UPDATE_HEADERS) {
            bool behind = was->from * MR_BEAT >= p->at;
            uint64_t at = was->from * MR_BEAT - of_state[behind].from + of_state[behind].addr;
            uint64_t sum = was->gradients * MR_BEAT - gradients[behind].from;
            first += !behind;
            second += behind;
            assert_int_equal(job->from * MR_BEAT, at);
            assert_int_equal(job->to, job->from);
            assert_int_equal(job->gradients * MR_BEAT, sum + gradients[behind].addr);
        }
        assert_int_equal((job->down.at - was->down.at) * MR_BEAT, places.stream[job->down.turned]);
    }
    assert_int_equal(first, half);
    assert_int_equal(second, layout.patches - half);
    mr_update_jobs_free(&jobs);
    mr_update_jobs_free(&before);
}

static void refused(const struct mr_store_layout *l, const struct mr_update_options *options,
                    int channels, int rc, const char *text)
{
    struct mr_update_jobs jobs;
    struct mr_error err = {0};
    assert_int_equal(mr_update_jobs_make(&jobs, l, options, units, channels, 0, 0, &err), rc);
    assert_string_equal(err.text, text); // and there is nothing to free
}

static void what_the_kernel_cannot_is_refused(void **state)
{
    static const int channels[] = {-1, 0, 3, 32};
    const struct mr_update_options sgd = {.kind = MR_SGD};
    struct mr_error err = {0};
    struct mr_config wide = *mr_checkpoint_config(checkpoint);
    struct mr_store_layout l;
    (void)state;
    refused(&layout, &sgd, 1, MR_ERR_UNSUPPORTED, "the kernel has AdamW's update, not SGD's");
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        char text[80];
        (void)snprintf(text, sizeof text, "streams of %d channels; 1, 2, 4, 8 or 16", channels[i]);
        refused(&layout, &adamw, channels[i], MR_ERR_USAGE, text);
    }
    wide.vocab_size = MR_STREAM_TOPS + 64;
    check(mr_store_layout_make(&l, &wide, &err), &err);
    char text[120];
    (void)snprintf(text, sizeof text,
                   "a matrix of %d x 64 has more columns than the kernel has room for, %d",
                   MR_STREAM_TOPS + 64, MR_STREAM_TOPS);
    refused(&l, &adamw, 1, MR_ERR_FIT, text);
    mr_store_layout_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_patch_is_done_once),
        cmocka_unit_test(frozen_tensors_are_left_out),
        cmocka_unit_test(jobs_get_addresses_of_the_device),
        cmocka_unit_test(what_the_kernel_cannot_is_refused),
    };
    return cmocka_run_group_tests_name("jobs", tests, set_up, tear_down);
}
