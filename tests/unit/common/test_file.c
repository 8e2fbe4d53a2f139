// SPDX-License-Identifier: Apache-2.0
// Paths: where the running program is and what lies beside it, names joined, two names of one
// place.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/file.h"
#include "unit/files.h"

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
    assert_false(mr_program_beside(path, 1, ""));
}

static void names_are_joined_by_one_slash(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b", "b"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *path = mr_path_join(rows[i][0], rows[i][1], NULL);
        assert_string_equal(path, rows[i][2]);
        free(path);
    }
}

// Of what is there, and of what is not yet.
static void two_names_of_one_place(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"host", "./host/", true}, {"host", "tests", false},
        {"new", "./new", true},    {"new//", "host/../new", true},
        {"new", "newer", false},   {"/new", "//new/", true},
        {"/", "///", true},        {"no/new", "no/new", false}, // there is no such directory
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (mr_path_same(rows[i].a, rows[i].b) != rows[i].same)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
}

static void a_file_is_found_in_its_directory(void **state)
{
    (void)state;
    const char *file = files_write_text("a", "text");
    assert_int_equal(symlink("nowhere", files_path("b")), 0);
    assert_true(mr_file_is_in(file, files_dir));
    assert_false(mr_file_is_in("README.md", files_dir));
    assert_false(mr_file_is_in(files_path("b"), files_dir));
    assert_false(mr_file_is_in(file, files_path("c")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_knows_where_it_is),
        cmocka_unit_test(beside_the_program),
        cmocka_unit_test(names_are_joined_by_one_slash),
        cmocka_unit_test(two_names_of_one_place),
        cmocka_unit_test(a_file_is_found_in_its_directory),
    };
    return cmocka_run_group_tests_name("file", tests, files_setup, files_teardown);
}
