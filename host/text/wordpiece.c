// SPDX-License-Identifier: Apache-2.0
#include "text/wordpiece.h"

#include <stdlib.h>
#include <string.h>

#include "text/bert_unicode.h"
#include "text/utf8.h"

void mr_wordpiece_free(struct mr_wordpiece *w)
{
    if (!w)
        return;
    mr_buf_free(&w->prefix);
    mr_buf_free(&w->word);
    mr_buf_free(&w->key);
    free(w->codes);
    free(w);
}

// ---- characters ----

static int reserve(struct mr_wordpiece *w, size_t count, struct mr_error *err)
{
    if (count <= w->room)
        return 0;
    uint32_t *more = reallocarray(w->codes, count, sizeof *more);
    if (!more)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory for a word of %zu characters", count);
    w->codes = more;
    w->room = count;
    return 0;
}

static void add_character(struct mr_wordpiece *w, unsigned c)
{
    if (w->clean && mr_bert_is_dropped(c))
        return;
    bool alone = w->chinese && mr_bert_is_chinese(c);
    if (alone)
        w->codes[w->count++] = ' ';
    w->codes[w->count++] = c;
    if (alone)
        w->codes[w->count++] = ' ';
}

// Characters that follow a letter stand in the order of their classes. `from`: where the order
// began.
static void add_part(struct mr_wordpiece *w, unsigned c, size_t *from)
{
    unsigned class = mr_bert_class(c);
    size_t at = w->count++;
    while (class > 0 && at > *from && mr_bert_class(w->codes[at - 1]) > class) {
        w->codes[at] = w->codes[at - 1];
        at--;
    }
    w->codes[at] = c;
    if (class == 0)
        *from = w->count;
}

// In place: the parts are written behind what is read. The last `n` of the room are the text.
static void take_accents_off(struct mr_wordpiece *w, size_t n)
{
    const uint32_t *in = w->codes + w->room - n;
    size_t from = 0;
    w->count = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned c = in[i], parts[MR_BERT_PARTS];
        if (mr_bert_is_accent(c)) {
            if (mr_bert_class(c) == 0)
                from = w->count;
            continue;
        }
        size_t count = mr_bert_parts(c, parts);
        for (size_t k = 0; k < count; k++)
            add_part(w, parts[k], &from);
    }
}

static void make_small(struct mr_wordpiece *w, size_t n)
{
    const uint32_t *in = w->codes + w->room - n;
    w->count = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned c = in[i];
        w->codes[w->count++] = mr_bert_lower(c);
        if (c == 0x130)
            w->codes[w->count++] = 0x307;
    }
}

// Moves the text to the end of the room, and its length.
static size_t to_end(struct mr_wordpiece *w)
{
    memmove(w->codes + w->room - w->count, w->codes, w->count * sizeof *w->codes);
    return w->count;
}

static int read_characters(struct mr_wordpiece *w, const unsigned char *text, size_t size,
                           struct mr_error *err)
{
    // A character becomes at most three, and these are written in front of what is still to be
    // read: no more than a quarter of the room is ever text.
    int rc = reserve(w, 12 * size + 16, err); // of less than 2 GiB: see mr_tokenizer_encode()
    w->count = 0;
    for (size_t at = 0, length; rc == 0 && at < size; at += length)
        if (mr_utf8_scan(text + at, size - at, &length) == MR_UTF8_CHAR)
            add_character(w, mr_utf8_code_point(text + at, length));
    if (rc == 0 && w->accents)
        take_accents_off(w, to_end(w));
    if (rc == 0 && w->lowercase)
        make_small(w, to_end(w));
    return rc;
}

// ---- words ----

static int add_token(struct mr_tokens *tokens, int32_t id, struct mr_error *err)
{
    int rc = mr_tokens_reserve(tokens, 1, err);
    if (rc == 0)
        tokens->ids[tokens->count++] = id;
    return rc;
}

