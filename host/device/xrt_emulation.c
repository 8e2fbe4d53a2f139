// SPDX-License-Identifier: Apache-2.0
#include "device/xrt_emulation.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/file.h"

enum { OLD_SECONDS = 10 };
enum { PATH = 512, EXIT_OF_A_DEVICE_ERROR = 4, PATIENCE_SECONDS = 10, LOOKS = 10, MOMENT = 50 };

static struct {
    char dir[64]; // empty: none
    // Devices of several threads look at these.
    _Atomic int open;             // devices
    _Atomic bool kept;            // a card stays open without one
    _Atomic bool inside, closing; // a device is being opened or closed
    volatile sig_atomic_t crashed, lost, ending;
    _Atomic unsigned looked, looked_since; // since a crash
    int saved[3];                          // standard output, error while inside, else -1
} emu = {.saved = {-1, -1, -1}};

bool mr_xrt_emulated(void)
{
    const char *mode = getenv("XCL_EMULATION_MODE");
    return mode && *mode;
}

// ---- the simulator's process --------------------------------------------------------------------

// Children of this process that are simulators: their number, and the last one's id and state.
static int simulators(pid_t *pid, char *state)
{
    DIR *proc = opendir("/proc");
    char own[16] = "";
    int count = 0;
    (void)prctl(PR_GET_NAME, own);
    for (struct dirent *e; proc && (e = readdir(proc));) {
        char path[300], line[256], name[32], st;
        int id, parent;
        if (e->d_name[0] < '1' || e->d_name[0] > '9')
            continue;
        (void)snprintf(path, sizeof path, "/proc/%.20s/stat", e->d_name);
        FILE *f = fopen(path, "r");
        if (!f)
            continue; // it has ended meanwhile
        bool read = fgets(line, sizeof line, f) != NULL;
        (void)fclose(f);
        if (read && sscanf(line, "%d (%31[^)]) %c %d", &id, name, &st, &parent) == 4 &&
            parent == getpid() &&
            (strncmp(name, "launch_hw_emu", 13) == 0 || strncmp(name, "millrace-emul", 13) == 0 ||
             (st == 'Z' && strcmp(name, own) == 0))) { // forked, and could not become one
            count++;
            *pid = id;
            *state = st;
        }
    }
    if (proc)
        (void)closedir(proc);
    return count;
}

// The first line of a log that the emulator has left behind, or XRT while it opened.
static void last_words(const char *log, char *text, size_t size)
{
    char path[PATH];
    *text = 0;
    (void)snprintf(path, sizeof path, "%s/%s", emu.dir, log);
    FILE *f = fopen(path, "r");
    if (!f)
        return;
    if (!fgets(text, (int)size, f))
        *text = 0;
    text[strcspn(text, "\n")] = 0;
    (void)fclose(f);
}

static void kill_simulator(void)
{
    pid_t pid;
    char state;
    if (simulators(&pid, &state) > 0)
        (void)kill(pid, SIGKILL);
}

// ---- the working directory ----------------------------------------------------------------------

// Under another name, as threads of XRT's that are still there make sockets in it.
static void remove_dir(void)
{
    char gone[sizeof emu.dir + 8];
    if (!*emu.dir)
        return;
    (void)snprintf(gone, sizeof gone, "%s.gone", emu.dir);
    mr_remove_tree(rename(emu.dir, gone) == 0 ? gone : emu.dir);
}

// Whether a process of this user left the directory behind: none has that number, none holds it,
// and it is not just being made.
static bool left_behind(const char *name, const char *path)
{
    struct stat st;
    char rest[16];
    int pid, fd;
    if (sscanf(name, "millrace-%9d-%15s", &pid, rest) != 2 || kill(pid, 0) == 0 || errno != ESRCH)
        return false;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool left = fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
                time(NULL) - st.st_mtime > OLD_SECONDS && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0)
        (void)close(fd);
    return left;
}

// Of processes that were killed before their simulator, which cleans up after them, had begun.
static void remove_left_behind(void)
{
    DIR *tmp = opendir("/tmp");
    for (struct dirent *e; tmp && (e = readdir(tmp));) {
        char path[300];
        (void)snprintf(path, sizeof path, "/tmp/%s", e->d_name);
        if (left_behind(e->d_name, path))
            mr_remove_tree(path);
    }
    if (tmp)
        (void)closedir(tmp);
}

