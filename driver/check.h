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

/* Entries that may still be put into a ring of `size`. */
static inline u32 millrace_ring_space(u32 head, u32 tail, u32 size)
{
	u32 used = tail - head;

	return used > size ? 0 : size - used;
}

/* Words of a run descriptor: one beat, and half a beat a channel. */
static inline unsigned int millrace_run_words(unsigned int channels)
{
	return 16 + 16 * ((channels + 1) / 2);
}

#endif
