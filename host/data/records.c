// SPDX-License-Identifier: Apache-2.0
#include "data/records.h"

#include <assert.h>
#include <string.h>

#include "common/json.h"
#include "common/str.h"
#include "common/suggest.h"
#include "text/look.h"

enum { TEXT, PROMPT, COMPLETION };

enum mr_data_format mr_data_format_of(const char *path)
{
    static_assert(MR_DATA_TEXT + MR_TEXT_JSONL == MR_DATA_JSONL, "their order");
    static_assert(MR_DATA_TEXT + MR_TEXT_CSV == MR_DATA_CSV, "their order");
    return MR_DATA_TEXT + mr_text_form_of(path);
}

static int source_failed(const struct mr_records *r, struct mr_error *err)
{
    return mr_fail(err, r->source.rc, "%s", r->source.err.text);
}

static int wrong(const struct mr_records *r, struct mr_error *err, const char *what,
                 const char *name, const char *advice)
{
    return mr_fail(err, MR_ERR_FORMAT, "%.300s: line %llu: %s%s%s%s", r->source.name,
                   (unsigned long long)r->number, what, name ? mr_show(name).text : "",
                   *advice ? "; " : "", advice);
}

static const char *name_of(const struct mr_records *r, int field)
{
    const char *const names[] = {r->fields.text, r->fields.prompt, r->fields.completion};
    return names[field];
}

// Neither a text nor a pair: what is there, and what is likely meant.
static int no_field(const struct mr_records *r, struct mr_suggestion *s, struct mr_error *err)
{
    return mr_fail(
        err, MR_ERR_FORMAT,
        "%.300s: line %llu: has neither '%s' nor '%s' and '%s'%s%s; name the fields with "
        "--text-field, or --prompt-field and --completion-field",
        r->source.name, (unsigned long long)r->number, r->fields.text, r->fields.prompt,
        r->fields.completion, s->best ? ", but " : "", s->best ? mr_show(s->best).text : "");
}

// ---- plain text ---------------------------------------------------------------------------------

static bool ends_document(const struct mr_records *r)
{
    const struct mr_buf *b = &r->line;
    return r->end_size > 0 && b->size >= r->end_size &&
           memcmp(b->data + b->size - r->end_size, r->end, r->end_size) == 0;
}

// Up to and with what stands between documents.
static int next_text(struct mr_records *r, struct mr_record *record, struct mr_error *err)
{
    int b, rc = 0;
    r->line.size = 0;
    while (rc == 0 && !ends_document(r) && (b = mr_source_byte(&r->source)) != MR_SOURCE_END) {
        char c = (char)b;
        rc = r->line.size == MR_RECORD_MOST
                 ? wrong(r, err, "a document has more than 1 GiB", NULL, "divide it")
                 : mr_buf_append(&r->line, &c, 1, err);
        r->number += c == '\n';
    }
    if (r->source.rc < 0)
        return source_failed(r, err);
    *record = (struct mr_record){.text = r->line.data, .size = r->line.size};
    return rc < 0 ? rc : r->line.size > 0;
}

// ---- JSON lines ---------------------------------------------------------------------------------

static int read_line(struct mr_records *r, struct mr_error *err)
{
    int b = 0, rc = 0;
    r->line.size = 0;
    r->number++;
    while (rc == 0 && (b = mr_source_byte(&r->source)) != MR_SOURCE_END && b != '\n') {
        char c = (char)b;
        rc = r->line.size == MR_RECORD_MOST
                 ? wrong(r, err, "has more than 1 GiB", NULL, "divide it")
                 : mr_buf_append(&r->line, &c, 1, err);
    }
    if (rc == 0 && r->source.rc < 0)
        rc = source_failed(r, err);
    return rc < 0 ? rc : b != MR_SOURCE_END || r->line.size > 0;
}

static bool is_blank(const struct mr_buf *b)
{
    size_t i = 0;
    while (i < b->size && strchr(" \t\r", b->data[i]) && b->data[i])
        i++;
    return i == b->size;
}

static int string_of(const struct mr_records *r, int field, const char **text, size_t *size,
                     struct mr_error *err)
{
    const json_t *value = json_object_get(r->object, name_of(r, field));
    if (value && !json_is_string(value))
        return mr_fail(err, MR_ERR_FORMAT, "%.300s: line %llu: '%s' is %s, not a string",
                       r->source.name, (unsigned long long)r->number, name_of(r, field),
                       mr_json_kind(value));
    *text = json_string_value(value);
    *size = value ? json_string_length(value) : 0;
    return 0;
}

static int of_object(struct mr_records *r, struct mr_record *record, struct mr_error *err)
{
    struct mr_suggestion s = {.word = r->fields.text};
    const char *text, *prompt, *completion, *key;
    size_t text_size, prompt_size, size;
    json_t *value;
    int rc = string_of(r, TEXT, &text, &text_size, err);
    rc = rc == 0 ? string_of(r, PROMPT, &prompt, &prompt_size, err) : rc;
    rc = rc == 0 ? string_of(r, COMPLETION, &completion, &size, err) : rc;
    if (rc < 0)
        return rc;
    if (prompt && completion)
        *record = (struct mr_record){prompt, completion, prompt_size, size, true};
    else if (text)
        *record = (struct mr_record){NULL, text, 0, text_size, true};
    else {
        json_object_foreach(r->object, key, value) mr_suggest_offer(&s, key);
        return no_field(r, &s, err);
    }
    return 1;
}

