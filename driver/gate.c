// SPDX-License-Identifier: GPL-2.0
/* The gate: who may touch the device, and when; how long the device's own memory lives. */
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "gate.h"

int millrace_enter(struct millrace_device *dev)
{
	for (;;) {
		int ret = wait_event_interruptible(dev->resumed, millrace_running(dev) ||
						   READ_ONCE(dev->gone));

		if (ret)
			return ret;
		down_read(&dev->alive);
		ret = dev->gone ? -ENODEV : dev->dead ? -EIO : 0;
		if (ret)
			up_read(&dev->alive);
		if (ret || !dev->paused)
			return ret;
		up_read(&dev->alive);
	}
}

bool millrace_try_enter(struct millrace_device *dev)
{
	if (!down_read_trylock(&dev->alive))
		return false;
	if (!dev->gone && !dev->dead && millrace_running(dev))
		return true;
	up_read(&dev->alive);
	return false;
}

bool millrace_hold(struct millrace_device *dev)
{
	down_read(&dev->alive);
	if (!dev->gone)
		return true;
	up_read(&dev->alive);
	return false;
}

void millrace_exit(struct millrace_device *dev)
{
	up_read(&dev->alive);
}

static void device_release(struct kref *refs)
{
	kfree(container_of(refs, struct millrace_device, refs));
}

void millrace_device_put(struct millrace_device *dev)
{
	kref_put(&dev->refs, device_release);
}

int millrace_context_enter(struct millrace_context *ctx)
{
	int ret = millrace_enter(ctx->dev);

	if (ret)
		return ret;
	ret = mutex_lock_killable(&ctx->lock);
	if (ret)
		millrace_exit(ctx->dev);
	return ret;
}

void millrace_context_exit(struct millrace_context *ctx)
{
	mutex_unlock(&ctx->lock);
	millrace_exit(ctx->dev);
}

/*
 * From any thread; new work is kept off the device from here on. What resets it, above
 * this, has put its work into reset_work.
 */
void millrace_reset_request(struct millrace_device *dev)
{
	if (READ_ONCE(dev->gone))
		return;
	if (!test_and_set_bit(MILLRACE_RESETTING, &dev->flags))
		dev_warn(&dev->pdev->dev, "resetting\n");
	mod_delayed_work(system_wq, &dev->reset_work, 0);
}
