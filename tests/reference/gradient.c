// SPDX-License-Identifier: Apache-2.0
// Sums in double: a reference should not add an error of its own that grows with their length.
#include "reference/gradient.h"

#include <math.h>

#include "mr_device.h"

void mr_gradient_layer_norm(float *dx, double *dgain, double *dbias, const float *dy,
                            const float *x, size_t n, const float *gain, float epsilon)
{
    double sum = 0.0, squares = 0.0, all = 0.0, along = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i];
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    double scale = 1.0 / sqrt(squares / (double)n + (double)epsilon);
    for (size_t i = 0; i < n; i++) {
        double normal = ((double)x[i] - mean) * scale, dn = (double)dy[i] * (double)gain[i];
        dgain[i] += (double)dy[i] * normal;
        dbias[i] += (double)dy[i];
        all += dn;
        along += dn * normal;
    }
    // What moves the mean, or the length, of the row changes nothing.
    for (size_t i = 0; i < n; i++) {
        double normal = ((double)x[i] - mean) * scale, dn = (double)dy[i] * (double)gain[i];
        dx[i] += (float)(scale * (dn - all / (double)n - normal * (along / (double)n)));
    }
}

static void gelu_new(float *dy, const float *x, size_t n)
{
    const float sqrt_2_over_pi = 0.79788456F;
    for (size_t i = 0; i < n; i++) {
        float square = x[i] * x[i];
        float t = tanhf(sqrt_2_over_pi * (x[i] + 0.044715F * square * x[i]));
        float inner = sqrt_2_over_pi * (1.0F + 3.0F * 0.044715F * square);
        dy[i] *= 0.5F * (1.0F + t) + 0.5F * x[i] * (1.0F - t * t) * inner;
    }
}

static void gelu(float *dy, const float *x, size_t n)
{
    const float sqrt_half = 0.70710678F, density = 0.39894228F; // of 0 in a normal distribution
    for (size_t i = 0; i < n; i++)
        dy[i] *= 0.5F * erfcf(-sqrt_half * x[i]) + x[i] * density * expf(-0.5F * x[i] * x[i]);
}

static void relu(float *dy, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dy[i] = x[i] > 0 ? dy[i] : 0;
}

void mr_gradient_function(unsigned function, float *dy, const float *x, size_t n)
{
    (function == MR_FUNCTION_GELU ? gelu : function == MR_FUNCTION_RELU ? relu : gelu_new)(dy, x, n);
}

void mr_gradient_softmax(float *dp, const float *p, size_t n, float scale)
{
    double mean = 0.0;
    for (size_t i = 0; i < n; i++)
        mean += (double)p[i] * (double)dp[i];
    for (size_t i = 0; i < n; i++)
        dp[i] = p[i] * (dp[i] - (float)mean) * scale;
}

void mr_gradient_bias(double *sums, const float *dy, size_t rows, size_t n)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i++)
            sums[i] += (double)dy[r * n + i];
}
