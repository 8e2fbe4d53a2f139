// SPDX-License-Identifier: Apache-2.0
// What QEMU is told, and what it says, beside the function's accesses: interrupts by qtest, orders
// by its monitor (QMP). Everything else of a machine stands above it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern bool vm_broken; // a socket: the machine is at its end

void vm_qemu_init(int qtest, int qmp); // sockets
bool vm_send(int fd, const void *data, size_t bytes);

void vm_message(uint64_t addr, uint32_t data); // a message signalled interrupt
void vm_qtest_read(void);                      // when it has said something
void vm_qtest_wait(void);                      // until all interrupts have been delivered

void vm_monitor(const char *line, int fd); // a line, and a descriptor beside it (-1: none)
void vm_order(unsigned order);             // VM_ORDER_*
bool vm_replug(void);                      // whether one says that the function comes again; once
void vm_qmp_read(bool verbose);            // when it has said something
