// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_math.h"

#include "common/blas.h"

#define PIECE 0x1p27 // multiply-accumulates

int mr_cpu_columns(int rows, int n_in)
{
    double n = PIECE / rows / n_in;
    return n >= 0x1p20 ? 1 << 20 : n >= 1 ? (int)n : 1;
}

void mr_cpu_multiply(float *out, int stride, const float *in, const float *weights, int rows,
                     int n_out, int n_in)
{
    if (rows == 1) { // which OpenBLAS 0.3.21 does in a third of its sgemm's time
        mr_blas.sgemv(CblasRowMajor, CblasNoTrans, n_out, n_in, 1.0F, weights, n_in, in, 1, 0.0F,
                      out, 1);
        return;
    }
    mr_blas.sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, n_out, n_in, 1.0F, in, n_in,
                  weights, n_in, 0.0F, out, stride);
}
