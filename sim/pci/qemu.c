// SPDX-License-Identifier: Apache-2.0
#include "sim/pci/qemu.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/pci/fault.h"
#include "sim/pci/vm.h"

enum { UNANSWERED_MAX = 64 };

struct vm_counts vm_counts;
bool vm_broken;
static int qtest = -1, qmp = -1;
static int unanswered; // commands to qtest
static bool replug;    // the function, when it has gone

void vm_qemu_init(int want_qtest, int want_qmp)
{
    qtest = want_qtest;
    qmp = want_qmp;
}

bool vm_send(int fd, const void *data, size_t bytes)
{
    for (const char *p = data; bytes;) {
        ssize_t n = send(fd, p, bytes, MSG_NOSIGNAL);
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

// ---- interrupts ---------------------------------------------------------------------------------

// qtest answers each command with a line.
void vm_qtest_read(void)
{
    char text[512];
    ssize_t n = read(qtest, text, sizeof text - 1);
    if (n <= 0) {
        vm_broken = true;
        return;
    }
    text[n] = 0;
    for (ssize_t i = 0; i < n; i++)
        unanswered -= text[i] == '\n';
    if (strstr(text, "FAIL"))
        fprintf(stderr, "vm: qtest: %s", text);
}

void vm_message(uint64_t addr, uint32_t data)
{
    char text[64];
    int n = snprintf(text, sizeof text, "writel 0x%llx 0x%x\n", (unsigned long long)addr, data);
    vm_counts.interrupts++;
    if (vm_send(qtest, text, (size_t)n))
        unanswered++;
    while (unanswered > UNANSWERED_MAX && !vm_broken) // QEMU stops for answers that nobody takes
        vm_qtest_read();
}

void vm_qtest_wait(void)
{
    while (unanswered > 0 && !vm_broken)
        vm_qtest_read();
}

// ---- orders -------------------------------------------------------------------------------------

void vm_monitor(const char *line, int fd)
{
    char control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec iov = {(void *)(uintptr_t)line, strlen(line)};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fd < 0) {
        (void)vm_send(qmp, line, strlen(line));
        return;
    }
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    if (sendmsg(qmp, &m, MSG_NOSIGNAL) != (ssize_t)strlen(line))
        vm_broken = true;
}

void vm_order(unsigned order)
{
#define AER(error)                                                                                 \
    "{\"execute\":\"human-monitor-command\",\"arguments\":"                                        \
    "{\"command-line\":\"pcie_aer_inject_error rp0 " error "\"}}\n"
    static const char unplug[] = "{\"execute\":\"device_del\",\"arguments\":{\"id\":\"acc0\"}}\n";
    static const char *const orders[VM_ORDERS] = {
        [VM_ORDER_UNPLUG] = unplug,
        [VM_ORDER_REPLUG] = unplug,
        [VM_ORDER_AER_NONFATAL] = AER("COMP_TIME"),
        [VM_ORDER_AER_FATAL] = AER("MALF_TLP"),
    };
    if (order < VM_ORDERS && orders[order])
        vm_monitor(orders[order], -1);
    replug = order == VM_ORDER_REPLUG;
}

bool vm_replug(void)
{
    bool wanted = replug;
    replug = false;
    return wanted;
}

// A machine that is suspended to RAM is woken: it has no button that somebody could press.
void vm_qmp_read(bool verbose)
{
    char text[4096];
    ssize_t n = read(qmp, text, sizeof text - 1);
    if (n <= 0) {
        vm_broken = true;
        return;
    }
    text[n] = 0;
    if (verbose)
        fprintf(stderr, "vm: qmp: %s", text);
    if (strstr(text, "\"event\": \"SUSPEND\""))
        vm_monitor("{\"execute\":\"system_wakeup\"}\n", -1);
}
