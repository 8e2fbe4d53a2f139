// SPDX-License-Identifier: GPL-2.0
/*
 * Completions, which come back by DMA. What the device writes is read once and
 * checked; a completion that cannot be right stops the ring.
 */
#include "job.h"
#include "millrace.h"
#include "trace.h"

enum taken { TAKEN, NOT_DONE, BAD };

/* One completion, of entry q->head. */
static enum taken take_completion(struct millrace_context *ctx, const void *record)
{
	struct millrace_queue *q = &ctx->queue;
	const struct millrace_completion c = millrace_completion_read(record);
	const struct millrace_entry *e = &q->entries[q->head % MILLRACE_RING];
	struct millrace_job *job = millrace_oldest_job(q);

	if (!job || job->first + job->done != q->head || !millrace_completion_ok(&c, q->head))
		return BAD;
	/* Without an error before it in its chain, only stopping the ring cancels an entry. */
	if (c.status == MR_PCIE_E_CANCELLED && !job->status)
		return q->stopping ? NOT_DONE : BAD;
	trace_millrace_completion(ctx->dev->index, q->index, q->head, c.status);
	if (c.status && !job->status) {
		job->status = c.status;
		job->op = job->done;
		job->error = c.error;
		job->addr = c.addr;
	}
	if ((e->op & 0xff) == MR_PCIE_OP_RUN) {
		job->sticky = c.sticky;
		millrace_counters_read(record, job->counters);
	}
	millrace_queue_progress(q);
	q->losses = 0;
	q->head++;
	if (++job->done == job->count)
		millrace_job_finish(q, job);
	return TAKEN;
}

/* Takes what has completed; true when there was something. */
bool millrace_queue_reap(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	enum taken taken = TAKEN;
	unsigned long flags;
	bool any = false;

	spin_lock_irqsave(&q->lock, flags);
	while (taken == TAKEN && !q->error && !q->bad && q->head != q->tail) {
		u32 place = millrace_ring_place(q->base, q->head, MILLRACE_RING);
		const u8 *record = q->completions + place * MR_PCIE_CPL_BYTES;
		const __le32 *c = (const __le32 *)(record + MR_PCIE_CPL_STATUS);

		if (le32_to_cpu(READ_ONCE(c[MR_PCIE_C_SEQ])) != millrace_ring_seq(q->base, q->head))
			break;
		dma_rmb(); /* the rest of the record after its number */
		any = true;
		taken = take_completion(ctx, record);
	}
	if (taken == BAD)
		q->bad = true;
	spin_unlock_irqrestore(&q->lock, flags);
	/* Its jobs end when queue.c has stopped it, as it may still be writing. */
	if (taken == BAD)
		mod_delayed_work(system_wq, &q->timeout, 0);
	return any;
}
