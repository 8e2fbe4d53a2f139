// SPDX-License-Identifier: Apache-2.0
// Several processes that do one thing together, one a device: which one this is, and what they say
// to each other. Rank 0 owns what is kept and what is printed. Every rank calls the same functions
// in the same order; one that cannot go on ends all of them by quit().
#pragma once

#include <stddef.h>
#include <stdint.h>

struct mr_ranks {
    int rank, count;
    void *arg; // of the functions
    // What rank 0 has becomes everybody's.
    void (*send)(void *arg, void *data, size_t bytes);
    // The sums of all ranks' integers, modulo 2^32, at rank 0; the others' are used up.
    void (*sum)(void *arg, int32_t *data, size_t count);
    // Everybody's `bytes` bytes, in order of ranks, to everybody.
    void (*gather)(void *arg, const void *own, void *all, size_t bytes);
    // Ends all ranks with this exit status; does not return.
    void (*quit)(void *arg, int status);
    // The last that each of them says; NULL: nothing is to be said.
    void (*leave)(void *arg);
};

// A process by itself.
extern const struct mr_ranks mr_ranks_one;

// The functions, of which a rank by itself needs none.
void mr_ranks_send(const struct mr_ranks *r, void *data, size_t bytes);
void mr_ranks_sum(const struct mr_ranks *r, int32_t *data, size_t count);
void mr_ranks_gather(const struct mr_ranks *r, const void *own, void *all, size_t bytes);
