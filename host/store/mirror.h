// SPDX-License-Identifier: Apache-2.0
// A step that several ranks share (common/ranks.h). Rank 0 has the store; every other rank has a
// mirror of it: the streams, the tables, and sums of gradients of its own, but neither master
// weights nor moments. Every rank calls the same functions of these.
#pragma once

#include "common/ranks.h"
#include "store/store.h"

// A mirror of a store of this model: of no step and without weights until mr_store_spread(). It
// takes mr_store_add() and the like, and mr_pass_weights(); only rank 0's store can be read,
// applied and exported. The caller owns *store until mr_store_close().
int mr_store_mirror(struct mr_store **store, const struct mr_config *config, int threads,
                    struct mr_error *err);

// What rank 0 knows of its step, its weights and its units becomes every mirror's.
int mr_store_spread(struct mr_store *store, const struct mr_ranks *ranks, struct mr_error *err);

// Behind the last micro-batch of a step: what the ranks have seen of their sums becomes what all
// have. So mr_store_raise() does the same on all of them.
int mr_store_share(struct mr_store *store, const struct mr_ranks *ranks, struct mr_error *err);

// Behind mr_store_share(), if no unit was raised: the sums of all ranks, at rank 0, which then has
// all micro-batches of the step. A rank may have had none.
void mr_store_collect(struct mr_store *store, const struct mr_ranks *ranks);
