// SPDX-License-Identifier: Apache-2.0
// One look at the first bytes of whatever is read as a text, so that nothing else is learnt or
// measured without a word.
#ifndef MILLRACE_TEXT_LOOK_H
#define MILLRACE_TEXT_LOOK_H

#include <stddef.h>

#include "common/error.h"

enum { MR_LOOK_BYTES = 1 << 16 }; // as many are looked at, at most

// MR_ERR_FORMAT where they are no text: the first bytes of a known format, NUL bytes, or more than
// a tenth that cannot be UTF-8. `name` is the file's, for the message.
int mr_text_look(const char *name, const void *bytes, size_t size, struct mr_error *err);

#endif
