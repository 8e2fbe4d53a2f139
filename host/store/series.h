// SPDX-License-Identifier: Apache-2.0
// Functions of double from +, -, *, / and square roots alone, which round alike on every host; the
// last bits of libm's differ.
#pragma once

// (1 + cos(pi x)) / 2 for 0 <= x <= 1: from 1 to 0.
double mr_half_cosine(double x);

// b^n, n >= 0, by squaring, from the highest bit of n on.
double mr_whole_power(double b, int n);

// b^y for b >= 0 and 0 <= y < 2^31, within 1e-14; 0^0 is 1.
double mr_power(double b, double y);
