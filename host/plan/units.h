// SPDX-License-Identifier: Apache-2.0
// Vector unit and writer.
#pragma once

#include "plan/walk.h"

// Does what can be known; true if that was anything.
bool mr_vector_advance(struct walk *w);
void mr_vector_loaded(struct walk *w, double at, int beats);
bool mr_writer_advance(struct walk *w);
void mr_writer_written(struct walk *w, double at);
