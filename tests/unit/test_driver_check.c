// SPDX-License-Identifier: Apache-2.0
// The driver's pure logic (driver/check.h), built for user space: windows, run descriptors, rings.
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/check.h"
#include "driver/millrace_hw.h"

static const struct millrace_extent extents[] = {
    {0x1000, 0x1000}, {0x2000, 0x40}, {0x5000, 100}, {0xFFFFFFFFFFFFF000, 0x1000}};
enum { EXTENTS = sizeof extents / sizeof *extents };

static bool in(u64 addr, u64 bytes)
{
    return millrace_window_ok(extents, EXTENTS, addr, bytes);
}

static void driver_windows(void **state)
{
    (void)state;
    assert_true(in(0x1000, 0x1000));
    assert_true(in(0x1FFF, 1));
    assert_false(in(0x0FFF, 1));
    assert_false(in(0x0FFF, 2));
    assert_false(in(0x1000, 0x1001)); // the next buffer is a neighbour, and another one
    assert_false(in(0x1FFF, 2));
    assert_true(in(0x2000, 0x40));
    assert_false(in(0x2040, 1));
    assert_true(in(0x5000, 100));
    assert_false(in(0x5001, 100));
    assert_false(in(0x1000, ~0ull));
    assert_false(in(0x1001, ~0ull - 0x1000));
    assert_true(in(0xFFFFFFFFFFFFFFFF, 1));
    assert_false(in(0xFFFFFFFFFFFFFFFF, 2)); // wraps
    assert_false(millrace_window_ok(NULL, 0, 0, 1));
}

// Every address and size of a small memory against byte by byte.
static void driver_windows_exhaustively(void **state)
{
    (void)state;
    const struct millrace_extent small[] = {{3, 5}, {8, 4}, {20, 1}};
    for (u64 addr = 0; addr < 32; addr++)
        for (u64 bytes = 1; bytes < 32; bytes++) {
            bool want = false;
            for (int e = 0; e < 3; e++) {
                bool all = true;
                for (u64 b = addr; b < addr + bytes; b++)
                    all = all && b >= small[e].addr && b < small[e].addr + small[e].bytes;
                want = want || all;
            }
            assert_int_equal(millrace_window_ok(small, 3, addr, bytes), want);
        }
}

static void put64(__le32 *w, u64 v)
{
    w[0] = htole32((u32)v);
    w[1] = htole32((u32)(v >> 32));
}

static void fill(__le32 *d, unsigned channels)
{
    memset(d, 0, 1024);
    d[MR_RUN_MAGIC] = htole32(MR_MAGIC_RUN);
    put64(d + MR_RUN_PROG_LO, 0x1000);
    d[MR_RUN_PROG_BEATS] = htole32(2);
    put64(d + MR_RUN_INPUT_LO, 0x1080);
    d[MR_RUN_INPUT_BEATS] = htole32(1);
    put64(d + MR_RUN_RESULT_LO, 0x10C0);
    d[MR_RUN_RESULT_BEATS] = htole32(4);
    for (unsigned c = 0; c < channels; c++) {
        put64(d + 16 + 8 * c, 0x1400);
        d[18 + 8 * c] = htole32(16);
        put64(d + 20 + 8 * c, 0x2000);
        d[22 + 8 * c] = htole32(1);
    }
}

static void driver_run_descriptor(void **state)
{
    (void)state;
    for (unsigned channels = 1; channels <= 16; channels++) {
        __le32 d[256];
        unsigned words = millrace_run_words(channels);
        fill(d, channels);
        assert_in_range(words, 16 + 8 * channels, 256);
        assert_int_equal(words % 16, 0);
        assert_true(millrace_run_ok(extents, EXTENTS, d, words, channels));
        assert_false(millrace_run_ok(extents, EXTENTS, d, words - 16, channels));
        assert_false(millrace_run_ok(extents, EXTENTS, d, words + 16, channels));
        d[0] ^= 1;
        assert_false(millrace_run_ok(extents, EXTENTS, d, words, channels));
        // Each window: not aligned, elsewhere, one beat too many, and as many as there can be.
        for (unsigned k = 0; k < 3 + 2 * channels; k++) {
            unsigned at = k < 3 ? MR_RUN_PROG_LO + 2 * k : 16 + 4 * (k - 3);
            unsigned beats = k < 3 ? MR_RUN_PROG_BEATS + k : at + 2;
            const u64 bad[] = {0x1020, 0x3000, 0xFC0, ~0x3Full};
            for (unsigned b = 0; b < 4; b++) {
                fill(d, channels);
                put64(d + at, bad[b]);
                // One beat at the very end of memory lies in the last extent.
                if (b == 3)
                    d[beats] = htole32(2);
                assert_false(millrace_run_ok(extents, EXTENTS, d, words, channels));
            }
            fill(d, channels);
            d[beats] = htole32(65);
            assert_false(millrace_run_ok(extents, EXTENTS, d, words, channels));
            d[beats] = htole32(UINT32_MAX);
            assert_false(millrace_run_ok(extents, EXTENTS, d, words, channels));
            put64(d + at, 0x3000);
            d[beats] = 0; // never used
            assert_true(millrace_run_ok(extents, EXTENTS, d, words, channels));
            put64(d + at, 0x3001);
            assert_false(millrace_run_ok(extents, EXTENTS, d, words, channels));
        }
    }
}

static void driver_ring_space(void **state)
{
    (void)state;
    const u32 starts[] = {0, 1, 63, 64, 0xFFFF, 0x10000, UINT32_MAX - 20, UINT32_MAX};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        for (u32 used = 0; used <= 64; used++)
            assert_int_equal(millrace_ring_space(starts[i], starts[i] + used, 64), 64 - used);
    assert_int_equal(millrace_ring_space(5, 5 + 65, 64), 0);
    assert_int_equal(millrace_ring_space(6, 5, 64),
                     0); // more completed than submitted: never any room
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(driver_windows),
        cmocka_unit_test(driver_windows_exhaustively),
        cmocka_unit_test(driver_run_descriptor),
        cmocka_unit_test(driver_ring_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
