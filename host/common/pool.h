// SPDX-License-Identifier: Apache-2.0
// A few threads for work that falls into independent tasks. Results must not depend on which
// thread does a task, nor on their order.
#pragma once

#include <stdbool.h>

struct mr_pool;

// Processors that this process may use; MILLRACE_THREADS=N asks for N instead.
int mr_pool_default(void);

// `workers` >= 1, the caller's thread included; the others are started by the first run that has
// work for them. Where threads cannot be started, fewer do all the work. NULL: no memory.
struct mr_pool *mr_pool_new(int workers);
void mr_pool_free(struct mr_pool *pool); // NULL is allowed
int mr_pool_workers(const struct mr_pool *pool);

// Calls task(arg, i, worker) for i in 0..tasks-1, beginning them in that order (so that a task may
// wait for those before it), and returns when all have returned; worker 0 is the caller, 0 <=
// worker < mr_pool_workers(), no two at a time with the same. Without `share` the caller does it
// alone, for work that is done before others are awake. One caller at a time.
void mr_pool_run(struct mr_pool *pool, int tasks, void (*task)(void *arg, int i, int worker),
                 void *arg, bool share);
