// SPDX-License-Identifier: Apache-2.0
// The pipeline in Verilator against update_core.cpp as it is: vectors of all kinds, one a cycle.
// usage: Vupdate_core COUNT
#include "Vupdate_core.h"
#include "verilated.h"
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <deque>
extern "C" void update_core(uint32_t w, uint32_t m, uint32_t v, int32_t g, int32_t unit, uint32_t,
                            uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                            uint32_t, uint32_t *, uint32_t *, uint32_t *);
static uint64_t s = 88172645463325252ull;
static uint32_t R()
{
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return (uint32_t)(s >> 16);
}
static const uint32_t X[] = {0,          0x80000000, 1,          0x807FFFFF, 0x00800000,
                             0x80800001, 0x01000000, 0x3F800000, 0xBF800001, 0x7F7FFFFF,
                             0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFBFFFFF,
                             0x7F800001, 0x1F800000, 0x20000001};
static uint32_t N(int mode)
{
    uint32_t u = R();
    if (mode == 1 || u % 61 == 0)
        return X[R() % 18];
    if (mode == 2)
        return (u & 0x80FFFFFF) + 0x3E800000;
    if (mode == 3)
        return u & 0x83FFFFFF;
    return u;
}
struct E {
    uint32_t o[3];
};
int main(int, char **av)
{
    long n = atol(av[1]), got = 0, bad = 0, lat = -1, cyc = 0;
    Vupdate_core d;
    std::deque<E> q;
    static const uint32_t usual[9] = {0x3c23d70a, 0x3f666666, 0x3dcccccd, 0x3f7fbe77, 0x3a83126f,
                                      0x41fcd9d4, 0x322bcc77, 0x3c23d70a, 0x38d1b717};
    d.rst = 1;
    for (int i = 0; i < 4; i++) {
        d.clk = 0;
        d.eval();
        d.clk = 1;
        d.eval();
    }
    d.rst = 0;
    for (long k = 0; got < n; k++) {
        if (k < n) {
            int mode = k % 4;
            uint32_t a[14];
            for (int i = 0; i < 3; i++)
                a[i] = N(mode);
            a[3] = R() >> (R() % 32);
            if (R() & 1)
                a[3] = 0u - a[3];
            a[4] = (uint32_t)((int)(R() % 300) - 204);
            for (int i = 0; i < 9; i++)
                a[5 + i] = k % 3 == 2 ? N(mode) : usual[i];
            E e;
            update_core(a[0], a[1], a[2], (int32_t)a[3], (int32_t)a[4], a[5], a[6], a[7], a[8],
                        a[9], a[10], a[11], a[12], a[13], e.o, e.o + 1, e.o + 2);
            q.push_back(e);
            d.a0 = a[0];
            d.a1 = a[1];
            d.a2 = a[2];
            d.a3 = a[3];
            d.a4 = a[4];
            d.a5 = a[5];
            d.a6 = a[6];
            d.a7 = a[7];
            d.a8 = a[8];
            d.a9 = a[9];
            d.a10 = a[10];
            d.a11 = a[11];
            d.a12 = a[12];
            d.a13 = a[13];
        }
        d.in_valid = k < n;
        d.clk = 0;
        d.eval();
        d.clk = 1;
        d.eval();
        cyc++;
        if (d.out_valid) {
            if (lat < 0)
                lat = cyc;
            E e = q.front();
            q.pop_front();
            uint32_t o[3] = {d.out[2], d.out[1], d.out[0]};
            for (int i = 0; i < 3; i++)
                if (o[i] != e.o[i] && bad++ < 5)
                    printf("bad %ld out %d %08x want %08x\n", got, i, o[i], e.o[i]);
            got++;
        }
    }
    printf("n %ld bad %ld latency %ld cycles %ld\n", n, bad, lat, cyc);
    return bad != 0;
}
