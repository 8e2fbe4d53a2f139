// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_math.h"

#include <math.h>

#include "mr_device.h"

void mr_cpu_layer_norm(float *out, const float *in, size_t n, const float *gain, const float *bias,
                       float epsilon)
{
    // Sums in double: a reference should not add an error of its own that grows with the width.
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += in[i];
    double mean = sum / (double)n;
    double squares = 0.0;
    for (size_t i = 0; i < n; i++)
        squares += ((double)in[i] - mean) * ((double)in[i] - mean);
    double scale = 1.0 / sqrt(squares / (double)n + (double)epsilon);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(((double)in[i] - mean) * scale) * gain[i] + bias[i];
}

static void gelu_new(float *x, size_t n)
{
    const float sqrt_2_over_pi = 0.79788456F;
    for (size_t i = 0; i < n; i++) {
        float inner = sqrt_2_over_pi * (x[i] + 0.044715F * x[i] * x[i] * x[i]);
        x[i] = 0.5F * x[i] * (1.0F + tanhf(inner));
    }
}

static void gelu(float *x, size_t n)
{
    const float sqrt_half = 0.70710678F;
    for (size_t i = 0; i < n; i++) // 1 + erf(y) is erfc(-y), without the cancellation
        x[i] *= 0.5F * erfcf(-sqrt_half * x[i]);
}

static void relu(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] < 0.0F ? 0.0F : x[i]; // a NaN stays one
}

void mr_cpu_function(unsigned function, float *x, size_t n)
{
    (function == MR_FUNCTION_GELU ? gelu : function == MR_FUNCTION_RELU ? relu : gelu_new)(x, n);
}

void mr_cpu_softmax(float *x, size_t n, float scale)
{
    float max = x[0];
    for (size_t i = 1; i < n; i++)
        max = x[i] > max ? x[i] : max;
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        x[i] = expf(scale * (x[i] - max));
        sum += x[i];
    }
    float inverse = (float)(1.0 / sum);
    for (size_t i = 0; i < n; i++)
        x[i] *= inverse;
}

void mr_cpu_add_bias(float *x, size_t rows, size_t n, const float *bias)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < n; i++)
            x[r * n + i] += bias[i];
    }
}

void mr_cpu_rotary_frequencies(float *frequencies, int rotary_dim)
{
    for (int i = 0; i < rotary_dim / 2; i++) {
        float exponent = (float)(2 * i) / (float)rotary_dim;
        frequencies[i] = 1.0F / (float)pow(10000.0, (double)exponent);
    }
}

void mr_cpu_rotary_angles(float *sincos, const float *frequencies, int rotary_dim, int position)
{
    for (int i = 0; i < rotary_dim / 2; i++) {
        // The product is rounded to fp32 first: at position 2047 that moves the angle by 1e-4, and
        // the model was trained with it.
        float angle = (float)position * frequencies[i];
        sincos[2 * i] = (float)sin((double)angle);
        sincos[2 * i + 1] = (float)cos((double)angle);
    }
}

void mr_cpu_rotate(float *head, const float *sincos, int rotary_dim)
{
    for (int i = 0; i < rotary_dim / 2; i++) {
        float *even = &head[2 * i], *odd = &head[2 * i + 1];
        float sine = sincos[2 * i], cosine = sincos[2 * i + 1];
        float rotated = *even * cosine - *odd * sine;
        *odd = *odd * cosine + *even * sine;
        *even = rotated;
    }
}
