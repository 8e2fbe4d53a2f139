// SPDX-License-Identifier: Apache-2.0
#include "text/tokens.h"

#include <stdlib.h>

int mr_tokens_reserve(struct mr_tokens *tokens, size_t extra, struct mr_error *err)
{
    if (extra <= tokens->capacity - tokens->count)
        return 0;
    size_t capacity = tokens->capacity * 2;
    if (capacity < tokens->count + extra)
        capacity = tokens->count + extra + 64;
    int32_t *ids = reallocarray(tokens->ids, capacity, sizeof *ids);
    if (!ids)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory for %zu tokens", capacity);
    tokens->ids = ids;
    tokens->capacity = capacity;
    return 0;
}

void mr_tokens_free(struct mr_tokens *tokens)
{
    free(tokens->ids);
    *tokens = (struct mr_tokens){0};
}
