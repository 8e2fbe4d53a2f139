// SPDX-License-Identifier: Apache-2.0
// A thread that makes calls which may never return. The caller waits for each with a limit; when a
// call does not come back, the thread is given up with all that it may still touch, and no further
// call is made by it.
#pragma once

#include <stdbool.h>

#include "common/error.h"

struct mr_worker;

// What a call does; `arg` must outlive a call that is given up.
typedef int mr_work(void *arg, struct mr_error *err);

// Looked at every 10 ms while a call takes time: non-zero ends the waiting with that mr_status and
// its text.
typedef int mr_worker_watch(void *arg, struct mr_error *err);

int mr_worker_new(struct mr_worker **worker, mr_worker_watch *watch, void *arg,
                  struct mr_error *err);
// Ends the thread; a worker that was given up stays behind.
void mr_worker_free(struct mr_worker *worker);

// The result of work(arg); MR_ERR_DEVICE if it takes more than `seconds`, or once a call was given
// up.
int mr_worker_call(struct mr_worker *worker, mr_work *work, void *arg, double seconds,
                   struct mr_error *err);

// Its device is not to be called any more: the worker counts as lost.
void mr_worker_give_up(struct mr_worker *worker);

bool mr_worker_lost(const struct mr_worker *worker);
