// SPDX-License-Identifier: Apache-2.0
// A model in the reference, and its sequences; a part of cpu.h.
#pragma once

#include "checkpoint/checkpoint.h"

struct mr_cpu;

// What an observer of the forward pass sees of an item, data[rows][width].
enum mr_cpu_seen {
    MR_CPU_READ,    // the residual, as a norm reads it
    MR_CPU_RAW,     // a matrix' result before its GELU
    MR_CPU_WRITTEN, // what an item has written anywhere but to the residual and the result
};

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
