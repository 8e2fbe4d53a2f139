// SPDX-License-Identifier: Apache-2.0
#include "store/update.h"

#include <math.h>

#include "cmodel/num.h"
#include "store/series.h"

enum mr_update_kind mr_update_family(enum mr_update_kind kind)
{
    return kind == MR_SGD_NESTEROV ? MR_SGD : kind;
}

const char *mr_update_name(enum mr_update_kind kind)
{
    static const char *const names[] = {"AdamW", "Adam", "SGD", "SGD"};
    return names[kind];
}

static int check_sgd(const struct mr_update_options *o, struct mr_error *err)
{
    bool nesterov = o->kind == MR_SGD_NESTEROV;
    if (!(o->beta1 >= 0 && o->beta1 < 1 && o->beta2 >= 0 && o->beta2 < 1 && o->decay >= 0 &&
          o->decay <= 1))
        return mr_fail(err, MR_ERR_USAGE,
                       "SGD's momentum is %g, its dampening %g, its weight decay %g; 0 to 1, the "
                       "first two without 1",
                       o->beta1, o->beta2, o->decay);
    return nesterov && !(o->beta1 > 0 && o->beta2 == 0)
               ? mr_fail(err, MR_ERR_USAGE, "Nesterov's way needs a momentum, and no dampening")
               : 0;
}

int mr_update_check(const struct mr_update_options *o, struct mr_error *err)
{
    if ((unsigned)o->kind >= MR_UPDATE_KINDS)
        return mr_fail(err, MR_ERR_USAGE, "there is no optimizer %d", (int)o->kind);
    if (mr_update_family(o->kind) == MR_SGD)
        return check_sgd(o, err);
    const char *name = mr_update_name(o->kind);
    if (!(o->beta1 >= 0 && o->beta1 < 1 && o->beta2 >= 0 && o->beta2 < 1))
        return mr_fail(err, MR_ERR_USAGE, "%s's betas are %g and %g; 0 to 1, without 1", name,
                       o->beta1, o->beta2);
    if (!(o->epsilon > 0 && o->epsilon <= 1 && o->decay >= 0 && o->decay <= 1))
        return mr_fail(err, MR_ERR_USAGE,
                       "%s's epsilon is %g, its weight decay %g; both end at 1, and epsilon is "
                       "above 0",
                       name, o->epsilon, o->decay);
    return 0;
}

// Without momentum, and in the first step, the gradient is the momentum whole, as in PyTorch.
static struct mr_update_factors sgd_of(const struct mr_update_options *o, int step, double rate,
                                       double scale, bool decays)
{
    bool whole = step == 1 || o->beta1 == 0;
    return (struct mr_update_factors){
        .scale = mr_in((float)scale),
        .keep1 = (float)o->beta1,
        .add1 = whole ? 1 : (float)(1 - o->beta2),
        .rate = mr_in((float)rate),
        .join = decays ? mr_in((float)o->decay) : 0.0F,
        .kind = o->kind,
    };
}

struct mr_update_factors mr_update_factors_of(const struct mr_update_options *o, int step,
                                              double rate, double scale, bool decays)
{
    if (mr_update_family(o->kind) == MR_SGD)
        return sgd_of(o, step, rate, scale, decays);
    bool joins = o->kind == MR_ADAM;
    return (struct mr_update_factors){
        .scale = mr_in((float)scale),
        .keep1 = (float)o->beta1,
        .add1 = (float)(1 - o->beta1),
        .keep2 = (float)o->beta2,
        .add2 = (float)(1 - o->beta2),
        .root = (float)(1 / sqrt(1 - mr_whole_power(o->beta2, step))),
        .epsilon = mr_in((float)o->epsilon),
        .rate = mr_in((float)(rate / (1 - mr_whole_power(o->beta1, step)))),
        .decay = decays && !joins ? mr_in((float)(rate * o->decay)) : 0.0F,
        .join = decays && joins ? mr_in((float)o->decay) : 0.0F,
        .kind = o->kind,
    };
}

