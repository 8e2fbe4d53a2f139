// SPDX-License-Identifier: Apache-2.0
#include "pack/compensate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/num.h"
#include "common/blas.h"
#include "pack/mxfp4.h"

// Up to this size plain loops, whose result depends on nothing but the input; BLAS and LAPACK
// above.
#define PLAIN 1024

enum { B = MR_BLOCK, SWEEPS = 4 };

// ---- factors ----

static double dot(const double *a, const double *b, int n)
{
    double s[4] = {0};
    int i = 0;
    for (; i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++)
            s[j] += a[i + j] * b[i + j];
    for (; i < n; i++)
        s[0] += a[i] * b[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

// a = r r^T, r upper, in place of a's upper triangle. False if a is not positive definite.
static bool factor(double *a, int n)
{
    for (int j = n - 1; j >= 0; j--) {
        double *rj = a + (size_t)j * (size_t)n;
        double d = rj[j] - dot(rj + j + 1, rj + j + 1, n - 1 - j);
        if (!(d > 0))
            return false;
        rj[j] = sqrt(d);
        for (int i = 0; i < j; i++) {
            double *ri = a + (size_t)i * (size_t)n;
            ri[j] = (ri[j] - dot(ri + j + 1, rj + j + 1, n - 1 - j)) / rj[j];
        }
    }
    return true;
}

// The inverse of an upper triangle in its place.
static void invert(double *r, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        double *row = r + (size_t)i * (size_t)n, d = row[i];
        // Row i of the inverse is (e_i - sum over m > i of r_im inverse_m) / r_ii, and inverse_m
        // begins at m: from behind, r_im is read before its place is written.
        for (int m = n - 1; m > i; m--) {
            double f = row[m];
            const double *inv = r + (size_t)m * (size_t)n;
            row[m] = 0;
            for (int j = m; j < n; j++)
                row[j] -= f * inv[j];
        }
        row[i] = 1 / d;
        for (int j = i + 1; j < n; j++)
            row[j] /= d;
    }
}

static void reverse(double *a, int n)
{
    size_t size = (size_t)n * (size_t)n;
    for (size_t i = 0; i < size / 2; i++) {
        double t = a[i];
        a[i] = a[size - 1 - i];
        a[size - 1 - i] = t;
    }
}

// u with u^T u = a^-1 in place of a's upper triangle.
static bool inverse_factor(double *a, int n)
{
    if (n <= PLAIN) {
        if (!factor(a, n))
            return false;
        invert(a, n);
        return true;
    }
    int info;
    reverse(a, n); // rows and columns from behind: the upper factor becomes the lower one
    mr_blas.dpotrf("U", &n, a, &n, &info); // LAPACK sees the transpose: "U" is our lower triangle
    if (info == 0)
        mr_blas.dtrtri("U", "N", &n, a, &n, &info);
    reverse(a, n);
    return info == 0;
}

// Should rounding have made h indefinite, its diagonal grows until the factors exist.
static bool factor_of(double *out, const double *h, size_t stride, int n, double damping)
{
    double more = 0;
    for (int tries = 0; tries < 8; tries++, more = more > 0 ? 10 * more : damping) {
        for (size_t i = 0; i < (size_t)n; i++) {
            memcpy(out + i * (size_t)n, h + i * stride, (size_t)n * sizeof *out);
            out[i * (size_t)n + i] += more;
        }
        if (inverse_factor(out, n))
            return true;
    }
    return false;
}

void mr_compensator_free(struct mr_compensator *c)
{
    free(c->h);
    free(c->u);
    free(c->block);
    *c = (struct mr_compensator){0};
}

int mr_compensator_make(struct mr_compensator *c, int k, double *h, struct mr_error *err)
{
    size_t n = (size_t)k;
    int rc = k > PLAIN ? mr_blas_load(err) : 0;
    if (rc < 0) {
        *c = (struct mr_compensator){0};
        return rc;
    }
    *c = (struct mr_compensator){k, h, malloc(n * n * sizeof(double)),
                                 malloc(n * B * sizeof(double))};
    if (!c->u || !c->block) {
        mr_compensator_free(c);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for moments of %d inputs", k);
    }
    double mean = 0;
    for (size_t i = 0; i < n; i++)
        mean += h[i * (n + 1)] / k;
    double damping = mean > 0 && isfinite(mean) ? 0.01 * mean : 1;
    for (size_t i = 0; i < n; i++)
        h[i * (n + 1)] += damping;
    bool ok = isfinite(mean) && factor_of(c->u, h, n, k, damping);
    for (size_t b = 0; ok && b < n / B; b++)
        ok = factor_of(c->block + b * B * B, h + b * B * (n + 1), n, B, damping);
    if (!ok) {
        mr_compensator_free(c);
        return mr_fail(err, MR_ERR_FORMAT,
                       "calibration: the inputs of a matrix are infinite or NaN; the checkpoint is "
                       "damaged or its training diverged");
    }
    return 0;
}

// ---- a block ----

struct rounded {
    int code;
    int8_t element[B];
    double value[B];
};

static inline double nearest(enum mr_format format, double v, double scale, int8_t *element)
{
    if (format == MR_FORMAT_MXFP4) {
        uint8_t c = mr_mxfp4_element(v, scale);
        *element = (int8_t)(c | (v < 0 && c ? 8 : 0));
        return mr_mxfp4_twice[*element] * 0.5 * scale;
    }
    double q = rint(v * 64 / scale);
    q = q > 127 ? 127 : q < -127 ? -127 : q;
    *element = (int8_t)q;
    return q * scale / 64;
}

static double scale_of(int code)
{
    return ldexp(1.0, code - 127);
}

// Rounds t[32] in order, each error spread over the rest by u (rows `stride` apart). e[32] gets the
// errors over u's diagonal; the result is the sum of their squares: what the block adds to the
// error.
static double spread(enum mr_format format, int code, const double *t, const double *u,
                     size_t stride, struct rounded *r, double *e)
{
    double v[B], scale = scale_of(code), sum = 0;
    memcpy(v, t, sizeof v);
    r->code = code;
    for (int i = 0; i < B; i++) {
        const double *ui = u + (size_t)i * stride;
        r->value[i] = nearest(format, v[i], scale, &r->element[i]);
        e[i] = (v[i] - r->value[i]) / ui[i];
        sum += e[i] * e[i];
        for (int j = i + 1; j < B; j++)
            v[j] -= e[i] * ui[j];
    }
    return sum;
}

// The scales worth trying for the values t[32]: the OCP rule's and its neighbours.
static int candidates(enum mr_format format, const double *t, int *low)
{
    double top = 0;
    for (int i = 0; i < B; i++)
        top = fabs(t[i]) > top ? fabs(t[i]) : top;
    int e = top > 0 ? ilogb(top) + 127 : 1;
    int first = format == MR_FORMAT_MXFP4 ? e - 4 : e - 1,
        last = format == MR_FORMAT_MXFP4 ? e : e + 1;
    first = first < 1 ? 1 : first > 254 ? 254 : first;
    last = last < 1 ? 1 : last > 254 ? 254 : last;
    *low = first;
    return last - first + 1;
}

static void best_spread(enum mr_format format, const double *t, const double *u, size_t stride,
                        struct rounded *best, double *best_e)
{
    int low, n = candidates(format, t, &low);
    double least = INFINITY;
    for (int i = 0; i < n; i++) {
        struct rounded r;
        double e[B], sum = spread(format, low + i, t, u, stride, &r, e);
        if (sum < least) {
            least = sum;
            *best = r;
            memcpy(best_e, e, sizeof e);
        }
    }
}

// ---- columns ----

// g[c][from..k) -= e[c][32] m[32][from..k), rows of g and m k apart
static void subtract(double *g, const double *e, const double *m, int cols, int k, int from)
{
    int n = k - from;
    if (n == 0)
        return;
    if (k > PLAIN) {
        mr_blas.dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, cols, n, B, -1, e, B, m + from, k,
                      1, g + from, k);
        return;
    }
    for (int c = 0; c < cols; c++)
        for (int i = 0; i < B; i++) {
            double f = e[c * B + i];
            double *to = g + (size_t)c * (size_t)k;
            const double *row = m + (size_t)i * (size_t)k;
            for (int j = from; f != 0 && j < k; j++)
                to[j] -= f * row[j];
        }
}

