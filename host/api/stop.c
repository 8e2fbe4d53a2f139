// SPDX-License-Identifier: Apache-2.0
#include "api/stop.h"

#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

int mr_stop_open(struct mr_stop *stop, const char *const *strings, int count, struct mr_error *err)
{
    *stop = (struct mr_stop){0};
    if (count <= 0)
        return 0;
    stop->strings = calloc((size_t)count, sizeof *stop->strings);
    stop->sizes = calloc((size_t)count, sizeof *stop->sizes);
    int rc = stop->strings && stop->sizes ? 0 : MR_ERR_MEMORY;
    for (; rc == 0 && stop->count < count; stop->count++) {
        const char *s = strings[stop->count];
        size_t size = strlen(s);
        if (size == 0 || mr_utf8_valid_prefix((const unsigned char *)s, size) != size) {
            mr_stop_close(stop);
            return mr_fail(err, MR_ERR_USAGE, "a stop string is empty or not UTF-8");
        }
        stop->sizes[stop->count] = size;
        stop->strings[stop->count] = strdup(s);
        rc = stop->strings[stop->count] ? 0 : MR_ERR_MEMORY;
    }
    if (rc < 0) {
        mr_stop_close(stop);
        mr_fail(err, rc, "no memory for %d stop strings", count);
    }
    return rc;
}

void mr_stop_close(struct mr_stop *stop)
{
    for (int i = 0; i < stop->count; i++)
        free(stop->strings[i]);
    free(stop->strings);
    free(stop->sizes);
    mr_buf_free(&stop->held);
    *stop = (struct mr_stop){0};
}

// Where the first stop string begins, or where the text ends that may be the beginning of one.
static size_t boundary(const struct mr_stop *stop, bool last, bool *stopped)
{
    const char *text = stop->held.data;
    size_t n = stop->held.size, at = n;
    *stopped = false;
    for (size_t i = 0; i < n && !*stopped; i++)
        for (int k = 0; k < stop->count && !*stopped; k++) {
            size_t left = n - i, size = stop->sizes[k];
            if (left >= size && memcmp(text + i, stop->strings[k], size) == 0) {
                at = i;
                *stopped = true;
            } else if (!last && at == n && left < size &&
                       memcmp(text + i, stop->strings[k], left) == 0) {
                at = i;
            }
        }
    return at;
}

int mr_stop_push(struct mr_stop *stop, const char *piece, size_t size, bool last,
                 struct mr_buf *text, bool *stopped, struct mr_error *err)
{
    *stopped = false;
    if (stop->count == 0)
        return mr_buf_append(text, piece, size, err);
    int rc = mr_buf_append(&stop->held, piece, size, err);
    if (rc < 0)
        return rc;
    size_t passes = boundary(stop, last, stopped);
    rc = mr_buf_append(text, stop->held.data, passes, err);
    if (rc < 0)
        return rc;
    stop->held.size = *stopped ? 0 : stop->held.size - passes;
    if (stop->held.size > 0)
        memmove(stop->held.data, stop->held.data + passes, stop->held.size);
    return 0;
}
