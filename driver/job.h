/* SPDX-License-Identifier: GPL-2.0 */
/* The jobs of a ring. */
#ifndef MILLRACE_JOB_H
#define MILLRACE_JOB_H

#include "millrace.h"

struct millrace_job *millrace_oldest_job(struct millrace_queue *q); /* not finished */
void millrace_job_finish(struct millrace_queue *q, struct millrace_job *job);
void millrace_job_free(struct millrace_job *job);
/* With q->lock held: out of the list, and its slot is free. */
static inline void millrace_job_take(struct millrace_queue *q, struct millrace_job *job)
{
	list_del(&job->link);
	q->job_count--;
}

bool millrace_queue_busy(struct millrace_context *ctx);
bool millrace_queue_jobs(struct millrace_context *ctx);
void millrace_queue_fail(struct millrace_context *ctx, int error);
void millrace_queue_free_jobs(struct millrace_context *ctx);
static inline void millrace_queue_progress(struct millrace_queue *q)
{
	q->turn = jiffies;
	q->progress = jiffies;
}

#endif
