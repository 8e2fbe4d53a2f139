// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer_impl.h"

#include <string.h>

static bool has_bytes(const struct mr_tokenizer *t, int32_t id, const void *bytes, size_t size)
{
    return t->tokens[id].size == size &&
           memcmp(t->bytes.data + t->tokens[id].offset, bytes, size) == 0;
}

// The slot that holds the token with these bytes, or the empty one where it would go.
static size_t find_slot(const struct mr_tokenizer *t, const void *bytes, size_t size)
{
    const unsigned char *b = bytes;
    uint64_t hash = 0xcbf29ce484222325U; // FNV-1a
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ b[i]) * 0x100000001b3U;
    size_t slot = (size_t)(hash ^ hash >> 32) & t->by_bytes_mask;
    while (t->by_bytes[slot] >= 0 && !has_bytes(t, t->by_bytes[slot], bytes, size))
        slot = (slot + 1) & t->by_bytes_mask;
    return slot;
}

int32_t mr_tokenizer_find_bpe(const struct mr_tokenizer *tokenizer, const void *bytes, size_t size)
{
    return tokenizer->by_bytes[find_slot(tokenizer, bytes, size)];
}

void mr_tokenizer_index(struct mr_tokenizer *tokenizer, int32_t id)
{
    const struct token *t = &tokenizer->tokens[id];
    size_t slot = find_slot(tokenizer, tokenizer->bytes.data + t->offset, t->size);
    tokenizer->by_bytes[slot] = id; // which is empty: no text is twice in a vocabulary
}
