// SPDX-License-Identifier: GPL-2.0
/* A context's ring with its jobs: setting it up, off the device and back, time-outs. */
#include <linux/module.h>

#include "gate.h"
#include "hw.h"
#include "job.h"
#include "millrace.h"
#include "ring.h"

static unsigned int timeout_ms = 60000;
module_param(timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "milliseconds without progress of an operation before its ring is stopped");

#define LOSSES_MAX 3 /* of a ring without a completion in between */

/* Between looks for what an interrupt has missed, and for time-outs. */
unsigned long millrace_tick_period(void)
{
	return msecs_to_jiffies(clamp(timeout_ms / 4, 10U, 500U));
}

static void tick(struct work_struct *work);

/* Under down_lock. While a reset is on its way the ring is left to millrace_queue_restart(). */
int millrace_queue_init(struct millrace_context *ctx, u32 index)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_device *dev = ctx->dev;
	bool later = dev->quiet || !millrace_running(dev);
	u32 status;
	int ret;

	q->index = index;
	q->next_job = 1;
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->jobs);
	init_waitqueue_head(&q->wait);
	INIT_DELAYED_WORK(&q->timeout, tick);
	if (!later) {
		status = millrace_read(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_STATUS));
		if (status == U32_MAX)
			return -ENODEV;
		if (status & (MR_PCIE_Q_ENABLED | MR_PCIE_Q_BUSY))
			return -EBUSY;
	}
	ret = millrace_ring_alloc(ctx);
	if (!ret && !later)
		millrace_ring_enable(ctx);
	return ret;
}

/* ---- off the device, and back --------------------------------------------------------------- */

/*
 * For a reset or suspend, under down_lock with the device paused: quiesce stops the
 * ring, at_rest says when it has, settle sees what came of its entries once bus
 * mastering is off, restart gives the device again what it has not done.
 */
void millrace_queue_quiesce(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_device *dev = ctx->dev;
	u32 status = millrace_read(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_STATUS));

	q->known = status != U32_MAX && status & (MR_PCIE_Q_ENABLED | 0xff << MR_PCIE_Q_FAULT);
	millrace_ring_tell_to_stop(ctx);
}

void millrace_queue_settle(struct millrace_context *ctx, bool reachable)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_device *dev = ctx->dev;
	u32 head = U32_MAX, status = U32_MAX, begun, op;
	unsigned long flags;
	bool lost;

	if (reachable) {
		head = millrace_read(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_HEAD));
		status = millrace_read(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_STATUS));
	}
	spin_lock_irqsave(&q->lock, flags);
	q->stopping = true;
	spin_unlock_irqrestore(&q->lock, flags);
	millrace_queue_reap(ctx);

	spin_lock_irqsave(&q->lock, flags);
	if (reachable && q->known && status != U32_MAX)
		begun = millrace_ring_begun(q->base, q->head, q->tail, head, status);
	else /* there is one entry in work at most, whose ever it was */
		begun = q->head != q->tail;
	op = q->entries[q->head % MILLRACE_RING].op & 0xff;
	lost = !q->error && millrace_ring_lost(begun, op);
	spin_unlock_irqrestore(&q->lock, flags);
	q->known = false;
	if (lost)
		dev_err(&dev->pdev->dev, "ring %u: a run was lost\n", q->index);
	if (lost || q->bad || q->ending)
		millrace_queue_fail(ctx, -EIO);
}

/* What is behind an error in a chain is not done. */
static void end_broken_chain(struct millrace_queue *q)
{
	struct millrace_job *job = millrace_oldest_job(q);

	if (!job || !job->status)
		return;
	q->head += job->count - job->done;
	job->done = job->count;
	millrace_job_finish(q, job);
}

void millrace_queue_restart(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	unsigned long flags;
	u32 i;

	if (q->error) /* what it has left over is nobody's, and may have been what was lost */
		return;
	spin_lock_irqsave(&q->lock, flags);
	q->stopping = false;
	end_broken_chain(q);
	q->base = q->head;
	for (i = q->head; i != q->tail; i++)
		millrace_ring_put(q, i);
	millrace_queue_progress(q);
	millrace_ring_enable(ctx);
	if (q->head != q->tail)
		millrace_ring_doorbell(ctx);
	spin_unlock_irqrestore(&q->lock, flags);
	mod_delayed_work(system_wq, &q->timeout, millrace_tick_period());
}

/* ---- taking down ---------------------------------------------------------------------------- */

