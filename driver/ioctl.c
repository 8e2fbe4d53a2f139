// SPDX-License-Identifier: GPL-2.0
/* What a program may do with an open file: ioctls and poll. */
#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "gate.h"
#include "map.h"
#include "millrace.h"

static int get_info(struct millrace_context *ctx, struct millrace_info *info)
{
	struct millrace_device *dev = ctx->dev;

	*info = (struct millrace_info){
		.uapi_version = MILLRACE_UAPI_VERSION,
		.device_version = dev->hw.version,
		.channels = dev->hw.channels,
		.ops_max = MILLRACE_OPS_MAX,
		.jobs_max = MILLRACE_JOBS_MAX,
		.counters = MR_COUNTERS,
		.channel_bytes = BIT_ULL(dev->hw.mem_log2),
		.map_bytes_max = MILLRACE_MAP_BYTES_MAX,
	};
	memcpy(info->engine, dev->hw.engine, sizeof(info->engine));
	return 0;
}

static int unmap(struct millrace_context *ctx, const struct millrace_unmap *arg)
{
	struct millrace_map_object *map;

	if (arg->reserved)
		return -EINVAL;
	map = xa_erase(&ctx->maps, arg->handle);
	if (!map)
		return -ENOENT;
	millrace_map_put(map); /* stays in map_list while a job uses it */
	return 0;
}

/* The descriptors of the runs. What is too long is refused later. */
static int get_descriptors(const struct millrace_op *ops, u32 count, u8 **out)
{
	u8 *d = NULL;
	u32 i;

	for (i = 0; i < count; i++) {
		if (ops[i].op != MILLRACE_OP_RUN || ops[i].bytes > MILLRACE_DESC_BYTES)
			continue;
		if (!d)
			d = kvcalloc(count, MILLRACE_DESC_BYTES, GFP_KERNEL);
		if (!d)
			return -ENOMEM;
		if (copy_from_user(d + i * MILLRACE_DESC_BYTES, u64_to_user_ptr(ops[i].offset),
				   ops[i].bytes)) {
			kvfree(d);
			return -EFAULT;
		}
	}
	*out = d;
	return 0;
}

/* User memory may take its time to be there: it is read before anything is held. */
static int submit(struct millrace_context *ctx, struct millrace_submit *arg)
{
	struct millrace_op *ops;
	u8 *descriptors = NULL;
	int ret;

	if (arg->flags || !arg->count || arg->count > MILLRACE_OPS_MAX || arg->job)
		return -EINVAL;
	ops = memdup_user(u64_to_user_ptr(arg->ops), arg->count * sizeof(*ops));
	if (IS_ERR(ops))
		return PTR_ERR(ops);
	ret = get_descriptors(ops, arg->count, &descriptors);
	if (!ret)
		ret = millrace_context_enter(ctx);
	if (!ret) {
		ret = millrace_queue_submit(ctx, ops, arg->count, descriptors, &arg->job);
		millrace_context_exit(ctx);
	}
	kvfree(descriptors);
	kfree(ops);
	return ret;
}

/* Likewise. */
static int map(struct millrace_context *ctx, struct millrace_map *arg)
{
	struct millrace_memory *memory = millrace_memory_create(arg);
	int ret;

	if (IS_ERR(memory))
		return PTR_ERR(memory);
	ret = millrace_context_enter(ctx);
	if (ret) {
		millrace_memory_put(memory);
		return ret;
	}
	ret = millrace_map_create(ctx, arg, memory);
	millrace_context_exit(ctx);
	return ret;
}

static int set_eventfd(struct millrace_context *ctx, const struct millrace_eventfd *arg)
{
	struct eventfd_ctx *fresh = NULL, *old;
	unsigned long flags;

	if (arg->reserved || arg->fd < -1)
		return -EINVAL;
	if (arg->fd >= 0) {
		fresh = eventfd_ctx_fdget(arg->fd);
		if (IS_ERR(fresh))
			return PTR_ERR(fresh);
	}
	spin_lock_irqsave(&ctx->queue.lock, flags);
	old = ctx->queue.eventfd;
	ctx->queue.eventfd = fresh;
	spin_unlock_irqrestore(&ctx->queue.lock, flags);
	if (old)
		eventfd_ctx_put(old);
	return 0;
}

