/* SPDX-License-Identifier: GPL-2.0 */
/* An open file. */
#ifndef MILLRACE_CONTEXT_H
#define MILLRACE_CONTEXT_H

#include "millrace.h"

int millrace_context_open(struct inode *inode, struct file *file);
int millrace_context_release(struct inode *inode, struct file *file);
void millrace_context_down(struct millrace_context *ctx);

#endif
