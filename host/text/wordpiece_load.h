// SPDX-License-Identifier: Apache-2.0
// BERT's tokenizer from its files; not for callers.
#pragma once

#include "text/loader.h"

// From the object of a tokenizer.json.
int mr_wordpiece_load(struct mr_loader *l, const json_t *root);
