// SPDX-License-Identifier: Apache-2.0
// A model with its weights, and batches of one sequence that it speaks itself: each token is drawn
// from what the fp32 reference says of the ones before.
#ifndef MILLRACE_TESTS_UNIT_SPOKEN_H
#define MILLRACE_TESTS_UNIT_SPOKEN_H

#include <math.h>
#include <stdlib.h>

#include "cpu/cpu.h"
#include "reference/params.h"
#include "train/batch.h"
#include "unit/check.h"

struct spoken {
    struct mr_checkpoint *checkpoint;
    const struct mr_config *config;
    struct mr_params weights;
    struct mr_cpu *cpu;
    float *logits;
    int rows, *tokens, *targets;
    struct mr_batch batch;
};

static inline void spoken_open(struct spoken *s, const char *model, int rows)
{
    struct mr_error err = {0};
    check(mr_checkpoint_open(&s->checkpoint, model, MR_DECODER, NULL, &err), &err);
    s->config = mr_checkpoint_config(s->checkpoint);
    check(mr_params_new(&s->weights, s->config, &err), &err);
    check(mr_params_read(&s->weights, s->checkpoint, &err), &err);
    check(mr_cpu_open(&s->cpu, s->checkpoint, &err), &err);
    s->rows = rows;
    s->logits = allocate((size_t)s->config->vocab_size, sizeof *s->logits);
    s->tokens = allocate((size_t)rows + 1, sizeof *s->tokens);
    s->targets = s->tokens + 1;
    s->batch = (struct mr_batch){
        .n_sequences = 1, .lengths = &s->rows, .tokens = s->tokens, .targets = s->targets};
}

static inline void spoken_close(struct spoken *s)
{
    free(s->logits);
    free(s->tokens);
    mr_cpu_close(s->cpu);
    mr_params_free(&s->weights);
    mr_checkpoint_close(s->checkpoint);
}

// One of the tokens, by its probability: the largest of logits with Gumbel noise.
static inline int spoken_next(const struct spoken *s, uint64_t *state)
{
    int best = 0;
    double most = -INFINITY;
    for (int v = 0; v < s->config->vocab_size; v++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        double u = ((double)(*state >> 33) + 0.5) / 0x1p31, g = (double)s->logits[v] - log(-log(u));
        best = g > most ? v : best;
        most = g > most ? g : most;
    }
    return best;
}

// Each token's target is the next one.
static inline void spoken_batch(struct spoken *s, uint64_t seed)
{
    struct mr_error err = {0};
    int seq;
    check(mr_cpu_seq_new(s->cpu, &seq, &err), &err);
    s->tokens[0] = (int)(seed % (uint64_t)s->config->vocab_size);
    for (int t = 0; t < s->rows; t++) {
        struct mr_cpu_row row = {seq, s->tokens[t], true};
        check(mr_cpu_step(s->cpu, 1, &row, s->logits, &err), &err);
        s->tokens[t + 1] = spoken_next(s, &seed);
    }
    mr_cpu_seq_free(s->cpu, seq);
}

#endif
