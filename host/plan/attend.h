// SPDX-License-Identifier: Apache-2.0
// Attention.
#pragma once

#include "plan/walk.h"

// Does what can be known; true if that was anything.
bool mr_attention_advance(struct walk *w);
double mr_attention_request(struct walk *w, int *beats); // next read; UNKNOWN
void mr_attention_arrived(struct walk *w, double at, int beats);
