// SPDX-License-Identifier: Apache-2.0
#include "store/rates.h"

#include <math.h>
#include <stddef.h>

#include "store/series.h"

static double share(int k, int n)
{
    return (double)(k < n ? k : n) / (double)n;
}

static int milestones_passed(const struct mr_rates *r, const struct mr_rate_part *p, int k)
{
    int n = 0;
    while (n < p->milestones && r->milestone[p->milestone + n] <= k)
        n++;
    return n;
}

// From 0 to `to` and back, again and again.
static int swing(int k, int to)
{
    long phase = k % (2L * to);
    return (int)(phase < to ? phase : 2L * to - phase);
}

// From `from` at x = 0 to `to` at x = 1.
static double anneal(const struct mr_rate_part *p, double from, double to, double x)
{
    return to + (from - to) * (p->linear ? 1 - x : mr_half_cosine(x));
}

// Up to the highest rate, in three phases back to the first one, and down to the last.
static double one_cycle(const struct mr_rate_part *p, int k)
{
    double top = p->share * p->steps - 1, end = p->steps - 1, last = p->from / p->divisor;
    double back = p->three_phase ? 2 * top : top;
    if (k <= top)
        return anneal(p, p->from, p->highest, k / top);
    if (k <= back)
        return anneal(p, p->highest, p->from, (k - top) / (back - top));
    return anneal(p, p->three_phase ? p->from : p->highest, last,
                  k < end ? (k - back) / (end - back) : 1);
}

// At index k of the curve.
static double value(const struct mr_rates *r, const struct mr_rate_part *p, int k)
{
    double y;
    switch (p->kind) {
    case MR_RATE_CONSTANT:
        return p->from;
    case MR_RATE_LINEAR:
        return k < p->steps ? p->from + (p->to - p->from) * share(k, p->steps) : p->to;
    case MR_RATE_POLYNOMIAL:
        return p->to + (p->from - p->to) * mr_power(1 - share(k, p->steps), p->factor);
    case MR_RATE_EXPONENTIAL:
        y = (double)k / (double)p->steps;
        return p->from * mr_power(p->factor, p->staircase ? floor(y) : y);
    case MR_RATE_PIECEWISE:
        return r->value[p->value + milestones_passed(r, p, k)];
    case MR_RATE_INVERSE_ROOT:
        return p->from * (p->factor / sqrt(k > p->steps ? k : p->steps));
    case MR_RATE_COSINE_DECAY:
        return p->to + (p->from - p->to) * mr_half_cosine(share(k, p->steps));
    case MR_RATE_COSINE_ANNEALING:
        return p->to + (p->from - p->to) * mr_half_cosine(share(swing(k, p->steps), p->steps));
    case MR_RATE_STEP:
        return p->from * mr_whole_power(p->factor, k / p->steps);
    case MR_RATE_MULTI_STEP:
        return p->from * mr_whole_power(p->factor, milestones_passed(r, p, k));
    case MR_RATE_ONE_CYCLE:
        return one_cycle(p, k);
    }
    return 0;
}

struct mr_rate_part *mr_rates_add(struct mr_rates *r, enum mr_rate_kind kind, int begin)
{
    if (r->parts == MR_RATE_PARTS)
        return NULL;
    r->begin[r->parts] = begin;
    r->part[r->parts] = (struct mr_rate_part){.kind = kind, .scale = 1};
    return &r->part[r->parts++];
}

double mr_rates_at(const struct mr_rates *r, int step)
{
    int k = step - 1 + r->first, i = r->parts - 1;
    while (i > 0 && k < r->begin[i])
        i--;
    const struct mr_rate_part *p = &r->part[i];
    return p->scale * value(r, p, k - r->begin[i]);
}

// ---- the short form ----------------------------------------------------------------------------

void mr_schedule_rates(struct mr_rates *rates, const struct mr_schedule *s)
{
    bool cosine = s->kind == MR_SCHEDULE_COSINE && s->steps > s->warmup;
    *rates = (struct mr_rates){.first = 1};
    if (s->warmup > 0)
        *mr_rates_add(rates, MR_RATE_LINEAR, 0) = (struct mr_rate_part){
            .kind = MR_RATE_LINEAR, .scale = s->rate, .to = 1, .steps = s->warmup};
    *mr_rates_add(rates, MR_RATE_CONSTANT, s->warmup) =
        (struct mr_rate_part){.kind = cosine ? MR_RATE_COSINE_DECAY : MR_RATE_CONSTANT,
                              .scale = s->rate,
                              .from = 1,
                              .to = s->least,
                              .steps = s->steps - s->warmup};
}

double mr_schedule_rate(const struct mr_schedule *s, int step)
{
    struct mr_rates rates;
    mr_schedule_rates(&rates, s);
    return mr_rates_at(&rates, step);
}
