/* SPDX-License-Identifier: GPL-2.0 */
/* Pure logic, without the kernel's services: also built and tested in user space. */
#ifndef MILLRACE_CHECK_H
#define MILLRACE_CHECK_H

#include <linux/types.h>

/* Card memory of a context. */
struct millrace_extent {
	u64 addr;
	u64 bytes;
};

/* Whether [addr, addr + bytes) lies in one of the extents. */
bool millrace_window_ok(const struct millrace_extent *extents, unsigned int count,
			u64 addr, u64 bytes);

/* A run descriptor of `words` little-endian words, for a device of `channels`. */
bool millrace_run_ok(const struct millrace_extent *extents, unsigned int count,
		     const __le32 *desc, unsigned int words, unsigned int channels);

/*
 * Rings. A context counts its entries modulo 2^32 for as long as it lives. The
 * device begins with 0 whenever a ring is enabled: at the context's entry `base`.
 * `size` is a power of two; `head` entries have completed, `tail` are submitted.
 */

/* Entries that may still be put into a ring. */
static inline u32 millrace_ring_space(u32 head, u32 tail, u32 size)
{
	u32 used = tail - head;

	return used > size ? 0 : size - used;
}

/* Where an entry is in the ring, and its completion among the completions. */
static inline u32 millrace_ring_place(u32 base, u32 index, u32 size)
{
	return (index - base) & (size - 1);
}

/* The number that the completion of an entry carries. */
static inline u32 millrace_ring_seq(u32 base, u32 index)
{
	return index - base + 1;
}

/* The doorbell that makes entries before `tail` known. */
static inline u32 millrace_ring_bell(u32 base, u32 tail)
{
	return (tail - base) & 0xffff;
}

/* What a completion says beside its number, and a run's counters. */
struct millrace_completion {
	u32 status, tag, error, sticky;
	u64 addr;
};

/* Of a record that the device may be writing to: each word is read once, and used as it was. */
struct millrace_completion millrace_completion_read(const void *record);
void millrace_counters_read(const void *record, u64 *counters);
/* Against the entry that is next. */
bool millrace_completion_ok(const struct millrace_completion *c, u32 index);

/*
 * Entries from `head` on that a ring has begun and not completed, by its registers
 * HEAD and STATUS once it was stopped. All that there are, when HEAD cannot be right.
 */
u32 millrace_ring_begun(u32 base, u32 head, u32 tail, u32 device_head, u32 device_status);

/*
 * Whether what a ring has begun is lost with a reset, `op` being its first entry.
 * A copy or a clear is repeated; a run may have changed what it works on. The
 * device has one entry in work, so more than that cannot be right either.
 */
bool millrace_ring_lost(u32 begun, u32 op);

/* Words of a run descriptor: one beat, and half a beat a channel. */
static inline unsigned int millrace_run_words(unsigned int channels)
{
	return 16 + 16 * ((channels + 1) / 2);
}

/* Those of a run of training: as many again, behind them. */
static inline unsigned int millrace_training_words(unsigned int channels)
{
	return 2 * millrace_run_words(channels);
}

#endif
