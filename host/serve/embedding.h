// SPDX-License-Identifier: Apache-2.0
// POST /v1/embeddings: its body, read strictly, and its answer, as the OpenAI API has both.
#pragma once

#include "api/encoder_impl.h"
#include "common/buf.h"
#include "common/str.h"

enum { MR_EMBEDDING_INPUTS = 2048 }; // of a request, as OpenAI's

struct mr_embedding {
    char *model;              // NULL: the request names none
    struct mr_framed *framed; // inputs as the encoder reads them
    int count;
    bool base64; // little-endian floats; else numbers
};

// On failure *param is the name of the argument that is wrong, or empty, and nothing is left to
// free. MR_ERR_FIT: an input is longer than the encoder reads.
int mr_embedding_parse(struct mr_embedding *e, const struct mr_encoder *encoder, const void *body,
                       size_t size, struct mr_shown *param, struct mr_error *err);
void mr_embedding_free(struct mr_embedding *e);
size_t mr_embedding_tokens(const struct mr_embedding *e);

// The answer in three parts: what stands before the rows, row `index` of `width` numbers, and what
// follows the last one. MR_ERR_FORMAT: a row has a number that is none.
int mr_embedding_begin(struct mr_buf *out, struct mr_error *err);
int mr_embedding_row(struct mr_buf *out, const struct mr_embedding *e, int index, const float *row,
                     int width, struct mr_error *err);
int mr_embedding_end(struct mr_buf *out, const struct mr_embedding *e, const char *model,
                     struct mr_error *err);
