// SPDX-License-Identifier: Apache-2.0
// The inner loops of the C model in every instruction set, against plain ones.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cmodel/backward.h"
#include "cmodel/kernel.h"
#include "cmodel/num.h"
#include "unit/cmodel/kernel_values.h"

enum { MAX_KBLOCKS = 40, SECTIONS = (MAX_KBLOCKS + 15) / 16, MAX_HEAD = 8, CASES = 2000 };
enum { MAX_RECORDS = 13, CODES_AT = 5 };

static int8_t element(int kind)
{
    static const int8_t extremes[] = {-128, -127, 127, 0, 1, -1};
    return kind == 0 ? (int8_t)draw(256) : kind == 1 ? extremes[draw(6)] : -128;
}

// Codes: spread widely, close together, or at the ends of the range.
static uint8_t code(int kind)
{
    static const uint8_t ends[] = {0, 1, 254, 253};
    return kind == 0 ? (uint8_t)draw(255) : kind == 1 ? (uint8_t)(120 + draw(8)) : ends[draw(4)];
}

// The definitions in docs/inside/numerics.md, in the slowest form: floor(x / 2^shift), shift at most 38.
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

// Activations as the machine hands them over. What is called the row's maximum is sometimes none:
// distances then wrap.
struct row {
    int8_t act[MAX_KBLOCKS * 32];
    uint8_t code[MAX_KBLOCKS], below[MAX_KBLOCKS];
    int32_t sum[MAX_KBLOCKS];
    int row_max;
};

static struct mr_operand operand(struct row *r, int n)
{
    for (int k = 0; k < n; k++) {
        r->below[k] = (uint8_t)(r->row_max - r->code[k]);
        r->sum[k] = 0;
        for (int j = 0; j < 32; j++)
            r->sum[k] += r->act[32 * k + j];
    }
    return (struct mr_operand){r->act, r->below, r->sum};
}

static void make_row(struct row *r, int n, int elements, int codes)
{
    r->row_max = 0;
    for (int k = 0; k < n; k++) {
        r->code[k] = code(codes);
        r->row_max = r->code[k] > r->row_max ? r->code[k] : r->row_max;
        for (int j = 0; j < 32; j++)
            r->act[32 * k + j] = element(elements);
    }
    if (draw(16) == 0)
        r->row_max = (int)draw(255);
}

// 32 columns of a stream, and their elements as numbers.
struct data {
    struct mr_columns w;
    uint8_t groups[8][SECTIONS * MR_SECTION_BYTES];
    uint8_t codes[MAX_KBLOCKS][32];
    int8_t elements[MAX_KBLOCKS][32][32];
    struct row row;
    int64_t start[32];
};

static void put_element(struct data *d, int k, int c, int i, int kind)
{
    static const int8_t twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    int bytes = d->w.fp4 ? 16 : 32;
    uint8_t *column = d->groups[c / 4] + k / 16 * (64 + 16 * 4 * bytes) + 64 +
                      4 * bytes * (k % 16) + bytes * (c % 4);
    if (d->w.fp4) {
        unsigned nibble = kind == 0 ? draw(16) : kind == 1 ? 7 + 8 * draw(2) : 15;
        column[i / 2] |= (uint8_t)(nibble << (4 * (i % 2)));
        d->elements[k][c][i] = twice[nibble];
    } else {
        d->elements[k][c][i] = element(kind);
        column[i] = (uint8_t)d->elements[k][c][i];
    }
}

