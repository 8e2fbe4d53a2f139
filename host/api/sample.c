// SPDX-License-Identifier: Apache-2.0
#include "api/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// SplitMix64 (Steele, Lea, Flood 2014): a hash of seed and step as 53 random bits in [0, 1).
static double uniform(uint64_t seed, uint64_t step)
{
    uint64_t z = seed * 0x9E3779B97F4A7C15u + (step + 1) * 0xD1B54A32D192ED03u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

// Largest logit first, then the lowest id.
static int before(const void *a, const void *b)
{
    const struct mr_candidate *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit < y->logit ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static int greedy(const float *logits, int n)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (logits[i] == logits[i] && (best < 0 || logits[i] > logits[best]))
            best = i;
    return best;
}

int mr_sample(const struct mr_sampling *s, const float *logits, int n, uint64_t step,
              struct mr_candidate *scratch)
{
    if (s->temperature <= 0)
        return greedy(logits, n);
    int live = 0;
    for (int i = 0; i < n; i++)
        if (logits[i] == logits[i])
            scratch[live++] = (struct mr_candidate){logits[i], i};
    if (live == 0)
        return -1;
    qsort(scratch, (size_t)live, sizeof *scratch, before);
    if (s->top_k > 0 && s->top_k < live)
        live = s->top_k;
    if (!isfinite(scratch[0].logit))
        return scratch[0].id;
    double all = 0, t = (double)s->temperature;
    for (int i = 0; i < live; i++)
        all += exp(((double)scratch[i].logit - (double)scratch[0].logit) / t);
    // The nucleus: as few of the most probable tokens as have top_p of the probability together.
    double keep = all;
    if (s->top_p > 0 && s->top_p < 1) {
        double sum = 0;
        for (int i = 0; i < live; i++) {
            sum += exp(((double)scratch[i].logit - (double)scratch[0].logit) / t);
            if (sum >= (double)s->top_p * all) {
                live = i + 1;
                keep = sum;
                break;
            }
        }
    }
    double left = uniform(s->seed, step) * keep;
    for (int i = 0; i < live; i++) {
        left -= exp(((double)scratch[i].logit - (double)scratch[0].logit) / t);
        if (left < 0)
            return scratch[i].id;
    }
    return scratch[live - 1].id;
}

bool mr_sampling_valid(const struct mr_sampling *s)
{
    return s->temperature >= 0 && s->top_k >= 0 && s->top_p >= 0 && s->top_p <= 1 &&
           s->repetition_penalty >= 0 && isfinite(s->temperature) &&
           isfinite(s->repetition_penalty);
}

void mr_penalise(float *logits, int n, float penalty, const int32_t *ids, size_t count,
                 unsigned char *seen)
{
    memset(seen, 0, (size_t)n / 8 + 1);
    for (size_t i = 0; i < count; i++) {
        int32_t id = ids[i];
        unsigned char bit = (unsigned char)(1U << id % 8);
        if (!(seen[id / 8] & bit)) // once, however often it occurs
            logits[id] = logits[id] > 0 ? logits[id] / penalty : logits[id] * penalty;
        seen[id / 8] |= bit;
    }
}
