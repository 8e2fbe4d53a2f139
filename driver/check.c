// SPDX-License-Identifier: GPL-2.0
#include <linux/compiler.h>
#include <asm/byteorder.h>

#include "check.h"
#include "millrace_hw.h"

#define BEAT 64

bool millrace_window_ok(const struct millrace_extent *extents, unsigned int count,
			u64 addr, u64 bytes)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		u64 at = addr - extents[i].addr;

		if (addr >= extents[i].addr && at < extents[i].bytes &&
		    bytes <= extents[i].bytes - at)
			return true;
	}
	return false;
}

static u64 get64(const __le32 *w)
{
	return le32_to_cpu(w[0]) | (u64)le32_to_cpu(w[1]) << 32;
}

/* The engine reaches a window in whole beats; one of no beats is never used. */
static bool beats_ok(const struct millrace_extent *extents, unsigned int count,
		     u64 addr, u32 beats)
{
	return addr % BEAT == 0 &&
	       (!beats || millrace_window_ok(extents, count, addr, (u64)beats * BEAT));
}

/* Windows of training, behind the channels': rows, gradients, and each channel's stash. */
static bool training_ok(const struct millrace_extent *extents, unsigned int count,
			const __le32 *more, unsigned int channels)
{
	unsigned int c;

	if (!beats_ok(extents, count, get64(more + MR_TRAINING_ROWS_LO),
		      le32_to_cpu(more[MR_TRAINING_ROWS_BEATS])) ||
	    !beats_ok(extents, count, get64(more + MR_TRAINING_GRAD_LO),
		      le32_to_cpu(more[MR_TRAINING_GRAD_BEATS])))
		return false;
	for (c = 0; c < channels; c++) {
		const __le32 *w = more + MR_RUN_CHANNEL(c);

		if (!beats_ok(extents, count, get64(w + MR_STASH_LO),
			      le32_to_cpu(w[MR_STASH_BEATS])))
			return false;
	}
	return true;
}

/*
 * The engine holds every access of a program to the windows of its descriptor,
 * so a context that has only its own memory in them cannot reach another's.
 * Windows may overlap each other: all of them are the context's.
 */
bool millrace_run_ok(const struct millrace_extent *extents, unsigned int count,
		     const __le32 *desc, unsigned int words, unsigned int channels)
{
	unsigned int c, own = millrace_run_words(channels);
	bool trains;

	if (words < own)
		return false;
	trains = le32_to_cpu(desc[MR_RUN_FLAGS]) & MR_FLAG_TRAIN;
	if (words != (trains ? millrace_training_words(channels) : own) ||
	    le32_to_cpu(desc[MR_RUN_MAGIC]) != MR_MAGIC_RUN ||
	    !beats_ok(extents, count, get64(desc + MR_RUN_PROG_LO),
		      le32_to_cpu(desc[MR_RUN_PROG_BEATS])) ||
	    !beats_ok(extents, count, get64(desc + MR_RUN_INPUT_LO),
		      le32_to_cpu(desc[MR_RUN_INPUT_BEATS])) ||
	    !beats_ok(extents, count, get64(desc + MR_RUN_RESULT_LO),
		      le32_to_cpu(desc[MR_RUN_RESULT_BEATS])))
		return false;
	for (c = 0; c < channels; c++) {
		const __le32 *w = desc + MR_RUN_CHANNEL(c);

		if (!beats_ok(extents, count, get64(w + MR_CHANNEL_WEIGHTS_LO),
			      le32_to_cpu(w[MR_CHANNEL_WEIGHTS_BEATS])) ||
		    !beats_ok(extents, count, get64(w + MR_CHANNEL_KV_LO),
			      le32_to_cpu(w[MR_CHANNEL_KV_BEATS])))
			return false;
	}
	return !trains || training_ok(extents, count, desc + own, channels);
}

static u32 word_of(const void *record, unsigned int index)
{
	return le32_to_cpu(READ_ONCE(((const __le32 *)record)[index]));
}

struct millrace_completion millrace_completion_read(const void *record)
{
	const u8 *words = (const u8 *)record + MR_PCIE_CPL_STATUS;
	struct millrace_completion c = {
		.status = word_of(words, MR_PCIE_C_STATUS),
		.tag = word_of(words, MR_PCIE_C_TAG),
		.error = word_of(words, MR_PCIE_C_ERROR),
		.sticky = word_of(words, MR_PCIE_C_STICKY),
		.addr = word_of(words, MR_PCIE_C_ADDR_LO),
	};

	c.addr |= (u64)word_of(words, MR_PCIE_C_ADDR_HI) << 32;
	return c;
}

void millrace_counters_read(const void *record, u64 *counters)
{
	unsigned int i;

	for (i = 0; i < MR_COUNTERS; i++)
		counters[i] = word_of(record, 2 * i) | (u64)word_of(record, 2 * i + 1) << 32;
}

bool millrace_completion_ok(const struct millrace_completion *c, u32 index)
{
	return c->status <= MR_PCIE_E_CANCELLED && c->tag == index;
}

u32 millrace_ring_begun(u32 base, u32 head, u32 tail, u32 device_head, u32 device_status)
{
	u32 have = head - base, most = tail - head, begun = device_head;

	if (device_status & MR_PCIE_Q_BUSY)
		begun++;
	else if ((device_status >> MR_PCIE_Q_FAULT & 0xff) == MR_PCIE_E_READ && begun)
		begun--; /* counted, but it could not be fetched */
	if (have && begun == have - 1) /* HEAD was read before the last one was counted */
		return 0;
	begun -= have;
	return begun > most ? most : begun;
}

bool millrace_ring_lost(u32 begun, u32 op)
{
	return begun > 1 || (begun && op == MR_PCIE_OP_RUN);
}
