// SPDX-License-Identifier: Apache-2.0
// The inner loops of packing, in every instruction set, against the functions that define them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cmodel/num.h"
#include "pack/mxfp4.h"
#include "pack/row_kernels.h"
#include "unit/simd_sets.h"

static const char *const names[] = {"portable", "avx2", "avx512"};
enum { BLOCKS = 8, N = 32 * BLOCKS, KINDS = 9 };

static uint32_t next(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*s >> 32);
}

// Values of one kind: what is likely to go wrong.
static void fill(float v[N], int kind, uint64_t *s)
{
    static const float ties[] = {0.25F, 0.5F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5, 6, 7, 0, 1};
    int top = (int)(next(s) % 254) + 1;
    for (int i = 0; i < N; i++) {
        uint32_t r = next(s);
        int small = top - (int)(r >> 8 & 15);
        switch (kind) {
        case 0: // usual weights
            v[i] = (float)((int32_t)r >> 8) * 0x1p-26F;
            break;
        case 1: // any bits, infinities and NaN among them
            v[i] = mr_float(r);
            break;
        case 2: // any finite ones of similar size
            v[i] = mr_float((r & 0x807FFFFFu) | (uint32_t)(small > 0 ? small : 0) << 23);
            break;
        case 3: // ties of both formats, at many scales
            v[i] = ties[r % 12] * (r & 0x1000 ? -1.0F : 1.0F) *
                   mr_float((uint32_t)(100 + top / 8) << 23);
            break;
        case 4: // ties of MXINT8, and the largest magnitudes
            v[i] = (float)((int)(r % 257) - 128) * 0x1p-7F;
            break;
        case 5: // a few that are not zero
            v[i] = r % 40 ? (r & 1 ? -0.0F : 0.0F) : mr_float(r & 0xBFFFFFFFu);
            break;
        case 6: // as bf16
            v[i] = mr_float((r & 0x80FF0000u) | 0x3C000000u);
            break;
        case 7: // subnormals and the smallest normals
            v[i] = mr_float(r & (r & 0x1000000 ? 0x807FFFFFu : 0x83FFFFFFu));
            break;
        default: // two scales that are nearly as good
            v[i] = (r & 0x100 ? 1.5F : 3.0F) + (float)(r >> 28) * 0x1p-22F;
            break;
        }
    }
}

static void blocks_are_those_of_the_reference(void **state)
{
    (void)state;
    uint64_t s = 1;
    int chosen[3] = {0}; // of the three MXFP4 scales; the finest cuts off too much to win
    for (int n = 0; n < 400 * KINDS; n++) {
        float v[N];
        uint8_t code[2][BLOCKS], code4[2][BLOCKS], nibble[N];
        int8_t e[2][N], e4[N];
        fill(v, n % KINDS, &s);
        for (int b = 0; b < BLOCKS; b++) {
            code[0][b] = mr_mxint8_quantise(v + 32 * b, e[0] + 32 * b);
            code4[0][b] = mr_mxfp4_quantise(v + 32 * b, nibble + 32 * b);
            unsigned top = 0;
            for (int i = 0; i < 32; i++)
                top = mr_expo(v[32 * b + i]) > top ? mr_expo(v[32 * b + i]) : top;
            if (top > 3 && top < 255)
                chosen[code4[0][b] - top + 3]++;
        }
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            const struct mr_row_kernels *f = SIMD_NAMED(mr_row_kernels, names[k]);
            if (!f)
                continue;
            memset(e[1], 85, sizeof e[1]);
            f->mxint8(v, BLOCKS, code[1], e[1]);
            assert_memory_equal(code[0], code[1], BLOCKS);
            assert_memory_equal(e[0], e[1], N);
            memset(e4, 85, sizeof e4);
            f->mxfp4(v, BLOCKS, code4[1], e4);
            assert_memory_equal(code4[0], code4[1], BLOCKS);
            assert_memory_equal(nibble, e4, N);
        }
    }
    assert_true(chosen[1] > 100 && chosen[2] > 100);
}

static uint8_t scale_with(float v[32], int i, uint32_t bits)
{
    uint8_t nibble[32];
    v[i] = mr_float(bits);
    return mr_mxfp4_quantise(v, nibble);
}