static int standard_error(void)
{
    int saved = emu.saved[STDERR_FILENO];
    return saved >= 0 ? saved : STDERR_FILENO;
}

// XRT's threads may be stuck, and would be waited for: then the process ends here.
static void at_exit(int status, void *owner)
{
    if ((pid_t)(intptr_t)owner != getpid())
        return;     // a child of fork() that did not become another program
    if (emu.ending) // a thread of XRT's has called exit() too, perhaps for want of the directory
        for (;;)
            (void)pause();
    if (emu.lost || emu.crashed || emu.open || emu.kept || emu.inside) {
        emu.ending = 1;
        (void)fflush(NULL);
        // The shim calls exit() itself when its simulator is not what it expects.
        if (emu.inside && !emu.lost) {
            char words[200], *said = words;
            last_words("xrt.log", words, sizeof words);
            said += strspn(words, " ");
            (void)dprintf(standard_error(), "millrace: xrt: XRT's hw_emu has given up%s%s\n",
                          *said ? ": " : "", said);
            status = EXIT_OF_A_DEVICE_ERROR;
        }
        // XRT's threads have loud words for the loss of their sockets and of the simulator.
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null >= 0)
            (void)dup2(null, STDERR_FILENO);
        remove_dir();
        kill_simulator();
        _exit(status);
    }
    remove_dir();
}

void mr_xrt_emulation_lost(void)
{
    if (!*emu.dir)
        return;
    emu.lost = 1;
    (void)on_exit(at_exit, (void *)(intptr_t)getpid()); // before what XRT has registered meanwhile
}

// A crash in a thread of XRT's, whose own handler would end the whole process group. The thread
// stays here, and the device's user hears of it; if there is none who listens, the process ends.
static void on_crash(int signal)
{
    static const char text[] = "millrace: xrt: XRT's hw_emu has crashed\n";
    if (gettid() == getpid()) { // not XRT's fault
        struct sigaction usual = {.sa_handler = SIG_DFL};
        (void)sigaction(signal, &usual, NULL);
        (void)raise(signal);
        return;
    }
    emu.crashed = 1;
    for (int i = 0; !emu.lost && i < PATIENCE_SECONDS * 10; i++)
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    if (!emu.lost) {
        (void)!write(standard_error(), text, sizeof text - 1);
        _exit(EXIT_OF_A_DEVICE_ERROR);
    }
    for (;;)
        (void)pause();
}

static void handle_crashes(void)
{
    struct sigaction crash = {.sa_handler = on_crash};
    (void)sigaction(SIGSEGV, &crash, NULL);
    (void)sigaction(SIGABRT, &crash, NULL);
    (void)sigaction(SIGFPE, &crash, NULL);
}

int mr_xrt_emulation_watch(struct mr_error *err)
{
    pid_t pid;
    char state, words[200];
    if (!*emu.dir)
        return 0;
    if (emu.inside && !emu.closing)
        handle_crashes(); // the shim sets up its own while it loads an xclbin
    // A crash may come of its end, which is seen a moment later.
    bool look = emu.looked++ % LOOKS == 0 || emu.crashed;
    if (look && !emu.closing && simulators(&pid, &state) > 0 && state == 'Z') {
        last_words("emulator.log", words, sizeof words);
        return mr_fail(err, MR_ERR_DEVICE, "the simulator behind XRT's hw_emu has ended%s%s",
                       *words ? ": " : "", words);
    }
    return emu.crashed && emu.looked_since++ >= MOMENT
               ? mr_fail(err, MR_ERR_DEVICE,
                         "XRT's hw_emu has crashed on its xclbin or on what its simulator answered")
               : 0;
}

static int write_file(const char *name, const char *text, size_t zeros, struct mr_error *err)
{
    char path[PATH];
    (void)snprintf(path, sizeof path, "%s/%s", emu.dir, name);
    FILE *f = fopen(path, "w");
    bool good = f && fputs(text, f) >= 0;
    for (size_t i = 0; good && i < zeros; i++)
        good = fputc('0', f) != EOF;
    if (f && fclose(f) != 0)
        good = false;
    return good ? 0 : mr_fail(err, MR_ERR_IO, "%s: %s", path, strerror(errno));
}

