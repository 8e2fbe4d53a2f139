// SPDX-License-Identifier: Apache-2.0
// What the reference is inside; not for callers.
#pragma once

#include "checkpoint/checkpoint.h"

// Rows that go through the layers together; longer steps are cut, which bounds the scratch memory.
#define MAX_ROWS 256

enum { MAX_TABLES = 3 };

// Of an item; matrices are [outputs][inputs].
struct weights {
    const float *weight, *bias; // bias: NULL if it has none
};

struct sequence {
    bool used;
    int length;     // tokens whose keys and values are stored
    int pending;    // tokens that the current step appends
    int capacity;   // positions that the buffers hold
    float **keys;   // [n_layer] -> [capacity][E]
    float **values; // [n_layer] -> [capacity][E]
};

// Buffers of a step, for `rows` rows: MAX_ROWS or, of an encoder, those of its texts.
struct scratch {
    int rows;
    size_t n_scores;
    // Where items read and write: [rows][mr_axis_length()]. The result goes to the caller.
    float *place[MR_RESULT];
    float *delta, *product; // [rows][E]: of the residual, not yet added to it; one of its summands
    float *row;             // [E]: a row of a table
    float *sincos;          // [rows][rotary_dim]
    float *scores;          // [n_positions]; of an encoder [longest text][longest text]
    int *position;
};

struct mr_cpu {
    const struct mr_config *config;
    const struct mr_arch *arch;
    const struct mr_tensor *tables[MAX_TABLES]; // looked up row by row, in their own types
    struct weights *layers;                     // [n_layer][items of a block], then the tail's
    struct weights *front;                      // of an encoder
    float **owned;                              // the converted copies among the above
    size_t n_owned;
    float *frequencies; // [rotary_dim / 2]
    struct sequence *sequences;
    int n_sequences;
    struct scratch scratch;
    void (*see)(void *arg, enum mr_cpu_seen what, int layer, int item, int rows, int width,
                const float *data); // may be NULL
    void *see_arg;
    int (*watch)(void *arg, int layer, double share, int rows); // may be NULL
    void *watch_arg;
};

// Room for `rows` rows at once and, of an encoder, for texts of up to `longest` rows.
int mr_cpu_reserve(struct mr_cpu *cpu, int rows, int longest, struct mr_error *err);

// The weights of an item of layer 0..n_layer - 1 or, for n_layer, of the tail.
struct weights *mr_cpu_weights(const struct mr_cpu *cpu, int layer, int item);

// NULL if there is no such sequence.
struct sequence *mr_cpu_sequence(const struct mr_cpu *cpu, int seq);

// Makes room for a sequence's pending tokens. A failure leaves larger buffers, but no other trace.
int mr_cpu_reserve_positions(const struct mr_cpu *cpu, struct sequence *s, struct mr_error *err);
