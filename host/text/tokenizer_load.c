// SPDX-License-Identifier: Apache-2.0
// Reading a tokenizer's files.
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/json.h"
#include "common/str.h"
#include "text/loader.h"
#include "text/tokenizer_load.h"
#include "text/utf8.h"
#include "text/wordpiece_list.h"
#include "text/wordpiece_load.h"

// GPT-2 writes every byte as one printable character: printable Latin-1 as itself, the others,
// in order, from U+0100 on.
static void make_alphabet(struct mr_loader *l)
{
    for (int c = 0; c < MR_BYTE_CHARS; c++)
        l->byte_of[c] = -1;
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; byte++) {
        bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
        unsigned c = printable ? byte : next++;
        l->byte_of[c] = (int16_t)byte;
    }
}

// Records a vocabulary entry. Entries with characters outside the alphabet stand for themselves;
// merging cannot make them.
static int store_token(struct mr_loader *l, int32_t id, const char *text, size_t size)
{
    struct mr_tokenizer *t = l->tokenizer;
    struct token *token = &t->tokens[id];
    int rc = mr_loader_text(l, text, size, &token->offset);
    if (rc)
        return rc;
    token->size = (uint32_t)size;

    // A byte takes at most as much room as its character: rewrite in place.
    unsigned char *bytes = (unsigned char *)t->bytes.data + token->offset;
    size_t n = 0;
    for (size_t at = 0, length; at < size; at += length) {
        const unsigned char *c = (const unsigned char *)text + at;
        (void)mr_utf8_scan(c, size - at, &length); // JSON strings are valid UTF-8
        unsigned code_point = mr_utf8_code_point(c, length);
        if (code_point >= MR_BYTE_CHARS || l->byte_of[code_point] < 0) {
            memcpy(bytes, text, size);
            return 0;
        }
        bytes[n++] = (unsigned char)l->byte_of[code_point];
    }
    token->size = (uint32_t)n;
    t->bytes.size = token->offset + n;
    token->made = t->ignore_merges;
    mr_tokenizer_index(t, id);
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
        int32_t id = (int32_t)json_integer_value(value);
        if (size == 0 || t->tokens[id].size > 0)
            return mr_fail(l->err, MR_ERR_FORMAT, "%s: %s (id %d)", l->path,
                           size == 0 ? "a token is empty" : "two tokens have the same id", id);
        int rc = store_token(l, id, content, size);
        if (rc)
            return rc;
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        char c = (char)(unsigned char)byte;
        int32_t id = mr_tokenizer_find_bpe(t, &c, 1);
        if (id < 0)
            return mr_fail(l->err, MR_ERR_UNSUPPORTED,
                           "%s: the vocabulary has no token for byte "
                           "0x%02x, so not every text can be encoded; is it a byte-level BPE?",
                           l->path, byte);
        mr_bpe_set_byte(t->bpe, (unsigned char)byte, id);
        t->tokens[id].made = true;
    }
    return 0;
}

// ---- merges ----

static int add_merge(struct mr_loader *l, const json_t *vocab, size_t rank, const char *left,
                     size_t left_size, const char *right, size_t right_size)
{
    l->joined.size = 0;
    int rc = mr_buf_append(&l->joined, left, left_size, l->err);
    if (!rc)
        rc = mr_buf_append(&l->joined, right, right_size, l->err);
    if (rc)
        return rc;
    const json_t *a = json_object_getn(vocab, left, left_size);
    const json_t *b = json_object_getn(vocab, right, right_size);
    const json_t *merged = json_object_getn(vocab, l->joined.data, l->joined.size);
    if (!a || !b || !merged)
        return mr_fail(l->err, MR_ERR_FORMAT,
                       "%s: merge %zu, of \"%s\" and \"%s\", names a token "
                       "that is not in the vocabulary",
                       l->path, rank, mr_show_bytes(left, left_size).text,
                       mr_show_bytes(right, right_size).text);
    int32_t id = (int32_t)json_integer_value(merged);
    mr_bpe_add_merge(l->tokenizer->bpe, (int32_t)json_integer_value(a),
                     (int32_t)json_integer_value(b), (uint32_t)rank, id);
    l->tokenizer->tokens[id].made = true;
    return 0;
}

