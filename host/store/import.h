// SPDX-License-Identifier: Apache-2.0
// Between a store and Hugging Face directories. Internal to host/store.
#pragma once

#include "store/patch.h"

// Fills side 0 with the weights of a checkpoint and moments of zero, of step 0.
int mr_store_import(struct mr_store *s, const struct mr_checkpoint *checkpoint,
                    const struct mr_store_options *options, struct mr_error *err);

// Writes the factors of s->adapter.
int mr_store_import_adapter(struct mr_store *s, struct mr_error *err);
