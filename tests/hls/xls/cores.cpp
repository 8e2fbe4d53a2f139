// SPDX-License-Identifier: Apache-2.0
// What becomes a pipeline of its own: the functions of datapath.h, on scalars. generate.py makes
// Verilog of each; tests/hls/tb.cpp compares it with these.
#include "tests/hls/xls/cores.h"

#include "hls/datapath.h"

uint32_t core_add(uint32_t a, uint32_t b)
{
    return millrace::add(a, b);
}

uint32_t core_multiply(uint32_t a, uint32_t b)
{
    return millrace::multiply(a, b);
}

uint32_t core_divide(uint32_t a, uint32_t b)
{
    return millrace::divide(a, b);
}

uint32_t core_root(uint32_t a)
{
    return millrace::root(a);
}

uint32_t core_widen(int32_t gradient, int16_t unit)
{
    return millrace::widen(gradient, unit);
}

uint8_t core_quantise(uint32_t a, uint8_t code)
{
    return millrace::quantise(a, code);
}
