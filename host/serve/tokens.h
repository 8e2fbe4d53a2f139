// SPDX-License-Identifier: Apache-2.0
// /v1/tokenize and /v1/detokenize: a body in, a response out. Names of arguments and of the parts
// of a response are those of llama.cpp's server (content) and of vLLM's (prompt): both are taken.
#pragma once

#include "common/buf.h"
#include "common/str.h"
#include "millrace.h"

// On failure *param is the argument that is wrong, or empty, and *out is as before.
int mr_tokenize(struct mr_model *model, const void *body, size_t size, struct mr_buf *out,
                struct mr_shown *param, struct mr_error *err);
int mr_detokenize(const struct mr_model *model, const void *body, size_t size, struct mr_buf *out,
                  struct mr_shown *param, struct mr_error *err);
