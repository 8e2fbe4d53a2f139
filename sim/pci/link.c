// SPDX-License-Identifier: Apache-2.0
// QEMU as a child, and what it says over its sockets. The protocol of x-pci-proxy-dev is QEMU's own
// (its hw/remote/mpqemu-link.c): a header of 16 bytes, then `size` bytes, descriptors beside it.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/pci/config.h"
#include "sim/pci/fault.h"
#include "sim/pci/fault_dma.h"
#include "sim/pci/fault_function.h"
#include "sim/pci/qemu.h"
#include "sim/pci/ram.h"

enum command { SYNC_SYSMEM, RET, CFG_WRITE, CFG_READ, BAR_WRITE, BAR_READ, SET_IRQFD, RESET };
enum { MAX_FDS = 8, CHILD_PROXY = 3, CHILD_QTEST = 4, CHILD_QMP = 5, PASS_BIT = 0x20 };

struct header {
    int32_t command;
    uint32_t pad;
    uint64_t size;
};

union payload {
    struct {
        uint64_t gpa[MAX_FDS], size[MAX_FDS];
        int64_t offset[MAX_FDS];
    } memory;
    struct {
        uint32_t addr, value;
        int32_t bytes;
    } config;
    struct {
        uint64_t addr, value;
        uint32_t bytes;
        uint8_t memory;
    } bar;
};
_Static_assert(sizeof(struct header) == 16 && sizeof(union payload) == 192, "QEMU's layout");

static const struct vm_function *function;
static int proxy = -1, qtest = -1, qmp = -1;

static bool receive_all(int fd, void *data, size_t bytes)
{
    for (char *p = data; bytes;) {
        ssize_t n = read(fd, p, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            vm_broken = true;
            return false;
        }
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

// The function, as a new one, in its slot.
static void plug(void)
{
    int p[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p)) {
        perror("vm: socketpair");
        vm_broken = true;
        return;
    }
    proxy = p[0];
    vm_config_reset();
    function->reset();
    vm_monitor("{\"execute\":\"getfd\",\"arguments\":{\"fdname\":\"acc\"}}\n", p[1]);
    vm_monitor("{\"execute\":\"device_add\",\"arguments\":{\"driver\":\"x-pci-proxy-dev\","
               "\"id\":\"acc0\",\"bus\":\"rp0\",\"fd\":\"acc\"}}\n",
               -1);
    close(p[1]);
}

// ---- accesses -----------------------------------------------------------------------------------

static void answer(uint64_t value)
{
    struct {
        struct header h;
        uint64_t value;
    } reply = {{RET, 0, 8}, value};
    (void)vm_send(proxy, &reply, sizeof reply);
}

static uint32_t word_read(uint32_t offset)
{
    uint32_t value;
    return vm_msix_read(offset, &value) ? value : function->read(offset);
}

static uint64_t bar_read(uint64_t addr, unsigned bytes)
{
    uint32_t offset;
    uint64_t value = ~0ull;
    vm_counts.bar_reads++;
    if (!vm_fault_bar_access(true) && vm_config_bar(addr, &offset)) {
        value = word_read(offset & ~3u);
        if (bytes == 8)
            value |= (uint64_t)word_read(offset + 4) << 32;
        value >>= 8 * (offset & 3);
    }
    // A completion pushes the interrupts that were sent before it.
    vm_qtest_wait();
    return value;
}

static void bar_write(uint64_t addr, uint64_t value, unsigned bytes)
{
    uint32_t offset;
    vm_counts.bar_writes++;
    if (vm_fault_bar_access(false) || !vm_config_bar(addr, &offset))
        return;
    for (unsigned at = 0; at < bytes; at += 4) {
        unsigned lane = (offset + at) & 3, n = bytes - at < 4 ? bytes - at : 4;
        uint32_t word = (uint32_t)(value >> (8 * at)) << (8 * lane);
        if (!vm_msix_write((offset + at) & ~3u, word))
            function->write((offset + at) & ~3u, word, ((1u << n) - 1) << lane);
    }
}

static bool receive(struct header *h, union payload *d, int *fds, unsigned *nfds)
{
    char control[CMSG_SPACE(MAX_FDS * sizeof(int))];
    struct iovec iov = {h, sizeof *h};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(proxy, &m, MSG_CMSG_CLOEXEC);
    *nfds = 0;
    if (n <= 0)
        return false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
            *nfds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            memcpy(fds, CMSG_DATA(c), *nfds * sizeof(int));
        }
    if (!receive_all(proxy, (char *)h + n, sizeof *h - (size_t)n))
        return false;
    if (h->size > sizeof *d) {
        fprintf(stderr, "vm: message %d of %llu bytes\n", h->command, (unsigned long long)h->size);
        return false;
    }
    memset(d, 0, sizeof *d);
    return receive_all(proxy, d, h->size);
}

