// SPDX-License-Identifier: Apache-2.0
// States as older programs wrote them, and with the seals of other trainings. Include <cmocka.h>
// and what it needs first.
#ifndef MILLRACE_TESTS_UNIT_STORE_OLDER_H
#define MILLRACE_TESTS_UNIT_STORE_OLDER_H

#include <string.h>

#include "pack/hash.h"
#include "store/header.h"
#include "unit/check.h"

// Gives every patch that is whole another lineage, on both sides.
static inline void reseal(struct mr_volume *v, const struct mr_store_layout *l, uint64_t lineage)
{
    struct mr_error err = {0};
    const uint64_t begin[2] = {0, v->size[MR_V_STATE] - l->bytes};
    for (size_t i = 0; i < 2 * l->patches; i++) {
        const struct mr_store_patch *p = &l->patch[i / 2];
        uint64_t at = begin[i % 2] + p->at;
        size_t hashed = p->bytes - sizeof(uint64_t);
        struct mr_store_seal seal;
        unsigned char *patch = allocate(1, p->bytes), *end = patch + p->bytes - sizeof seal;
        memcpy(patch, v->data[MR_V_STATE] + at, p->bytes);
        memcpy(&seal, end, sizeof seal);
        if (seal.hash == XXH3_64bits(patch, hashed)) {
            seal.lineage = lineage;
            memcpy(end, &seal, sizeof seal);
            seal.hash = XXH3_64bits(patch, hashed);
            memcpy(end, &seal, sizeof seal);
            check(v->write(v, MR_V_STATE, at, patch, p->bytes, &err), &err);
        }
        free(patch);
    }
}

// Both slots, as far as they are written, and the patches.
static inline void make_older(struct mr_volume *v, const struct mr_store_layout *l,
                              uint32_t version)
{
    struct mr_error err = {0};
    size_t n = v->size[MR_V_HEADER] / 2;
    for (size_t at = 0; at < 2 * n; at += n) {
        struct mr_store_header *h = allocate(1, n);
        memcpy(h, v->data[MR_V_HEADER] + at, n);
        h->version = version;
        h->lineage = l->elements; // these stood there
        h->origin = version < MR_STORE_ORIGIN ? 0 : h->origin;
        h->hash = 0;
        h->hash = XXH3_64bits(h, n);
        if (memcmp(h->magic, "MILLRSTO", sizeof h->magic) == 0)
            check(v->write(v, MR_V_HEADER, at, h, n, &err), &err);
        free(h);
    }
    reseal(v, l, 0);
}

// The same of a directory.
static inline void make_older_in(const char *dir, uint32_t version)
{
    struct mr_error err = {0};
    struct mr_config config;
    struct mr_store_layout l;
    struct mr_volume *v;
    check(mr_config_load_from(&config, dir, &err), &err);
    check(mr_store_layout_make(&l, &config, &err), &err);
    check(mr_volume_open(&v, dir, &err), &err);
    make_older(v, &l, version);
    v->close(v);
    mr_store_layout_free(&l);
}

#endif
