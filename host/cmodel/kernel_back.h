// SPDX-License-Identifier: Apache-2.0
// The functions of the backward pass (cmodel/backward.h) over arrays, as kernel_lanes.h has those
// of num.h: bit for bit, without branches. MR_BACK_KERNELS makes them functions.
#pragma once

#include "cmodel/backward.h"
#include "cmodel/kernel_lanes.h"

MR_LANES bool mr_lanes_grad_end(const int64_t *acc, uint32_t limit, int n, int32_t *out,
                                uint32_t *peak)
{
    uint32_t most = *peak;
    unsigned flags = 0;
    for (int i = 0; i < n; i++) {
        struct mr_grad_sum sum = {acc[i], 0};
        out[i] = mr_grad_end(&sum, limit, &most);
        flags |= sum.flags;
    }
    *peak = most;
    return flags != 0;
}

// ---- derivatives of functions -------------------------------------------------------------------

MR_LANES void mr_lanes_slopes(const float x[MR_BLOCK], unsigned function, int16_t slope[MR_BLOCK])
{
    const uint32_t end = mr_lanes_function_end(function);
    // Of relu a number that counts as zero has the slope of negative ones.
    const uint32_t least = function == MR_FUNCTION_RELU ? 0x00800000u : 0;
    const int32_t page = (int32_t)mr_function_page(function);
    int32_t n[MR_BLOCK], at[MR_BLOCK], value[MR_BLOCK], step[MR_BLOCK];
    for (int i = 0; i < MR_BLOCK; i++) {
        uint32_t size = mr_bits(mr_lane_in(x[i])) & 0x7FFFFFFFu;
        n[i] = (int32_t)(mr_float(size < end ? size : 0) * 0x1p20F);
        at[i] = page + (n[i] >> 14);
    }
    mr_lanes_look_up(mr_table_slope_value, at, MR_BLOCK, value);
    mr_lanes_look_up(mr_table_slope_step, at, MR_BLOCK, step);
    for (int i = 0; i < MR_BLOCK; i++) {
        uint32_t u = mr_bits(x[i]), size = u & 0x7FFFFFFFu;
        int32_t q = (value[i] + ((step[i] * (n[i] & 0x3FFF)) >> 14) + 32) >> 6;
        q = size < end ? q : 0;
        q = u >> 31 || size < least ? q : (1 << 14) - q;
        slope[i] = (int16_t)(size > 0x7F800000u ? MR_SLOPE_NAN : q);
    }
}

MR_LANES void mr_lanes_slope_times(float y[MR_BLOCK], const int16_t slope[MR_BLOCK])
{
    for (int i = 0; i < MR_BLOCK; i++) {
        float by = (float)slope[i] * 0x1p-14F;
        y[i] = mr_lane_mul(y[i], mr_float(slope[i] == MR_SLOPE_NAN ? MR_QNAN_BITS : mr_bits(by)));
    }
}

// ---- LayerNorm ---------------------------------------------------------------------------------

MR_LANES float mr_lane_normal(float x, float mean, float r)
{
    return mr_lane_mul(mr_lane_sub(x, mean), r);
}

MR_LANES unsigned mr_lanes_top(const float *x, int n)
{
    unsigned top = mr_lanes_most(x, n) >> 23;
    return top > 1 ? top : 1;
}

