/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Millrace accelerator: what user space and driver say to each other.
 *
 * Every structure has one layout on 32 and 64 bit, without holes. Fields called
 * reserved, and bits of flags that have no name here, must be zero and are
 * refused otherwise. Later versions only add ioctls, flags and reserved fields
 * that get a meaning; MILLRACE_IOC_INFO says what there is.
 *
 * A file descriptor is a context: card memory, mappings and jobs belong to it,
 * and no other context can reach them.
 */
#ifndef _UAPI_MILLRACE_H
#define _UAPI_MILLRACE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* 1: all up to MILLRACE_IOC_EVENTFD; 2: MILLRACE_IOC_EXPORT, MILLRACE_IOC_IMPORT */
#define MILLRACE_UAPI_VERSION 2

/* Engine registers in struct millrace_info, from MAGIC (0x010) on. */
#define MILLRACE_INFO_ENGINE_WORDS 16
#define MILLRACE_COUNTERS_MAX 24

/**
 * struct millrace_info - what device and driver are
 * @uapi_version: out: MILLRACE_UAPI_VERSION of the driver
 * @device_version: out: major << 16 | minor of the register interface
 * @channels: out: memory channels of the card
 * @ops_max: out: most operations of one submission
 * @jobs_max: out: most submissions that have not been waited for
 * @counters: out: counters that a run reports
 * @channel_bytes: out: memory of one channel
 * @map_bytes_max: out: largest mapping
 * @engine: out: the engine's registers 0x010 to 0x04c, read when the driver
 *	took the device: magic, version, geometry
 * @reserved: out: zero
 */
struct millrace_info {
	__u32 uapi_version;
	__u32 device_version;
	__u32 channels;
	__u32 ops_max;
	__u32 jobs_max;
	__u32 counters;
	__u64 channel_bytes;
	__u64 map_bytes_max;
	__u32 engine[MILLRACE_INFO_ENGINE_WORDS];
	__u64 reserved[8];
};

/**
 * struct millrace_alloc - card memory, zeroed
 * @bytes: in: size
 * @channel: in: memory channel
 * @flags: in: zero
 * @addr: out: card address, a multiple of 4096
 */
struct millrace_alloc {
	__u64 bytes;
	__u32 channel;
	__u32 flags;
	__u64 addr;
};

/**
 * struct millrace_free - gives card memory back; -EBUSY while a job is under way
 * @addr: in: from struct millrace_alloc
 * @reserved: in: zero
 */
struct millrace_free {
	__u64 addr;
	__u64 reserved;
};

/* The device reads, or writes, the mapped memory. */
#define MILLRACE_MAP_READ 0x1U
#define MILLRACE_MAP_WRITE 0x2U

/**
 * struct millrace_map - pins user memory and makes it reachable for copies
 * @user: in: address, of any alignment
 * @bytes: in: size
 * @flags: in: MILLRACE_MAP_READ, MILLRACE_MAP_WRITE or both
 * @handle: out: of the mapping, not zero
 *
 * The memory counts against RLIMIT_MEMLOCK until it is unmapped. What the
 * device has written can be read when the job has been waited for.
 */
struct millrace_map {
	__u64 user;
	__u64 bytes;
	__u32 flags;
	__u32 handle;
};

/**
 * struct millrace_unmap - ends a mapping, once no job uses it any more
 * @handle: in: from struct millrace_map
 * @reserved: in: zero
 */
struct millrace_unmap {
	__u32 handle;
	__u32 reserved;
};

/* @op of struct millrace_op */
#define MILLRACE_OP_COPY_IN 1	/* mapping to card */
#define MILLRACE_OP_COPY_OUT 2	/* card to mapping */
#define MILLRACE_OP_RUN 3	/* a program of the engine */

/**
 * struct millrace_op - one operation of a job
 * @op: in: MILLRACE_OP_*
 * @flags: in: zero
 * @addr: in: card address; of a run, where its descriptor goes (multiple of 64)
 * @bytes: in: size, of a run that of its descriptor
 * @offset: in: first byte within the mapping; of a run, the user address of its
 *	descriptor, which is read before the ioctl returns
 * @handle: in: mapping; of a run, zero
 * @reserved: in: zero
 */
struct millrace_op {
	__u32 op;
	__u32 flags;
	__u64 addr;
	__u64 bytes;
	__u64 offset;
	__u32 handle;
	__u32 reserved;
};

