// SPDX-License-Identifier: Apache-2.0
// Commands of training and their arithmetic (docs/inside/numerics.md, rules 15 to 20) against slow
// references that share no line with them: exact integers, floats of the processor, double.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/backward.h"
#include "device/open.h"
#include "train/pass.h"
#include "train/pass_impl.h"
#include "unit/check.h"
#include "unit/files.h"
#include "unit/toy_model.h"

static uint64_t state = 1;

static unsigned draw(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

// About normal, now and then an outlier, of a size of 2^exp.
static float some(int exp)
{
    double v = 0;
    for (int i = 0; i < 4; i++)
        v += (int)draw(20001) - 10000;
    return (float)ldexp(v / 10000 * (draw(50) ? 1 : 30), exp);
}

// ---- arithmetic ---------------------------------------------------------------------------------

// RNE(n / 2^shift).
static __int128 rounded(__int128 n, int shift)
{
    if (shift <= 0)
        return n;
    __int128 unit = (__int128)1 << shift, floor = n / unit, rest = n % unit;
    if (rest < 0) {
        rest += unit;
        floor--;
    }
    if (2 * rest > unit || (2 * rest == unit && floor % 2 != 0))
        floor++;
    return floor;
}

static void sums_of_gradients(void **unused)
{
    (void)unused;
    for (int i = 0; i < 200000; i++) {
        int64_t d = (int64_t)draw(2 * 516128 + 1) - 516128;
        d = draw(4) ? d : d & -4096; // ties
        int ea = (int)draw(255), ew = (int)draw(255), s = (int)draw(48) - 4;
        struct mr_grad_sum sum = {.acc = (int64_t)draw(1000) - 500};
        int64_t want = sum.acc;
        mr_grad_add(&sum, d, s - 284 + ea + ew, ea, ew);
        if (s <= 38)
            want += (int64_t)rounded((__int128)d * (1 << 18), s);
        assert_int_equal(sum.acc, want);
        assert_int_equal(sum.flags, s < 0 ? MR_GRAD_LARGE : 0);
    }
    struct mr_grad_sum nan = {0};
    mr_grad_add(&nan, 0, 0, 255, 3);
    mr_grad_add(&nan, 0, 0, 3, 255);
    assert_int_equal(nan.flags, MR_GRAD_NAN);
    static const struct {
        int64_t acc;
        uint32_t limit;
        int32_t out;
        uint32_t peak;
        unsigned flags;
    } ends[] = {
        {100, 100, 100, 100, 0},
        {-101, 100, -101, 101, MR_GRAD_LARGE},
        {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, 0},
        {1ll << 31, INT32_MAX, INT32_MAX, 1u << 31, MR_GRAD_LARGE},
        {-(1ll << 40), INT32_MAX, -INT32_MAX, UINT32_MAX, MR_GRAD_LARGE},
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct mr_grad_sum sum = {.acc = ends[i].acc};
        uint32_t peak = 7;
        assert_int_equal(mr_grad_end(&sum, ends[i].limit, &peak), ends[i].out);
        assert_int_equal(peak, ends[i].peak);
        assert_int_equal(sum.flags, ends[i].flags);
    }
}

static double slope_by_tanh(double x)
{
    double c = sqrt(2 / M_PI), t = tanh(c * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}

static double slope_by_erf(double x)
{
    return 0.5 * (1 + erf(x * M_SQRT1_2)) + x * exp(-0.5 * x * x) / sqrt(2 * M_PI);
}

static void gelu_slopes_are(unsigned f, double (*is)(double))
{
    double worst = 0;
    for (int i = -700000; i <= 700000; i++) {
        double x = i / 100000.0, e = mr_function_slope(f, (float)x) / 16384.0 - is((float)x);
        worst = fabs(e) > worst ? fabs(e) : worst;
        // Up and down they are equal: slope(x) + slope(-x) = 1.
        if (i > 0)
            assert_int_equal(mr_function_slope(f, (float)x) + mr_function_slope(f, (float)-x),
                             1 << 14);
    }
    printf("# slope of function %u: within %.2e\n", f, worst);
    assert_true(worst < 6e-5);
}

static void slopes_of_functions(void **unused)
{
    (void)unused;
    gelu_slopes_are(MR_FUNCTION_GELU_NEW, slope_by_tanh);
    gelu_slopes_are(MR_FUNCTION_GELU, slope_by_erf);
    for (unsigned f = MR_FUNCTION_GELU_NEW; f <= MR_FUNCTION_RELU; f++) {
        assert_int_equal(mr_function_slope(f, NAN), MR_SLOPE_NAN);
        assert_int_equal(mr_function_slope(f, INFINITY), 1 << 14);
        assert_int_equal(mr_function_slope(f, -INFINITY), 0);
    }
    // Relu's: at 0, and at what counts as 0, that of negative numbers.
    static const float zero[] = {0.0f, -0.0f, 1e-40f, -1e-40f, -0x1p-126f, -1.0f};
    for (int i = 0; i < 6; i++)
        assert_int_equal(mr_function_slope(MR_FUNCTION_RELU, zero[i]), 0);
    assert_int_equal(mr_function_slope(MR_FUNCTION_RELU, 0x1p-126f), 1 << 14);
    assert_true(isnan(mr_slope_times(1, MR_SLOPE_NAN)));
    assert_true(mr_slope_times(3.0f, 1 << 13) == 1.5f);
}

static double db(double size, double error)
{
    return 10 * log10(size / error);
}

// Only in a row so long can a normalised number be 128 or more: the root of the row's length.
enum { LONG = 20032 };

// Bits by the processor's floats and long double's integers; the size of its error by double.
static double norm_row(int n, int count, int exp)
{
    static float x[LONG], dy[LONG], gain[LONG], dx[LONG], dg[LONG];
    struct mr_ln_const c = mr_ln_consts(n, 1e-5f);
    double mean = 0, var = 0, a = 0, b = 0, size = 0, error = 0;
    unsigned ey = 1, eg = 1, ex = 1;
    for (int i = 0; i < count; i++) {
        x[i] = i < n ? some(0) : 0;
        if (i == 0 && n == LONG)
            x[i] = 0x1p12F;
        dy[i] = i < n ? some(exp) : 0;
        gain[i] = i < n ? 1 + some(-3) : 0;
        ex = mr_expo(x[i]) > ex ? mr_expo(x[i]) : ex;
        ey = mr_expo(dy[i]) > ey ? mr_expo(dy[i]) : ey;
        eg = mr_expo(gain[i]) > eg ? mr_expo(gain[i]) : eg;
    }
    mr_norm_back(&c, x, dy, gain, count, dx);
    mr_norm_gain(&c, x, dy, count, dg);
    int64_t s1 = 0, s2 = 0, asum = 0, bsum = 0;
    for (int i = 0; i < n; i++) {
        int64_t xi = (int64_t)rintl(ldexpl((long double)x[i], 149 - (int)ex));
        s1 += xi;
        s2 += xi * xi;
    }
    float m, r;
    int k = (int)ey + (int)eg - 275;
    mr_layernorm_from(&c, s1, s2, ex, &m, &r);
    for (int i = 0; i < n; i++) {
        volatile float dn = dy[i] * gain[i], mid = x[i] - m, xh = mid * r;
        int64_t ai = (int64_t)rintl(ldexpl((long double)dn, -k));
        asum += ai;
        bsum += ai * (int64_t)rintl(ldexpl((long double)xh, 16));
    }
    volatile float ma = (float)asum * c.inv_n, mb = (float)bsum * c.inv_n;
    ma = ldexpf(ma, k);
    mb = ldexpf(mb, k - 16);
    for (int i = 0; i < n; i++) {
        volatile float dn = dy[i] * gain[i], mid = x[i] - m, xh = mid * r, p = xh * mb;
        volatile float q = dn - ma, s = q - p, want = r * s, g = dy[i] * xh;
        assert_true(dx[i] == want);
        assert_true(dg[i] == g);
    }
    for (int i = n; i < count; i++)
        assert_true(dx[i] == 0 && dg[i] == 0);
    for (int i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (int i = 0; i < n; i++)
        var += (x[i] - mean) * (x[i] - mean) / n;
    double root = 1 / sqrt(var + 1e-5);
    for (int i = 0; i < n; i++) {
        a += (double)dy[i] * gain[i] / n;
        b += (double)dy[i] * gain[i] * (x[i] - mean) * root / n;
    }
    for (int i = 0; i < n; i++) {
        double want = root * ((double)dy[i] * gain[i] - a - (x[i] - mean) * root * b);
        size += want * want;
        error += (want - dx[i]) * (want - dx[i]);
    }
    return db(size, error);
}

static void layer_norm_backwards(void **unused)
{
    (void)unused;
    static const int lengths[] = {33, 64, 500, 1000};
    double worst = 200;
    for (int i = 0; i < 200; i++) {
        int n = lengths[i % 4];
        double now = norm_row(n, (n + 63) / 64 * 64, -(int)draw(60));
        worst = now < worst ? now : worst;
    }
    printf("# LayerNorm backwards: at least %.1f dB\n", worst);
    assert_true(worst > 85);
    worst = norm_row(LONG, LONG, -9);
    printf("# of a long row: %.1f dB\n", worst);
    assert_true(worst > 85);
    struct mr_ln_const c = mr_ln_consts(32, 1e-5f);
    float x[64] = {0}, dy[64] = {1, 2}, gain[64] = {1, 1}, dx[64];
    x[3] = NAN;
    mr_norm_back(&c, x, dy, gain, 64, dx);
    assert_true(isnan(dx[0]) && isnan(dx[31]) && dx[32] == 0);
    mr_norm_gain(&c, x, dy, 64, dx);
    assert_true(isnan(dx[0]) && dx[32] == 0);
}

static void softmax_backwards(void **unused)
{
    (void)unused;
    enum { N = 192 };
    float s[N], dp[N], p[N], ds[N], scaled[N];
    int32_t shares[N];
    double size = 0, error = 0;
    for (int i = 0; i < 500; i++) {
        int first = (int)draw(100), last = first + (int)draw(N - 100);
        float scale = 1.4426950f / 8, by = 1 / 8.0f;
        unsigned top = 1;
        int64_t sum = 0, weighed = 0;
        for (int k = 0; k < N; k++) {
            s[k] = some(3);
            dp[k] = some(-20);
        }
        float most = -1e30f;
        for (int k = first; k <= last; k++) {
            volatile float v = s[k] * scale;
            most = v > most ? v : most;
            top = mr_expo(dp[k]) > top ? mr_expo(dp[k]) : top;
        }
        const struct mr_softmax_row row = {s, first, last, scale, scaled, shares};
        mr_softmax(&row, N, p);
        mr_softmax_back(&row, dp, by, N, ds);
        for (int k = first; k <= last; k++) {
            volatile float v = s[k] * scale, d = most - v;
            uint32_t u = mr_exp2_u16(d);
            sum += u;
            weighed += u * (int64_t)rintl(ldexpl((long double)dp[k], 149 - (int)top));
        }
        volatile float r = mr_recip((float)sum), d = (float)weighed * r;
        d = ldexpf(d, (int)top - 149);
        double e = 0, mean = 0;
        for (int k = first; k <= last; k++)
            e += exp2((double)s[k] * scale - most);
        for (int k = first; k <= last; k++)
            mean += exp2((double)s[k] * scale - most) / e * dp[k];
        for (int k = 0; k < N; k++) {
            if (k < first || k > last) {
                assert_true(p[k] == 0 && ds[k] == 0);
                continue;
            }
            volatile float v = s[k] * scale, low = most - v, pk = (float)mr_exp2_u16(low) * r;
            volatile float diff = dp[k] - d, t = pk * diff, want = t * by;
            assert_true(p[k] == pk);
            assert_true(ds[k] == want);
            double exact = exp2((double)s[k] * scale - most) / e * (dp[k] - mean) / 8;
            size += exact * exact;
            error += (exact - ds[k]) * (exact - ds[k]);
        }
    }
    printf("# softmax backwards: %.1f dB\n", db(size, error));
    assert_true(db(size, error) > 70);
}

// ---- commands -----------------------------------------------------------------------------------

enum { ROWS = 83, COLS = 192, KB = (ROWS + 31) / 32 };

struct device {
    struct mr_checkpoint *checkpoint;
    struct mr_device *dev;
    struct mr_pass *p;
    float y[ROWS][COLS]; // what is in rows
};

static void write_rows(const struct device *d)
{
    struct mr_error err = {0};
    uint64_t bytes = (uint64_t)d->p->d.d * 4;
    for (int i = 0; i < ROWS; i++)
        check(mr_device_write(d->dev,
                              d->p->mem.rows_addr + d->p->at.residual * 64 + (uint64_t)i * bytes,
                              d->y[i], sizeof d->y[i], &err),
              &err);
}

static void device_open(struct device *d, const char *uri, int chunk)
{
    struct mr_error err = {0};
    struct mr_pass_options o = {.rows = 128, .chunk = chunk};
    check(toy_register(&err), &err);
    check(mr_checkpoint_open(&d->checkpoint, "models/demo", MR_DECODER, NULL, &err), &err);
    check(mr_device_open(&d->dev, uri, &err), &err);
    check(mr_pass_open(&d->p, d->dev, mr_checkpoint_config(d->checkpoint), &o, &err), &err);
    d->p->batch.rows = ROWS;
    d->p->batch.kblocks = KB;
    d->p->batch.cols = 128;
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < COLS; c++)
            d->y[i][c] = draw(9) ? some(-(int)draw(6)) : 0;
    write_rows(d);
}

static void device_close(struct device *d)
{
    mr_pass_close(d->p);
    mr_device_close(d->dev);
    mr_checkpoint_close(d->checkpoint);
}

// 32 rows of a column as a block: scale and elements by logarithms.
struct block {
    int code, q[32];
};

static struct block block_of(const struct device *d, int col, int kblock)
{
    struct block b = {0};
    double most = 0;
    for (int i = 0; i < 32 && 32 * kblock + i < ROWS; i++) {
        double size = fabs((double)d->y[32 * kblock + i][col]);
        most = size <= most ? most : isnan(size) ? INFINITY : size;
    }
    if (most == 0)
        return b;
    b.code = isfinite(most) ? 127 + (int)floor(log2(most)) : 255;
    if (b.code == 255)
        return b;
    for (int i = 0; i < 32 && 32 * kblock + i < ROWS; i++) {
        double q = nearbyint(64 * (double)d->y[32 * kblock + i][col] / exp2(b.code - 127));
        b.q[i] = (int)(q > 127 ? 127 : q < -127 ? -127 : q);
    }
    return b;
}

static int dot(const struct block *a, const struct block *b)
{
    int n = 0;
    for (int i = 0; i < 32; i++)
        n += a->q[i] * b->q[i];
    return n;
}

// Rows are turned, chunk by chunk.
static void turn_rows(struct device *d)
{
    struct mr_error err = {0};
    for (int first = 0; first < ROWS; first += d->p->chunk) {
        struct run r;
        check(run_begin(&r, d->p, pass_chunk_rows(d->p, first), &err), &err);
        run_fetch(&r, d->p->at.residual, first, false, false);
        struct mr_command *c = run_copy(&r, false, COLS, NO_MEMORY);
        run_copy_turned(&r, c, d->p->at.gain_turned, first, 0, first == 0 ? 0 : INT32_MAX);
        check(run_end(&r), &err);
    }
}

// The matrix in memory, block for block.
static void compare_turned(const struct device *d)
{
    struct mr_error err = {0};
    const struct mr_tiles_shape t = {d->p->g.n, KB};
    size_t bytes = mr_tiles_beats(&t, COLS) * 64;
    uint8_t *image = malloc(bytes * (size_t)d->p->g.n);
    assert_non_null(image);
    for (int c = 0; c < d->p->g.n; c++)
        check(mr_device_read(d->dev, d->p->mem.stash_addr[c] + d->p->at.gain_turned * 64,
                             image + (size_t)c * bytes, bytes, &err),
              &err);
    for (int col = 0; col < COLS; col++) {
        int largest = 0;
        for (int k = 0; k < KB; k++) {
            struct mr_tile_place at = mr_tile_place(&t, col, k);
            const uint8_t *m = image + (size_t)at.channel * bytes;
            struct block b = block_of(d, col, k);
            largest = b.code > largest ? b.code : largest;
            assert_int_equal(m[at.code], b.code);
            for (int i = 0; i < 32; i++)
                assert_int_equal((int8_t)m[at.elements + (size_t)i], b.q[i]);
        }
        struct mr_tile_place at = mr_tile_place(&t, col, 0);
        assert_int_equal(image[(size_t)at.channel * bytes + at.largest], largest);
    }
    free(image);
}

// Columns 5.. as rows against columns 64..127, blocks 1 and 2 of three, to the second row memory.
// GELU's slopes lie behind the rows: kept of a product that goes there too, or taken from there.
enum { WIDE = 64, SLOPES_AT_ROW = 64 };

static void product(struct device *d, unsigned slopes, unsigned function, float got[32][COLS])
{
    struct mr_error err = {0};
    struct run r;
    uint32_t at = (uint32_t)(d->p->at.dx + SLOPES_AT_ROW * (uint64_t)d->p->d.d / 16);
    check(run_begin(&r, d->p, 32, &err), &err);
    (void)run_load_act(&r, d->p->at.gain_turned, KB, 1, KB - 1, 5, 32, run_place(MR_X));
    run_stream_stash(&r, d->p->at.gain_turned, KB, 1, KB - 1, 64, WIDE);
    struct mr_command *c = run_matmul(&r, KB - 1, WIDE, run_place(MR_X), run_memory(MR_MEM_SECOND));
    mr_command_set(c, MR_F_MATMUL_DST, MR_DST_RES);
    mr_command_set(c, MR_F_MATMUL_ROW, 1);
    mr_command_set(c, MR_F_MATMUL_SET, 1);
    mr_command_set(c, MR_F_MATMUL_FUNCTION,
                   slopes == MR_F_MATMUL_KEEP_SLOPE ? function : MR_FUNCTION_NONE);
    mr_command_set(c, MR_F_MATMUL_SLOPE_OFF, at);
    if (slopes)
        mr_command_set(c, slopes, 1);
    run_save(&r, d->p->at.dx, 0, true);
    check(run_end(&r), &err);
    for (int i = 0; i < 32; i++)
        check(mr_device_read(d->dev,
                             d->p->mem.rows_addr + d->p->at.dx * 64 +
                                 (uint64_t)i * (uint64_t)d->p->d.d * 4,
                             got[i], sizeof got[i], &err),
              &err);
}

// Slopes are kept in the order of the array's drain, and taken from there.
static void compare_slopes(struct device *d, unsigned function, float x[32][COLS])
{
    struct mr_error err = {0};
    float y[32][COLS];
    int16_t slopes[32 * WIDE];
    int lanes = 4 * mr_device_info(d->dev)->g.n;
    product(d, MR_F_MATMUL_KEEP_SLOPE, function, y);
    check(mr_device_read(d->dev,
                         d->p->mem.rows_addr + d->p->at.dx * 64 +
                             SLOPES_AT_ROW * (uint64_t)d->p->d.d * sizeof(float),
                         slopes, sizeof slopes, &err),
          &err);
    product(d, MR_F_MATMUL_SLOPE, function, y);
    for (int i = 0; i < 32; i++)
        for (int o = 0; o < WIDE; o++) {
            int16_t slope = slopes[(o / lanes * 32 + i) * lanes + o % lanes];
            assert_int_equal(slope, mr_function_slope(function, x[i][o]));
            assert_true(y[i][o] == mr_slope_times(x[i][o], slope));
        }
}

// What a part of a matrix gives, with maxima of the whole.
static void compare_product(struct device *d)
{
    float got[32][COLS];
    product(d, 0, MR_FUNCTION_NONE, got);
    for (unsigned f = MR_FUNCTION_GELU_NEW; f <= MR_FUNCTION_RELU; f++)
        compare_slopes(d, f, got);
    for (int i = 0; i < 32; i++)
        for (int o = 0; o < WIDE; o++) {
            int base_a = 0, base_w = 0;
            int64_t acc = 0;
            for (int k = 0; k < KB; k++) {
                base_a = (int)fmax(base_a, block_of(d, 5 + i, k).code);
                base_w = (int)fmax(base_w, block_of(d, 64 + o, k).code);
            }
            for (int k = 1; k < KB; k++) {
                struct block a = block_of(d, 5 + i, k), w = block_of(d, 64 + o, k);
                int shift = base_a + base_w - a.code - w.code;
                shift = shift > 38 ? 38 : shift;
                acc += (int64_t)floor(ldexp((double)dot(&a, &w) * (1 << 18), -shift));
            }
            float want = (float)ldexp((double)acc, base_a + base_w - 254 - 12 - 18);
            assert_true(got[i][o] == want);
        }
}

enum { OUT = 128 };

// `resident` rows against 128 columns, and where the record goes.
static int run_grad(struct device *d, int resident, int unit, uint32_t limit, uint32_t record,
                    struct mr_error *err)
{
    struct run r;
    check(run_begin(&r, d->p, 1, err), err);
    (void)run_load_act(&r, d->p->at.gain_turned, KB, 0, KB, 3, resident, run_place(MR_X));
    run_stream_stash(&r, d->p->at.gain_turned, KB, 0, KB, 64, OUT);
    struct mr_command *c = run_add(&r, MR_OP_GRAD, run_place(MR_X), 0);
    mr_command_set(c, MR_F_GRAD_KBLOCKS, KB);
    mr_command_set(c, MR_F_GRAD_COLS, OUT);
    mr_command_set(c, MR_F_GRAD_ROWS, (uint32_t)resident);
    mr_command_set(c, MR_F_GRAD_G, (uint16_t)unit);
    mr_command_set(c, MR_F_GRAD_BEGIN, 1);
    mr_command_set(c, MR_F_GRAD_LIMIT, limit);
    mr_command_set(c, MR_F_GRAD_OFF, 0);
    mr_command_set(c, MR_F_GRAD_RECORD, record);
    return run_end(&r);
}

static void compare_grad(struct device *d, int resident, int unit, uint32_t limit)
{
    struct mr_error err = {0};
    static int32_t tiles[32 * OUT];
    uint32_t record[2], peak = 0, flags = 0;
    check(run_grad(d, resident, unit, limit, 2 * 128, &err), &err);
    check(mr_device_read(d->dev, d->p->mem.grad_addr, tiles, sizeof tiles, &err), &err);
    check(mr_device_read(d->dev, d->p->mem.grad_addr + 2 * 8192, record, sizeof record, &err),
          &err);
    for (int i = 0; i < 32; i++)
        for (int o = 0; o < OUT; o++) {
            __int128 sum = 0;
            for (int k = 0; k < KB && i < resident; k++) {
                struct block a = block_of(d, 3 + i, k), w = block_of(d, 64 + o, k);
                if (a.code == 255 || w.code == 255) {
                    flags |= 2;
                    continue;
                }
                int s = unit + 284 - a.code - w.code;
                flags |= s < 0;
                sum += s > 38 ? 0 : rounded((__int128)dot(&a, &w) * (1 << 18), s);
            }
            __int128 size = sum < 0 ? -sum : sum;
            flags |= size > limit;
            peak = size > peak ? size > UINT32_MAX ? UINT32_MAX : (uint32_t)size : peak;
            if (size > INT32_MAX)
                sum = sum < 0 ? -INT32_MAX : INT32_MAX;
            assert_int_equal(tiles[2048 * (o / 64) + 64 * i + o % 64], (int32_t)sum);
        }
    assert_int_equal(record[0], flags);
    assert_int_equal(record[1], peak);
}

static void commands_have_the_bits(void **unused)
{
    (void)unused;
    static const struct {
        const char *uri;
        int chunk;
        const char *simd;
    } ways[] = {{"model:tinyt", 32, "avx512"},
                {"model:sim,train", 64, "portable"},
                {"model:wide,train", 128, "avx2"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        static struct device d;
        assert_int_equal(setenv("MILLRACE_SIMD", ways[i].simd, 1), 0);
        device_open(&d, ways[i].uri, ways[i].chunk);
        turn_rows(&d);
        compare_turned(&d);
        compare_product(&d);
        compare_grad(&d, 30, -8, INT32_MAX); // the one that has no flags
        compare_grad(&d, 17, -18, 1000);
        compare_grad(&d, 1, -48, INT32_MAX);
        // What is no number: of the rows, or of the columns.
        for (int where = 0; where < 2; where++) {
            d.y[40][9] = where ? 1 : NAN;
            d.y[70][100] = where ? INFINITY : 1;
            write_rows(&d);
            turn_rows(&d);
            compare_turned(&d);
            compare_grad(&d, 30, -8, INT32_MAX);
        }
        device_close(&d);
    }
    assert_int_equal(unsetenv("MILLRACE_SIMD"), 0);
}

static void what_lies_outside_is_refused(void **unused)
{
    (void)unused;
    static struct device d;
    struct mr_error err = {0};
    device_open(&d, "model:tinyt", 32);
    turn_rows(&d);
    assert_refused(run_grad(&d, 1, -8, INT32_MAX, UINT32_MAX >> 4, &err), MR_ERR_DEVICE, &err,
                   "address outside its window (code 3) at command 2");
    compare_grad(&d, 30, -8, INT32_MAX); // and the next run is right
    assert_refused(mr_device_run(d.dev, UINT64_C(1) << 60, &err), MR_ERR_DEVICE, &err,
                   "AXI read error (code 4) at command 0, address 0x1000000000000000");
    device_close(&d);
}

static void opcodes_have_names(void **unused)
{
    (void)unused;
    assert_string_equal(mr_opcode_name(MR_OP_GRAD), "GRAD");
    assert_string_equal(mr_opcode_name(0), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_gradients),      cmocka_unit_test(slopes_of_functions),
        cmocka_unit_test(layer_norm_backwards),   cmocka_unit_test(softmax_backwards),
        cmocka_unit_test(commands_have_the_bits), cmocka_unit_test(what_lies_outside_is_refused),
        cmocka_unit_test(opcodes_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
