// SPDX-License-Identifier: Apache-2.0
// Own series instead of libm, whose last bits differ between hosts.
#include "store/schedule.h"

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

// (1 + cos(pi x)) / 2 = 1 - sin(pi x / 2)^2 for 0 <= x <= 1: from 1 to 0.
static double half_cosine(double x)
{
    const double half_pi = 0x1.921fb54442d18p+0;
    double s = sine(half_pi * (x <= 0.5 ? x : 1 - x));
    return x <= 0.5 ? 1 - s * s : s * s;
}

double mr_schedule_rate(const struct mr_schedule *s, int step)
{
    if (step < s->warmup)
        return s->rate * ((double)step / (double)s->warmup);
    if (s->kind == MR_SCHEDULE_CONSTANT || s->steps <= s->warmup)
        return s->rate;
    int done = step < s->steps ? step - s->warmup : s->steps - s->warmup;
    double x = (double)done / (double)(s->steps - s->warmup);
    return s->rate * (s->least + (1 - s->least) * half_cosine(x));
}
