/* SPDX-License-Identifier: GPL-2.0 */
/* Mappings as dma-bufs, and dma-bufs as mappings. */
#ifndef MILLRACE_DMABUF_H
#define MILLRACE_DMABUF_H

#include "millrace.h"

int millrace_export(struct millrace_context *ctx, struct millrace_export *arg, struct file **file);
int millrace_import(struct millrace_context *ctx, struct millrace_import *arg);

#endif
