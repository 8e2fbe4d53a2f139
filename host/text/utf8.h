// SPDX-License-Identifier: Apache-2.0
// UTF-8 as RFC 3629 defines it: no surrogates, no overlong forms, at most U+10FFFF.
#pragma once

#include <stddef.h>

enum mr_utf8 {
    MR_UTF8_CHAR,       // a whole character
    MR_UTF8_INCOMPLETE, // the text ends inside a character that was valid so far
    MR_UTF8_INVALID,    // these bytes can never be part of a character
};

// Looks at the beginning of n >= 1 bytes. *size is the length of the character, or of the longest
// valid beginning (at least 1) that one U+FFFD stands for.
enum mr_utf8 mr_utf8_scan(const unsigned char *text, size_t n, size_t *size);

// The length of the longest valid beginning made of whole characters, 0..n.
size_t mr_utf8_valid_prefix(const unsigned char *text, size_t n);

// The character that starts with `size` valid bytes, as a code point.
unsigned mr_utf8_code_point(const unsigned char *text, size_t size);

// Writes a code point as 1 to 4 bytes and returns their number.
size_t mr_utf8_put(unsigned code_point, unsigned char out[4]);
