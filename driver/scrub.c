// SPDX-License-Identifier: GPL-2.0
/*
 * What a program can store, or multiply and store, of the memories on the chip
 * is overwritten with zeros: row table, rotary table and residual (LOAD_ROWS),
 * gain and bias (STREAM_VEC), activations and row maxima (LAYERNORM), q, k and v
 * (MATMUL), prefix maxima (PM_LOAD), and where an engine trains the second row
 * memory (FETCH_ROWS). All that is read for it is zeros.
 */
#include <asm/byteorder.h>
#include <linux/minmax.h>

#include "check.h"
#include "millrace_hw.h"
#include "scrub.h"

#define BLOCK 32 /* elements with one scale */
#define SLOTS 4U /* row maxima of a row */

/* Semaphores. */
enum {
	ROWS = 1 << 0,
	VEC = 1 << 1,
	ACT = 1 << 2,
	QKV = 1 << 3,
	MAXIMA = 1 << 4,
	ROWS2 = 1 << 5,
};

struct geometry {
	u32 channels, rows, act, qkv, d, rot, w;
	bool trains;
};

static u32 at(const u32 *engine, u32 reg)
{
	return engine[(reg - MR_REG_MAGIC) / 4];
}

static struct geometry geometry_of(const u32 *engine)
{
	struct geometry g = {
		.channels = at(engine, MR_REG_GEOMETRY) & 0xff,
		.rows = at(engine, MR_REG_GEOMETRY) >> 16,
		.act = at(engine, MR_REG_WORDS) & 0xffff,
		.qkv = at(engine, MR_REG_WORDS) >> 16,
		.d = at(engine, MR_REG_ROWS) & 0xffff,
		.rot = at(engine, MR_REG_ROWS) >> 16,
		.w = at(engine, MR_REG_ATTENTION) & 0xffff,
		.trains = at(engine, MR_REG_FORMATS) & MR_HAS_ROWS,
	};

	return g;
}

u32 millrace_scrub_beats(const u32 *engine)
{
	struct geometry g = geometry_of(engine);
	u32 groups = 64 * g.qkv / (4 * g.channels);
	u32 input = g.rows * max(g.d, g.rot) / 16;
	u32 stream = 2 * ((g.d + 16 * g.channels - 1) / (16 * g.channels)) +
		     3 * groups + (groups + 15) / 16;

	return max(max(input, stream), g.rows);
}

static __le32 *add(__le32 *cmd, u32 op, u32 wait, u32 signal)
{
	u32 i;

	for (i = 0; i < MILLRACE_CMD_WORDS; i++)
		cmd[i] = 0;
	cmd[0] = cpu_to_le32(op);
	cmd[1] = cpu_to_le32(wait | signal << 16);
	return cmd;
}

static void set(__le32 *cmd, u32 field, u32 value)
{
	cmd[field >> 8] |= cpu_to_le32(value << (field & 0xff));
}

/* Rows of zeros into `blocks` words of activations from `base` on. */
static void layernorm(__le32 *cmd, u32 base, u32 blocks, u32 slot, u32 wait, u32 signal)
{
	const u32 one = 0x3f800000;

	add(cmd, MR_OP_LAYERNORM, wait, signal);
	set(cmd, MR_F_LAYERNORM_DST_BASE, base);
	set(cmd, MR_F_LAYERNORM_DBLOCKS, blocks);
	set(cmd, MR_F_LAYERNORM_N, BLOCK * blocks);
	set(cmd, MR_F_LAYERNORM_DST_SLOT, slot);
	set(cmd, MR_F_LAYERNORM_INV_N, one);
	set(cmd, MR_F_LAYERNORM_INV_N2, one);
	set(cmd, MR_F_LAYERNORM_EPS, one);
}

