// SPDX-License-Identifier: Apache-2.0
// The `cpu:` reference: a model in fp32 on the checkpoint, matrix products by OpenBLAS. It walks
// the items of the model's description (host/model/model.h) as Hugging Face's modeling files
// compute them; everything else in the project is measured against it.
//
// One struct mr_cpu is used by one thread at a time. OpenBLAS itself runs threads
// (OPENBLAS_NUM_THREADS); the last bits of a result may depend on their number, on the processor
// and on how rows are grouped into steps. This backend promises a tolerance, not bits.
#ifndef MILLRACE_CPU_CPU_H
#define MILLRACE_CPU_CPU_H

#include <stdbool.h>

#include "checkpoint/checkpoint.h"

struct mr_cpu;

// Prepares the model: weights are kept in fp32 (used in place when the file has them aligned as
// F32). The checkpoint is borrowed and must stay open for the life of *cpu. On failure *cpu is
// NULL.
int mr_cpu_open(struct mr_cpu **cpu, const struct mr_checkpoint *checkpoint, struct mr_error *err);

// The same with weights from elsewhere: find(arg, layer, item, part) gives the tensor that
// mr_checkpoint_item() would. All are borrowed.
struct mr_cpu_source {
    const struct mr_config *config;
    const struct mr_tensor *(*find)(const void *arg, int layer, const struct mr_item *item,
                                    enum mr_part part);
    const void *arg;
};

int mr_cpu_open_source(struct mr_cpu **cpu, const struct mr_cpu_source *source,
                       struct mr_error *err);

// Frees the model and all its sequences. NULL is allowed.
void mr_cpu_close(struct mr_cpu *cpu);

// Starts an empty sequence. *seq is a small non-negative number; numbers of freed sequences are
// used again.
int mr_cpu_seq_new(struct mr_cpu *cpu, int *seq, struct mr_error *err);

// Frees a sequence and its keys and values. Numbers that are not in use are ignored.
void mr_cpu_seq_free(struct mr_cpu *cpu, int seq);

// Tokens in the sequence so far, or -1 if there is no such sequence.
int mr_cpu_seq_length(const struct mr_cpu *cpu, int seq);

// Makes a sequence shorter, or longer without computing: the new positions have zeros for keys and
// values (for measurements at a position).
int mr_cpu_seq_set_length(struct mr_cpu *cpu, int seq, int length, struct mr_error *err);

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

// What an observer of the forward pass sees of an item, data[rows][width].
enum mr_cpu_seen {
    MR_CPU_READ,    // the residual, as a norm reads it
    MR_CPU_RAW,     // a matrix' result before its GELU
    MR_CPU_WRITTEN, // what an item has written anywhere but to the residual and the result
};

// Calls `see` during each step for the items of mr_items_of(config, layer); data is valid during
// the call. Of the tail (layer n_layer) these are the rows that want logits. A step of many rows
// goes through the layers in several parts, one after the other: then each item is seen once a
// part, with the rows in their order. NULL ends it.
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

#endif
