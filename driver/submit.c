// SPDX-License-Identifier: GPL-2.0
/* Submission: operations become entries of the ring, a doorbell tells the device. */
#include <linux/slab.h>

#include "gate.h"
#include "job.h"
#include "map.h"
#include "millrace.h"
#include "ring.h"
#include "trace.h"

#define CLEAR_MAX SZ_16M /* of one entry, which other rings wait for */

/* Writes the entries, links the job, rings the bell. The caller has checked the room. */
static void push(struct millrace_context *ctx, struct millrace_job *job,
		 const struct millrace_entry *e)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_device *dev = ctx->dev;
	unsigned long flags;
	u32 i;

	for (i = 0; i < job->count; i++) {
		struct millrace_entry *to = &q->entries[(q->tail + i) % MILLRACE_RING];

		*to = e[i];
		to->op |= i + 1 < job->count ? MR_PCIE_FLAG_LINK : MR_PCIE_FLAG_IRQ;
		millrace_ring_put(q, q->tail + i);
	}
	spin_lock_irqsave(&q->lock, flags);
	job->id = job->clear ? 0 : q->next_job++;
	job->first = q->tail;
	if (q->head == q->tail)
		millrace_queue_progress(q);
	list_add_tail(&job->link, &q->jobs);
	q->job_count++;
	q->tail += job->count;
	q->doorbells++;
	trace_millrace_submit(dev->index, q->index, job->id, job->first, job->count);
	millrace_ring_doorbell(ctx);
	spin_unlock_irqrestore(&q->lock, flags);
	millrace_irq_kick(dev);
	schedule_delayed_work(&q->timeout, millrace_tick_period());
}

/* 0 when `count` entries and a job may be submitted. */
static int room(struct millrace_context *ctx, u32 count)
{
	struct millrace_queue *q = &ctx->queue;
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&q->lock, flags);
	if (q->error)
		ret = q->error;
	else if (q->job_count == MILLRACE_JOBS_MAX ||
		 millrace_ring_space(q->head, q->tail, MILLRACE_RING) < count)
		ret = -EAGAIN;
	spin_unlock_irqrestore(&q->lock, flags);
	return ret;
}

static int prepare_copy(struct millrace_context *ctx, const struct millrace_op *op,
			struct millrace_entry *e, struct millrace_job *job, u32 i)
{
	struct millrace_map_object *map = xa_load(&ctx->maps, op->handle);
	bool in = op->op == MILLRACE_OP_COPY_IN;
	u32 seg;

	if (!map)
		return -ENOENT;
	if (!(map->flags & (in ? MILLRACE_MAP_READ : MILLRACE_MAP_WRITE)))
		return -EACCES;
	if (!op->bytes || op->offset >= map->bytes || op->bytes > map->bytes - op->offset)
		return -EINVAL;
	if (!millrace_window_ok(ctx->extents, ctx->extent_count, op->addr, op->bytes))
		return -EFAULT;
	seg = millrace_map_find(map, op->offset, &e->skip);
	e->op = in ? MR_PCIE_OP_COPY_IN : MR_PCIE_OP_COPY_OUT;
	e->host = map->list_dma + (u64)seg * MR_PCIE_SEG_BYTES;
	e->segments = map->segments - seg;
	e->card = op->addr;
	e->bytes = op->bytes;
	kref_get(&map->refs);
	job->maps[i] = map;
	if (!in) {
		job->written[i].offset = op->offset;
		job->written[i].bytes = op->bytes;
	}
	millrace_map_sync_for_device(map, op->offset, op->bytes);
	return 0;
}

/* The descriptor is the driver's copy: user space cannot change what is checked. */
static int prepare_run(struct millrace_context *ctx, const struct millrace_op *op,
		       struct millrace_entry *e, u32 index, const void *descriptor)
{
	struct millrace_queue *q = &ctx->queue;
	u32 slot = index % MILLRACE_RING;
	__le32 *desc = q->descriptors + slot * MILLRACE_DESC_BYTES;