static void make(struct data *d, int i)
{
    int elements = i % 3, codes = i / 3 % 3;
    memset(d, 0, sizeof *d);
    d->w = (struct mr_columns){.kblocks = 1 + (int)draw(MAX_KBLOCKS), .fp4 = i / 9 % 2};
    make_row(&d->row, d->w.kblocks, elements == 2 ? 1 : elements, codes);
    for (int c = 0; c < 32; c++) {
        uint8_t *group = d->groups[c / 4];
        d->w.group[c / 4] = group;
        for (int k = 0; k < d->w.kblocks; k++) {
            uint8_t w = code(codes);
            d->codes[k][c] = w;
            group[k / 16 * (64 + 16 * (d->w.fp4 ? 64 : 128)) + 4 * (k % 16) + c % 4] = w;
            d->w.col_max[c] = w > d->w.col_max[c] ? w : d->w.col_max[c];
            for (int j = 0; j < 32; j++)
                put_element(d, k, c, j, elements);
        }
        if (draw(64) == 0)
            d->w.col_max[c] = (uint8_t)draw(256);
        d->start[c] = (int64_t)draw(1u << 30) - (1 << 29);
    }
}

static int64_t plain_sum(const struct data *d, const struct row *r, int c)
{
    int64_t acc = 0;
    for (int k = 0; k < d->w.kblocks; k++)
        acc += aligned_dot(r->act + 32 * k, d->elements[k][c],
                           ((r->row_max - r->code[k]) & 255) +
                               ((d->w.col_max[c] - d->codes[k][c]) & 255));
    return acc;
}

static void check_sums(const struct mr_kernels *kernels)
{
    static struct data d;
    for (int i = 0; i < CASES / 4; i++) {
        int64_t got[32];
        make(&d, i);
        struct mr_operand x = operand(&d.row, d.w.kblocks);
        memcpy(got, d.start, sizeof got);
        kernels->sums(&d.w, &x, got);
        for (int c = 0; c < 32; c++)
            if (got[c] != d.start[c] + plain_sum(&d, &d.row, c))
                fail_msg("%s: columns %d (%d blocks%s): column %d differs", kernels->name, i,
                         d.w.kblocks, d.w.fp4 ? " of MXFP4" : "", c);
    }
}

// ---- sums of gradients, against mr_grad_add() ----

// Case i of MXINT8, and a unit by which most shifts are between those that keep all bits and those
// that keep none, some below and above.
static int make_grads(struct data *d, int i)
{
    make(d, 18 * (i / 9) + i % 9);
    unsigned k = draw((unsigned)d->w.kblocks);
    return (int)draw(60) - 10 - MR_GRAD_SHIFT + d->row.code[k] + d->codes[k][draw(32)];
}

static struct mr_grad_sum grad_sum(const struct data *d, const struct row *r, int c, int g)
{
    struct mr_grad_sum sum = {0};
    for (int k = 0; k < d->w.kblocks; k++) {
        int64_t dot = aligned_dot(r->act + 32 * k, d->elements[k][c], 0) >> MR_GUARD_BITS;
        mr_grad_add(&sum, dot, g, r->code[k], d->codes[k][c]);
    }
    return sum;
}

static void check_grads(const struct mr_kernels *kernels)
{
    static struct data d;
    int large = 0;
    for (int i = 0; i < CASES / 4; i++) {
        int g = make_grads(&d, i);
        int64_t got[32];
        unsigned flags = 0;
        d.row.row_max = 255;
        struct mr_operand x = operand(&d.row, d.w.kblocks);
        memcpy(got, d.start, sizeof got);
        bool said = kernels->grads(&d.w, &x, g, got);
        for (int c = 0; c < 32; c++) {
            struct mr_grad_sum want = grad_sum(&d, &d.row, c, g);
            flags |= want.flags;
            if (got[c] != d.start[c] + want.acc)
                fail_msg("%s: gradients %d (%d blocks): column %d differs", kernels->name, i,
                         d.w.kblocks, c);
        }
        assert_int_equal(said, flags != 0);
        large += said;
    }
    assert_in_range(large, CASES / 16, CASES / 4 - CASES / 16);
}

// ---- a head and its records ----

struct store {
    uint8_t record[MAX_RECORDS][CODES_AT + MAX_HEAD + 32 * MAX_HEAD];
    const uint8_t *at[MAX_RECORDS];
    struct mr_records r;
};

