// SPDX-License-Identifier: Apache-2.0
// The update of AdamW, Adam and SGD against rule 14 of docs/inside/numerics.md computed once more
// in 113 bits, in every instruction set and beside PyTorch, and the learning rates.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "cmodel/num.h"
#include "store/rates.h"
#include "store/update.h"
#include "unit/simd_sets.h"

static uint64_t state = 1;

static uint32_t draw(void)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(state >> 32);
}

// Of any sign, with an exponent field of low..high.
static float number(unsigned low, unsigned high)
{
    uint32_t u = draw(), e = low + draw() % (high - low + 1);
    return mr_float((u & 0x807FFFFFU) | e << 23);
}

static float uniform(void)
{
    return (float)((int32_t)draw() >> 8) * 0x1p-23F;
}

// ---- the rule in 113 bits -----------------------------------------------------------------------

typedef _Float128 wide; // exact for products; for the rest it holds twice the bits and two more

// Rule 1: to 24 bits, ties to even; then flushed below 2^-126.
static float to_float(wide x, bool negative)
{
    wide a = x < 0 ? -x : x;
    uint32_t sign = negative ? 0x80000000U : 0;
    if (x != x)
        return mr_qnan();
    if (a == 0)
        return mr_float(sign);
    if (a >= (wide)0x1p128)
        return mr_float(sign | 0x7F800000U);
    int e = 0; // a = m 2^e with 2^23 <= m < 2^24
    while (a >= 0x1p24)
        a *= 0.5, e++;
    while (a < 0x1p23)
        a *= 2, e--;
    uint32_t m = (uint32_t)a;
    wide rest = a - m;
    if (rest > 0.5 || (rest == 0.5 && (m & 1)))
        m++;
    if (m == 1 << 24) {
        m >>= 1;
        e++;
    }
    if (e + 23 < -126)
        return mr_float(sign);
    if (e + 23 > 127)
        return mr_float(sign | 0x7F800000U);
    return mr_float(sign | (uint32_t)(e + 23 + 127) << 23 | (m & 0x7FFFFF));
}

static wide read(float f)
{
    return (wide)(mr_expo(f) == 0 ? 0.0F * f : f);
}

static bool negative(float f)
{
    return mr_bits(f) >> 31;
}

static float times(float a, float b)
{
    return to_float(read(a) * read(b), negative(a) != negative(b));
}

static float plus(float a, float b)
{
    wide s = read(a) + read(b);
    return to_float(s, s < 0 || (s == 0 && negative(a) && negative(b)));
}

static float over(float a, float b)
{
    return to_float(read(a) / read(b), negative(a) != negative(b));
}

// The float next to sqrt(v): no other's midpoints enclose v.
static float root(float v)
{
    if (!(read(v) > 0) || mr_expo(v) == 255)
        return v < 0 ? mr_qnan() : mr_in(v);
    float r = (float)sqrt((double)v);
    for (int k = 0; k < 3; k++) {
        wide up = ((wide)r + (wide)nextafterf(r, INFINITY)) / 2;
        wide down = ((wide)r + (wide)nextafterf(r, 0)) / 2;
        if (up * up < (wide)v)
            r = nextafterf(r, INFINITY);
        else if (down * down > (wide)v)
            r = nextafterf(r, 0);
    }
    return r;
}

static void by_rule(const struct mr_update_factors *a, float *w, float *m, float *v, float g)
{
    bool sgd = a->kind == MR_SGD || a->kind == MR_SGD_NESTEROV;
    float d = times(g, a->scale);
    if (a->kind != MR_ADAMW)
        d = plus(d, times(*w, a->join));
    *m = plus(times(*m, a->keep1), times(d, a->add1));
    float u = a->kind == MR_SGD_NESTEROV ? plus(d, times(*m, a->keep1)) : *m;
    if (!sgd) {
        *v = plus(times(*v, a->keep2), times(times(d, d), a->add2));
        u = over(*m, plus(times(root(*v), a->root), a->epsilon));
    }
    float change = times(u, a->rate);
    if (a->kind == MR_ADAMW)
        change = plus(change, times(*w, a->decay));
    *w = plus(*w, mr_fneg(change));
}

