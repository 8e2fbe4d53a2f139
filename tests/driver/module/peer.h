/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* What tests/driver/peer.c asks of the module beside it. */
#ifndef TESTS_DRIVER_MODULE_PEER_H
#define TESTS_DRIVER_MODULE_PEER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* A callback of the driver's pci_error_handlers, called as the PCI core does. */
enum { PEER_ERROR_DETECTED, PEER_MMIO_ENABLED, PEER_SLOT_RESET, PEER_RESUME };
/* Linux's pci_channel_state_t and pci_ers_result_t. */
enum { PEER_NORMAL = 1, PEER_FROZEN, PEER_PERM_FAILURE };
enum { PEER_CAN_RECOVER = 2, PEER_NEED_RESET, PEER_DISCONNECT, PEER_RECOVERED };

struct peer_call {
	__u32 callback, state;
	__u32 result; /* out */
};

/* A dma-buf is attached and mapped for a device; one for each open file. */
struct peer_attach {
	__s32 fd;
	__u32 write; /* the device may */
	__u32 dynamic; /* by an importer that could bear its being moved */
};

/* Bytes as the device reads or writes them; or through the kernel's own mapping of the buffer. */
struct peer_access {
	__u64 user, offset;
	__u32 bytes, write, vmap;
	__u32 pad;
};

#define PEER_IOC_CALL _IOWR('P', 1, struct peer_call)
#define PEER_IOC_ATTACH _IOW('P', 2, struct peer_attach)
#define PEER_IOC_ACCESS _IOW('P', 3, struct peer_access)
#define PEER_IOC_UNMAP _IO('P', 4) /* it stays attached */
#define PEER_IOC_DETACH _IO('P', 5)

#endif
