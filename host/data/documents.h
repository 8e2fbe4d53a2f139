// SPDX-License-Identifier: Apache-2.0
// Records as tokens, many at a time on all processors. The tokens do not depend on how many.
#pragma once

#include <stdbool.h>

#include "common/pool.h"
#include "data/records.h"

struct mr_document {
    int32_t *ids;
    size_t count;
    size_t learnt; // the first token that is a target
};

struct mr_documents {
    struct mr_pool *pool;
    struct mr_model **models; // one a worker: a tokenizer is for one thread
    int32_t end;              // token that follows a whole text; -1: none
    // The batch: texts, one behind the other, and what became of them.
    struct mr_buf text;
    struct mr_waiting *waiting;
    struct mr_document *documents;
    size_t count;
};

// A tokenizer for each worker; `path` is the model whose tokenizer it is.
int mr_documents_open(struct mr_documents *d, const char *path, struct mr_error *err);
void mr_documents_close(struct mr_documents *d);

// Copies the record into the batch.
int mr_documents_add(struct mr_documents *d, const struct mr_record *record, struct mr_error *err);
bool mr_documents_full(const struct mr_documents *d);
// Tokenises the batch: d->documents[0 .. d->count - 1], valid until mr_documents_clear().
int mr_documents_encode(struct mr_documents *d, struct mr_error *err);
void mr_documents_clear(struct mr_documents *d);
