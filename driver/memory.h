/* SPDX-License-Identifier: GPL-2.0 */
/* Pinned user memory. */
#ifndef MILLRACE_MEMORY_H
#define MILLRACE_MEMORY_H

#include "millrace.h"

/* Pins it. Faults may take their time, so nothing is held. */
struct millrace_memory *millrace_memory_create(const struct millrace_map *arg);
void millrace_memory_put(struct millrace_memory *memory);

#endif
