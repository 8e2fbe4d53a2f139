// SPDX-License-Identifier: Apache-2.0
#define XXH_INLINE_ALL // for its constants
#include "store/stripes.h"

#include <string.h>
#include <xxhash.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { LANES = 8, BLOCK = 16, SECRET = sizeof XXH3_kSecret, LAST = SECRET - MR_STRIPE - 7 };

#define INLINE static inline __attribute__((always_inline))

static uint64_t secret(size_t at)
{
    uint64_t x;
    memcpy(&x, XXH3_kSecret + at, sizeof x);
    return x;
}

static void scramble(uint64_t *sum)
{
    for (size_t i = 0; i < LANES; i++)
        sum[i] = (sum[i] ^ sum[i] >> 47 ^ secret(SECRET - MR_STRIPE + 8 * i)) * XXH_PRIME32_1;
}

static void stripe(uint64_t *sum, const unsigned char *data, size_t key_at)
{
    for (size_t i = 0; i < LANES; i++) {
        uint64_t x, key;
        memcpy(&x, data + 8 * i, sizeof x);
        key = x ^ secret(key_at + 8 * i);
        sum[i ^ 1] += x;
        sum[i] += (key & 0xFFFFFFFFU) * (key >> 32);
    }
}

static void sum_portable(uint64_t *sum, const unsigned char *data, size_t n, size_t number,
                         const unsigned char *next)
{
    (void)next;
    for (size_t k = 0; k < n; k++) {
        stripe(sum, data + MR_STRIPE * k, 8 * ((number + k) % BLOCK));
        if ((number + k) % BLOCK == BLOCK - 1)
            scramble(sum);
    }
}

#if defined(__x86_64__)
#define AVX512 __attribute__((target("avx512f,avx512dq")))

AVX512 INLINE __m512i add_avx512(__m512i sum, const unsigned char *in, __m512i secret)
{
    __m512i x = _mm512_loadu_si512(in), key = _mm512_xor_si512(x, secret);
    __m512i product = _mm512_mul_epu32(key, _mm512_srli_epi64(key, 32));
    return _mm512_add_epi64(sum, _mm512_add_epi64(_mm512_shuffle_epi32(x, _MM_PERM_BADC), product));
}

AVX512 INLINE __m512i scramble_avx512(__m512i sum)
{
    __m512i secret = _mm512_loadu_si512(XXH3_kSecret + SECRET - MR_STRIPE);
    __m512i mixed = _mm512_xor_si512(_mm512_xor_si512(sum, _mm512_srli_epi64(sum, 47)), secret);
    return _mm512_mullo_epi64(mixed, _mm512_set1_epi64(XXH_PRIME32_1));
}

// Whole blocks have all of their secrets in registers: these lie across lines.
AVX512 static void sum_avx512(uint64_t *to, const unsigned char *data, size_t n, size_t number,
                              const unsigned char *next)
{
    __m512i sum = _mm512_loadu_si512(to), secret[BLOCK];
#pragma GCC unroll 16
    for (size_t j = 0; j < BLOCK; j++)
        secret[j] = _mm512_loadu_si512(XXH3_kSecret + 8 * j);
    for (size_t k = 0; k < n;) {
        const unsigned char *in = data + MR_STRIPE * k;
        const unsigned char *fetch = next ? next + MR_STRIPE * k : in;
        if (number == 0 && n - k >= BLOCK) {
#pragma GCC unroll 16
            for (size_t j = 0; j < BLOCK; j++) {
                __builtin_prefetch(fetch + MR_STRIPE * j);
                sum = add_avx512(sum, in + MR_STRIPE * j, secret[j]);
            }
            sum = scramble_avx512(sum);
            k += BLOCK;
        } else {
            __builtin_prefetch(fetch);
            sum = add_avx512(sum, in, _mm512_loadu_si512(XXH3_kSecret + 8 * number));
            number = (number + 1) % BLOCK;
            sum = number == 0 ? scramble_avx512(sum) : sum;
            k++;
        }
    }
    _mm512_storeu_si512(to, sum);
}

#define AVX2 __attribute__((target("avx2")))

AVX2 INLINE __m256i load_avx2(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

AVX2 INLINE __m256i add_avx2(__m256i sum, const unsigned char *in, const unsigned char *secret)
{
    __m256i x = load_avx2(in), key = _mm256_xor_si256(x, load_avx2(secret));
    __m256i product = _mm256_mul_epu32(key, _mm256_srli_epi64(key, 32));
    return _mm256_add_epi64(sum, _mm256_add_epi64(_mm256_shuffle_epi32(x, 0x4E), product));
}

AVX2 static void sum_avx2(uint64_t *to, const unsigned char *data, size_t n, size_t number,
                          const unsigned char *next)
{
    const unsigned char *secret = XXH3_kSecret, *end = data + MR_STRIPE * n;
    const ptrdiff_t ahead = next ? next - data : 0;
    while (data < end) {
        __m256i low = load_avx2(to), high = load_avx2(to + 4);
        for (; data < end && number < BLOCK; data += MR_STRIPE, number++) {
            __builtin_prefetch(data + ahead);
            low = add_avx2(low, data, secret + 8 * number);
            high = add_avx2(high, data + 32, secret + 8 * number + 32);
        }
        _mm256_storeu_si256((__m256i *)(void *)to, low);
        _mm256_storeu_si256((__m256i *)(void *)(to + 4), high);
        if (number == BLOCK) {
            scramble(to);
            number = 0;
        }
    }
}
#endif

mr_stripes_sum *const mr_stripes_sums[MR_SIMD_SETS] = {
    sum_portable,
#if defined(__x86_64__)
    sum_avx2,
    sum_avx512,
#endif
};

void mr_stripes_begin(struct mr_stripes *s)
{
    *s = (struct mr_stripes){.sum = {XXH_PRIME32_3, XXH_PRIME64_1, XXH_PRIME64_2, XXH_PRIME64_3,
                                     XXH_PRIME64_4, XXH_PRIME32_2, XXH_PRIME64_5, XXH_PRIME32_1},
                             .kernel = mr_stripes_sums[mr_simd_best()]};
}

void mr_stripes_put(struct mr_stripes *s, const void *data, size_t size, const void *next)
{
    if (size == 0)
        return;
    s->kernel(s->sum, data, size / MR_STRIPE, s->size / MR_STRIPE % BLOCK, next);
    memcpy(s->last, (const unsigned char *)data + size - MR_STRIPE, MR_STRIPE);
    s->size += size;
}

static uint64_t mixed(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t mr_stripes_end(struct mr_stripes *s, const void *data, size_t size)
{
    unsigned char end[2 * MR_STRIPE];
    memcpy(end, s->last, MR_STRIPE);
    memcpy(end + MR_STRIPE, data, size);
    stripe(s->sum, end + size, LAST);
    uint64_t hash = (s->size + size) * XXH_PRIME64_1;
    for (size_t i = 0; i < LANES; i += 2)
        hash += mixed(s->sum[i] ^ secret(11 + 8 * i), s->sum[i + 1] ^ secret(19 + 8 * i));
    hash = (hash ^ hash >> 37) * 0x165667919E3779F9U;
    return hash ^ hash >> 32;
}
