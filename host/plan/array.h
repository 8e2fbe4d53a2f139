// SPDX-License-Identifier: Apache-2.0
// The array and its epilogue.
#pragma once

#include "plan/walk.h"

// Does what can be known; true if that was anything.
bool mr_array_advance(struct walk *w);
void mr_array_result_written(struct walk *w, int command, double at);