bool mr_update_decays(const struct mr_update_options *o, const struct mr_arch *arch,
                      const struct mr_item *item, enum mr_part part)
{
    return o->decay_all ||
           (item->kind == MR_LINEAR && part == MR_WEIGHT && !mr_item_tied(arch, item));
}

// ---- the definition -----------------------------------------------------------------------------

// A double holds twice the bits of an fp32 and two more, so rounding a quotient or a root to double
// first changes nothing.
static float divide(float a, float b)
{
    double q = (double)mr_in(a) / (double)mr_in(b);
    if (fabs(q) < 0x1.ffffffp-127)
        return copysignf(0.0F, (float)copysign(1.0, q));
    return mr_in((float)q);
}

static float root(float v)
{
    return mr_in((float)sqrt((double)mr_in(v)));
}

void mr_update_plain(const struct mr_update_factors *a, float *w, float *m, float *v,
                     const float *g, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float d = mr_fmul(g[i], a->scale), u;
        if (a->kind != MR_ADAMW)
            d = mr_fadd(d, mr_fmul(w[i], a->join));
        m[i] = mr_fadd(mr_fmul(m[i], a->keep1), mr_fmul(d, a->add1));
        u = m[i];
        if (a->kind == MR_SGD_NESTEROV)
            u = mr_fadd(d, mr_fmul(m[i], a->keep1));
        if (a->kind == MR_ADAMW || a->kind == MR_ADAM) {
            v[i] = mr_fadd(mr_fmul(v[i], a->keep2), mr_fmul(mr_fmul(d, d), a->add2));
            u = divide(m[i], mr_fadd(mr_fmul(root(v[i]), a->root), a->epsilon));
        }
        if (a->kind == MR_ADAMW)
            w[i] = mr_fsub(w[i], mr_fadd(mr_fmul(u, a->rate), mr_fmul(w[i], a->decay)));
        else
            w[i] = mr_fsub(w[i], mr_fmul(u, a->rate));
    }
}

// ---- the same without branches, for vectors -----------------------------------------------------
//
// Of finite numbers and infinities; NaNs become canonical at the end only.

#define INLINE static inline __attribute__((always_inline))

INLINE float flush(float f, bool small)
{
    return mr_float(mr_bits(f) & (small ? 0x80000000U : 0xFFFFFFFFU));
}

INLINE float normal(float f)
{
    return flush(f, fabsf(f) < 0x1p-126F);
}

INLINE float canonical(float f)
{
    return mr_float(f != f ? MR_QNAN_BITS : mr_bits(f));
}

// Whether a product counts as below 2^-126 is seen where rounding has all its bits: 2^64 higher.
INLINE float mul(float x, float y)
{
    return flush(x * y, fabsf((x * 0x1p64F) * y) < 0x1p-62F);
}

INLINE float add(float x, float y)
{
    return normal(x + y);
}

// A quotient of two fp32 below 2^-126 is so far below that it rounds to less; here y >= 0.
INLINE float over(float x, float y)
{
    return flush(x / y, fabsf(x) * 0x1p126F < y);
}

// Weight and moments of one element.
struct element {
    float w, m, v;
};

INLINE struct mr_update_factors normal_factors(const struct mr_update_factors *a)
{
    return (struct mr_update_factors){normal(a->scale),   normal(a->keep1), normal(a->add1),
                                      normal(a->keep2),   normal(a->add2),  normal(a->root),
                                      normal(a->epsilon), normal(a->rate),  normal(a->decay),
                                      normal(a->join),    a->kind};
}

