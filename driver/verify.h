/* SPDX-License-Identifier: GPL-2.0 */
/* What the device says about itself. */
#ifndef MILLRACE_VERIFY_H
#define MILLRACE_VERIFY_H

#include "millrace.h"

/* Nothing is written but SCRATCH until all the rest of it holds; fills hw. */
int millrace_verify(struct millrace_device *dev, struct millrace_hw *hw);
/* Rings that an earlier driver left running are stopped before bus mastering. */
int millrace_verify_idle(struct millrace_device *dev);
/* After a reset: whether the device is what it was, and at rest. */
int millrace_verify_again(struct millrace_device *dev);

#endif
