// SPDX-License-Identifier: Apache-2.0
// A tokenizer's files as one tokenizer.json, for the packed model.
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/json.h"
#include "text/tokenizer.h"
#include "text/tokenizer_load.h"
#include "text/wordpiece_list.h"

// The lines of merges.txt as strings; what they say is checked when the result is parsed.
static int list_merges(const char *path, json_t *list, struct mr_error *err)
{
    struct mr_file file;
    int rc = mr_file_map(&file, path, err);
    const char *text = (const char *)file.data;
    for (size_t at = 0; rc == 0 && at < file.size;) {
        const char *line = text + at, *end = memchr(line, '\n', file.size - at);
        size_t size = end ? (size_t)(end - line) : file.size - at;
        at += size + (end != NULL);
        if (size > 0 && line[size - 1] == '\r')
            size--;
        bool version = size >= 8 && memcmp(line, "#version", 8) == 0;
        if (version || (size == 0 && at == file.size))
            continue;
        if (json_array_append_new(list, json_stringn(line, size)) < 0)
            rc =
                mr_fail(err, MR_ERR_FORMAT, "%s: a line is not UTF-8, or memory has run out", path);
    }
    mr_file_unmap(&file);
    return rc;
}

// Takes the references that it is given.
static json_t *assemble(json_t *vocab, json_t *merges, json_t *added)
{
    return json_pack("{s:s, s:o, s:n, s:{s:s, s:b, s:b}, s:n, s:{s:s}, s:{s:s, s:o, s:o}}",
                     "version", "1.0", "added_tokens", added, "normalizer", "pre_tokenizer", "type",
                     "ByteLevel", "add_prefix_space", 0, "use_regex", 1, "post_processor",
                     "decoder", "type", "ByteLevel", "model", "type", "BPE", "vocab", vocab,
                     "merges", merges);
}

static int append_json(const json_t *root, const char *path, struct mr_buf *text,
                       struct mr_error *err)
{
    char *dump = root ? json_dumps(root, JSON_COMPACT) : NULL;
    int rc = dump ? mr_buf_append(text, dump, strlen(dump), err)
                  : mr_fail(err, MR_ERR_MEMORY, "%s: no memory for the tokenizer", path);
    free(dump);
    return rc;
}

static int from_two_files(const char *vocab_path, const char *merges_path, const char *added_path,
                          struct mr_buf *text, struct mr_error *err)
{
    json_t *vocab = NULL, *more = NULL, *merges = json_array(), *added = json_array();
    int rc = merges && added ? mr_json_load(&vocab, vocab_path, err)
                             : mr_fail(err, MR_ERR_MEMORY, "%s: no memory", vocab_path);
    if (rc == 0 && mr_file_exists(added_path))
        rc = mr_json_load(&more, added_path, err);
    if (rc == 0)
        rc = mr_tokenizer_list_added(vocab, more, added, vocab_path, err);
    if (rc == 0)
        rc = list_merges(merges_path, merges, err);
    if (rc == 0) {
        json_t *root = assemble(json_incref(vocab), json_incref(merges), json_incref(added));
        rc = append_json(root, vocab_path, text, err);
        json_decref(root);
    }
    json_decref(vocab);
    json_decref(more);
    json_decref(merges);
    json_decref(added);
    return rc;
}

int mr_tokenizer_text(const char *dir, struct mr_buf *text, struct mr_error *err)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json", "merges.txt",
                                        "added_tokens.json", "vocab.txt"};
    enum { NAMES = sizeof names / sizeof *names };
    char *path[NAMES];
    int rc = 0;
    for (int i = 0; i < NAMES; i++) {
        path[i] = mr_path_join(dir, names[i], err);
        rc = path[i] ? rc : MR_ERR_MEMORY;
    }
    if (rc == 0 && mr_file_exists(path[0])) {
        struct mr_file file;
        rc = mr_file_map(&file, path[0], err);
        if (rc == 0)
            rc = mr_buf_append(text, file.data, file.size, err);
        mr_file_unmap(&file);
    } else if (rc == 0 && !mr_file_exists(path[1]) && mr_file_exists(path[4])) {
        json_t *root;
        rc = mr_wordpiece_root(&root, dir, err);
        if (rc == 0) {
            rc = append_json(root, path[4], text, err);
            json_decref(root);
        }
    } else if (rc == 0) {
        rc = from_two_files(path[1], path[2], path[3], text, err);
    }
    for (int i = 0; i < NAMES; i++)
        free(path[i]);
    return rc;
}