// kds, cdma: 2.13 only, its own scheduler, which does not wait whole seconds. packet_size, pad:
// Debian's shim keeps writing to a buffer that it has outgrown; with a first request that is the
// largest it never outgrows it. system_dpa: see write_ini(). runtime_log: messages come as errors.
static const char ini[] = "[Runtime]\nkds=false\ncdma=false\nruntime_log=null\n"
                          "[Emulation]\nsystem_dpa=%s\nkeep_run_dir=false\n"
                          "print_infos_in_console=false\nprint_warnings_in_console=false\n"
                          "packet_size=0x20000\n[Debug]\npad=";
enum {
    PAD = 1 << 18,
    UNPACKED = 5
}; // UNPACKED: times the size of an xclbin that is needed to unpack it
static const char emconfig[] =
    "{\"Version\": {\"FileVersion\": \"2.0\"}, \"Platform\": {\"Boards\": [{\"Devices\": [\n"
    " {\"Name\": \"millrace_emulation_1_0\", \"HalMajorVersion\": 2, \"HalMinorVersion\": 1,\n"
    "  \"DdrBanks\": [{\"Size\": \"16GB\"}]}]}]}}\n";

// Without system_dpa each register that is read takes a second request, for messages of the
// simulator. With it a thread sleeps ten seconds at a time, and closing waits for it, unless
// nosleep.so has made them short.
static int write_ini(struct mr_error *err)
{
    char text[sizeof ini + 8];
    const char *preload = getenv("LD_PRELOAD");
    bool short_sleep = preload && strstr(preload, "nosleep.so");
    (void)snprintf(text, sizeof text, ini, short_sleep ? "true" : "false");
    return write_file("xrt.ini", text, PAD, err);
}

// XRT looks for its shims in $XILINX_XRT/lib; Debian has them elsewhere.
static int link_libraries(const char *libraries, struct mr_error *err)
{
    char root[PATH], lib[PATH + 8], shim[PATH + 32];
    const char *own = getenv("XILINX_XRT");
    (void)snprintf(shim, sizeof shim, "%.500s%s/libxrt_hwemu.so.2", own ? own : libraries,
                   own ? "/lib" : "");
    if (access(shim, R_OK) != 0)
        return mr_fail(err, MR_ERR_DEVICE,
                       "xrt: %.300s is not there: 'make deps-xrt' installs it, or name an XRT that "
                       "has it in XILINX_XRT",
                       shim);
    if (own)
        return 0;
    (void)snprintf(root, sizeof root, "%s/xrt", emu.dir);
    (void)snprintf(lib, sizeof lib, "%s/lib", root);
    if (mkdir(root, 0700) != 0 || symlink(libraries, lib) != 0 ||
        setenv("XILINX_XRT", root, 1) != 0)
        return mr_fail(err, MR_ERR_IO, "%s: %s", lib, strerror(errno));
    return 0;
}

static int set(const char *name, const char *value, bool replace, struct mr_error *err)
{
    return setenv(name, value, replace) == 0
               ? 0
               : mr_fail(err, MR_ERR_MEMORY, "cannot set %s in the environment", name);
}

// Without room for the simulator unzip would ask the terminal what to do.
static int check_room(const char *xclbin, struct mr_error *err)
{
    struct stat st;
    struct statvfs fs;
    if (stat(xclbin, &st) != 0 || statvfs("/tmp", &fs) != 0)
        return 0; // XRT says it
    uint64_t need = (uint64_t)st.st_size * UNPACKED + PAD,
             have = (uint64_t)fs.f_bavail * fs.f_frsize;
    return have >= need
               ? 0
               : mr_fail(err, MR_ERR_IO,
                         "/tmp: %llu KiB are free; unpacking the simulator of %.200s takes about "
                         "%llu KiB",
                         (unsigned long long)have / 1024, xclbin, (unsigned long long)need / 1024);
}

