// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/json.h"
#include "common/str.h"
#include "model/arch.h"

#define CORRECT          "compare the file with the one that the model came with"
#define EXPECTED_BOOLEAN "%s: \"%s\" is %s where true or false is expected; " CORRECT

// Reads integer `key`, which is there, into *out.
static int read_int(const json_t *config, const char *path, const char *key, int low, int high,
                    int *out, struct mr_error *err)
{
    const json_t *value = json_object_get(config, key);
    if (!json_is_integer(value))
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"%s\" is %s where an integer is expected; " CORRECT, path, key,
                       mr_json_kind(value));
    json_int_t number = json_integer_value(value);
    if (number < low || number > high)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"%s\" is %" JSON_INTEGER_FORMAT
                       ", outside the supported %d to %d; " CORRECT,
                       path, key, number, low, high);
    *out = (int)number;
    return 0;
}

// A token id; null means that there is none (-1).
static int read_token_id(const json_t *config, const char *path, const char *key, int vocab_size,
                         int missing, int *out, struct mr_error *err)
{
    if (json_is_null(json_object_get(config, key))) {
        *out = -1;
        return 0;
    }
    if (!json_object_get(config, key)) {
        *out = missing;
        return 0;
    }
    int rc = read_int(config, path, key, 0, INT32_MAX, out, err);
    if (rc == 0 && *out >= vocab_size)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"%s\" is %d, outside the vocabulary of %d; correct it, or set it to "
                       "null if the model has no such token",
                       path, key, *out, vocab_size);
    return rc;
}

bool mr_config_is_eos(const struct mr_config *c, int id)
{
    bool is = id >= 0 && id == c->eos_token_id;
    for (int i = 0; i < c->n_more_eos; i++)
        is |= id == c->more_eos_ids[i];
    return is;
}

// One id, null, or a list of ids: an empty one is as good as null.
static int read_eos(const json_t *config, const char *path, struct mr_config *c,
                    struct mr_error *err)
{
    const json_t *list = json_object_get(config, "eos_token_id");
    size_t n = json_array_size(list);
    if (!json_is_array(list))
        return read_token_id(config, path, "eos_token_id", c->vocab_size, c->arch->eos,
                             &c->eos_token_id, err);
    if (n > MR_MAX_EOS)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: \"eos_token_id\" lists %zu ids, more than %d; leave out those that the "
                       "model never writes",
                       path, n, MR_MAX_EOS);
    c->eos_token_id = -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) >= c->vocab_size)
            return mr_fail(err, MR_ERR_FORMAT,
                           "%s: entry %zu of \"eos_token_id\" is %s; expected a token id from 0 to "
                           "%d; " CORRECT,
                           path, i,
                           json_is_integer(id) ? "outside the vocabulary" : mr_json_kind(id),
                           c->vocab_size - 1);
        *(i == 0 ? &c->eos_token_id : &c->more_eos_ids[c->n_more_eos++]) =
            (int)json_integer_value(id);
    }
    return 0;
}

// "\"gptj\" (GPT-J), ..."
static struct mr_shown known_architectures(void)
{
    struct mr_shown list = {0};
    const struct mr_arch *arch;
    size_t n = 0;
    for (int i = 0; (arch = mr_arch_at(i)) && n < sizeof list.text; i++)
        n += (size_t)snprintf(list.text + n, sizeof list.text - n, "%s\"%s\" (%s)", i ? ", " : "",
                              arch->type, arch->title);
    return list;
}

static int read_flag(struct mr_config *c, const json_t *json, const char *path,
                     const struct mr_config_flag *flag, struct mr_error *err)
{
    const json_t *value = json_object_get(json, flag->key);
    if (value && !json_is_boolean(value))
        return mr_fail(err, MR_ERR_FORMAT, EXPECTED_BOOLEAN, path, flag->key, mr_json_kind(value));
    *(bool *)(void *)((char *)c + flag->at) = json_is_true(value);
    return 0;
}

