// SPDX-License-Identifier: GPL-2.0
/*
 * A context's command ring: operations become entries, a doorbell tells the
 * device, completions come back by DMA. What the device writes is read once and
 * checked; a completion that cannot be right stops the ring.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "millrace.h"

static unsigned int timeout_ms = 60000;
module_param(timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "milliseconds without progress of an operation before its ring is stopped");

static unsigned int stop_ms = 1000;
module_param(stop_ms, uint, 0644);
MODULE_PARM_DESC(stop_ms, "milliseconds that a ring may take to stop");

#define CLEAR_MAX SZ_16M /* of one entry, which other rings wait for */

/* An entry of the ring before it is written. */
struct entry {
	u32 op, bytes, segments, skip;
	u64 host, card;
};

static u32 reg(const struct millrace_queue *q, const struct millrace_device *dev, u32 at)
{
	return dev->queues_at + q->index * MR_PCIE_Q_STRIDE + at;
}

static void signal_eventfd(struct eventfd_ctx *eventfd)
{
#ifdef MILLRACE_EVENTFD_COUNT /* until 6.7, see Kbuild */
	eventfd_signal(eventfd, 1);
#else
	eventfd_signal(eventfd);
#endif
}

/* Between looks for what an interrupt has missed, and for time-outs. */
static unsigned long tick_period(void)
{
	return msecs_to_jiffies(clamp(timeout_ms / 4, 10U, 500U));
}

/* ---- setting up and taking down ------------------------------------------------------------- */

static void tick(struct work_struct *work);

static void set_address(struct millrace_context *ctx, u32 at, dma_addr_t addr)
{
	millrace_write(ctx->dev, reg(&ctx->queue, ctx->dev, at), lower_32_bits(addr));
	millrace_write(ctx->dev, reg(&ctx->queue, ctx->dev, at + 4), upper_32_bits(addr));
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
	status = millrace_read(dev, reg(q, dev, MR_PCIE_Q_STATUS));
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
	millrace_write(dev, reg(q, dev, MR_PCIE_Q_SIZE), MILLRACE_RING_LOG2);
	millrace_write(dev, reg(q, dev, MR_PCIE_Q_VECTOR), millrace_irq_vector(dev, index));
	millrace_write(dev, reg(q, dev, MR_PCIE_Q_CTRL), 1);
	return 0;
}

/* The ring is told to stop, and waited for: from then on it makes no accesses. */
void millrace_queue_stop(struct millrace_context *ctx)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_device *dev = ctx->dev;
	unsigned long end = jiffies + msecs_to_jiffies(stop_ms) + 1;
	u32 status, i;

	millrace_write(dev, reg(q, dev, MR_PCIE_Q_CTRL), 0);
	for (;;) {
		bool last = time_after(jiffies, end);

		status = millrace_read(dev, reg(q, dev, MR_PCIE_Q_STATUS));
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

static void free_job(struct millrace_job *job)
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
		free_job(job);
	}
}

/* ---- completion ----------------------------------------------------------------------------- */

static struct millrace_job *oldest_unfinished(struct millrace_queue *q)
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
	while ((job = oldest_unfinished(q))) {
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
	struct millrace_job *job = oldest_unfinished(q);
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
	status = millrace_read(dev, reg(q, dev, MR_PCIE_Q_STATUS));
	spin_lock_irqsave(&q->lock, flags);
	job = oldest_unfinished(q);
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
		schedule_delayed_work(&q->timeout, tick_period());
	}
out:
	millrace_exit(dev);
}

/* ---- submission ----------------------------------------------------------------------------- */

