/* SPDX-License-Identifier: GPL-2.0 */
/* The gate: who may touch the device, and when. */
#ifndef MILLRACE_GATE_H
#define MILLRACE_GATE_H

#include "millrace.h"

/*
 * Holds the device for register and DMA accesses: 0; -ENODEV: it has gone; -EIO:
 * it could not be reset. While it is paused it is waited for (-ERESTARTSYS).
 */
int millrace_enter(struct millrace_device *dev);
/* The same, for those who come again: does not wait, and says only whether. */
bool millrace_try_enter(struct millrace_device *dev);
/* Holds DMA mappings only, paused or not. */
bool millrace_hold(struct millrace_device *dev);
void millrace_exit(struct millrace_device *dev);
/* Device and context held; millrace_enter()'s errors. */
int millrace_context_enter(struct millrace_context *ctx);
void millrace_context_exit(struct millrace_context *ctx);
void millrace_device_put(struct millrace_device *dev);
void millrace_reset_request(struct millrace_device *dev);
/* Nothing is on its way that keeps callers waiting. */
static inline bool millrace_running(struct millrace_device *dev)
{
	return !READ_ONCE(dev->paused) && !test_bit(MILLRACE_RESETTING, &dev->flags);
}

#endif
