// SPDX-License-Identifier: Apache-2.0
#include "text/split.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

// Unicode's White_Space property. PCRE2's \s leaves out U+0085, which `tokenizers` counts in.
#define SPACE                                                                                      \
    "\\x{09}-\\x{0d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"  \
    "\\x{205f}\\x{3000}"

// Contractions are lower case only: GPT-2's vocabulary was trained that way.
static const char word_pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+"
                                   "| ?[^" SPACE "\\p{L}\\p{N}]+"
                                   "|[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+";

static const char word_char_pattern[] = "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}]";

struct mr_splitter {
    pcre2_code *words;
    pcre2_code *word_char;
    pcre2_match_data *match;
    bool jit; // the words pattern was compiled to machine code
};

static int compile(pcre2_code **code, const char *pattern, struct mr_error *err)
{
    int number;
    PCRE2_SIZE offset;
    *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                          &number, &offset, NULL);
    if (*code)
        return 0;
    PCRE2_UCHAR text[128];
    (void)pcre2_get_error_message(number, text, sizeof text);
    return mr_fail(err, MR_ERR_UNSUPPORTED,
                   "PCRE2 refuses the tokenizer's pattern at offset %zu: %s; 10.40 or later is "
                   "needed, built with Unicode support",
                   offset, (const char *)text);
}

int mr_splitter_new(struct mr_splitter **splitter, struct mr_error *err)
{
    *splitter = NULL;
    struct mr_splitter *s = calloc(1, sizeof *s);
    if (!s)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory for the tokenizer's patterns");
    int rc = compile(&s->words, word_pattern, err);
    if (!rc)
        rc = compile(&s->word_char, word_char_pattern, err);
    if (!rc) {
        s->match = pcre2_match_data_create(1, NULL);
        if (!s->match)
            rc = mr_fail(err, MR_ERR_MEMORY, "out of memory for the tokenizer's patterns");
    }
    if (rc) {
        mr_splitter_free(s);
        return rc;
    }
    // Without a JIT (or on a system that forbids one) matching is interpreted: slower, the same.
    s->jit = pcre2_jit_compile(s->words, PCRE2_JIT_COMPLETE) == 0;
    *splitter = s;
    return 0;
}

void mr_splitter_free(struct mr_splitter *splitter)
{
    if (!splitter)
        return;
    pcre2_code_free(splitter->words);
    pcre2_code_free(splitter->word_char);
    pcre2_match_data_free(splitter->match);
    free(splitter);
}

int mr_splitter_next(struct mr_splitter *splitter, const unsigned char *text, size_t size,
                     size_t start, size_t *end, struct mr_error *err)
{
    // The caller vouches for the UTF-8; checking all of it again at every word would be quadratic.
    int rc = splitter->jit
                 ? pcre2_jit_match(splitter->words, text, size, start, PCRE2_NO_UTF_CHECK,
                                   splitter->match, NULL)
                 : pcre2_match(splitter->words, text, size, start,
                               PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED, splitter->match, NULL);
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(splitter->match);
    if (rc < 0 || range[0] != start || range[1] <= start)
        return mr_fail(err, MR_ERR_FORMAT,
                       "cannot split the text at byte %zu into words (PCRE2 status %d)", start, rc);
    *end = range[1];
    return 0;
}

bool mr_splitter_is_word(struct mr_splitter *splitter, const unsigned char *character, size_t size)
{
    return pcre2_match(splitter->word_char, character, size, 0, PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED,
                       splitter->match, NULL) > 0;
}

bool mr_is_space(unsigned c)
{
    return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

size_t mr_space_at_start(const unsigned char *text, size_t n)
{
    size_t size;
    if (n == 0 || mr_utf8_scan(text, n, &size) != MR_UTF8_CHAR)
        return 0;
    return mr_is_space(mr_utf8_code_point(text, size)) ? size : 0;
}

size_t mr_space_at_end(const unsigned char *text, size_t n)
{
    for (size_t size = 1; size <= 3 && size <= n; size++) { // all of them take 1 to 3 bytes
        if (mr_space_at_start(text + n - size, size) == size)
            return size;
    }
    return 0;
}
