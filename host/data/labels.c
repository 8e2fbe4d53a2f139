// SPDX-License-Identifier: Apache-2.0
#include "data/labels.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/grow.h"
#include "common/str.h"
#include "model/config.h"
#include "text/utf8.h"

static int find(const struct mr_labels *l, const char *name, size_t size)
{
    for (int i = 0; i < l->count; i++)
        if (strlen(l->names[i]) == size && memcmp(l->names[i], name, size) == 0)
            return i;
    return -1;
}

static bool has_control(const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (iscntrl((unsigned char)name[i]))
            return true;
    return false;
}

int mr_labels_add(struct mr_labels *l, const char *name, size_t size, struct mr_error *err)
{
    if (size < 1 || size >= MR_LABEL || has_control(name, size) ||
        mr_utf8_valid_prefix((const unsigned char *)name, size) != size)
        return mr_fail(err, MR_ERR_FORMAT,
                       "label '%s' is not of 1 to %d bytes of UTF-8 without control characters",
                       mr_show_bytes(name, size).text, MR_LABEL - 1);
    if (find(l, name, size) >= 0)
        return mr_fail(err, MR_ERR_FORMAT, "label '%s' is there twice",
                       mr_show_bytes(name, size).text);
    if (l->count == MR_MAX_LABELS)
        return mr_fail(err, MR_ERR_FIT, "more than %d labels; is this a column of labels?",
                       MR_MAX_LABELS);
    int rc = mr_grow(&l->names, (size_t)l->count, 1, sizeof *l->names, err);
    if (rc < 0)
        return rc;
    memset(l->names[l->count], 0, MR_LABEL);
    memcpy(l->names[l->count++], name, size);
    return 0;
}

int mr_labels_list(struct mr_labels *l, const char *list, struct mr_error *err)
{
    int rc = 0;
    for (bool more = true; more && rc == 0;) {
        size_t n = strcspn(list, ",");
        rc = mr_labels_add(l, list, n, err);
        more = list[n] == ',';
        list += n + more;
    }
    l->closed = true;
    return rc;
}

// Of a label that no name is: its number, where it is one; else -1.
static int number_of(const struct mr_labels *l, const char *name, size_t size)
{
    int n = 0;
    bool number = size > 0 && size < 6 && (name[0] != '0' || size == 1);
    for (size_t i = 0; i < size && number; i++) {
        number = isdigit((unsigned char)name[i]);
        n = 10 * n + name[i] - '0';
    }
    return number && n < l->count ? n : -1;
}

// "negative, positive", and "..." behind the first few.
static void show(const struct mr_labels *l, char *to, size_t room)
{
    *to = 0;
    for (int i = 0; i < l->count && i < 8; i++)
        (void)snprintf(to + strlen(to), room - strlen(to), "%s%s", i ? ", " : "",
                       mr_show(l->names[i]).text);
    if (l->count > 8)
        (void)snprintf(to + strlen(to), room - strlen(to), ", ...");
}

int mr_labels_find(struct mr_labels *l, const char *name, size_t size, struct mr_error *err)
{
    char there[400];
    int i = find(l, name, size);
    i = i < 0 && l->closed ? number_of(l, name, size) : i;
    if (i >= 0)
        return i;
    if (l->closed) {
        show(l, there, sizeof there);
        return mr_fail(err, MR_ERR_FORMAT,
                       "label '%s' is none of the %d: %s; --labels names others",
                       mr_show_bytes(name, size).text, l->count, there);
    }
    int rc = mr_labels_add(l, name, size, err);
    return rc < 0 ? rc : l->count - 1;
}

// Whole numbers that are written in one way only, so that two names are never one number.
static bool is_number(const char *name)
{
    size_t n = strspn(name, "0123456789");
    return n > 0 && n < 10 && !name[n] && (name[0] != '0' || n == 1);
}

static bool before(const char *a, const char *b, bool numbers)
{
    return numbers ? strtol(a, NULL, 10) < strtol(b, NULL, 10) : strcmp(a, b) < 0;
}

void mr_labels_sort(struct mr_labels *l, int32_t *to)
{
    int32_t at[MR_MAX_LABELS]; // where the name that stands at i belongs
    char name[MR_LABEL];
    bool numbers = true;
    for (int i = 0; i < l->count; i++)
        numbers &= is_number(l->names[i]);
    for (int i = 0; i < l->count; i++) {
        to[i] = 0;
        for (int k = 0; k < l->count; k++)
            to[i] += before(l->names[k], l->names[i], numbers);
        at[i] = to[i];
    }
    for (int i = 0; i < l->count; i++)
        while (at[i] != i) {
            int k = at[i];
            memcpy(name, l->names[k], MR_LABEL);
            memcpy(l->names[k], l->names[i], MR_LABEL);
            memcpy(l->names[i], name, MR_LABEL);
            at[i] = at[k];
            at[k] = k;
        }
}

void mr_labels_free(struct mr_labels *l)
{
    free(l->names);
    *l = (struct mr_labels){0};
}
