// SPDX-License-Identifier: Apache-2.0
#include "store/lineage.h"

#include <stddef.h>

#include "pack/hash.h"

enum {
    UPDATE = offsetof(struct mr_store_header, gradients), // a hash of them, and all factors
    UPDATE_END = offsetof(struct mr_store_header, origin),
    UNITS = sizeof(struct mr_store_header),
};

static uint64_t known(XXH64_hash_t hash)
{
    return hash ? hash : 1;
}

struct mr_store_point mr_store_begins(const struct mr_store_header *h)
{
    const uint64_t from[2] = {h->model, h->origin};
    return (struct mr_store_point){0, known(XXH3_64bits(from, sizeof from))};
}

struct mr_store_point mr_store_now(const struct mr_store_header *h)
{
    return (struct mr_store_point){h->step, h->lineage};
}

struct mr_store_point mr_store_after(const struct mr_store_header *h)
{
    const unsigned char *slot = (const unsigned char *)h;
    const uint64_t parts[3] = {h->lineage, XXH3_64bits(slot + UPDATE, UPDATE_END - UPDATE),
                               XXH3_64bits(slot + UNITS, h->slot_bytes - UNITS)};
    bool knows = h->version >= MR_STORE_LINEAGE;
    return (struct mr_store_point){h->step + 1,
                                   knows ? known(XXH3_64bits(parts, sizeof parts)) : 0};
}
