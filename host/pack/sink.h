// SPDX-License-Identifier: Apache-2.0
// Where packed bytes go: into memory, or into a file with checksums on the way. Several threads
// make the pieces of one tensor; what comes out does not depend on their number.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/output.h"
#include "pack/hash.h"

struct mr_sink {
    uint8_t *memory;                // if not NULL, everything goes there and nothing else happens
    const struct mr_output *output; // else: written here,
    XXH3_state_t *hash;             // and folded, in order, into the checksum of the tensor
    // Where the tensor begins: in memory, or in the file.
    uint64_t base;
    pthread_mutex_t lock;
    pthread_cond_t turn;
    int next; // the piece whose turn it is
    bool given_up;
};

// Memory, or a file. On success mr_sink_free() releases it.
int mr_sink_init(struct mr_sink *s, uint8_t *memory, const struct mr_output *output,
                 struct mr_error *err);
void mr_sink_free(struct mr_sink *s);

// The next tensor, whose pieces are counted from 0.
void mr_sink_begin(struct mr_sink *s, uint64_t base);

// Piece `i`, `at` bytes into the tensor. Every piece is put once, or mr_sink_give_up() is called;
// a piece waits here until those before it were put.
int mr_sink_put(struct mr_sink *s, int i, size_t at, const uint8_t *data, size_t size,
                struct mr_error *err);

// For a thread that cannot make its piece: nobody waits for it from here on.
void mr_sink_give_up(struct mr_sink *s);

// XXH3-64 of the tensor, after its last piece.
uint64_t mr_sink_end(struct mr_sink *s);
