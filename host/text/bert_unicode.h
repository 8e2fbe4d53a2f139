// SPDX-License-Identifier: Apache-2.0
// Characters as BERT's basic tokenizer sees them. Every answer is that of the `tokenizers` library,
// whose Unicode is older than PCRE2's: tests/interop/wordpiece_table.py asked it.
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool mr_bert_is_dropped(unsigned c); // control characters, private use, U+FFFD
bool mr_bert_is_chinese(unsigned c); // ideographs: each is a word of its own
bool mr_bert_is_punctuation(unsigned c);
bool mr_bert_is_accent(unsigned c);

// The canonical combining class; of accents only whether it is 0.
unsigned mr_bert_class(unsigned c);

// What a character consists of, without accents, and how many they are: itself, or its parts.
enum { MR_BERT_PARTS = 3 };
size_t mr_bert_parts(unsigned c, unsigned parts[MR_BERT_PARTS]);

// The small letter. U+0130 has two, of which this is the first; U+0307 follows it.
unsigned mr_bert_lower(unsigned c);