static void make_store(struct store *s, int i)
{
    s->r = (struct mr_records){.at = s->at,
                               .codes = CODES_AT,
                               .elements = CODES_AT + MAX_HEAD,
                               .blocks = 2 + 2 * (int)draw(MAX_HEAD / 2),
                               .n = 1 + (int)draw(MAX_RECORDS)};
    for (int k = 0; k < s->r.n; k++) {
        s->at[k] = s->record[k];
        for (int b = 0; b < s->r.blocks; b++)
            s->record[k][CODES_AT + b] = code(i / 3 % 3);
        for (int j = 0; j < 32 * s->r.blocks; j++)
            s->record[k][CODES_AT + MAX_HEAD + j] = (uint8_t)element(i % 3);
    }
}

static const int8_t *block_of(const struct store *s, int record, int block)
{
    return (const int8_t *)s->record[record] + CODES_AT + MAX_HEAD + 32 * block;
}

static void check_score(const struct mr_kernels *kernels)
{
    static struct store keys;
    static struct row q;
    for (int i = 0; i < CASES; i++) {
        int64_t got[MAX_RECORDS];
        uint8_t top[MAX_RECORDS];
        make_store(&keys, i);
        make_row(&q, keys.r.blocks, i % 3, i / 3 % 3);
        struct mr_operand x = operand(&q, keys.r.blocks);
        for (int s = 0; s < keys.r.n; s++)
            got[s] = s;
        kernels->score(&x, &keys.r, got, top);
        for (int s = 0; s < keys.r.n; s++) {
            int64_t want = s;
            int max = 0;
            for (int b = 0; b < keys.r.blocks; b++)
                max = keys.record[s][CODES_AT + b] > max ? keys.record[s][CODES_AT + b] : max;
            for (int b = 0; b < keys.r.blocks; b++)
                want += aligned_dot(q.act + 32 * b, block_of(&keys, s, b),
                                    x.below[b] + max - keys.record[s][CODES_AT + b]);
            if (got[s] != want || top[s] != max)
                fail_msg("%s: score %d (%d blocks): record %d of %d differs", kernels->name, i,
                         keys.r.blocks, s, keys.r.n);
        }
    }
}

// A prefix maximum below the code does not occur in programs; the distance wraps then.
static void check_weigh(const struct mr_kernels *kernels)
{
    static const int32_t shares[] = {65535, 1, 32768, 12345, 0};
    static struct store values;
    for (int i = 0; i < CASES / 4; i++) {
        int64_t want[32 * MAX_HEAD], got[32 * MAX_HEAD];
        int32_t p[MAX_RECORDS];
        uint8_t max[MAX_HEAD];
        make_store(&values, i);
        for (int s = 0; s < values.r.n; s++)
            p[s] = i % 2 ? (int32_t)draw(65536) : shares[draw(5)];
        for (int b = 0; b < values.r.blocks; b++)
            max[b] = code(i / 3 % 3);
        for (int j = 0; j < 32 * values.r.blocks; j++) {
            want[j] = got[j] = (int64_t)draw(1u << 30) - (1 << 29);
            for (int s = 0; s < values.r.n; s++)
                want[j] += shifted((int64_t)p[s] * block_of(&values, s, j / 32)[j % 32] * 4096,
                                   (max[j / 32] - values.record[s][CODES_AT + j / 32]) & 255);
        }
        kernels->weigh(&values.r, p, max, got);
        if (memcmp(want, got, (size_t)values.r.blocks * 32 * sizeof *got) != 0)
            fail_msg("%s: weighted values %d (%d records of %d blocks) differ", kernels->name, i,
                     values.r.n, values.r.blocks);
    }
}

// ---- fp32, lane by lane, against cmodel/num.h ----

