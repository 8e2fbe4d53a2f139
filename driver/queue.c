// SPDX-License-Identifier: GPL-2.0
/* A context's command ring: setting it up, taking it down, time-outs. */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "millrace.h"

static unsigned int timeout_ms = 60000;
module_param(timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "milliseconds without progress of an operation before its ring is stopped");

static unsigned int stop_ms = 1000;
module_param(stop_ms, uint, 0644);
MODULE_PARM_DESC(stop_ms, "milliseconds that a ring may take to stop");

/* Between looks for what an interrupt has missed, and for time-outs. */
unsigned long millrace_tick_period(void)
{
	return msecs_to_jiffies(clamp(timeout_ms / 4, 10U, 500U));
}

static void tick(struct work_struct *work);

static void set_address(struct millrace_context *ctx, u32 at, dma_addr_t addr)
{
	u32 reg = millrace_queue_reg(ctx->dev, &ctx->queue, at);

	millrace_write(ctx->dev, reg, lower_32_bits(addr));
	millrace_write(ctx->dev, reg + 4, upper_32_bits(addr));
}

static void free_memory(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	struct device *d = &ctx->dev->pdev->dev;

	if (q->descriptors)
		dma_free_coherent(d, MILLRACE_RING * MILLRACE_DESC_BYTES, q->descriptors,
				  q->descriptors_dma);
	if (q->completions)
		dma_free_coherent(d, MILLRACE_RING * MR_PCIE_CPL_BYTES, q->completions,
				  q->completions_dma);
	if (q->ring)
		dma_free_coherent(d, MILLRACE_RING * MR_PCIE_ENTRY_BYTES, q->ring, q->ring_dma);
	q->ring = NULL;
	q->completions = NULL;
	q->descriptors = NULL;
}

int millrace_queue_init(struct millrace_context *ctx, u32 index)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_device *dev = ctx->dev;
	struct device *d = &dev->pdev->dev;
	u32 status;

	q->index = index;
	q->next_job = 1;
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->jobs);
	init_waitqueue_head(&q->wait);
	INIT_DELAYED_WORK(&q->timeout, tick);
	status = millrace_read(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_STATUS));
	if (status == U32_MAX)
		return -ENODEV;
	if (status & (MR_PCIE_Q_ENABLED | MR_PCIE_Q_BUSY))
		return -EBUSY;
	q->ring = dma_alloc_coherent(d, MILLRACE_RING * MR_PCIE_ENTRY_BYTES, &q->ring_dma,
				     GFP_KERNEL);
	q->completions = dma_alloc_coherent(d, MILLRACE_RING * MR_PCIE_CPL_BYTES,
					    &q->completions_dma, GFP_KERNEL);
	q->descriptors = dma_alloc_coherent(d, MILLRACE_RING * MILLRACE_DESC_BYTES,
					    &q->descriptors_dma, GFP_KERNEL);
	if (!q->ring || !q->completions || !q->descriptors) {
		free_memory(ctx);
		return -ENOMEM;
	}
	set_address(ctx, MR_PCIE_Q_RING_LO, q->ring_dma);
	set_address(ctx, MR_PCIE_Q_CPL_LO, q->completions_dma);
	millrace_write(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_SIZE), MILLRACE_RING_LOG2);
	millrace_write(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_VECTOR),
		       millrace_irq_vector(dev, index));
	millrace_write(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_CTRL), 1);
	return 0;
}

/* The ring is told to stop, and waited for: from then on it makes no accesses. */
void millrace_queue_stop(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_device *dev = ctx->dev;
	unsigned long end = jiffies + msecs_to_jiffies(stop_ms) + 1;
	u32 status, i;

	millrace_write(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_CTRL), 0);
	for (;;) {
		bool last = time_after(jiffies, end);

		status = millrace_read(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_STATUS));
		if (status == U32_MAX || !(status & (MR_PCIE_Q_BUSY | MR_PCIE_Q_ENABLED)))
			return;
		if (last)
			break;
		usleep_range(100, 200);
	}
	dev_err(&dev->pdev->dev, "ring %u does not stop (status 0x%08x): reset the device\n",
		q->index, status);
	/* Nobody gets a turn any more: all others fail now instead of waiting for one. */
	dev->stuck = true;
	pci_clear_master(dev->pdev);
	mutex_lock(&dev->lock);
	for (i = 0; i < dev->queues; i++)
		if (dev->contexts[i])
			millrace_queue_fail(dev->contexts[i], -EIO);
	mutex_unlock(&dev->lock);
}

void millrace_job_free(struct millrace_job *job)
{
	u32 i;

	for (i = 0; i < job->count; i++)
		if (job->maps[i])
			millrace_map_put(job->maps[i]);
	kfree(job);
}

/* Under down_lock: after this neither device nor timer knows the context. */
void millrace_queue_down(struct millrace_context *ctx)
{
	millrace_queue_stop(ctx);
	millrace_queue_fail(ctx, -EIO);
	cancel_delayed_work_sync(&ctx->queue.timeout);
	free_memory(ctx);
}

/* The context's last act: nobody waits any more. */
void millrace_queue_free_jobs(struct millrace_context *ctx)
{
	struct millrace_job *job, *next;

	list_for_each_entry_safe(job, next, &ctx->queue.jobs, link) {
		list_del(&job->link);
		millrace_job_free(job);
	}
}

/*
 * Now and then while there is work: takes what an interrupt was lost for, and
 * stops a ring that has faulted, or whose entry has been in work for too long.
 * An entry that waits for other contexts' work is not late.
 */
static void tick(struct work_struct *work)
{
	struct millrace_queue *q = container_of(work, struct millrace_queue, timeout.work);
	struct millrace_context *ctx = container_of(q, struct millrace_context, queue);
	struct millrace_device *dev = ctx->dev;
	struct millrace_job *job;
	unsigned long flags;
	bool late = false;
	u32 status;

	if (millrace_enter(dev))
		return;
	millrace_queue_reap(ctx);
	if (!millrace_queue_busy(ctx))
		goto out;
	status = millrace_read(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_STATUS));
	spin_lock_irqsave(&q->lock, flags);
	job = millrace_oldest_job(q);
	if (job && !(status & MR_PCIE_Q_BUSY))
		job->started = jiffies;
	else if (job)
		late = time_after(jiffies, job->started + msecs_to_jiffies(timeout_ms));
	spin_unlock_irqrestore(&q->lock, flags);
	if (late || status == U32_MAX || !(status & MR_PCIE_Q_ENABLED)) {
		millrace_queue_reap(ctx);
		if (millrace_queue_busy(ctx)) {
			dev_err(&dev->pdev->dev, "ring %u: %s, status 0x%08x\n", q->index,
				late ? "no progress" : "stopped", status);
			q->timeouts++;
			millrace_queue_stop(ctx);
			millrace_queue_fail(ctx, -EIO);
		}
	} else {
		schedule_delayed_work(&q->timeout, millrace_tick_period());
	}
out:
	millrace_exit(dev);
}
