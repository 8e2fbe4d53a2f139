// SPDX-License-Identifier: Apache-2.0
#include "text/wordpiece_load.h"

#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/str.h"
#include "text/wordpiece.h"

static int unsupported(const struct mr_loader *l, const char *what)
{
    return mr_fail(l->err, MR_ERR_UNSUPPORTED, "%s: %s; BERT's WordPiece is expected", l->path,
                   what);
}

static int malformed(const struct mr_loader *l, const char *what, const char *expected,
                     const json_t *value)
{
    return mr_fail(l->err, MR_ERR_FORMAT, "%s: \"%s\" is %s where %s is expected", l->path, what,
                   mr_json_kind(value), expected);
}

static bool is_null(const json_t *value)
{
    return !value || json_is_null(value);
}

// ---- the pipeline ----

static int read_normalizer(struct mr_loader *l, const json_t *n)
{
    struct mr_wordpiece *w = l->tokenizer->wordpiece;
    if (is_null(n))
        return 0;
    if (!mr_loader_is(n, "BertNormalizer"))
        return unsupported(l, "the normalizer is not BertNormalizer");
    w->clean = w->chinese = w->lowercase = true; // the defaults of `tokenizers`
    int rc = mr_loader_flag(l, n, "clean_text", &w->clean);
    if (!rc)
        rc = mr_loader_flag(l, n, "handle_chinese_chars", &w->chinese);
    if (!rc)
        rc = mr_loader_flag(l, n, "lowercase", &w->lowercase);
    w->accents = w->lowercase; // where the file does not say
    if (!rc && !is_null(json_object_get(n, "strip_accents")))
        rc = mr_loader_flag(l, n, "strip_accents", &w->accents);
    return rc;
}

// The id of the vocabulary's token `name`.
static int find_id(struct mr_loader *l, const json_t *vocab, const char *what, const json_t *name,
                   int32_t *id)
{
    if (!json_is_string(name))
        return malformed(l, what, "a token", name);
    const json_t *value = json_object_get(vocab, json_string_value(name));
    if (!value)
        return mr_fail(l->err, MR_ERR_FORMAT, "%s: %s \"%s\" is not in the vocabulary", l->path,
                       what, mr_show(json_string_value(name)).text);
    *id = (int32_t)json_integer_value(value);
    return 0;
}

// Is entry i of a template this piece of this kind? Of special tokens *name is which.
static bool is_piece(const json_t *list, size_t i, const char *kind, int type, const char *text,
                     const json_t **name)
{
    const json_t *piece = json_object_get(json_array_get(list, i), kind);
    const json_t *id = json_object_get(piece, "id");
    if (!json_is_string(id) || json_integer_value(json_object_get(piece, "type_id")) != type ||
        (text && strcmp(text, json_string_value(id)) != 0))
        return false;
    if (name)
        *name = id;
    return true;
}

// [CLS] A [SEP], and where there is a template of pairs, B [SEP] of the second kind behind it.
static bool is_berts(const json_t *p, const json_t **cls, const json_t **sep)
{
    const json_t *single = json_object_get(p, "single"), *pair = json_object_get(p, "pair");
    if (json_array_size(single) != 3 || !is_piece(single, 0, "SpecialToken", 0, NULL, cls) ||
        !is_piece(single, 1, "Sequence", 0, "A", NULL) ||
        !is_piece(single, 2, "SpecialToken", 0, NULL, sep))
        return false;
    const char *c = json_string_value(*cls), *s = json_string_value(*sep);
    return is_null(pair) ||
           (json_array_size(pair) == 5 && is_piece(pair, 0, "SpecialToken", 0, c, NULL) &&
            is_piece(pair, 1, "Sequence", 0, "A", NULL) &&
            is_piece(pair, 2, "SpecialToken", 0, s, NULL) &&
            is_piece(pair, 3, "Sequence", 1, "B", NULL) &&
            is_piece(pair, 4, "SpecialToken", 1, s, NULL));
}

static int read_frame(struct mr_loader *l, const json_t *vocab, const json_t *p)
{
    struct mr_frame *f = &l->tokenizer->wordpiece->frame;
    const json_t *cls = NULL, *sep = NULL, *mask = json_object_get(vocab, "[MASK]");
    if (mr_loader_is(p, "BertProcessing")) {
        cls = json_array_get(json_object_get(p, "cls"), 0);
        sep = json_array_get(json_object_get(p, "sep"), 0);
    } else if (!mr_loader_is(p, "TemplateProcessing") || !is_berts(p, &cls, &sep)) {
        return unsupported(l, "the post-processor does not make [CLS] A [SEP] B [SEP]");
    }
    int rc = find_id(l, vocab, "the post-processor's", cls, &f->cls);
    if (!rc)
        rc = find_id(l, vocab, "the post-processor's", sep, &f->sep);
    f->mask = mask ? (int32_t)json_integer_value(mask) : -1;
    return rc;
}

