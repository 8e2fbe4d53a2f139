// SPDX-License-Identifier: Apache-2.0
#include "common/buf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int mr_buf_reserve(struct mr_buf *buf, size_t extra, struct mr_error *err)
{
    if (extra <= buf->capacity - buf->size)
        return 0;
    if (extra > SIZE_MAX / 2 - buf->size)
        return mr_fail(err, MR_ERR_MEMORY, "buffer of %zu + %zu bytes is too large", buf->size,
                       extra);
    size_t need = buf->size + extra;
    size_t capacity = buf->capacity < 32 ? 64 : buf->capacity * 2;
    if (capacity < need)
        capacity = need;
    char *data = realloc(buf->data, capacity);
    if (!data)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory for a buffer of %zu bytes", capacity);
    buf->data = data;
    buf->capacity = capacity;
    return 0;
}

int mr_buf_append(struct mr_buf *buf, const void *data, size_t size, struct mr_error *err)
{
    if (size == 0)
        return 0;
    int rc = mr_buf_reserve(buf, size, err);
    if (rc)
        return rc;
    memcpy(buf->data + buf->size, data, size);
    buf->size += size;
    return 0;
}

void mr_buf_free(struct mr_buf *buf)
{
    free(buf->data);
    *buf = (struct mr_buf){0};
}
