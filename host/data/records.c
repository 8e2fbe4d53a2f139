// SPDX-License-Identifier: Apache-2.0
#include "data/records.h"

#include <assert.h>
#include <string.h>

#include "common/json.h"
#include "common/str.h"
#include "common/suggest.h"
#include "text/look.h"

enum { TEXT, PROMPT, COMPLETION, PAIR, LABEL };

enum mr_data_format mr_data_format_of(const char *path)
{
    static_assert(MR_DATA_TEXT + MR_TEXT_JSONL == MR_DATA_JSONL, "their order");
    static_assert(MR_DATA_TEXT + MR_TEXT_CSV == MR_DATA_CSV, "their order");
    static_assert(MR_DATA_TEXT + MR_TEXT_TSV == MR_DATA_TSV, "their order");
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

// The fields of a record as they are called; without text where there is no such field.
struct values {
    const char *text[MR_DATA_FIELDS];
    size_t size[MR_DATA_FIELDS];
};

// Makes a record of them, or returns the name of a field that is missing.
static const char *fill(const struct mr_records *r, const struct values *v,
                        struct mr_record *record)
{
    bool labelled = r->names[LABEL], pair = !labelled && v->text[PROMPT] && v->text[COMPLETION];
    int what = pair ? COMPLETION : TEXT;
    int missing = !v->text[what]                                 ? what
                  : labelled && r->names[PAIR] && !v->text[PAIR] ? PAIR
                  : labelled && !v->text[LABEL]                  ? LABEL
                                                                 : -1;
    *record = (struct mr_record){.text = v->text[what],
                                 .size = v->size[what],
                                 .prompt = pair ? v->text[PROMPT] : NULL,
                                 .prompt_size = pair ? v->size[PROMPT] : 0,
                                 .whole = true,
                                 .pair = v->text[PAIR],
                                 .pair_size = v->size[PAIR],
                                 .label = v->text[LABEL],
                                 .label_size = v->size[LABEL]};
    return missing >= 0 ? r->names[missing] : NULL;
}

// A field is not there: what is, and is likely meant by the word that is sought.
static int no_field(const struct mr_records *r, const struct mr_suggestion *s, struct mr_error *err)
{
    const char *const *n = r->names;
    char asked[3 * MR_SHOWN];
    if (n[LABEL])
        (void)snprintf(asked, sizeof asked, "has no '%s'", s->word);
    else
        (void)snprintf(asked, sizeof asked, "has neither '%s' nor '%s' and '%s'", n[TEXT],
                       n[PROMPT], n[COMPLETION]);
    return mr_fail(err, MR_ERR_FORMAT, "%.300s: line %llu: %s%s%s; name the fields with %s",
                   r->source.name, (unsigned long long)r->number, asked, s->best ? ", but " : "",
                   s->best ? mr_show(s->best).text : "",
                   n[LABEL] ? "--text-field, --pair-field and --label-field"
                            : "--text-field, or --prompt-field and --completion-field");
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

static int string_of(struct mr_records *r, int field, struct values *v, struct mr_error *err)
{
    const json_t *value = r->names[field] ? json_object_get(r->object, r->names[field]) : NULL;
    bool number = field == LABEL && json_is_integer(value);
    if (value && !number && !json_is_string(value))
        return mr_fail(err, MR_ERR_FORMAT, "%.300s: line %llu: '%s' is %s, not a string",
                       r->source.name, (unsigned long long)r->number, r->names[field],
                       mr_json_kind(value));
    if (number)
        (void)snprintf(r->label, sizeof r->label, "%lld", (long long)json_integer_value(value));
    v->text[field] = number ? r->label : json_string_value(value);
    v->size[field] = number ? strlen(r->label) : value ? json_string_length(value) : 0;
    return 0;
}

static int of_object(struct mr_records *r, struct mr_record *record, struct mr_error *err)
{
    struct values v;
    const char *key;
    json_t *value;
    int rc = 0;
    for (int f = 0; f < MR_DATA_FIELDS && rc == 0; f++)
        rc = string_of(r, f, &v, err);
    const char *missing = rc == 0 ? fill(r, &v, record) : NULL;
    if (!missing)
        return rc < 0 ? rc : 1;
    struct mr_suggestion s = {.word = missing};
    json_object_foreach(r->object, key, value) mr_suggest_offer(&s, key);
    return no_field(r, &s, err);
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

// ---- comma- and tab-separated values ------------------------------------------------------------

// One column: which of the fields it is.
static int take_column(struct mr_records *r, int i, struct mr_error *err)
{
    size_t n;
    const char *field = mr_csv_field(&r->csv, i, &n);
    for (int f = 0; f < MR_DATA_FIELDS; f++) {
        const char *name = r->names[f];
        if (!name || strlen(name) != n || memcmp(name, field, n) != 0)
            continue;
        if (r->column[f] >= 0)
            return wrong(r, err, "has this column twice: ", name, "");
        r->column[f] = i;
    }
    return 0;
}

static void values_of_row(const struct mr_records *r, struct values *v)
{
    *v = (struct values){0};
    for (int f = 0; f < MR_DATA_FIELDS; f++)
        if (r->column[f] >= 0)
            v->text[f] = mr_csv_field(&r->csv, r->column[f], &v->size[f]);
}

// Of the header, which stands in r->csv: the column that comes nearest to the name.
static int no_column(struct mr_records *r, const char *missing, struct mr_error *err)
{
    char best[MR_SHOWN];
    struct mr_suggestion s = {.word = missing};
    for (int i = 0; i < r->csv.fields; i++) {
        size_t n;
        const char *field = mr_csv_field(&r->csv, i, &n);
        const struct mr_shown shown = mr_show_bytes(field, n);
        mr_suggest_offer(&s, shown.text);
        if (s.best == shown.text)
            s.best = strcpy(best, shown.text);
    }
    return no_field(r, &s, err);
}

static int read_header(struct mr_records *r, struct mr_error *err)
{
    struct values v;
    struct mr_record record;
    int rc = mr_csv_next(&r->csv, err);
    r->number = r->csv.line;
    for (int f = 0; f < MR_DATA_FIELDS; f++)
        r->column[f] = -1;
    for (int i = 0; rc >= 0 && i < r->csv.fields; i++)
        rc = take_column(r, i, err);
    if (rc < 0)
        return rc;
    if (r->csv.fields == 0)
        return mr_fail(err, MR_ERR_FORMAT, "%.300s: is empty; its first line names the columns",
                       r->source.name);
    values_of_row(r, &v);
    const char *missing = fill(r, &v, &record);
    return missing ? no_column(r, missing, err) : 0;
}

static int next_row(struct mr_records *r, struct mr_record *record, struct mr_error *err)
{
    struct values v;
    int columns = r->csv.fields, more = mr_csv_next(&r->csv, err);
    r->number = r->csv.line;
    if (more <= 0)
        return more;
    if (r->csv.fields != columns)
        return mr_fail(err, MR_ERR_FORMAT, "%.300s: line %llu: has %d fields, and those before %d",
                       r->source.name, (unsigned long long)r->number, r->csv.fields, columns);
    values_of_row(r, &v);
    (void)fill(r, &v, record); // the header has all of them
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
    memcpy(r->names,
           (const char *const[]){fields->text, fields->label ? NULL : fields->prompt,
                                 fields->label ? NULL : fields->completion,
                                 fields->label ? fields->pair : NULL, fields->label},
           sizeof r->names);
    r->end = end;
    r->end_size = end_size;
    r->csv = (struct mr_csv){.source = &r->source, .tabs = r->format == MR_DATA_TSV};
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
    return rc == 0 && (r->format == MR_DATA_CSV || r->format == MR_DATA_TSV) ? read_header(r, err)
                                                                             : rc;
}

int mr_records_next(struct mr_records *r, struct mr_record *record, struct mr_error *err)
{
    switch (r->format) {
    case MR_DATA_JSONL:
        return next_object(r, record, err);
    case MR_DATA_CSV:
    case MR_DATA_TSV:
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
