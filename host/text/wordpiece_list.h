// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <jansson.h>

#include "common/error.h"

// The object that stands for a directory's vocab.txt, tokenizer_config.json and added_tokens.json,
// with transformers' values where they do not say; the caller releases it.
int mr_wordpiece_root(json_t **root, const char *dir, struct mr_error *err);