static void check_elementwise(const struct mr_kernels *kernels, int i)
{
    float x[32], y[32], by[1], want[32], got[32];
    fill(x, 32, i % 5);
    fill(y, 32, i / 5 % 5);
    fill(by, 1, i / 25 % 5);
    bool nan = false;
    for (int j = 0; j < 1 + i % 32; j++)
        nan |= x[j] != x[j];
    if (kernels->lanes->has_nan(x, 1 + i % 32) != nan)
        fail_msg("%s: NaN in case %d", kernels->name, i);
    for (int j = 0; j < 32; j++)
        want[j] = mr_fadd(x[j], y[j]);
    memcpy(got, x, sizeof got);
    kernels->lanes->add(got, y, 32);
    same("sum", kernels, want, got, 32);
    for (int j = 0; j < 32; j++)
        want[j] = mr_fmul(x[j], by[0]);
    memcpy(got, x, sizeof got);
    kernels->lanes->scale(got, by[0], 1 + i % 32);
    same("product", kernels, want, got, 1 + i % 32);
    for (int j = 0; j < 32; j += 2) {
        want[j] = mr_fsub(mr_fmul(x[j], y[j]), mr_fmul(x[j + 1], y[j + 1]));
        want[j + 1] = mr_fadd(mr_fmul(x[j], y[j + 1]), mr_fmul(x[j + 1], y[j]));
    }
    memcpy(got, x, sizeof got);
    kernels->lanes->turn(got, y, 32);
    same("rotation", kernels, want, got, 32);
    for (unsigned f = MR_FUNCTION_GELU_NEW; f <= MR_FUNCTION_RELU; f++) {
        for (int j = 0; j < 32; j++)
            want[j] = mr_function(f, x[j]);
        memcpy(got, x, sizeof got);
        kernels->lanes->function(got, 32, f);
        same("function", kernels, want, got, 32);
    }
}

static void check_quantise(const struct mr_kernels *kernels, int i)
{
    float v[32];
    int8_t q[2][32];
    fill(v, 32, i % 5);
    if (i % 7 == 0)
        v[i % 32] = mr_float(0x7F000000); // the others are small beside it
    unsigned codes = 1 + draw(11);
    for (int j = 0; i % 11 == 0 && j < 32; j++) // all are small
        v[j] = mr_float((mr_bits(v[j]) & 0x807FFFFF) | draw(codes) << 23);
    uint8_t want = mr_mxint8_quantise(v, q[0]), got = kernels->lanes->quantise(v, q[1]);
    if (want != got || memcmp(q[0], q[1], 32) != 0)
        fail_msg("%s: quantiser: block %d differs", kernels->name, i);
}

// Accumulators of 48 bits at every exponent, results at both ends of fp32's range.
static void check_finish(const struct mr_kernels *kernels, int i)
{
    int64_t acc[40] = {0};
    uint8_t codes[40] = {0};
    float want[40], got[40];
    int n = 1 + i % 40, exp = (int)draw(520) - 300;
    for (int j = 0; j < n; j++) {
        uint64_t bits = (uint64_t)draw(1u << 24) << 24 | draw(1u << 24);
        acc[j] = (int64_t)(bits << 16) >> (16 + draw(48));
        if (draw(4) == 0) // halfway between two results, or beside it
            acc[j] = (int64_t)(((uint64_t)(1u << 24 | draw(1u << 24)) << 20 | 1u << 19) - draw(2));
        codes[j] = i % 3 ? (uint8_t)draw(256) : 255;
        want[j] = codes[j] == 255 ? mr_qnan() : mr_acc_to_f32(acc[j], exp + codes[j]);
    }
    kernels->lanes->finish(acc, codes, exp, got, n);
    same("conversion", kernels, want, got, n);
}

