// SPDX-License-Identifier: Apache-2.0
// Matrix products of the reference, in pieces of the result's columns.
#pragma once

// Columns of a piece: a tenth of a second of one core, with the slowest of OpenBLAS' kernels.
int mr_cpu_columns(int rows, int n_in);

// out[rows][n_out], its rows `stride` elements apart, = in[rows][n_in] * weights[n_out][n_in],
// transposed.
void mr_cpu_multiply(float *out, int stride, const float *in, const float *weights, int rows,
                     int n_out, int n_in);