// `kind` is a constant where this is inlined.
INLINE struct element updated(const struct mr_update_factors *k, struct element e, float g,
                              enum mr_update_kind kind)
{
    float d = mul(normal(g), k->scale), old = normal(e.w);
    if (kind != MR_ADAMW)
        d = add(d, mul(old, k->join));
    float mean = add(mul(normal(e.m), k->keep1), mul(d, k->add1));
    if (kind == MR_SGD || kind == MR_SGD_NESTEROV) {
        float way = kind == MR_SGD ? mean : add(d, mul(mean, k->keep1));
        return (struct element){canonical(add(old, -mul(way, k->rate))), canonical(mean), e.v};
    }
    float square = add(mul(normal(e.v), k->keep2), mul(mul(d, d), k->add2));
    float u = over(mean, add(mul(sqrtf(square), k->root), k->epsilon));
    float change = mul(u, k->rate);
    if (kind == MR_ADAMW)
        change = add(change, mul(old, k->decay));
    return (struct element){canonical(add(old, -change)), canonical(mean), canonical(square)};
}

// The same where the processor flushes as rule 1 does: operands that are subnormal, and results
// that are below 2^-126 after rounding. Its mode is set around loops alone, so nothing else depends
// on it.
INLINE struct element updated_flushing(const struct mr_update_factors *k, struct element e, float g,
                                       enum mr_update_kind kind)
{
    float d = g * k->scale;
    if (kind != MR_ADAMW)
        d = d + e.w * k->join;
    float mean = e.m * k->keep1 + d * k->add1;
    if (kind == MR_SGD || kind == MR_SGD_NESTEROV) {
        float way = kind == MR_SGD ? mean : d + mean * k->keep1;
        return (struct element){canonical(e.w - way * k->rate), canonical(mean), e.v};
    }
    float square = e.v * k->keep2 + d * d * k->add2;
    float u = mean / (sqrtf(square) * k->root + k->epsilon);
    float change = u * k->rate;
    if (kind == MR_ADAMW)
        change = change + e.w * k->decay;
    return (struct element){canonical(e.w - change), canonical(mean), canonical(square)};
}

// Calls KERNEL with the kind as a constant, so that each has a loop of its own.
#define OF_KIND(a, KERNEL, ...)                                                                    \
    switch ((a)->kind) {                                                                           \
    case MR_ADAMW:                                                                                 \
        KERNEL(__VA_ARGS__, MR_ADAMW);                                                             \
        break;                                                                                     \
    case MR_ADAM:                                                                                  \
        KERNEL(__VA_ARGS__, MR_ADAM);                                                              \
        break;                                                                                     \
    case MR_SGD:                                                                                   \
        KERNEL(__VA_ARGS__, MR_SGD);                                                               \
        break;                                                                                     \
    default:                                                                                       \
        KERNEL(__VA_ARGS__, MR_SGD_NESTEROV);                                                      \
    }

INLINE void elements(const struct mr_update_factors *restrict a, float *restrict w,
                     float *restrict m, float *restrict v, const float *restrict g, size_t n,
                     bool flushing, enum mr_update_kind kind)
{
    const struct mr_update_factors k = flushing ? *a : normal_factors(a);
    for (size_t i = 0; i < n; i++) {
        const struct element old = {w[i], m[i], v[i]};
        struct element e =
            flushing ? updated_flushing(&k, old, g[i], kind) : updated(&k, old, g[i], kind);
        w[i] = e.w;
        m[i] = e.m;
        v[i] = e.v;
    }
}

INLINE void update(const struct mr_update_factors *a, float *w, float *m, float *v, const float *g,
                   size_t n, bool flushing){OF_KIND(a, elements, a, w, m, v, g, n, flushing)}

// ---- integers x 2^unit ----

INLINE float power(int e)
{
    return mr_float((uint32_t)(e + 127) << 23);
}

// Numbers below 1 pass 2^64 higher, where they are not subnormal yet.
struct unit {
    float first, second, least; // least: of what stays above 2^-126, 2^64 higher
};

INLINE struct unit unit_of(int unit)
{
    int low = unit < -190 ? -190 : unit, high = unit > 127 ? 127 : unit;
    return (struct unit){.first = unit > 0 ? power(high) : power(low + 64),
                         .second = unit > 0 ? 1.0F : 0x1p-64F,
                         .least = unit > 0 ? 0.0F : 0x1p-62F};
}

INLINE float widened(int32_t g, struct unit u, bool flushing)
{
    float x = (float)g * u.first;
    return (flushing ? x : flush(x, fabsf(x) < u.least)) * u.second;
}

