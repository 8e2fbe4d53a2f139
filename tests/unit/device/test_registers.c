// SPDX-License-Identifier: Apache-2.0
// Registers of a device: of one that is not what it should be, after a long run and during one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "device/registers.h"
#include "unit/check.h"
#include "unit/files.h"

struct registers {
    struct mr_device base;
    uint32_t value[1024];
    int reads;
    uint32_t overflows; // where a read lets the low word before it overflow
};

static int read_register(struct mr_device *dev, uint32_t offset, uint32_t *value,
                         struct mr_error *err)
{
    struct registers *r = (struct registers *)dev;
    (void)err;
    *value = r->value[offset / 4];
    r->reads++;
    if (offset == r->overflows) {
        r->value[offset / 4]++;
        r->value[offset / 4 - 1] = 5;
    }
    return 0;
}

// Those of tiny.
static void tiny(struct registers *r)
{
    static const uint32_t of[][2] = {
        {MR_REG_MAGIC, MR_MAGIC_REG},
        {MR_REG_VERSION, MR_VERSION_MAJOR << 16 | MR_VERSION_MINOR},
        {MR_REG_GEOMETRY, 8 << 16 | 1 << 8 | 1},
        {MR_REG_WORDS, 32 << 16 | 128},
        {MR_REG_ROWS, 256 << 16 | 256},
        {MR_REG_SCORES, 4096},
        {MR_REG_RING, 512 << 16 | 1024},
        {MR_REG_ATTENTION, 512},
        {MR_REG_CLOCK_KHZ, 300000},
    };
    *r = (struct registers){0};
    (void)snprintf(r->base.info.uri, sizeof r->base.info.uri, "%s", "test:");
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        r->value[of[i][0] / 4] = of[i][1];
}

static void refuses_a_geometry_that_cannot_be(void **state)
{
    (void)state;
    static const uint32_t wrong[][2] = {
        {MR_REG_GEOMETRY, 8 << 16 | 1 << 8},       // no channel
        {MR_REG_GEOMETRY, 8 << 16 | 1 << 8 | 3},   // three channels
        {MR_REG_GEOMETRY, 64 << 16 | 1 << 8 | 32}, // more than any has
        {MR_REG_GEOMETRY, 8 << 16 | 1},            // no row of the array
        {MR_REG_GEOMETRY, 64 << 16 | 64 << 8 | 1}, // more than any has
        {MR_REG_GEOMETRY, 1 << 8 | 1},             // no row slot
        {MR_REG_GEOMETRY, 9 << 16 | 1 << 8 | 1},   // no power of two
        {MR_REG_GEOMETRY, 8 << 16 | 16 << 8 | 1},  // fewer than rows of the array
        {MR_REG_GEOMETRY, UINT32_MAX},             // a bus that nobody answers
        {MR_REG_WORDS, 32 << 16},
        {MR_REG_WORDS, 128},
        {MR_REG_ROWS, 256 << 16},
        {MR_REG_ROWS, 256},
        {MR_REG_SCORES, 0},
        {MR_REG_SCORES, UINT32_MAX},
        {MR_REG_RING, 512 << 16},
        {MR_REG_RING, 1024},
        {MR_REG_ATTENTION, 0},
    };
    struct mr_error err = {0};
    struct registers r;
    tiny(&r);
    check(mr_registers_identify(&r.base, read_register, &err), &err);
    assert_int_equal(r.base.info.g.n, 1);
    assert_int_equal(r.base.info.g.ctx_max, 512);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tiny(&r);
        r.value[wrong[i][0] / 4] = wrong[i][1];
        assert_refused(mr_registers_identify(&r.base, read_register, &err), MR_ERR_DEVICE, &err,
                       "test:: reports a geometry that no engine has");
    }
}

// Their upper words are read where they can be other than zero.
static void counters_of_a_long_run_are_whole(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct registers r;
    uint64_t out[MR_ALL_COUNTERS];
    int reads[2];
    for (int is_long = 0; is_long < 2; is_long++) {
        tiny(&r);
        for (uint32_t i = 0; i < MR_COUNTERS; i++) {
            r.value[MR_REG_COUNTERS / 4 + 2 * i] = 7 + i;
            r.value[MR_REG_COUNTERS / 4 + 2 * i + 1] = is_long ? 1 + i : 0;
        }
        check(mr_registers_counters(&r.base, read_register, out, &err), &err);
        for (uint32_t i = 0; i < MR_COUNTERS; i++)
            assert_true(out[i] == 7 + i + ((uint64_t)(is_long ? 1 + i : 0) << 32));
        reads[is_long] = r.reads;
    }
    assert_int_equal(reads[1], 2 * MR_COUNTERS);
    assert_true(reads[0] < reads[1]);
}

// A low word that overflows between two reads gives neither 2^32 too much nor too little.
static void a_counter_may_overflow_while_it_is_read(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_device_moment m;
    struct registers r;
    uint32_t at = MR_REG_COUNTERS + 8 * MR_CNT_CYCLES;
    tiny(&r);
    r.value[at / 4] = UINT32_MAX;
    r.value[at / 4 + 1] = 2;
    check(mr_registers_moment(&r.base, read_register, &m, &err), &err);
    assert_true(m.cycles == (UINT64_C(2) << 32 | UINT32_MAX));
    r.overflows = at + 4;
    check(mr_registers_moment(&r.base, read_register, &m, &err), &err);
    assert_true(m.cycles == UINT64_C(3) << 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_a_geometry_that_cannot_be),
        cmocka_unit_test(counters_of_a_long_run_are_whole),
        cmocka_unit_test(a_counter_may_overflow_while_it_is_read),
    };
    return cmocka_run_group_tests_name("registers", tests, NULL, NULL);
}