// Beside the limits at which products, quotients and sums flush: also one that 24 bits hold and
// fp32's subnormals would round up to 2^-126.
static float limit(void)
{
    static const float x[] = {0x1.fffffep-64F,
                              0x1p-63F,
                              0x1.000002p-63F,
                              0x1.fffffep-126F,
                              0x1.fffffep-127F,
                              0x1.000002p-126F,
                              0x1p-126F,
                              0x1p-127F,
                              1,
                              2,
                              0,
                              0x1.fffffep-1F,
                              0x1.fffffep127F,
                              0x1.fffffep+63F};
    return x[draw() % (sizeof x / sizeof *x)];
}

static struct mr_update_factors some_factors(int kind)
{
    enum mr_update_kind rule = (enum mr_update_kind)(draw() % MR_UPDATE_KINDS);
    if (kind == 3)
        return (struct mr_update_factors){limit(), limit(), limit(), limit(), limit(), limit(),
                                          limit(), limit(), limit(), limit(), rule};
    if (kind == 4) // w -= m / sqrt(v)
        return (struct mr_update_factors){1, 1, 0, 1, 0, 1, 0, 1, 0, 0, rule};
    const struct mr_update_options o = {0.9, 0.999, 1e-8, 0.1, false, rule};
    return mr_update_factors_of(&o, 1 + (int)(draw() % 1000), 1e-4 * (1 + draw() % 100), 1.0 / 777,
                                draw() % 2);
}

enum { N = 1000 };
struct elements {
    float w[N], m[N], v[N], g[N];
};

// Usual values; values where products are near 2^-126; zeros, subnormals, infinities, NaNs; limits;
// quotients at 2^-126.
enum { KINDS = 5 };
static void fill(struct elements *e, int kind)
{
    for (int i = 0; i < N; i++) {
        if (kind == 3) {
            e->w[i] = draw() % 2 ? limit() : -limit();
            e->m[i] = draw() % 2 ? limit() : -limit();
            e->v[i] = limit();
            e->g[i] = draw() % 2 ? limit() : -limit();
            continue;
        }
        if (kind == 4) {
            e->w[i] = e->g[i] = 0;
            e->m[i] = ldexpf(draw() % 2 ? 0x1.fffffep0F : 1, -65 + (int)(draw() % 3));
            e->v[i] = ldexpf(1, 124 + 2 * (int)(draw() % 2));
            continue;
        }
        unsigned low = kind == 0 ? 110 : kind == 1 ? 50 : 0, high = kind == 0 ? 128 : 75;
        if (kind == 2)
            high = 255;
        e->w[i] = number(low, high);
        e->m[i] = number(low, high);
        e->v[i] = fabsf(number(low, high));
        e->g[i] = number(low, high);
    }
}