MR_LANES void mr_lanes_norm_back(const struct mr_ln_const *c, const float *x, const float *dy,
                                 const float *gain, int count, float *dx)
{
    float mean = 0, r = 0;
    unsigned ey = mr_lanes_top(dy, c->n), eg = mr_lanes_top(gain, c->n);
    bool finite = mr_lanes_normal(c, x, count, &mean, &r) && ey < 255 && eg < 255;
    int k = (int)ey + (int)eg - 275;
    double unit = mr_lane_power(-k);
    int64_t a_sum = 0, b_sum = 0; // a and h have 24 and 26 bits
    uint32_t most_dn = 0, most_xh = 0;
    for (int i = 0; i < c->n; i++) {
        float dn = mr_lane_mul(dy[i], gain[i]), xh = mr_lane_normal(x[i], mean, r);
        int32_t a = mr_lane_nearest((double)dn * unit), h = mr_lane_nearest((double)xh * 0x1p16);
        uint32_t size_dn = mr_bits(dn) & 0x7FFFFFFFu, size_xh = mr_bits(xh) & 0x7FFFFFFFu;
        a_sum += a;
        b_sum = (int64_t)((uint64_t)b_sum + (uint64_t)((int64_t)a * h));
        most_dn = size_dn > most_dn ? size_dn : most_dn;
        most_xh = size_xh > most_xh ? size_xh : most_xh;
    }
    if (!finite || most_dn >> 23 == 255 || most_xh >> 23 >= MR_NORMAL_MOST) {
        mr_norm_back(c, x, dy, gain, count, dx);
        return;
    }
    float ma = mr_fscale(mr_fmul(mr_acc_to_f32(a_sum, 0), c->inv_n), k);
    float mb = mr_fscale(mr_fmul(mr_acc_to_f32(b_sum, 0), c->inv_n), k - 16);
    for (int i = 0; i < c->n; i++) {
        float dn = mr_lane_mul(dy[i], gain[i]), xh = mr_lane_normal(x[i], mean, r);
        dx[i] = mr_lane_mul(r, mr_lane_sub(mr_lane_sub(dn, ma), mr_lane_mul(xh, mb)));
    }
    for (int i = c->n; i < count; i++)
        dx[i] = 0.0f;
}

MR_LANES void mr_lanes_norm_gain(const struct mr_ln_const *c, const float *x, const float *dy,
                                 int count, float *out)
{
    float mean, r;
    if (!mr_lanes_normal(c, x, count, &mean, &r)) {
        mr_norm_gain(c, x, dy, count, out);
        return;
    }
    for (int i = 0; i < c->n; i++)
        out[i] = mr_lane_mul(dy[i], mr_lane_normal(x[i], mean, r));
    for (int i = c->n; i < count; i++)
        out[i] = 0.0f;
}

// ---- attention ---------------------------------------------------------------------------------

// The integers of rule 9 in row->p; their sum, or -1 where a score is NaN.
MR_LANES int64_t mr_lanes_row_shares(const struct mr_softmax_row *row)
{
    int n = row->last - row->first + 1;
    for (int i = 0; i < n; i++)
        row->scaled[i] = mr_lane_mul(row->scores[row->first + i], row->scale);
    return mr_lanes_shares(row->scaled, n, row->p);
}

// Zeros where the row does not see.
MR_LANES void mr_lanes_unseen(const struct mr_softmax_row *row, int count, float *x)
{
    memset(x, 0, (size_t)row->first * sizeof *x);
    for (int i = row->last + 1; i < count; i++)
        x[i] = 0.0f;
}

MR_LANES void mr_lanes_softmax(const struct mr_softmax_row *row, int count, float *p)
{
    int64_t sum = mr_lanes_row_shares(row);
    float by = mr_recip(mr_acc_to_f32(sum, 0)); // NaN for -1, and so is each product
    mr_lanes_unseen(row, count, p);
    for (int i = row->first; i <= row->last; i++)
        p[i] = mr_lane_mul((float)row->p[i - row->first], by);
}

MR_LANES void mr_lanes_softmax_back(const struct mr_softmax_row *row, const float *dp,
                                    float grad_scale, int count, float *ds)
{
    int n = row->last - row->first + 1;
    unsigned top = mr_lanes_top(dp + row->first, n);
    int64_t sum = mr_lanes_row_shares(row), weighed = 0;
    if (sum < 0 || top == 255) {
        mr_softmax_back(row, dp, grad_scale, count, ds);
        return;
    }
    float by = mr_recip(mr_acc_to_f32(sum, 0));
    double unit = mr_lane_power(149 - (int)top);
    for (int i = 0; i < n; i++)
        weighed +=
            (int64_t)row->p[i] * mr_lane_nearest((double)mr_lane_in(dp[row->first + i]) * unit);
    float d = mr_fscale(mr_fmul(mr_acc_to_f32(weighed, 0), by), (int)top - 149);
    for (int i = row->first; i <= row->last; i++) {
        float p = mr_lane_mul((float)row->p[i - row->first], by);
        ds[i] = mr_lane_mul(mr_lane_mul(p, mr_lane_sub(dp[i], d)), grad_scale);
    }
    mr_lanes_unseen(row, count, ds);
}

