// SPDX-License-Identifier: Apache-2.0
// Steps of a LoRA adapter in fp32, on the reference of training, for lora.py.
//   lora MODEL ADAPTER SEQUENCES STEPS RATE ID...
// One micro-batch, the same in each step: the ids are SEQUENCES sequences of equal length, and each
// one's last id is only a target. A line for each step: its loss.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/peft.h"
#include "reference/reference.h"
#include "store/update.h"

struct adapter {
    struct mr_checkpoint *checkpoint;
    const struct mr_config *config;
    struct mr_lora lora;
    struct mr_params base, now, gradient;
    float *mean, *square, *slope; // of lora.factors
    size_t count;
};

static int open_all(struct adapter *a, const char *model, const char *dir, struct mr_error *err)
{
    int rc = mr_checkpoint_open(&a->checkpoint, model, MR_DECODER, NULL, err);
    if (rc < 0)
        return rc;
    a->config = mr_checkpoint_config(a->checkpoint);
    rc = mr_peft_read(&a->lora, a->config, dir, err);
    if (rc == 0)
        rc = mr_params_new(&a->base, a->config, err);
    if (rc == 0)
        rc = mr_params_read(&a->base, a->checkpoint, err);
    if (rc == 0)
        rc = mr_params_new(&a->now, a->config, err);
    if (rc == 0)
        rc = mr_params_new(&a->gradient, a->config, err);
    if (rc < 0)
        return rc;
    a->count = (size_t)mr_lora_parameters(&a->lora);
    a->mean = calloc(a->count, sizeof *a->mean);
    a->square = calloc(a->count, sizeof *a->square);
    a->slope = calloc(a->count, sizeof *a->slope);
    return a->mean && a->square && a->slope ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory");
}

// W + f B A.
static void merge(struct adapter *a)
{
    memcpy(a->now.data, a->base.data, a->base.first[a->base.count] * sizeof *a->base.data);
    for (size_t i = 0; i < a->base.count; i++) {
        int share;
        const struct mr_lora_pair *p = mr_lora_of(&a->lora, i, &share);
        for (int o = 0; p && o < p->outputs / p->shares; o++)
            mr_lora_add(&a->lora, p, share * p->outputs / p->shares + o, 0, p->inputs,
                        mr_params_at(&a->now, i) + (size_t)o * (size_t)p->inputs);
    }
}

// dB = f dW A^T, dA = f B^T dW, of the mean loss.
static void derive(struct adapter *a, double targets)
{
    const int rank = a->lora.rank;
    const double f = (double)mr_lora_factor(&a->lora) / targets;
    memset(a->slope, 0, a->count * sizeof *a->slope);
    for (size_t i = 0; i < a->base.count; i++) {
        int share;
        const struct mr_lora_pair *p = mr_lora_of(&a->lora, i, &share);
        if (!p)
            continue;
        float *da = a->slope + (p->a - a->lora.factors), *db = a->slope + (p->b - a->lora.factors);
        for (int o = 0; o < p->outputs / p->shares; o++)
            for (int k = 0; k < rank; k++) {
                const int at = share * p->outputs / p->shares + o;
                const float *dw = mr_params_at(&a->gradient, i) + (size_t)o * (size_t)p->inputs;
                double sum = 0;
                for (int n = 0; n < p->inputs; n++) {
                    sum += (double)dw[n] * (double)p->a[k * p->inputs + n];
                    da[k * p->inputs + n] +=
                        (float)(f * (double)dw[n] * (double)p->b[at * rank + k]);
                }
                db[at * rank + k] = (float)(f * sum);
            }
    }
}

static int step(struct adapter *a, const struct mr_batch *batch, int number, double rate,
                struct mr_error *err)
{
    const struct mr_update_options o = {0.9, 0.999, 1e-8, 0, false, MR_ADAMW};
    struct mr_reference *reference;
    struct mr_loss loss = {0};
    merge(a);
    memset(a->gradient.data, 0, a->base.first[a->base.count] * sizeof *a->gradient.data);
    int rc = mr_reference_open(&reference, &a->now, err);
    if (rc < 0)
        return rc;
    rc = mr_reference_run(reference, batch, &loss, &a->gradient, err);
    mr_reference_close(reference);
    if (rc < 0)
        return rc;
    derive(a, (double)loss.rows);
    const struct mr_update_factors f = mr_update_factors_of(&o, number, rate, 1, false);
    mr_update_plain(&f, a->lora.factors, a->mean, a->square, a->slope, a->count);
    printf("%.9f\n", mr_loss_mean(&loss));
    return 0;
}

int main(int argc, char **argv)
{
    struct mr_error err = {0};
    struct adapter a = {0};
    int sequences = argc > 3 ? atoi(argv[3]) : 0,
        length = sequences > 0 ? (argc - 6) / sequences - 1 : 0;
    if (length <= 0) {
        fprintf(stderr, "usage: lora MODEL ADAPTER SEQUENCES STEPS RATE ID...\n");
        return 2;
    }
    int rows = sequences * length, row = 0;
    int *lengths = calloc((size_t)(sequences + 2 * rows), sizeof *lengths);
    if (!lengths)
        return 1;
    int *tokens = lengths + sequences, *targets = tokens + rows;
    for (int s = 0; s < sequences; s++) {
        lengths[s] = length;
        for (int i = 0; i < length; i++, row++) {
            tokens[row] = atoi(argv[6 + s * (length + 1) + i]);
            targets[row] = atoi(argv[7 + s * (length + 1) + i]);
        }
    }
    const struct mr_batch batch = {
        .n_sequences = sequences, .lengths = lengths, .tokens = tokens, .targets = targets};
    int rc = open_all(&a, argv[1], argv[2], &err);
    for (int i = 1; i <= atoi(argv[4]) && rc == 0; i++)
        rc = step(&a, &batch, i, atof(argv[5]), &err);
    if (rc < 0)
        fprintf(stderr, "lora: %s\n", err.text);
    mr_params_free(&a.base);
    mr_params_free(&a.now);
    mr_params_free(&a.gradient);
    if (a.lora.count > 0)
        mr_lora_free(&a.lora);
    free(a.mean);
    free(a.square);
    free(a.slope);
    mr_checkpoint_close(a.checkpoint);
    free(lengths);
    return rc < 0;
}
