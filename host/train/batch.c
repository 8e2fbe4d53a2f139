// SPDX-License-Identifier: Apache-2.0
#include "train/batch.h"

#include "model/arch.h"

enum { MOST_ROWS = 1 << 24 }; // what indices of int hold, and no memory

int mr_batch_check_lengths(const int *lengths, int n_sequences, const struct mr_config *config,
                           size_t *rows, struct mr_error *err)
{
    size_t n = 0;
    for (int s = 0; s < n_sequences; s++) {
        if (lengths[s] < 1 || lengths[s] > config->n_positions)
            return mr_fail(err, MR_ERR_USAGE,
                           "sequence %d of the batch has %d tokens; 1 to %d are possible", s,
                           lengths[s], config->n_positions);
        n += (size_t)lengths[s];
        if (n > MOST_ROWS)
            return mr_fail(err, MR_ERR_USAGE, "the batch has more than %d tokens", MOST_ROWS);
    }
    *rows = n;
    return 0;
}

static int check_labels(const struct mr_batch *batch, const struct mr_config *config, size_t rows,
                        size_t *targets, struct mr_error *err)
{
    if (!batch->labels || batch->targets)
        return mr_fail(err, MR_ERR_USAGE, "a batch of an encoder has labels in place of targets");
    for (size_t r = 0; batch->types && r < rows; r++)
        if (batch->types[r] < 0 || batch->types[r] >= config->n_types)
            return mr_fail(err, MR_ERR_USAGE, "token %zu of the batch has type %d; there are %d", r,
                           batch->types[r], config->n_types);
    for (int s = 0; s < batch->n_sequences; s++)
        if (batch->labels[s] < 0 || batch->labels[s] >= config->n_labels)
            return mr_fail(err, MR_ERR_USAGE, "text %d of the batch has label %d; there are %d", s,
                           batch->labels[s], config->n_labels);
    *targets = (size_t)batch->n_sequences;
    return 0;
}

int mr_batch_check(const struct mr_batch *batch, const struct mr_config *config, size_t *rows,
                   size_t *targets, struct mr_error *err)
{
    size_t n, wanted = 0;
    int rc = mr_batch_check_lengths(batch->lengths, batch->n_sequences, config, &n, err);
    if (rc < 0)
        return rc;
    *rows = n;
    for (size_t r = 0; r < n; r++)
        if (batch->tokens[r] < 0 || batch->tokens[r] >= config->vocab_size)
            return mr_fail(err, MR_ERR_USAGE, "token %zu of the batch is %d; the vocabulary has %d",
                           r, batch->tokens[r], config->vocab_size);
    if (mr_arch_of(config)->encoder)
        return check_labels(batch, config, n, targets, err);
    if (!batch->targets)
        return mr_fail(err, MR_ERR_USAGE, "the batch has no targets");
    for (size_t r = 0; r < n; r++) {
        if (batch->targets[r] < MR_NO_TARGET || batch->targets[r] >= config->vocab_size)
            return mr_fail(err, MR_ERR_USAGE,
                           "target %zu of the batch is %d; the vocabulary has %d", r,
                           batch->targets[r], config->vocab_size);
        wanted += batch->targets[r] != MR_NO_TARGET;
    }
    if (wanted == 0)
        return mr_fail(err, MR_ERR_USAGE,
                       "no token of the batch has a target; its mask leaves nothing to learn");
    *targets = wanted;
    return 0;
}
