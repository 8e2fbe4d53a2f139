// SPDX-License-Identifier: Apache-2.0
// The process that a user starts when it is to be several: it runs mpirun, and makes one line of
// what that says about an end.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/train/engines.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/pool.h"
#include "device/open.h"

enum { LINE = 4096, KEPT = 16384, WORDS = 16, NOT_FOUND = 127 };

struct engines {
    pid_t mpirun;
    int out; // its standard error
    const char *state;
    char temporary[256]; // of MPI, on this machine
    char line[LINE];     // not ended yet
    size_t length;
    bool banner;                // between two lines of dashes
    char text[KEPT], own[KEPT]; // what stands there; what MPI's parts said
    char said[LINE];            // the first error
    int asked;                  // 1: to stop, 2: to end at once
    double deadline;            // for that
};

// "; DIR has the steps that were done", if there is a state: one that was to be made may not be.
static const char *steps_done(const struct engines *e, char *text, size_t size)
{
    char header[4096];
    const char *state = e->state ? e->state : "the directory of the state";
    (void)snprintf(header, sizeof header, "%s/header", state);
    bool there = !e->state || access(header, F_OK) == 0;
    (void)snprintf(text, size, there ? "; %s has the steps that were done" : "", state);
    return text;
}

// ---- what mpirun says --------------------------------------------------------------------------

static void keep(char kept[KEPT], const char *line)
{
    size_t n = strlen(kept);
    (void)snprintf(kept + n, KEPT - n, "%s\n", line);
}

static void say(struct engines *e, const char *line)
{
    (void)snprintf(e->said, sizeof e->said, "%s", line);
    fprintf(stderr, "%s\n", line);
}

// "mpirun noticed that process rank 1 with PID 0 on node x exited on signal 9 (Killed)."
static bool judge_killed(struct engines *e)
{
    char node[128], line[LINE], done[LINE / 2];
    int rank, sig;
    const char *at = strstr(e->text, "process rank ");
    if (!at || sscanf(at, "process rank %d with PID %*d on node %127s exited on signal %d", &rank,
                      node, &sig) != 3)
        return false;
    (void)steps_done(e, done, sizeof done);
    (void)snprintf(line, sizeof line, "millrace: rank %d on %s: was ended by signal %d (%s)%s%s",
                   rank, node, sig, strsignal(sig), done,
                   *done ? ", and the same command goes on" : "");
    if (!*e->said && !e->asked)
        say(e, line);
    return true;
}

// What follows from an end that has been told already, or will be.
static void judge_banner(struct engines *e)
{
    static const char *const follows[] = {"MPI_ABORT was invoked", "non-zero exit code",
                                          "exited with non-zero status",
                                          "mpirun has exited due to process rank"};
    bool known = judge_killed(e);
    for (size_t i = 0; i < sizeof follows / sizeof *follows; i++)
        known |= strstr(e->text, follows[i]) != NULL;
    if (!known)
        fputs(e->text, stderr);
    *e->text = 0;
}

// Each rank finds an error that all have: the first line counts.
static bool is_again(const struct engines *e, const char *line)
{
    static const char rank[] = "millrace: rank ";
    size_t n = sizeof rank - 1;
    return *e->said && ((strncmp(line, rank, n) == 0 && strncmp(e->said, rank, n) == 0) ||
                        strcmp(line, e->said) == 0);
}

static void take_line(struct engines *e)
{
    const char *line = e->line;
    if (strncmp(line, "----------", 10) == 0) {
        if (e->banner)
            judge_banner(e);
        e->banner = !e->banner;
    } else if (e->banner) {
        keep(e->text, line);
    } else if (*line == '[') { // "[host:pid] ...", about connections that are lost at an end
        keep(e->own, line);
    } else if (strncmp(line, "millrace", 8) != 0) {
        if (*line && strncmp(line, "mpirun: Forwarding signal", 25) != 0) // it was told to
            fprintf(stderr, "%s\n", line);
    } else if (!is_again(e, line)) {
        say(e, line);
    }
}

static void end_line(struct engines *e)
{
    e->line[e->length] = 0;
    e->length = 0;
    take_line(e);
}

// Returns false at the end.
static bool take(struct engines *e)
{
    char data[LINE];
    ssize_t n = read(e->out, data, sizeof data);
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    for (ssize_t i = 0; i < n; i++) {
        bool ends = data[i] == '\n';
        if (!ends)
            e->line[e->length++] = data[i];
        if (ends || e->length == sizeof e->line - 1) // a longer line becomes several
            end_line(e);
    }
    return true;
}

// What an mpirun that was killed had begun to say.
static void take_rest(struct engines *e)
{
    if (e->length > 0)
        end_line(e);
    if (e->banner)
        judge_banner(e);
}

// ---- starting ----------------------------------------------------------------------------------

// What MPI keeps on this machine while it runs, so that nothing of it stays whatever ends it. Its
// sockets are there, whose names may not be long.
static void set_temporary(struct engines *e)
{
    const char *base = getenv("TMPDIR");
    base = base && *base && strlen(base) < 40 ? base : "/tmp";
    (void)snprintf(e->temporary, sizeof e->temporary, "%s/millrace-XXXXXX", base);
    if (!mkdtemp(e->temporary)) {
        *e->temporary = 0; // it finds a place itself
        return;
    }
    (void)setenv("OMPI_MCA_orte_tmpdir_base", e->temporary, 1);
    (void)setenv("OMPI_MCA_btl_vader_backing_directory", e->temporary, 1);
}