	if (op->handle || op->bytes % 64 || op->bytes > MILLRACE_DESC_BYTES || op->addr % 64)
		return -EINVAL;
	if (!millrace_window_ok(ctx->extents, ctx->extent_count, op->addr, op->bytes))
		return -EFAULT;
	if (!millrace_run_ok(ctx->extents, ctx->extent_count, descriptor, op->bytes / 4,
			     ctx->dev->hw.channels))
		return -EFAULT;
	memcpy(desc, descriptor, op->bytes);
	e->op = MR_PCIE_OP_RUN;
	e->host = q->descriptors_dma + slot * MILLRACE_DESC_BYTES;
	e->card = op->addr;
	e->bytes = op->bytes;
	return 0;
}

int millrace_queue_submit(struct millrace_context *ctx, const struct millrace_op *ops,
			  u32 count, const void *descriptors, u64 *id)
{
	struct millrace_job *job;
	struct millrace_entry *e;
	int ret = room(ctx, count);
	u32 i;

	if (ret)
		return ret;
	job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);
	e = kcalloc(count, sizeof(*e), GFP_KERNEL);
	if (!job || !e) {
		kfree(job);
		kfree(e);
		return -ENOMEM;
	}
	job->count = count;
	for (i = 0; !ret && i < count; i++) {
		if (ops[i].flags || ops[i].reserved)
			ret = -EINVAL;
		else if (ops[i].op == MILLRACE_OP_COPY_IN || ops[i].op == MILLRACE_OP_COPY_OUT)
			ret = prepare_copy(ctx, &ops[i], &e[i], job, i);
		else if (ops[i].op == MILLRACE_OP_RUN)
			ret = prepare_run(ctx, &ops[i], &e[i], ctx->queue.tail + i,
					  descriptors + i * MILLRACE_DESC_BYTES);
		else
			ret = -EINVAL;
	}
	if (ret) {
		millrace_job_free(job);
	} else {
		push(ctx, job, e);
		*id = job->id;
	}
	kfree(e);
	return ret;
}

static int start_clear(struct millrace_context *ctx, const struct millrace_entry *e,
		       struct millrace_job **out)
{
	struct millrace_job *job;
	int ret = millrace_context_enter(ctx);

	if (ret)
		return ret;
	ret = room(ctx, 1);
	if (ret)
		goto out;
	job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);
	if (!job) {
		ret = -ENOMEM;
		goto out;
	}
	job->count = 1;
	job->clear = true;
	push(ctx, job, e);
	*out = job;
out:
	millrace_context_exit(ctx);
	return ret;
}

/* Zeroes card memory, and waits for it: for new buffers, before they are anybody's. */
int millrace_queue_clear(struct millrace_context *ctx, u64 addr, u64 bytes)
{
	struct millrace_queue *q = &ctx->queue;

	while (bytes) {
		struct millrace_entry e = { .op = MR_PCIE_OP_CLEAR, .card = addr,
					    .bytes = min_t(u64, bytes, CLEAR_MAX) };
		struct millrace_job *job;
		unsigned long flags;
		bool orphan, killed;
		int ret = start_clear(ctx, &e, &job);

		if (ret)
			return ret;
		/* Its results come before it says that it is finished. */
		killed = wait_event_state(q->wait, smp_load_acquire(&job->finished),
					  (TASK_KILLABLE | TASK_FREEZABLE));
		spin_lock_irqsave(&q->lock, flags);
		orphan = killed && !job->finished;
		job->orphan = orphan;
		if (!orphan)
			millrace_job_take(q, job);
		spin_unlock_irqrestore(&q->lock, flags);
		if (orphan)
			return -EINTR;
		ret = job->status == MILLRACE_STATUS_CANCELLED ? READ_ONCE(q->error) : 0;
		if (!ret && job->status)
			ret = -EIO;
		millrace_job_free(job);
		if (ret)
			return ret;
		addr += e.bytes;
		bytes -= e.bytes;
	}
	return 0;
}
