// SPDX-License-Identifier: Apache-2.0
#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

#define NO_MERGE UINT32_MAX

enum {
    SHORT_WORD = 48,   // below this a linear search for the best pair beats a heap
    CACHE_BITS = 14,   // 2^14 words of 64 bytes: 1 MiB, of the order of an L2 cache
    CACHED_BYTES = 30, // with these two an entry fills one cache line
    CACHED_TOKENS = 8,
};

struct merge {
    uint64_t pair; // left << 32 | right
    uint32_t rank; // NO_MERGE marks an empty slot
    int32_t merged;
};

struct cached_word {
    uint8_t size; // 0 marks an empty entry
    uint8_t count;
    unsigned char bytes[CACHED_BYTES];
    int32_t ids[CACHED_TOKENS];
};
_Static_assert(sizeof(struct cached_word) == 64, "an entry is one cache line");

struct symbol {
    int32_t id; // -1 once it was merged into its left neighbour
    int32_t previous;
    int32_t next;
};

struct mr_bpe {
    int32_t byte_ids[256];
    struct merge *merges; // open addressing, at most half full
    size_t mask;
    struct cached_word *cache;
    // For words of SHORT_WORD bytes and more; grown on demand.
    struct symbol *symbols;
    uint64_t *heap; // rank << 32 | position of the left symbol; smallest first
    size_t long_capacity;
};

static size_t hash_pair(uint64_t pair)
{
    pair *= 0x9e3779b97f4a7c15U;
    return (size_t)(pair ^ pair >> 32);
}

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static struct merge *slot_of(const struct mr_bpe *bpe, uint64_t pair)
{
    size_t i = hash_pair(pair) & bpe->mask;
    while (bpe->merges[i].rank != NO_MERGE && bpe->merges[i].pair != pair)
        i = (i + 1) & bpe->mask;
    return &bpe->merges[i];
}

int mr_bpe_new(struct mr_bpe **bpe, size_t n_merges, struct mr_error *err)
{
    *bpe = NULL;
    struct mr_bpe *b = calloc(1, sizeof *b);
    if (!b)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory for the tokenizer");
    size_t slots = 16;
    while (slots / 2 < n_merges)
        slots *= 2;
    b->mask = slots - 1;
    b->merges = calloc(slots, sizeof *b->merges);
    b->cache = calloc((size_t)1 << CACHE_BITS, sizeof *b->cache);
    if (!b->merges || !b->cache) {
        mr_bpe_free(b);
        return mr_fail(err, MR_ERR_MEMORY, "out of memory for %zu merges", n_merges);
    }
    for (size_t i = 0; i < slots; i++)
        b->merges[i].rank = NO_MERGE;
    *bpe = b;
    return 0;
}

void mr_bpe_free(struct mr_bpe *bpe)
{
    if (!bpe)
        return;
    free(bpe->merges);
    free(bpe->cache);
    free(bpe->symbols);
    free(bpe->heap);
    free(bpe);
}

void mr_bpe_set_byte(struct mr_bpe *bpe, unsigned char byte, int32_t id)
{
    bpe->byte_ids[byte] = id;
}

void mr_bpe_add_merge(struct mr_bpe *bpe, int32_t left, int32_t right, uint32_t rank,
                      int32_t merged)
{
    uint64_t pair = pair_of(left, right);
    *slot_of(bpe, pair) = (struct merge){.pair = pair, .rank = rank, .merged = merged};
}

// Words below SHORT_WORD: ranks[i] belongs to the pair of ids[i] and ids[i + 1].
static size_t merge_short(const struct mr_bpe *bpe, const unsigned char *word, size_t size,
                          int32_t *ids)
{
    uint32_t ranks[SHORT_WORD];
    for (size_t i = 0; i < size; i++)
        ids[i] = bpe->byte_ids[word[i]];
    for (size_t i = 0; i + 1 < size; i++)
        ranks[i] = slot_of(bpe, pair_of(ids[i], ids[i + 1]))->rank;

    size_t n = size;
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++) {
            if (ranks[i] < ranks[best])
                best = i;
        }
        if (ranks[best] == NO_MERGE)
            break;
        ids[best] = slot_of(bpe, pair_of(ids[best], ids[best + 1]))->merged;
        n--;
        memmove(&ids[best + 1], &ids[best + 2], (n - best - 1) * sizeof *ids);
        memmove(&ranks[best], &ranks[best + 1], (n - best - 1) * sizeof *ranks);
        if (best + 1 < n)
            ranks[best] = slot_of(bpe, pair_of(ids[best], ids[best + 1]))->rank;
        if (best > 0)
            ranks[best - 1] = slot_of(bpe, pair_of(ids[best - 1], ids[best]))->rank;
    }
    return n;
}

