/* SPDX-License-Identifier: GPL-2.0 */
/* A ring with its jobs. */
#ifndef MILLRACE_QUEUE_H
#define MILLRACE_QUEUE_H

#include "millrace.h"

int millrace_queue_init(struct millrace_context *ctx, u32 index);
void millrace_queue_quiesce(struct millrace_context *ctx);
void millrace_queue_settle(struct millrace_context *ctx, bool reachable);
void millrace_queue_restart(struct millrace_context *ctx);
void millrace_queue_down(struct millrace_context *ctx);
unsigned long millrace_tick_period(void);

#endif
