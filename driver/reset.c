// SPDX-License-Identifier: GPL-2.0
/*
 * Taking work off the device and giving it back: function resets (the driver's own,
 * and others'), errors of the bus, a device that does not answer.
 */
#include <linux/delay.h>
#include <linux/module.h>

#include "gate.h"
#include "hw.h"
#include "job.h"
#include "millrace.h"
#include "ring.h"

#include "trace.h"

/* The PCI core alone waits for up to a minute until a device answers after a reset. */
static unsigned int recovery_ms = 90000;
module_param(recovery_ms, uint, 0644);
MODULE_PARM_DESC(recovery_ms, "milliseconds that recovery from an error of the bus may take");

#define AGAIN_MS 10 /* while somebody else has the PCI device's lock */

static const char *name_of(enum millrace_state state)
{
	return state == MILLRACE_RUNNING ? "running" : state == MILLRACE_PAUSED ? "paused" : "dead";
}

const char *millrace_state(struct millrace_device *dev)
{
	if (!millrace_running(dev))
		return name_of(MILLRACE_PAUSED);
	return name_of(READ_ONCE(dev->dead) ? MILLRACE_DEAD : MILLRACE_RUNNING);
}

static void tell_user_space(struct millrace_device *dev, enum millrace_state state)
{
	char text[32], *env[2];

	env[0] = text;
	env[1] = NULL;
	snprintf(text, sizeof(text), "MILLRACE_STATE=%s", name_of(state));
	trace_millrace_reset(dev->index, state);
	if (dev->misc.this_device)
		kobject_uevent_env(&dev->misc.this_device->kobj, KOBJ_CHANGE, env);
}

void millrace_fail_all(struct millrace_device *dev, int error)
{
	u32 q;

	mutex_lock(&dev->lock);
	for (q = 0; q < dev->hw.queues; q++)
		if (dev->contexts[q])
			millrace_queue_fail(dev->contexts[q], error);
	mutex_unlock(&dev->lock);
}

/* ---- off the device, and back --------------------------------------------------------------- */

/* True when it came to be within the time that a ring may take to stop. */
static bool wait_for(struct millrace_device *dev, bool (*done)(struct millrace_context *))
{
	unsigned long end = jiffies + millrace_stop_time();
	bool last, all;
	u32 q;

	for (;;) {
		last = time_after(jiffies, end);
		all = true;
		for (q = 0; q < dev->hw.queues; q++)
			if (dev->contexts[q] && !done(dev->contexts[q]))
				all = false;
		if (all || last)
			return all;
		usleep_range(100, 200);
	}
}

/* Or a ring that the device has lost. */
static bool drained(struct millrace_context *ctx)
{
	u32 at = millrace_queue_reg(ctx->dev, &ctx->queue, MR_PCIE_Q_STATUS);

	millrace_queue_reap(ctx);
	return !millrace_queue_busy(ctx) || !(millrace_read(ctx->dev, at) & MR_PCIE_Q_ENABLED);
}

/* A ring has not stopped within its time: nothing is gained by more of it. */
static bool is_stuck(struct millrace_device *dev)
{
	u32 q;

	for (q = 0; q < dev->hw.queues; q++)
		if (dev->contexts[q] && dev->contexts[q]->queue.ending)
			return true;
	return !dev->pdev->is_busmaster; /* one whose file was closed */
}

/* What is under way is let finish for a while; then rings and bus mastering go off. */
static void quieten(struct millrace_device *dev, bool reachable)
{
	bool stuck = is_stuck(dev);
	u32 q;

	if (reachable && !stuck)
		wait_for(dev, drained);
	for (q = 0; reachable && q < dev->hw.queues; q++)
		if (dev->contexts[q])
			millrace_queue_quiesce(dev->contexts[q]);
	if (reachable && !stuck)
		wait_for(dev, millrace_ring_at_rest);
	pci_clear_master(dev->pdev);
	for (q = 0; q < dev->hw.queues; q++)
		if (dev->contexts[q])
			millrace_queue_settle(dev->contexts[q], reachable);
	dev->quiet = true;
}

