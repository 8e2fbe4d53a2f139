// SPDX-License-Identifier: Apache-2.0
#include "cli/base/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "common/error.h"

static int failed(const struct cli_lines *l, struct mr_error *err)
{
    return l->file == stdin
               ? mr_fail(err, MR_ERR_IO, "standard input: %s", strerror(errno))
               : mr_fail(err, MR_ERR_IO, "%.300s: %s; name a file, or '-' for standard input",
                         l->path, strerror(errno));
}

int cli_lines_open(struct cli_lines *l, const char *path, struct mr_error *err)
{
    bool std = strcmp(path, "-") == 0;
    *l = (struct cli_lines){.path = std ? "standard input" : path,
                            .file = std ? stdin : fopen(path, "rb")};
    if (!l->file && errno == EINTR) // a pipe that nobody writes to
        return mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
    return l->file ? 0 : failed(l, err);
}

static bool grow(struct cli_lines *l)
{
    size_t capacity = l->capacity ? 2 * l->capacity : 256;
    char *more = realloc(l->line, capacity);
    if (more) {
        l->line = more;
        l->capacity = capacity;
    }
    return more;
}

int cli_lines_next(struct cli_lines *l, const char **line, size_t *size, struct mr_error *err)
{
    size_t n = 0;
    int c;
    while ((c = getc_unlocked(l->file)) != EOF && c != '\n') {
        if (n == CLI_LINE_BYTES)
            return mr_fail(err, MR_ERR_FORMAT, "%.300s: line %llu has more than %d MiB", l->path,
                           (unsigned long long)l->number + 1, CLI_LINE_BYTES >> 20);
        if (n + 1 >= l->capacity && !grow(l))
            return mr_fail(err, MR_ERR_MEMORY, "no memory for a line");
        l->line[n++] = (char)c;
    }
    if (c == EOF && (n == 0 || ferror(l->file)))
        return ferror(l->file) ? failed(l, err) : 0;
    if (n > 0 && l->line[n - 1] == '\r')
        n--;
    l->number++;
    *line = n > 0 ? l->line : "";
    *size = n;
    return 1;
}

void cli_lines_close(struct cli_lines *l)
{
    if (l->file && l->file != stdin)
        (void)fclose(l->file); // only read
    free(l->line);
    *l = (struct cli_lines){0};
}

// ---- order -------------------------------------------------------------------------------------

static char nothing; // stands for a result that is not printed

static bool reserve(struct cli_order *o, size_t count)
{
    if (count <= o->capacity)
        return true;
    size_t capacity = 2 * count;
    char **more = realloc(o->text, capacity * sizeof *more);
    if (!more)
        return false;
    memset(more + o->capacity, 0, (capacity - o->capacity) * sizeof *more);
    o->text = more;
    o->capacity = capacity;
    return true;
}

static void release(char *text)
{
    if (text != &nothing)
        free(text);
}

bool cli_order_put(struct cli_order *o, size_t i, char *text, FILE *out)
{
    size_t at = i - o->first, ready = 0;
    bool ok = true;
    if (!reserve(o, at + 1)) {
        free(text);
        return false;
    }
    o->text[at] = text ? text : &nothing;
    o->count = at + 1 > o->count ? at + 1 : o->count;
    for (; ready < o->count && o->text[ready]; ready++) {
        if (o->text[ready] != &nothing)
            ok &= fprintf(out, "%s\n", o->text[ready]) >= 0;
        release(o->text[ready]);
    }
    o->count -= ready;
    o->first += ready;
    memmove(o->text, o->text + ready, o->count * sizeof *o->text);
    memset(o->text + o->count, 0, ready * sizeof *o->text);
    return ready == 0 || (ok && fflush(out) == 0);
}

void cli_order_free(struct cli_order *o)
{
    for (size_t i = 0; i < o->count; i++)
        release(o->text[i]);
    free(o->text);
    *o = (struct cli_order){0};
}
