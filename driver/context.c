// SPDX-License-Identifier: GPL-2.0
/* An open file: a context with a ring, card memory and mappings of its own. */
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/slab.h>

#include "gate.h"
#include "job.h"
#include "map.h"
#include "millrace.h"
#include "ring.h"

int millrace_context_open(struct inode *inode, struct file *file)
{
	struct millrace_device *dev = container_of(file->private_data, struct millrace_device,
						   misc);
	struct millrace_context *ctx;
	u32 q;
	int ret;

	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return -ENOMEM;
	ctx->dev = dev;
	ctx->pid = task_tgid_nr(current);
	mutex_init(&ctx->lock);
	INIT_LIST_HEAD(&ctx->map_list);
	INIT_LIST_HEAD(&ctx->clearing);
	xa_init_flags(&ctx->maps, XA_FLAGS_ALLOC1);

	/* All of misc's devices wait for an open, so this one does not wait for a reset. */
	ret = -ENODEV;
	if (!millrace_hold(dev))
		goto err_free;
	mutex_lock(&dev->down_lock); /* who writes to the table holds it, too */
	for (q = 0; q < dev->hw.queues && dev->contexts[q]; q++)
		;
	if (dev->dead)
		ret = -EIO;
	else if (q == dev->hw.queues)
		ret = -EBUSY;
	else
		ret = millrace_queue_init(ctx, q);
	if (!ret) {
		mutex_lock(&dev->lock);
		dev->contexts[q] = ctx;
		mutex_unlock(&dev->lock);
	}
	mutex_unlock(&dev->down_lock);
	millrace_exit(dev);
	if (ret)
		goto err_free;
	kref_get(&dev->refs);
	file->private_data = ctx;
	return nonseekable_open(inode, file);

err_free:
	xa_destroy(&ctx->maps);
	kfree(ctx);
	return ret;
}

/* Under down_lock: ends all that the device could reach. What is left is memory. */
void millrace_context_down(struct millrace_context *ctx)
{
	struct millrace_device *dev = ctx->dev;
	struct millrace_map_object *map;

	if (ctx->down)
		return;
	WRITE_ONCE(ctx->queue.closing, true);
	if (!dev->quiet && !millrace_ring_stop(ctx)) {
		millrace_reset_request(dev);
		pci_clear_master(dev->pdev); /* its memory is about to go */
	}
	mutex_lock(&dev->lock);
	dev->contexts[ctx->queue.index] = NULL;
	mutex_unlock(&dev->lock);
	millrace_queue_down(ctx);
	list_for_each_entry(map, &ctx->map_list, link)
		millrace_map_release_dma(map);
	millrace_card_free_all(ctx);
	ctx->down = true;
}

int millrace_context_release(struct inode *inode, struct file *file)
{
	struct millrace_context *ctx = file->private_data;
	struct millrace_device *dev = ctx->dev;
	struct millrace_map_object *map;
	unsigned long handle;

	mutex_lock(&dev->down_lock);
	millrace_context_down(ctx);
	mutex_unlock(&dev->down_lock);
	millrace_queue_free_jobs(ctx);
	xa_for_each(&ctx->maps, handle, map)
		millrace_map_put(map);
	xa_destroy(&ctx->maps);
	if (ctx->queue.eventfd)
		eventfd_ctx_put(ctx->queue.eventfd);
	kfree(ctx);
	millrace_device_put(dev);
	return 0;
}
