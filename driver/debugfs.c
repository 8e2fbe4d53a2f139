// SPDX-License-Identifier: GPL-2.0
/* /sys/kernel/debug/millrace/<device>/: registers, and what each context is doing. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "gate.h"
#include "hw.h"
#include "millrace.h"

static struct dentry *root;

void millrace_debugfs_begin(void)
{
	root = debugfs_create_dir(KBUILD_MODNAME, NULL);
}

void millrace_debugfs_end(void)
{
	debugfs_remove(root);
}

static int registers_show(struct seq_file *s, void *unused)
{
	static const struct {
		const char *name;
		u32 at;
	} ring[] = {
		{ "size", MR_PCIE_Q_SIZE }, { "ctrl", MR_PCIE_Q_CTRL },
		{ "doorbell", MR_PCIE_Q_DOORBELL }, { "head", MR_PCIE_Q_HEAD },
		{ "status", MR_PCIE_Q_STATUS }, { "vector", MR_PCIE_Q_VECTOR },
	};
	struct millrace_device *dev = s->private;
	u32 q, i;
	int ret = millrace_enter(dev);

	if (ret)
		return ret;
	seq_printf(s, "status 0x%08x\n", millrace_read(dev, MR_PCIE_REG_STATUS));
	for (i = MR_REG_MAGIC; i <= MR_REG_STICKY; i += 4)
		seq_printf(s, "engine 0x%03x 0x%08x\n", i,
			   millrace_read(dev, dev->hw.engine_at + i));
	for (q = 0; q < dev->hw.queues; q++) {
		seq_printf(s, "ring %u", q);
		for (i = 0; i < ARRAY_SIZE(ring); i++)
			seq_printf(s, " %s 0x%x", ring[i].name,
				   millrace_read(dev, dev->hw.queues_at + q * MR_PCIE_Q_STRIDE +
						 ring[i].at));
		seq_putc(s, '\n');
	}
	millrace_exit(dev);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(registers);

static int contexts_show(struct seq_file *s, void *unused)
{
	struct millrace_device *dev = s->private;
	u32 q;

	mutex_lock(&dev->lock);
	for (q = 0; q < dev->hw.queues; q++) {
		struct millrace_context *ctx = dev->contexts[q];

		if (ctx)
			seq_printf(s,
				   "ring %u pid %d jobs %u entries %u..%u error %d doorbells %llu interrupts %llu timeouts %llu\n",
				   q, ctx->pid, ctx->queue.job_count, ctx->queue.head,
				   ctx->queue.tail, ctx->queue.error, ctx->queue.doorbells,
				   ctx->queue.interrupts, ctx->queue.timeouts);
	}
	mutex_unlock(&dev->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(contexts);

void millrace_debugfs_init(struct millrace_device *dev)
{
	dev->debugfs = debugfs_create_dir(dev->name, root);
	debugfs_create_file("registers", 0400, dev->debugfs, dev, &registers_fops);
	debugfs_create_file("contexts", 0400, dev->debugfs, dev, &contexts_fops);
	if (!IS_ENABLED(CONFIG_DEV_COREDUMP))
		debugfs_create_file("dump", 0600, dev->debugfs, dev, &millrace_dump_fops);
}

void millrace_debugfs_exit(struct millrace_device *dev)
{
	debugfs_remove_recursive(dev->debugfs);
}
