// SPDX-License-Identifier: GPL-2.0
/* Waiting for a job, and taking its result. */
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "gate.h"
#include "job.h"
#include "map.h"
#include "millrace.h"

static struct millrace_job *find_job(struct millrace_queue *q, u64 id)
{
	struct millrace_job *job;

	list_for_each_entry(job, &q->jobs, link)
		if (!job->clear && job->id == id)
			return job;
	return NULL;
}

/* -ENOENT: no such job; -EAGAIN: not finished; 0: taken out of the list. */
static int take_job(struct millrace_queue *q, u64 id, struct millrace_job **out)
{
	struct millrace_job *job;
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&q->lock, flags);
	job = find_job(q, id);
	if (!job) {
		ret = -ENOENT;
	} else if (!job->finished) {
		ret = -EAGAIN;
	} else {
		millrace_job_take(q, job);
		*out = job;
	}
	spin_unlock_irqrestore(&q->lock, flags);
	return ret;
}

static void sync_for_cpu(struct millrace_context *ctx, struct millrace_job *job)
{
	u32 i;

	if (!millrace_hold(ctx->dev))
		return;
	for (i = 0; i < job->count; i++)
		if (job->written[i].bytes)
			millrace_map_sync_for_cpu(job->maps[i], job->written[i].offset,
						  job->written[i].bytes);
	millrace_exit(ctx->dev);
}

/* As take_job(), but the job stays, and its result is in arg. */
static int look(struct millrace_queue *q, struct millrace_wait *arg)
{
	struct millrace_job *job;
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&q->lock, flags);
	job = find_job(q, arg->job);
	if (!job) {
		ret = -ENOENT;
	} else if (!job->finished) {
		ret = -EAGAIN;
	} else {
		arg->status = job->status;
		arg->op = job->op;
		arg->error = job->error;
		arg->addr = job->addr;
		arg->sticky = job->sticky;
		memcpy(arg->counters, job->counters, sizeof(arg->counters));
	}
	spin_unlock_irqrestore(&q->lock, flags);
	return ret;
}

int millrace_queue_wait(struct millrace_context *ctx, struct millrace_wait *arg,
			void __user *user)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_job *job;
	int ret = look(q, arg), error = 0;
	long left;

	if (ret == -EAGAIN && arg->deadline_ns) {
		s64 now = ktime_get_ns();

		if (arg->deadline_ns < 0)
			left = MAX_SCHEDULE_TIMEOUT;
		else
			left = arg->deadline_ns <= now ? 0 :
			       nsecs_to_jiffies(arg->deadline_ns - now) + 1;
		/* Ends at the latest when the ring's own time-out stops it. */
		left = wait_event_interruptible_timeout(q->wait,
							(ret = look(q, arg)) != -EAGAIN, left);
		if (ret == -EAGAIN && left < 0)
			return -ERESTARTSYS; /* the deadline is absolute */
	}
	if (ret)
		return ret == -EAGAIN ? -ETIMEDOUT : ret;
	/* Nothing but the end of its ring cancels a job's first operation that failed. */
	if (arg->status == MILLRACE_STATUS_CANCELLED)
		error = READ_ONCE(q->error) ?: -EIO;
	/* A job whose result could not be written can be waited for again. */
	else if (copy_to_user(user, arg, sizeof(*arg)))
		return -EFAULT;
	ret = take_job(q, arg->job, &job);
	if (ret)
		return ret; /* another thread has it */
	sync_for_cpu(ctx, job);
	millrace_job_free(job);
	return error;
}
