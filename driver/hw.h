/* SPDX-License-Identifier: GPL-2.0 */
/* Registers, and which interrupt vector a ring has. */
#ifndef MILLRACE_REGISTERS_H
#define MILLRACE_REGISTERS_H

#include "millrace.h"

static inline u32 millrace_read(struct millrace_device *dev, u32 at)
{
	return readl(dev->bar + at);
}

static inline void millrace_write(struct millrace_device *dev, u32 at, u32 value)
{
	writel(value, dev->bar + at);
}

static inline u32 millrace_irq_vector(const struct millrace_device *dev, u32 queue)
{
	return dev->vectors ? queue % dev->vectors : 0;
}

#endif
