// SPDX-License-Identifier: Apache-2.0
#include "plan/area.h"

#include "pack/layout.h"

// Rounded up.
static long parts(long all, long each)
{
    return (all + each - 1) / each;
}

// Blocks of 18 Kb: the best of their shapes, 512 x 36 to 16K x 1; the parity bits count from nine
// on.
static long halves(long width, long depth)
{
    long best = 0;
    for (long words = 512, bits = 36;; words *= 2, bits = bits > 9 ? bits / 2 : bits * 4 / 9) {
        long n = parts(width, bits) * parts(depth, words);
        if (best == 0 || n < best)
            best = n;
        if (bits == 1)
            break;
    }
    return best;
}

// `copies` memories of `depth` words, mapped as mr_ram_1r1w says.
static void add(struct mr_plan_memories *m, long copies, long width, long depth)
{
    m->bytes += (double)(copies * width * depth) / 8;
    if (depth >= 4096 && width >= 64)
        m->uram += (double)(copies * parts(width, 72) * parts(depth, 4096));
    else if (depth > 64 && width * depth > 8192)
        m->bram += (double)(copies * halves(width, depth)) / 2;
}

struct mr_plan_memories mr_plan_memories_of(const struct mr_geometry *g)
{
    struct mr_plan_memories m = {0};
    long n = g->n, v = 4L * n, t = g->t, beat = 8L * MR_BEAT, words = g->w_max / 64;
    // activations, q/k/v, residual, rotary, the epilogue's staging
    add(&m, g->r, 264, t / g->r * g->act_words);
    add(&m, 1, 528, t * g->qkv_words);
    add(&m, 1, 32 * v, t * g->d_max / v);
    add(&m, 1, 32 * v, t * g->rot_max / v);
    add(&m, 1, 32 * v, t * 64 / v);
    // rows: their table, exponents, read buffer; prefix maxima; write buffer
    add(&m, 1, 65, t);
    add(&m, 1, 48, t);
    add(&m, 2, 8, t);
    add(&m, 1, beat, 128);
    add(&m, 2, 16, t * words);
    add(&m, 1, beat, 128);
    add(&m, 1, 8, t * 4);
    // a channel: stream FIFO, ring, its codes, vectors, drain
    add(&m, n, beat, 256);
    add(&m, n, 1024, g->ring);
    add(&m, n, 32, g->ring);
    add(&m, n, beat, g->d_max / v / 2);
    // its attention lane: KV FIFO, q, scores, accumulators of PV, maxima of blocks
    add(&m, n, beat, 128);
    add(&m, n, 528, 8 * words);
    add(&m, n, 32, g->scores / n);
    add(&m, n, 3072, 4 * words);
    add(&m, 2 * n, 16, 8 * words);
    if (g->train) { // rows again, and the gradients of 64 columns
        long width = 32 * v > 512 ? 32 * v : 512;
        add(&m, 1, 32 * v, t * g->d_max / v);
        add(&m, 1, width, t * 64 * 32 / width);
    }
    return m;
}