// NaN and the sign of zero count.
static bool same(const float *a, const float *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static void update_is_that_of_the_rule(void **unused)
{
    (void)unused;
    struct elements e, was;
    for (int round = 0; round < 500; round++) {
        // Limits need many factors, and few elements.
        int kind = round < 24 ? round % 3 : 3, n = round < 24 ? N : 50;
        struct mr_update_factors a = some_factors(kind);
        fill(&e, kind);
        was = e;
        mr_update_plain(&a, e.w, e.m, e.v, e.g, (size_t)n);
        for (int i = 0; i < n; i++) {
            float w = was.w[i], m = was.m[i], v = was.v[i];
            by_rule(&a, &w, &m, &v, was.g[i]);
            if (!same(&w, &e.w[i]) || !same(&m, &e.m[i]) || !same(&v, &e.v[i]))
                fail_msg("w %a m %a v %a g %a: became %a %a %a; the rule says %a %a %a",
                         (double)was.w[i], (double)was.m[i], (double)was.v[i], (double)was.g[i],
                         (double)e.w[i], (double)e.m[i], (double)e.v[i], (double)w, (double)m,
                         (double)v);
        }
    }
}

static void every_instruction_set_has_the_same_bits(void **unused)
{
    (void)unused;
    static const char *const names[] = {"portable", "avx2", "avx512"};
    struct elements e, want, was;
    int tried = 0;
    for (int k = 0; k < 3; k++) {
        mr_update_elements *update = SIMD_NAMED(mr_update_sets, names[k]);
        tried += update != NULL;
        for (int round = 0; update && round < 400; round++) {
            struct mr_update_factors a = some_factors(round % KINDS);
            // Not all of them, and not from the beginning.
            int from = (int)(draw() % 9), n = N - from - (int)(draw() % (round < 200 ? 20 : N - 9));
            fill(&e, round % KINDS);
            was = want = e;
            mr_update_plain(&a, want.w + from, want.m + from, want.v + from, want.g + from,
                            (size_t)n);
            update(&a, e.w + from, e.m + from, e.v + from, e.g + from, (size_t)n);
            if (memcmp(&e, &want, sizeof e) != 0)
                for (int i = 0; i < N; i++)
                    if (!same(&e.w[i], &want.w[i]) || !same(&e.m[i], &want.m[i]) ||
                        !same(&e.v[i], &want.v[i]))
                        fail_msg("%s: w %a m %a v %a g %a became %a %a %a; expected %a %a %a",
                                 names[k], (double)was.w[i], (double)was.m[i], (double)was.v[i],
                                 (double)was.g[i], (double)e.w[i], (double)e.m[i], (double)e.v[i],
                                 (double)want.w[i], (double)want.m[i], (double)want.v[i]);
        }
    }
    assert_true(tried >= 1);
    assert_int_equal(mr_simd_named("mmx"), -1);
}

// From one place to another, by integers x 2^unit: as if these were fp32 before.
static void integers_are_gradients(void **unused)
{
    (void)unused;
    static const char *const names[] = {"portable", "avx2", "avx512"};
    enum { MOVED = N / 16 * 16 };
    int32_t g[MOVED];
    struct elements e, want, to;
    for (int r = 0; r < 3 * 400; r++) {
        mr_update_mover *move = SIMD_NAMED(mr_update_movers, names[r % 3]);
        struct mr_update_factors a = some_factors(r % KINDS);
        bool edge = r % 24 < 3;
        int unit = edge ? -150 : (int)(draw() % 426) - 330; // beyond 2^96 a step is refused before
        a.scale = edge ? 0x1p60F : a.scale;
        a.add1 = edge ? 0.5F : a.add1;
        size_t n = 16 + draw() % (MOVED / 16) * 16;
        fill(&e, r % KINDS);
        for (int i = 0; i < MOVED; i++) {
            g[i] = (int32_t)draw() >> draw() % 32;
            g[i] = i % 97 == 5 ? INT32_MIN : i % 97 == 6 ? INT32_MAX : g[i];
            if (edge && i % 9 == 0) { // below 2^-126, and fp32's subnormals would round it up
                g[i] = 0xFFFFFF;
                e.m[i] = 0;
            }
            e.g[i] = mr_fscale((float)g[i], unit);
        }
        want = to = e;
        mr_update_plain(&a, want.w, want.m, want.v, want.g, n);
        const struct mr_update_move p = {e.w, e.m, e.v, to.w, to.m, to.v, g, g, unit};
        if (!move)
            continue;
        move(&a, &p, n);
        for (int i = 0; i < N; i++)
            if (!same(&to.w[i], &want.w[i]) || !same(&to.m[i], &want.m[i]) ||
                !same(&to.v[i], &want.v[i]))
                fail_msg("%s: w %a m %a v %a by %d x 2^%d became %a %a %a; expected %a %a %a",
                         names[r % 3], (double)e.w[i], (double)e.m[i], (double)e.v[i], g[i % MOVED],
                         unit, (double)to.w[i], (double)to.m[i], (double)to.v[i], (double)want.w[i],
                         (double)want.m[i], (double)want.v[i]);
    }
}

// Of a hundred steps of usual values: a change of the rule, or a host that rounds otherwise, shows.
static uint64_t hash_of_steps(const struct mr_update_options *o)
{
    struct elements e = {0};
    state = 7;
    for (int i = 0; i < N; i++)
        e.w[i] = uniform();
    for (int step = 1; step <= 100; step++) {
        struct mr_update_factors a = mr_update_factors_of(o, step, 1e-3, 1.0 / 4096, true);
        for (int i = 0; i < N; i++)
            e.g[i] = ldexpf(uniform(), i % 24 - 6);
        mr_update_sets[mr_simd_best()](&a, e.w, e.m, e.v, e.g, N);
    }
    return XXH64(&e, 3 * sizeof e.w, 0);
}

static void bits_are_frozen(void **unused)
{
    (void)unused;
    static const struct {
        struct mr_update_options o;
        uint64_t hash;
    } known[] = {{{0.9, 0.95, 1e-8, 0.1, false, MR_ADAMW}, 0x59d0ac3dfda9f584},
                 {{0.9, 0.95, 1e-8, 0.1, false, MR_ADAM}, 0x4df7bbefbb5df46b},
                 {{0.9, 0.25, 0, 0.1, false, MR_SGD}, 0x6c54f1b364d16f1f},
                 {{0.9, 0, 0, 0.1, false, MR_SGD_NESTEROV}, 0x7b57e0ba70602f3f}};
    int wrong = 0;
    for (int i = 0; i < MR_UPDATE_KINDS; i++) {
        uint64_t hash = hash_of_steps(&known[i].o);
        if (hash != known[i].hash)
            print_message("# kind %d: 0x%016llx\n", i, (unsigned long long)hash);
        wrong += hash != known[i].hash;
    }
    assert_int_equal(wrong, 0);
}

// ---- PyTorch ------------------------------------------------------------------------------------

#define FIXTURES "tests/fixtures/optimizers/"
enum { STEPS = 50, WEIGHTS = 8 };

static float *read_floats(const char *path, size_t *count)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *count = (size_t)ftell(f) / sizeof(float);
    rewind(f);
    float *x = malloc(*count * sizeof *x);
    assert_non_null(x);
    assert_int_equal(fread(x, sizeof *x, *count, f), *count);
    (void)fclose(f); // only read
    return x;
}