static int find_architecture(const json_t *config, const char *path, const struct mr_arch **arch,
                             struct mr_error *err)
{
    const json_t *type = json_object_get(config, "model_type");
    if (!json_is_string(type))
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"model_type\" is %s; expected one of %s, as in a Hugging Face "
                       "config.json",
                       path, mr_json_kind(type), known_architectures().text);
    *arch = mr_arch_find(json_string_value(type));
    if (!*arch)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: architecture \"%s\" is not supported; this version runs %s only", path,
                       mr_show(json_string_value(type)).text, known_architectures().text);
    return 0;
}

static int read_string(struct mr_config *c, const char *value, const char *path,
                       const struct mr_config_setting *s, struct mr_error *err)
{
    unsigned function = s->function ? mr_function_named(value) : MR_FUNCTION_NONE;
    if (s->function && function == MR_FUNCTION_NONE)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: %s \"%s\" is not supported; \"gelu_new\", \"gelu\" and \"relu\" are",
                       path, s->message, mr_show(value).text);
    if (s->function)
        mr_config_set_function(c, function);
    else if (strcmp(value, s->only) != 0)
        return mr_fail(err, MR_ERR_UNSUPPORTED, "%s: %s \"%s\" is not supported; only \"%s\" is",
                       path, s->message, mr_show(value).text, s->only);
    return 0;
}

static int read_setting(struct mr_config *c, const json_t *config, const char *path,
                        const struct mr_config_setting *s, struct mr_error *err)
{
    const json_t *value = json_object_get(config, s->key);
    bool string = s->function || s->only;
    if (!value)
        return 0;
    if (string && !json_is_string(value))
        return mr_fail(err, MR_ERR_FORMAT, "%s: \"%s\" is %s where a string is expected; " CORRECT,
                       path, s->key, mr_json_kind(value));
    if (!string && !json_is_boolean(value))
        return mr_fail(err, MR_ERR_FORMAT, EXPECTED_BOOLEAN, path, s->key, mr_json_kind(value));
    if (string)
        return read_string(c, json_string_value(value), path, s, err);
    return json_is_true(value) == s->must
               ? 0
               : mr_fail(err, MR_ERR_UNSUPPORTED, "%s: %s", path, s->message);
}

// GPTQ, AWQ, bitsandbytes: what is stored is no longer the model's weights.
static int check_quantisation(const json_t *config, const char *path, struct mr_error *err)
{
    const json_t *q = mr_json_given(config, "quantization_config");
    const json_t *method = json_object_get(q, "quant_method");
    if (!q)
        return 0;
    return mr_fail(err, MR_ERR_UNSUPPORTED,
                   "%s: the checkpoint is quantised already (%s); pack the original it was made "
                   "from",
                   path,
                   json_is_string(method) ? mr_show(json_string_value(method)).text
                                          : "\"quantization_config\"");
}

static int read_epsilon(const json_t *config, const char *path, const struct mr_arch *arch,
                        float *out, struct mr_error *err)
{
    const char *key = arch->epsilon;
    const json_t *value = json_object_get(config, key);
    if (!value) {
        *out = arch->epsilon_missing > 0 ? arch->epsilon_missing : 1e-5F;
        return 0;
    }
    if (!json_is_number(value))
        return mr_fail(err, MR_ERR_FORMAT, "%s: \"%s\" is %s where a number is expected; " CORRECT,
                       path, key, mr_json_kind(value));
    double number = json_number_value(value);
    // Below the smallest normal fp32 number the device would read it as zero.
    if (!(number >= 1.17549435e-38 && number < 1.0))
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"%s\" is %g; expected a small positive number; " CORRECT, path, key,
                       number);
    *out = (float)number;
    return 0;
}

