/* SPDX-License-Identifier: GPL-2.0 */
/* Interrupts, or a timer in their place. */
#ifndef MILLRACE_IRQ_H
#define MILLRACE_IRQ_H

#include "millrace.h"

int millrace_irq_init(struct millrace_device *dev);
void millrace_irq_exit(struct millrace_device *dev);
void millrace_irq_kick(struct millrace_device *dev); /* after a doorbell */

#endif
