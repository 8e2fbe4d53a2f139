// SPDX-License-Identifier: Apache-2.0
// New weights that go to a device while others are still updated (card/update.h): each item of the
// streams once, unless all of it is frozen; an item that cannot be sent.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "card/update.h"
#include "device/open.h"
#include "pack/layout.h"
#include "store/choice.h"
#include "store/volume.h"
#include "unit/store/store_steps.h"

enum { ITEMS = 64, NONE = -1 };

static struct mr_checkpoint *checkpoint;
static struct mr_device *dev;
static struct mr_store *store;
static struct mr_weight_upload *upload;

// What was sent: by the mover's thread, and looked at when that has ended.
static struct {
    int sent[ITEMS], fails;
} wire;

static int send_item(void *arg, int item, struct mr_error *err)
{
    assert_ptr_equal(arg, &wire);
    wire.sent[item]++;
    return item == wire.fails ? mr_fail(err, MR_ERR_DEVICE, "item %d is lost", item) : 0;
}

static int set_up(void **state)
{
    const struct mr_store_options options = {.threads = 2};
    struct mr_error err = {0};
    struct mr_volume *volume;
    uint64_t size[MR_V_FILES];
    (void)state;
    memset(&wire, 0, sizeof wire);
    wire.fails = NONE;
    steps_choice = NULL;
    check(mr_checkpoint_open(&checkpoint, TRAIN_FIXTURES "/gptj-d12-r4", MR_DECODER, NULL, &err),
          &err);
    const struct mr_config *c = mr_checkpoint_config(checkpoint);
    assert_in_range(mr_stream_items(c), 1, ITEMS);
    check(mr_store_sizes(c, 0, size, &err), &err);
    check(mr_volume_memory(&volume, size, &err), &err);
    check(mr_store_open_volume(&store, volume, c, checkpoint, &options, &err), &err);
    check(mr_device_open(&dev, "model:tinyt", &err), &err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mr_weight_upload_close(upload);
    mr_store_close(store);
    mr_device_close(dev);
    mr_checkpoint_close(checkpoint);
    upload = NULL;
    forget_regions();
    return 0;
}

static void open_upload(const uint8_t *choice)
{
    struct mr_error err = {0};
    steps_choice = choice;
    mr_store_choose(store, choice);
    check(mr_weight_upload_open(&upload, store, dev, send_item, &wire, &err), &err);
}

static void step(int n)
{
    struct mr_store_done done;
    struct mr_error err = {0};
    check(one_step(store, n, &done, &err), &err);
}

static void each_item_goes_once_a_step(void **state)
{
    struct mr_error err = {0};
    (void)state;
    open_upload(NULL);
    for (int n = 0; n < 2; n++) {
        step(n);
        assert_int_equal(mr_weight_upload_end(upload, &err), 1);
        for (int i = 0; i < mr_stream_items(mr_store_config(store)); i++)
            assert_int_equal(wire.sent[i], n + 1);
    }
}

// What is frozen does not change: the device has it already.
static void frozen_items_stay(void **state)
{
    static uint8_t choice[KEPT_TENSORS];
    const struct mr_config *c = mr_store_config(store);
    struct mr_error err = {0};
    (void)state;
    for (size_t i = 0; i < mr_tensor_specs(c); i++)
        choice[i] = mr_tensor_spec(c, i).part == MR_BIAS ? 0 : MR_CHOICE_FROZEN;
    open_upload(choice);
    step(0);
    assert_int_equal(mr_weight_upload_end(upload, &err), 1);
    for (int i = 0; i < mr_stream_items(c); i++) {
        bool bias = mr_item_has(mr_stream_item(c, MR_FORMAT_MXINT8, i).item, MR_BIAS);
        assert_int_equal(wire.sent[i], bias);
    }
}

static void an_item_that_is_lost_is_an_error(void **state)
{
    struct mr_error err = {0};
    (void)state;
    wire.fails = 1;
    open_upload(NULL);
    step(0);
    assert_int_equal(mr_weight_upload_end(upload, &err), MR_ERR_DEVICE);
    assert_string_equal(err.text, "item 1 is lost");
    wire.fails = NONE; // the next step's are looked at by themselves
    step(1);
    assert_int_equal(mr_weight_upload_end(upload, &err), 1);
}

// No step, or one that failed on its way: not all were handed over.
static void what_was_not_handed_over_is_said(void **state)
{
    struct mr_error err = {0};
    (void)state;
    open_upload(NULL);
    assert_int_equal(mr_weight_upload_end(upload, &err), 0);
    assert_int_equal(wire.sent[0], 0);
}

// A device without the update has nothing to explain.
static void devices_without_the_kernel_say_nothing(void **state)
{
    const struct mr_device_streams streams = {.channels = 1};
    struct mr_card_update *card;
    struct mr_error err = {0};
    char why[160] = "before";
    (void)state;
    check(mr_card_update_open(&card, store, dev, &streams, why, &err), &err);
    assert_null(card);
    assert_string_equal(why, "");
    assert_int_equal(mr_card_update_bytes(card), 0);
    mr_card_update_close(card);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_item_goes_once_a_step, set_up, tear_down),
        cmocka_unit_test_setup_teardown(frozen_items_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_item_that_is_lost_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_not_handed_over_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(devices_without_the_kernel_say_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("upload", tests, NULL, NULL);
}