static int read_key(struct mr_config *c, const json_t *json, const char *path,
                    const struct mr_config_key *k, struct mr_error *err)
{
    const json_t *value = json_object_get(json, k->key);
    int *out = (int *)(void *)((char *)c + k->at);
    if (k->missing == MR_FOUR_EMBD && (!value || json_is_null(value)))
        *out = 4 * c->n_embd;
    else if (value)
        return read_int(json, path, k->key, 1, k->high, out, err);
    else if (k->missing == MR_REQUIRED)
        return mr_fail(err, MR_ERR_FORMAT, "%s: has no \"%s\"; is this a %s model?", path, k->key,
                       c->arch->title);
    else
        *out = k->missing;
    return 0;
}

static int check_heads(struct mr_config *c, const char *path, struct mr_error *err)
{
    if (c->n_embd % c->n_head != 0)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"%s\" (%d) is not a multiple of \"%s\" (%d); " CORRECT, path,
                       mr_arch_key(c->arch, MR_KEY(n_embd)), c->n_embd,
                       mr_arch_key(c->arch, MR_KEY(n_head)), c->n_head);
    c->head_dim = c->n_embd / c->n_head;
    if (c->rotary_dim % 2 != 0 || c->rotary_dim > c->head_dim)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"%s\" is %d; expected an even number from 2 to the head's width, "
                       "%d; " CORRECT,
                       path, mr_arch_key(c->arch, MR_KEY(rotary_dim)), c->rotary_dim, c->head_dim);
    return 0;
}

// The first of "architectures": which heads there must be. A checkpoint without the key has those
// whose tensors are there.
static int read_class(struct mr_config *c, const json_t *json, const char *path,
                      struct mr_error *err)
{
    const json_t *list = mr_json_given(json, "architectures");
    const char *name = json_string_value(json_array_get(list, 0));
    if (!list)
        return 0;
    if (!name)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"architectures\" is %s where a list with a name is expected; " CORRECT,
                       path, mr_json_kind(list));
    for (int i = 0; i < c->arch->n_classes; i++)
        if (strcmp(c->arch->classes[i].name, name) == 0) {
            c->heads = c->arch->classes[i].heads;
            c->by_token = c->arch->classes[i].by_token;
            return 0;
        }
    return mr_fail(err, MR_ERR_UNSUPPORTED, "%s: a \"%s\" is not supported; \"%s\" to \"%s\" are",
                   path, mr_show(name).text, c->arch->classes[0].name,
                   c->arch->classes[c->arch->n_classes - 1].name);
}

// How many labels a classifier has: the names of "id2label", or "num_labels", or two.
static int read_labels(struct mr_config *c, const json_t *json, const char *path,
                       struct mr_error *err)
{
    const json_t *names = mr_json_given(json, "id2label");
    const json_t *kind = json_object_get(json, "problem_type");
    c->n_labels = 2;
    if (names && !json_is_object(names))
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"id2label\" is %s where an object is expected; " CORRECT, path,
                       mr_json_kind(names));
    if (json_object_size(names) > MR_MAX_LABELS)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"id2label\" has %zu labels; at most %d are supported", path,
                       json_object_size(names), MR_MAX_LABELS);
    c->independent =
        json_is_string(kind) && strcmp(json_string_value(kind), "multi_label_classification") == 0;
    if (json_object_size(names) > 0)
        c->n_labels = (int)json_object_size(names);
    else if (json_object_get(json, "num_labels"))
        return read_int(json, path, "num_labels", 1, MR_MAX_LABELS, &c->n_labels, err);
    return 0;
}

static int parse(struct mr_config *c, const json_t *json, const char *path, struct mr_error *err)
{
    const struct mr_arch *arch = NULL;
    int rc = find_architecture(json, path, &arch, err);
    if (rc)
        return rc;
    c->arch = arch;
    for (int i = 0; !rc && i < arch->n_settings; i++)
        rc = read_setting(c, json, path, &arch->settings[i], err);
    if (!rc)
        rc = check_quantisation(json, path, err);
    for (int i = 0; !rc && i < arch->n_keys; i++)
        rc = read_key(c, json, path, &arch->keys[i], err);
    for (int i = 0; !rc && i < arch->n_flags; i++)
        rc = read_flag(c, json, path, &arch->flags[i], err);
    if (!rc)
        rc = check_heads(c, path, err);
    if (!rc)
        rc = read_epsilon(json, path, arch, &c->layer_norm_epsilon, err);
    if (!rc)
        rc = read_token_id(json, path, "bos_token_id", c->vocab_size, arch->bos, &c->bos_token_id,
                           err);
    if (!rc)
        rc = read_eos(json, path, c, err);
    if (!rc && arch->encoder)
        rc = read_class(c, json, path, err);
    if (!rc && arch->encoder)
        rc = read_labels(c, json, path, err);
    return rc;
}

