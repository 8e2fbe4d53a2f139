/* SPDX-License-Identifier: GPL-2.0 */
/* Waiting for a job. */
#ifndef MILLRACE_WAIT_H
#define MILLRACE_WAIT_H

#include "millrace.h"

int millrace_queue_wait(struct millrace_context *ctx, struct millrace_wait *wait,
			void __user *user);

#endif
