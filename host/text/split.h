// SPDX-License-Identifier: Apache-2.0
// Cutting text into the words within which BPE merges, by GPT-2's pattern.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct mr_splitter;

// On success the caller owns *splitter. Not for use by two threads at once.
int mr_splitter_new(struct mr_splitter **splitter, struct mr_error *err);
void mr_splitter_free(struct mr_splitter *splitter); // NULL is allowed

// The end of the word that starts at `start` < size. `text` must be valid UTF-8 and `start` must be
// 0 or the end of a word. Words follow each other without gaps.
int mr_splitter_next(struct mr_splitter *splitter, const unsigned char *text, size_t size,
                     size_t start, size_t *end, struct mr_error *err);

// True when the character (valid UTF-8, `size` bytes) is a word character in the sense of \w.
bool mr_splitter_is_word(struct mr_splitter *splitter, const unsigned char *character, size_t size);

// Unicode White_Space.
bool mr_is_space(unsigned code_point);

// The length of the white space character (Unicode White_Space) at the beginning or at the end of
// n bytes, or 0 if there is none.
size_t mr_space_at_start(const unsigned char *text, size_t n);
size_t mr_space_at_end(const unsigned char *text, size_t n);