// Scores as attention has them: the functions' own results, so no subnormals.
static void check_shares(const struct mr_kernels *kernels, int i)
{
    enum { MOST = 100 };
    float scores[MOST], top = mr_float(0xFF800000);
    int32_t want[MOST], got[MOST];
    int n = 1 + (int)draw(MOST);
    int64_t sum = 0;
    bool nan = false;
    for (int j = 0; j < n; j++) {
        scores[j] = mr_in(value(i % 8 == 7 ? (int)draw(4) : 1 + i % 2));
        if (i % 4 == 3)
            scores[j] = (float)draw(1u << 22) * 0x1p-17F; // at the borders of what is rounded
    }
    if (i % 16 == 9)
        scores[draw((unsigned)n)] = mr_float(i % 32 == 9 ? 0x7F800000 : 0xFF800000);
    for (int j = 0; j < n; j++)
        top = mr_fmax(top, scores[j]);
    for (int j = 0; j < n; j++) {
        float d = mr_fsub(top, scores[j]);
        nan |= d != d;
        want[j] = (int32_t)mr_exp2_u16(d);
        sum += want[j];
    }
    int64_t total = kernels->lanes->shares(scores, n, got);
    if (total != (nan ? -1 : sum) || (!nan && memcmp(want, got, (size_t)n * sizeof *want) != 0))
        fail_msg("%s: shares %d of %d scores differ", kernels->name, i, n);
}

static void check_layernorm(const struct mr_kernels *kernels, int i)
{
    enum { MOST = 512 };
    static float x[MOST], gain[MOST], bias[MOST], want[MOST], got[MOST];
    int n = 64 * (1 + (int)draw(MOST / 64)), used = n - (int)draw(64);
    struct mr_ln_const c = mr_ln_consts(used, i % 4 < 2 ? 1e-5F : 0);
    memset(x, 0, sizeof x);
    fill(x, used, i % 6 == 5 ? 3 : 1 + i % 2);
    unsigned codes = 1 + draw(30);
    for (int j = 0; i % 6 == 4 && j < used; j++) // small numbers, some of them none
        x[j] = mr_float((mr_bits(x[j]) & 0x807FFFFF) | draw(codes) << 23);
    fill(gain, n, 1);
    fill(bias, n, i % 5);
    if (i % 3 == 1) // what is small must be seen
        memset(bias, 0, sizeof bias);
    mr_layernorm(&c, x, gain, bias, n, want);
    kernels->lanes->layernorm(&c, x, gain, bias, n, got);
    same("LayerNorm", kernels, want, got, n);
}

static void check_block_sums(const struct mr_kernels *kernels, int i)
{
    static struct row r;
    int32_t got[MAX_KBLOCKS];
    int n = 1 + (int)draw(MAX_KBLOCKS);
    make_row(&r, n, i % 3, 0);
    (void)operand(&r, n);
    kernels->lanes->block_sums(r.act, n, got);
    assert_memory_equal(got, r.sum, (size_t)n * sizeof *got);
}

static void check_lanes(const struct mr_kernels *kernels)
{
    for (int i = 0; i < 10 * CASES; i++) {
        check_elementwise(kernels, i);
        check_quantise(kernels, i);
        check_finish(kernels, i);
    }
    for (int i = 0; i < CASES; i++) {
        check_shares(kernels, i);
        check_layernorm(kernels, i);
        check_block_sums(kernels, i);
    }
}

// (2^37 - 1) 2^e with e so that this is just below 2^-126: it rounds to that, and is not flushed.
static void check_the_smallest(const struct mr_kernels *kernels)
{
    const int64_t acc[1] = {((int64_t)1 << 37) - 1};
    const uint8_t codes[1] = {0};
    float y;
    kernels->lanes->finish(acc, codes, -126 - 37, &y, 1);
    assert_int_equal(mr_bits(y), 0x00800000);
    kernels->lanes->finish(acc, codes, -126 - 38, &y, 1);
    assert_int_equal(mr_bits(y), 0);
}

// ---- 16 tokens at once, against what one token gets ----

