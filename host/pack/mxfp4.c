// SPDX-License-Identifier: Apache-2.0
#include "pack/mxfp4.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "cmodel/num.h"

// Nearest E2M1 magnitude code of a >= 0, at most 7; ties go to the even mantissa.
static uint8_t nearest(double a)
{
    static const double edge[7] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0}; // between codes i, i+1
    uint8_t i = 0;
    while (i < 7 && (a > edge[i] || (a == edge[i] && (i & 1))))
        i++;
    return i;
}

uint8_t mr_mxfp4_element(double v, double scale)
{
    uint8_t c = nearest(fabs(v) / scale);
    while (mr_mxfp4_twice[c] * 0.5 * scale > (double)FLT_MAX)
        c--;
    return c;
}

static double encode(const float v[32], int scale_code, uint8_t code[32])
{
    double x = ldexp(1.0, scale_code - 127), err = 0;
    for (int i = 0; i < 32; i++) {
        double a = fabs((double)mr_in(v[i])) / x;
        uint8_t c = mr_mxfp4_element((double)mr_in(v[i]), x);
        double e = (a - mr_mxfp4_twice[c] / 2.0) * x;
        err += e * e;
        code[i] = (uint8_t)(c | (signbit(v[i]) && c ? 8 : 0));
    }
    return err;
}

uint8_t mr_mxfp4_quantise(const float v[32], uint8_t code[32])
{
    unsigned top = 0;
    for (int i = 0; i < 32; i++)
        top = mr_expo(v[i]) > top ? mr_expo(v[i]) : top;
    memset(code, 0, 32);
    if (top == 0 || top == 255)
        return (uint8_t)top;
    int best = 0;
    double best_err = INFINITY;
    for (int k = -1; k <= 1; k++) { // lower scale first: ties keep the finer grid
        int c = (int)top - 2 + k;
        c = c < 1 ? 1 : c > 254 ? 254 : c;
        uint8_t trial[32];
        double err = encode(v, c, trial);
        if (err < best_err) {
            best_err = err;
            best = c;
            memcpy(code, trial, 32);
        }
    }
    return (uint8_t)best;
}