struct work {
    const struct mr_compensator *c;
    enum mr_format format;
    int cols;
    const float *w;
    double *q;       // [cols][k] rounded values
    double *g;       // [cols][k] values still to be rounded; then (w - q) h
    double *e;       // [cols][32]
    uint8_t *code;   // [cols][k/32]
    int8_t *element; // [cols][k]
};

static void store(struct work *w, int col, int b, const struct rounded *r)
{
    size_t k = (size_t)w->c->k, at = (size_t)col * k + (size_t)b * B;
    memcpy(w->q + at, r->value, sizeof r->value);
    memcpy(w->element + at, r->element, sizeof r->element);
    w->code[at / B] = (uint8_t)r->code;
}

static bool all_zero(const float *w)
{
    for (int i = 0; i < B; i++)
        if (w[i] != 0)
            return false;
    return true;
}

// The blocks in order, errors spread over the later ones.
static void compensate(struct work *w)
{
    size_t k = (size_t)w->c->k;
    for (size_t i = 0; i < (size_t)w->cols * k; i++)
        w->g[i] = (double)w->w[i];
    for (int b = 0; b < w->c->k / B; b++) {
        const double *u = w->c->u + (size_t)b * B * k;
        for (int c = 0; c < w->cols; c++) {
            struct rounded r;
            best_spread(w->format, w->g + (size_t)c * k + (size_t)b * B, u + b * B, k, &r,
                        w->e + (size_t)c * B);
            store(w, c, b, &r);
        }
        subtract(w->g, w->e, u, w->cols, w->c->k, (b + 1) * B);
    }
}

