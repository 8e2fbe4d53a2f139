// SPDX-License-Identifier: Apache-2.0
// The weight stream: splitter, reader and ring.
#pragma once

#include "plan/walk.h"

// Does what can be known; true if that was anything.
bool mr_stream_advance(struct walk *w);
double mr_stream_request(struct walk *w, int *beats); // next read; UNKNOWN
void mr_stream_arrived(struct walk *w, double at, int beats);
