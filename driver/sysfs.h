/* SPDX-License-Identifier: GPL-2.0 */
/* Files of the device in sysfs. */
#ifndef MILLRACE_SYSFS_H
#define MILLRACE_SYSFS_H

#include "millrace.h"

extern const struct attribute_group *millrace_groups[];

#endif
