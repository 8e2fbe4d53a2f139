// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/pooling.h"

#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/json.h"
#include "common/str.h"

// *value is NULL where there is no such file.
static int load(json_t **value, const char *dir, const char *name, struct mr_error *err)
{
    char *path = mr_path_join(dir, name, err);
    *value = NULL;
    int rc = !path ? MR_ERR_MEMORY : 0;
    if (rc == 0 && mr_file_exists(path)) {
        json_error_t problem;
        *value = json_load_file(path, JSON_REJECT_DUPLICATES, &problem);
        if (!*value)
            rc = mr_fail(err, MR_ERR_FORMAT, "%s: is no JSON: %s", path, problem.text);
    }
    free(path);
    return rc;
}

// The last word of "sentence_transformers.models.Pooling".
static const char *last_word(const char *type)
{
    const char *dot = strrchr(type, '.');
    return dot ? dot + 1 : type;
}

// Old files have a flag for each kind, new ones a word.
static int read_kind(const json_t *config, const char *dir, enum mr_pooling *pooling,
                     struct mr_error *err)
{
    const char *word = json_string_value(json_object_get(config, "pooling_mode"));
    const char *key, *found = word;
    json_t *value;
    json_object_foreach((json_t *)config, key, value)
    {
        if (strncmp(key, "pooling_mode_", 13) != 0 || !json_is_true(value))
            continue;
        if (found)
            return mr_fail(err, MR_ERR_UNSUPPORTED,
                           "%s: the configuration of its pooling has several kinds, \"%s\" and "
                           "\"%s\"",
                           dir, mr_show(found).text, mr_show(key + 13).text);
        found = key + 13;
    }
    bool cls = found && (strcmp(found, "cls_token") == 0 || strcmp(found, "cls") == 0);
    bool mean = found && (strcmp(found, "mean_tokens") == 0 || strcmp(found, "mean") == 0);
    if (!cls && !mean)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: pooling \"%s\" is not supported; cls and mean are", dir,
                       mr_show(found ? found : "").text);
    *pooling = cls ? MR_POOLING_CLS : MR_POOLING_MEAN;
    return 0;
}

static int read_pooling(const char *dir, const char *path, enum mr_pooling *pooling,
                        struct mr_error *err)
{
    json_t *config = NULL;
    if (strstr(path, "..") || path[0] == '/')
        return mr_fail(err, MR_ERR_FORMAT, "%s: modules.json: \"%s\" is not a folder in it", dir,
                       mr_show(path).text);
    char *folder = mr_path_join(dir, path, err);
    int rc = folder ? load(&config, folder, "config.json", err) : MR_ERR_MEMORY;
    if (rc == 0 && !json_is_object(config))
        rc = mr_fail(err, MR_ERR_FORMAT, "%s: has no object in config.json, for its pooling",
                     folder);
    if (rc == 0)
        rc = read_kind(config, dir, pooling, err);
    json_decref(config);
    free(folder);
    return rc;
}

static int read_modules(const json_t *modules, const char *dir, enum mr_pooling *pooling,
                        struct mr_error *err)
{
    int rc = 0;
    if (!json_is_array(modules))
        return mr_fail(err, MR_ERR_FORMAT, "%s: modules.json is %s where an array is expected", dir,
                       mr_json_kind(modules));
    for (size_t i = 0; i < json_array_size(modules) && rc == 0; i++) {
        const json_t *m = json_array_get(modules, i);
        const char *type = json_string_value(json_object_get(m, "type"));
        const char *path = json_string_value(json_object_get(m, "path"));
        const char *word = type ? last_word(type) : "";
        if (strcmp(word, "Pooling") == 0 && path)
            rc = read_pooling(dir, path, pooling, err);
        else if (strcmp(word, "Transformer") != 0 && strcmp(word, "Normalize") != 0)
            rc = mr_fail(err, MR_ERR_UNSUPPORTED,
                         "%s: module %zu of modules.json, \"%s\", is not supported; Transformer, "
                         "Pooling and Normalize are",
                         dir, i, mr_show(type ? type : "?").text);
    }
    return rc;
}

int mr_pooling_read(const char *dir, enum mr_pooling *pooling, int *max_tokens,
                    struct mr_error *err)
{
    json_t *modules = NULL, *limits = NULL;
    *pooling = MR_POOLING_MEAN;
    int rc = load(&modules, dir, "modules.json", err);
    if (rc == 0 && modules)
        rc = read_modules(modules, dir, pooling, err);
    if (rc == 0)
        rc = load(&limits, dir, "sentence_bert_config.json", err);
    const json_t *most = mr_json_given(limits, "max_seq_length");
    if (rc == 0 && most) {
        if (!json_is_integer(most) || json_integer_value(most) < 3 ||
            json_integer_value(most) > 1 << 20)
            rc = mr_fail(err, MR_ERR_FORMAT,
                         "%s: \"max_seq_length\" of sentence_bert_config.json is no number of "
                         "tokens",
                         dir);
        else
            *max_tokens = (int)json_integer_value(most);
    }
    json_decref(limits);
    json_decref(modules);
    return rc;
}
