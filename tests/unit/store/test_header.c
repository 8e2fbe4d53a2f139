// SPDX-License-Identifier: Apache-2.0
// What a header of a training's state may say, though its checksum is right, and what not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pack/hash.h"
#include "store/header.h"
#include "unit/check.h"
#include "unit/files.h"

static const struct mr_config config = {.vocab_size = 40,
                                        .n_positions = 16,
                                        .n_embd = 32,
                                        .n_layer = 1,
                                        .n_head = 1,
                                        .head_dim = 32,
                                        .rotary_dim = 8,
                                        .n_inner = 64,
                                        .layer_norm_epsilon = 1e-5F,
                                        .bos_token_id = -1,
                                        .eos_token_id = -1};

static struct mr_store_layout layout;
static struct mr_volume volume;
static size_t slot_bytes;

static struct mr_store_header *slot(int i)
{
    return (struct mr_store_header *)(void *)(volume.data[MR_V_HEADER] + (size_t)i * slot_bytes);
}

static void seal(struct mr_store_header *h)
{
    h->hash = 0;
    h->hash = XXH3_64bits(h, slot_bytes);
}

// Two slots alike, of a state that is not being updated, or of one that is.
static void fill(uint32_t version, bool updating)
{
    for (int i = 0; i < 2; i++) {
        struct mr_store_header *h = slot(i);
        memset(h, 0, slot_bytes);
        *h = (struct mr_store_header){.magic = "MILLRSTO",
                                      .version = version,
                                      .slot_bytes = (uint32_t)slot_bytes,
                                      .sequence = 1,
                                      .model = mr_store_model(&config),
                                      .tensors = layout.tensors,
                                      .patches = layout.patches,
                                      .lineage = layout.elements,
                                      .state_bytes = layout.bytes,
                                      .gap = layout.bytes};
        if (updating) {
            h->updating = 1;
            h->rate = h->epsilon = 1e-3;
            h->scale = 1;
            h->beta1 = h->beta2 = 0.5;
        }
        seal(h);
    }
}

static int setup(void **state)
{
    struct mr_error err = {0};
    (void)state;
    if (mr_store_layout_make(&layout, &config, &err) < 0)
        return -1;
    slot_bytes = mr_store_slot_bytes(&layout);
    volume.size[MR_V_HEADER] = 2 * slot_bytes;
    volume.size[MR_V_STATE] = 2 * layout.bytes;
    volume.size[MR_V_GRADIENTS] = layout.elements * sizeof(int32_t);
    volume.data[MR_V_HEADER] = allocate(2, slot_bytes);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(volume.data[MR_V_HEADER]);
    mr_store_layout_free(&layout);
    return 0;
}

static void expect(const char *words, size_t row)
{
    struct mr_error err = {0};
    struct mr_store_header *h;
    int rc = mr_store_header_read(&h, &volume, &layout, "here", &err);
    if (!words ? rc < 0 : rc != MR_ERR_FORMAT || !strstr(err.text, words))
        fail_msg("row %zu: %d, \"%s\"; expected \"%s\"", row, rc, err.text, words ? words : "");
    free(h);
}

#define AT(member) offsetof(struct mr_store_header, member)
#define UNIT(i)    (sizeof(struct mr_store_header) + 4 * (size_t)(i)) // now and next, by turns

enum { CHOICE = 4096, LIMIT = MR_UNIT_LIMIT, SGD = MR_SGD * MR_RULE_KIND };

