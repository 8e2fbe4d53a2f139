// SPDX-License-Identifier: Apache-2.0
#include "pack/identity.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "pack/packed_format.h"

// The hashes of embedding and items of a packed file stand in its list of tensors.
static void listed_hashes(const struct mr_packed *p, uint64_t *hash, size_t count)
{
    struct mr_packed_header h;
    struct mr_packed_tensor t;
    memcpy(&h, p->map.data, sizeof h);
    const unsigned char *list = p->map.data + h.section[MR_S_TENSORS].offset;
    for (size_t i = 0; i < count; i++) {
        memcpy(&t, list + i * sizeof t, sizeof t);
        hash[i] = t.hash;
    }
}

static int made_hashes(const struct mr_packed *p, uint64_t *hash, struct mr_error *err)
{
    for (int i = 0; i < mr_packed_tables(&p->config); i++) {
        const struct mr_tensor *e = mr_packed_table(p, i);
        unsigned char *copy = malloc(e->bytes);
        if (!copy)
            return mr_fail(err, MR_ERR_MEMORY, "no memory for the embedding");
        (void)mr_tensor_copy(e, 0, e->count, copy); // all of it
        *hash++ = XXH3_64bits(copy, e->bytes);
        free(copy);
    }
    for (int i = 0; i < p->list.count; i++)
        *hash++ = XXH3_64bits(p->stream + p->list.entries[i].at, p->list.entries[i].bytes);
    return 0;
}

int mr_packed_identity(const struct mr_packed *p, uint64_t *identity, struct mr_error *err)
{
    const struct mr_config *c = &p->config;
    enum { FIXED = 12 };
    uint32_t epsilon;
    const struct mr_arch *arch = mr_arch_of(c);
    size_t count = (size_t)(p->list.count + mr_packed_tables(c));
    uint64_t *words = calloc(FIXED + count, sizeof *words);
    if (!words)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu checksums", count);
    memcpy(&epsilon, &c->layer_norm_epsilon, sizeof epsilon);
    const uint64_t fixed[FIXED] = {
        (uint64_t)c->vocab_size, (uint64_t)c->n_positions, (uint64_t)c->n_embd,
        (uint64_t)c->n_layer, (uint64_t)c->n_head, (uint64_t)c->head_dim, (uint64_t)c->rotary_dim,
        (uint64_t)c->n_inner, epsilon, (uint64_t)p->format, (uint64_t)p->embedding.dtype,
        // 0 for GPT-J, which was the only one when KV stores were saved first.
        (arch == mr_arch_at(0) ? 0 : XXH3_64bits(arch->type, strlen(arch->type))) +
            c->scale_by_layer + 2 * (mr_function_of(c) - MR_FUNCTION_GELU_NEW)};
    memcpy(words, fixed, sizeof fixed);
    int rc = 0;
    if (p->map.data)
        listed_hashes(p, words + FIXED, count);
    else
        rc = made_hashes(p, words + FIXED, err);
    *identity = XXH3_64bits(words, (FIXED + count) * sizeof *words);
    free(words);
    return rc;
}