static int refuse_kind(const struct mr_config *c, const char *where, struct mr_error *err)
{
    const char *title = c->arch->title;
    return c->arch->encoder
               ? mr_fail(err, MR_ERR_UNSUPPORTED,
                         "%s: %s reads texts and writes none; \"embed\", \"fill-mask\" and "
                         "\"classify\" run it",
                         where, title)
               : mr_fail(err, MR_ERR_UNSUPPORTED,
                         "%s: %s writes text; \"embed\", \"fill-mask\" and \"classify\" take "
                         "encoders, such as BERT",
                         where, title);
}

int mr_config_parse(struct mr_config *config, const void *text, size_t size, enum mr_wanted wanted,
                    const char *where, struct mr_error *err)
{
    *config = (struct mr_config){0};
    json_t *json;
    int rc = mr_json_parse(&json, text, size, where, err);
    if (rc)
        return rc;
    rc = parse(config, json, where, err);
    json_decref(json);
    bool other = !rc && wanted != MR_EITHER && config->arch->encoder != (wanted == MR_ENCODER);
    return other ? refuse_kind(config, where, err) : rc;
}

int mr_config_load(struct mr_config *config, const char *path, enum mr_wanted wanted,
                   struct mr_error *err)
{
    *config = (struct mr_config){0};
    struct mr_file file;
    int rc = mr_file_map(&file, path, err);
    if (rc)
        return rc;
    rc = mr_config_parse(config, file.data, file.size, wanted, path, err);
    mr_file_unmap(&file);
    return rc;
}

int mr_config_load_from(struct mr_config *config, const char *dir, struct mr_error *err)
{
    *config = (struct mr_config){0};
    char *path = mr_path_join(dir, "config.json", err);
    if (!path)
        return MR_ERR_MEMORY;
    int rc = mr_config_load(config, path, MR_EITHER, err);
    free(path);
    return rc;
}

// ---- dropout -----------------------------------------------------------------------------------

static int list_dropout(const json_t *json, const char *path, char text[MR_DROPOUT_TEXT],
                        struct mr_error *err)
{
    const struct mr_arch *arch = NULL;
    int rc = find_architecture(json, path, &arch, err);
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; rc == 0 && i < arch->n_dropout; i++) {
        const json_t *value = mr_json_given(json, arch->dropout[i].key);
        double rate = value ? json_number_value(value) : arch->dropout[i].missing;
        if (value && !json_is_number(value))
            rc =
                mr_fail(err, MR_ERR_FORMAT, "%s: \"%s\" is %s where a number is expected; " CORRECT,
                        path, arch->dropout[i].key, mr_json_kind(value));
        else if (rate != 0 && n < MR_DROPOUT_TEXT)
            n += (size_t)snprintf(text + n, MR_DROPOUT_TEXT - n, "%s%s %g", n ? ", " : "",
                                  arch->dropout[i].key, rate);
    }
    return rc;
}

int mr_config_dropout(const char *dir, char text[MR_DROPOUT_TEXT], struct mr_error *err)
{
    struct mr_file file = {0};
    json_t *json = NULL;
    char *path = mr_path_join(dir, "config.json", err);
    int rc = path ? mr_file_map(&file, path, err) : MR_ERR_MEMORY;
    if (rc == 0)
        rc = mr_json_parse(&json, file.data, file.size, path, err);
    if (rc == 0)
        rc = list_dropout(json, path, text, err);
    json_decref(json);
    mr_file_unmap(&file);
    free(path);
    return rc;
}