// One message of QEMU's; false at the end.
static bool serve(void)
{
    struct header h;
    union payload d;
    int fds[MAX_FDS];
    unsigned nfds;
    uint32_t value;
    if (!receive(&h, &d, fds, &nfds))
        return false;
    switch (h.command) {
    case SYNC_SYSMEM: // no answer
        return vm_ram_map(nfds, d.memory.gpa, d.memory.size, d.memory.offset, fds);
    case SET_IRQFD: // no answer; they need KVM
        for (unsigned i = 0; i < nfds; i++)
            close(fds[i]);
        break;
    case CFG_READ:
        if (!vm_fault_config_read(d.config.addr, (unsigned)d.config.bytes, &value))
            value = vm_config_read(d.config.addr, (unsigned)d.config.bytes);
        answer(value);
        break;
    case CFG_WRITE:
        if (!vm_fault_config_write(d.config.addr, d.config.value, (unsigned)d.config.bytes) &&
            vm_config_write(d.config.addr, d.config.value, (unsigned)d.config.bytes)) {
            vm_counts.resets++;
            function->reset();
        }
        answer(0);
        break;
    case BAR_READ:
        answer(bar_read(d.bar.addr, d.bar.bytes));
        break;
    case BAR_WRITE:
        answer(0); // posted: the processor goes on, the function sees it later, in order
        bar_write(d.bar.addr, d.bar.value, d.bar.bytes);
        break;
    case RESET: // of the machine or the bus above
        vm_config_reset();
        function->reset();
        answer(0);
        break;
    default:
        fprintf(stderr, "vm: message %d is not known\n", h.command);
        return false;
    }
    return true;
}

// ---- the child ----------------------------------------------------------------------------------

static pid_t start(char *const *argv)
{
    int p[2], t[2], q[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, t) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, q)) {
        perror("vm: socketpair");
        return -1;
    }
    // Nothing is left behind: whoever started this process takes it along, whatever he dies of, and
    // it takes QEMU.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        perror("vm: prctl");
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        perror("vm: fork");
    if (pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
            _exit(127);
        int a = fcntl(p[1], F_DUPFD, 10), b = fcntl(t[1], F_DUPFD, 10),
            c = fcntl(q[1], F_DUPFD, 10);
        if (dup2(a, CHILD_PROXY) < 0 || dup2(b, CHILD_QTEST) < 0 || dup2(c, CHILD_QMP) < 0)
            _exit(127);
        close(a);
        close(b);
        close(c);
        execvp(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    close(p[1]);
    close(t[1]);
    close(q[1]);
    proxy = p[0];
    qtest = t[0];
    qmp = q[0];
    vm_qemu_init(qtest, qmp);
    return pid;
}

// The function's socket has ended: false at the end of the machine.
static bool gone(void)
{
    if (vm_broken || !vm_replug())
        return false;
    close(proxy);
    proxy = -1;
    return true;
}

static void loop(bool verbose)
{
    for (bool work = false; !vm_broken;) {
        struct pollfd p[3] = {{proxy, POLLIN, 0}, {qtest, POLLIN, 0}, {qmp, POLLIN, 0}};
        int n = poll(p, 3, work ? 0 : proxy < 0 ? VM_REPLUG_MS : vm_fault_timeout());
        if (n < 0 && errno != EINTR)
            return;
        vm_fault_tick();
        if (p[1].revents & POLLIN)
            vm_qtest_read();
        if (p[2].revents)
            vm_qmp_read(verbose);
        if (p[0].revents) { // the guest first
            work = serve();
            if (!work && !gone())
                return;
        } else if (proxy < 0 && n == 0) {
            plug(); // nothing has been heard for as long as it takes to be rid of the old one
        } else if (work) {
            work = function->step();
        }
    }
}

int vm_run(const struct vm_function *f, const struct vm_options *options)
{
    static const char hello[] = "{\"execute\":\"qmp_capabilities\"}\n";
    int status;
    function = vm_fault_init(f);
    vm_config_init(options->caps, options->vectors);
    pid_t pid = start(options->qemu);
    if (pid < 0)
        return 128;
    vm_monitor(hello, -1);
    loop(options->verbose);
    close(proxy);
    if (waitpid(pid, &status, 0) != pid) {
        perror("vm: waitpid");
        return 129;
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "vm: QEMU ended by signal %d\n", WTERMSIG(status));
        return 130;
    }
    // isa-debug-exit: the guest's byte v becomes (v << 1) | 1. Without PASS_BIT the guest did not
    // say anything: it panicked or was reset.
    int code = WEXITSTATUS(status);
    if (!(code & 1) || !(code >> 1 & PASS_BIT)) {
        fprintf(stderr, "vm: the guest ended without a status (QEMU's is %d)\n", code);
        return 131;
    }
    return (code >> 1) & (PASS_BIT - 1);
}