// A merge in the form "left right".
static int add_merge_line(struct mr_loader *l, const json_t *vocab, size_t rank, const char *line,
                          size_t size)
{
    const char *space = memchr(line, ' ', size);
    size_t left = space ? (size_t)(space - line) : 0;
    if (left == 0 || left + 1 == size || memchr(space + 1, ' ', size - left - 1))
        return mr_fail(l->err, MR_ERR_FORMAT,
                       "%s: merge %zu is \"%s\", not two tokens with a "
                       "space between",
                       l->path, rank, mr_show_bytes(line, size).text);
    return add_merge(l, vocab, rank, line, left, space + 1, size - left - 1);
}

static int load_merges(struct mr_loader *l, const json_t *vocab, const json_t *merges)
{
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const json_t *merge = json_array_get(merges, i);
        const json_t *left = json_array_get(merge, 0);
        const json_t *right = json_array_get(merge, 1);
        int rc;
        if (json_is_string(merge))
            rc = add_merge_line(l, vocab, i, json_string_value(merge), json_string_length(merge));
        else if (json_array_size(merge) == 2 && json_is_string(left) && json_is_string(right))
            rc = add_merge(l, vocab, i, json_string_value(left), json_string_length(left),
                           json_string_value(right), json_string_length(right));
        else
            rc = mr_fail(l->err, MR_ERR_FORMAT,
                         "%s: merge %zu is neither \"a b\" nor "
                         "[\"a\", \"b\"]",
                         l->path, i);
        if (rc)
            return rc;
    }
    return 0;
}

// ---- tokenizer.json ----

static int unsupported(const struct mr_loader *l, const char *what, const char *why)
{
    return mr_fail(l->err, MR_ERR_UNSUPPORTED, "%s: %s %s; GPT-2's byte-level BPE is expected",
                   l->path, what, why);
}

// A template that only passes the text on.
static bool is_plain_template(const json_t *processor)
{
    const json_t *single = json_object_get(processor, "single");
    return mr_loader_is(processor, "TemplateProcessing") && json_array_size(single) == 1 &&
           json_object_get(json_array_get(single, 0), "Sequence");
}

// Absent, null, "" and 0 all mean "not used".
static bool is_unset(const json_t *value)
{
    return !value || json_is_null(value) ||
           (json_is_string(value) && json_string_length(value) == 0) ||
           (json_is_number(value) && json_number_value(value) == 0.0);
}

static int check_model(struct mr_loader *l, const json_t *model)
{
    if (!json_is_object(model))
        return mr_fail(l->err, MR_ERR_FORMAT, "%s: \"model\" is %s where an object is expected",
                       l->path, mr_json_kind(model));
    // Old files leave the type out.
    const json_t *type = mr_json_given(model, "type");
    if (type && !mr_loader_is(model, "BPE"))
        return mr_fail(l->err, MR_ERR_UNSUPPORTED,
                       "%s: the model's type is neither BPE nor WordPiece", l->path);
    static const char *const unused[] = {"dropout", "continuing_subword_prefix",
                                         "end_of_word_suffix"};
    for (size_t i = 0; i < sizeof unused / sizeof unused[0]; i++) {
        if (!is_unset(json_object_get(model, unused[i])))
            return unsupported(l, unused[i], "is set");
    }
    const json_t *fallback = mr_json_given(model, "byte_fallback");
    if (fallback && !json_is_false(fallback))
        return unsupported(l, "byte_fallback", "is set");
    return 0;
}

static int check_pipeline(struct mr_loader *l, const json_t *root)
{
    struct mr_tokenizer *t = l->tokenizer;
    const json_t *normalizer = json_object_get(root, "normalizer");
    if (normalizer && !json_is_null(normalizer))
        return unsupported(l, "a normalizer", "is set");
    const json_t *split = json_object_get(root, "pre_tokenizer");
    if (!mr_loader_is(split, "ByteLevel"))
        return unsupported(l, "the pre-tokenizer", "is not ByteLevel");
    const json_t *processor = json_object_get(root, "post_processor");
    if (processor && !json_is_null(processor) && !mr_loader_is(processor, "ByteLevel") &&
        !is_plain_template(processor))
        return unsupported(l, "the post-processor", "adds tokens or is of another kind");
    const json_t *decoder = json_object_get(root, "decoder");
    if (decoder && !json_is_null(decoder) && !mr_loader_is(decoder, "ByteLevel"))
        return unsupported(l, "the decoder", "is not ByteLevel");

    t->add_prefix_space = true; // the defaults of `tokenizers`, where the file does not say
    t->split_words = true;
    int rc = mr_loader_flag(l, split, "add_prefix_space", &t->add_prefix_space);
    if (!rc)
        rc = mr_loader_flag(l, split, "use_regex", &t->split_words);
    if (!rc)
        rc = mr_loader_flag(l, json_object_get(root, "model"), "ignore_merges", &t->ignore_merges);
    return rc;
}

