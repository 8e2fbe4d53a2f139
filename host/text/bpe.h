// SPDX-License-Identifier: Apache-2.0
// Byte-pair merging of one word: starting from single bytes, the pair of neighbours whose merge has
// the lowest rank is joined, the leftmost first, until no pair has a merge.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "text/tokens.h"

struct mr_bpe;

// Room for n_merges merges. On success the caller owns *bpe.
int mr_bpe_new(struct mr_bpe **bpe, size_t n_merges, struct mr_error *err);
void mr_bpe_free(struct mr_bpe *bpe); // NULL is allowed

// All 256 bytes must be set before mr_bpe_encode().
void mr_bpe_set_byte(struct mr_bpe *bpe, unsigned char byte, int32_t id);

// Neighbours left, right become `merged`, with priority `rank` (0 is first). At most n_merges
// times; a pair that is added again takes the new rank, as in `tokenizers`.
void mr_bpe_add_merge(struct mr_bpe *bpe, int32_t left, int32_t right, uint32_t rank,
                      int32_t merged);

// Appends the tokens of a word of 1 to INT32_MAX bytes. Time grows as n log n, so a megabyte
// without a space is no attack. Short words are remembered.
int mr_bpe_encode(struct mr_bpe *bpe, const unsigned char *word, size_t size,
                  struct mr_tokens *tokens, struct mr_error *err);
