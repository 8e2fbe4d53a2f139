// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/status_line.h"
#include "common/clock.h"

// Whoever tells a process and its group, as timeout does, tells it twice within this time.
static const double once = 0.1;

static volatile sig_atomic_t interrupted, pipe_closed, waits;
static volatile double since; // of both signals' handlers, which do not interrupt each other

// The first Ctrl-C ends the run in good order, the second at once.
static void on_signal(int sig)
{
    if (interrupted && !waits && mr_seconds() - since < once)
        return;
    since = mr_seconds();
    if (waits && !interrupted) {
        interrupted = sig;
        return;
    }
    if (interrupted && !waits) {
        cli_line_abandon();
        _exit(128 + sig);
    }
    waits = 0;
    interrupted = sig;
    mr_interrupt();
}

// A terminal that closes may say so more than once.
static void on_hangup(int sig)
{
    interrupted = sig;
    mr_interrupt();
}

// Writing to a closed pipe fails then instead of ending us, so that temporary files are removed.
static void on_pipe(int sig)
{
    (void)sig;
    pipe_closed = 1;
}

void cli_catch_signals(void)
{
    struct sigaction stop = {.sa_handler = on_signal}, closed = {.sa_handler = on_pipe};
    sigemptyset(&stop.sa_mask);
    sigaddset(&stop.sa_mask, SIGINT);
    sigaddset(&stop.sa_mask, SIGTERM);
    sigemptyset(&closed.sa_mask);
    // These cannot fail: the signals are there, and can be caught.
    (void)sigaction(SIGINT, &stop, NULL);
    (void)sigaction(SIGTERM, &stop, NULL);
    (void)sigaction(SIGPIPE, &closed, NULL);
    (void)signal(SIGXFSZ, SIG_IGN); // a file size limit is an error of write()
}

void cli_catch_hangup(void)
{
    struct sigaction stop = {.sa_handler = on_hangup}, was;
    sigemptyset(&stop.sa_mask);
    (void)sigaction(SIGHUP, NULL, &was);
    if (was.sa_handler != SIG_IGN) // nohup
        (void)sigaction(SIGHUP, &stop, NULL);
}

// mpirun forwards SIGUSR1, and sends SIGTERM when it ends all ranks; rank 0 decides for all.
void cli_catch_as_rank(int rank)
{
    struct sigaction stop = {.sa_handler = rank == 0 ? on_signal : SIG_IGN};
    sigemptyset(&stop.sa_mask);
    (void)sigaction(SIGUSR1, &stop, NULL);
    (void)signal(SIGTERM, SIG_DFL);
}

void cli_interrupt_waits(bool on)
{
    waits = on;
}

bool cli_pipe_closed(void)
{
    return pipe_closed;
}

int cli_interrupted(void)
{
    return interrupted;
}

void cli_interrupt_taken(void)
{
    mr_interrupt_clear();
    interrupted = 0;
}