// Four children a node: half the levels of two, and the children lie in one or two cache lines.
static void sift_down(uint64_t *heap, size_t n, size_t i)
{
    uint64_t item = heap[i];
    for (;;) {
        size_t child = 4 * i + 1, end = child + 4 < n ? child + 4 : n;
        if (child >= n)
            break;
        for (size_t c = child + 1; c < end; c++)
            child = heap[c] < heap[child] ? c : child;
        if (heap[child] >= item)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = item;
}

static void heap_push(uint64_t *heap, size_t *n, uint64_t item)
{
    size_t i = (*n)++;
    while (i > 0 && heap[(i - 1) / 4] > item) {
        heap[i] = heap[(i - 1) / 4];
        i = (i - 1) / 4;
    }
    heap[i] = item;
}

static uint32_t rank_at(const struct mr_bpe *bpe, int32_t left)
{
    const struct symbol *s = &bpe->symbols[left];
    if (s->next < 0)
        return NO_MERGE;
    return slot_of(bpe, pair_of(s->id, bpe->symbols[s->next].id))->rank;
}

static void push_pair(struct mr_bpe *bpe, size_t *n, int32_t left)
{
    uint32_t rank = rank_at(bpe, left);
    if (rank != NO_MERGE)
        heap_push(bpe->heap, n, (uint64_t)rank << 32 | (uint32_t)left);
}

static int reserve_long(struct mr_bpe *bpe, size_t size, struct mr_error *err)
{
    if (size <= bpe->long_capacity)
        return 0;
    // One entry per pair at the start, and every merge adds at most two: 3 * size in all.
    struct symbol *symbols = reallocarray(bpe->symbols, size, sizeof *symbols);
    if (symbols)
        bpe->symbols = symbols;
    uint64_t *heap = reallocarray(bpe->heap, size, 3 * sizeof *heap);
    if (heap)
        bpe->heap = heap;
    if (!symbols || !heap)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory for a word of %zu bytes", size);
    bpe->long_capacity = size;
    return 0;
}

static size_t merge_long(struct mr_bpe *bpe, const unsigned char *word, size_t size, int32_t *ids)
{
    struct symbol *symbols = bpe->symbols;
    for (size_t i = 0; i < size; i++)
        symbols[i] = (struct symbol){.id = bpe->byte_ids[word[i]],
                                     .previous = (int32_t)i - 1,
                                     .next = i + 1 < size ? (int32_t)i + 1 : -1};
    size_t n_heap = 0;
    for (size_t i = 0; i < size; i++)
        push_pair(bpe, &n_heap, (int32_t)i);

    while (n_heap > 0) {
        uint64_t top = bpe->heap[0];
        bpe->heap[0] = bpe->heap[--n_heap];
        if (n_heap > 0)
            sift_down(bpe->heap, n_heap, 0);
        int32_t at = (int32_t)(uint32_t)top;
        // Entries are not removed when a neighbour changes; the rank tells a stale one.
        struct symbol *left = &symbols[at];
        if (left->id < 0 || left->next < 0)
            continue;
        struct symbol *right = &symbols[left->next];
        const struct merge *merge = slot_of(bpe, pair_of(left->id, right->id));
        if (merge->rank != (uint32_t)(top >> 32))
            continue;
        left->id = merge->merged;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0)
            symbols[left->next].previous = at;
        if (left->previous >= 0)
            push_pair(bpe, &n_heap, left->previous);
        push_pair(bpe, &n_heap, at);
    }

    size_t n = 0;
    for (int32_t i = 0; i >= 0; i = symbols[i].next)
        ids[n++] = symbols[i].id;
    return n;
}

static size_t hash_word(const unsigned char *word, size_t size)
{
    uint64_t hash = size;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t part = 0;
        memcpy(&part, word + i, size - i < 8 ? size - i : 8);
        hash = (hash ^ part) * 0x9e3779b97f4a7c15U;
        hash ^= hash >> 29;
    }
    return (size_t)(hash * 0xbf58476d1ce4e5b9U >> (64 - CACHE_BITS));
}

int mr_bpe_encode(struct mr_bpe *bpe, const unsigned char *word, size_t size,
                  struct mr_tokens *tokens, struct mr_error *err)
{
    int rc = mr_tokens_reserve(tokens, size, err);
    if (rc)
        return rc;
    int32_t *ids = tokens->ids + tokens->count;

    if (size >= SHORT_WORD) {
        rc = reserve_long(bpe, size, err);
        if (!rc)
            tokens->count += merge_long(bpe, word, size, ids);
        return rc;
    }
    struct cached_word *cached = NULL;
    if (size <= CACHED_BYTES) {
        cached = &bpe->cache[hash_word(word, size)];
        if (cached->size == size && memcmp(cached->bytes, word, size) == 0) {
            memcpy(ids, cached->ids, cached->count * sizeof *ids);
            tokens->count += cached->count;
            return 0;
        }
    }
    size_t n = merge_short(bpe, word, size, ids);
    tokens->count += n;
    if (cached && n <= CACHED_TOKENS) {
        cached->size = (uint8_t)size;
        cached->count = (uint8_t)n;
        memcpy(cached->bytes, word, size);
        memcpy(cached->ids, ids, n * sizeof *ids);
    }
    return 0;
}
