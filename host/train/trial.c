// SPDX-License-Identifier: Apache-2.0
#include "train/trial.h"

#include <stdlib.h>

#include "store/mirror.h"
#include "store/volume.h"
#include "train/pass_fits.h"

static int open_store(struct mr_trial *t, struct mr_error *err)
{
    const struct mr_trial_options *o = &t->options;
    const struct mr_store_options options = {0};
    struct mr_checkpoint *checkpoint = NULL;
    struct mr_volume *volume = NULL;
    uint64_t size[MR_V_FILES];
    if (!o->weights) // zeros, which take no memory
        return mr_store_mirror(&t->store, o->config, 0, err);
    int rc = mr_checkpoint_open(&checkpoint, o->weights, MR_DECODER, NULL, err);
    if (rc < 0)
        return rc;
    rc = mr_store_sizes(o->config, 0, size, err);
    if (rc == 0)
        rc = mr_volume_memory(&volume, size, err);
    if (rc == 0) // takes the volume, whatever comes back
        rc = mr_store_open_volume(&t->store, volume, o->config, checkpoint, &options, err);
    mr_checkpoint_close(checkpoint);
    return rc;
}

static int count(void *arg, const struct mr_pass_program *p)
{
    (void)p;
    ++*(long *)arg;
    return 0;
}

int mr_trial_open(struct mr_trial *t, const struct mr_trial_options *options, struct mr_error *err)
{
    *t = (struct mr_trial){.options = *options};
    struct mr_trial_options *o = &t->options;
    struct mr_pass *plan = NULL;
    o->o.rows = 0;
    for (int i = 0; i < o->n_sequences; i++)
        o->o.rows += o->lengths[i];
    int rc = mr_pass_device(&t->dev, o->device, err);
    if (rc == 0)
        rc = mr_pass_plan(&plan, &mr_device_info(t->dev)->g, o->device, o->config, &o->o, err);
    if (rc == 0)
        rc = mr_pass_programs(plan, o->lengths, o->n_sequences, count, &t->programs, err);
    mr_pass_close(plan);
    if (rc == 0)
        rc = open_store(t, err);
    if (rc == 0)
        rc = mr_pass_open(&t->pass, t->dev, o->config, &o->o, err);
    return rc == 0 ? mr_pass_weights(t->pass, t->store, err) : rc;
}

int mr_trial_run(struct mr_trial *t, struct mr_error *err)
{
    const struct mr_trial_options *o = &t->options;
    int rows = o->o.rows;
    int *tokens = malloc(2 * (size_t)rows * sizeof *tokens);
    const struct mr_batch batch = {.n_sequences = o->n_sequences,
                                   .lengths = o->lengths,
                                   .tokens = tokens,
                                   .targets = tokens + rows};
    struct mr_loss loss = {0};
    if (!tokens)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a micro-batch");
    for (int i = 0; i < 2 * rows; i++)
        tokens[i] = (int)((uint32_t)(i + 1) * 2654435761u % (uint32_t)o->config->vocab_size);
    int rc = mr_pass_run(t->pass, &batch, &loss, err);
    free(tokens);
    return rc;
}

void mr_trial_close(struct mr_trial *t)
{
    mr_pass_close(t->pass);
    if (t->dev)
        mr_device_close(t->dev);
    mr_store_close(t->store);
    *t = (struct mr_trial){0};
}