static enum mr_update_kind kind_of(const char *name, bool nesterov)
{
    for (int k = 0; k < MR_SGD; k++)
        if (strcmp(name, mr_update_name((enum mr_update_kind)k)) == 0)
            return (enum mr_update_kind)k;
    assert_string_equal(name, mr_update_name(MR_SGD));
    return nesterov ? MR_SGD_NESTEROV : MR_SGD;
}

// The largest distance from PyTorch's weights, behind each of all steps.
static double distance(const struct mr_update_options *o, double rate, const float *start,
                       const float *gradients, const float *want)
{
    float w[WEIGHTS], m[WEIGHTS] = {0}, v[WEIGHTS] = {0};
    double worst = 0;
    memcpy(w, start, sizeof w);
    for (int step = 1; step <= STEPS; step++) {
        struct mr_update_factors a = mr_update_factors_of(o, step, rate, 1, true);
        mr_update_sets[mr_simd_best()](&a, w, m, v, gradients + (step - 1) * WEIGHTS, WEIGHTS);
        for (int i = 0; i < WEIGHTS; i++)
            worst = fmax(worst, fabs((double)w[i] - (double)want[(step - 1) * WEIGHTS + i]));
    }
    return worst;
}

static void updates_are_those_of_pytorch(void **unused)
{
    (void)unused;
    FILE *texts = fopen(FIXTURES "optimizers.txt", "r");
    size_t count, read = WEIGHTS + STEPS * WEIGHTS;
    float *x = read_floats(FIXTURES "expected.f32", &count);
    char name[16], line[160];
    bool seen[MR_UPDATE_KINDS] = {0};
    assert_non_null(texts);
    for (; fgets(line, sizeof line, texts); read += STEPS * WEIGHTS) {
        struct mr_update_options o = {0};
        double rate;
        int nesterov;
        assert_int_equal(sscanf(line, "%15s %lf %lf %lf %lf %d %lf", name, &o.beta1, &o.beta2,
                                &o.epsilon, &o.decay, &nesterov, &rate),
                         7);
        o.kind = kind_of(name, nesterov);
        seen[o.kind] = true;
        assert_true(read + STEPS * WEIGHTS <= count);
        double d = distance(&o, rate, x, x + WEIGHTS, x + read);
        line[strcspn(line, "\n")] = 0;
        print_message("# %.1e of PyTorch's: %s\n", d, line);
        // PyTorch's AdamW rounds 1 - rate x decay first.
        if (!(d < (o.kind == MR_ADAMW ? 3e-6 : 5e-7)))
            fail_msg("%s: %.2e beside PyTorch's", line, d);
    }
    assert_int_equal(read, count);
    for (int k = 0; k < MR_UPDATE_KINDS; k++)
        assert_true(seen[k]);
    (void)fclose(texts); // only read
    free(x);
}

