// SPDX-License-Identifier: Apache-2.0
// Copies that go past the caches, as memcpy() does it for much more at a time: for what is written
// and not read again soon. What it overwrites need not be read at all, if whole lines of 64 bytes
// are.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__SSE2__)
// Whole lines, each by one store, of a processor that can: bytes done.
__attribute__((target("avx512f"))) static inline size_t mr_lines_past(void *to, const void *from,
                                                                      size_t size)
{
    size_t at = 0;
    for (; at + 64 <= size; at += 64)
        _mm512_stream_si512((void *)((unsigned char *)to + at),
                            _mm512_loadu_si512((const unsigned char *)from + at));
    return at;
}
#endif

// Other threads may read it behind mr_past_end() only.
static inline void mr_copy_past(void *to, const void *from, size_t size)
{
    unsigned char *t = to;
    const unsigned char *f = from;
#if defined(__SSE2__)
    if (((uintptr_t)t & 63) == 0 && __builtin_cpu_supports("avx512f")) {
        size_t done = mr_lines_past(t, f, size);
        t += done;
        f += done;
        size -= done;
    }
    for (; size >= 16 && ((uintptr_t)t & 15) == 0; t += 16, f += 16, size -= 16)
        _mm_stream_si128((__m128i *)(void *)t, _mm_loadu_si128((const __m128i *)(const void *)f));
#endif
    memcpy(t, f, size);
}

static inline void mr_past_end(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}