// g = (w - q) h
static void residual(struct work *w)
{
    size_t k = (size_t)w->c->k;
    memset(w->g, 0, (size_t)w->cols * k * sizeof *w->g);
    for (int b = 0; b < w->c->k / B; b++) {
        for (int c = 0; c < w->cols; c++)
            for (int i = 0; i < B; i++) {
                size_t at = (size_t)c * k + (size_t)(b * B + i);
                w->e[c * B + i] = w->q[at] - (double)w->w[at];
            }
        subtract(w->g, w->e, w->c->h + (size_t)b * B * k, w->cols, w->c->k, 0);
    }
}

static double column_error(const struct work *w, int col)
{
    size_t k = (size_t)w->c->k, at = (size_t)col * k;
    double sum = 0;
    for (size_t i = 0; i < k; i++)
        sum += ((double)w->w[at + i] - w->q[at + i]) * w->g[at + i];
    return sum;
}

// One block of one column with all others as they are; e[32] = -(new - old). g holds the block's
// part of the residual and is left as it is.
static void improve(struct work *w, int col, int b, double *e)
{
    size_t k = (size_t)w->c->k, at = (size_t)col * k + (size_t)b * B;
    const double *h = w->c->h + (size_t)b * B * (k + 1), *u = w->c->block + (size_t)b * B * B;
    const double *old = w->q + at, *g0 = w->g + at;
    double t[B], y[B], g[B], scratch[B];
    struct rounded now, trial;
    now.code = w->code[at / B];
    memcpy(now.value, old, sizeof now.value);
    memcpy(now.element, w->element + at, sizeof now.element);
    memcpy(g, g0, sizeof g);
    // The block's best real values: old + h_bb^-1 g.
    for (int i = 0; i < B; i++) {
        y[i] = 0;
        for (int j = i; j < B; j++)
            y[i] += u[i * B + j] * g0[j];
    }
    for (int j = 0; j < B; j++) {
        t[j] = old[j];
        for (int i = 0; i <= j; i++)
            t[j] += u[i * B + j] * y[i];
    }
    double gain = 0; // of the error, negative is better
    int low, n = candidates(w->format, t, &low);
    for (int s = 0; s < n; s++) {
        (void)spread(w->format, low + s, t, u, B, &trial, scratch);
        double trial_g[B], change = 0;
        memcpy(trial_g, g0, sizeof trial_g);
        for (int i = 0; i < B; i++) {
            double d = trial.value[i] - old[i];
            if (d != 0)
                for (int j = 0; j < B; j++)
                    trial_g[j] -= d * h[(size_t)i * k + (size_t)j];
        }
        for (int i = 0; i < B; i++)
            change -= (trial.value[i] - old[i]) * (g0[i] + trial_g[i]);
        if (change < gain) {
            gain = change;
            now = trial;
            memcpy(g, trial_g, sizeof g);
        }
    }
    // Then element by element on the block's grid.
    double scale = scale_of(now.code);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < B; i++) {
            double hii = h[(size_t)i * k + (size_t)i];
            if (!(hii > 0))
                continue;
            int8_t element;
            double v = nearest(w->format, now.value[i] + g[i] / hii, scale, &element);
            double d = v - now.value[i];
            if (d == 0 || d * (d * hii - 2 * g[i]) >= 0)
                continue;
            now.value[i] = v;
            now.element[i] = element;
            for (int j = 0; j < B; j++)
                g[j] -= d * h[(size_t)i * k + (size_t)j];
        }
    for (int i = 0; i < B; i++)
        e[i] = now.value[i] - old[i];
    store(w, col, b, &now);
}

