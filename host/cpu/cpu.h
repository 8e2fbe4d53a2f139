// SPDX-License-Identifier: Apache-2.0
// The `cpu:` reference: a model in fp32 on the checkpoint, matrix products by OpenBLAS. It walks
// the items of the model's description (host/model/model.h) as Hugging Face's modeling files
// compute them; everything else in the project is measured against it.
//
// One struct mr_cpu is used by one thread at a time. OpenBLAS itself runs threads
// (OPENBLAS_NUM_THREADS); the last bits of a result may depend on their number, on the processor
// and on how rows are grouped into steps. This backend promises a tolerance, not bits.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cpu/cpu_open.h"

struct mr_cpu_row {
    int seq;          // from mr_cpu_seq_new()
    int token;        // 0..vocab_size - 1
    bool want_logits; // whether this row's logits are written
};

// Appends each row's token to its sequence, in order, at that sequence's next position. Rows of
// different sequences may be mixed. logits [rows with want_logits][vocab_size], in order of the
// rows; NULL when no row wants any. A refused step (unknown sequence, token outside the
// vocabulary, n_positions exceeded, out of memory) changes nothing.
int mr_cpu_step(struct mr_cpu *cpu, int n_rows, const struct mr_cpu_row *rows, float *logits,
                struct mr_error *err);

// A text of an encoder: its tokens, [CLS] and [SEP] among them, and their types.
struct mr_cpu_text {
    const int32_t *tokens;
    const int32_t *types; // NULL: all 0
    int count;            // 1..n_positions
};

// An encoder's last rows, rows[sum of counts][n_embd], text by text. Texts of different lengths go
// through the layers together, without padding. Sequences and steps are not for encoders.
int mr_cpu_encode(struct mr_cpu *cpu, int count, const struct mr_cpu_text *texts, float *rows,
                  struct mr_error *err);

// Calls `see` during each step for the items of mr_items_of(config, layer), of an encoder from
// layer -1 on; data is valid during the call. Of the tail (layer n_layer) these are the rows that
// want logits. A step of many rows goes through the layers in several parts, one after the other:
// then each item is seen once a part, with the rows in their order. NULL ends it.
void mr_cpu_observe(struct mr_cpu *cpu,
                    void (*see)(void *arg, enum mr_cpu_seen what, int layer, int item, int rows,
                                int width, const float *data),
                    void *arg);

// Calls `watch` before each layer that `rows` rows of a step go through, and before what is behind
// the last (layer n_layer), with share 0; then again and again within it, with the share of its
// matrices that has been used, 1 at its end. Behind the last layer these calls have the rows that
// want logits. A non-zero return ends the step with MR_ERR_INTERRUPTED, which then has changed
// nothing. NULL ends the calls.
void mr_cpu_watch(struct mr_cpu *cpu, int (*watch)(void *arg, int layer, double share, int rows),
                  void *arg);
