// SPDX-License-Identifier: Apache-2.0
// Configuration and tokenizer, which a store carries from its checkpoint to its export. Internal to
// host/store.
#pragma once

#include "checkpoint/directory.h"
#include "store/patch.h"

// Copies what `from` has of them, and notes it in the header. config.json gets the positions and
// the labels that the options have.
int mr_store_carry(struct mr_store *s, const struct mr_directory *d, const char *from,
                   const struct mr_store_options *options, struct mr_error *err);
// Are the copies in the store's directory as they were?
int mr_store_carried_check(const struct mr_store *s, struct mr_error *err);
// Name i of MR_STORE_CARRIED; the first is config.json.
const char *mr_store_carried_name(const struct mr_config *c, int i);