// What the rule means: the usual formulas, in double.
static void update_is_adamw(void **unused)
{
    (void)unused;
    const struct mr_update_options o = {0.9, 0.98, 1e-6, 0.05, false, MR_ADAMW};
    for (int i = 0; i < 1000; i++) {
        float w = uniform(), m = 0, v = 0;
        double dw = (double)w, dm = 0, dv = 0;
        for (int t = 1; t <= 20; t++) {
            float g = uniform() * 0.01F;
            struct mr_update_factors a = mr_update_factors_of(&o, t, 1e-3, 0.25, i % 2);
            mr_update_plain(&a, &w, &m, &v, &g, 1);
            double d = 0.25 * (double)g;
            dm = 0.9 * dm + 0.1 * d;
            dv = 0.98 * dv + 0.02 * d * d;
            double mean = dm / (1 - pow(0.9, t)), size = sqrt(dv / (1 - pow(0.98, t)));
            dw -= 1e-3 * (mean / (size + 1e-6) + (i % 2 ? 0.05 : 0) * dw);
        }
        assert_true(fabs((double)w - dw) < 2e-6);
        assert_true(fabs((double)m - dm) <= 2e-6 * 0.0025 && fabs((double)v - dv) <= 2e-6 * dv);
    }
}

// 1 - rate * decay would round to a multiple of 2^-24 first: here 1.2e-7 in place of 1e-7.
static void small_decay_joins_the_update_before_rounding(void **unused)
{
    (void)unused;
    const struct mr_update_options o = {0.9, 0.999, 1e-8, 0.1, false, MR_ADAMW};
    double got = 0, want = 0;
    assert_true(1 - (double)(float)(1 - 1e-7) > 1.19e-7);
    for (int i = 0; i < 20000; i++) {
        float start = 1.5F + 0.5F * uniform(), mean = uniform(), w[2] = {start, start};
        for (int decays = 0; decays < 2; decays++) {
            struct mr_update_factors a = mr_update_factors_of(&o, 1, 1e-6, 1, decays);
            float m = mean, v = 0.001F, g = 0;
            mr_update_plain(&a, &w[decays], &m, &v, &g, 1);
        }
        got += (double)w[0] - (double)w[1];
        want += 1e-7 * (double)start;
    }
    assert_true(fabs(got / want - 1) < 0.02);
}

static void factors_are_those_of_double(void **unused)
{
    (void)unused;
    const struct mr_update_options o = {0.9, 0.9995, 1e-8, 0.1, false, MR_ADAMW};
    static const int steps[] = {1, 2, 3, 10, 999, 12345, 1000000, INT32_MAX};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int t = steps[i];
        struct mr_update_factors a = mr_update_factors_of(&o, t, 3e-4, 0.5, true);
        assert_true(fabs((double)a.root * sqrt(1 - pow(0.9995, t)) - 1) < 1e-7);
        assert_true(fabs((double)a.rate * (1 - pow(0.9, t)) / 3e-4 - 1) < 1e-7);
        assert_true(a.scale == 0.5F && a.keep1 == 0.9F && a.keep2 == 0.9995F);
        assert_true(a.add1 == (float)(1 - 0.9) && a.add2 == (float)(1 - 0.9995));
        assert_true(a.epsilon == 1e-8F && a.decay == (float)(3e-4 * 0.1));
        assert_true(mr_update_factors_of(&o, t, 3e-4, 0.5, false).decay == 0);
    }
}

