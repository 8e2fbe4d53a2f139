// SPDX-License-Identifier: Apache-2.0
// The hash of data that come in stripes is the library's, in every instruction set, wherever the
// pieces end.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pack/hash.h"
#include "store/stripes.h"
#include "unit/simd_sets.h"

enum { MOST = 9000 };

static uint32_t draw(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(state >> 33);
}

// Pieces of up to `most` stripes, with or without what comes next.
static uint64_t hash_of(const unsigned char *data, size_t size, size_t most, mr_stripes_sum *kernel)
{
    struct mr_stripes s;
    size_t at = 0;
    mr_stripes_begin(&s);
    s.kernel = kernel;
    while (size - at > MR_STRIPE) {
        size_t left = (size - at - 1) / MR_STRIPE, n = draw() % (most + 1);
        n = n < left ? n : left;
        mr_stripes_put(&s, data + at, n * MR_STRIPE, draw() % 2 ? data : NULL);
        at += n * MR_STRIPE;
    }
    return mr_stripes_end(&s, data + at, size - at);
}

static void hashes_are_those_of_the_library(void **state)
{
    (void)state;
    static const char *const names[] = {"portable", "avx2", "avx512"};
    static unsigned char data[MOST + 3];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)draw();
    for (size_t k = 0; k < 3; k++) {
        mr_stripes_sum *kernel = SIMD_NAMED(mr_stripes_sums, names[k]);
        for (size_t size = 241; kernel && size <= MOST; size += size < 1200 ? 1 : draw() % 40)
            for (size_t most = 1; most < 100; most = 4 * most + 3) {
                const unsigned char *from = data + draw() % 4; // at no multiple of anything
                if (hash_of(from, size, most, kernel) != XXH3_64bits(from, size))
                    fail_msg("%s: the hash of %zu bytes in pieces of up to %zu stripes", names[k],
                             size, most);
            }
    }
    assert_int_equal(mr_simd_named("portable"), MR_SIMD_PORTABLE);
    assert_int_equal(mr_simd_named("mmx"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hashes_are_those_of_the_library)};
    return cmocka_run_group_tests_name("stripes", tests, NULL, NULL);
}
