// SPDX-License-Identifier: Apache-2.0
#include "reference/reference.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "reference/stash.h"
#include "train/classifier.h"

struct mr_reference {
    const struct mr_params *weights;
    struct mr_tensor *views; // of the weights
    struct mr_pool *pool;
    struct mr_cpu *cpu;
    struct mr_stash *stash;
    struct mr_backward *backward;
};

static const struct mr_tensor *find(const void *reference, int layer, const struct mr_item *item,
                                    enum mr_part part)
{
    const struct mr_reference *r = reference;
    return &r->views[mr_params_index(r->weights->config, layer, item, part)];
}

static void view(struct mr_reference *r, size_t i)
{
    int rows, cols;
    mr_params_shape(r->weights->config, i, &rows, &cols);
    r->views[i] = (struct mr_tensor){.name = "a parameter",
                                     .dtype = MR_DTYPE_F32,
                                     .rank = 2,
                                     .shape = {rows, cols},
                                     .count = mr_params_size(r->weights, i),
                                     .data = (const unsigned char *)mr_params_at(r->weights, i),
                                     .bytes = mr_params_size(r->weights, i) * sizeof(float)};
}

int mr_reference_open(struct mr_reference **reference, const struct mr_params *weights,
                      struct mr_error *err)
{
    *reference = NULL;
    struct mr_reference *r = calloc(1, sizeof *r);
    if (!r)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory: the reference");
    r->weights = weights;
    r->views = calloc(weights->count, sizeof *r->views);
    r->pool = mr_pool_new(mr_pool_default());
    int rc = r->views && r->pool ? 0 : mr_fail(err, MR_ERR_MEMORY, "out of memory: the reference");
    for (size_t i = 0; !rc && i < weights->count; i++)
        view(r, i);
    struct mr_cpu_source source = {weights->config, find, r};
    if (!rc)
        rc = mr_cpu_open_source(&r->cpu, &source, err);
    if (!rc)
        rc = mr_stash_new(&r->stash, weights->config, err);
    if (!rc)
        rc = mr_backward_new(&r->backward, weights, err);
    if (rc)
        mr_reference_close(r);
    else
        *reference = r;
    return rc;
}

void mr_reference_close(struct mr_reference *reference)
{
    if (!reference)
        return;
    mr_backward_free(reference->backward);
    mr_stash_free(reference->stash);
    mr_cpu_close(reference->cpu);
    mr_pool_free(reference->pool);
    free(reference->views);
    free(reference);
}

// Logits of the rows with a target. The sequences live for this pass only.
static int forward(struct mr_reference *r, const struct mr_batch *batch, size_t rows, float *logits,
                   struct mr_error *err)
{
    int rc = 0, begun = 0;
    struct mr_cpu_row *in = calloc(rows, sizeof *in);
    int *sequences = calloc((size_t)batch->n_sequences, sizeof *sequences);
    if (!in || !sequences)
        rc = mr_fail(err, MR_ERR_MEMORY, "out of memory: %zu tokens", rows);
    for (size_t n = 0; !rc && begun < batch->n_sequences;) {
        rc = mr_cpu_seq_new(r->cpu, &sequences[begun], err);
        for (int t = 0; !rc && t < batch->lengths[begun]; t++, n++)
            in[n] = (struct mr_cpu_row){sequences[begun], batch->tokens[n],
                                        batch->targets[n] != MR_NO_TARGET};
        begun += rc == 0;
    }
    if (!rc)
        rc = mr_cpu_step(r->cpu, (int)rows, in, logits, err);
    while (begun > 0)
        mr_cpu_seq_free(r->cpu, sequences[--begun]);
    free(sequences);
    free(in);
    return rc;
}

// The targets there are, in order of the rows.
static int *targets_of(const struct mr_batch *batch, size_t rows, size_t targets)
{
    int *to = calloc(targets, sizeof *to);
    for (size_t r = 0, n = 0; to && r < rows; r++)
        if (batch->targets[r] != MR_NO_TARGET)
            to[n++] = batch->targets[r];
    return to;
}

// ---- encoders -----------------------------------------------------------------------------------

static int encode(struct mr_reference *r, const struct mr_batch *batch, float *rows,
                  struct mr_error *err)
{
    size_t n = (size_t)batch->n_sequences;
    struct mr_cpu_text *texts = calloc(n, sizeof *texts);
    if (!texts)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory: %zu texts", n);
    for (size_t t = 0, row = 0; t < n; row += (size_t)batch->lengths[t++])
        texts[t] = (struct mr_cpu_text){.tokens = batch->tokens + row,
                                        .types = batch->types ? batch->types + row : NULL,
                                        .count = batch->lengths[t]};
    int rc = mr_cpu_encode(r->cpu, batch->n_sequences, texts, rows, err);
    free(texts);
    return rc;
}

