// SPDX-License-Identifier: Apache-2.0
// How a directory of sentence-transformers makes one row of a text's rows; not for callers.
#pragma once

#include "millrace.h"

// Reads modules.json, the configuration of its pooling and sentence_bert_config.json, where they
// are; else the mean. *max_tokens stays as it is where none is said. Modules other than a
// transformer, pooling and normalising are refused, and so are other kinds of pooling.
int mr_pooling_read(const char *dir, enum mr_pooling *pooling, int *max_tokens,
                    struct mr_error *err);