static void sweep(struct work *w)
{
    size_t k = (size_t)w->c->k;
    for (int b = 0; b < w->c->k / B; b++) {
        for (int c = 0; c < w->cols; c++)
            improve(w, c, b, w->e + (size_t)c * B);
        subtract(w->g, w->e, w->c->h + (size_t)b * B * k, w->cols, w->c->k, 0);
    }
}

// Plain rounding, each block for itself.
static void round_plainly(struct work *w)
{
    size_t k = (size_t)w->c->k;
    for (size_t at = 0; at < (size_t)w->cols * k; at += B) {
        struct rounded r;
        uint8_t nibble[B];
        if (w->format == MR_FORMAT_MXFP4) {
            r.code = mr_mxfp4_quantise(w->w + at, nibble);
            memcpy(r.element, nibble, B);
        } else {
            r.code = mr_mxint8_quantise(w->w + at, r.element);
        }
        for (int i = 0; i < B; i++)
            r.value[i] = scale_of(r.code) * (w->format == MR_FORMAT_MXFP4
                                                 ? mr_mxfp4_twice[r.element[i]] / 2.0
                                                 : r.element[i] / 64.0);
        store(w, (int)(at / k), (int)(at % k / B), &r);
    }
}

int mr_compensate(const struct mr_compensator *c, enum mr_format format, int cols, const float *in,
                  uint8_t *code, int8_t *element, float *error, struct mr_error *err)
{
    size_t k = (size_t)c->k, n = (size_t)cols * k;
    double *plain = malloc((size_t)cols * sizeof *plain);
    struct work w = {.c = c, .format = format, .cols = cols, .w = in};
    w.q = malloc(n * sizeof *w.q);
    w.g = malloc(n * sizeof *w.g);
    w.e = malloc((size_t)cols * B * sizeof *w.e);
    w.code = malloc(n / B);
    w.element = malloc(n);
    int rc = 0;
    if (!plain || !w.q || !w.g || !w.e || !w.code || !w.element) {
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for %d weight columns", cols);
        goto out;
    }
    round_plainly(&w);
    residual(&w);
    memcpy(code, w.code, n / B);
    memcpy(element, w.element, n);
    for (int i = 0; i < cols; i++)
        plain[i] = column_error(&w, i);
    for (size_t i = 0; error && i < n; i++)
        error[i] = (float)((double)in[i] - w.q[i]);
    compensate(&w);
    residual(&w);
    for (int i = 0; i < SWEEPS; i++)
        sweep(&w);
    residual(&w);
    for (int i = 0; i < cols; i++) {
        size_t at = (size_t)i * k;
        if (!(column_error(&w, i) < plain[i]))
            continue;
        memcpy(code + at / B, w.code + at / B, k / B);
        memcpy(element + at, w.element + at, k);
        for (size_t j = at; error && j < at + k; j++)
            error[j] = (float)((double)in[j] - w.q[j]);
    }
    // A block of zeros that stayed zeros has code 0, as without compensation.
    for (size_t at = 0; at < n; at += B) {
        bool zero = all_zero(in + at);
        for (int i = 0; zero && i < B; i++)
            zero = element[at + (size_t)i] == 0;
        if (zero)
            code[at / B] = 0;
    }
out:
    free(plain);
    free(w.q);
    free(w.g);
    free(w.e);
    free(w.code);
    free(w.element);
    return rc;
}