// Lines of 16 elements. ivdep: what is written is not what is read later; gcc would believe
// restrict only of parameters.
INLINE void lines(const struct mr_update_factors *a, const struct mr_update_move *p, size_t n,
                  bool flushing, enum mr_update_kind kind)
{
    enum { LINE = 16 };
    const struct mr_update_factors k = flushing ? *a : normal_factors(a);
    const struct unit u = unit_of(p->unit);
    const float *w = p->w, *m = p->m, *v = p->v;
    float *to_w = p->to_w, *to_m = p->to_m, *to_v = p->to_v;
    const int32_t *g = p->g, *next = p->next;
    for (size_t line = 0; line < n; line += LINE) {
        __builtin_prefetch(next + line);
#pragma GCC ivdep
        for (size_t i = line; i < line + LINE; i++) {
            const struct element old = {w[i], m[i], v[i]};
            float gradient = widened(g[i], u, flushing);
            struct element e = flushing ? updated_flushing(&k, old, gradient, kind)
                                        : updated(&k, old, gradient, kind);
            to_w[i] = e.w;
            to_m[i] = e.m;
            to_v[i] = e.v;
        }
    }
}

INLINE void move(const struct mr_update_factors *a, const struct mr_update_move *p, size_t n,
                 bool flushing)
{
    OF_KIND(a, lines, a, p, n, flushing)
}

static void update_portable(const struct mr_update_factors *a, float *w, float *m, float *v,
                            const float *g, size_t n)
{
    update(a, w, m, v, g, n, false);
}

static void move_portable(const struct mr_update_factors *a, const struct mr_update_move *p,
                          size_t n)
{
    move(a, p, n, false);
}

#if defined(__x86_64__)
enum { USUAL = 0x1F80, FLUSHING = 0x8040 }; // of MXCSR

// One source for both instruction sets. The Makefile compiles this file with what gcc needs to put
// it into vectors: -O3, comparisons that cannot trap, and a square root without errno.
#define UPDATE(name, attributes)                                                                   \
    attributes __attribute__((noinline)) static void loop_##name(                                  \
        const struct mr_update_factors *a, float *w, float *m, float *v, const float *g, size_t n) \
    {                                                                                              \
        update(a, w, m, v, g, n, true);                                                            \
    }                                                                                              \
    static void update_##name(const struct mr_update_factors *a, float *w, float *m, float *v,     \
                              const float *g, size_t n)                                            \
    {                                                                                              \
        unsigned was = __builtin_ia32_stmxcsr();                                                   \
        __builtin_ia32_ldmxcsr(USUAL | FLUSHING);                                                  \
        loop_##name(a, w, m, v, g, n);                                                             \
        __builtin_ia32_ldmxcsr(was);                                                               \
    }                                                                                              \
    attributes __attribute__((noinline)) static void lines_##name(                                 \
        const struct mr_update_factors *a, const struct mr_update_move *p, size_t n)               \
    {                                                                                              \
        move(a, p, n, true);                                                                       \
    }                                                                                              \
    static void move_##name(const struct mr_update_factors *a, const struct mr_update_move *p,     \
                            size_t n)                                                              \
    {                                                                                              \
        unsigned was = __builtin_ia32_stmxcsr();                                                   \
        __builtin_ia32_ldmxcsr(USUAL | FLUSHING);                                                  \
        lines_##name(a, p, n);                                                                     \
        __builtin_ia32_ldmxcsr(was);                                                               \
    }

UPDATE(avx2, __attribute__((target("avx2"))))
UPDATE(avx512, __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))))
#endif

mr_update_elements *const mr_update_sets[MR_SIMD_SETS] = {
    update_portable,
#if defined(__x86_64__)
    update_avx2,
    update_avx512,
#endif
};

mr_update_mover *const mr_update_movers[MR_SIMD_SETS] = {
    move_portable,
#if defined(__x86_64__)
    move_avx2,
    move_avx512,
#endif
};
