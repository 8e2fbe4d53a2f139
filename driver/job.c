// SPDX-License-Identifier: GPL-2.0
/* The jobs of a ring: which there are, how they end, and who is told. */
#include <linux/eventfd.h>
#include <linux/slab.h>

#include "job.h"
#include "map.h"

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

/* With q->lock held. The job may be gone afterwards. */
void millrace_job_finish(struct millrace_queue *q, struct millrace_job *job)
{
	smp_store_release(&job->finished, true); /* with its results */
	if (q->eventfd && !job->clear)
		signal_eventfd(q->eventfd);
	wake_up_all(&q->wait);
	if (job->orphan) {
		millrace_job_take(q, job);
		kfree(job); /* a clear, so it holds nothing */
	}
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
		millrace_job_finish(q, job);
	}
	wake_up_all(&q->wait);
	spin_unlock_irqrestore(&q->lock, flags);
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

/* Whether a job of user space is under way: not what the driver clears. */
bool millrace_queue_jobs(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_job *job;
	unsigned long flags;
	bool any = false;

	spin_lock_irqsave(&q->lock, flags);
	list_for_each_entry(job, &q->jobs, link)
		any |= !job->clear && !job->finished;
	any &= !q->error;
	spin_unlock_irqrestore(&q->lock, flags);
	return any;
}

void millrace_job_free(struct millrace_job *job)
{
	u32 i;

	for (i = 0; i < job->count; i++)
		if (job->maps[i])
			millrace_map_put(job->maps[i]);
	kfree(job);
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
