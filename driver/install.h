/* SPDX-License-Identifier: GPL-2.0 */
/* Puts the scrub program on the card. */
#ifndef MILLRACE_INSTALL_H
#define MILLRACE_INSTALL_H

#include "millrace.h"

int millrace_install_init(struct millrace_device *dev);
void millrace_install_exit(struct millrace_device *dev);
int millrace_install_scrub(struct millrace_device *dev);

#endif
