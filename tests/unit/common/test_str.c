// SPDX-License-Identifier: Apache-2.0
// Sizes as users write them: --max-body and capacity= read the same ones.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/str.h"

static void size_of_text(const char *text, uint64_t want, const char *rest)
{
    uint64_t bytes;
    const char *end = mr_size_of(text, &bytes);
    if (!end || bytes != want || strcmp(end, rest) != 0)
        fail_msg("%s: %lu, then '%s'", text, end ? (unsigned long)bytes : 0, end ? end : "nothing");
}

static void a_unit_is_of_either_case(void **state)
{
    (void)state;
    size_of_text("0", 0, "");
    size_of_text("12345", 12345, "");
    size_of_text("4k", 4096, "");
    size_of_text("4K", 4096, "");
    size_of_text("3m", 3 << 20, "");
    size_of_text("3M", 3 << 20, "");
    size_of_text("2g", 1ULL << 31, "");
    size_of_text("2G", 1ULL << 31, "");
    size_of_text("1M,units=2", 1 << 20, ",units=2");
    size_of_text("1T", 1, "T");
    size_of_text("1kk", 1024, "k");
}

static void no_size(void **state)
{
    static const char *const bad[] = {
        "", "k", "-1", "+1", " 1", ",", "9223372036854775808", "8589934592G"}; // 2^63
    uint64_t bytes;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (mr_size_of(bad[i], &bytes))
            fail_msg("'%s' is taken", bad[i]);
    size_of_text("8589934591G", UINT64_MAX / 2 - (1 << 30) + 1, "");
    size_of_text("9223372036854775807", UINT64_MAX / 2, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_is_of_either_case),
        cmocka_unit_test(no_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
