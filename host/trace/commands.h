// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/program.h"
#include "trace/timeline.h"

// t->commands: queue, layer, what each is ("q", "LOAD_ROWS"); t->to_come for t->layer.
// t->semaphore.
int mr_trace_commands(struct mr_trace *t, const struct mr_program *p, const struct mr_config *c,
                      enum mr_format layers, struct mr_error *err);

// t->semaphore of the run that begins at command t->first.
void mr_trace_name_semaphores(struct mr_trace *t, const struct mr_command *cmds, int count);

// Who gives the semaphores of a mask: "k, STORE_KV".
const char *mr_semaphore_names(const struct mr_trace *t, unsigned mask, char *buf, size_t size);
