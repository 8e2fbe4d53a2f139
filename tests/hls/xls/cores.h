// SPDX-License-Identifier: Apache-2.0
// The functions that become pipelines; datapath.h says what they do.
#pragma once

#include <stdint.h>

extern "C" {
uint32_t core_add(uint32_t a, uint32_t b);
uint32_t core_multiply(uint32_t a, uint32_t b);
uint32_t core_divide(uint32_t a, uint32_t b);
uint32_t core_root(uint32_t a);
uint32_t core_widen(int32_t gradient, int16_t unit); // units are -400 .. 400
uint8_t core_quantise(uint32_t a, uint8_t code);
}
