// SPDX-License-Identifier: GPL-2.0
/*
 * Completions, which come back by DMA. What the device writes is read once and
 * checked; a completion that cannot be right stops the ring.
 */
#include "millrace.h"

static void signal_eventfd(struct eventfd_ctx *eventfd)
{
#ifdef MILLRACE_EVENTFD_COUNT /* until 6.7, see Kbuild */
	eventfd_signal(eventfd, 1);
#else
	eventfd_signal(eventfd);
#endif
}

struct millrace_job *millrace_oldest_job(struct millrace_queue *q)
{
	struct millrace_job *job;

	list_for_each_entry(job, &q->jobs, link)
		if (!job->finished)
			return job;
	return NULL;
}

static void finish(struct millrace_queue *q, struct millrace_job *job)
{
	job->finished = true;
	if (q->eventfd)
		signal_eventfd(q->eventfd);
	wake_up_all(&q->wait);
}

void millrace_queue_fail(struct millrace_context *ctx, int error)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_job *job;
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	if (!q->error)
		q->error = error;
	while ((job = millrace_oldest_job(q))) {
		job->status = MILLRACE_STATUS_CANCELLED;
		finish(q, job);
	}
	wake_up_all(&q->wait);
	spin_unlock_irqrestore(&q->lock, flags);
}

/* One completion, of ring entry q->head; false when it cannot be right. */
static bool take_completion(struct millrace_queue *q, const u8 *record)
{
	const __le32 *c = (const __le32 *)(record + MR_PCIE_CPL_STATUS);
	struct millrace_job *job = millrace_oldest_job(q);
	u32 status = le32_to_cpu(READ_ONCE(c[MR_PCIE_C_STATUS])), i;

	if (!job || job->first + job->done != q->head || status > MR_PCIE_E_CANCELLED ||
	    le32_to_cpu(READ_ONCE(c[MR_PCIE_C_TAG])) != q->head)
		return false;
	if (status && !job->status) {
		job->status = status;
		job->op = job->done;
		job->error = le32_to_cpu(READ_ONCE(c[MR_PCIE_C_ERROR]));
		job->addr = le32_to_cpu(READ_ONCE(c[MR_PCIE_C_ADDR_LO])) |
			    (u64)le32_to_cpu(READ_ONCE(c[MR_PCIE_C_ADDR_HI])) << 32;
	}
	if (!job->maps[job->done]) { /* a run */
		job->sticky = le32_to_cpu(READ_ONCE(c[MR_PCIE_C_STICKY]));
		for (i = 0; i < MR_COUNTERS; i++)
			job->counters[i] = le64_to_cpu(READ_ONCE(((const __le64 *)record)[i]));
	}
	job->started = jiffies;
	q->head++;
	if (++job->done == job->count)
		finish(q, job);
	return true;
}

/* Takes what has completed; true when there was something. */
bool millrace_queue_reap(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	unsigned long flags;
	bool any = false, bad = false;

	spin_lock_irqsave(&q->lock, flags);
	while (!q->error && q->head != q->tail) {
		const u8 *record = q->completions + (q->head % MILLRACE_RING) * MR_PCIE_CPL_BYTES;
		const __le32 *c = (const __le32 *)(record + MR_PCIE_CPL_STATUS);

		if (le32_to_cpu(READ_ONCE(c[MR_PCIE_C_SEQ])) != q->head + 1)
			break;
		dma_rmb(); /* the rest of the record after its number */
		any = true;
		if (!take_completion(q, record)) {
			bad = true;
			break;
		}
	}
	spin_unlock_irqrestore(&q->lock, flags);
	if (bad) {
		dev_err_ratelimited(&ctx->dev->pdev->dev, "ring %u: bad completion\n", q->index);
		millrace_queue_fail(ctx, -EIO);
	}
	return any;
}

bool millrace_queue_busy(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	unsigned long flags;
	bool busy;

	spin_lock_irqsave(&q->lock, flags);
	busy = !q->error && q->head != q->tail;
	spin_unlock_irqrestore(&q->lock, flags);
	return busy;
}
