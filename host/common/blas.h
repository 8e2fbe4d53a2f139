// SPDX-License-Identifier: Apache-2.0
// OpenBLAS, loaded when something first needs it. Linked in, its constructor would start a thread a
// processor in every program, and each of these asks for 128 MiB again and again until it gets
// them: under `ulimit -v` even `millrace --version` would wait for ever in exit(), which joins
// them. Only `cpu:` and --calibrate use it.
#pragma once

#include <cblas.h>

#include "common/error.h"

// The entries that are used, with the types of cblas.h. NULL before mr_blas_load(). Small products
// of fp32 take the caller's thread alone: OpenBLAS 0.3.21's threads wait in sched_yield(), so where
// other processes want the processors each wait lasts as long as they run, thousands of times
// longer than the product.
struct mr_blas {
    __typeof__(cblas_sgemm) *sgemm;
    __typeof__(cblas_sgemv) *sgemv;
    __typeof__(cblas_ssyrk) *ssyrk;
    __typeof__(cblas_dgemm) *dgemm;
    void (*dpotrf)(const char *uplo, const int *n, double *a, const int *lda, int *info);
    void (*dtrtri)(const char *uplo, const char *diag, const int *n, double *a, const int *lda,
                   int *info);
};
extern struct mr_blas mr_blas;

// Loads OpenBLAS, once; may be called from several threads. MR_ERR_MEMORY when the limit of address
// space leaves no room for its threads, MR_ERR_IO when it is not installed.
int mr_blas_load(struct mr_error *err);
