// SPDX-License-Identifier: Apache-2.0
#include "text/turns.h"

#include <stdlib.h>
#include <string.h>

int mr_turns_open(struct mr_turns *turns, const char *text, struct mr_error *err)
{
    const char *gap = strstr(text, "{}");
    *turns = (struct mr_turns){0};
    if (!gap || strstr(gap + 2, "{}"))
        return mr_fail(err, MR_ERR_USAGE, "--template needs {} once, where the message goes");
    size_t before = (size_t)(gap - text), after = strlen(gap + 2), stop = before;
    char *block = malloc(2 * before + after + 4);
    if (!block)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a template");
    while (stop > 0 && text[stop - 1] == ' ')
        stop--;
    turns->before = block;
    turns->after = block + before + 1;
    turns->stop = turns->after + after + 1;
    memcpy(turns->before, text, before);
    turns->before[before] = 0;
    memcpy(turns->after, gap + 2, after + 1);
    if (stop > 0) {
        *turns->stop = '\n';
        memcpy(turns->stop + 1, text, stop);
    }
    turns->stop[stop > 0 ? stop + 1 : 0] = 0;
    return 0;
}

void mr_turns_close(struct mr_turns *turns)
{
    free(turns->before);
    *turns = (struct mr_turns){0};
}

int mr_turns_add(const struct mr_turns *turns, bool first, const char *message, size_t size,
                 struct mr_buf *text, struct mr_error *err)
{
    int rc = first ? 0 : mr_buf_append(text, "\n", 1, err);
    if (rc == 0)
        rc = mr_buf_append(text, turns->before, strlen(turns->before), err);
    if (rc == 0)
        rc = mr_buf_append(text, message, size, err);
    return rc < 0 ? rc : mr_buf_append(text, turns->after, strlen(turns->after), err);
}
