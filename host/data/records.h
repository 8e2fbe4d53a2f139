// SPDX-License-Identifier: Apache-2.0
// What a model is to learn, text by text: of a plain text, of JSON lines, or of comma- or
// tab-separated values (docs/train/data.md).
#pragma once

#include <jansson.h>

#include "data/csv.h"

enum mr_data_format { MR_DATA_AUTO, MR_DATA_TEXT, MR_DATA_JSONL, MR_DATA_CSV, MR_DATA_TSV };

// What fields are called; a record has a text, or a prompt and a completion. With `label`, which a
// plain text never has, it has a text and a label, and another text where `pair` names its field.
struct mr_data_fields {
    const char *text, *prompt, *completion;
    const char *pair, *label; // NULL: none
};

// Valid until the next record.
struct mr_record {
    const char *prompt, *text; // prompt: NULL, or what is not learnt
    size_t prompt_size, size;
    bool whole;               // the text ends here: a token that says so follows
    const char *pair, *label; // NULL without their fields
    size_t pair_size, label_size;
};

enum { MR_DATA_FIELDS = 5 };

struct mr_records {
    struct mr_source source;
    enum mr_data_format format;
    const char *names[MR_DATA_FIELDS]; // NULL: not looked for
    const char *end; // of plain text: what stands between documents; "" for nothing
    size_t end_size;
    struct mr_csv csv;
    int column[MR_DATA_FIELDS]; // -1: is not there
    struct mr_buf line;
    json_t *object;
    char label[24];  // that is a number of JSON
    uint64_t number; // of the line
};

// By the name: mr_text_form_of.
enum mr_data_format mr_data_format_of(const char *path);

// r->source is open; the other arguments must stay valid. MR_DATA_AUTO goes by the source's name.
int mr_records_open(struct mr_records *r, enum mr_data_format format,
                    const struct mr_data_fields *fields, const char *end, size_t end_size,
                    struct mr_error *err);
// 1: there is one, 0: the end, or a failure that names the line.
int mr_records_next(struct mr_records *r, struct mr_record *record, struct mr_error *err);
void mr_records_close(struct mr_records *r); // and its source
