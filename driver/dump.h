/* SPDX-License-Identifier: GPL-2.0 */
/* What was found when a ring had to be stopped. */
#ifndef MILLRACE_DUMP_H
#define MILLRACE_DUMP_H

#include "millrace.h"

extern const struct file_operations millrace_dump_fops; /* debugfs, without devcoredump */
void millrace_dump(struct millrace_device *dev, const char *reason);
void millrace_dump_free(struct millrace_device *dev);

#endif