/**
 * struct millrace_submit - a job: operations that are done in order
 * @ops: in: user address of an array of struct millrace_op
 * @count: in: its length, 1 to ops_max of struct millrace_info
 * @flags: in: zero
 * @job: out: number of the job, counting from 1
 *
 * When an operation fails, the rest of the job is not begun. -EAGAIN: too many
 * jobs are under way or have not been waited for.
 */
struct millrace_submit {
	__u64 ops;
	__u32 count;
	__u32 flags;
	__u64 job;
};

/* @status of struct millrace_wait: what the first operation that failed met */
#define MILLRACE_STATUS_OK 0
#define MILLRACE_STATUS_ENTRY 1		/* the device does not know the operation */
#define MILLRACE_STATUS_WINDOW 2	/* card address out of range */
#define MILLRACE_STATUS_SEGMENTS 3	/* mapping too short */
#define MILLRACE_STATUS_READ 4		/* a read was refused */
#define MILLRACE_STATUS_WRITE 5		/* a write was refused */
#define MILLRACE_STATUS_ENGINE 6	/* the engine's first error is in @error */
#define MILLRACE_STATUS_CANCELLED 7	/* ended before or while it ran */

/**
 * struct millrace_wait - waits for a job and takes its result
 * @job: in: number of the job; each can be taken once
 * @deadline_ns: in: CLOCK_MONOTONIC time to give up with -ETIMEDOUT; the job
 *	goes on and can be waited for again. Zero only asks, negative: no end
 * @flags: in: zero
 * @status: out: MILLRACE_STATUS_*
 * @op: out: index of the operation that failed
 * @error: out: the engine's register ERROR
 * @addr: out: address of the error
 * @sticky: out: the engine's register STICKY after the last run
 * @reserved: in, out: zero
 * @counters: out: of the last run of the job, zero without one
 *
 * Fails with -EIO when the context was stopped, -ENODEV when the device is gone.
 */
struct millrace_wait {
	__u64 job;
	__s64 deadline_ns;
	__u32 flags;
	__u32 status;
	__u32 op;
	__u32 error;
	__u64 addr;
	__u32 sticky;
	__u32 reserved;
	__u64 counters[MILLRACE_COUNTERS_MAX];
};

/**
 * struct millrace_eventfd - an eventfd that counts jobs that have ended
 * @fd: in: of eventfd(2), or -1 for none
 * @reserved: in: zero
 */
struct millrace_eventfd {
	__s32 fd;
	__u32 reserved;
};

/**
 * struct millrace_export - a mapping of user memory as a dma-buf
 * @handle: in: from struct millrace_map
 * @flags: in: MILLRACE_MAP_READ: importers may only read it; with
 *	MILLRACE_MAP_WRITE: also write it
 * @fd: in: zero; out: the dma-buf, close-on-exec
 * @reserved: in: zero
 *
 * The memory must begin and end at a page, and stays pinned and counted until
 * both the mapping and the dma-buf are gone.
 */
struct millrace_export {
	__u32 handle;
	__u32 flags;
	__s32 fd;
	__u32 reserved;
};

/**
 * struct millrace_import - a dma-buf of any exporter as a mapping
 * @fd: in: the dma-buf, which can then be closed
 * @flags: in: MILLRACE_MAP_READ, MILLRACE_MAP_WRITE or both
 * @handle: in: zero; out: of the mapping, until MILLRACE_IOC_UNMAP
 * @reserved: in: zero
 * @bytes: in: zero; out: size of the dma-buf
 */
struct millrace_import {
	__s32 fd;
	__u32 flags;
	__u32 handle;
	__u32 reserved;
	__u64 bytes;
};

#define MILLRACE_IOC_INFO _IOR('R', 0x40, struct millrace_info)
#define MILLRACE_IOC_ALLOC _IOWR('R', 0x41, struct millrace_alloc)
#define MILLRACE_IOC_FREE _IOW('R', 0x42, struct millrace_free)
#define MILLRACE_IOC_MAP _IOWR('R', 0x43, struct millrace_map)
#define MILLRACE_IOC_UNMAP _IOW('R', 0x44, struct millrace_unmap)
#define MILLRACE_IOC_SUBMIT _IOWR('R', 0x45, struct millrace_submit)
#define MILLRACE_IOC_WAIT _IOWR('R', 0x46, struct millrace_wait)
#define MILLRACE_IOC_EVENTFD _IOW('R', 0x47, struct millrace_eventfd)
#define MILLRACE_IOC_EXPORT _IOWR('R', 0x48, struct millrace_export)
#define MILLRACE_IOC_IMPORT _IOWR('R', 0x49, struct millrace_import)

#endif
