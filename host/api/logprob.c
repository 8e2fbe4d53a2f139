// SPDX-License-Identifier: Apache-2.0
#include "api/logprob.h"

#include <math.h>

// The logarithm of the sum of exp(logit), by way of the largest so that nothing overflows.
static double log_sum(const float *logits, int n)
{
    double largest = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        if (logits[i] > largest)
            largest = logits[i];
    if (!isfinite(largest))
        return largest;
    for (int i = 0; i < n; i++)
        if (logits[i] == logits[i])
            sum += exp((double)logits[i] - largest);
    return largest + log(sum);
}

static double at(const float *logits, int32_t id, double all)
{
    double x = (double)logits[id];
    if (x != x || x == -INFINITY)
        return -INFINITY;
    return x == all ? 0 : x - all; // equal and infinite: all of the probability
}

double mr_logprob(const float *logits, int n, int32_t id)
{
    return at(logits, id, log_sum(logits, n));
}

int mr_top_logprobs(const float *logits, int n, int n_top, struct mr_logprob *top)
{
    int count = 0;
    for (int i = 0; i < n && n_top > 0; i++) {
        float x = logits[i];
        if (x != x || (count == n_top && !(x > logits[top[count - 1].id])))
            continue;
        int place = count < n_top ? count++ : count - 1;
        for (; place > 0 && x > logits[top[place - 1].id]; place--)
            top[place] = top[place - 1];
        top[place].id = i;
    }
    double all = log_sum(logits, n);
    for (int i = 0; i < count; i++)
        top[i].logprob = at(logits, top[i].id, all);
    return count;
}
