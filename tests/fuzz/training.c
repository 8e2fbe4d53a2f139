// SPDX-License-Identifier: Apache-2.0
// Configurations of trainings. The first byte is the mode.
#include "config/read.h"

#include <math.h>
#include <string.h>

#include "fuzz.h"

static void check_input(const struct mr_training_input *in)
{
    fuzz_check(in->batch >= 0 && in->batch <= 1 << 20, "batch_size");
    fuzz_check(in->micro >= 0 && in->micro <= 1024, "micro_batch_size");
    fuzz_check(in->sequence >= 0 && in->sequence <= 1 << 20, "max_sequence_length");
    fuzz_check(in->seed >= 0, "shuffle_seed");
    fuzz_check(in->more >= 0 && in->more < MR_TRAINING_PATHS, "paths");
    for (int i = 0; i < in->more; i++)
        fuzz_check(in->data && *in->others[i], "a path");
    fuzz_check(!in->data || (*in->data && in->where && strlen(in->where) > 0), "data_dir");
}

// What a run relies on.
static void check_training(const struct mr_training *t)
{
    bool train = t->mode == MR_TRAIN || t->mode == MR_TRAIN_AND_EVAL;
    check_input(&t->train);
    for (int i = 0; i < MR_HELD; i++)
        check_input(&t->held[i]);
    fuzz_check(t->train.micro > 0 && t->accumulate > 0, "micro-batches");
    fuzz_check(!train || (t->train.data && t->train.micro * t->accumulate == t->train.batch),
               "a step's windows");
    fuzz_check(t->mode == MR_TRAIN || t->held[0].data, "data that is held out");
    fuzz_check(!train || (t->steps > 0) + (t->more_steps > 0) + (t->epochs > 0) == 1, "steps");
    fuzz_check(t->log_steps > 0 && t->eval_frequency >= 0 && t->checkpoint_steps >= 0, "counts");
    fuzz_check(t->beta1 >= 0 && t->beta1 < 1 && t->beta2 >= 0 && t->beta2 < 1, "betas");
    fuzz_check(t->epsilon > 0 && t->decay >= 0 && t->decay <= 1 && t->clip >= 0, "AdamW");
    const struct mr_update_options o = mr_training_optimizer(t);
    fuzz_check(mr_update_check(&o, NULL) == 0, "the optimizer");
    for (int step = 1; step < 1 << 20 && train; step *= 3) {
        double rate = mr_rates_at(&t->rates, step);
        fuzz_check(isfinite(rate) && rate >= 0 && rate <= 1, "a rate");
    }
}

static void check_shape(const struct mr_training *t)
{
    struct mr_error err = {0};
    struct mr_config c;
    int rc = mr_training_shape(t, &c, &err);
    fuzz_check_outcome(rc, &err);
    if (rc < 0)
        return;
    fuzz_check(c.arch && c.n_head > 0 && c.n_embd == c.n_head * c.head_dim, "heads");
    fuzz_check(c.vocab_size > 0 && c.n_layer > 0 && c.n_inner > 0, "sizes");
    fuzz_check(c.n_positions > 0 && c.n_positions <= MR_MAX_POSITIONS, "positions");
    fuzz_check(c.rotary_dim % 2 == 0 && c.rotary_dim <= c.head_dim, "rotary_dim");
    for (int i = 0; i < MR_TRAINING_STARTS; i++) {
        const struct mr_training_start *s = &t->model.start[i];
        fuzz_check(s->deviation >= 0 && (s->low == s->high || (s->low < 0 && s->high > 0)),
                   "an initialiser");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    struct mr_training t;
    if (size == 0)
        return 0;
    int rc = mr_training_parse(&t, data[0] % (MR_TRAINING_MODES + 1), data + 1, size - 1,
                               "fuzz.yaml", &err);
    fuzz_check_outcome(rc, &err);
    if (rc == 0) {
        check_training(&t);
        check_shape(&t);
    }
    mr_training_free(&t);
    return 0;
}
