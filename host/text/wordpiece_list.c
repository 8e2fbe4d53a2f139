// SPDX-License-Identifier: Apache-2.0
#include "text/wordpiece_list.h"

#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/json.h"
#include "common/str.h"

enum { UNKNOWN, SEPARATOR, PADDING, CLASS, MASK, SPECIALS };
static const struct {
    const char *key, *token;
} specials[SPECIALS] = {
    {"unk_token", "[UNK]"}, {"sep_token", "[SEP]"},   {"pad_token", "[PAD]"},
    {"cls_token", "[CLS]"}, {"mask_token", "[MASK]"},
};

// A line is a token, and its number the id; of two equal ones the later counts, as in transformers.
static int read_lines(json_t *vocab, const char *path, struct mr_error *err)
{
    struct mr_file file;
    int rc = mr_file_map(&file, path, err), id = 0;
    const char *text = (const char *)file.data;
    for (size_t at = 0; rc == 0 && at < file.size; id++) {
        const char *line = text + at, *end = memchr(line, '\n', file.size - at);
        size_t size = end ? (size_t)(end - line) : file.size - at;
        at += size + (end != NULL);
        if (size > 0 && line[size - 1] == '\r')
            size--;
        if (size > 0 && json_object_setn_new(vocab, line, size, json_integer(id)) < 0)
            rc = mr_fail(err, MR_ERR_FORMAT, "%s: line %d is not UTF-8, or memory has run out",
                         path, id + 1);
    }
    mr_file_unmap(&file);
    return rc;
}

// A file that may be missing: then *object is NULL.
static int load_optional(json_t **object, const char *dir, const char *name, struct mr_error *err)
{
    char *path = mr_path_join(dir, name, err);
    *object = NULL;
    int rc = !path ? MR_ERR_MEMORY : mr_file_exists(path) ? mr_json_load(object, path, err) : 0;
    free(path);
    return rc;
}

// Settings of tokenizer_config.json that would give other tokens.
static int check_config(const json_t *config, const char *dir, struct mr_error *err)
{
    const char *class = json_string_value(json_object_get(config, "tokenizer_class"));
    const json_t *basic = json_object_get(config, "do_basic_tokenize");
    if (class && strcmp(class, "BertTokenizer") != 0 && strcmp(class, "BertTokenizerFast") != 0)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: tokenizer_config.json names a \"%s\"; BertTokenizer is supported", dir,
                       mr_show(class).text);
    if (basic && !json_is_true(basic))
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: \"do_basic_tokenize\" of tokenizer_config.json is not true", dir);
    return 0;
}

// The name of a special token, and its entry among the added tokens.
static int add_special(json_t *list, const json_t *config, const json_t *vocab, int i,
                       const char *dir, const char **name, struct mr_error *err)
{
    const json_t *given = json_object_get(config, specials[i].key);
    const json_t *text = json_is_object(given) ? json_object_get(given, "content") : given;
    *name = json_is_string(text) ? json_string_value(text) : specials[i].token;
    const json_t *id = json_object_get(vocab, *name);
    if (!id && (i == PADDING || i == MASK))
        return 0;
    if (!id)
        return mr_fail(err, MR_ERR_FORMAT, "%s: \"%s\" (%s) is not in vocab.txt", dir,
                       mr_show(*name).text, specials[i].key);
    if (i == MASK && strcmp(*name, specials[i].token) != 0)
        return mr_fail(err, MR_ERR_UNSUPPORTED, "%s: mask_token \"%s\" is not [MASK]", dir,
                       mr_show(*name).text);
    return json_array_append_new(list, json_pack("{s:s, s:I, s:b, s:b}", "content", *name, "id",
                                                 json_integer_value(id), "special", 1, "normalized",
                                                 0)) == 0
               ? 0
               : mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", dir);
}

// added_tokens.json of slow tokenizers lists what the vocabulary has.
static int check_more(const json_t *vocab, json_t *more, const char *dir, struct mr_error *err)
{
    const char *content;
    json_t *id;
    json_object_foreach(more, content, id)
    {
        if (!json_equal(id, json_object_get(vocab, content)))
            return mr_fail(err, MR_ERR_UNSUPPORTED,
                           "%s: token \"%s\" of added_tokens.json is not in vocab.txt; save the "
                           "tokenizer as a tokenizer.json",
                           dir, mr_show(content).text);
    }
    return 0;
}

static json_t *flag_or(const json_t *config, const char *key, json_t *otherwise)
{
    json_t *value = json_object_get(config, key);
    if (!value)
        return otherwise;
    json_decref(otherwise);
    return json_incref(value);
}

// Takes the references to `vocab` and `added`.
static json_t *assemble(const json_t *config, json_t *vocab, json_t *added,
                        const char *const name[SPECIALS])
{
    json_t *normalizer =
        json_pack("{s:s, s:b, s:o, s:o, s:o}", "type", "BertNormalizer", "clean_text", 1,
                  "handle_chinese_chars", flag_or(config, "tokenize_chinese_chars", json_true()),
                  "strip_accents", flag_or(config, "strip_accents", json_null()), "lowercase",
                  flag_or(config, "do_lower_case", json_true()));
    json_t *processor = json_pack("{s:s, s:[s, O], s:[s, O]}", "type", "BertProcessing", "sep",
                                  name[SEPARATOR], json_object_get(vocab, name[SEPARATOR]), "cls",
                                  name[CLASS], json_object_get(vocab, name[CLASS]));
    return json_pack(
        "{s:s, s:o, s:o, s:{s:s}, s:o, s:{s:s, s:s, s:b}, s:{s:s, s:s, s:s, s:i, s:o}}", "version",
        "1.0", "added_tokens", added, "normalizer", normalizer, "pre_tokenizer", "type",
        "BertPreTokenizer", "post_processor", processor, "decoder", "type", "WordPiece", "prefix",
        "##", "cleanup", 1, "model", "type", "WordPiece", "unk_token", name[UNKNOWN],
        "continuing_subword_prefix", "##", "max_input_chars_per_word", 100, "vocab", vocab);
}

int mr_wordpiece_root(json_t **root, const char *dir, struct mr_error *err)
{
    json_t *config = NULL, *more = NULL, *vocab = json_object(), *added = json_array();
    const char *name[SPECIALS];
    char *path = mr_path_join(dir, "vocab.txt", err);
    *root = NULL;
    int rc = !path            ? MR_ERR_MEMORY
             : vocab && added ? read_lines(vocab, path, err)
                              : mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", path);
    if (!rc)
        rc = load_optional(&config, dir, "tokenizer_config.json", err);
    if (!rc)
        rc = check_config(config, dir, err);
    if (!rc)
        rc = load_optional(&more, dir, "added_tokens.json", err);
    if (!rc)
        rc = check_more(vocab, more, dir, err);
    for (int i = 0; i < SPECIALS && !rc; i++)
        rc = add_special(added, config, vocab, i, dir, &name[i], err);
    if (!rc) {
        *root = assemble(config, json_incref(vocab), json_incref(added), name);
        rc = *root ? 0 : mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", path);
    }
    json_decref(config);
    json_decref(more);
    json_decref(vocab);
    json_decref(added);
    free(path);
    return rc;
}
