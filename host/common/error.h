// SPDX-License-Identifier: Apache-2.0
// How errors travel: every function that can fail returns 0 or a negative mr_status and, through
// the `err` argument, one line that says what failed, where, and what the user can do about it.
#pragma once

#include <stddef.h>

#include "millrace.h" // struct mr_error

#if defined(__GNUC__)
#define MR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define MR_PRINTF(fmt, args)
#endif

// Records `status` and the formatted text in *err (which may be NULL) and returns `status`:
// "return mr_fail(err, MR_ERR_IO, "%s: cannot read: %s", path, strerror(errno));"
int mr_fail(struct mr_error *err, int status, const char *fmt, ...) MR_PRINTF(3, 4);

// Puts "context: " in front of the text that a callee left in *err; returns err->status.
int mr_fail_in(struct mr_error *err, const char *fmt, ...) MR_PRINTF(2, 3);

// Adds "; advice" to the text of *err (which may be NULL) if it does not say what to do yet, that
// is, has no semicolon. Returns err->status. For functions whose callees know what is wrong with a
// file and not what it is for.
int mr_advise(struct mr_error *err, const char *advice);

// The names of a list for a message or a help text: "a, b and c", with ", " between and " and "
// before the last. `name` gives the one of an index, NULL behind the last.
struct mr_names {
    char text[256];
};
struct mr_names mr_names_of(const char *(*name)(int index), const char *between, const char *last);
