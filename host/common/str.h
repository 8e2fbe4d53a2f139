// SPDX-License-Identifier: Apache-2.0
// Strings from files, made fit for a one-line message.
#ifndef MILLRACE_COMMON_STR_H
#define MILLRACE_COMMON_STR_H

#include <stddef.h>

#define MR_SHOWN 96

// A copy of text that is safe in a message: at most MR_SHOWN - 1 bytes. Longer text ends in "...";
// control characters (line ends, terminal escapes) become '?'.
struct mr_shown {
    char text[MR_SHOWN];
};

struct mr_shown mr_show(const char *text);
struct mr_shown mr_show_bytes(const void *text, size_t size);

#endif