/* `reachable`: registers may be accessed. Without, DMA has ended or ends by itself. */
void millrace_pause(struct millrace_device *dev, bool reachable)
{
	down_write(&dev->alive);
	WRITE_ONCE(dev->paused, true);
	up_write(&dev->alive);
	if (reachable && millrace_read(dev, MR_PCIE_REG_MAGIC) != MR_PCIE_MAGIC)
		reachable = false;
	mutex_lock(&dev->down_lock);
	if (!dev->quiet)
		quieten(dev, reachable);
	mutex_unlock(&dev->down_lock);
	tell_user_space(dev, MILLRACE_PAUSED);
}

static int restart(struct millrace_device *dev)
{
	int ret = millrace_verify_again(dev);
	u32 q;

	if (ret)
		return ret;
	pci_set_master(dev->pdev);
	ret = millrace_install_scrub(dev);
	if (ret) {
		pci_clear_master(dev->pdev);
		return ret;
	}
	for (q = 0; q < dev->hw.queues; q++)
		if (dev->contexts[q])
			millrace_queue_restart(dev->contexts[q]);
	dev->quiet = false;
	dev->resets++;
	/* A later reset may be one that the PCI core has not saved it for. */
	pci_save_state(dev->pdev);
	return 0;
}

/* Nobody is kept waiting any more: the device works again, or with `error` it does not. */
static void unpause(struct millrace_device *dev, int error)
{
	if (error)
		millrace_fail_all(dev, -EIO);
	down_write(&dev->alive);
	dev->dead = error;
	clear_bit(MILLRACE_RESETTING, &dev->flags);
	clear_bit(MILLRACE_RECOVERING, &dev->flags);
	WRITE_ONCE(dev->paused, false);
	up_write(&dev->alive);
	wake_up_all(&dev->resumed);
	tell_user_space(dev, error ? MILLRACE_DEAD : MILLRACE_RUNNING);
	if (error)
		dev_err(&dev->pdev->dev,
			"no recovery (%d): all contexts end; reset the device through sysfs\n",
			error);
}

int millrace_resume(struct millrace_device *dev)
{
	int ret;

	mutex_lock(&dev->down_lock);
	ret = restart(dev);
	mutex_unlock(&dev->down_lock);
	unpause(dev, ret);
	if (!ret)
		millrace_irq_kick(dev);
	return ret;
}

/* ---- the driver's own reset ----------------------------------------------------------------- */

static void again(struct millrace_device *dev)
{
	schedule_delayed_work(&dev->reset_work, msecs_to_jiffies(AGAIN_MS));
}

/* Without the device, or a way to reset it. Until it is back there is no use in trying. */
static void declare_dead(struct millrace_device *dev, int error)
{
	if (!device_trylock(&dev->pdev->dev)) {
		again(dev);
		return;
	}
	millrace_pause(dev, error != -ENODEV);
	unpause(dev, error);
	device_unlock(&dev->pdev->dev);
}

static void reset_worker(struct work_struct *work)
{
	struct millrace_device *dev = container_of(work, struct millrace_device, reset_work.work);
	int ret;

	if (READ_ONCE(dev->gone) || !test_bit(MILLRACE_RESETTING, &dev->flags))
		return; /* somebody else has reset it */
	if (!pci_device_is_present(dev->pdev)) {
		declare_dead(dev, -ENODEV);
		return;
	}
	ret = pci_try_reset_function(dev->pdev);
	if (ret == -EAGAIN)
		again(dev);
	else if (test_bit(MILLRACE_RESETTING, &dev->flags))
		declare_dead(dev, ret ? ret : -EIO);
}

/*
 * Where recovery fails before a driver's slot_reset(), or because of another one, the
 * PCI core tells user space, and no driver: nobody would ever end the pause.
 */
static void recovery_worker(struct work_struct *work)
{
	struct millrace_device *dev = container_of(work, struct millrace_device,
						   recovery_work.work);

	if (!device_trylock(&dev->pdev->dev)) {
		schedule_delayed_work(&dev->recovery_work, msecs_to_jiffies(AGAIN_MS));
		return;
	}
	if (test_bit(MILLRACE_RECOVERING, &dev->flags))
		unpause(dev, -EIO);
	device_unlock(&dev->pdev->dev);
}

