// SPDX-License-Identifier: Apache-2.0
// Rounding of weights to MX blocks with the error of each weight spread over those that are not yet
// rounded (GPTQ: Frantar et al. 2022, arXiv 2210.17323), then improved by coordinate descent.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "pack/layout.h"

// What the rounding of all outputs of a matrix shares: E[x x^T] of its input and factors of its
// inverse.
struct mr_compensator {
    int k;         // inputs, a multiple of 32
    double *h;     // [k][k], with 1 % of the mean of its diagonal added to the diagonal
    double *u;     // [k][k] upper triangle, u^T u = h^-1
    double *block; // [k/32][32][32]: the same of the diagonal blocks of h
};

// h[k][k]: symmetric, positive semidefinite up to rounding. The addition stands for what the
// moments do not show: text unlike the calibration's, and the rounding of activations. The
// compensator owns h from here on, also on failure.
int mr_compensator_make(struct mr_compensator *c, int k, double *h, struct mr_error *err);
void mr_compensator_free(struct mr_compensator *c);

// Rounds w[cols][k], finite. code[cols][k/32] are E8M0 scales (0 only for a block whose weights
// were all zero; then its elements are zero), element[cols][k] int8 values in -127..127 or E2M1
// codes. The error d h d^T of a column, d = w - rounded, is never above that of
// mr_mxint8_quantise() or mr_mxfp4_quantise(). error (may be NULL) [cols][k] gets d.
int mr_compensate(const struct mr_compensator *c, enum mr_format format, int cols, const float *w,
                  uint8_t *code, int8_t *element, float *error, struct mr_error *err);
