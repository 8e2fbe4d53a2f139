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
static bool before(const struct mr_candidate *a, const struct mr_candidate *b)
{
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

// Sampling looks at few candidates, however many there are, so they are not sorted: a heap gives
// them up in their order, one by one, and keeps them behind itself.
struct queue {
    struct mr_candidate *list; // [size] the heap, then those that were taken, the last one first
    int size, taken, all;
};

static void sift(struct queue *q, int i)
{
    struct mr_candidate moved = q->list[i];
    for (int child; (child = 2 * i + 1) < q->size; i = child) {
        if (child + 1 < q->size && before(&q->list[child + 1], &q->list[child]))
            child++;
        if (!before(&q->list[child], &moved))
            break;
        q->list[i] = q->list[child];
    }
    q->list[i] = moved;
}

static void open_queue(struct queue *q)
{
    for (int i = q->size / 2 - 1; i >= 0; i--)
        sift(q, i);
}

// The i-th of all, in order.
static const struct mr_candidate *candidate(struct queue *q, int i)
{
    while (q->taken <= i) {
        struct mr_candidate best = q->list[0];
        q->list[0] = q->list[--q->size];
        sift(q, 0);
        q->list[q->size] = best;
        q->taken++;
    }
    return &q->list[q->all - 1 - i];
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
    struct queue q = {.list = scratch};
    for (int i = 0; i < n; i++)
        if (logits[i] == logits[i])
            scratch[q.size++] = (struct mr_candidate){logits[i], i};
    if (q.size == 0)
        return -1;
    q.all = q.size;
    int live = s->top_k > 0 && s->top_k < q.all ? s->top_k : q.all;
    int best = greedy(logits, n);
    double top = (double)logits[best], all = 0, t = (double)s->temperature;
    if (!isfinite(top))
        return best;
    for (int i = 0; live == q.all && i < live; i++) // by id, before they are moved
        all += exp(((double)scratch[i].logit - top) / t);
    open_queue(&q);
    for (int i = 0; live < q.all && i < live; i++)
        all += exp(((double)candidate(&q, i)->logit - top) / t);
    // The nucleus: as few of the most probable tokens as have top_p of the probability together.
    double keep = all;
    if (s->top_p > 0 && s->top_p < 1) {
        double sum = 0;
        for (int i = 0; i < live; i++) {
            sum += exp(((double)candidate(&q, i)->logit - top) / t);
            if (sum >= (double)s->top_p * all) {
                live = i + 1;
                keep = sum;
                break;
            }
        }
    }
    double left = uniform(s->seed, step) * keep;
    for (int i = 0; i < live; i++) {
        left -= exp(((double)candidate(&q, i)->logit - top) / t);
        if (left < 0)
            return candidate(&q, i)->id;
    }
    return candidate(&q, live - 1)->id;
}

bool mr_sampling_valid(const struct mr_sampling *s)
{
    return s->temperature >= 0 && s->top_k >= 0 && s->top_p >= 0 && s->top_p <= 1 &&
           s->repetition_penalty >= 0 && isfinite(s->temperature) &&
           isfinite(s->repetition_penalty) && fabsf(s->frequency_penalty) <= 2 &&
           fabsf(s->presence_penalty) <= 2;
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

void mr_penalise_new(float *logits, const struct mr_sampling *s, const int32_t *ids, size_t count,
                     int *times)
{
    for (size_t i = 0; i < count; i++)
        times[ids[i]]++;
    for (size_t i = 0; i < count; i++) {
        int32_t id = ids[i];
        if (times[id] > 0) // the first of them; the others find zero
            logits[id] -= (float)times[id] * s->frequency_penalty + s->presence_penalty;
        times[id] = 0;
    }
}
