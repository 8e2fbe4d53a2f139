// SPDX-License-Identifier: Apache-2.0
// The element-wise operations in fp32, as Hugging Face's modeling_gptj defines them.
#pragma once

#include <stddef.h>

// out[n] = (in - mean) / sqrt(variance + epsilon) * gain + bias. `out` may be `in`.
void mr_cpu_layer_norm(float *out, const float *in, size_t n, const float *gain, const float *bias,
                       float epsilon);

// x[n] in place: MR_FUNCTION_GELU_NEW (by tanh), _GELU (by erf) or _RELU of mr_device.h.
void mr_cpu_function(unsigned function, float *x, size_t n);

// x[n] in place: exp(scale * (x - max)) / sum, n >= 1, scale > 0.
void mr_cpu_softmax(float *x, size_t n, float scale);

// x[rows][n] += bias[n].
void mr_cpu_add_bias(float *x, size_t rows, size_t n, const float *bias);

// frequencies[rotary_dim / 2] = 10000^(-2i / rotary_dim), rounded to fp32 as PyTorch rounds it.
void mr_cpu_rotary_frequencies(float *frequencies, int rotary_dim);

// sincos[rotary_dim / 2][2]: sine and cosine of position * frequency, an fp32 product.
void mr_cpu_rotary_angles(float *sincos, const float *frequencies, int rotary_dim, int position);

// Rotates the first rotary_dim elements of one head in place, neighbours (0, 1), (2, 3), ... being
// the pairs.
void mr_cpu_rotate(float *head, const float *sincos, int rotary_dim);

// Matrix products of the reference, in pieces of the result's columns.

// Columns of a piece: a tenth of a second of one core, with the slowest of OpenBLAS' kernels.
int mr_cpu_columns(int rows, int n_in);

// out[rows][n_out], its rows `stride` elements apart, = in[rows][n_in] * weights[n_out][n_in],
// transposed.
void mr_cpu_multiply(float *out, int stride, const float *in, const float *weights, int rows,
                     int n_out, int n_in);
