// SPDX-License-Identifier: Apache-2.0
// Own series instead of libm, whose last bits differ between hosts; double arithmetic with
// + - * / only (and -ffp-contract=off) is the same everywhere.
#include "engine/rotary.h"

#include <math.h>

// 2^x for -32 <= x <= 0 by the exponential series; relative error below 1e-15.
static double exp2_series(double x)
{
    int n = (int)x; // towards zero: n <= 0, x - n in (-1, 0]
    double y = (x - n) * 0.69314718055994530942, term = 1, sum = 1;
    for (int k = 1; k < 24; k++) {
        term = term * y / k;
        sum += term;
    }
    return ldexp(sum, n);
}

// sin and cos for 0 <= x < 2^13: reduction by pi/2 in two parts, then Taylor series.
static void sin_cos(double x, double *s, double *c)
{
    const double pio2_hi = 0x1.921fb54400000p+0, pio2_lo = 0x1.0b4611a626331p-34;
    int q = (int)(x / 1.57079632679489661923 + 0.5);
    double r = (x - q * pio2_hi) - q * pio2_lo; // q * pio2_hi is exact: 33 + 13 bits
    double r2 = r * r, ts = r, tc = 1, ss = r, sc = 1;
    for (int k = 1; k < 10; k++) {
        tc = -tc * r2 / ((2 * k - 1) * (2 * k));
        ts = -ts * r2 / ((2 * k) * (2 * k + 1));
        sc += tc;
        ss += ts;
    }
    *s = q & 1 ? sc : ss;
    *c = q & 1 ? ss : sc;
    if (q & 2)
        *s = -*s;
    if ((q + 1) & 2)
        *c = -*c;
}

void mr_rotary_row(int pos, int rotary_dim, int floats, float *out)
{
    for (int i = 0; 2 * i + 1 < floats; i++) {
        double s = 0, c = 0;
        if (2 * i < rotary_dim) {
            float freq = (float)exp2_series(-2.0 * i / rotary_dim * 13.287712379549449391);
            float angle = (float)((double)pos * (double)freq);
            sin_cos((double)angle, &s, &c);
        }
        out[2 * i] = (float)c;
        out[2 * i + 1] = (float)s;
    }
}
