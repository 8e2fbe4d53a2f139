// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as the command line hears it.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/base/cli.h"

// How a process ends that is told so often.
static int told(int times)
{
    pid_t pid = fork();
    if (pid == 0) {
        cli_catch_signals();
        for (int i = 0; i < times; i++)
            (void)raise(SIGINT);
        _exit(cli_interrupted() == SIGINT ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

// As timeout does, which tells the process and its group. Where that takes long by bad luck, again.
static void signals_at_once_are_one(void **unused)
{
    (void)unused;
    int status = 130;
    assert_int_equal(told(1), 0);
    for (int i = 0; status != 0 && i < 20; i++)
        status = told(2);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(signals_at_once_are_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
