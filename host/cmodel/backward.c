// SPDX-License-Identifier: Apache-2.0
#include "cmodel/backward.h"

#include "mr_tables.h"

// ---- derivatives of functions -------------------------------------------------------------------

int16_t mr_function_slope(unsigned function, float x)
{
    x = mr_in(x);
    if (x != x)
        return MR_SLOPE_NAN;
    if (function == MR_FUNCTION_RELU)
        return x > 0 ? 1 << 14 : 0;
    int32_t q = 0;
    if (fabsf(x) < 5.0f) {
        uint32_t n = (uint32_t)(fabsf(x) * 1048576.0f); // u3.20, floor; the product is exact
        uint32_t i = (n >> 14) + mr_function_page(function), t = n & 0x3FFFu;
        q = (mr_table_slope_value[i] + ((mr_table_slope_step[i] * (int32_t)t) >> 14) + 32) >> 6;
    }
    return (int16_t)(mr_bits(x) >> 31 ? q : (1 << 14) - q);
}

float mr_slope_times(float y, int16_t slope)
{
    return mr_fmul(y, slope == MR_SLOPE_NAN ? mr_qnan() : mr_acc_to_f32(slope, -14));
}

// ---- rows --------------------------------------------------------------------------------------

// RNE(x / 2^k) where that is below 2^62.
static int64_t fixed(float x, int k)
{
    uint32_t u = mr_bits(x), e = mr_expo(x);
    if (e == 0)
        return 0;
    int64_t sig = (int64_t)((u & 0x7FFFFFu) | 0x800000u);
    int shift = k - ((int)e - 150);
    if (shift <= 0) {
        sig = (int64_t)((uint64_t)sig << -shift);
    } else if (shift > 25) {
        sig = 0;
    } else {
        int64_t half = (int64_t)1 << (shift - 1), rest = sig & (2 * half - 1);
        sig >>= shift;
        sig += rest > half || (rest == half && (sig & 1));
    }
    return u >> 31 ? -sig : sig;
}

// The largest exponent field, at least 1; 255 with infinity or NaN.
static unsigned top_of(const float *x, int from, int to)
{
    unsigned top = 1;
    for (int i = from; i < to; i++)
        top = mr_expo(x[i]) > top ? mr_expo(x[i]) : top;
    return top;
}

static void fill(float *x, int from, int to, float v)
{
    for (int i = from; i < to; i++)
        x[i] = v;
}

// Mean and 1 / deviation of rule 5; false where the row is not finite.
static bool normal(const struct mr_ln_const *c, const float *x, int count, float *mean, float *r)
{
    unsigned top = top_of(x, 0, count);
    int64_t s1 = 0, s2 = 0;
    for (int i = 0; i < count && top < 255; i++) {
        int64_t xi = fixed(x[i], (int)top - 149);
        s1 += xi;
        s2 += xi * xi;
    }
    if (top < 255)
        mr_layernorm_from(c, s1, s2, top, mean, r);
    return top < 255;
}

void mr_norm_back(const struct mr_ln_const *c, const float *x, const float *dy, const float *gain,
                  int count, float *dx)
{
    float mean, r;
    unsigned ey = top_of(dy, 0, c->n), eg = top_of(gain, 0, c->n);
    bool finite = normal(c, x, count, &mean, &r) && ey < 255 && eg < 255;
    int k = (int)ey + (int)eg - 275;
    int64_t a_sum = 0;
    uint64_t b_sum = 0; // wraps only where the row is longer than c->n says
    for (int i = 0; i < c->n && finite; i++) {
        float dn = mr_fmul(dy[i], gain[i]), xh = mr_fmul(mr_fsub(x[i], mean), r);
        finite = mr_expo(dn) < 255 && mr_expo(xh) < MR_NORMAL_MOST;
        if (finite) {
            int64_t a = fixed(dn, k);
            a_sum += a;
            b_sum += (uint64_t)a * (uint64_t)fixed(xh, -16);
        }
    }
    fill(dx, c->n, count, 0.0f);
    if (!finite) {
        fill(dx, 0, c->n, mr_qnan());
        return;
    }
    float ma = mr_fscale(mr_fmul(mr_acc_to_f32(a_sum, 0), c->inv_n), k);
    float mb = mr_fscale(mr_fmul(mr_acc_to_f32((int64_t)b_sum, 0), c->inv_n), k - 16);
    for (int i = 0; i < c->n; i++) {
        float dn = mr_fmul(dy[i], gain[i]), xh = mr_fmul(mr_fsub(x[i], mean), r);
        dx[i] = mr_fmul(r, mr_fsub(mr_fsub(dn, ma), mr_fmul(xh, mb)));
    }
}

void mr_norm_gain(const struct mr_ln_const *c, const float *x, const float *dy, int count,
                  float *out)
{
    float mean, r;
    bool finite = normal(c, x, count, &mean, &r);
    for (int i = 0; i < count; i++)
        out[i] = i >= c->n ? 0.0f
                 : finite  ? mr_fmul(dy[i], mr_fmul(mr_fsub(x[i], mean), r))
                           : mr_qnan();
}

// ---- attention ---------------------------------------------------------------------------------

// The integers of rule 9 in row->p; their sum, or -1 where a score is NaN.
static int64_t shares(const struct mr_softmax_row *row)
{
    int n = row->last - row->first + 1;
    int64_t sum = 0;
    float top = 0;
    for (int i = 0; i < n; i++) {
        row->scaled[i] = mr_fmul(row->scores[row->first + i], row->scale);
        top = i == 0 ? row->scaled[i] : mr_fmax(top, row->scaled[i]);
    }
    for (int i = 0; i < n; i++) {
        float d = mr_fsub(top, row->scaled[i]);
        if (d != d)
            return -1;
        row->p[i] = (int32_t)mr_exp2_u16(d);
        sum += row->p[i];
    }
    return sum;
}

void mr_softmax(const struct mr_softmax_row *row, int count, float *p)
{
    int64_t sum = shares(row);
    float by = mr_recip(mr_acc_to_f32(sum, 0)); // NaN for -1
    fill(p, 0, count, 0.0f);
    for (int i = row->first; i <= row->last; i++)
        p[i] = sum < 0 ? mr_qnan() : mr_fmul(mr_acc_to_f32(row->p[i - row->first], 0), by);
}

void mr_softmax_back(const struct mr_softmax_row *row, const float *dp, float grad_scale, int count,
                     float *ds)
{
    int64_t sum = shares(row), weighed = 0;
    float by = mr_recip(mr_acc_to_f32(sum, 0));
    unsigned top = top_of(dp, row->first, row->last + 1);
    bool finite = sum >= 0 && top < 255;
    int unit = (int)top - 149;
    for (int i = row->first; i <= row->last && finite; i++)
        weighed += row->p[i - row->first] * fixed(dp[i], unit);
    float d = mr_fscale(mr_fmul(mr_acc_to_f32(weighed, 0), by), unit);
    for (int i = 0; i < count; i++)
        if (i < row->first || i > row->last)
            ds[i] = 0.0f;
    for (int i = row->first; i <= row->last; i++) {
        float p = mr_fmul(mr_acc_to_f32(row->p[i - row->first], 0), by);
        ds[i] = finite ? mr_fmul(mr_fmul(p, mr_fsub(dp[i], d)), grad_scale) : mr_qnan();
    }
}
