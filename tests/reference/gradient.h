// SPDX-License-Identifier: Apache-2.0
// Derivatives of the element-wise operations of host/cpu/cpu_math.h in fp32.
#ifndef MILLRACE_TRAIN_GRADIENT_H
#define MILLRACE_TRAIN_GRADIENT_H

#include <stddef.h>

// LayerNorm of x[n] with the gradient dy[n] of its output: dx[n] is added to, and so are the sums
// over rows dgain[n] and dbias[n], in double.
void mr_gradient_layer_norm(float *dx, double *dgain, double *dbias, const float *dy,
                            const float *x, size_t n, const float *gain, float epsilon);

// dy[n] in place: times the derivative of a function, MR_FUNCTION_*, at x[n].
void mr_gradient_function(unsigned function, float *dy, const float *x, size_t n);

// dp[n] in place: the gradient of a row of probabilities p[n] becomes that of its scores, which the
// softmax multiplied by `scale`.
void mr_gradient_softmax(float *dp, const float *p, size_t n, float scale);

// sums[n] += the rows of dy[rows][n].
void mr_gradient_bias(double *sums, const float *dy, size_t rows, size_t n);

#endif
