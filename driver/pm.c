// SPDX-License-Identifier: GPL-2.0
/* Suspend and resume. Contexts go on where card memory has kept its content. */
#include <linux/pm.h>
#include <linux/suspend.h>

#include "hw.h"
#include "job.h"
#include "millrace.h"

static int millrace_suspend(struct device *d)
{
	struct millrace_device *dev = dev_get_drvdata(d);

	/* In this order: while it is paused nobody asks for a reset. Resuming sees to it. */
	millrace_pause(dev, true);
	millrace_reset_cancel(dev);
	/*
	 * In D0 card memory stays. Where the platform does not take the power away by
	 * itself, a saved state tells the PCI core to leave it to the driver.
	 */
	if (!pm_suspend_via_firmware())
		pci_save_state(dev->pdev);
	return 0;
}

static void forget_card(struct millrace_device *dev)
{
	struct millrace_context *ctx;
	u32 q;

	mutex_lock(&dev->lock);
	for (q = 0; q < dev->hw.queues; q++) {
		ctx = dev->contexts[q];
		if (ctx && (ctx->extent_count || !list_empty(&ctx->clearing)))
			millrace_queue_fail(ctx, -EIO);
	}
	mutex_unlock(&dev->lock);
}

static int resume(struct device *d, bool lost)
{
	struct millrace_device *dev = dev_get_drvdata(d);
	u32 status = millrace_read(dev, MR_PCIE_REG_STATUS);

	if (lost)
		forget_card(dev);
	/* Rings that did not stop: reset_done() does the rest. */
	if (status != U32_MAX && status & MR_PCIE_STATUS_BUSY &&
	    !pci_reset_function_locked(dev->pdev))
		return 0;
	return millrace_resume(dev);
}

static int millrace_pm_resume(struct device *d)
{
	return resume(d, pm_resume_via_firmware());
}

static int millrace_restore(struct device *d)
{
	return resume(d, true);
}

const struct dev_pm_ops millrace_pm_ops = {
	.suspend = millrace_suspend,
	.resume = millrace_pm_resume,
	.freeze = millrace_suspend,
	.thaw = millrace_pm_resume,
	.poweroff = millrace_suspend,
	.restore = millrace_restore,
};
