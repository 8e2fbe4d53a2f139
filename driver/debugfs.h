/* SPDX-License-Identifier: GPL-2.0 */
/* Files of the device in debugfs. */
#ifndef MILLRACE_DEBUGFS_H
#define MILLRACE_DEBUGFS_H

#include "millrace.h"

void millrace_debugfs_begin(void); /* of the module */
void millrace_debugfs_end(void);
void millrace_debugfs_init(struct millrace_device *dev);
void millrace_debugfs_exit(struct millrace_device *dev);

#endif