// ---- turned blocks -----------------------------------------------------------------------------

// Rows behind the last are zeros.
MR_LANES void mr_lanes_quantise_turned(const float *y, size_t stride, int rows,
                                       int8_t q[MR_BLOCK][MR_BLOCK], uint8_t code[MR_BLOCK])
{
    uint32_t most[MR_BLOCK] = {0};
    float f[MR_BLOCK], g[MR_BLOCK];
    int8_t turned[MR_BLOCK][MR_BLOCK] = {{0}};
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < MR_BLOCK; c++) {
            uint32_t size = mr_bits(y[(size_t)i * stride + (size_t)c]) & 0x7FFFFFFFu;
            most[c] = size > most[c] ? size : most[c];
        }
    for (int c = 0; c < MR_BLOCK; c++) {
        int top = (int)(most[c] >> 23), k = 133 - top, half = k / 2;
        code[c] = (uint8_t)top;
        f[c] = mr_float((uint32_t)(half + 127) << 23);
        g[c] = mr_float((uint32_t)(k - half + 127) << 23);
    }
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < MR_BLOCK; c++) {
            int32_t r = mr_lane_element(y[(size_t)i * stride + (size_t)c], f[c], g[c]);
            turned[i][c] = (int8_t)(most[c] < 0x7F800000u ? r : 0);
        }
    for (int c = 0; c < MR_BLOCK; c++)
        for (int i = 0; i < MR_BLOCK; i++)
            q[c][i] = turned[i][c];
}

// The functions of an instruction set, as the members of struct mr_back_kernels want them.
#define MR_BACK_KERNELS(TARGET)                                                                    \
    TARGET static bool grad_end(const int64_t *acc, uint32_t limit, int n, int32_t *out,           \
                                uint32_t *peak)                                                    \
    {                                                                                              \
        return mr_lanes_grad_end(acc, limit, n, out, peak);                                        \
    }                                                                                              \
    TARGET static void slopes(const float x[MR_BLOCK], unsigned which, int16_t slope[MR_BLOCK])    \
    {                                                                                              \
        mr_lanes_slopes(x, which, slope);                                                          \
    }                                                                                              \
    TARGET static void slope_times(float y[MR_BLOCK], const int16_t slope[MR_BLOCK])               \
    {                                                                                              \
        mr_lanes_slope_times(y, slope);                                                            \
    }                                                                                              \
    TARGET static void norm_back(const struct mr_ln_const *c, const float *x, const float *dy,     \
                                 const float *gain, int count, float *dx)                          \
    {                                                                                              \
        mr_lanes_norm_back(c, x, dy, gain, count, dx);                                             \
    }                                                                                              \
    TARGET static void norm_gain(const struct mr_ln_const *c, const float *x, const float *dy,     \
                                 int count, float *out)                                            \
    {                                                                                              \
        mr_lanes_norm_gain(c, x, dy, count, out);                                                  \
    }                                                                                              \
    TARGET static void softmax(const struct mr_softmax_row *row, int count, float *p)              \
    {                                                                                              \
        mr_lanes_softmax(row, count, p);                                                           \
    }                                                                                              \
    TARGET static void softmax_back(const struct mr_softmax_row *row, const float *dp,             \
                                    float grad_scale, int count, float *ds)                        \
    {                                                                                              \
        mr_lanes_softmax_back(row, dp, grad_scale, count, ds);                                     \
    }                                                                                              \
    TARGET static void quantise_turned(const float *y, size_t stride, int rows,                    \
                                       int8_t q[MR_BLOCK][MR_BLOCK], uint8_t code[MR_BLOCK])       \
    {                                                                                              \
        mr_lanes_quantise_turned(y, stride, rows, q, code);                                        \
    }                                                                                              \
    static const struct mr_back_kernels back = {grad_end,  slopes,  slope_times,  norm_back,       \
                                                norm_gain, softmax, softmax_back, quantise_turned}