// The length of the longest piece at the start of n bytes, whose token is *id; 0: there is none.
static size_t longest_piece(struct mr_tokenizer *t, const char *text, size_t n, bool first,
                            int32_t *id, struct mr_error *err)
{
    struct mr_wordpiece *w = t->wordpiece;
    size_t prefix = first ? 0 : w->prefix.size;
    if (prefix >= w->longest)
        return 0;
    if (n > w->longest - prefix)
        n = w->longest - prefix;
    w->key.size = 0;
    if ((prefix && mr_buf_append(&w->key, w->prefix.data, prefix, err)) ||
        mr_buf_append(&w->key, text, n, err))
        return SIZE_MAX;
    for (; n > 0; n--) {
        bool inside = ((unsigned char)text[n] & 0xc0U) == 0x80; // the word ends with a NUL
        if (!inside && (*id = mr_tokenizer_find_bpe(t, w->key.data, prefix + n)) >= 0)
            return n;
    }
    return 0;
}

static int encode_word(struct mr_tokenizer *t, const uint32_t *codes, size_t n,
                       struct mr_tokens *tokens, struct mr_error *err)
{
    struct mr_wordpiece *w = t->wordpiece;
    size_t before = tokens->count;
    if (n > (size_t)w->max_chars)
        return add_token(tokens, w->unknown, err);
    w->word.size = 0;
    int rc = mr_buf_reserve(&w->word, 4 * n + 1, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        w->word.size += mr_utf8_put(codes[i], (unsigned char *)w->word.data + w->word.size);
    if (rc)
        return rc;
    w->word.data[w->word.size] = 0;
    for (size_t at = 0, length; rc == 0 && at < w->word.size; at += length) {
        int32_t id = -1;
        length = longest_piece(t, w->word.data + at, w->word.size - at, at == 0, &id, err);
        if (length == SIZE_MAX)
            return MR_ERR_MEMORY;
        if (length == 0) { // then the whole word is unknown
            tokens->count = before;
            return add_token(tokens, w->unknown, err);
        }
        rc = add_token(tokens, id, err);
    }
    return rc;
}

// A stretch of text: no character's fate depends on what lies beyond a space.
static int encode_stretch(struct mr_tokenizer *t, const unsigned char *text, size_t size,
                          struct mr_tokens *tokens, struct mr_error *err)
{
    struct mr_wordpiece *w = t->wordpiece;
    int rc = read_characters(w, text, size, err);
    for (size_t at = 0, end; rc == 0 && at < w->count; at = end) {
        end = at + 1;
        if (mr_is_space(w->codes[at]))
            continue;
        if (!mr_bert_is_punctuation(w->codes[at]))
            while (end < w->count && !mr_is_space(w->codes[end]) &&
                   !mr_bert_is_punctuation(w->codes[end]))
                end++;
        rc = encode_word(t, w->codes + at, end - at, tokens, err);
    }
    return rc;
}

static bool is_blank(unsigned char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

int mr_wordpiece_encode(struct mr_tokenizer *t, const unsigned char *text, size_t size,
                        struct mr_tokens *tokens, struct mr_error *err)
{
    int rc = 0;
    for (size_t at = 0, end; rc == 0 && at < size; at = end) {
        end = at;
        while (end < size && !is_blank(text[end]))
            end++;
        if (end > at)
            rc = encode_stretch(t, text + at, end - at, tokens, err);
        else
            end++;
    }
    return rc;
}

// ---- decoding ----

int mr_wordpiece_decode(const struct mr_wordpiece *w, const char *token, size_t size, size_t before,
                        struct mr_buf *text, struct mr_error *err)
{
    // An empty prefix is that of every token, as for `tokenizers`.
    bool goes_on = before > 0 && size >= w->prefix.size &&
                   (w->prefix.size == 0 || memcmp(token, w->prefix.data, w->prefix.size) == 0);
    if (goes_on) {
        token += w->prefix.size;
        size -= w->prefix.size;
    } else if (before > 0 && !(w->tidy && strchr(".?!,", token[0]))) {
        int rc = mr_buf_append(text, " ", 1, err);
        if (rc)
            return rc;
    }
    return mr_buf_append(text, token, size, err);
}