// The same weights, other activations for each of 16 tokens.
static void check_tile_rows(const struct mr_row_kernels *rows)
{
    static struct mr_panel_block blocks[MAX_KBLOCKS];
    static uint8_t sections[SECTIONS * MR_SECTION_BYTES];
    static struct data d;
    static struct row r[16];
    int32_t row_max[16];
    const struct mr_panel panel = {blocks, row_max, 0, 1};
    for (int i = 0; i < CASES / 8; i++) {
        float y[4][16], bias[4];
        int exp = i % 2 ? MR_ACC_EXP_INT8(0) : MR_ACC_EXP_FP4(0);
        make(&d, i);
        struct mr_tile tile = {d.w.kblocks, sections, {0}};
        memcpy(tile.col_max, d.w.col_max, 4);
        if (i % 11 == 0)
            tile.col_max[i % 4] = 255;
        memcpy(d.w.col_max, tile.col_max, 4);
        for (int t = 0; t < 16; t++) {
            make_row(&r[t], d.w.kblocks, i % 3 == 2 ? 1 : i % 3, i / 3 % 3);
            if (i % 13 == 0 && t % 5 == 0)
                r[t].row_max = 255;
            for (int k = 0; k < d.w.kblocks; k++)
                mr_panel_put(&blocks[k], t, r[t].act + 32 * k, r[t].code[k]);
            row_max[t] = r[t].row_max;
        }
        fill(bias, 4, i % 4);
        rows->unpack(d.w.group[0], d.w.kblocks, d.w.fp4, sections);
        rows->tile_rows(&tile, &panel, 0, exp, i % 3 ? bias : NULL, y);
        for (int t = 0; t < 16; t++)
            for (int c = 0; c < 4; c++) {
                bool nan = r[t].row_max == 255 || d.w.col_max[c] == 255;
                float want = nan ? mr_qnan()
                                 : mr_acc_to_f32(plain_sum(&d, &r[t], c),
                                                 r[t].row_max + d.w.col_max[c] + exp);
                want = i % 3 ? mr_fadd(want, bias[c]) : want;
                if (mr_bits(want) != mr_bits(y[c][t]))
                    fail_msg("tile %d: token %d, column %d differs", i, t, c);
            }
    }
}

// The same columns, another row for each of 16 lanes.
static void check_tile_grads(const struct mr_row_kernels *rows)
{
    static struct mr_panel_block blocks[MAX_KBLOCKS];
    static uint8_t sections[SECTIONS * MR_SECTION_BYTES];
    static struct data d;
    static struct row r[16];
    const struct mr_panel panel = {blocks, NULL, 0, 1};
    for (int i = 0; i < CASES / 8; i++) {
        int64_t acc[4][16];
        int g = make_grads(&d, i);
        const struct mr_tile tile = {d.w.kblocks, sections, {0}};
        for (int t = 0; t < 16; t++) {
            make_row(&r[t], d.w.kblocks, i % 3, i / 3 % 3);
            for (int k = 0; k < d.w.kblocks; k++)
                mr_panel_put(&blocks[k], t, r[t].act + 32 * k, r[t].code[k]);
        }
        rows->unpack(d.w.group[0], d.w.kblocks, false, sections);
        unsigned large = rows->tile_grads(&tile, &panel, 0, g, acc);
        for (int t = 0; t < 16; t++) {
            unsigned flags = 0;
            for (int c = 0; c < 4; c++) {
                struct mr_grad_sum want = grad_sum(&d, &r[t], c, g);
                flags |= want.flags;
                if (acc[c][t] != want.acc)
                    fail_msg("tile %d of gradients: row %d, column %d differs", i, t, c);
            }
            assert_int_equal(large >> t & 1, flags != 0);
        }
    }
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
    check_sums(kernels);
    check_grads(kernels);
    check_score(kernels);
    check_weigh(kernels);
    check_lanes(kernels);
    check_the_smallest(kernels);
    if (kernels->rows)
        check_tile_rows(kernels->rows);
    if (kernels->rows)
        check_tile_grads(kernels->rows);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable_kernel_is_exact),
        cmocka_unit_test(avx2_kernel_is_exact),
        cmocka_unit_test(avx512_kernel_is_exact),
        cmocka_unit_test(kernels_are_chosen_by_name),
    };
    return cmocka_run_group_tests_name("kernel", tests, NULL, NULL);
}
