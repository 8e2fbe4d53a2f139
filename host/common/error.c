// SPDX-License-Identifier: Apache-2.0
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int mr_fail(struct mr_error *err, int status, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        err->status = status;
        (void)vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
    }
    return status;
}

int mr_fail_in(struct mr_error *err, const char *fmt, ...)
{
    if (!err)
        return MR_ERR_USAGE;
    char inner[MR_ERROR_TEXT];
    memcpy(inner, err->text, sizeof inner);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    size_t room = n >= 0 && (size_t)n < sizeof err->text ? sizeof err->text - (size_t)n : 0;
    if (room > 3) // a message that is too long is cut, not refused
        (void)snprintf(err->text + n, room, ": %.*s", (int)(room - 3), inner);
    return err->status;
}

int mr_advise(struct mr_error *err, const char *advice)
{
    if (!err)
        return MR_ERR_USAGE;
    size_t n = strlen(err->text);
    if (!strstr(err->text, "; "))
        (void)snprintf(err->text + n, sizeof err->text - n, "; %s", advice);
    return err->status;
}

struct mr_names mr_names_of(const char *(*name)(int index), const char *between, const char *last)
{
    struct mr_names all = {""};
    size_t n = 0;
    for (int i = 0; name(i) && n < sizeof all.text; i++)
        n += (size_t)snprintf(all.text + n, sizeof all.text - n, "%s%s",
                              i == 0        ? ""
                              : name(i + 1) ? between
                                            : last,
                              name(i));
    return all;
}
