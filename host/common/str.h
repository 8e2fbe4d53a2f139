// SPDX-License-Identifier: Apache-2.0
// Strings of files and users: made fit for a one-line message, found among the words that are
// known, and read as a size.
#pragma once

#include <stddef.h>
#include <stdint.h>

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

// Bytes: a whole number that begins with a digit, and behind it k, M or G, of either case, where it
// is of 1024, 1024^2 or 1024^3 of them. Where it ends; NULL: there is none, or it is above 2^63
// - 1.
const char *mr_size_of(const char *text, uint64_t *bytes);
