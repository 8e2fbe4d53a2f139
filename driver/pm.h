/* SPDX-License-Identifier: GPL-2.0 */
/* Suspend and resume. */
#ifndef MILLRACE_PM_H
#define MILLRACE_PM_H

#include "millrace.h"

extern const struct dev_pm_ops millrace_pm_ops;

#endif