void millrace_reset_init(struct millrace_device *dev)
{
	INIT_DELAYED_WORK(&dev->reset_work, reset_worker);
	INIT_DELAYED_WORK(&dev->recovery_work, recovery_worker);
}

/* With the device's lock held, which both only try for. */
void millrace_reset_cancel(struct millrace_device *dev)
{
	cancel_delayed_work_sync(&dev->reset_work);
	cancel_delayed_work_sync(&dev->recovery_work);
}

/* ---- what the PCI core tells, with the device's lock held ----------------------------------- */

static void reset_prepare(struct pci_dev *pdev)
{
	struct millrace_device *dev = pci_get_drvdata(pdev);

	/*
	 * One that was reset unasked has forgotten its bus address. The PCI core
	 * would save that now and give it back after the reset.
	 */
	if (millrace_read(dev, MR_PCIE_REG_MAGIC) == U32_MAX && pci_device_is_present(pdev)) {
		pci_restore_state(pdev); /* of when the device was set up */
		pci_clear_master(pdev); /* until it has been verified */
	}
	millrace_pause(dev, true);
}

static void reset_done(struct pci_dev *pdev)
{
	struct millrace_device *dev = pci_get_drvdata(pdev);

	if (!millrace_resume(dev))
		dev_info(&pdev->dev, "reset\n");
}

static void begin_recovery(struct millrace_device *dev)
{
	millrace_pause(dev, false);
	set_bit(MILLRACE_RECOVERING, &dev->flags);
	mod_delayed_work(system_wq, &dev->recovery_work, msecs_to_jiffies(recovery_ms));
}

static pci_ers_result_t error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct millrace_device *dev = pci_get_drvdata(pdev);

	if (state == pci_channel_io_normal) /* a refused access: its ring says so, if it was ours */
		return PCI_ERS_RESULT_CAN_RECOVER;
	begin_recovery(dev);
	if (state == pci_channel_io_frozen)
		return PCI_ERS_RESULT_NEED_RESET;
	unpause(dev, -EIO);
	return PCI_ERS_RESULT_DISCONNECT;
}

static pci_ers_result_t mmio_enabled(struct pci_dev *pdev)
{
	struct millrace_device *dev = pci_get_drvdata(pdev);

	if (millrace_read(dev, MR_PCIE_REG_MAGIC) == MR_PCIE_MAGIC)
		return PCI_ERS_RESULT_RECOVERED;
	begin_recovery(dev);
	return PCI_ERS_RESULT_NEED_RESET;
}

/* As it was when it worked, but for bus mastering: nobody has looked at it yet. */
static void restore_state(struct pci_dev *pdev)
{
	pci_restore_state(pdev);
	pci_clear_master(pdev);
	pci_save_state(pdev);
}

static pci_ers_result_t slot_reset(struct pci_dev *pdev)
{
	struct millrace_device *dev = pci_get_drvdata(pdev);
	u32 status;

	if (!dev->paused) /* another function's driver wanted it, or it is late */
		begin_recovery(dev);
	restore_state(pdev);
	/* After an error that is not fatal the PCI core has reset nothing before it says so. */
	status = millrace_read(dev, MR_PCIE_REG_STATUS);
	if (status != U32_MAX && status & MR_PCIE_STATUS_BUSY &&
	    !__pci_reset_function_locked(pdev))
		restore_state(pdev);
	if (millrace_read(dev, MR_PCIE_REG_MAGIC) == MR_PCIE_MAGIC)
		return PCI_ERS_RESULT_RECOVERED;
	unpause(dev, -EIO);
	return PCI_ERS_RESULT_DISCONNECT;
}

static void resume(struct pci_dev *pdev)
{
	struct millrace_device *dev = pci_get_drvdata(pdev);

	if (!dev->paused) /* nothing was taken off it */
		return;
	if (!millrace_resume(dev))
		dev_info(&pdev->dev, "recovered\n");
}

const struct pci_error_handlers millrace_error_handlers = {
	.error_detected = error_detected,
	.mmio_enabled = mmio_enabled,
	.slot_reset = slot_reset,
	.resume = resume,
	.reset_prepare = reset_prepare,
	.reset_done = reset_done,
};
