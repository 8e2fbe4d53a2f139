// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "text/tokenizer_impl.h"
#include "text/tokenizer_load.h"
#include "text/utf8.h"
#include "text/wordpiece.h"

// From the text of a tokenizer.json, or from files where `text` is NULL.
static int open_from(struct mr_tokenizer **tokenizer, const void *text, size_t size,
                     const char *path, struct mr_error *err)
{
    *tokenizer = NULL;
    struct mr_tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        return mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", path);
    int rc = mr_splitter_new(&t->splitter, err);
    if (!rc)
        rc = text ? mr_tokenizer_load_text(t, text, size, path, err)
                  : mr_tokenizer_load(t, path, err);
    if (rc) {
        mr_tokenizer_close(t);
        return rc;
    }
    *tokenizer = t;
    return 0;
}

int mr_tokenizer_open(struct mr_tokenizer **tokenizer, const char *path, struct mr_error *err)
{
    return open_from(tokenizer, NULL, 0, path, err);
}

int mr_tokenizer_parse(struct mr_tokenizer **tokenizer, const void *text, size_t size,
                       const char *where, struct mr_error *err)
{
    return open_from(tokenizer, text, size, where, err);
}

void mr_tokenizer_close(struct mr_tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    mr_wordpiece_free(tokenizer->wordpiece);
    mr_bpe_free(tokenizer->bpe);
    mr_splitter_free(tokenizer->splitter);
    free(tokenizer->tokens);
    free(tokenizer->by_bytes);
    free(tokenizer->added);
    mr_buf_free(&tokenizer->bytes);
    mr_buf_free(&tokenizer->prefixed);
    free(tokenizer);
}

// ---- looking tokens up ----

int mr_tokenizer_vocab_size(const struct mr_tokenizer *tokenizer)
{
    return tokenizer->n_tokens;
}

bool mr_tokenizer_is_special(const struct mr_tokenizer *tokenizer, int32_t id)
{
    return id >= 0 && id < tokenizer->n_tokens && tokenizer->tokens[id].special;
}

const char *mr_tokenizer_bytes(const struct mr_tokenizer *tokenizer, int32_t id, size_t *size)
{
    *size = 0;
    if (id < 0 || id >= tokenizer->n_tokens || tokenizer->tokens[id].size == 0)
        return NULL;
    *size = tokenizer->tokens[id].size;
    return tokenizer->bytes.data + tokenizer->tokens[id].offset;
}

const struct mr_frame *mr_tokenizer_frame(const struct mr_tokenizer *tokenizer)
{
    return tokenizer->wordpiece ? &tokenizer->wordpiece->frame : NULL;
}

// ---- encoding ----

// One call of mr_tokenizer_encode().
struct encoding {
    struct mr_tokenizer *tokenizer;
    enum mr_special special;
    struct mr_tokens *tokens;
    struct mr_error *err;
};

static int encode_word(struct encoding *e, const unsigned char *word, size_t size)
{
    struct mr_tokenizer *t = e->tokenizer;
    if (t->ignore_merges) {
        int32_t id = mr_tokenizer_find_bpe(t, word, size);
        if (id >= 0) {
            int rc = mr_tokens_reserve(e->tokens, 1, e->err);
            if (!rc)
                e->tokens->ids[e->tokens->count++] = id;
            return rc;
        }
    }
    return mr_bpe_encode(t->bpe, word, size, e->tokens, e->err);
}

// Text that is valid UTF-8.
static int encode_utf8(struct encoding *e, const unsigned char *text, size_t size)
{
    if (!e->tokenizer->split_words)
        return encode_word(e, text, size);
    size_t start = 0;
    while (start < size) {
        size_t end;
        int rc = mr_splitter_next(e->tokenizer->splitter, text, size, start, &end, e->err);
        if (!rc)
            rc = encode_word(e, text + start, end - start);
        if (rc)
            return rc;
        start = end;
    }
    return 0;
}