static int load_json(struct mr_loader *l, const json_t *root)
{
    const json_t *model = json_object_get(root, "model");
    if (mr_loader_is(model, "WordPiece"))
        return mr_wordpiece_load(l, root);
    int rc = check_model(l, model);
    if (!rc)
        rc = check_pipeline(l, root);
    if (rc)
        return rc;
    json_t *vocab = json_object_get(model, "vocab");
    const json_t *merges = json_object_get(model, "merges");
    const json_t *added = json_object_get(root, "added_tokens");
    if (!json_is_object(vocab) || !json_is_array(merges) ||
        (added && !json_is_null(added) && !json_is_array(added)))
        return mr_fail(l->err, MR_ERR_FORMAT,
                       "%s: \"vocab\" is %s, \"merges\" is %s, "
                       "\"added_tokens\" is %s; expected an object and two arrays",
                       l->path, mr_json_kind(vocab), mr_json_kind(merges), mr_json_kind(added));
    rc = mr_bpe_new(&l->tokenizer->bpe, json_array_size(merges), l->err);
    if (!rc)
        rc = mr_loader_tables(l, vocab, added);
    if (!rc)
        rc = load_vocab(l, vocab);
    if (!rc)
        rc = load_merges(l, vocab, merges);
    if (!rc)
        rc = mr_loader_added(l, vocab, added);
    return rc;
}

static int load_single_file(struct mr_loader *l)
{
    json_t *root;
    int rc = mr_json_load(&root, l->path, l->err);
    if (rc)
        return rc;
    rc = load_json(l, root);
    json_decref(root);
    return rc;
}

// ---- vocab.json and merges.txt ----

// Calls add_merge_line() for each line; with `vocab` NULL only counts them.
static int scan_merges(struct mr_loader *l, const json_t *vocab, const struct mr_file *file,
                       size_t *count)
{
    const char *text = (const char *)file->data;
    size_t rank = 0;
    for (size_t at = 0; at < file->size;) {
        const char *line = text + at;
        const char *end = memchr(line, '\n', file->size - at);
        size_t size = end ? (size_t)(end - line) : file->size - at;
        at += size + (end != NULL);
        if (size > 0 && line[size - 1] == '\r')
            size--;
        bool version = size >= 8 && memcmp(line, "#version", 8) == 0;
        if (version || (size == 0 && at == file->size))
            continue;
        int rc = vocab ? add_merge_line(l, vocab, rank, line, size) : 0;
        if (rc)
            return rc;
        rank++;
    }
    *count = rank;
    return 0;
}

// Brings added_tokens.json ({"content": id}) and the end-of-text token into the form that
// tokenizer.json has them in. Who reads these files is GPT2Tokenizer, whose trie has all of them:
// the first in the text wins, of those that begin there the longest, special or not. So none is
// `normalized`: that would be looked for only in what the others leave.
int mr_tokenizer_list_added(const json_t *vocab, json_t *more, json_t *list, const char *path,
                            struct mr_error *err)
{
    static const char end_of_text[] = "<|endoftext|>";
    const json_t *end = json_object_get(vocab, end_of_text);
    const char *content;
    json_t *id;
    int failed = 0;
    if (end && !json_object_get(more, end_of_text))
        failed = json_array_append_new(list, json_pack("{s:s, s:I, s:b, s:b}", "content",
                                                       end_of_text, "id", json_integer_value(end),
                                                       "special", 1, "normalized", 0));
    json_object_foreach(more, content, id)
    {
        int special = strcmp(content, end_of_text) == 0;
        if (!failed)
            failed = json_array_append_new(list, json_pack("{s:s, s:O, s:b, s:b}", "content",
                                                           content, "id", id, "special", special,
                                                           "normalized", 0));
    }
    return failed ? mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", path) : 0;
}

