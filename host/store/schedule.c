// SPDX-License-Identifier: Apache-2.0
#include "store/rates.h"

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
