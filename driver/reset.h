/* SPDX-License-Identifier: GPL-2.0 */
/* Work off the device, and back. */
#ifndef MILLRACE_RESET_H
#define MILLRACE_RESET_H

#include "millrace.h"

extern const struct pci_error_handlers millrace_error_handlers;
void millrace_reset_init(struct millrace_device *dev);
void millrace_reset_cancel(struct millrace_device *dev);
void millrace_pause(struct millrace_device *dev, bool reachable);
int millrace_resume(struct millrace_device *dev);
const char *millrace_state(struct millrace_device *dev);
void millrace_fail_all(struct millrace_device *dev, int error);

#endif