// Messages about merges name the file that they come from.
static int load_merges_file(struct mr_loader *l, const json_t *vocab, const char *path,
                            const struct mr_file *file)
{
    const char *vocab_path = l->path;
    size_t count;
    l->path = path;
    int rc = scan_merges(l, vocab, file, &count);
    l->path = vocab_path;
    return rc;
}

static int load_from(struct mr_loader *l, json_t *vocab, json_t *more, const char *merges_path)
{
    json_t *added = json_array();
    if (!added)
        return mr_fail(l->err, MR_ERR_MEMORY, "%s: out of memory", l->path);
    struct mr_file merges = {0};
    size_t count = 0;
    int rc = mr_file_map(&merges, merges_path, l->err);
    if (!rc)
        rc = mr_tokenizer_list_added(vocab, more, added, l->path, l->err);
    if (!rc)
        rc = scan_merges(l, NULL, &merges, &count);
    if (!rc)
        rc = mr_bpe_new(&l->tokenizer->bpe, count, l->err);
    if (!rc)
        rc = mr_loader_tables(l, vocab, added);
    if (!rc)
        rc = load_vocab(l, vocab);
    if (!rc)
        rc = load_merges_file(l, vocab, merges_path, &merges);
    if (!rc)
        rc = mr_loader_added(l, vocab, added);
    mr_file_unmap(&merges);
    json_decref(added);
    return rc;
}

static int load_two_files(struct mr_loader *l, const char *dir)
{
    json_t *vocab = NULL;
    json_t *more = NULL;
    char *merges_path = mr_path_join(dir, "merges.txt", l->err);
    char *added_path = mr_path_join(dir, "added_tokens.json", l->err);
    int rc = merges_path && added_path ? mr_json_load(&vocab, l->path, l->err) : MR_ERR_MEMORY;
    if (!rc && mr_file_exists(added_path))
        rc = mr_json_load(&more, added_path, l->err);
    l->tokenizer->split_words = true;
    if (!rc)
        rc = load_from(l, vocab, more, merges_path);
    json_decref(more);
    json_decref(vocab);
    free(added_path);
    free(merges_path);
    return rc;
}

static int load_list(struct mr_loader *l, const char *dir)
{
    json_t *root;
    int rc = mr_wordpiece_root(&root, dir, l->err);
    if (rc)
        return rc;
    rc = load_json(l, root);
    json_decref(root);
    return rc;
}

static int load_directory(struct mr_loader *l, const char *dir)
{
    char *single = mr_path_join(dir, "tokenizer.json", l->err);
    char *vocab = mr_path_join(dir, "vocab.json", l->err);
    char *list = mr_path_join(dir, "vocab.txt", l->err);
    int rc;
    if (!single || !vocab || !list) {
        rc = MR_ERR_MEMORY;
    } else if (mr_file_exists(single)) {
        l->path = single;
        rc = load_single_file(l);
    } else if (mr_file_exists(vocab)) {
        l->path = vocab;
        rc = load_two_files(l, dir);
    } else if (mr_file_exists(list)) {
        l->path = list;
        rc = load_list(l, dir);
    } else {
        rc = mr_fail(l->err, MR_ERR_IO,
                     "%s: has neither tokenizer.json nor vocab.json nor vocab.txt", dir);
    }
    free(list);
    free(vocab);
    free(single);
    return rc;
}

int mr_tokenizer_load(struct mr_tokenizer *tokenizer, const char *path, struct mr_error *err)
{
    struct mr_loader l = {.tokenizer = tokenizer, .path = path, .err = err};
    make_alphabet(&l);
    // A directory that does not exist falls to the second case, whose message says so.
    int rc = mr_directory_has(path, ".", err);
    if (rc >= 0)
        rc = rc ? load_directory(&l, path) : load_single_file(&l);
    mr_buf_free(&l.joined);
    return rc;
}

int mr_tokenizer_load_text(struct mr_tokenizer *tokenizer, const void *text, size_t size,
                           const char *where, struct mr_error *err)
{
    struct mr_loader l = {.tokenizer = tokenizer, .path = where, .err = err};
    json_t *root;
    make_alphabet(&l);
    int rc = mr_json_parse(&root, text, size, where, err);
    if (rc)
        return rc;
    rc = load_json(&l, root);
    json_decref(root);
    mr_buf_free(&l.joined);
    return rc;
}
