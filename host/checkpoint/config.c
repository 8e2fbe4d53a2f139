// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/config.h"

#include <stdint.h>
#include <string.h>

#include "common/file.h"
#include "common/json.h"
#include "common/str.h"

#define REQUIRED (-1)
#define CORRECT  "compare the file with the one that the model came with"

// Reads integer `key` into *out; a missing key takes `missing`, unless that is REQUIRED.
static int read_int(const json_t *config, const char *path, const char *key, int low, int high,
                    int missing, int *out, struct mr_error *err)
{
    const json_t *value = json_object_get(config, key);
    if (!value && missing != REQUIRED) {
        *out = missing;
        return 0;
    }
    if (!value)
        return mr_fail(err, MR_ERR_FORMAT, "%s: has no \"%s\"; is this a GPT-J model?", path, key);
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

// A token id: missing takes GPTJConfig's default, null means that there is none (-1).
static int read_token_id(const json_t *config, const char *path, const char *key, int vocab_size,
                         int *out, struct mr_error *err)
{
    if (json_is_null(json_object_get(config, key))) {
        *out = -1;
        return 0;
    }
    if (!json_object_get(config, key)) {
        *out = 50256; // in GPT-J's vocabulary; in a smaller one it names no token, and never comes
        return 0;
    }
    int rc = read_int(config, path, key, 0, INT32_MAX, REQUIRED, out, err);
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
        return read_token_id(config, path, "eos_token_id", c->vocab_size, &c->eos_token_id, err);
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

static int check_architecture(const json_t *config, const char *path, struct mr_error *err)
{
    const json_t *type = json_object_get(config, "model_type");
    if (!json_is_string(type))
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"model_type\" is %s; expected \"gptj\", as in a Hugging Face "
                       "config.json",
                       path, mr_json_kind(type));
    if (strcmp(json_string_value(type), "gptj") != 0)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: architecture \"%s\" is not supported; this version runs \"gptj\" "
                       "(GPT-J) only",
                       path, mr_show(json_string_value(type)).text);

    const json_t *activation = json_object_get(config, "activation_function");
    if (activation && !json_is_string(activation))
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"activation_function\" is %s where a string is expected; " CORRECT,
                       path, mr_json_kind(activation));
    if (activation && strcmp(json_string_value(activation), "gelu_new") != 0)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: activation function \"%s\" is not supported; only \"gelu_new\" is",
                       path, mr_show(json_string_value(activation)).text);

    const json_t *tied = json_object_get(config, "tie_word_embeddings");
    if (tied && !json_is_boolean(tied))
        return mr_fail(
            err, MR_ERR_FORMAT,
            "%s: \"tie_word_embeddings\" is %s where true or false is expected; " CORRECT, path,
            mr_json_kind(tied));
    if (json_is_true(tied))
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: tied embeddings (\"tie_word_embeddings\": true) are not supported; "
                       "GPT-J has a separate lm_head",
                       path);
    return 0;
}

// GPTQ, AWQ, bitsandbytes: what is stored is no longer the model's weights.
static int check_quantisation(const json_t *config, const char *path, struct mr_error *err)
{
    const json_t *q = json_object_get(config, "quantization_config");
    const json_t *method = json_object_get(q, "quant_method");
    if (!q || json_is_null(q))
        return 0;
    return mr_fail(err, MR_ERR_UNSUPPORTED,
                   "%s: the checkpoint is quantised already (%s); pack the original it was made "
                   "from",
                   path,
                   json_is_string(method) ? mr_show(json_string_value(method)).text
                                          : "\"quantization_config\"");
}

static int read_epsilon(const json_t *config, const char *path, float *out, struct mr_error *err)
{
    const json_t *value = json_object_get(config, "layer_norm_epsilon");
    if (!value) {
        *out = 1e-5F;
        return 0;
    }
    if (!json_is_number(value))
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"layer_norm_epsilon\" is %s where a number is expected; " CORRECT,
                       path, mr_json_kind(value));
    double number = json_number_value(value);
    // Below the smallest normal fp32 number the device would read it as zero.
    if (!(number >= 1.17549435e-38 && number < 1.0))
        return mr_fail(
            err, MR_ERR_FORMAT,
            "%s: \"layer_norm_epsilon\" is %g; expected a small positive number; " CORRECT, path,
            number);
    *out = (float)number;
    return 0;
}

static int parse(struct mr_config *c, const json_t *json, const char *path, struct mr_error *err)
{
    const struct {
        const char *key;
        int high;
        int missing;
        int *out;
    } sizes[] = {
        {"vocab_size", MR_MAX_VOCAB, REQUIRED, &c->vocab_size},
        {"n_embd", MR_MAX_EMBD, REQUIRED, &c->n_embd},
        {"n_layer", MR_MAX_LAYER, REQUIRED, &c->n_layer},
        {"n_head", MR_MAX_HEAD, REQUIRED, &c->n_head},
        {"n_positions", MR_MAX_POSITIONS, 2048, &c->n_positions},
        {"rotary_dim", MR_MAX_EMBD, 64, &c->rotary_dim},
    };

    int rc = check_architecture(json, path, err);
    if (!rc)
        rc = check_quantisation(json, path, err);
    for (size_t i = 0; !rc && i < sizeof sizes / sizeof sizes[0]; i++)
        rc = read_int(json, path, sizes[i].key, 1, sizes[i].high, sizes[i].missing, sizes[i].out,
                      err);
    if (rc)
        return rc;

    if (c->n_embd % c->n_head != 0)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"n_embd\" (%d) is not a multiple of \"n_head\" "
                       "(%d); " CORRECT,
                       path, c->n_embd, c->n_head);
    c->head_dim = c->n_embd / c->n_head;
    if (c->rotary_dim % 2 != 0 || c->rotary_dim > c->head_dim)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: \"rotary_dim\" is %d; expected an even number from 2 to the head's "
                       "width, %d; " CORRECT,
                       path, c->rotary_dim, c->head_dim);

    if (json_is_null(json_object_get(json, "n_inner")))
        c->n_inner = 4 * c->n_embd;
    else
        rc = read_int(json, path, "n_inner", 1, MR_MAX_INNER, 4 * c->n_embd, &c->n_inner, err);
    if (!rc)
        rc = read_epsilon(json, path, &c->layer_norm_epsilon, err);
    if (!rc)
        rc = read_token_id(json, path, "bos_token_id", c->vocab_size, &c->bos_token_id, err);
    if (!rc)
        rc = read_eos(json, path, c, err);
    return rc;
}

int mr_config_parse(struct mr_config *config, const void *text, size_t size, const char *where,
                    struct mr_error *err)
{
    *config = (struct mr_config){0};
    json_t *json;
    int rc = mr_json_parse(&json, text, size, where, err);
    if (rc)
        return rc;
    rc = parse(config, json, where, err);
    json_decref(json);
    return rc;
}

int mr_config_load(struct mr_config *config, const char *path, struct mr_error *err)
{
    *config = (struct mr_config){0};
    struct mr_file file;
    int rc = mr_file_map(&file, path, err);
    if (rc)
        return rc;
    rc = mr_config_parse(config, file.data, file.size, path, err);
    mr_file_unmap(&file);
    return rc;
}
