// SPDX-License-Identifier: Apache-2.0
// Steps whose streams are handed over while others are still updated (store/target.h): each tensor
// once, in several pieces where the gap is small, and what is handed over is what the step ends
// with.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "card/places.h"
#include "pack/layout.h"
#include "store/patch.h"
#include "store/target.h"
#include "store/turned.h"
#include "store/volume.h"
#include "unit/store/store_steps.h"

enum { ITEMS = 64 };

// An item of the streams: where it lies in W and Wt, how many of its tensors are missing, and what
// it was when the last of them came.
struct part {
    uint64_t at[2], bytes[2];
    int left;
    uint8_t *was[2];
};

struct taker {
    struct mr_volume *volume;
    struct mr_stream_place place[KEPT_TENSORS];
    struct part part[ITEMS];
    size_t calls, tensors;
};

static void take(void *arg, size_t first, size_t count)
{
    struct taker *t = arg;
    t->calls++;
    t->tensors += count;
    for (size_t i = first; i < first + count; i++) {
        struct part *p = t->place[i].known ? &t->part[t->place[i].item] : NULL;
        assert_true(!p || p->left > 0);
        if (!p || --p->left > 0)
            continue;
        for (int k = 0; k < 2; k++) {
            p->was[k] = allocate(1, p->bytes[k] + 1);
            memcpy(p->was[k], t->volume->data[k ? MR_V_TURNED : MR_V_STREAM] + p->at[k],
                   p->bytes[k]);
        }
    }
}

static void set_up(struct taker *t, const struct mr_config *c)
{
    uint64_t beats[2], at[2] = {0, 0};
    t->calls = t->tensors = 0;
    mr_stream_places(c, 1, t->place, beats);
    assert_in_range(mr_stream_items(c), 1, ITEMS);
    for (int i = 0; i < mr_stream_items(c); i++) {
        struct mr_stream_item it = mr_stream_item(c, MR_FORMAT_MXINT8, i);
        t->part[i] = (struct part){.bytes = {(uint64_t)mr_item_beats(&it, 1) * MR_BEAT, 0}};
        for (int k = 0; k < mr_store_segments(c, i); k++) {
            it = mr_store_turned_item(c, i, k);
            t->part[i].bytes[1] += (uint64_t)mr_item_beats(&it, 1) * MR_BEAT;
        }
        for (int k = 0; k < 2; k++) {
            t->part[i].at[k] = at[k];
            at[k] += t->part[i].bytes[k];
        }
    }
    for (size_t i = 0; i < mr_tensor_specs(c); i++)
        if (t->place[i].known)
            t->part[t->place[i].item].left++;
}

static void look(struct taker *t, const struct mr_config *c)
{
    assert_int_equal(t->tensors, mr_tensor_specs(c));
    for (int i = 0; i < mr_stream_items(c); i++) {
        struct part *p = &t->part[i];
        assert_int_equal(p->left, 0);
        for (int k = 0; k < 2; k++) {
            assert_memory_equal(
                p->was[k], t->volume->data[k ? MR_V_TURNED : MR_V_STREAM] + p->at[k], p->bytes[k]);
            free(p->was[k]);
        }
    }
}

// Up and down; with a gap that holds one patch at a time, and with one that holds all.
static void streams_come_while_others_are_updated(void **state)
{
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    static struct taker t;
    (void)state;
    check(mr_checkpoint_open(&checkpoint, TRAIN_FIXTURES "/gptj-d12-r4", MR_DECODER, NULL, &err),
          &err);
    const struct mr_config *c = mr_checkpoint_config(checkpoint);
    for (int small = 0; small < 2; small++) {
        const struct mr_store_options options = {.threads = 2, .gap = small ? 4096 : 0};
        uint64_t size[MR_V_FILES];
        struct mr_store *s;
        struct mr_store_done done;
        const struct mr_store_target target = {.arg = &t, .ready = take};
        check(mr_store_sizes(c, options.gap, size, &err), &err);
        check(mr_volume_memory(&t.volume, size, &err), &err);
        check(mr_store_open_volume(&s, t.volume, c, checkpoint, &options, &err), &err);
        mr_store_set_target(s, &target);
        for (int step = 0; step < 2; step++) {
            set_up(&t, c);
            check(one_step(s, step, &done, &err), &err);
            look(&t, c);
            assert_true(small ? t.calls > 3 : t.calls == 1);
        }
        mr_store_close(s);
    }
    mr_checkpoint_close(checkpoint);
    forget_regions();
}

// A target without functions changes nothing, not even of an adapter, whose step makes all streams.
static void a_target_may_want_nothing(void **state)
{
    struct mr_error err = {0};
    const struct mr_lora_options lora = {.rank = 2, .alpha = 2, .seed = 3};
    const struct mr_store_options options = {.threads = 1, .adapter = &lora};
    static const struct mr_store_target nothing;
    const char *dir = files_path("state");
    uint8_t *stream[2];
    uint64_t bytes = 0;
    (void)state;
    for (int with = 0; with < 2; with++) {
        struct mr_store *s;
        struct mr_store_done done;
        check(mr_store_create(dir, TRAIN_FIXTURES "/gptj-d12-r4", &options, &err), &err);
        check(mr_store_open(&s, dir, &options, &err), &err);
        mr_store_set_target(s, with ? &nothing : NULL);
        check(one_step(s, 0, &done, &err), &err);
        assert_int_equal(mr_store_step(s), 1);
        bytes = s->volume->size[MR_V_STREAM];
        stream[with] = allocate(1, bytes);
        memcpy(stream[with], s->volume->data[MR_V_STREAM], bytes);
        mr_store_close(s);
        remove_dir(dir);
    }
    assert_memory_equal(stream[0], stream[1], bytes);
    free(stream[0]);
    free(stream[1]);
    forget_regions();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(streams_come_while_others_are_updated),
                                       cmocka_unit_test(a_target_may_want_nothing)};
    return cmocka_run_group_tests_name("store_target", tests, files_setup, files_teardown);
}
