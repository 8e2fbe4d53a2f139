/* SPDX-License-Identifier: GPL-2.0 */
/* What comes back from the device. */
#ifndef MILLRACE_COMPLETE_H
#define MILLRACE_COMPLETE_H

#include "millrace.h"

bool millrace_queue_reap(struct millrace_context *ctx);

#endif
