/* SPDX-License-Identifier: GPL-2.0 */
/* The engine's program that leaves nothing of a client: pure logic, also tested in user space. */
#ifndef MILLRACE_SCRUB_H
#define MILLRACE_SCRUB_H

#include <linux/types.h>

#define MILLRACE_SCRUB_CMDS_MAX 64
#define MILLRACE_CMD_WORDS 16
/* One of training, of 16 channels: two beats, and one a channel. */
#define MILLRACE_SCRUB_DESC_BYTES (64 * 18)
/* Descriptor, and the program behind it. */
#define MILLRACE_SCRUB_RUN_BYTES \
	(MILLRACE_SCRUB_DESC_BYTES + MILLRACE_SCRUB_CMDS_MAX * MILLRACE_CMD_WORDS * 4)

/* The engine's registers from MAGIC on -> beats of zeros that it needs on each channel. */
u32 millrace_scrub_beats(const u32 *engine);

/* The commands; their number, or 0 when the geometry makes no sense. */
u32 millrace_scrub_program(const u32 *engine, __le32 *cmds);

/*
 * The run descriptor (MILLRACE_SCRUB_DESC_BYTES, zeros behind it): the program at
 * `program`, all other windows in zeros, zeros[c] on channel c; none in the gradients
 * and the stash of an engine that trains.
 */
void millrace_scrub_descriptor(const u32 *engine, __le32 *desc, u64 program, u32 count,
			       const u64 *zeros);

#endif
