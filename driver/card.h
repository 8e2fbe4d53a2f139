/* SPDX-License-Identifier: GPL-2.0 */
/* Card memory. */
#ifndef MILLRACE_CARD_H
#define MILLRACE_CARD_H

#include "millrace.h"

int millrace_card_init(struct millrace_device *dev);
void millrace_card_exit(struct millrace_device *dev);
int millrace_card_alloc(struct millrace_context *ctx, struct millrace_alloc *arg);
int millrace_card_free(struct millrace_context *ctx, u64 addr);
void millrace_card_free_all(struct millrace_context *ctx);

#endif
