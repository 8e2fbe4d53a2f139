// SPDX-License-Identifier: GPL-2.0
/* Interrupts: a vector for each ring, or fewer, or a timer that looks at the completions. */
#include <linux/interrupt.h>
#include <linux/module.h>

#include "hw.h"
#include "job.h"
#include "millrace.h"
#include "trace.h"

static char *irq_mode = "auto";
module_param(irq_mode, charp, 0444);
MODULE_PARM_DESC(irq_mode, "auto: MSI-X, else MSI; single: one vector; msi; poll");

static unsigned int poll_ms = 1;
module_param(poll_ms, uint, 0444);
MODULE_PARM_DESC(poll_ms, "milliseconds between looks at the completions when polling");

/* Rings of one vector, or with vector < 0 of all; whether any had work under way. */
static bool look(struct millrace_device *dev, int vector)
{
	bool busy = false;
	u32 q;

	mutex_lock(&dev->lock);
	for (q = 0; q < dev->hw.queues; q++) {
		struct millrace_context *ctx = dev->contexts[q];

		if (!ctx || (vector >= 0 && millrace_irq_vector(dev, q) != vector))
			continue;
		if (vector >= 0)
			ctx->queue.interrupts++;
		millrace_queue_reap(ctx);
		busy |= millrace_queue_busy(ctx);
	}
	mutex_unlock(&dev->lock);
	return busy;
}

/* Message signalled, so always ours: nothing is shared, nothing to acknowledge. */
static irqreturn_t millrace_irq(int irq, void *data)
{
	struct millrace_device *dev = data;
	int v;

	for (v = 0; v < dev->vectors; v++)
		if (pci_irq_vector(dev->pdev, v) == irq) {
			trace_millrace_interrupt(dev->index, v);
			look(dev, v);
		}
	return IRQ_HANDLED;
}

static void poll_worker(struct work_struct *work)
{
	struct millrace_device *dev = container_of(work, struct millrace_device, poll_work);

	if (look(dev, -1))
		millrace_irq_kick(dev);
}

static void poll_timer(struct timer_list *timer)
{
	struct millrace_device *dev = container_of(timer, struct millrace_device, poll);

	queue_work(system_highpri_wq, &dev->poll_work);
}

void millrace_irq_kick(struct millrace_device *dev)
{
	if (!dev->vectors)
		mod_timer(&dev->poll, jiffies + msecs_to_jiffies(poll_ms));
}

static int request_all(struct millrace_device *dev)
{
	int v, ret;

	for (v = 0; v < dev->vectors; v++) {
		ret = request_threaded_irq(pci_irq_vector(dev->pdev, v), NULL, millrace_irq,
					   IRQF_ONESHOT, dev->name, dev);
		if (ret) {
			while (v--)
				free_irq(pci_irq_vector(dev->pdev, v), dev);
			return ret;
		}
	}
	return 0;
}

int millrace_irq_init(struct millrace_device *dev)
{
	unsigned int flags = PCI_IRQ_MSIX | PCI_IRQ_MSI;
	int most = dev->hw.queues, ret;

	timer_setup(&dev->poll, poll_timer, 0);
	INIT_WORK(&dev->poll_work, poll_worker);
	dev->vectors = 0;
	if (!strcmp(irq_mode, "poll"))
		return 0;
	if (!strcmp(irq_mode, "msi"))
		flags = PCI_IRQ_MSI;
	else if (!strcmp(irq_mode, "single"))
		most = 1;
	else if (strcmp(irq_mode, "auto"))
		return dev_err_probe(&dev->pdev->dev, -EINVAL, "irq_mode=%s is not known\n",
				     irq_mode);
	ret = pci_alloc_irq_vectors(dev->pdev, 1, most, flags);
	if (ret < 0) {
		dev_warn(&dev->pdev->dev, "no interrupt vectors (%d): polling\n", ret);
		return 0;
	}
	dev->vectors = ret;
	ret = request_all(dev);
	if (ret) {
		pci_free_irq_vectors(dev->pdev);
		dev->vectors = 0;
		return dev_err_probe(&dev->pdev->dev, ret, "no interrupt\n");
	}
	return 0;
}

void millrace_irq_exit(struct millrace_device *dev)
{
	int v;

	for (v = 0; v < dev->vectors; v++)
		free_irq(pci_irq_vector(dev->pdev, v), dev);
	if (dev->vectors)
		pci_free_irq_vectors(dev->pdev);
	/* The work starts the timer again while something is under way. */
	cancel_work_sync(&dev->poll_work);
	del_timer_sync(&dev->poll);
	cancel_work_sync(&dev->poll_work);
}