/* Under down_lock: after this neither device nor timer knows the context. */
void millrace_queue_down(struct millrace_context *ctx)
{
	millrace_queue_fail(ctx, -EIO);
	cancel_delayed_work_sync(&ctx->queue.timeout);
	millrace_ring_free(ctx);
}

/* ---- time-outs ------------------------------------------------------------------------------ */

/* A ring that has faulted, or makes no progress: it ends, and all else goes on. */
static void give_up(struct millrace_context *ctx, const char *why, u32 status)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_device *dev = ctx->dev;
	bool stopped;

	dev_err(&dev->pdev->dev, "ring %u: %s, status 0x%08x\n", q->index, why, status);
	q->timeouts++;
	millrace_dump(dev, why);
	stopped = millrace_ring_stop(ctx);
	if (stopped) {
		millrace_queue_fail(ctx, -EIO);
	} else {
		WRITE_ONCE(q->ending, true);
		millrace_reset_request(dev);
	}
}

/*
 * How long until the oldest entry is late; 0: it is. One that waits for other rings'
 * work is not, as long as each of them can have had its turn; one whose completion
 * was lost is. A doorbell may have been lost, too, so it is rung again.
 */
static unsigned long until_late(struct millrace_context *ctx, u32 status)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_device *dev = ctx->dev;
	u32 all = millrace_read(dev, MR_PCIE_REG_STATUS);
	u32 head = millrace_read(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_HEAD));
	unsigned long most = min(msecs_to_jiffies(timeout_ms),
				 MAX_JIFFY_OFFSET / MILLRACE_QUEUES_MAX), flags, end, turns;
	bool waits;

	spin_lock_irqsave(&q->lock, flags);
	waits = !(status & MR_PCIE_Q_BUSY) && head == q->head - q->base;
	if (waits)
		millrace_ring_doorbell(ctx);
	if (waits && all & MR_PCIE_STATUS_BUSY)
		q->progress = jiffies;
	end = q->progress + most;
	turns = q->turn + most * dev->hw.queues;
	spin_unlock_irqrestore(&q->lock, flags);
	if (time_after(end, turns))
		end = turns;
	return time_after(jiffies, end) ? 0 : end - jiffies + 1;
}

/*
 * Now and then while there is work: takes what an interrupt was lost for, and
 * stops a ring that has faulted, or whose entry has been in work for too long.
 */
static void tick(struct work_struct *work)
{
	struct millrace_queue *q = container_of(work, struct millrace_queue, timeout.work);
	struct millrace_context *ctx = container_of(q, struct millrace_context, queue);
	struct millrace_device *dev = ctx->dev;
	unsigned long left = MAX_JIFFY_OFFSET;
	u32 status;
	bool bad;

	if (!millrace_try_enter(dev)) {
		if (!READ_ONCE(dev->gone) && millrace_queue_busy(ctx))
			schedule_delayed_work(&q->timeout, millrace_tick_period());
		return;
	}
	millrace_queue_reap(ctx);
	if (!millrace_queue_busy(ctx) || READ_ONCE(q->ending))
		goto out;
	bad = READ_ONCE(q->bad);
	status = millrace_read(dev, millrace_queue_reg(dev, q, MR_PCIE_Q_STATUS));
	if (status != U32_MAX && status & MR_PCIE_Q_ENABLED)
		left = until_late(ctx, status);
	if (!bad && left && status & MR_PCIE_Q_ENABLED && status != U32_MAX)
		goto again;
	millrace_queue_reap(ctx);
	/* Looked at after the status: a ring that is being closed has been told to stop. */
	if (!millrace_queue_busy(ctx) || READ_ONCE(q->closing) || !millrace_running(dev))
		goto again;
	if (status == U32_MAX || (!bad && left && !(status >> MR_PCIE_Q_FAULT & 0xff))) {
		/* No ring's doing: the device is not there, or has lost its state. */
		dev_err(&dev->pdev->dev, "ring %u: the device %s\n", q->index,
			status == U32_MAX ? "does not answer" : "has forgotten it");
		millrace_dump(dev, "lost");
		/* One that resets do not help goes, so that they end. */
		if (++q->losses > LOSSES_MAX)
			WRITE_ONCE(q->ending, true);
		millrace_reset_request(dev);
	} else {
		give_up(ctx, bad ? "bad completion" : left ? "stopped" : "no progress", status);
	}
again:
	if (millrace_queue_busy(ctx) && !q->ending)
		schedule_delayed_work(&q->timeout, min(left, millrace_tick_period()));
out:
	millrace_exit(dev);
}