static void put_entry(struct millrace_queue *q, u32 index, const struct entry *e, u32 flags)
{
	__le32 *w = q->ring + (index % MILLRACE_RING) * (MR_PCIE_ENTRY_BYTES / 4);

	memset(w, 0, MR_PCIE_ENTRY_BYTES);
	/* A completion of this place that is still there belongs to an earlier entry. */
	memset(q->completions + (index % MILLRACE_RING) * MR_PCIE_CPL_BYTES, 0, MR_PCIE_CPL_BYTES);
	w[MR_PCIE_W_OP] = cpu_to_le32(e->op | flags);
	w[MR_PCIE_W_TAG] = cpu_to_le32(index);
	w[MR_PCIE_W_HOST_LO] = cpu_to_le32(lower_32_bits(e->host));
	w[MR_PCIE_W_HOST_HI] = cpu_to_le32(upper_32_bits(e->host));
	w[MR_PCIE_W_CARD_LO] = cpu_to_le32(lower_32_bits(e->card));
	w[MR_PCIE_W_CARD_HI] = cpu_to_le32(upper_32_bits(e->card));
	w[MR_PCIE_W_BYTES] = cpu_to_le32(e->bytes);
	w[MR_PCIE_W_SEGMENTS] = cpu_to_le32(e->segments);
	w[MR_PCIE_W_SKIP] = cpu_to_le32(e->skip);
}

/* Writes the entries, links the job, rings the bell. The caller has checked the room. */
static void push(struct millrace_context *ctx, struct millrace_job *job, const struct entry *e)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_device *dev = ctx->dev;
	unsigned long flags;
	u32 i;

	for (i = 0; i < job->count; i++)
		put_entry(q, q->tail + i, &e[i],
			  i + 1 < job->count ? MR_PCIE_FLAG_LINK : MR_PCIE_FLAG_IRQ);
	spin_lock_irqsave(&q->lock, flags);
	job->id = q->next_job++;
	job->first = q->tail;
	job->started = jiffies;
	list_add_tail(&job->link, &q->jobs);
	q->job_count++;
	q->tail += job->count;
	q->doorbells++;
	spin_unlock_irqrestore(&q->lock, flags);
	dma_wmb(); /* entries before the bell */
	millrace_write(dev, reg(q, dev, MR_PCIE_Q_DOORBELL), q->tail & 0xffff);
	millrace_irq_kick(dev);
	schedule_delayed_work(&q->timeout, tick_period());
}

/* 0 when `count` entries and a job may be submitted. */
static int room(struct millrace_context *ctx, u32 count)
{
	struct millrace_queue *q = &ctx->queue;
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&q->lock, flags);
	if (q->error || ctx->dev->stuck)
		ret = q->error ? q->error : -EIO;
	else if (q->job_count == MILLRACE_JOBS_MAX ||
		 millrace_ring_space(q->head, q->tail, MILLRACE_RING) < count)
		ret = -EAGAIN;
	spin_unlock_irqrestore(&q->lock, flags);
	return ret;
}

static int prepare_copy(struct millrace_context *ctx, const struct millrace_op *op,
			struct entry *e, struct millrace_map_object **out)
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
	*out = map;
	/* For the device, also where memory is bounced. */
	dma_sync_sgtable_for_device(&ctx->dev->pdev->dev, &map->sgt,
				    map->flags & MILLRACE_MAP_WRITE ?
				    (map->flags & MILLRACE_MAP_READ ? DMA_BIDIRECTIONAL :
				     DMA_FROM_DEVICE) : DMA_TO_DEVICE);
	return 0;
}

/* The descriptor is the driver's copy: user space cannot change it any more. */
static int prepare_run(struct millrace_context *ctx, const struct millrace_op *op,
		       struct entry *e, u32 index)
{
	struct millrace_queue *q = &ctx->queue;
	u32 slot = index % MILLRACE_RING;
	__le32 *desc = q->descriptors + slot * MILLRACE_DESC_BYTES;

	if (op->handle || op->bytes % 64 || op->bytes > MILLRACE_DESC_BYTES || op->addr % 64)
		return -EINVAL;
	if (!millrace_window_ok(ctx->extents, ctx->extent_count, op->addr, op->bytes))
		return -EFAULT;
	if (copy_from_user(desc, u64_to_user_ptr(op->offset), op->bytes))
		return -EFAULT;
	if (!millrace_run_ok(ctx->extents, ctx->extent_count, desc, op->bytes / 4,
			     ctx->dev->channels))
		return -EFAULT;
	e->op = MR_PCIE_OP_RUN;
	e->host = q->descriptors_dma + slot * MILLRACE_DESC_BYTES;
	e->card = op->addr;
	e->bytes = op->bytes;
	return 0;
}

