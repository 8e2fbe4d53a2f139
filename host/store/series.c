// SPDX-License-Identifier: Apache-2.0
#include "store/series.h"

#include <math.h>

// sin(x), |x| <= pi / 4.
static double sine(double x)
{
    double x2 = x * x, term = x, sum = x;
    for (int k = 1; k < 10; k++) {
        term = -term * x2 / ((2 * k) * (2 * k + 1));
        sum += term;
    }
    return sum;
}

// 1 - sin(pi x / 2)^2.
double mr_half_cosine(double x)
{
    const double half_pi = 0x1.921fb54442d18p+0;
    double s = sine(half_pi * (x <= 0.5 ? x : 1 - x));
    return x <= 0.5 ? 1 - s * s : s * s;
}

double mr_whole_power(double b, int n)
{
    double y = 1;
    for (int bit = 30; bit >= 0; bit--) {
        y *= y;
        if (n >> bit & 1)
            y *= b;
    }
    return y;
}

// The bits of y behind the point choose among b^(1/2), b^(1/4), ...
double mr_power(double b, double y)
{
    int n = (int)y;
    double power = mr_whole_power(b, n), rest = y - n, root = sqrt(b);
    for (int bit = 0; bit < 60 && rest > 0; bit++, root = sqrt(root)) {
        rest *= 2;
        if (rest >= 1) {
            power *= root;
            rest -= 1;
        }
    }
    return power;
}
