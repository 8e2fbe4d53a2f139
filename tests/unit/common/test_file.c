// SPDX-License-Identifier: Apache-2.0
// Paths: where the running program is, and what lies beside it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/file.h"

static void program_knows_where_it_is(void **state)
{
    (void)state;
    char path[4096], same[4096];
    assert_true(mr_program_path(path, sizeof path));
    assert_true(*path == '/' && mr_file_exists(path));
    size_t n = strlen(path);
    assert_true(mr_program_path(same, n + 1));
    assert_string_equal(same, path);
    assert_false(mr_program_path(same, n)); // not cut
}

static void beside_the_program(void **state)
{
    (void)state;
    char path[4096], own[4096];
    assert_true(mr_program_path(own, sizeof own));
    const char *name = strrchr(own, '/');
    assert_true(mr_program_beside(path, sizeof path, name));
    assert_string_equal(path, own);
    assert_true(mr_program_beside(path, strlen(own) + 2, "/../x"));
    assert_string_equal(path + (name - own), "/../x");
    char longer[256];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    assert_false(mr_program_beside(path, strlen(own) + 1, longer)); // not cut either
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_knows_where_it_is),
        cmocka_unit_test(beside_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