static int next_object(struct mr_records *r, struct mr_record *record, struct mr_error *err)
{
    char where[400];
    int more;
    json_decref(r->object);
    r->object = NULL;
    while ((more = read_line(r, err)) > 0 && is_blank(&r->line))
        ;
    if (more <= 0)
        return more;
    (void)snprintf(where, sizeof where, "%.300s: line %llu", r->source.name,
                   (unsigned long long)r->number);
    int rc = mr_json_parse_large(&r->object, r->line.data, r->line.size, where, err);
    return rc < 0 ? rc : of_object(r, record, err);
}

// ---- comma-separated values ---------------------------------------------------------------------

// One column: which of the three it is, or how near it comes to the text's name.
static int take_column(struct mr_records *r, int i, struct mr_suggestion *s, char best[MR_SHOWN],
                       struct mr_error *err)
{
    size_t n;
    const char *field = mr_csv_field(&r->csv, i, &n);
    for (int f = 0; f < 3; f++) {
        const char *name = name_of(r, f);
        if (strlen(name) != n || memcmp(name, field, n) != 0)
            continue;
        if (r->column[f] >= 0)
            return wrong(r, err, "has this column twice: ", name, "");
        r->column[f] = i;
    }
    const struct mr_shown shown = mr_show_bytes(field, n);
    mr_suggest_offer(s, shown.text);
    if (s->best == shown.text)
        s->best = strcpy(best, shown.text);
    return 0;
}

static int read_header(struct mr_records *r, struct mr_error *err)
{
    char best[MR_SHOWN];
    struct mr_suggestion s = {.word = r->fields.text};
    int rc = mr_csv_next(&r->csv, err);
    r->number = r->csv.line;
    for (int f = 0; f < 3; f++)
        r->column[f] = -1;
    for (int i = 0; rc >= 0 && i < r->csv.fields; i++)
        rc = take_column(r, i, &s, best, err);
    if (rc < 0)
        return rc;
    if (r->column[TEXT] < 0 && (r->column[PROMPT] < 0 || r->column[COMPLETION] < 0))
        return no_field(r, &s, err);
    return 0;
}

static int next_row(struct mr_records *r, struct mr_record *record, struct mr_error *err)
{
    int columns = r->csv.fields, more = mr_csv_next(&r->csv, err);
    r->number = r->csv.line;
    if (more <= 0)
        return more;
    if (r->csv.fields != columns)
        return mr_fail(err, MR_ERR_FORMAT, "%.300s: line %llu: has %d fields, and those before %d",
                       r->source.name, (unsigned long long)r->number, r->csv.fields, columns);
    bool pair = r->column[PROMPT] >= 0 && r->column[COMPLETION] >= 0;
    *record = (struct mr_record){.whole = true};
    if (pair)
        record->prompt = mr_csv_field(&r->csv, r->column[PROMPT], &record->prompt_size);
    record->text = mr_csv_field(&r->csv, r->column[pair ? COMPLETION : TEXT], &record->size);
    return 1;
}

// ---- all of them --------------------------------------------------------------------------------

// Some programs write U+FEFF in front.
static void skip_mark(struct mr_source *s)
{
    if (mr_source_peek(s) == 0xEF && s->count - s->at >= 3 && s->bytes[s->at + 1] == 0xBB &&
        s->bytes[s->at + 2] == 0xBF)
        s->at += 3;
}

int mr_records_open(struct mr_records *r, enum mr_data_format format,
                    const struct mr_data_fields *fields, const char *end, size_t end_size,
                    struct mr_error *err)
{
    r->format = format == MR_DATA_AUTO ? mr_data_format_of(r->source.name) : format;
    r->fields = *fields;
    r->end = end;
    r->end_size = end_size;
    r->csv = (struct mr_csv){.source = &r->source};
    r->line = (struct mr_buf){0};
    r->object = NULL;
    r->number = 0;
    // Who says that it is a text may have reasons.
    int rc = format == MR_DATA_TEXT || mr_source_peek(&r->source) == MR_SOURCE_END
                 ? 0
                 : mr_text_look(r->source.name, r->source.bytes + r->source.at,
                                r->source.count - r->source.at, err);
    if (r->format != MR_DATA_TEXT)
        skip_mark(&r->source);
    return rc == 0 && r->format == MR_DATA_CSV ? read_header(r, err) : rc;
}

int mr_records_next(struct mr_records *r, struct mr_record *record, struct mr_error *err)
{
    switch (r->format) {
    case MR_DATA_JSONL:
        return next_object(r, record, err);
    case MR_DATA_CSV:
        return next_row(r, record, err);
    default:
        return next_text(r, record, err);
    }
}

void mr_records_close(struct mr_records *r)
{
    json_decref(r->object);
    mr_buf_free(&r->line);
    mr_csv_free(&r->csv);
    mr_source_close(&r->source);
}
