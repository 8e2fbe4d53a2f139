// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors_write.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mr_safetensors_begin(struct mr_safetensors_header *h)
{
    *h = (struct mr_safetensors_header){.json =
                                            json_pack("{s:{s:s}}", "__metadata__", "format", "pt")};
    h->bad = !h->json;
}

void mr_safetensors_add(struct mr_safetensors_header *h, const char *name, const char *dtype,
                        int rows, int cols, size_t bytes)
{
    json_t *shape = cols ? json_pack("[i, i]", rows, cols) : json_pack("[i]", rows);
    json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape,
                              "data_offsets", (json_int_t)h->at, (json_int_t)(h->at + bytes));
    h->at += bytes;
    h->bad |= json_object_set_new(h->json, name, entry) != 0;
}

char *mr_safetensors_end(struct mr_safetensors_header *h, size_t *size)
{
    char *text = h->bad ? NULL : json_dumps(h->json, JSON_COMPACT), *out = NULL;
    uint64_t n = text ? strlen(text) : 0, padded = (n + 7) / 8 * 8;
    json_decref(h->json);
    *h = (struct mr_safetensors_header){0};
    if (text)
        out = malloc(sizeof padded + padded);
    if (out) {
        memcpy(out, &padded, sizeof padded);
        memcpy(out + sizeof padded, text, n);
        memset(out + sizeof padded + n, ' ', padded - n);
    }
    free(text);
    *size = sizeof padded + padded;
    return out;
}

// `text` with `values`, which it takes over, and without `drop`.
static int config_with(char **out, const char *text, size_t size, json_t *values, const char *drop,
                       const char *where, struct mr_error *err)
{
    json_t *root = NULL;
    char *made = NULL;
    *out = NULL;
    int rc = mr_json_parse(&root, text, size, where, err);
    if (rc < 0) {
        json_decref(values);
        return rc;
    }
    (void)json_object_del(root, drop);
    if (values && json_object_update(root, values) == 0)
        made = json_dumps(root, JSON_INDENT(2));
    json_decref(values);
    size_t n = made ? strlen(made) : 0;
    *out = made ? malloc(n + 2) : NULL;
    if (*out) {
        memcpy(*out, made, n);
        memcpy(*out + n, "\n", 2);
    }
    free(made);
    json_decref(root);
    return *out ? 0 : mr_fail(err, MR_ERR_MEMORY, "%s: no memory for the configuration", where);
}

int mr_config_with_dtype(char **out, const char *text, size_t size, const char *dtype,
                         const char *where, struct mr_error *err)
{
    // torch_dtype: its name before transformers 5
    return config_with(out, text, size, json_pack("{s:s}", "dtype", dtype), "torch_dtype", where,
                       err);
}

int mr_config_as_trained(char **out, const char *text, size_t size, const char *dtype,
                         const struct mr_arch *arch, const char *where, struct mr_error *err)
{
    json_t *values = json_pack("{s:s}", "dtype", dtype);
    for (int i = 0; values && i < arch->n_dropout; i++)
        if (json_object_set_new(values, arch->dropout[i].key, json_real(0)) != 0) {
            json_decref(values);
            values = NULL;
        }
    return config_with(out, text, size, values, "torch_dtype", where, err);
}

int mr_config_with_integer(char **out, const char *text, size_t size, const char *key, int value,
                           const char *where, struct mr_error *err)
{
    return config_with(out, text, size, json_pack("{s:i}", key, value), "", where, err);
}

int mr_config_with_labels(char **out, const char *text, size_t size, const char *const *labels,
                          int count, const char *where, struct mr_error *err)
{
    json_t *names = json_object(), *ids = json_object();
    bool good = names && ids;
    for (int i = 0; i < count && good; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%d", i);
        good = json_object_set_new(names, id, json_string(labels[i])) == 0 &&
               json_object_set_new(ids, labels[i], json_integer(i)) == 0;
    }
    json_t *values =
        good ? json_pack("{s:[s], s:s, s:O, s:O}", "architectures", "BertForSequenceClassification",
                         "problem_type", "single_label_classification", "id2label", names,
                         "label2id", ids)
             : NULL;
    json_decref(names);
    json_decref(ids);
    return config_with(out, text, size, values, "num_labels", where, err);
}
