// SPDX-License-Identifier: Apache-2.0
// The inner loops of the C model in every instruction set, against plain ones.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cmodel/kernel_select.h"
#include "cmodel/num.h"

enum { MAX_KBLOCKS = 40, SECTIONS = (MAX_KBLOCKS + 15) / 16, MAX_HEAD = 16, CASES = 2000 };

static uint64_t state = 1;

static unsigned draw(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

struct data {
    struct mr_tile tile;
    uint8_t sections[SECTIONS * MR_SECTION_BYTES];
    int8_t act[MAX_KBLOCKS * 32];
    uint8_t act_code[MAX_KBLOCKS];
    int row_max;
    int64_t start[4];
};

static uint8_t *code_at(struct data *d, int k, int c)
{
    return d->sections + k / 16 * MR_SECTION_BYTES + 4 * (k % 16) + c;
}

static int8_t *column_at(struct data *d, int k, int c)
{
    return (int8_t *)d->sections + k / 16 * MR_SECTION_BYTES + MR_SECTION_CODES + 128 * (k % 16) +
           32 * c;
}

static int8_t element(int kind)
{
    static const int8_t extremes[] = {-128, -127, 127, 0, 1, -1};
    return kind == 0 ? (int8_t)draw(256) : kind == 1 ? extremes[draw(6)] : -128;
}

// Codes: spread widely, close together, or at the ends of the range. Shifts stay >= 0, as in a
// program: the maxima are at least every code.
static uint8_t code(int kind)
{
    static const uint8_t ends[] = {0, 1, 254, 253};
    return kind == 0 ? (uint8_t)draw(255) : kind == 1 ? (uint8_t)(120 + draw(8)) : ends[draw(4)];
}

static void make(struct data *d, int i)
{
    int elements = i % 3, codes = i / 3 % 3;
    *d = (struct data){.tile = {.kblocks = 1 + (int)draw(MAX_KBLOCKS)}};
    d->tile.sections = d->sections;
    for (int k = 0; k < d->tile.kblocks; k++) {
        d->act_code[k] = code(codes);
        d->row_max = d->act_code[k] > d->row_max ? d->act_code[k] : d->row_max;
        for (int c = 0; c < 4; c++) {
            uint8_t w = code(codes);
            *code_at(d, k, c) = w;
            d->tile.col_max[c] = w > d->tile.col_max[c] ? w : d->tile.col_max[c];
        }
        for (int j = 0; j < 32; j++)
            d->act[32 * k + j] = element(elements == 2 ? 1 : elements);
        for (int j = 0; j < 128; j++)
            column_at(d, k, 0)[j] = element(elements);
    }
    for (int c = 0; c < 4; c++)
        d->start[c] = (int64_t)draw(1u << 30) - (1 << 29);
}

// The definitions in docs/numerics.md, in the slowest form: floor(x / 2^shift), shift at most 38.
static int64_t shifted(int64_t x, int shift)
{
    for (int s = 0; s < shift && s < MR_SHIFT_MAX; s++)
        x = x < 0 ? -((1 - x) / 2) : x / 2;
    return x;
}

static int64_t aligned_dot(const int8_t *a, const int8_t *b, int shift)
{
    int64_t dot = 0;
    for (int j = 0; j < 32; j++)
        dot += (int64_t)a[j] * b[j];
    return shifted(dot * (1 << MR_GUARD_BITS), shift);
}

static void plain_tile(struct data *d, int64_t acc[4])
{
    for (int c = 0; c < 4; c++) {
        acc[c] = d->start[c];
        for (int k = 0; k < d->tile.kblocks; k++)
            acc[c] +=
                aligned_dot(d->act + 32 * k, column_at(d, k, c),
                            d->row_max - d->act_code[k] + d->tile.col_max[c] - *code_at(d, k, c));
    }
}

static void check_tile_row(const struct mr_kernels *kernels)
{
    static struct data d;
    for (int i = 0; i < CASES; i++) {
        int64_t want[4], got[4];
        make(&d, i);
        plain_tile(&d, want);
        memcpy(got, d.start, sizeof got);
        kernels->tile_row(&d.tile, d.act, d.act_code, d.row_max, got);
        if (memcmp(want, got, sizeof got) != 0)
            fail_msg("%s: tile %d (%d blocks) differs", kernels->name, i, d.tile.kblocks);
    }
}

struct head {
    int8_t a[32 * MAX_HEAD], b[32 * MAX_HEAD];
    uint8_t a_code[MAX_HEAD], b_code[MAX_HEAD];
    int a_max, b_max, blocks;
};

static void make_head(struct head *h, int i)
{
    *h = (struct head){.blocks = 1 + (int)draw(MAX_HEAD)};
    for (int k = 0; k < h->blocks; k++) {
        h->a_code[k] = code(i / 3 % 3);
        h->b_code[k] = code(i / 3 % 3);
        h->a_max = h->a_code[k] > h->a_max ? h->a_code[k] : h->a_max;
        h->b_max = h->b_code[k] > h->b_max ? h->b_code[k] : h->b_max;
    }
    for (int j = 0; j < 32 * h->blocks; j++) {
        h->a[j] = element(i % 3);
        h->b[j] = element(i % 3);
    }
}

static void check_score(const struct mr_kernels *kernels)
{
    for (int i = 0; i < CASES; i++) {
        struct head h;
        make_head(&h, i);
        int64_t want = 0;
        for (int k = 0; k < h.blocks; k++)
            want += aligned_dot(h.a + 32 * k, h.b + 32 * k,
                                h.a_max + h.b_max - h.a_code[k] - h.b_code[k]);
        if (kernels->score(h.a, h.a_code, h.b, h.b_code, h.blocks, h.a_max + h.b_max) != want)
            fail_msg("%s: score %d (%d blocks) differs", kernels->name, i, h.blocks);
    }
}

// A prefix maximum below the code does not occur in programs; the shift is 0 then.
static void check_weigh(const struct mr_kernels *kernels)
{
    static const int32_t shares[] = {65535, 1, 32768, 12345};
    for (int i = 0; i < CASES; i++) {
        struct head h;
        int64_t want[32 * MAX_HEAD], got[32 * MAX_HEAD];
        int32_t p = i % 5 == 4 ? (int32_t)draw(65536) : shares[i % 5];
        make_head(&h, i);
        for (int j = 0; j < 32 * h.blocks; j++) {
            got[j] = (int64_t)draw(1u << 30) - (1 << 29);
            // A distance below zero wraps: docs/numerics.md, rule 9.
            want[j] = got[j] + shifted((int64_t)p * h.a[j] * 4096,
                                       (h.b_code[j / 32] - h.a_code[j / 32]) & 255);
        }
        kernels->weigh(got, p, h.a, h.a_code, h.b_code, h.blocks);
        if (memcmp(want, got, (size_t)h.blocks * 32 * sizeof *got) != 0)
            fail_msg("%s: weighted value %d (%d blocks) differs", kernels->name, i, h.blocks);
    }
}

// ---- 16 tokens at once, against what one token gets ----

// Any bits, magnitudes near each other, or values at the borders of the rules.
static float value(int kind)
{
    static const uint32_t edges[] = {0,          0x80000000, 0x00000001, 0x807FFFFF, 0x00800000,
                                     0x7F800000, 0xFF800000, 0x7FC00001, 0x3F800000, 0x40A00000,
                                     0x409FFFFF, 0xC0A00000, 0x7F7FFFFF, 0x3FFFFFFF};
    uint32_t bits = (uint32_t)draw(1u << 16) << 16 | draw(1u << 16);
    if (kind == 0)
        return mr_float(bits);
    if (kind == 1) // 2^-4 to 2^4
        return mr_float((bits & 0x807FFFFF) | (123 + draw(9)) << 23);
    if (kind == 2) // halfway between two results of the quantiser
        return mr_float((bits & 0x80000000) | 0x3F800000 | (draw(128) << 16) | 1u << draw(17));
    return mr_float(edges[draw(14)]);
}

static void check_row_functions(const struct mr_row_kernels *rows)
{
    for (int i = 0; i < 40 * CASES; i++) {
        float v[32], want[16], got[16];
        int8_t q[2][32];
        for (int j = 0; j < 32; j++)
            v[j] = value(i % 5 == 4 ? (int)draw(4) : i % 5);
        if (i % 7 == 0)
            v[i % 32] = mr_float(0x7F000000); // the others are small beside it
        uint8_t code_want = mr_mxint8_quantise(v, q[0]), code_got = rows->quantise(v, q[1]);
        if (code_want != code_got || memcmp(q[0], q[1], 32) != 0)
            fail_msg("quantiser: block %d differs", i);
        memcpy(got, v, sizeof got);
        for (int j = 0; j < 16; j++)
            want[j] = mr_gelu(v[j]);
        rows->gelu(got);
        if (memcmp(want, got, sizeof got) != 0)
            fail_msg("GELU: case %d differs", i);
    }
}

static void plain_columns(struct data *d, int exp, const float *bias, float y[4])
{
    int64_t acc[4];
    memset(d->start, 0, sizeof d->start);
    plain_tile(d, acc);
    for (int c = 0; c < 4; c++) {
        int base = d->row_max + d->tile.col_max[c];
        bool nan = d->row_max == 255 || d->tile.col_max[c] == 255;
        y[c] = nan ? mr_qnan() : mr_acc_to_f32(acc[c], base + exp);
        y[c] = bias ? mr_fadd(y[c], bias[c]) : y[c];
    }
}

// The same weights, other activations for each of 16 tokens; sometimes in two passes.
static void check_tile_rows(const struct mr_row_kernels *rows)
{
    static struct mr_panel_block blocks[MAX_KBLOCKS];
    static uint8_t flipped[SECTIONS * MR_SECTION_BYTES];
    static struct data d[16];
    int32_t row_max[16];
    const struct mr_panel panel = {blocks, row_max, 0, 1};
    for (int i = 0; i < CASES / 8; i++) {
        float y[4][16], want[4], bias[4];
        int exp = i % 2 ? MR_ACC_EXP_INT8(0) : MR_ACC_EXP_FP4(0);
        make(&d[0], i);
        if (i % 11 == 0)
            d[0].tile.col_max[i % 4] = 255;
        for (int t = 0; t < 16; t++) {
            if (t > 0)
                d[t] = d[0];
            d[t].tile.sections = d[t].sections;
            d[t].row_max = i % 13 == 0 && t % 5 == 0 ? 255 : 0;
            for (int k = 0; k < d[t].tile.kblocks; k++) {
                d[t].act_code[k] = code(i / 3 % 3);
                if (d[t].act_code[k] > d[t].row_max)
                    d[t].row_max = d[t].act_code[k];
                for (int j = 0; j < 32; j++)
                    d[t].act[32 * k + j] = element(i % 3 == 2 ? 1 : i % 3);
                mr_panel_put(&blocks[k], t, d[t].act + 32 * k, d[t].act_code[k]);
            }
            row_max[t] = d[t].row_max;
        }
        for (int c = 0; c < 4; c++)
            bias[c] = value(i % 4);
        mr_flip_tile(d[0].sections, d[0].tile.kblocks, flipped);
        struct mr_tile tile = d[0].tile;
        tile.sections = flipped;
        rows->tile_rows(&tile, &panel, 0, exp, i % 3 ? bias : NULL, y);
        for (int t = 0; t < 16; t++) {
            plain_columns(&d[t], exp, i % 3 ? bias : NULL, want);
            for (int c = 0; c < 4; c++)
                if (mr_bits(want[c]) != mr_bits(y[c][t]))
                    fail_msg("tile %d: token %d, column %d differs", i, t, c);
        }
    }
}

// (2^37 - 1) 2^e with e so that this is just below 2^-126: it rounds to that, and is not flushed.
static void check_the_smallest(const struct mr_row_kernels *rows)
{
    static struct mr_panel_block blocks[2];
    static uint8_t sections[MR_SECTION_BYTES];
    static const int32_t row_max[16] = {61};
    const struct mr_panel panel = {blocks, (int32_t *)row_max, 0, 1};
    const struct mr_tile tile = {2, sections, {60, 60, 60, 60}};
    int8_t large[32], one[32] = {1};
    float y[4][16];
    memset(large, -128, sizeof large);
    memset(sections, 60, MR_SECTION_CODES);
    memset(sections + MR_SECTION_CODES, -128, 128); // dot: 2^19
    for (int c = 0; c < 4; c++)
        sections[MR_SECTION_CODES + 128 + 32 * c] = (uint8_t)-1;
    mr_panel_put(&blocks[0], 0, large, 61);
    mr_panel_put(&blocks[1], 0, one, 61 - MR_GUARD_BITS); // -1 in the last place
    mr_flip_tile(sections, 2, sections);
    rows->tile_rows(&tile, &panel, 0, MR_ACC_EXP_INT8(0), NULL, y);
    for (int c = 0; c < 4; c++)
        assert_int_equal(mr_bits(y[c][0]), 0x00800000);
    rows->tile_rows(&tile, &panel, 0, MR_ACC_EXP_INT8(0) - 1, NULL, y);
    assert_int_equal(mr_bits(y[0][0]), 0);
}

static void check_kernel(const char *name)
{
    const struct mr_kernels *kernels = mr_kernels_named(name);
    if (!kernels) {
        assert_string_not_equal(name, "portable");
        print_message("# this processor has no %s: nothing to compare\n", name);
        return;
    }
    state = 1;
    check_tile_row(kernels);
    check_score(kernels);
    check_weigh(kernels);
    if (kernels->rows) {
        check_row_functions(kernels->rows);
        check_tile_rows(kernels->rows);
        check_the_smallest(kernels->rows);
    }
}

static void portable_kernel_is_exact(void **unused)
{
    (void)unused;
    check_kernel("portable");
}

static void avx2_kernel_is_exact(void **unused)
{
    (void)unused;
    check_kernel("avx2");
}

static void avx512_kernel_is_exact(void **unused)
{
    (void)unused;
    check_kernel("avx512");
}

static void kernels_are_chosen_by_name(void **unused)
{
    (void)unused;
    assert_int_equal(setenv("MILLRACE_SIMD", "portable", 1), 0);
    assert_ptr_equal(mr_kernels(), mr_kernels_named("portable"));
    assert_int_equal(setenv("MILLRACE_SIMD", "unheard-of", 1), 0);
    assert_non_null(mr_kernels());
    assert_int_equal(unsetenv("MILLRACE_SIMD"), 0);
    assert_non_null(mr_kernels());
    assert_null(mr_kernels_named("unheard-of"));
}

static void mxfp4_is_expanded_to_twice_its_values(void **unused)
{
    static const int8_t twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    enum { KBLOCKS = 18 }; // a whole section and a short one
    static uint8_t group[2 * 64 + KBLOCKS * 64], out[2 * MR_SECTION_BYTES];
    (void)unused;
    state = 5;
    for (size_t i = 0; i < sizeof group; i++)
        group[i] = (uint8_t)draw(256);
    mr_expand_fp4(group, KBLOCKS, out);
    for (int k = 0; k < KBLOCKS; k++) {
        const uint8_t *in = group + k / 16 * (64 + 16 * 64), *to = out + k / 16 * MR_SECTION_BYTES;
        assert_memory_equal(to, in, 64);
        in += 64 + 64 * (k % 16);
        to += MR_SECTION_CODES + 128 * (k % 16);
        for (int i = 0; i < 128; i++)
            assert_int_equal((int8_t)to[i], twice[in[i / 2] >> (4 * (i % 2)) & 15]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable_kernel_is_exact),
        cmocka_unit_test(avx2_kernel_is_exact),
        cmocka_unit_test(avx512_kernel_is_exact),
        cmocka_unit_test(mxfp4_is_expanded_to_twice_its_values),
        cmocka_unit_test(kernels_are_chosen_by_name),
    };
    return cmocka_run_group_tests_name("kernel", tests, NULL, NULL);
}
