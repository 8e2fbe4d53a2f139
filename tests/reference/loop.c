// SPDX-License-Identifier: Apache-2.0
#include "reference/loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/pool.h"
#include "reference/reference.h"

enum { SHARE = 1 << 15 }; // parameters that a thread updates at a time

struct mr_loop {
    struct mr_config config;
    struct mr_loop_options options;
    struct mr_params weights, gradients, mean, square; // the last two: AdamW's moments
    struct mr_reference *reference;
    struct mr_pool *pool;
    struct mr_loss loss; // of the micro-batches of this step
    int step;            // that are done
};

static int check_options(const struct mr_loop_options *o, struct mr_error *err)
{
    const struct mr_schedule *s = &o->schedule;
    int rc = mr_update_check(&o->adamw, err);
    if (rc)
        return rc;
    if (!(s->rate > 0 && s->rate <= 1 && s->least >= 0 && s->least <= 1 && s->warmup >= 0))
        return mr_fail(err, MR_ERR_USAGE,
                       "the learning rate is %g (least share %g, warm-up %d steps); above 0 to 1",
                       s->rate, s->least, s->warmup);
    if (!(o->clip >= 0 && o->clip < INFINITY))
        return mr_fail(err, MR_ERR_USAGE, "the norm to clip at is %g; 0 (off) or more", o->clip);
    return 0;
}

int mr_loop_open(struct mr_loop **loop, const struct mr_checkpoint *checkpoint,
                 const struct mr_loop_options *options, struct mr_error *err)
{
    *loop = NULL;
    int rc = check_options(options, err);
    if (rc)
        return rc;
    struct mr_loop *l = calloc(1, sizeof *l);
    if (!l)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory: the training");
    l->config = mr_config_to_train(mr_checkpoint_config(checkpoint));
    l->options = *options;
    l->pool = mr_pool_new(mr_pool_default());
    struct mr_params *all[] = {&l->weights, &l->gradients, &l->mean, &l->square};
    rc = l->pool ? 0 : mr_fail(err, MR_ERR_MEMORY, "out of memory: the training");
    for (size_t i = 0; i < sizeof all / sizeof *all && !rc; i++)
        rc = mr_params_new(all[i], &l->config, err);
    if (!rc)
        rc = mr_params_read(&l->weights, checkpoint, err);
    if (!rc)
        rc = mr_reference_open(&l->reference, &l->weights, err);
    if (rc)
        mr_loop_close(l);
    else
        *loop = l;
    return rc;
}

void mr_loop_close(struct mr_loop *loop)
{
    if (!loop)
        return;
    mr_reference_close(loop->reference);
    mr_params_free(&loop->weights);
    mr_params_free(&loop->gradients);
    mr_params_free(&loop->mean);
    mr_params_free(&loop->square);
    mr_pool_free(loop->pool);
    free(loop);
}

int mr_loop_add(struct mr_loop *loop, const struct mr_batch *batch, struct mr_error *err)
{
    return mr_reference_run(loop->reference, batch, &loop->loss, &loop->gradients, err);
}

int mr_loop_evaluate(struct mr_loop *loop, const struct mr_batch *batch, struct mr_loss *loss,
                     struct mr_error *err)
{
    return mr_reference_run(loop->reference, batch, loss, NULL, err);
}

// The sum of the squares of all gradients.
static int squares(const struct mr_loop *l, double *sum, struct mr_error *err)
{
    *sum = 0;
    for (size_t i = 0; i < l->gradients.count; i++) {
        const float *g = mr_params_at(&l->gradients, i);
        double own = 0;
        for (size_t k = 0; k < mr_params_size(&l->gradients, i); k++)
            own += (double)g[k] * (double)g[k];
        struct mr_tensor_spec t = mr_tensor_spec(&l->config, i);
        char name[MR_NAME];
        if (!isfinite(own))
            return mr_fail(err, MR_ERR_FORMAT,
                           "the gradient of %s is infinite or not a number; the weights stay as "
                           "they were",
                           mr_tensor_name(&l->config, t.layer, t.item, t.part, name));
        *sum += own;
    }
    return 0;
}

// The update of a tensor, in shares.
struct work {
    struct mr_loop *loop;
    size_t tensor;
    struct mr_update_factors factors;
    mr_update_elements *update;
};

static void some_parameters(void *arg, int task, int worker)
{
    (void)worker;
    const struct work *w = arg;
    struct mr_loop *l = w->loop;
    size_t from = (size_t)task * SHARE, n = mr_params_size(&l->weights, w->tensor) - from;
    w->update(&w->factors, mr_params_at(&l->weights, w->tensor) + from,
              mr_params_at(&l->mean, w->tensor) + from, mr_params_at(&l->square, w->tensor) + from,
              mr_params_at(&l->gradients, w->tensor) + from, n < SHARE ? n : SHARE);
}

static void update(struct mr_loop *l, double rate, double scale)
{
    for (size_t i = 0; i < l->weights.count; i++) {
        struct mr_tensor_spec t = mr_tensor_spec(&l->config, i);
        bool decays = mr_update_decays(&l->options.adamw, mr_arch_of(&l->config), t.item, t.part);
        struct work w = {l, i,
                         mr_update_factors_of(&l->options.adamw, l->step, rate, scale, decays),
                         mr_update_sets[mr_simd_best()]};
        mr_pool_run(l->pool, (int)((mr_params_size(&l->weights, i) + SHARE - 1) / SHARE),
                    some_parameters, &w, true);
    }
}

int mr_loop_apply(struct mr_loop *loop, struct mr_loop_step *done, struct mr_error *err)
{
    struct mr_loss loss = loop->loss;
    if (loss.rows == 0)
        return mr_fail(err, MR_ERR_USAGE, "the step has no micro-batch to learn from");
    double sum;
    int rc = squares(loop, &sum, err);
    if (!rc) {
        double clip = loop->options.clip, norm = sqrt(sum) / (double)loss.rows;
        double factor = clip > 0 && norm > clip ? clip / norm : 1.0;
        double rate = mr_schedule_rate(&loop->options.schedule, ++loop->step);
        update(loop, rate, factor / (double)loss.rows);
        *done = (struct mr_loop_step){loop->step, loss, norm, rate};
    }
    struct mr_params *g = &loop->gradients;
    memset(g->data, 0, g->first[g->count] * sizeof *g->data);
    loop->loss = (struct mr_loss){0};
    return rc;
}

struct mr_params *mr_loop_weights(struct mr_loop *loop)
{
    return &loop->weights;
}

const struct mr_params *mr_loop_gradients(const struct mr_loop *loop)
{
    return &loop->gradients;
}
