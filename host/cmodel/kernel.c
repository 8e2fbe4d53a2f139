// SPDX-License-Identifier: Apache-2.0
#include "cmodel/kernel.h"

#include <stdlib.h>
#include <string.h>

#include "cmodel/num.h"

// Integer arithmetic only, so every compiled variant of this body gives the same bits.
static inline __attribute__((always_inline)) void tile_row(const struct mr_tile *tile,
                                                           const int8_t *act,
                                                           const uint8_t *act_code, int row_max,
                                                           int64_t acc[4])
{
    for (int k = 0; k < tile->kblocks; k++) {
        const int8_t *a = act + 32 * (size_t)k;
        const int8_t *w = tile->weights + 128 * (size_t)k;
        for (int c = 0; c < 4; c++) {
            int32_t d = 0;
            for (int i = 0; i < 32; i++)
                d += (int32_t)((int16_t)a[i] * (int16_t)w[32 * c + i]);
            acc[c] +=
                mr_align(d, (row_max - act_code[k]) + (tile->col_max[c] - tile->codes[4 * k + c]));
        }
    }
}

static void tile_row_portable(const struct mr_tile *t, const int8_t *a, const uint8_t *e, int m,
                              int64_t acc[4])
{
    tile_row(t, a, e, m, acc);
}

#if defined(__x86_64__)
__attribute__((target("avx2"), optimize("O3"))) static void
tile_row_avx2(const struct mr_tile *t, const int8_t *a, const uint8_t *e, int m, int64_t acc[4])
{
    tile_row(t, a, e, m, acc);
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"), optimize("O3"))) static void
tile_row_avx512(const struct mr_tile *t, const int8_t *a, const uint8_t *e, int m, int64_t acc[4])
{
    tile_row(t, a, e, m, acc);
}
#endif

mr_tile_row_fn mr_tile_row_named(const char *name)
{
    if (strcmp(name, "portable") == 0)
        return tile_row_portable;
#if defined(__x86_64__)
    if (strcmp(name, "avx2") == 0 && __builtin_cpu_supports("avx2"))
        return tile_row_avx2;
    if (strcmp(name, "avx512") == 0 && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vnni"))
        return tile_row_avx512;
#endif
    return NULL;
}

mr_tile_row_fn mr_tile_row(void)
{
    const char *wish = getenv("MILLRACE_SIMD");
    mr_tile_row_fn fn = wish ? mr_tile_row_named(wish) : NULL;
    if (!fn)
        fn = mr_tile_row_named("avx512");
    if (!fn)
        fn = mr_tile_row_named("avx2");
    return fn ? fn : tile_row_portable;
}