int millrace_queue_submit(struct millrace_context *ctx, const struct millrace_op *ops,
			  u32 count, u64 *id)
{
	struct millrace_job *job;
	struct entry *e;
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
			ret = prepare_copy(ctx, &ops[i], &e[i], &job->maps[i]);
		else if (ops[i].op == MILLRACE_OP_RUN)
			ret = prepare_run(ctx, &ops[i], &e[i], ctx->queue.tail + i);
		else
			ret = -EINVAL;
	}
	if (ret) {
		free_job(job);
	} else {
		push(ctx, job, e);
		*id = job->id;
	}
	kfree(e);
	return ret;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static struct millrace_job *find_job(struct millrace_queue *q, u64 id)
{
	struct millrace_job *job;

	list_for_each_entry(job, &q->jobs, link)
		if (job->id == id)
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
		list_del(&job->link);
		q->job_count--;
		*out = job;
	}
	spin_unlock_irqrestore(&q->lock, flags);
	return ret;
}

static void sync_for_cpu(struct millrace_context *ctx, struct millrace_job *job)
{
	u32 i;

	if (millrace_enter(ctx->dev))
		return;
	for (i = 0; i < job->count; i++) {
		struct millrace_map_object *map = job->maps[i];

		if (map && map->mapped && map->flags & MILLRACE_MAP_WRITE)
			dma_sync_sgtable_for_cpu(&ctx->dev->pdev->dev, &map->sgt,
						 map->flags & MILLRACE_MAP_READ ?
						 DMA_BIDIRECTIONAL : DMA_FROM_DEVICE);
	}
	millrace_exit(ctx->dev);
}

int millrace_queue_wait(struct millrace_context *ctx, struct millrace_wait *arg)
{
	struct millrace_queue *q = &ctx->queue;
	struct millrace_job *job;
	int ret = take_job(q, arg->job, &job), error;
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
							(ret = take_job(q, arg->job, &job)) !=
							-EAGAIN, left);
		if (ret == -EAGAIN && left < 0)
			return -ERESTARTSYS; /* the deadline is absolute */
	}
	if (ret)
		return ret == -EAGAIN ? -ETIMEDOUT : ret;
	sync_for_cpu(ctx, job);
	arg->status = job->status;
	arg->op = job->op;
	arg->error = job->error;
	arg->addr = job->addr;
	arg->sticky = job->sticky;
	memcpy(arg->counters, job->counters, sizeof(arg->counters));
	/* Nothing but the end of its ring cancels a job's first operation that failed. */
	error = 0;
	if (job->status == MILLRACE_STATUS_CANCELLED)
		error = READ_ONCE(q->error) ?: -EIO;
	free_job(job);
	return error;
}

/* Zeroes card memory, and waits for it: for new buffers, before they are anybody's. */
int millrace_queue_clear(struct millrace_context *ctx, u64 addr, u64 bytes)
{
	struct millrace_queue *q = &ctx->queue;

	while (bytes) {
		struct entry e = { .op = MR_PCIE_OP_CLEAR, .card = addr,
				   .bytes = min_t(u64, bytes, CLEAR_MAX) };
		struct millrace_job *job, *done;
		int ret = room(ctx, 1);
		u64 id;

		if (ret)
			return ret;
		job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);
		if (!job)
			return -ENOMEM;
		job->count = 1;
		push(ctx, job, &e);
		id = q->next_job - 1;
		wait_event_killable(q->wait, (ret = take_job(q, id, &done)) != -EAGAIN);
		if (ret)
			return -EINTR; /* killed: the job stays until the context goes */
		ret = done->status ? -EIO : 0;
		free_job(done);
		if (ret)
			return ret;
		addr += e.bytes;
		bytes -= e.bytes;
	}
	return 0;
}
