// SPDX-License-Identifier: Apache-2.0
// OCP MXFP4 (E2M1 elements) for weights: quantiser and decoder.
#pragma once

#include <stdint.h>

// v[32] -> 4-bit codes (sign, 2-bit exponent, 1-bit mantissa), one a byte. Returns the E8M0 scale
// code: 0 for an all-zero block, 255 if a value is Inf or NaN, else the code with the least squared
// error among the OCP rule's (largest exponent - 2) and its two neighbours, at least 1. Elements
// are rounded to nearest even and clamped to +-6, or to what is finite.
uint8_t mr_mxfp4_quantise(const float v[32], uint8_t code[32]);

// Magnitude code of v at this scale, a power of two: the nearest of those whose value is a finite
// fp32 number. With the largest scales 6, or 4 and 6, are none.
uint8_t mr_mxfp4_element(double v, double scale);
