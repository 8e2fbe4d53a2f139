// SPDX-License-Identifier: Apache-2.0
// A store in memory, with the weights of a checkpoint. Include <cmocka.h> and what it needs first.
#ifndef MILLRACE_TESTS_UNIT_MEMORY_STORE_H
#define MILLRACE_TESTS_UNIT_MEMORY_STORE_H

#include "store/store.h"
#include "store/volume.h"
#include "unit/check.h"

// *volume is the store's: for tests that damage what is in it.
static inline struct mr_store *memory_store(const struct mr_checkpoint *checkpoint,
                                            struct mr_volume **volume)
{
    struct mr_error err = {0};
    const struct mr_config trained = mr_config_to_train(mr_checkpoint_config(checkpoint));
    const struct mr_config *config = &trained;
    const struct mr_store_options options = {.threads = 2};
    struct mr_store *store;
    uint64_t size[MR_V_FILES];
    check(mr_store_sizes(config, 0, size, &err), &err);
    check(mr_volume_memory(volume, size, &err), &err);
    check(mr_store_open_volume(&store, *volume, config, checkpoint, &options, &err), &err);
    return store;
}

#endif