union argument {
	struct millrace_info info;
	struct millrace_alloc alloc;
	struct millrace_free free;
	struct millrace_map map;
	struct millrace_unmap unmap;
	struct millrace_submit submit;
	struct millrace_wait wait;
	struct millrace_eventfd eventfd;
	struct millrace_export export;
	struct millrace_import import;
};

/* What needs the device, with device and context held. */
static int with_device(struct millrace_context *ctx, unsigned int cmd, union argument *arg,
		       struct file **file)
{
	int ret = millrace_context_enter(ctx);

	if (ret)
		return ret;
	switch (cmd) {
	case MILLRACE_IOC_INFO:
		ret = get_info(ctx, &arg->info);
		break;
	case MILLRACE_IOC_FREE:
		ret = arg->free.reserved ? -EINVAL : millrace_card_free(ctx, arg->free.addr);
		break;
	case MILLRACE_IOC_UNMAP:
		ret = unmap(ctx, &arg->unmap);
		break;
	case MILLRACE_IOC_EXPORT:
		ret = millrace_export(ctx, &arg->export, file);
		break;
	case MILLRACE_IOC_IMPORT:
		ret = millrace_import(ctx, &arg->import);
		break;
	default:
		ret = -ENOTTY;
	}
	millrace_context_exit(ctx);
	return ret;
}

static long ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	struct millrace_context *ctx = file->private_data;
	struct file *exported = NULL;
	union argument arg;
	long ret;

	if (_IOC_TYPE(cmd) != 'R' || _IOC_SIZE(cmd) > sizeof(arg))
		return -ENOTTY;
	memset(&arg, 0, sizeof(arg));
	if (_IOC_DIR(cmd) & _IOC_WRITE && copy_from_user(&arg, (void __user *)user, _IOC_SIZE(cmd)))
		return -EFAULT;
	switch (cmd) {
	case MILLRACE_IOC_WAIT: /* sleeps without holding the device, so that it can be removed */
		if (arg.wait.flags || arg.wait.reserved)
			return -EINVAL;
		return millrace_queue_wait(ctx, &arg.wait, (void __user *)user);
	case MILLRACE_IOC_EVENTFD:
		ret = set_eventfd(ctx, &arg.eventfd);
		break;
	case MILLRACE_IOC_ALLOC: /* so does this */
		ret = arg.alloc.addr ? -EINVAL : millrace_card_alloc(ctx, &arg.alloc);
		break;
	case MILLRACE_IOC_MAP:
		ret = map(ctx, &arg.map);
		break;
	case MILLRACE_IOC_SUBMIT:
		ret = submit(ctx, &arg.submit);
		break;
	default:
		ret = with_device(ctx, cmd, &arg, &exported);
	}
	if (!ret && _IOC_DIR(cmd) & _IOC_READ &&
	    copy_to_user((void __user *)user, &arg, _IOC_SIZE(cmd)))
		ret = -EFAULT;
	if (exported && ret) {
		put_unused_fd(arg.export.fd);
		fput(exported);
	} else if (exported) {
		fd_install(arg.export.fd, exported); /* others may see it from here on */
	}
	return ret;
}

/* Readable: a job has ended and can be waited for. */
static __poll_t poll(struct file *file, poll_table *table)
{
	struct millrace_context *ctx = file->private_data;
	struct millrace_queue *q = &ctx->queue;
	struct millrace_job *job;
	unsigned long flags;
	__poll_t events = 0;

	poll_wait(file, &q->wait, table);
	spin_lock_irqsave(&q->lock, flags);
	list_for_each_entry(job, &q->jobs, link) {
		if (job->clear)
			continue;
		if (job->finished)
			events |= EPOLLIN | EPOLLRDNORM;
		break;
	}
	if (q->error)
		events |= EPOLLERR;
	spin_unlock_irqrestore(&q->lock, flags);
	return events;
}

const struct file_operations millrace_fops = {
	.owner = THIS_MODULE,
	.open = millrace_context_open,
	.release = millrace_context_release,
	.unlocked_ioctl = ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = poll,
};