// Text without added tokens, of a byte or more: runs of valid UTF-8, and between them runs of other
// bytes.
static int encode_plain(struct encoding *e, const unsigned char *text, size_t size)
{
    struct mr_buf *prefixed = &e->tokenizer->prefixed;
    if (e->tokenizer->wordpiece)
        return mr_wordpiece_encode(e->tokenizer, text, size, e->tokens, e->err);
    if (e->tokenizer->add_prefix_space && text[0] != ' ') {
        prefixed->size = 0;
        int rc = mr_buf_append(prefixed, " ", 1, e->err);
        if (!rc)
            rc = mr_buf_append(prefixed, text, size, e->err);
        if (rc)
            return rc;
        text = (const unsigned char *)prefixed->data;
        size = prefixed->size;
    }
    size_t at = 0;
    while (at < size) {
        size_t valid = mr_utf8_valid_prefix(text + at, size - at);
        int rc = valid > 0 ? encode_utf8(e, text + at, valid) : 0;
        at += valid;
        size_t start = at;
        size_t length;
        while (at < size && mr_utf8_scan(text + at, size - at, &length) != MR_UTF8_CHAR)
            at += length;
        if (!rc && at > start)
            rc = encode_word(e, text + start, at - start);
        if (rc)
            return rc;
    }
    return 0;
}

struct span {
    size_t start;
    size_t end;
};

// The first added token at or after `from`, the longest where several start; NULL if there is none.
// Only those with the given `normalized` count.
static const struct added_token *find_added(const struct mr_tokenizer *t, bool normalized,
                                            const unsigned char *text, size_t size, size_t from,
                                            struct span *found)
{
    for (size_t at = from; at < size; at++) {
        if (!t->added_first[text[at]])
            continue;
        const struct added_token *best = NULL;
        for (size_t i = 0; i < t->n_added; i++) {
            const struct added_token *a = &t->added[i];
            const char *bytes = t->bytes.data + a->offset;
            // The last byte tells tokens of one family ("<|extratoken_1|>", ...) from other text.
            if (a->normalized == normalized && a->size <= size - at &&
                (unsigned char)bytes[a->size - 1] == text[at + a->size - 1] &&
                memcmp(bytes, text + at, a->size) == 0 && (!best || a->size > best->size))
                best = a;
        }
        if (best) {
            *found = (struct span){at, at + best->size};
            return best;
        }
    }
    return NULL;
}

static bool word_at_start(struct mr_tokenizer *t, const unsigned char *text, size_t n)
{
    size_t size;
    return n > 0 && mr_utf8_scan(text, n, &size) == MR_UTF8_CHAR &&
           mr_splitter_is_word(t->splitter, text, size);
}

static bool word_at_end(struct mr_tokenizer *t, const unsigned char *text, size_t n)
{
    for (size_t length = 1; length <= 4 && length <= n; length++) {
        size_t size;
        const unsigned char *last = text + n - length;
        if (mr_utf8_scan(last, length, &size) == MR_UTF8_CHAR && size == length)
            return mr_splitter_is_word(t->splitter, last, size);
    }
    return false;
}

// Cuts the text at added tokens: in the first pass at those that are not `normalized`, and what is
// left between them in a second pass at the others. The order of the steps is that of `tokenizers`.
static int encode_pieces(struct encoding *e, bool normalized, const unsigned char *text,
                         size_t size)
{
    struct mr_tokenizer *t = e->tokenizer;
    size_t done = 0;
    struct span found = {0, 0};
    int rc = 0;
    while (!rc) {
        const struct added_token *a = find_added(t, normalized, text, size, found.end, &found);
        struct span piece = {done, size};
        if (a) {
            if (a->special && e->special == MR_SPECIAL_AS_TEXT)
                continue;
            if (a->single_word && (word_at_end(t, text, found.start) ||
                                   word_at_start(t, text + found.end, size - found.end)))
                continue;
            piece.end = found.start;
            size_t n;
            while (a->lstrip && piece.end > done && (n = mr_space_at_end(text, piece.end)) > 0)
                piece.end -= n;
        }
        if (piece.start < piece.end)
            rc = normalized ? encode_plain(e, text + piece.start, piece.end - piece.start)
                            : encode_pieces(e, true, text + piece.start, piece.end - piece.start);
        if (!a || rc)
            break;
        rc = mr_tokens_reserve(e->tokens, 1, e->err);
        if (!rc)
            e->tokens->ids[e->tokens->count++] = a->id;
        done = found.end;
        size_t n;
        while (a->rstrip && (n = mr_space_at_start(text + done, size - done)) > 0)
            done += n;
    }
    return rc;
}