static int read_decoder(struct mr_loader *l, const json_t *d)
{
    struct mr_wordpiece *w = l->tokenizer->wordpiece;
    const json_t *prefix = json_object_get(d, "prefix");
    if (is_null(d))
        return 0;
    if (!mr_loader_is(d, "WordPiece"))
        return unsupported(l, "the decoder is not WordPiece");
    if (prefix && (!json_is_string(prefix) || json_string_length(prefix) != w->prefix.size ||
                   (w->prefix.size > 0 &&
                    memcmp(json_string_value(prefix), w->prefix.data, w->prefix.size) != 0)))
        return unsupported(l, "the decoder's prefix is not the model's");
    w->tidy = true;
    return mr_loader_flag(l, d, "cleanup", &w->tidy);
}

// ---- the model ----

static int read_prefix(struct mr_loader *l, const json_t *model)
{
    const json_t *prefix = json_object_get(model, "continuing_subword_prefix");
    if (prefix && !json_is_string(prefix))
        return malformed(l, "continuing_subword_prefix", "a string", prefix);
    const char *text = prefix ? json_string_value(prefix) : "##";
    size_t size = strlen(text);
    if (size > MR_WORD_CHARS)
        return unsupported(l, "\"continuing_subword_prefix\" is too long");
    return mr_buf_append(&l->tokenizer->wordpiece->prefix, text, size, l->err);
}

static int read_limit(struct mr_loader *l, const json_t *model)
{
    const json_t *limit = json_object_get(model, "max_input_chars_per_word");
    if (limit && (!json_is_integer(limit) || json_integer_value(limit) < 1 ||
                  json_integer_value(limit) > MR_WORD_CHARS))
        return mr_fail(l->err, MR_ERR_UNSUPPORTED,
                       "%s: \"max_input_chars_per_word\" is not an integer from 1 to %d", l->path,
                       MR_WORD_CHARS);
    l->tokenizer->wordpiece->max_chars = limit ? (int)json_integer_value(limit) : 100;
    return 0;
}

static int load_vocab(struct mr_loader *l, json_t *vocab)
{
    struct mr_tokenizer *t = l->tokenizer;
    const char *content;
    size_t size;
    json_t *value;
    json_object_keylen_foreach(vocab, content, size, value)
    {
        struct token *token = &t->tokens[json_integer_value(value)];
        if (size == 0 || token->size > 0)
            return mr_fail(l->err, MR_ERR_FORMAT, "%s: %s (id %" JSON_INTEGER_FORMAT ")", l->path,
                           size == 0 ? "a token is empty" : "two tokens have the same id",
                           json_integer_value(value));
        int rc = mr_loader_text(l, content, size, &token->offset);
        if (rc)
            return rc;
        token->size = (uint32_t)size;
        mr_tokenizer_index(t, (int32_t)json_integer_value(value));
        if (size > t->wordpiece->longest)
            t->wordpiece->longest = size;
    }
    return 0;
}

// Tokens that `tokenizers` would look for in the cleaned text; BERT's are looked for in the raw
// one.
static int refuse_normalized(struct mr_loader *l)
{
    const struct mr_tokenizer *t = l->tokenizer;
    for (size_t i = 0; i < t->n_added; i++)
        if (t->added[i].normalized)
            return mr_fail(
                l->err, MR_ERR_UNSUPPORTED, "%s: added token \"%s\" is normalized; BERT's are not",
                l->path, mr_show_bytes(t->bytes.data + t->added[i].offset, t->added[i].size).text);
    return 0;
}

static int load_model(struct mr_loader *l, const json_t *root, const json_t *model)
{
    json_t *vocab = json_object_get(model, "vocab"), *added = json_object_get(root, "added_tokens");
    const json_t *unknown = json_object_get(model, "unk_token");
    if (!json_is_object(vocab))
        return malformed(l, "vocab", "an object", vocab);
    if (!is_null(added) && !json_is_array(added))
        return malformed(l, "added_tokens", "an array", added);
    int rc = mr_loader_tables(l, vocab, added);
    if (!rc)
        rc = load_vocab(l, vocab);
    if (!rc)
        rc = mr_loader_added(l, vocab, added);
    if (!rc)
        rc = refuse_normalized(l);
    if (!rc)
        rc = find_id(l, vocab, "unk_token", unknown, &l->tokenizer->wordpiece->unknown);
    if (!rc)
        rc = read_frame(l, vocab, json_object_get(root, "post_processor"));
    return rc;
}

int mr_wordpiece_load(struct mr_loader *l, const json_t *root)
{
    const json_t *model = json_object_get(root, "model");
    struct mr_wordpiece *w = l->tokenizer->wordpiece = calloc(1, sizeof *w);
    if (!w)
        return mr_fail(l->err, MR_ERR_MEMORY, "%s: out of memory", l->path);
    int rc = read_prefix(l, model);
    if (!rc)
        rc = read_limit(l, model);
    if (!rc)
        rc = read_normalizer(l, json_object_get(root, "normalizer"));
    if (!rc && !mr_loader_is(json_object_get(root, "pre_tokenizer"), "BertPreTokenizer"))
        rc = unsupported(l, "the pre-tokenizer is not BertPreTokenizer");
    if (!rc)
        rc = read_decoder(l, json_object_get(root, "decoder"));
    return rc ? rc : load_model(l, root, model);
}
