// SPDX-License-Identifier: Apache-2.0
// Records of comma-separated values (RFC 4180): fields may stand in quotes, with commas, line ends
// and doubled quotes in them. Of tab-separated values a quote is a character like others, and no
// field has a tab or a line end in it. Lines end in "\r\n" or "\n"; empty ones are passed over.
#pragma once

#include "common/buf.h"
#include "data/source.h"

enum { MR_CSV_FIELDS = 1024 };

// Zero-initialise, but for the source; mr_csv_free() releases it.
struct mr_csv {
    struct mr_source *source;
    bool tabs;                 // between fields, instead of commas
    struct mr_buf text;        // fields of the record, one behind the other
    size_t end[MR_CSV_FIELDS]; // where each of them ends
    int fields;
    uint64_t line, next_line; // of the record, and behind it; from 1 on
};

// 1: a record is there, 0: the end, or a failure that names the line.
int mr_csv_next(struct mr_csv *c, struct mr_error *err);

// Field i of the record, valid until the next one.
static inline const char *mr_csv_field(const struct mr_csv *c, int i, size_t *size)
{
    size_t from = i ? c->end[i - 1] : 0;
    *size = c->end[i] - from;
    return *size ? c->text.data + from : "";
}

void mr_csv_free(struct mr_csv *c);