// Of a cluster's own settings those that are there stay. setenv() fails without memory alone, and
// then fork() does.
static void set_environment(struct engines *e, int count, const char *hosts)
{
    char threads[16];
    int each = mr_pool_default() / count;
    (void)setenv("MILLRACE_ENGINES", "1", 1);
    (void)setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1); // as without engines
    (void)setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    (void)setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    (void)setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0); // containers forbid it
    (void)setenv("OMPI_MCA_btl_base_warn_component_unused", "0", 0);
    (void)setenv("OMPI_MCA_mca_base_component_show_load_errors", "0", 0);
    if (hosts)
        return;
    (void)setenv("OMPI_MCA_pml", "ob1", 0);
    (void)setenv("OMPI_MCA_btl", "self,vader", 0);
    (void)snprintf(threads, sizeof threads, "%d", each > 1 ? each : 1);
    (void)setenv("MILLRACE_THREADS", threads, 0);
    set_temporary(e);
}

// Of the child, which becomes mpirun. Its own process group: Ctrl-C is for the parent alone.
static void become_mpirun(int count, const char *hosts, char **words, int out)
{
    char program[4096], number[16];
    const char *const options[] = {"mpirun", "--oversubscribe",           "--bind-to", "none", "-n",
                                   number,   hosts ? "--hostfile" : NULL, hosts};
    size_t n = 0, own = 0;
    while (words[own])
        own++;
    const char **argv = calloc(own + WORDS, sizeof *argv);
    if (!argv || !mr_program_path(program, sizeof program))
        _exit(NOT_FOUND);
    (void)snprintf(number, sizeof number, "%d", count);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i])
            argv[n++] = options[i];
    argv[n++] = program;
    memcpy(argv + n, words, own * sizeof *argv);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (dup2(out, STDERR_FILENO) < 0 || !freopen("/dev/null", "r", stdin))
        _exit(NOT_FOUND);
    execvp("mpirun.openmpi", (char *const *)argv); // changes no word
    execvp("mpirun", (char *const *)argv);
    _exit(NOT_FOUND);
}

// ---- waiting -----------------------------------------------------------------------------------

// The first Ctrl-C asks rank 0 to stop behind its step, the second one ends all.
static void pass_signals(struct engines *e)
{
    if (e->asked < 1 && cli_interrupted()) {
        e->asked = 1;
        (void)kill(e->mpirun, SIGUSR1); // gone already: waitpid() says so
    }
    if (e->asked < 2 && mr_device_stop) {
        e->asked = 2;
        e->deadline = mr_seconds() + 5;
        (void)kill(e->mpirun, SIGTERM);
    }
    if (e->asked == 2 && mr_seconds() > e->deadline)
        (void)kill(-e->mpirun, SIGKILL);
}

// Until mpirun has ended and all that it said is read. Returns its status.
static int watch(struct engines *e)
{
    int status = 0;
    pid_t ended = 0;
    struct pollfd p = {e->out, POLLIN, 0};
    for (;;) {
        int ready = poll(&p, 1, 100); // of standard error that another process keeps open
        if (ready > 0 && !take(e))
            break;
        if (ready == 0 && ended)
            break;
        if (!ended)
            pass_signals(e);
        if (!ended)
            ended = waitpid(e->mpirun, &status, WNOHANG);
    }
    take_rest(e);
    while (!ended && (ended = waitpid(e->mpirun, &status, 0)) < 0 && errno == EINTR) {
        ended = 0;
        pass_signals(e);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int finish(struct engines *e, int status)
{
    char done[LINE];
    if (*e->temporary)
        mr_remove_tree(e->temporary);
    if (e->asked == 2 || (e->asked && !*e->said))
        status = EXIT_INTERRUPTED;
    if (status == EXIT_OK || *e->said)
        return status;
    if (e->asked)
        fprintf(stderr, "millrace: interrupted%s\n", steps_done(e, done, sizeof done));
    else if (status == NOT_FOUND)
        fprintf(stderr, "millrace: --engines: there is no mpirun; install the packages openmpi-bin "
                        "and libopenmpi3\n");
    else
        fprintf(stderr, "%smillrace: mpirun ended with status %d%s\n", e->own, status,
                steps_done(e, done, sizeof done));
    return e->asked ? status : EXIT_DEVICE;
}

// mpirun's own words on it are a dozen lines, with "should be reported to the developers".
static int check_hosts(const char *path)
{
    FILE *f = fopen(path, "r");
    int e = f && (fgetc(f) != EOF || !ferror(f)) ? 0 : errno;
    if (f)
        (void)fclose(f); // only read
    if (e == 0)
        return EXIT_OK;
    fprintf(stderr,
            "millrace: --hosts %s: %s; give a file with a line for each machine: NAME slots=N "
            "(docs/train/engines.md)\n",
            path, strerror(e));
    return EXIT_INPUT;
}

int engines_start(int count, const char *hosts, const char *state, char **words)
{
    static struct engines e;
    int ends[2];
    if (hosts && check_hosts(hosts) != EXIT_OK)
        return EXIT_INPUT;
    e.state = state;
    if (pipe(ends) < 0) {
        fprintf(stderr, "millrace: --engines: %s\n", strerror(errno));
        return EXIT_DEVICE;
    }
    set_environment(&e, count, hosts);
    cli_interrupt_waits(true);
    e.mpirun = fork();
    if (e.mpirun == 0) {
        (void)close(ends[0]);
        become_mpirun(count, hosts, words, ends[1]);
    }
    (void)close(ends[1]);
    e.out = ends[0];
    if (e.mpirun < 0)
        fprintf(stderr, "millrace: --engines: %s\n", strerror(errno));
    int status = e.mpirun < 0 ? EXIT_DEVICE : finish(&e, watch(&e));
    (void)close(ends[0]);
    return status;
}
