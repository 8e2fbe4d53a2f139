// SPDX-License-Identifier: Apache-2.0
// Each run of a suite in a process of its own: two at a time, the timed ones alone. A process
// gives its peak of memory, and takes all that it had with it when it ends.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/suite/runs.h"

#include "common/clock.h"

enum { MOST_AT_ONCE = 2, ROUNDS = 7 };

// What a process sends back, through a pipe.
struct answer {
    struct suite_result result;
    struct mr_error err;
};

static int fail(struct mr_error *err, const char *what)
{
    err->status = MR_ERR_IO;
    snprintf(err->text, sizeof err->text, "bench: %s: %s", what, strerror(errno));
    return MR_ERR_IO;
}

// ---- in the process ----------------------------------------------------------------------------

// OpenBLAS's threads wait actively for some milliseconds after a product.
static void let_threads_sleep(void)
{
    const struct timespec t = {.tv_nsec = 200000000};
    (void)nanosleep(&t, NULL); // cut short by a signal: the run ends anyway
}

// Best time of a step, with and without the head.
struct best {
    double with, without;
};

static int time_step(struct bench *b, long before, bool head, double *best, struct mr_error *err)
{
    struct point p;
    bool wish = b->head;
    b->head = head;
    let_threads_sleep();
    int rc = measure(b, &p, before, 1, err);
    b->head = wish;
    if (rc == 0 && (*best == 0 || p.seconds < *best))
        *best = p.seconds;
    return rc;
}

static int time_against(const struct suite_run *r, struct bench *device, struct mr_model *model,
                        struct suite_result *out, struct mr_error *err)
{
    static const struct mr_session_options defaults;
    struct bench cpu, *side[2] = {device, &cpu};
    struct best best[2] = {0};
    int rc = measure_open(&cpu, model, r->model, "cpu:", &defaults, r->batch, r->head, err);
    if (rc < 0)
        return rc;
    for (int round = 0; rc == 0 && round < ROUNDS; round++)
        for (int i = 0; rc == 0 && i < 2; i++) {
            rc = time_step(side[i], r->at, false, &best[i].without, err);
            if (rc == 0 && r->head)
                rc = time_step(side[i], r->at, true, &best[i].with, err);
        }
    measure_close(&cpu);
    out->p.seconds = r->head ? best[0].with - best[0].without : best[0].without;
    out->against = r->head ? best[1].with - best[1].without : best[1].without;
    return rc;
}

static double processor_seconds(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); // cannot fail for this clock
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int run_one(const struct suite_run *r, struct suite_result *out, struct mr_error *err)
{
    struct mr_load_options load = {.format = r->fp4 ? MR_WEIGHTS_MXFP4 : MR_WEIGHTS_MXINT8};
    struct mr_session_options opt = {.two_pass = r->two_pass};
    struct mr_model *model;
    struct bench b;
    double start = mr_seconds();
    int rc = mr_model_load(&model, r->model, &load, err);
    if (rc < 0)
        return rc;
    rc = measure_open(&b, model, r->model, r->device, &opt, r->batch, r->head, err);
    out->load_seconds = mr_seconds() - start;
    out->p.at = r->at;
    double before = processor_seconds();
    if (rc == 0) {
        rc = r->kind == RUN_AGAINST ? time_against(r, &b, model, out, err)
                                    : measure(&b, &out->p, r->at, r->n, err);
        out->processor_seconds = processor_seconds() - before;
        measure_close(&b);
    }
    mr_model_close(model);
    out->done = rc == 0;
    return rc;
}