// Two MXFP4 scales with all but the same error: one weight is moved to where the choice changes,
// and there fp32 sums cannot tell.
static void near_ties_are_left_to_the_reference(void **state)
{
    (void)state;
    uint64_t s = 4;
    int found = 0;
    for (int n = 0; n < 3000; n++) {
        float v[N];
        uint8_t code, want, nibble[32];
        int8_t e[32];
        fill(v, 0, &s);
        for (int i = 0; i < 32; i++)
            v[i] = 0.0312F * (float)((int32_t)next(&s) >> 8) * 0x1p-23F;
        // the largest, from one end of its power of two to the other
        uint32_t low = mr_bits(0x1p-5F), high = mr_bits(0x1p-4F) - 1;
        uint8_t at_low = scale_with(v, 5, low);
        if (at_low == scale_with(v, 5, high))
            continue;
        while (high - low > 1) {
            uint32_t middle = low + (high - low) / 2;
            *(scale_with(v, 5, middle) == at_low ? &low : &high) = middle;
        }
        found++;
        for (uint32_t bits = low - 8; bits <= high + 8; bits++) {
            want = scale_with(v, 5, bits);
            (void)mr_mxfp4_quantise(v, nibble);
            for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
                const struct mr_row_kernels *f = SIMD_NAMED(mr_row_kernels, names[k]);
                if (!f)
                    continue;
                f->mxfp4(v, 1, &code, e);
                assert_int_equal(code, want);
                assert_memory_equal(e, nibble, 32);
            }
        }
    }
    assert_true(found > 50);
}

static void scaling_is_that_of_the_reference(void **state)
{
    (void)state;
    uint64_t s = 2;
    int refused = 0, taken = 0;
    for (int n = 0; n < 400 * KINDS; n++) {
        float v[N], out[N + 1];
        int8_t exp[N];
        size_t count = next(&s) % (N + 1), first = next(&s) % 3;
        int row_exp = (int)(next(&s) % 81) - 40;
        bool with = next(&s) & 1, finite = true;
        fill(v, n % KINDS, &s);
        count = count > first ? count - first : 0;
        for (int i = 0; i < N; i++)
            exp[i] = (int8_t)((int)(next(&s) % 81) - 40);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            const struct mr_row_kernels *f = SIMD_NAMED(mr_row_kernels, names[k]);
            if (!f)
                continue;
            out[count] = 85;
            bool ok = f->scale(v + first, with ? exp + first : NULL, row_exp, count, out);
            finite = true;
            for (size_t i = 0; i < count; i++) {
                float want = mr_fscale(v[first + i], row_exp + (with ? exp[first + i] : 0));
                finite = finite && mr_expo(want) != 255;
                if (mr_expo(want) != 255)
                    assert_int_equal(mr_bits(out[i]), mr_bits(want));
            }
            assert_int_equal(ok, finite);
            assert_true(out[count] == 85);
        }
        refused += !finite;
        taken += finite;
    }
    assert_true(refused > 100 && taken > 100);
}

static void maxima_are_those_of_the_reference(void **state)
{
    (void)state;
    uint64_t s = 3;
    for (int n = 0; n < 100 * KINDS; n++) {
        float v[N];
        uint32_t start[N], row_start = next(&s) >> 2;
        size_t count = next(&s) % (N + 1);
        fill(v, n % KINDS, &s);
        for (int i = 0; i < N; i++)
            start[i] = next(&s) >> 2;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            const struct mr_row_kernels *f = SIMD_NAMED(mr_row_kernels, names[k]);
            uint32_t col[N], row = row_start, row2 = row_start, top = row_start;
            if (!f)
                continue;
            memcpy(col, start, sizeof col);
            f->maxima(v, count, col, &row);
            f->maxima(v, count, NULL, &row2);
            for (size_t i = 0; i < N; i++) {
                uint32_t a = mr_bits(v[i]) & 0x7FFFFFFFu;
                assert_int_equal(col[i], i < count && a > start[i] ? a : start[i]);
                top = i < count && a > top ? a : top;
            }
            assert_int_equal(row, top);
            assert_int_equal(row2, top);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_those_of_the_reference),
        cmocka_unit_test(near_ties_are_left_to_the_reference),
        cmocka_unit_test(scaling_is_that_of_the_reference),
        cmocka_unit_test(maxima_are_those_of_the_reference),
    };
    return cmocka_run_group_tests_name("row_kernels", tests, NULL, NULL);
}
