// SPDX-License-Identifier: Apache-2.0
// A test that lets each allocation of a call fail, one by one: the call ends with one error or does
// without, nothing leaks, and no file stays half written. MEMORY_EVERY=1 lets each allocation fail,
// without it one in as many as the call's row says. Leaks are looked for once a call, as that takes
// long; MEMORY_LEAKS=1: behind each allocation. Include <cmocka.h> first.
#ifndef MILLRACE_TESTS_UNIT_MEMORY_CALLS_H
#define MILLRACE_TESTS_UNIT_MEMORY_CALLS_H

#include <dirent.h>
#include <sanitizer/lsan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/api/memory_models.h"
#include "unit/api/nomem.h"

// What stands in files_dir beside what setup() made, and what a call may have finished before the
// one that failed.
static int strangers(void)
{
    static const char *const known[] = {"gptj",        "packed.mill", "state", "adapter",
                                        "small",       "lines",       "bert",  "labels",
                                        "with-labels", "out",         ".",     ".."};
    int n = 0;
    DIR *dir = opendir(files_dir);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(known[i], e->d_name) != 0)
            i++;
        n += i == sizeof known / sizeof *known;
    }
    (void)closedir(dir);
    return n;
}

static void remove_out(void)
{
    if (remove(out) != 0 && errno != ENOENT)
        remove_dir(out);
}

struct memory_call {
    const char *name;
    int (*run)(struct mr_error *err);
    int step; // 23, less of short ones; MEMORY_EVERY=1: 1
};

static void each_allocation_may_fail(void **test)
{
    const struct memory_call *c = *test;
    const char *name = c->name, *every = getenv("MEMORY_EVERY");
    const bool leaks = getenv("MEMORY_LEAKS");
    long step = every ? 1 : c->step, failed = 0, without = 0, at;
    for (at = 0;; at += step) {
        struct mr_error err = {0};
        nomem_begin(at);
        int rc = c->run(&err);
        bool struck = nomem_end();
        nomem_told(name, at, rc, struck, &err);
        if (rc < 0 && strangers() > 0)
            fail_msg("%s, allocation %ld: a file stays", name, at);
        remove_out();
        if (leaks && __lsan_do_recoverable_leak_check())
            fail_msg("%s, allocation %ld: a leak", name, at);
        failed += rc < 0;
        without += rc == 0 && struck;
        if (!struck)
            break;
    }
    printf("# %s: up to %ld allocations, %ld calls failed, %ld did without\n", name, at, failed,
           without);
    assert_true(failed > 0);
    if (__lsan_do_recoverable_leak_check())
        fail_msg("%s: a leak; MEMORY_LEAKS=1 says where", name);
}

#define CALL(function, every) {#function "_without_memory", function, every}

static int memory_run(const char *name, CMFixtureFunction setup, struct memory_call *calls,
                      size_t count)
{
    struct CMUnitTest tests[32] = {0};
    assert_true(count <= sizeof tests / sizeof *tests);
    for (size_t i = 0; i < count; i++)
        tests[i] =
            (struct CMUnitTest){calls[i].name, each_allocation_may_fail, NULL, NULL, &calls[i]};
    return _cmocka_run_group_tests(name, tests, count, setup, files_teardown);
}

#endif
