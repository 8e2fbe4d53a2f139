/* SPDX-License-Identifier: GPL-2.0 */
/* A context's command ring on the device. */
#ifndef MILLRACE_RING_H
#define MILLRACE_RING_H

#include "millrace.h"

int millrace_ring_alloc(struct millrace_context *ctx);
void millrace_ring_free(struct millrace_context *ctx);
/* The ring begins with entry q->base. */
void millrace_ring_enable(struct millrace_context *ctx);
void millrace_ring_tell_to_stop(struct millrace_context *ctx);
bool millrace_ring_stop(struct millrace_context *ctx);
bool millrace_ring_at_rest(struct millrace_context *ctx);
unsigned long millrace_stop_time(void); /* that a ring may take, in jiffies */
void millrace_ring_put(struct millrace_queue *q, u32 index);
void millrace_ring_doorbell(struct millrace_context *ctx);
static inline u32 millrace_queue_reg(const struct millrace_device *dev,
				     const struct millrace_queue *q, u32 at)
{
	return dev->hw.queues_at + q->index * MR_PCIE_Q_STRIDE + at;
}

#endif