u32 millrace_scrub_program(const u32 *engine, __le32 *cmds)
{
	struct geometry g = geometry_of(engine);
	u32 blocks = min(g.d / BLOCK, g.act), times, i;
	__le32 *c = cmds;

	if (!g.channels || !g.rows || !blocks || !g.qkv || g.d % 64 || g.rot % 64 || g.w % 64 ||
	    blocks * BLOCK % 64)
		return 0;
	times = max((g.act + blocks - 1) / blocks, SLOTS);
	if (times > MILLRACE_SCRUB_CMDS_MAX - 7)
		return 0;

	add(c, MR_OP_STREAM_VEC, 0, VEC);
	set(c, MR_F_STREAM_VEC_D, g.d);
	c += MILLRACE_CMD_WORDS;
	add(c, MR_OP_LOAD_ROWS, 0, ROWS);
	set(c, MR_F_LOAD_ROWS_RES_BEATS, g.d / 16);
	set(c, MR_F_LOAD_ROWS_ROT_BEATS, g.rot / 16);
	c += MILLRACE_CMD_WORDS;
	if (g.trains) {
		add(c, MR_OP_FETCH_ROWS, 0, ROWS2);
		set(c, MR_F_FETCH_ROWS_BEATS, g.d / 16);
		set(c, MR_F_FETCH_ROWS_ROW, 1);
		c += MILLRACE_CMD_WORDS;
	}
	for (i = 0; i < times; i++) {
		u32 base = i * blocks;

		if (base > g.act - blocks)
			base = g.act - blocks;
		layernorm(c, base, blocks, i % SLOTS, i ? 0 : VEC, i + 1 < times ? 0 : ACT);
		c += MILLRACE_CMD_WORDS;
	}
	add(c, MR_OP_STREAM_TILES, 0, 0);
	set(c, MR_F_STREAM_TILES_KBLOCKS, 1);
	set(c, MR_F_STREAM_TILES_COLS, 64 * g.qkv);
	c += MILLRACE_CMD_WORDS;
	add(c, MR_OP_MATMUL, ACT, QKV);
	set(c, MR_F_MATMUL_KBLOCKS, 1);
	set(c, MR_F_MATMUL_COLS, 64 * g.qkv);
	set(c, MR_F_MATMUL_DST, MR_DST_QKV);
	c += MILLRACE_CMD_WORDS;
	add(c, MR_OP_PM_LOAD, ROWS, MAXIMA);
	set(c, MR_F_PM_LOAD_WBEATS, g.w / 64);
	c += MILLRACE_CMD_WORDS;
	add(c, MR_OP_END, QKV | MAXIMA | (g.trains ? ROWS2 : 0), 0);
	c += MILLRACE_CMD_WORDS;
	return (u32)(c - cmds) / MILLRACE_CMD_WORDS;
}

static void put64(__le32 *w, u64 value)
{
	w[0] = cpu_to_le32((u32)value);
	w[1] = cpu_to_le32((u32)(value >> 32));
}

void millrace_scrub_descriptor(const u32 *engine, __le32 *desc, u64 program, u32 count,
			       const u64 *zeros)
{
	struct geometry g = geometry_of(engine);
	u32 beats = millrace_scrub_beats(engine), words = millrace_run_words(g.channels), i;

	for (i = 0; i < MILLRACE_SCRUB_DESC_BYTES / 4; i++)
		desc[i] = 0;
	desc[MR_RUN_MAGIC] = cpu_to_le32(MR_MAGIC_RUN);
	desc[MR_RUN_N_CMDS] = cpu_to_le32(count);
	desc[MR_RUN_N_ROWS] = cpu_to_le32(g.rows);
	put64(desc + MR_RUN_PROG_LO, program);
	desc[MR_RUN_PROG_BEATS] = cpu_to_le32(count);
	put64(desc + MR_RUN_INPUT_LO, zeros[0]);
	desc[MR_RUN_INPUT_BEATS] = cpu_to_le32(beats);
	put64(desc + MR_RUN_RESULT_LO, zeros[0]);
	if (g.trains) {
		desc[MR_RUN_FLAGS] = cpu_to_le32(MR_FLAG_TRAIN);
		put64(desc + words + MR_TRAINING_ROWS_LO, zeros[0]);
		desc[words + MR_TRAINING_ROWS_BEATS] = cpu_to_le32(beats);
	}
	for (i = 0; i < g.channels; i++) {
		__le32 *ch = desc + MR_RUN_CHANNEL(i);

		put64(ch + MR_CHANNEL_WEIGHTS_LO, zeros[i]);
		ch[MR_CHANNEL_WEIGHTS_BEATS] = cpu_to_le32(beats);
		put64(ch + MR_CHANNEL_KV_LO, zeros[i]);
		ch[MR_CHANNEL_KV_BEATS] = cpu_to_le32(beats);
	}
}
