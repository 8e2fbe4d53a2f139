// SPDX-License-Identifier: GPL-2.0
/*
 * What the device and the driver's rings looked like when one had to be stopped: a
 * text (docs/board/driver-faults.md), given to devcoredump, or to debugfs where the kernel has
 * none. The first one is kept until it is read: later faults may be its consequences.
 */
#include <linux/devcoredump.h>
#include <linux/fs.h>
#include <linux/seq_buf.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "hw.h"
#include "millrace.h"

#define DUMP_BYTES SZ_64K

static void put_registers(struct millrace_device *dev, struct seq_buf *s)
{
	u32 at, q;

	seq_buf_printf(s, "status 0x%08x\n", millrace_read(dev, MR_PCIE_REG_STATUS));
	seq_buf_printf(s, "scrub 0x%08x 0x%08x\n", millrace_read(dev, dev->hw.scrub_at),
		       millrace_read(dev, dev->hw.scrub_at + 4));
	for (at = MR_REG_MAGIC; at <= MR_REG_STICKY; at += 4)
		seq_buf_printf(s, "engine 0x%03x 0x%08x\n", at,
			       millrace_read(dev, dev->hw.engine_at + at));
	for (q = 0; q < MR_COUNTERS; q++) {
		at = dev->hw.engine_at + MR_REG_COUNTERS + 8 * q;
		seq_buf_printf(s, "counter %u 0x%08x%08x\n", q, millrace_read(dev, at + 4),
			       millrace_read(dev, at));
	}
	for (q = 0; q < dev->hw.queues; q++) {
		seq_buf_printf(s, "ring %u", q);
		for (at = 0; at <= MR_PCIE_Q_VECTOR; at += 4)
			seq_buf_printf(s, " 0x%x",
				       millrace_read(dev, dev->hw.queues_at + q * MR_PCIE_Q_STRIDE +
						     at));
		seq_buf_printf(s, "\n");
	}
}

static void put_context(struct millrace_context *ctx, struct seq_buf *s)
{
	struct millrace_queue *q = &ctx->queue;
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&q->lock, flags);
	seq_buf_printf(s, "context ring %u pid %d jobs %u base %u head %u tail %u error %d\n",
		       q->index, ctx->pid, q->job_count, q->base, q->head, q->tail, q->error);
	for (i = q->head; i != q->tail && i - q->head < MILLRACE_RING; i++) {
		const struct millrace_entry *e = &q->entries[i % MILLRACE_RING];

		seq_buf_printf(s, "entry %u op 0x%x host 0x%llx card 0x%llx bytes %u segments %u\n",
			       i, e->op, e->host, e->card, e->bytes, e->segments);
	}
	spin_unlock_irqrestore(&q->lock, flags);
}

static size_t put_all(struct millrace_device *dev, const char *reason, char *text)
{
	struct seq_buf s;
	u32 q;

	seq_buf_init(&s, text, DUMP_BYTES);
	seq_buf_printf(&s, "millrace dump 1\ndevice %s %s\nreason %s\ninterface %u.%u\n",
		       dev_name(&dev->pdev->dev), dev->name, reason, dev->hw.version >> 16,
		       dev->hw.version & 0xffff);
	put_registers(dev, &s);
	mutex_lock(&dev->lock);
	for (q = 0; q < dev->hw.queues; q++)
		if (dev->contexts[q])
			put_context(dev->contexts[q], &s);
	mutex_unlock(&dev->lock);
	seq_buf_printf(&s, "end\n");
	return seq_buf_used(&s);
}

/* With the device held. */
void millrace_dump(struct millrace_device *dev, const char *reason)
{
	char *text = vmalloc(DUMP_BYTES);
	size_t bytes;

	if (!text)
		return; /* recovery is worth more */
	bytes = put_all(dev, reason, text);
	if (IS_ENABLED(CONFIG_DEV_COREDUMP)) {
		dev_coredumpv(&dev->pdev->dev, text, bytes, GFP_KERNEL);
		return;
	}
	/* Its reader may take its time, where it puts it is not there: it has the first one. */
	if (mutex_trylock(&dev->dump_lock)) {
		swap(text, dev->dump);
		if (text)
			swap(text, dev->dump); /* the first one has not been read */
		else
			dev->dump_bytes = bytes;
		mutex_unlock(&dev->dump_lock);
	}
	vfree(text);
}

void millrace_dump_free(struct millrace_device *dev)
{
	vfree(dev->dump);
	dev->dump = NULL;
}

/* ---- debugfs: reading gives the dump, writing anything discards it, as with devcoredump ----- */

static ssize_t dump_read(struct file *file, char __user *to, size_t count, loff_t *at)
{
	struct millrace_device *dev = file->private_data;
	ssize_t ret = 0;

	mutex_lock(&dev->dump_lock);
	if (dev->dump)
		ret = simple_read_from_buffer(to, count, at, dev->dump, dev->dump_bytes);
	mutex_unlock(&dev->dump_lock);
	return ret;
}

static ssize_t dump_write(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	struct millrace_device *dev = file->private_data;

	mutex_lock(&dev->dump_lock);
	millrace_dump_free(dev);
	mutex_unlock(&dev->dump_lock);
	return count;
}

const struct file_operations millrace_dump_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = dump_read,
	.write = dump_write,
};