static void numbers_are_in_range(void **state)
{
    (void)state;
    const struct {
        uint32_t version;
        size_t at;
        uint64_t is;
        bool updating, fits;
    } rows[] = {
        {3, AT(side), 1, false, true},
        {3, AT(side), 2, false, false},
        {3, AT(updating), 2, true, false},
        {3, AT(step), INT32_MAX - 1, false, true},
        {3, AT(step), INT32_MAX, false, false},
        {4, AT(rule), SGD, false, true},
        {3, AT(rule), SGD, false, false},
        {3, AT(rule), MR_RULE_DECAY_ALL, false, true},
        {4, AT(rule), MR_UPDATE_KINDS * MR_RULE_KIND, false, false},
        {2, AT(origin), 1, false, true},
        {1, AT(origin), 1, false, false},
        {2, AT(lineage), layout.elements - 1, false, false},
        {3, AT(lineage), layout.elements - 1, false, true},
        {3, AT(tensors), layout.tensors - 1, false, false},
        {3, AT(patches), layout.patches + 1, false, false},
        {3, AT(state_bytes), layout.bytes - 64, false, false},
        {3, AT(gap), layout.largest - MR_PATCH_ALIGN, false, false},
        {3, AT(gap), layout.bytes - 1, false, false},
        {3, AT(gap), layout.bytes + MR_PATCH_ALIGN, false, false},
        {3, UNIT(0), LIMIT, false, true},
        {3, UNIT(2), LIMIT + 1, false, false},
        {3, UNIT(2), (uint32_t)-LIMIT - 1, false, false},
        {3, UNIT(3), LIMIT + 1, false, false},
        {3, UNIT(3), (uint32_t)-LIMIT - 1, false, false},
        {4, UNIT(3), CHOICE, true, true},
        {4, UNIT(3), CHOICE, false, false},
        {3, UNIT(3), CHOICE, true, false},
        {4, UNIT(3), MR_CHOICES * CHOICE, true, false},
        {4, UNIT(3), (uint32_t)-CHOICE, true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fill(rows[i].version, rows[i].updating);
        size_t size = rows[i].at >= UNIT(0) || rows[i].at == AT(side) ||
                              rows[i].at == AT(updating) || rows[i].at == AT(rule) ||
                              rows[i].at == AT(origin)
                          ? sizeof(uint32_t)
                          : sizeof(uint64_t);
        for (int k = 0; k < 2; k++) {
            memcpy((char *)slot(k) + rows[i].at, &rows[i].is, size);
            seal(slot(k));
        }
        expect(rows[i].fits ? NULL : "its header contradicts itself", i);
    }
}

static void factors_are_in_range(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        double is;
        uint32_t rule;
        bool fits;
    } rows[] = {
        {AT(rate), 0, 0, true},     {AT(rate), NAN, 0, false},        {AT(rate), 1.5, 0, false},
        {AT(scale), -1, 0, false},  {AT(scale), 2, 0, false},         {AT(beta1), 0, 0, true},
        {AT(beta1), 1, 0, false},   {AT(beta1), -0.5, 0, false},      {AT(beta2), 1, 0, false},
        {AT(beta2), NAN, 0, false}, {AT(beta2), -0.5, 0, false},      {AT(epsilon), 2, 0, false},
        {AT(epsilon), 0, 0, false}, {AT(epsilon), 0, SGD, true}, // SGD divides by nothing
        {AT(decay), 1, 0, true},    {AT(decay), -INFINITY, 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fill(4, true);
        for (int k = 0; k < 2; k++) {
            memcpy((char *)slot(k) + rows[i].at, &rows[i].is, sizeof rows[i].is);
            slot(k)->rule = rows[i].rule;
            seal(slot(k));
        }
        expect(rows[i].fits ? NULL : "its header contradicts itself", i);
    }
}

// The newer of two counts; a slot that cannot be used does not stand in the other's way.
static void the_newer_slot_counts(void **state)
{
    (void)state;
    static const char damaged[] = "its header is damaged (checksum)";
    struct mr_error err = {0};
    struct mr_store_header *h;
    for (int newer = 0; newer < 2; newer++) {
        fill(3, false);
        slot(newer)->sequence = 2;
        slot(newer)->step = 7;
        seal(slot(newer));
        check(mr_store_header_read(&h, &volume, &layout, "here", &err), &err);
        assert_int_equal(h->step, 7);
        free(h);
        slot(newer)->slot_bytes -= 64; // of another model: its checksum is not looked at
        check(mr_store_header_read(&h, &volume, &layout, "here", &err), &err);
        assert_int_equal(h->step, 0);
        free(h);
        slot(!newer)->magic[0] = 0;
        expect(damaged, (size_t)newer);
    }
    fill(3, false);
    slot(0)->version = 9; // a later program's, or a bit: the other slot says which
    check(mr_store_header_read(&h, &volume, &layout, "here", &err), &err);
    assert_int_equal(h->version, 3);
    free(h);
    slot(1)->version = 9;
    assert_refused(mr_store_header_read(&h, &volume, &layout, "here", &err), MR_ERR_UNSUPPORTED,
                   &err, "has version 9 of the format");
    volume.size[MR_V_HEADER] += 64; // nor do the headers of a later version have this one's size
    slot(1)->version = 3;
    assert_refused(mr_store_header_read(&h, &volume, &layout, "here", &err), MR_ERR_UNSUPPORTED,
                   &err, "has version 9 of the format");
    volume.size[MR_V_HEADER] -= 64;
    fill(3, false);
    slot(1)->version = MR_STORE_ADAPTER; // the first slot's is not
    slot(1)->sequence = 2;
    seal(slot(1));
    expect("its header contradicts itself", 0);
}

// Files of that name that are something else.
static void what_is_no_header_is_refused(void **state)
{
    (void)state;
    const uint64_t size = volume.size[MR_V_HEADER], ends[] = {0, 15, 16, slot_bytes + 15};
    fill(3, false);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        slot(0)->magic[0] = 0;
        volume.size[MR_V_HEADER] = ends[i];
        expect("has no header of a training's state", i);
    }
    volume.size[MR_V_HEADER] = slot_bytes + 16; // the second slot's first bytes are there
    memcpy(&slot(0)->version, &slot(1)->version, sizeof slot(0)->version);
    expect("its header has another size than its model's", 0);
    volume.size[MR_V_HEADER] = size;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_in_range),
        cmocka_unit_test(factors_are_in_range),
        cmocka_unit_test(the_newer_slot_counts),
        cmocka_unit_test(what_is_no_header_is_refused),
    };
    return cmocka_run_group_tests_name("header", tests, setup, teardown);
}