// The classifier of the texts' first rows; rows[] become the gradient of the last rows.
static int classify(struct mr_reference *r, const struct mr_batch *batch, size_t n_rows,
                    float *rows, struct mr_loss *loss, struct mr_params *gradient,
                    struct mr_error *err)
{
    const struct mr_config *c = r->weights->config;
    const struct mr_item *top = mr_arch_of(c)->top.items;
    size_t texts = (size_t)batch->n_sequences, width = (size_t)c->n_embd;
    float *first = calloc(texts * width, sizeof *first);
    struct mr_classifier classifier = {.width = c->n_embd, .labels = c->n_labels};
    struct mr_classifier_gradient g = {.rows = first};
    if (!first)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory: %zu texts", texts);
    for (int i = 0; i < MR_CLASSIFIER_TENSORS; i++) {
        size_t tensor = mr_params_index(c, c->n_layer, &top[i / 2], (enum mr_part)(i % 2));
        classifier.weights[i] = mr_params_at(r->weights, tensor);
        g.weights[i] = gradient ? mr_params_at(gradient, tensor) : NULL;
    }
    for (size_t t = 0, row = 0; t < texts; row += (size_t)batch->lengths[t++])
        memcpy(first + t * width, rows + row * width, width * sizeof *rows);
    int rc = mr_classifier_run(&classifier, r->pool, first, batch->labels, texts,
                               gradient ? &g : NULL, loss, err);
    memset(rows, 0, n_rows * width * sizeof *rows);
    for (size_t t = 0, row = 0; t < texts; row += (size_t)batch->lengths[t++])
        memcpy(rows + row * width, first + t * width, width * sizeof *rows);
    free(first);
    return rc;
}

static int run_encoder(struct mr_reference *r, const struct mr_batch *batch, size_t n_rows,
                       struct mr_loss *loss, struct mr_params *gradient, struct mr_error *err)
{
    float *rows;
    int rc = mr_backward_begin(r->backward, n_rows, 0, &rows, err);
    if (!rc && gradient)
        rc = mr_stash_begin(r->stash, n_rows, err);
    if (rc)
        return rc;
    mr_cpu_observe(r->cpu, gradient ? mr_stash_see : NULL, r->stash);
    rc = encode(r, batch, rows, err);
    mr_cpu_observe(r->cpu, NULL, NULL);
    if (!rc)
        rc = classify(r, batch, n_rows, rows, loss, gradient, err);
    if (!rc && gradient)
        mr_backward_run(r->backward, batch, r->stash, gradient);
    return rc;
}

int mr_reference_run(struct mr_reference *reference, const struct mr_batch *batch,
                     struct mr_loss *loss, struct mr_params *gradient, struct mr_error *err)
{
    const struct mr_config *c = reference->weights->config;
    size_t rows, wanted;
    float *logits;
    int rc = mr_batch_check(batch, c, &rows, &wanted, err);
    if (!rc && mr_arch_of(c)->encoder)
        return run_encoder(reference, batch, rows, loss, gradient, err);
    if (!rc)
        rc = mr_backward_begin(reference->backward, gradient ? rows : 0, wanted, &logits, err);
    if (!rc && gradient)
        rc = mr_stash_begin(reference->stash, rows, err);
    if (rc)
        return rc;
    int *targets = targets_of(batch, rows, wanted);
    if (!targets)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory: %zu targets", wanted);
    mr_cpu_observe(reference->cpu, gradient ? mr_stash_see : NULL, reference->stash);
    rc = forward(reference, batch, rows, logits, err);
    mr_cpu_observe(reference->cpu, NULL, NULL);
    if (!rc)
        rc = mr_loss_rows(reference->pool, logits, targets, wanted, (size_t)c->vocab_size,
                          gradient != NULL, loss, err);
    free(targets);
    if (!rc && gradient)
        mr_backward_run(reference->backward, batch, reference->stash, gradient);
    return rc;
}

void mr_reference_observe(struct mr_reference *reference, mr_backward_see *see, void *arg)
{
    mr_backward_observe(reference->backward, see, arg);
}

const struct mr_stash *mr_reference_stash(const struct mr_reference *reference)
{
    return reference->stash;
}
