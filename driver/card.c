// SPDX-License-Identifier: GPL-2.0
/* Card memory: a pool a channel, extents a context. Memory is zeroed when it is handed out. */
#include <linux/slab.h>

#include "millrace.h"
#include "scrub.h"

#define CHANNEL_SHIFT 36
#define TURN_LOG2 17 /* buffers begin at a turn of the banks: where does not change a run's time */
#define GUARD PAGE_SIZE /* between buffers: a stray access is an error, not another's data */

int millrace_card_init(struct millrace_device *dev)
{
	u64 own, left;
	u32 c;
	int ret;

	dev->scrub_bytes = (u64)millrace_scrub_beats(dev->engine) * 64;
	own = ALIGN(dev->scrub_bytes + MILLRACE_SCRUB_RUN_BYTES, BIT(TURN_LOG2));
	left = BIT_ULL(dev->mem_log2) - own;
	if (own > BIT_ULL(dev->mem_log2) / 2)
		return -ENOSPC;
	for (c = 0; c < dev->channels; c++) {
		/* The driver's own part of each channel is its end. */
		dev->scrub_zeros[c] = (u64)c << CHANNEL_SHIFT | left;
		dev->pools[c] = gen_pool_create(TURN_LOG2, dev_to_node(&dev->pdev->dev));
		if (!dev->pools[c]) {
			millrace_card_exit(dev);
			return -ENOMEM;
		}
		/*
		 * gen_pool's own addresses must not be 0. The second half of 64 bit
		 * is out of reach of any channel, so it marks them.
		 */
		ret = gen_pool_add(dev->pools[c], BIT(63) | (u64)c << CHANNEL_SHIFT,
				   left, dev_to_node(&dev->pdev->dev));
		if (ret) {
			millrace_card_exit(dev);
			return ret;
		}
	}
	dev->scrub_run = dev->scrub_zeros[0] + dev->scrub_bytes;
	return 0;
}

static u64 pool_bytes(u64 bytes)
{
	return ALIGN(bytes, PAGE_SIZE) + GUARD;
}

void millrace_card_exit(struct millrace_device *dev)
{
	u32 c;

	for (c = 0; c < dev->channels; c++) {
		if (dev->pools[c])
			gen_pool_destroy(dev->pools[c]);
		dev->pools[c] = NULL;
	}
}

static void give_back(struct millrace_device *dev, const struct millrace_extent *extent)
{
	gen_pool_free(dev->pools[extent->addr >> CHANNEL_SHIFT], BIT(63) | extent->addr,
		      pool_bytes(extent->bytes));
}

int millrace_card_alloc(struct millrace_context *ctx, struct millrace_alloc *arg)
{
	struct millrace_device *dev = ctx->dev;
	struct millrace_extent *more;
	unsigned long at;
	int ret;

	if (arg->flags || arg->channel >= dev->channels || !arg->bytes ||
	    arg->bytes > BIT_ULL(dev->mem_log2))
		return -EINVAL;
	if (ctx->extent_count == MILLRACE_EXTENTS_MAX)
		return -ENOSPC;
	more = krealloc_array(ctx->extents, ctx->extent_count + 1, sizeof(*more),
			      GFP_KERNEL_ACCOUNT);
	if (!more)
		return -ENOMEM;
	ctx->extents = more;
	at = gen_pool_alloc(dev->pools[arg->channel], pool_bytes(arg->bytes));
	if (!at)
		return -ENOSPC;
	more += ctx->extent_count;
	more->addr = at & ~BIT(63);
	more->bytes = arg->bytes;
	ret = millrace_queue_clear(ctx, more->addr, ALIGN(arg->bytes, PAGE_SIZE));
	if (ret) {
		/* A clear that may still be under way must not meet its next owner. */
		if (!millrace_queue_busy(ctx))
			give_back(dev, more);
		else
			ctx->extent_count++;
		return ret;
	}
	ctx->extent_count++;
	arg->addr = more->addr;
	return 0;
}

int millrace_card_free(struct millrace_context *ctx, u64 addr)
{
	unsigned int i;

	for (i = 0; i < ctx->extent_count && ctx->extents[i].addr != addr; i++)
		;
	if (i == ctx->extent_count)
		return -ENOENT;
	if (millrace_queue_busy(ctx))
		return -EBUSY;
	give_back(ctx->dev, &ctx->extents[i]);
	ctx->extents[i] = ctx->extents[--ctx->extent_count];
	return 0;
}

void millrace_card_free_all(struct millrace_context *ctx)
{
	while (ctx->extent_count)
		give_back(ctx->dev, &ctx->extents[--ctx->extent_count]);
	kfree(ctx->extents);
	ctx->extents = NULL;
}
