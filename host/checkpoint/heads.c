// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/heads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"

const char *mr_name_behind(const char *name, const char *start, size_t optional)
{
    if (strncmp(name, start, strlen(start)) == 0)
        return name + strlen(start);
    start += optional;
    return strncmp(name, start, strlen(start)) == 0 ? name + strlen(start) : NULL;
}

bool mr_name_is(const struct mr_arch *arch, const char *name, const char *full)
{
    size_t prefix = strlen(arch->prefix);
    const char *rest =
        mr_name_behind(name, full, strncmp(full, arch->prefix, prefix) == 0 ? prefix : 0);
    return rest && *rest == 0;
}

const char *mr_name_today(const struct mr_arch *arch, const char *name, char today[MR_NAME])
{
    static const char gamma[] = ".gamma", beta[] = ".beta";
    size_t n = strlen(name), g = sizeof gamma - 1, b = sizeof beta - 1;
    (void)snprintf(today, MR_NAME, "%s", name);
    if (!arch->old_norms || n >= MR_NAME - sizeof ".weight")
        return n < MR_NAME ? today : name;
    if (n > g && strcmp(name + n - g, gamma) == 0)
        (void)snprintf(today + n - g, MR_NAME - (n - g), ".weight");
    else if (n > b && strcmp(name + n - b, beta) == 0)
        (void)snprintf(today + n - b, MR_NAME - (n - b), ".bias");
    return today;
}

int mr_head_find(const struct mr_arch *arch, const char *name)
{
    for (int i = 0; i < arch->n_heads; i++)
        if (mr_name_is(arch, name, arch->heads[i].name))
            return i;
    return -1;
}

int mr_tensors_equal(const struct mr_tensor *a, const struct mr_tensor *b, const char *dir,
                     struct mr_error *err)
{
    if (a->data == b->data && a->dtype == b->dtype && !a->strided && !b->strided)
        return 0;
    size_t n = a->rank > 1 ? (size_t)a->shape[1] : a->count, bytes = a->bytes / a->count * n;
    unsigned char *rows = malloc(2 * bytes);
    bool same = a->dtype == b->dtype;
    for (size_t at = 0; rows && same && at < a->count; at += n) {
        (void)mr_tensor_copy(a, at, n, rows); // in range
        (void)mr_tensor_copy(b, at, n, rows + bytes);
        same = memcmp(rows, rows + bytes, bytes) == 0;
    }
    free(rows);
    if (!rows)
        return mr_fail(err, MR_ERR_MEMORY, "%s: out of memory for a row", dir);
    return same ? 0
                : mr_fail(err, MR_ERR_UNSUPPORTED,
                          "%s: tensor %s differs from %s; a head of its own is not supported", dir,
                          mr_show(b->name).text, mr_show(a->name).text);
}

// What tensor i, which may be missing, is a copy of.
static const struct mr_tensor *original(const struct mr_arch *arch, int i,
                                        const struct mr_tensor **heads,
                                        const struct mr_tensor *words)
{
    int other = mr_head_find(arch, arch->heads[i].copy_of);
    return other >= 0 ? heads[other] : words;
}

int mr_heads_complete(struct mr_config *config, const struct mr_tensor **heads,
                      const struct mr_tensor *words, const char *dir, struct mr_error *err)
{
    const struct mr_arch *arch = config->arch;
    for (int i = 0; i < arch->n_heads; i++)
        if (heads[i])
            config->heads |= 1U << arch->heads[i].head;
    for (int i = 0; i < arch->n_heads; i++) {
        const struct mr_head_tensor *t = &arch->heads[i];
        if (!heads[i] && !t->copy_of && config->heads & 1U << t->head)
            return mr_fail(err, MR_ERR_FORMAT, "%s: tensor %s is missing", dir, t->name);
        if (heads[i] && t->copy_of) {
            int rc = mr_tensors_equal(original(arch, i, heads, words), heads[i], dir, err);
            if (rc)
                return rc;
        }
    }
    return 0;
}
