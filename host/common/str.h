// SPDX-License-Identifier: Apache-2.0
// Strings from files: made fit for a one-line message, and found among the words that are known.
#pragma once

#include <stddef.h>

#define MR_SHOWN 96

// A copy of text that is safe in a message: at most MR_SHOWN - 1 bytes. Longer text ends in "...";
// control characters (line ends, terminal escapes) become '?'.
struct mr_shown {
    char text[MR_SHOWN];
};

struct mr_shown mr_show(const char *text);
struct mr_shown mr_show_bytes(const void *text, size_t size);

// The place of `text` in "a|b|c", from 0; -1 if it is none of them, empty, or `words` is NULL.
// `compare`: strncmp, or strncasecmp for letters of any case.
int mr_place_of(const char *words, const char *text,
                int (*compare)(const char *, const char *, size_t));