static void options_that_cannot_train_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        struct mr_update_options o;
        const char *words;
    } wrong[] = {{{1, 0.9, 1e-8, 0, false, MR_ADAM}, "Adam's betas are 1 and 0.9"},
                 {{0.9, 0.9, 0, 0, false, MR_ADAM}, "Adam's epsilon is 0"},
                 {{1, 0, 0, 0, false, MR_SGD}, "SGD's momentum is 1"},
                 {{0.9, NAN, 0, 0, false, MR_SGD}, "its dampening nan"},
                 {{0.9, 0, 0, 2, false, MR_SGD}, "its weight decay 2"},
                 {{0, 0, 0, 0, false, MR_SGD_NESTEROV}, "needs a momentum"},
                 {{0.9, 0.1, 0, 0, false, MR_SGD_NESTEROV}, "and no dampening"},
                 {{0.9, 0.1, 1, 0, false, MR_UPDATE_KINDS}, "there is no optimizer 4"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct mr_error err = {0};
        assert_int_equal(mr_update_check(&wrong[i].o, &err), MR_ERR_USAGE);
        assert_non_null(strstr(err.text, wrong[i].words));
    }
    const struct mr_update_options plain = {0, 0, 0, 0, false, MR_SGD};
    assert_int_equal(mr_update_check(&plain, NULL), 0);
}

// ---- learning rates -----------------------------------------------------------------------------

static void rates_warm_up_and_follow_a_cosine(void **unused)
{
    (void)unused;
    struct mr_schedule s = {MR_SCHEDULE_CONSTANT, 0.5, 0, 4, 0};
    static const double warm[] = {0.125, 0.25, 0.375, 0.5, 0.5};
    for (int i = 0; i < 5; i++)
        assert_true(mr_schedule_rate(&s, i + 1) == warm[i]);
    assert_true(mr_schedule_rate(&s, 1000000) == 0.5);
    s = (struct mr_schedule){MR_SCHEDULE_COSINE, 2, 0.25, 10, 1010};
    for (int t = 1; t <= 1200; t++) {
        double x = t < 10 ? 0 : fmin((t - 10) / 1000.0, 1);
        double want = t < 10 ? 0.2 * t : 2 * (0.25 + 0.75 * (1 + cos(acos(-1) * x)) / 2);
        if (!(fabs(mr_schedule_rate(&s, t) - want) < 1e-15 * 4))
            fail_msg("step %d: %.17g; expected %.17g", t, mr_schedule_rate(&s, t), want);
    }
    assert_true(mr_schedule_rate(&s, 10) == 2 && mr_schedule_rate(&s, 1010) == 0.5);
    s.least = 0;
    assert_true(mr_schedule_rate(&s, 1010) == 0);
    s.warmup = 0;
    s.steps = 0; // nothing to descend over
    assert_true(mr_schedule_rate(&s, 1) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(update_is_that_of_the_rule),
        cmocka_unit_test(every_instruction_set_has_the_same_bits),
        cmocka_unit_test(integers_are_gradients),
        cmocka_unit_test(bits_are_frozen),
        cmocka_unit_test(updates_are_those_of_pytorch),
        cmocka_unit_test(options_that_cannot_train_are_refused),
        cmocka_unit_test(update_is_adamw),
        cmocka_unit_test(small_decay_joins_the_update_before_rounding),
        cmocka_unit_test(factors_are_those_of_double),
        cmocka_unit_test(rates_warm_up_and_follow_a_cosine),
    };
    return cmocka_run_group_tests_name("adamw", tests, NULL, NULL);
}
