// SPDX-License-Identifier: Apache-2.0
// The arithmetic of an update, as pure functions of integers: fp32 by rule 1 of
// docs/inside/numerics.md, AdamW by rule 14, MXINT8 by rule 2. fp32 numbers travel as their bits,
// so neither a compiler nor a vendor's floating point core can round, fuse or flush otherwise. No
// function has a state, a pointer or a loop without a fixed count: each becomes a pipeline that
// takes new operands in every cycle.
#pragma once

#include <stdint.h>

namespace millrace
{

typedef uint32_t fp32; // the bits of one

static const fp32 SIGN = 0x80000000U, INFINITE = 0x7F800000U, QNAN = 0x7FC00000U;

// Biased exponent field, 0..255.
inline unsigned exponent(fp32 a)
{
    return a >> 23 & 255U;
}

// As the device reads a number: exponent field 0 is a zero of its sign, any NaN the canonical one.
inline fp32 read(fp32 a)
{
    fp32 size = a & ~SIGN;
    return size > INFINITE ? QNAN : size < 0x800000U ? a & SIGN : a;
}

inline uint32_t significand(fp32 a)
{
    return (a & 0x7FFFFFU) | 0x800000U;
}

// A significand of 24 bits with its exponent, `half` and whether there is `more` behind them: to
// nearest, ties to even, then to zero or to infinity.
inline fp32 pack(fp32 sign, int e, uint32_t sig, bool half, bool more)
{
    sig += half && (more || (sig & 1U)) ? 1U : 0U;
    bool carry = sig >> 24 != 0;
    e += carry ? 1 : 0;
    fp32 body = (uint32_t)e << 23 | (carry ? 0U : sig & 0x7FFFFFU);
    return sign | (e <= 0 ? 0U : e >= 255 ? INFINITE : body);
}

// The exact difference or sum has at most 27 bits and one that says whether there is more.
inline fp32 add(fp32 left, fp32 right)
{
    fp32 a = read(left), b = read(right);
    bool swap = (b & ~SIGN) > (a & ~SIGN);
    fp32 x = swap ? b : a, y = swap ? a : b; // |x| >= |y|; a NaN is the largest
    bool minus = ((x ^ y) & SIGN) != 0;
    unsigned apart = exponent(x) - exponent(y);
    uint32_t low = exponent(y) ? significand(y) << 3 : 0U;
    uint32_t cut = apart > 26 ? 0U : low >> apart;
    cut |= (apart > 26 ? low : low & ((1U << apart) - 1U)) != 0 ? 1U : 0U;
    uint32_t high = significand(x) << 3;
    uint32_t sum = minus ? high - cut : high + cut;
    int zeros = sum ? __builtin_clz(sum) - 5 : 0; // -1: a carry
    uint32_t all = zeros < 0 ? sum >> 1 | (sum & 1U) : sum << zeros;
    fp32 usual =
        pack(x & SIGN, (int)exponent(x) - zeros, all >> 3, (all & 4U) != 0, (all & 3U) != 0);
    if (exponent(x) == 255)
        return x == QNAN || (minus && exponent(y) == 255) ? QNAN : x;
    if (exponent(x) == 0)
        return x & y & SIGN;
    return sum == 0 ? 0U : usual;
}

inline fp32 subtract(fp32 a, fp32 b)
{
    return add(a, read(b) ^ SIGN);
}

// 24 by 17 bits, which one multiplier of a DSP slice takes. Who compiles this to Verilog by other
// tools than Vitis has such a slice as a module (tests/hls/xls/).
#ifdef MILLRACE_HAS_PRODUCT
extern "C" uint64_t product(uint32_t a, uint32_t b) __attribute__((const));
#else
inline uint64_t product(uint32_t a, uint32_t b)
{
    return (uint64_t)a * b;
}
#endif

inline fp32 multiply(fp32 left, fp32 right)
{
    fp32 a = read(left), b = read(right), sign = (a ^ b) & SIGN;
    uint32_t by = significand(b);
    uint64_t low = product(significand(a), by & 0x1FFFFU), rest = product(significand(a), by >> 17);
    uint64_t exact = low + (rest << 17);
    bool high = exact >> 47 != 0;
    uint64_t all = high ? exact : exact << 1; // 48 bits
    int e = (int)exponent(a) + (int)exponent(b) - 127 + (high ? 1 : 0);
    fp32 usual =
        pack(sign, e, (uint32_t)(all >> 24), (all >> 23 & 1U) != 0, (all & 0x7FFFFFU) != 0);
    bool infinite = exponent(a) == 255 || exponent(b) == 255;
    bool zero = exponent(a) == 0 || exponent(b) == 0;
    if (a == QNAN || b == QNAN || (infinite && zero))
        return QNAN;
    return infinite ? sign | INFINITE : zero ? sign : usual;
}

// One digit a step: 25 bits of the quotient, and whether there is a remainder.
inline fp32 divide(fp32 left, fp32 right)
{
    fp32 a = read(left), b = read(right), sign = (a ^ b) & SIGN;
    uint32_t below = significand(b), rest = significand(a), quotient = 0;
    bool less = rest < below;
    rest = less ? rest << 1 : rest;
    for (int i = 0; i < 25; i++) {
#pragma HLS UNROLL
        bool fits = rest >= below;
        quotient = quotient << 1 | (fits ? 1U : 0U);
        rest = (fits ? rest - below : rest) << 1;
    }
    int e = (int)exponent(a) - (int)exponent(b) + 127 - (less ? 1 : 0);
    fp32 usual = pack(sign, e, quotient >> 1, (quotient & 1U) != 0, rest != 0);
    bool infinite = exponent(a) == 255, zero = exponent(a) == 0;
    if (a == QNAN || b == QNAN || (infinite && exponent(b) == 255) || (zero && exponent(b) == 0))
        return QNAN;
    if (infinite || exponent(b) == 0)
        return sign | INFINITE;
    return zero || exponent(b) == 255 ? sign : usual;
}

inline fp32 root(fp32 of)
{
    fp32 a = read(of);
    int power = (int)exponent(a) - 127;
    uint64_t square = (uint64_t)significand(a) << ((power & 1) ? 26 : 25);
    uint32_t digits = 0, rest = 0; // 25 bits; 26, and two more in a step
    for (int i = 24; i >= 0; i--) {
#pragma HLS UNROLL
        rest = rest << 2 | (uint32_t)(square >> (2 * i) & 3U);
        uint32_t next = digits << 2 | 1U;
        bool fits = rest >= next;
        rest = fits ? rest - next : rest;
        digits = digits << 1 | (fits ? 1U : 0U);
    }
    fp32 usual = pack(0, (power >> 1) + 127, digits >> 1, (digits & 1U) != 0, rest != 0);
    if (exponent(a) == 0)
        return a;
    if ((a & SIGN) != 0 || a == QNAN)
        return QNAN;
    return exponent(a) == 255 ? a : usual;
}

// A sum of gradients x 2^unit; units are -400 .. 400.
inline fp32 widen(int32_t gradient, int unit)
{
    fp32 sign = gradient < 0 ? SIGN : 0U;
    uint32_t size = gradient < 0 ? 0U - (uint32_t)gradient : (uint32_t)gradient;
    int zeros = size ? __builtin_clz(size) : 0;
    uint32_t all = size << zeros;
    fp32 usual = pack(sign, 158 - zeros + unit, all >> 8, (all & 0x80U) != 0, (all & 0x7FU) != 0);
    return size == 0 ? 0U : usual;
}

// What a step and a tensor have in common (rule 14).
struct factors {
    fp32 scale;         // of the gradient: clips it, and divides it by the targets
    fp32 keep1, add1;   // beta1, 1 - beta1
    fp32 keep2, add2;   // beta2, 1 - beta2
    fp32 root, epsilon; // 1 / sqrt(1 - beta2^t)
    fp32 rate, decay;   // rate / (1 - beta1^t); rate x weight decay, or 0
};

struct element {
    fp32 w, m, v;
};

inline element update(const factors &f, const element &old, int32_t gradient, int unit)
{
    fp32 d = multiply(widen(gradient, unit), f.scale);
    element now;
    now.m = add(multiply(old.m, f.keep1), multiply(d, f.add1));
    now.v = add(multiply(old.v, f.keep2), multiply(multiply(d, d), f.add2));
    fp32 below = add(multiply(root(now.v), f.root), f.epsilon);
    fp32 move = multiply(divide(now.m, below), f.rate);
    now.w = subtract(old.w, add(move, multiply(old.w, f.decay)));
    return now;
}

// An element of a block of MXINT8 with this scale code: to nearest, ties to even, at most 127.
inline uint8_t quantise(fp32 a, unsigned code)
{
    unsigned e = exponent(a), down = 17U + (code - e);
    bool zero = code == 0 || code == 255 || e == 0 || down > 25;
    unsigned by = zero ? 25U : down;
    uint32_t sig = significand(a), size = sig >> by;
    bool half = (sig >> (by - 1) & 1U) != 0, more = (sig & ((1U << (by - 1)) - 1U)) != 0;
    size += half && (more || (size & 1U)) ? 1U : 0U;
    size = size > 127U ? 127U : size;
    return (uint8_t)(zero ? 0U : (a & SIGN) ? 0U - size : size);
}

} // namespace millrace
