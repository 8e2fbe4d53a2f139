// SPDX-License-Identifier: Apache-2.0
// The rotary table: cos and sin of pos / 10000^(2i / rotary_dim), the same bits on every host.
#pragma once

// out[floats]: cos in 2i, sin in 2i + 1 for pair i < rotary_dim / 2, zero beyond. As Hugging Face:
// the frequency and the angle pos * frequency are rounded to fp32 first. pos 0..4095.
void mr_rotary_row(int pos, int rotary_dim, int floats, float *out);
