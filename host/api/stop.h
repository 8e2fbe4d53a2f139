// SPDX-License-Identifier: Apache-2.0
// Stop strings: text passes until one of them is complete, across the borders of tokens.
#pragma once

#include <stdbool.h>

#include "common/buf.h"

struct mr_stop {
    char **strings;
    size_t *sizes;
    int count;
    struct mr_buf held; // what may be the beginning of one
};

// Zero-initialised on failure. Strings that are empty or not UTF-8 are refused.
int mr_stop_open(struct mr_stop *stop, const char *const *strings, int count, struct mr_error *err);
void mr_stop_close(struct mr_stop *stop);

// Takes a piece of whole UTF-8 characters and appends to *text what can no longer belong to a stop
// string; all of it if `last`. *stopped: one is complete, and *text ends before it.
int mr_stop_push(struct mr_stop *stop, const char *piece, size_t size, bool last,
                 struct mr_buf *text, bool *stopped, struct mr_error *err);