int mr_xrt_emulation_begin(const char *libraries, const char *xclbin, struct mr_error *err)
{
    char path[PATH];
    if (!mr_xrt_emulated() || *emu.dir)
        return 0;
    if (strcmp(getenv("XCL_EMULATION_MODE"), "hw_emu") != 0)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "xrt: XCL_EMULATION_MODE=%.32s: only hw_emu runs the kernel; unset it for a "
                       "card",
                       getenv("XCL_EMULATION_MODE"));
    int rc = check_room(xclbin, err);
    if (rc < 0)
        return rc;
    const char *own_ini = getenv("XRT_INI_PATH");
    if (own_ini && access(own_ini, R_OK) != 0)
        return mr_fail(err, MR_ERR_IO,
                       "XRT_INI_PATH=%.300s: %s; name an ini that can be read, or unset it",
                       own_ini, strerror(errno));
    remove_left_behind();
    // Its name is the user's name for XRT, which puts the sockets into /tmp/$USER.
    (void)snprintf(emu.dir, sizeof emu.dir, "/tmp/millrace-%d-XXXXXX", (int)getpid());
    if (!mkdtemp(emu.dir)) {
        *emu.dir = 0;
        return mr_fail(err, MR_ERR_IO, "/tmp/millrace-*: %s; XRT's hw_emu needs /tmp",
                       strerror(errno));
    }
    int held = open(emu.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC); // as long as this process lives
    if (held >= 0)
        (void)flock(held, LOCK_SH);
    (void)snprintf(path, sizeof path, "%s/xrt.ini", emu.dir);
    rc = on_exit(at_exit, (void *)(intptr_t)getpid()) == 0
             ? 0
             : mr_fail(err, MR_ERR_MEMORY, "cannot register an exit function");
    if (rc == 0)
        rc = write_ini(err);
    if (rc == 0)
        rc = write_file("emconfig.json", emconfig, 0, err);
    if (rc == 0)
        rc = link_libraries(libraries, err);
    if (rc == 0)
        rc = set("XRT_INI_PATH", path, false, err);
    if (rc == 0)
        rc = set("EMCONFIG_PATH", emu.dir, false, err);
    if (rc == 0)
        rc = set("SDACCEL_EM_RUN_DIR", emu.dir, true, err);
    if (rc == 0)
        rc = set("MILLRACE_EMU_DIR", emu.dir, true, err);
    if (rc == 0)
        rc = set("USER", emu.dir + strlen("/tmp/"), true, err);
    if (rc < 0) {
        remove_dir();
        *emu.dir = 0;
    }
    return rc;
}

// ---- opening and closing ------------------------------------------------------------------------

// What goes to `fd` goes to a file until give_back().
static void divert(int fd, const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    emu.saved[fd] = file < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (emu.saved[fd] >= 0)
        (void)dup2(file, fd);
    if (file >= 0)
        (void)close(file);
}

static void give_back(int fd)
{
    if (emu.saved[fd] < 0)
        return;
    (void)dup2(emu.saved[fd], fd);
    (void)close(emu.saved[fd]);
    emu.saved[fd] = -1;
}

void mr_xrt_emulation_keep(bool kept)
{
    emu.kept = kept;
}

void mr_xrt_emulation_enter(bool closing)
{
    char log[PATH];
    if (!*emu.dir)
        return;
    emu.inside = true;
    emu.closing = closing;
    if (!closing)
        handle_crashes();
    // The shim speaks when the first device comes and the last one goes; meanwhile standard output
    // may be another thread's. What it, its assertions and unzip say of an xclbin that is not whole
    // is kept for the one line that is ours.
    if ((closing ? emu.open > 1 : emu.open > 0) || emu.kept)
        return;
    (void)fflush(stdout);
    divert(STDOUT_FILENO, "/dev/null");
    (void)snprintf(log, sizeof log, "%s/xrt.log", emu.dir);
    if (!closing)
        divert(STDERR_FILENO, log);
}

void mr_xrt_emulation_leave(bool opened, bool closed)
{
    char path[PATH];
    if (!*emu.dir)
        return;
    emu.open += opened - closed;
    emu.inside = emu.closing = false;
    if (emu.saved[STDOUT_FILENO] >= 0)
        (void)fflush(stdout);
    give_back(STDOUT_FILENO);
    give_back(STDERR_FILENO);
    if (!opened)
        return;
    (void)on_exit(at_exit, (void *)(intptr_t)getpid()); // before what XRT has registered meanwhile
    handle_crashes(); // the shim has put its own handlers in place, and a log beside the program
    if (mr_program_beside(path, sizeof path, "/emulation_debug.log"))
        (void)unlink(path);
}