int mr_tokenizer_encode(struct mr_tokenizer *tokenizer, const void *text, size_t size,
                        enum mr_special special, struct mr_tokens *tokens, struct mr_error *err)
{
    // One less than the limit of BPE: a space may go in front.
    if (size >= INT32_MAX)
        return mr_fail(err, MR_ERR_USAGE, "a text of %zu bytes is too long; the limit is %d", size,
                       INT32_MAX - 1);
    struct encoding e = {.tokenizer = tokenizer, .special = special, .tokens = tokens, .err = err};
    return size > 0 ? encode_pieces(&e, false, text, size) : 0;
}

// ---- decoding ----

int mr_tokenizer_decode(const struct mr_tokenizer *tokenizer, const int32_t *ids, size_t count,
                        bool skip_special, struct mr_buf *text, struct mr_error *err)
{
    size_t done = 0;
    for (size_t i = 0; i < count; i++) {
        size_t size;
        const char *bytes = mr_tokenizer_bytes(tokenizer, ids[i], &size);
        if (!bytes)
            return mr_fail(err, MR_ERR_USAGE, "token %d (number %zu) is not in the vocabulary",
                           (int)ids[i], i);
        if (skip_special && mr_tokenizer_is_special(tokenizer, ids[i]))
            continue;
        int rc = tokenizer->wordpiece
                     ? mr_wordpiece_decode(tokenizer->wordpiece, bytes, size, done++, text, err)
                     : mr_buf_append(text, bytes, size, err);
        if (rc)
            return rc;
    }
    return 0;
}

static const char replacement[] = "\xef\xbf\xbd"; // U+FFFD

int mr_text_stream_push_bytes(struct mr_text_stream *stream, const void *bytes, size_t size,
                              struct mr_buf *text, struct mr_error *err)
{
    const unsigned char *in = bytes;
    size_t at = 0;
    while (at < size) {
        size_t whole = stream->n_pending == 0 ? mr_utf8_valid_prefix(in + at, size - at) : 0;
        if (whole > 0) {
            int rc = mr_buf_append(text, in + at, whole, err);
            if (rc)
                return rc;
            at += whole;
            continue;
        }
        stream->pending[stream->n_pending++] = in[at++];
        size_t length;
        enum mr_utf8 state = mr_utf8_scan(stream->pending, stream->n_pending, &length);
        if (state == MR_UTF8_INCOMPLETE)
            continue;
        // A byte that breaks a character off may itself begin the next one: look at it again.
        if (state == MR_UTF8_INVALID && length < stream->n_pending)
            at--;
        int rc = state == MR_UTF8_CHAR
                     ? mr_buf_append(text, stream->pending, stream->n_pending, err)
                     : mr_buf_append(text, replacement, sizeof replacement - 1, err);
        stream->n_pending = 0;
        if (rc)
            return rc;
    }
    return 0;
}

int mr_text_stream_push(struct mr_text_stream *stream, const struct mr_tokenizer *tokenizer,
                        int32_t id, struct mr_buf *text, struct mr_error *err)
{
    size_t size;
    const char *bytes = mr_tokenizer_bytes(tokenizer, id, &size);
    if (bytes)
        return mr_text_stream_push_bytes(stream, bytes, size, text, err);
    int rc = mr_text_stream_end(stream, text, err);
    return rc ? rc : mr_buf_append(text, replacement, sizeof replacement - 1, err);
}

int mr_text_stream_end(struct mr_text_stream *stream, struct mr_buf *text, struct mr_error *err)
{
    if (stream->n_pending == 0)
        return 0;
    stream->n_pending = 0;
    return mr_buf_append(text, replacement, sizeof replacement - 1, err);
}
