// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/torch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/torch_zip.h"
#include "common/str.h"

struct reader {
    const char *path;
    struct mr_error *err;
    struct mr_zip *zip;
};

// A member that has to be there and to be stored as it is.
static int find(const struct reader *r, const char *name, const struct mr_zip_member **m)
{
    *m = mr_zip_find(r->zip, name);
    if (!*m)
        return mr_fail(r->err, MR_ERR_FORMAT, "%s: has no member %s; torch.save did not write it",
                       r->path, name);
    if ((*m)->compressed)
        return mr_fail(r->err, MR_ERR_UNSUPPORTED,
                       "%s: member %s is compressed, which torch.save does not do; unpack the "
                       "archive and pack it again with 'zip -0 -r'",
                       r->path, name);
    return 0;
}

// What stands in the way of reading the archive at all.
static int check_kind(const struct reader *r)
{
    if (mr_zip_find(r->zip, "constants.pkl"))
        return mr_fail(r->err, MR_ERR_UNSUPPORTED,
                       "%s: is a TorchScript program; in Python, save its state_dict() instead",
                       r->path);
    const struct mr_zip_member *order = mr_zip_find(r->zip, "byteorder");
    if (!order)
        return 0; // before torch 2.1: little endian, as nearly all machines
    int rc = find(r, "byteorder", &order);
    if (!rc && !(order->size == 6 && memcmp(order->data, "little", 6) == 0))
        rc = mr_fail(r->err, MR_ERR_UNSUPPORTED,
                     "%s: its byte order is \"%s\"; load and save it on a little-endian machine",
                     r->path, mr_show_bytes(order->data, order->size).text);
    return rc;
}

static int check_version(const struct reader *r)
{
    const struct mr_zip_member *m;
    int rc = find(r, "version", &m);
    if (rc)
        return rc;
    char text[8] = {0};
    memcpy(text, m->data, m->size < sizeof text - 1 ? m->size : sizeof text - 1);
    char *end;
    long version = strtol(text, &end, 10);
    if (end == text || version < 1 || version > 10)
        return mr_fail(r->err, MR_ERR_UNSUPPORTED,
                       "%s: has version \"%s\" of PyTorch's file format; 1 to 10 are read", r->path,
                       mr_show_bytes(text, strcspn(text, "\n")).text);
    return 0;
}

static bool is_contiguous(const struct mr_pickle_tensor *p)
{
    int64_t expected = 1;
    for (int i = p->rank - 1; i >= 0; i--) {
        if (p->shape[i] != 1 && p->stride[i] != expected)
            return false;
        expected *= p->shape[i]; // the product of the shape was checked
    }
    return true;
}

static int make_view(const struct reader *r, struct mr_tensor *t, const struct mr_pickle_tensor *p)
{
    char name[64];
    const struct mr_zip_member *m;
    (void)snprintf(name, sizeof name, "data/%s", p->storage);
    int rc = find(r, name, &m);
    if (rc)
        return rc;
    if (m->size != p->storage_bytes)
        return mr_fail(r->err, MR_ERR_FORMAT,
                       "%s: tensor %s: its storage %s has %zu bytes where %llu are expected",
                       r->path, mr_show(p->name).text, name, m->size,
                       (unsigned long long)p->storage_bytes);
    *t = (struct mr_tensor){.name = p->name,
                            .dtype = p->dtype,
                            .rank = p->rank,
                            .count = p->count,
                            .strided = p->count > 0 && !is_contiguous(p),
                            .data = m->data,
                            .bytes = p->count * p->element_bytes};
    memcpy(t->shape, p->shape, sizeof t->shape);
    memcpy(t->stride, p->stride, sizeof t->stride);
    if (p->count > 0) // an empty tensor's offset may be anything
        t->data += p->offset * p->element_bytes;
    return 0;
}

static int make_views(const struct reader *r, struct mr_tensors *list, const struct mr_pickle *p)
{
    list->at = calloc(p->count ? p->count : 1, sizeof *list->at);
    if (!list->at)
        return mr_fail(r->err, MR_ERR_MEMORY, "%s: out of memory for %zu tensors", r->path,
                       p->count);
    for (size_t i = 0; i < p->count; i++) {
        int rc = make_view(r, &list->at[i], &p->tensors[i]);
        if (rc)
            return rc;
    }
    list->count = p->count;
    return mr_tensors_sort(list, r->path, r->err);
}

static int read_archive(const struct reader *r, struct mr_tensors *list, struct mr_pickle *p)
{
    const struct mr_zip_member *pickle = NULL;
    int rc = check_kind(r);
    if (!rc)
        rc = find(r, "data.pkl", &pickle);
    if (!rc)
        rc = check_version(r);
    if (!rc)
        rc = mr_pickle_read(p, pickle->data, pickle->size, r->path, r->err);
    return rc ? rc : make_views(r, list, p);
}

int mr_torch_read(struct mr_tensors *list, struct mr_pickle *pickle, const struct mr_file *file,
                  const char *path, struct mr_error *err)
{
    struct reader r = {.path = path, .err = err};
    if (file->size < 4 || memcmp(file->data, "PK\3\4", 4) != 0)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: is no PyTorch file (a zip archive, as torch.save writes it since 1.6)",
                       path);
    int rc = mr_zip_open(&r.zip, file, path, err);
    if (!rc)
        rc = read_archive(&r, list, pickle);
    mr_zip_close(r.zip);
    return rc;
}
