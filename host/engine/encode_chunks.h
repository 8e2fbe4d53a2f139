// SPDX-License-Identifier: Apache-2.0
// A text that is longer than a run has rows: stage after stage, each for all chunks of the text
// (struct mr_program_stage).
#pragma once

#include "engine/encode_run.h"

// One text of more than e->chunk tokens.
int encode_chunks(struct mr_encode *e, const struct mr_cpu_text *text, float *rows,
                  struct mr_error *err);
void encode_chunks_free(struct mr_encode *e);
