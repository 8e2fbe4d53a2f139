/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Millrace accelerator driver: its objects, which all files share. What a file does is in
 * its first lines, what it offers to others at the end of this one, or, with inline
 * functions or without the kernel's services, in a header of its own. Files use those of
 * the layers below alone (docs/board/driver-inside.md#layers; tests/lint/driver-layers.sh).
 *
 * Lifetime: struct millrace_device is counted by the PCI driver and by each
 * open context, since files may outlive the device. Whoever touches registers
 * or DMA holds `alive` for reading and looks at `gone` and `paused` first; it is
 * never held while waiting for the device, so whoever takes it for writing has
 * it soon. Removal then takes each context's hardware down; from then on its file
 * can only be closed. What ends DMA (closing a file, removal, the last reference
 * to a mapping) is serialised by `down_lock`: where the context is not `down`
 * yet, the device is still there.
 *
 * Pausing: `paused` is set with `alive` held for writing, so that nobody touches
 * the device any more but who paused it and, under `down_lock`, who closes a file.
 * Once rings and bus mastering are off the device is `quiet`: closing a file then
 * leaves its registers alone. Who pauses and resumes holds the PCI device's own
 * lock, as the PCI core does for resets, bus errors, suspend and removal. So
 * `reset_work` and `recovery_work` only try for it: removal holds it and waits for them.
 *
 * Locks, outer first: the PCI device's lock, millrace_device.alive,
 * millrace_context.lock (extents, mappings, submission), millrace_device.down_lock,
 * .lock (the table of contexts, also taken by interrupt threads),
 * millrace_queue.lock (jobs and completion). A ring's `timeout` work is waited
 * for under down_lock, so it only tries for `alive` and takes no down_lock.
 * .dump_lock is held while a program reads the dump, so the driver's own work only
 * tries for it; nothing is taken under it.
 */
#ifndef MILLRACE_H
#define MILLRACE_H

#include <linux/dma-buf.h>
#include <linux/eventfd.h>
#include <linux/genalloc.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/stddef.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "include/uapi/millrace.h"
#include "check.h"
#include "millrace_hw.h"

#define MILLRACE_QUEUES_MAX 64
#define MILLRACE_CHANNELS_MAX 16
#define MILLRACE_RING_LOG2 6
#define MILLRACE_RING BIT(MILLRACE_RING_LOG2)
#define MILLRACE_OPS_MAX 32U
#define MILLRACE_JOBS_MAX 64U
#define MILLRACE_EXTENTS_MAX 4096U
#define MILLRACE_DESC_BYTES MR_PCIE_RUN_BYTES /* of a run, at most */
#define MILLRACE_MAP_BYTES_MAX SZ_64M

/* millrace_device.flags, bits: a reset is on its way, nothing new is given to the device. */
#define MILLRACE_RESETTING 0
#define MILLRACE_RECOVERING 1 /* paused by an error of the bus; under the PCI device's lock */

enum millrace_state { MILLRACE_RUNNING, MILLRACE_PAUSED, MILLRACE_DEAD };

struct millrace_context;
struct millrace_install;

/* What the device says it is, when it was taken; after a reset it must say the same. */
struct millrace_hw {
	u32 version;
	u32 engine_at, queues_at, scrub_at; /* from the capability list */
	u32 queues, channels, mem_log2;
	u32 engine[MILLRACE_INFO_ENGINE_WORDS];
};

struct millrace_device {
	struct kref refs;
	struct pci_dev *pdev;
	struct miscdevice misc;
	char name[20];
	int index;

	struct rw_semaphore alive;
	bool gone; /* removed */
	bool paused; /* being reset, or suspended */
	int dead; /* why the last reset failed, or 0 */
	bool quiet; /* under down_lock: rings and bus mastering are off */
	unsigned long flags; /* MILLRACE_RESETTING, _RECOVERING */
	wait_queue_head_t resumed; /* not paused any more, or gone */
	struct delayed_work reset_work, recovery_work;
	u64 resets; /* and resumes that went well */
	void __iomem *bar;
	size_t bar_bytes;

	struct millrace_hw hw;
	struct mutex down_lock; /* what ends DMA */
	struct mutex lock; /* contexts */
	struct millrace_context *contexts[MILLRACE_QUEUES_MAX];
	struct gen_pool *pools[MILLRACE_CHANNELS_MAX];
	u64 scrub_run, scrub_zeros[MILLRACE_CHANNELS_MAX], scrub_bytes; /* on the card */
	struct millrace_install *install; /* memory to put it there with */
	dma_addr_t install_dma;
	struct mutex dump_lock; /* dump */
	char *dump; /* text, until it is read */
	size_t dump_bytes;

	int vectors; /* 0: polled */
	struct timer_list poll;
	struct work_struct poll_work;
	struct dentry *debugfs;
};

/* User memory that is pinned. It needs neither context nor device. */
struct millrace_memory {
	struct kref refs; /* a mapping, and each dma-buf that was made from it */
	struct mm_struct *mm; /* that is charged */
	struct page **pages;
	unsigned long npages;
	u64 bytes;
	unsigned int offset; /* within the first page */
	bool written; /* by devices */
};

/* What copies go to and from: user memory or a dma-buf, mapped and listed for the device. */
struct millrace_map_object {
	struct kref refs; /* the handle, and each job that uses it */
	struct millrace_context *ctx;
	struct millrace_memory *memory; /* or */
	struct dma_buf *buf;
	struct dma_buf_attachment *attach;
	bool foreign; /* another driver's dma-buf: it synchronises its memory itself */
	u64 bytes;
	u32 flags;
	struct sg_table own; /* of memory */
	struct sg_table *sgt; /* own or the attachment's, NULL: not mapped */
	__le32 *list; /* the device's segments, 16 bytes each */
	dma_addr_t list_dma;
	size_t list_bytes;
	u32 segments;
	struct list_head link; /* of all in the context, under down_lock */
};

/* A submission, from ring entry `first` on. */
struct millrace_job {
	struct list_head link;
	u64 id;
	u32 first, count, done;
	bool finished;
	bool clear; /* the driver's own, of memory for a new buffer */
	bool orphan; /* whoever waited for it was killed: freed as soon as it is finished */
	u32 status, op, error, sticky;
	u64 addr;
	u64 counters[MILLRACE_COUNTERS_MAX];
	struct millrace_map_object *maps[MILLRACE_OPS_MAX];
	struct {
		u64 offset, bytes;
	} written[MILLRACE_OPS_MAX]; /* within the mapping, by the device */
};

/* An entry of the ring, as it is given to the device. */
struct millrace_entry {
	u64 host, card;
	u32 op, bytes, segments, skip;
};

struct millrace_queue {
	u32 index;
	struct millrace_entry entries[MILLRACE_RING]; /* of the driver, by number */
	__le32 *ring;
	void *completions;
	void *descriptors; /* of runs, one slot an entry */
	dma_addr_t ring_dma, completions_dma, descriptors_dma;
	u32 base, head, tail; /* enabled at, completed, submitted: check.h */
	bool stopping; /* cancelled entries are no completions */
	bool bad; /* has completed what it cannot have: to be stopped */
	bool ending; /* does not stop, so its jobs fail with the reset */
	bool closing; /* stopped because its context goes */
	unsigned int losses; /* since its last completion: how often the device had lost it */
	unsigned long turn, progress; /* jiffies: last completion; that, or others' work */
	bool known; /* the ring had not lost its state when it was told to stop */
	spinlock_t lock; /* all of these, jobs, error */
	struct list_head jobs; /* not yet waited for, oldest first */
	u32 job_count;
	u64 next_job;
	int error; /* the ring was stopped */
	wait_queue_head_t wait;
	struct eventfd_ctx *eventfd;
	struct delayed_work timeout;
	u64 doorbells, interrupts, timeouts;
};

struct millrace_context {
	struct millrace_device *dev;
	struct mutex lock; /* extents, mappings, submission */
	bool down; /* its hardware is gone */
	pid_t pid;
	struct millrace_extent *extents;
	unsigned int extent_count;
	struct list_head clearing; /* memory that is not zeroed yet, under down_lock */
	struct xarray maps;
	struct list_head map_list;
	struct millrace_queue queue;
};

/* verify.c: what the device says about itself. */
/* Nothing is written but SCRATCH until all the rest of it holds; fills hw. */
int millrace_verify(struct millrace_device *dev, struct millrace_hw *hw);
/* Rings that an earlier driver left running are stopped before bus mastering. */
int millrace_verify_idle(struct millrace_device *dev);
/* After a reset: whether the device is what it was, and at rest. */
int millrace_verify_again(struct millrace_device *dev);

/* install.c: puts the scrub program on the card. */
int millrace_install_init(struct millrace_device *dev);
void millrace_install_exit(struct millrace_device *dev);
int millrace_install_scrub(struct millrace_device *dev);

/* memory.c: pinned user memory. */
/* Pins it. Faults may take their time, so nothing is held. */
struct millrace_memory *millrace_memory_create(const struct millrace_map *arg);
void millrace_memory_put(struct millrace_memory *memory);

/* dmabuf.c: mappings as dma-bufs, and dma-bufs as mappings. */
int millrace_export(struct millrace_context *ctx, struct millrace_export *arg, struct file **file);
int millrace_import(struct millrace_context *ctx, struct millrace_import *arg);

/* complete.c: what comes back from the device. */
bool millrace_queue_reap(struct millrace_context *ctx);

/* irq.c: interrupts, or a timer in their place. */
int millrace_irq_init(struct millrace_device *dev);
void millrace_irq_exit(struct millrace_device *dev);
void millrace_irq_kick(struct millrace_device *dev); /* after a doorbell */

/* dump.c: what was found when a ring had to be stopped. */
extern const struct file_operations millrace_dump_fops; /* debugfs, without devcoredump */
void millrace_dump(struct millrace_device *dev, const char *reason);
void millrace_dump_free(struct millrace_device *dev);

/* queue.c: a ring with its jobs. */
int millrace_queue_init(struct millrace_context *ctx, u32 index);
void millrace_queue_quiesce(struct millrace_context *ctx);
void millrace_queue_settle(struct millrace_context *ctx, bool reachable);
void millrace_queue_restart(struct millrace_context *ctx);
void millrace_queue_down(struct millrace_context *ctx);
unsigned long millrace_tick_period(void);

/* submit.c: operations into entries. */
/* `descriptors`: of the runs among ops, MILLRACE_DESC_BYTES each. */
int millrace_queue_submit(struct millrace_context *ctx, const struct millrace_op *ops,
			  u32 count, const void *descriptors, u64 *job);
/* With neither context nor device held: holds them for each step, and waits without. */
int millrace_queue_clear(struct millrace_context *ctx, u64 addr, u64 bytes);

/* wait.c: waiting for a job. */
int millrace_queue_wait(struct millrace_context *ctx, struct millrace_wait *wait,
			void __user *user);

/* card.c: card memory. */
int millrace_card_init(struct millrace_device *dev);
void millrace_card_exit(struct millrace_device *dev);
int millrace_card_alloc(struct millrace_context *ctx, struct millrace_alloc *arg);
int millrace_card_free(struct millrace_context *ctx, u64 addr);
void millrace_card_free_all(struct millrace_context *ctx);

/* context.c: an open file. */
int millrace_context_open(struct inode *inode, struct file *file);
int millrace_context_release(struct inode *inode, struct file *file);
void millrace_context_down(struct millrace_context *ctx);

/* ioctl.c: what a program may do with an open file. */
extern const struct file_operations millrace_fops;

/* reset.c: work off the device, and back. */
extern const struct pci_error_handlers millrace_error_handlers;
void millrace_reset_init(struct millrace_device *dev);
void millrace_reset_cancel(struct millrace_device *dev);
void millrace_pause(struct millrace_device *dev, bool reachable);
int millrace_resume(struct millrace_device *dev);
const char *millrace_state(struct millrace_device *dev);
void millrace_fail_all(struct millrace_device *dev, int error);

/* pm.c: suspend and resume. */
extern const struct dev_pm_ops millrace_pm_ops;

/* sysfs.c: files of the device in sysfs. */
extern const struct attribute_group *millrace_groups[];

/* debugfs.c: files of the device in debugfs. */
void millrace_debugfs_begin(void); /* of the module */
void millrace_debugfs_end(void);
void millrace_debugfs_init(struct millrace_device *dev);
void millrace_debugfs_exit(struct millrace_device *dev);

#endif
