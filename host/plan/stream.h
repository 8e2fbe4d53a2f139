// SPDX-License-Identifier: Apache-2.0
// The weight stream: splitter, reader and ring.
#ifndef MILLRACE_PLAN_STREAM_H
#define MILLRACE_PLAN_STREAM_H

#include "plan/walk.h"

// Does what can be known; true if that was anything.
bool mr_stream_advance(struct walk *w);
double mr_stream_request(struct walk *w, int *beats); // next read; UNKNOWN
void mr_stream_arrived(struct walk *w, double at, int beats);

#endif
