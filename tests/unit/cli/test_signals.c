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

// The second ends it at once: where nothing hears of the first, the third.
static void a_second_signal_ends_the_program(void **unused)
{
    (void)unused;
    static const struct {
        bool waits;
        int ends;
    } cases[] = {{false, 2}, {true, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int times = 1; times <= cases[i].ends; times++) {
            pid_t pid = fork();
            if (pid == 0) {
                cli_catch_signals();
                cli_interrupt_waits(cases[i].waits);
                for (int k = 0; k < times; k++) {
                    (void)raise(SIGINT);
                    (void)usleep(150000); // what is told within 100 ms is told once
                }
                _exit(cli_interrupted() == SIGINT ? 0 : 1);
            }
            int status = -1;
            assert_int_equal(waitpid(pid, &status, 0), pid);
            assert_int_equal(WEXITSTATUS(status), times == cases[i].ends ? 130 : 0);
        }
}

static void hangup_is_an_interrupt_but_under_nohup(void **unused)
{
    (void)unused;
    for (int ignored = 0; ignored < 2; ignored++) {
        pid_t pid = fork();
        if (pid == 0) {
            (void)signal(SIGHUP, ignored ? SIG_IGN : SIG_DFL);
            cli_catch_hangup();
            (void)raise(SIGHUP);
            _exit(cli_interrupted());
        }
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), ignored ? 0 : SIGHUP);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(signals_at_once_are_one),
                                       cmocka_unit_test(a_second_signal_ends_the_program),
                                       cmocka_unit_test(hangup_is_an_interrupt_but_under_nohup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
