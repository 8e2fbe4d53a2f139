// SPDX-License-Identifier: Apache-2.0
#include "data/csv.h"

static int wrong(const struct mr_csv *c, const char *what, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_FORMAT, "%.300s: line %llu: %s", c->source->name,
                   (unsigned long long)c->line, what);
}

static int put(struct mr_csv *c, int byte, struct mr_error *err)
{
    char b = (char)byte;
    c->next_line += b == '\n';
    if (c->text.size == MR_RECORD_MOST)
        return wrong(c,
                     c->tabs ? "a record has more than 1 GiB"
                             : "a record has more than 1 GiB; is a quote missing",
                     err);
    return mr_buf_append(&c->text, &b, 1, err);
}

// Behind the opening quote; up to the closing one.
static int quoted(struct mr_csv *c, struct mr_error *err)
{
    for (;;) {
        int b = mr_source_byte(c->source);
        if (b == MR_SOURCE_END)
            return wrong(c, "a quoted field does not end", err);
        if (b == '"' && mr_source_peek(c->source) != '"')
            return 0;
        if (b == '"')
            (void)mr_source_byte(c->source); // the second of two
        int rc = put(c, b, err);
        if (rc < 0)
            return rc;
    }
}

// A line's end, taken as a whole: "\n", "\r\n", or that of the file.
static bool line_ends(struct mr_csv *c, int b)
{
    if (b == '\r' && mr_source_peek(c->source) == '\n')
        b = mr_source_byte(c->source);
    c->next_line += b == '\n';
    return b == '\n' || b == MR_SOURCE_END;
}

// A field and what ends it. 1: another one follows, 0: it was the last one.
static int field(struct mr_csv *c, struct mr_error *err)
{
    bool in_quotes = !c->tabs && mr_source_peek(c->source) == '"';
    const char between = c->tabs ? '\t' : ',';
    int rc = 0;
    if (in_quotes) {
        (void)mr_source_byte(c->source);
        rc = quoted(c, err);
    }
    while (rc == 0) {
        int b = mr_source_byte(c->source);
        if (b == between || line_ends(c, b)) {
            c->end[c->fields++] = c->text.size;
            return b == between;
        }
        rc = in_quotes              ? wrong(c, "text stands behind a quoted field", err)
             : b == '"' && !c->tabs ? wrong(c, "a quote stands within a field without quotes", err)
                                    : put(c, b, err);
    }
    return rc;
}

int mr_csv_next(struct mr_csv *c, struct mr_error *err)
{
    int more = 1;
    do {
        if (mr_source_peek(c->source) == MR_SOURCE_END) {
            more = 0;
            break;
        }
        c->line = c->next_line += c->next_line == 0;
        c->text.size = 0;
        c->fields = 0;
        while ((more = field(c, err)) > 0)
            if (c->fields == MR_CSV_FIELDS)
                return wrong(c, "a record has more than 1024 fields", err);
        if (more < 0)
            break;
        more = 1;
    } while (c->fields == 1 && c->text.size == 0);
    if (c->source->rc < 0) // not the end, and whatever it looked like
        return mr_fail(err, c->source->rc, "%s", c->source->err.text);
    return more;
}

void mr_csv_free(struct mr_csv *c)
{
    mr_buf_free(&c->text);
}
