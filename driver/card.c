// SPDX-License-Identifier: GPL-2.0
/* Card memory: a pool a channel, extents a context. Memory is zeroed when it is handed out. */
#include <linux/slab.h>

#include "gate.h"
#include "job.h"
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

	dev->scrub_bytes = (u64)millrace_scrub_beats(dev->hw.engine) * 64;
	own = ALIGN(dev->scrub_bytes + MILLRACE_SCRUB_RUN_BYTES, BIT(TURN_LOG2));
	left = BIT_ULL(dev->hw.mem_log2) - own;
	if (own > BIT_ULL(dev->hw.mem_log2) / 2)
		return -ENOSPC;
	for (c = 0; c < dev->hw.channels; c++) {
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

	for (c = 0; c < dev->hw.channels; c++) {
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

/*
 * Memory that is being zeroed: no extent yet, so it can be neither used nor freed.
 * On the context's list, under down_lock, for as long as it is the context's.
 */
struct clearing {
	struct list_head link;
	struct millrace_extent extent;
	bool abandoned; /* a clear of it may be under way: it goes with the context */
};

static int reserve(struct millrace_context *ctx, const struct millrace_alloc *arg,
		   struct clearing *c)
{
	struct millrace_device *dev = ctx->dev;
	unsigned long at;

	if (arg->flags || arg->channel >= dev->hw.channels || !arg->bytes ||
	    arg->bytes > BIT_ULL(dev->hw.mem_log2))
		return -EINVAL;
	if (ctx->extent_count == MILLRACE_EXTENTS_MAX)
		return -ENOSPC;
	at = gen_pool_alloc(dev->pools[arg->channel], pool_bytes(arg->bytes));
	if (!at)
		return -ENOSPC;
	c->extent.addr = at & ~BIT(63);
	c->extent.bytes = arg->bytes;
	mutex_lock(&dev->down_lock);
	list_add(&c->link, &ctx->clearing);
	mutex_unlock(&dev->down_lock);
	return 0;
}

static int take(struct millrace_context *ctx, struct clearing *c)
{
	struct millrace_extent *more;

	if (ctx->extent_count == MILLRACE_EXTENTS_MAX)
		return -ENOSPC;
	more = krealloc_array(ctx->extents, ctx->extent_count + 1, sizeof(*more),
			      GFP_KERNEL_ACCOUNT);
	if (!more)
		return -ENOMEM;
	ctx->extents = more;
	more[ctx->extent_count++] = c->extent;
	mutex_lock(&ctx->dev->down_lock);
	list_del(&c->link);
	mutex_unlock(&ctx->dev->down_lock);
	kfree(c);
	return 0;
}

static void drop(struct millrace_context *ctx, struct clearing *c, bool under_way)
{
	mutex_lock(&ctx->dev->down_lock);
	if (list_empty(&c->link)) {
		kfree(c); /* the context has given it back */
	} else if (under_way) {
		c->abandoned = true; /* it must not meet its next owner */
	} else {
		give_back(ctx->dev, &c->extent);
		list_del(&c->link);
		kfree(c);
	}
	mutex_unlock(&ctx->dev->down_lock);
}

int millrace_card_alloc(struct millrace_context *ctx, struct millrace_alloc *arg)
{
	struct clearing *c = kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!c)
		return -ENOMEM;
	ret = millrace_context_enter(ctx);
	if (!ret) {
		ret = reserve(ctx, arg, c);
		millrace_context_exit(ctx);
	}
	if (ret) {
		kfree(c);
		return ret;
	}
	arg->addr = c->extent.addr;
	ret = millrace_queue_clear(ctx, arg->addr, ALIGN(arg->bytes, PAGE_SIZE));
	if (!ret)
		ret = millrace_context_enter(ctx);
	if (!ret) {
		ret = take(ctx, c);
		millrace_context_exit(ctx);
	}
	if (ret)
		drop(ctx, c, ret == -EINTR);
	return ret;
}

int millrace_card_free(struct millrace_context *ctx, u64 addr)
{
	unsigned int i;

	for (i = 0; i < ctx->extent_count && ctx->extents[i].addr != addr; i++)
		;
	if (i == ctx->extent_count)
		return -ENOENT;
	if (millrace_queue_jobs(ctx))
		return -EBUSY;
	give_back(ctx->dev, &ctx->extents[i]);
	ctx->extents[i] = ctx->extents[--ctx->extent_count];
	return 0;
}

/* Under down_lock. An allocation that still waits finds its memory off the list. */
void millrace_card_free_all(struct millrace_context *ctx)
{
	struct clearing *c, *next;

	list_for_each_entry_safe(c, next, &ctx->clearing, link) {
		give_back(ctx->dev, &c->extent);
		list_del_init(&c->link);
		if (c->abandoned)
			kfree(c);
	}
	while (ctx->extent_count)
		give_back(ctx->dev, &ctx->extents[--ctx->extent_count]);
	kfree(ctx->extents);
	ctx->extents = NULL;
}
