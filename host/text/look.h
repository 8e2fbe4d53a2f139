// SPDX-License-Identifier: Apache-2.0
// One look at the name and the first bytes of whatever is read as a text, so that nothing else is
// learnt or measured without a word.
#pragma once

#include <stddef.h>

#include "common/error.h"

enum { MR_LOOK_BYTES = 1 << 16 }; // as many are looked at, at most

// MR_ERR_FORMAT where they are no text: the first bytes of a known format, NUL bytes, or more than
// a tenth that cannot be UTF-8. `name` is the file's, for the message.
int mr_text_look(const char *name, const void *bytes, size_t size, struct mr_error *err);

// What a file is by its name, in letters of any case: .jsonl, .ndjson and .json, .csv, .tsv,
// anything else is plain text; .zst behind it is passed over.
enum mr_text_form { MR_TEXT_PLAIN, MR_TEXT_JSONL, MR_TEXT_CSV, MR_TEXT_TSV };
enum mr_text_form mr_text_form_of(const char *path);

// The same for a file that can be nothing but plain text: by its name, too.
int mr_text_look_plain(const char *path, const void *bytes, size_t size, struct mr_error *err);
