// SPDX-License-Identifier: Apache-2.0
// A packed file back into a Hugging Face directory.
#pragma once

#include <signal.h>

#include "pack/packed.h"

// Writes config.json, tokenizer.json (if there is one) and model.safetensors with the values that
// the device multiplies with: matrices in bf16, which holds every MXINT8 and MXFP4 value exactly,
// vectors in fp32, the embedding as it is stored. A smoothed model stays smoothed.
//
// `dir` must not exist or be empty; it appears only when it is complete. *stop, unless NULL, is
// looked at while writing: non-zero gives MR_ERR_INTERRUPTED. `packed` must be from a packed file.
int mr_export(const struct mr_packed *packed, const char *dir, const volatile sig_atomic_t *stop,
              struct mr_error *err);
