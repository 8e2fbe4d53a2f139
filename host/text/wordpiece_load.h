// SPDX-License-Identifier: Apache-2.0
// BERT's tokenizer from its files; not for callers.
#ifndef MILLRACE_TEXT_WORDPIECE_LOAD_H
#define MILLRACE_TEXT_WORDPIECE_LOAD_H

#include "text/loader.h"

// From the object of a tokenizer.json.
int mr_wordpiece_load(struct mr_loader *l, const json_t *root);

#endif