static bool send(int fd, const struct answer *a)
{
    const char *p = (const char *)a;
    for (size_t done = 0; done < sizeof *a;) {
        ssize_t n = write(fd, p + done, sizeof *a - done);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static _Noreturn void child(const struct suite_run *r, int fd)
{
    struct answer a = {0};
    struct rusage usage;
    (void)run_one(r, &a.result, &a.err);
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        a.result.peak_kib = usage.ru_maxrss;
    _exit(send(fd, &a) ? 0 : 1);
}

// ---- in the parent -----------------------------------------------------------------------------

struct process {
    pid_t pid; // 0: free
    int fd, run;
};

static int begin(struct process *p, int run, struct mr_error *err)
{
    int fd[2];
    if (pipe(fd) < 0)
        return fail(err, "no pipe for a run");
    pid_t pid = fork();
    if (pid == 0) {
        close(fd[0]);
        child(&suite_runs[run], fd[1]);
    }
    close(fd[1]);
    if (pid < 0) {
        close(fd[0]);
        return fail(err, "no process for a run");
    }
    *p = (struct process){.pid = pid, .fd = fd[0], .run = run};
    return 0;
}

// Reads a process's answer to its end; a process that died without one is an error too.
static int finish(struct process *p, struct suite_result *results, struct mr_error *err)
{
    struct answer a;
    size_t got = 0;
    int status;
    while (got < sizeof a) {
        ssize_t n = read(p->fd, (char *)&a + got, sizeof a - got);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        got += n > 0 ? (size_t)n : 0;
    }
    close(p->fd);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
        ;
    p->pid = 0;
    if (got < sizeof a) {
        err->status = MR_ERR_DEVICE;
        snprintf(err->text, sizeof err->text, "bench: the run '%s' ended without a result",
                 suite_runs[p->run].note);
        return MR_ERR_DEVICE;
    }
    if (a.err.status < 0) {
        *err = a.err;
        return a.err.status;
    }
    results[p->run] = a.result;
    return 0;
}

static void show(int run, const struct suite_result *r, double began)
{
    const struct suite_run *s = &suite_runs[run];
    fprintf(stderr, "%6.0f s  %-34s", mr_seconds() - began, s->note);
    if (s->kind == RUN_AGAINST)
        fprintf(stderr, "%9.1f ms on model:, %.1f ms on cpu:\n", 1e3 * r->p.seconds,
                1e3 * r->against);
    else
        fprintf(stderr, "%12.0f cycles, %5.0f ns each\n", point_count(&r->p, "cycles"),
                1e9 * r->p.seconds / point_count(&r->p, "cycles"));
}

static int free_place(struct process *p, int n)
{
    for (int i = 0; i < n; i++)
        if (p[i].pid == 0)
            return i;
    return -1;
}

// Waits until some process has answered.
static int finish_any(struct process *p, int n, struct suite_result *results, int *run,
                      struct mr_error *err)
{
    struct pollfd fds[MOST_AT_ONCE];
    for (int i = 0; i < n; i++)
        fds[i] = (struct pollfd){.fd = p[i].pid ? p[i].fd : -1, .events = POLLIN};
    while (poll(fds, (nfds_t)n, -1) < 0)
        if (errno != EINTR)
            return fail(err, "waiting for a run");
    for (int i = 0; i < n; i++)
        if (fds[i].revents) {
            *run = p[i].run;
            return finish(&p[i], results, err);
        }
    return 0;
}

static int running(const struct process *p, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += p[i].pid != 0;
    return count;
}

// Those of the suites `in` that are timed, or those that are not, `n` at once.
static int measure_some(unsigned in, bool timed, int n, struct suite_result *results, double began,
                        struct mr_error *err)
{
    struct process p[MOST_AT_ONCE] = {0};
    int rc = 0, next = 0, run = -1;
    for (;;) {
        while (next < suite_run_count &&
               (!(suite_runs[next].in & in) || suite_runs[next].timed != timed))
            next++;
        int place = rc == 0 && next < suite_run_count ? free_place(p, n) : -1;
        if (place >= 0) {
            rc = begin(&p[place], next++, err);
            continue;
        }
        if (running(p, n) == 0)
            return rc;
        struct mr_error mine = {0};
        int status = finish_any(p, n, results, &run, &mine);
        if (status == 0 && rc == 0)
            show(run, &results[run], began);
        if (status < 0 && rc == 0) { // the others are of no use any more
            rc = status;
            *err = mine;
            for (int i = 0; i < n; i++)
                if (p[i].pid)
                    kill(p[i].pid, SIGTERM);
        }
    }
}

int suite_measure_all(unsigned in, struct suite_result *results, struct mr_error *err)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    double began = mr_seconds();
    (void)fflush(NULL); // what is buffered would be written by every process
    int rc = measure_some(in, false, processors > 1 ? MOST_AT_ONCE : 1, results, began, err);
    return rc == 0 ? measure_some(in, true, 1, results, began, err) : rc;
}
