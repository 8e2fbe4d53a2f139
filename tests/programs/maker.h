// SPDX-License-Identifier: Apache-2.0
// What writes a program command by command, with all that the commands read; for make.c, whose it
// is, and known.c.
#ifndef MILLRACE_TESTS_PROGRAMS_MAKER_H
#define MILLRACE_TESTS_PROGRAMS_MAKER_H

#include "programs.h"

enum { TABLE_OFF = 1 }; // beats

struct maker {
    struct program_case *c;
    uint64_t *rng;
    uint32_t d, w;              // floats of a row, attention width
    uint32_t layers, sequences; // of the KV store
    uint32_t rows, rot_beats;
    bool two_pass;
    uint32_t logits;           // rows that want them
    uint32_t tracked;          // EXP_COLS
    bool odd_stream, odd_rows; // with what no packer and no engine writes
};

// A case without commands, and what it needs when it has them all.
struct maker begin(struct program_case *c, uint64_t seed, uint64_t *rng);
void finish(struct program_case *c);

// Commands behind those that are there. Of most the caller may change fields.
struct mr_command *add(struct maker *m, unsigned op, unsigned wait, unsigned signal);
void load_rows(struct maker *m, unsigned wait, unsigned signal);
void layernorm(struct maker *m, uint32_t base, uint32_t slot, bool logits, unsigned wait,
               unsigned signal);
void stream_vec(struct maker *m, unsigned wait, unsigned signal);
struct mr_command *matmul(struct maker *m, uint32_t src, uint32_t kblocks, uint32_t cols,
                          uint32_t src_slot, uint32_t dst, unsigned wait, unsigned signal);
void rotate(struct maker *m, struct mr_command *c);
void result_of(struct maker *m, struct mr_command *c);
void pm_load(struct maker *m, uint32_t layer, bool to_end, unsigned wait, unsigned signal);
void store_kv(struct maker *m, uint32_t layer, uint32_t src, bool is_v, unsigned wait,
              unsigned signal);
void attend(struct maker *m, uint32_t layer, uint32_t q, uint32_t dst, uint32_t slot, unsigned wait,
            unsigned signal);
void store_res(struct maker *m, unsigned wait, unsigned signal);

// What they read, and where it lies.
uint32_t bits(float f);
void stream(struct maker *m);
void row_table(struct maker *m);
void keep_kv(struct maker *m);
void windows(struct maker *m, const uint64_t at[PARTS]);

#endif
