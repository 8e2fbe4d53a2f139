/* SPDX-License-Identifier: GPL-2.0 */
/* What a program may do with an open file. */
#ifndef MILLRACE_IOCTL_H
#define MILLRACE_IOCTL_H

#include "millrace.h"

extern const struct file_operations millrace_fops;

#endif
