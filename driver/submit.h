/* SPDX-License-Identifier: GPL-2.0 */
/* Operations into entries. */
#ifndef MILLRACE_SUBMIT_H
#define MILLRACE_SUBMIT_H

#include "millrace.h"

/* `descriptors`: of the runs among ops, MILLRACE_DESC_BYTES each. */
int millrace_queue_submit(struct millrace_context *ctx, const struct millrace_op *ops,
			  u32 count, const void *descriptors, u64 *job);
/* With neither context nor device held: holds them for each step, and waits without. */
int millrace_queue_clear(struct millrace_context *ctx, u64 addr, u64 bytes);

#endif
