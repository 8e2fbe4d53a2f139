// SPDX-License-Identifier: Apache-2.0
#include "train/step.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "card/update.h"
#include "model/arch.h"
#include "store/mirror.h"

struct kept_batch {
    struct mr_batch batch;
    int *memory; // lengths, tokens, targets or types and labels
};

struct mr_step {
    struct mr_store *store;
    struct mr_pass *pass;
    const struct mr_ranks *ranks;
    struct mr_card_update *card;     // NULL: the host updates the weights, as host[] says
    struct mr_weight_upload *upload; // NULL: only behind a step
    char host[160];
    const struct mr_config *config;
    size_t tensors;
    // The step under way, of `most` micro-batches; 0: none has begun. `added` were, and
    // batches[count] of these are this rank's.
    struct kept_batch *batches;
    int count, added, most;
    struct mr_loss loss;
    bool measures; // some unit is not known: the micro-batches so far said which they want
    int *wanted;   // [tensors] the largest
    int *units;    // [tensors] the store's before the step
    bool begun;    // and not ended: the store's may be others
    int repeated;
    size_t raised;
    struct mr_pass_counts before; // of the device's counts, what is not the step's
    struct mr_pass_streaming streamed_before;
    double products; // of the array in a cycle, in blocks of 32
};

static void forget(struct mr_step *s)
{
    for (int i = 0; i < s->count; i++)
        free(s->batches[i].memory);
    free(s->batches);
    s->batches = NULL;
    s->count = s->added = s->most = 0;
}

// Streams that other ranks need, too, are made by the host.
static int update_where(struct mr_step *s, struct mr_device *device, struct mr_error *err)
{
    static const char several[] = "several ranks share its steps";
    static const char layers[] = "its memory does not hold all layers";
    static const char encoder[] = "the host computes a part of an encoder";
    const struct mr_device_streams streams = mr_pass_streams(s->pass);
    const char *why, *reason = s->ranks->count > 1                       ? several
                               : mr_pass_streaming(s->pass).streamed > 0 ? layers
                               : mr_arch_of(s->config)->encoder          ? encoder
                                                                         : NULL;
    if (reason) {
        if (mr_device_updates(device, &why))
            (void)snprintf(s->host, sizeof s->host, "%s", reason);
        return 0;
    }
    return mr_card_update_open(&s->card, s->store, device, &streams, s->host, err);
}

static int send_item(void *arg, int item, struct mr_error *err)
{
    struct mr_step *s = arg;
    return mr_pass_item_weights(s->pass, s->store, item, err);
}

int mr_step_open(struct mr_step **step, struct mr_store *store, struct mr_device *device,
                 const struct mr_pass_options *options, const struct mr_ranks *ranks,
                 struct mr_error *err)
{
    struct mr_step *s = *step = calloc(1, sizeof *s);
    if (!s)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    s->store = store;
    s->ranks = ranks ? ranks : &mr_ranks_one;
    s->config = mr_store_config(store);
    s->tensors = mr_tensor_specs(s->config);
    s->wanted = calloc(s->tensors, sizeof *s->wanted);
    s->units = calloc(s->tensors, sizeof *s->units);
    int rc = s->wanted && s->units ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    if (rc == 0)
        rc = mr_pass_open(&s->pass, device, s->config, options, err);
    const struct mr_geometry *g = &mr_device_info(device)->g;
    s->products = (double)g->r * 4 * g->n;
    if (rc == 0)
        rc = mr_pass_weights(s->pass, store, err);
    if (rc == 0)
        rc = update_where(s, device, err);
    if (rc == 0 && !s->card && s->ranks->rank == 0)
        rc = mr_weight_upload_open(&s->upload, store, device, send_item, s, err);
    if (rc < 0) {
        mr_step_close(s);
        *step = NULL;
    }
    return rc;
}

void mr_step_close(struct mr_step *step)
{
    if (!step)
        return;
    forget(step);
    mr_card_update_close(step->card);
    mr_weight_upload_close(step->upload);
    mr_pass_close(step->pass);
    free(step->wanted);
    free(step->units);
    free(step);
}

uint64_t mr_step_bytes(const struct mr_step *step)
{
    const struct mr_pass_memory m = mr_pass_memory(step->pass);
    return mr_pass_bytes(&m) + mr_card_update_bytes(step->card);
}

struct mr_pass_streaming mr_step_streaming(const struct mr_step *step)
{
    return mr_pass_streaming(step->pass);
}

bool mr_step_on_device(const struct mr_step *step, enum mr_update_kind kind, const char **why)
{
    *why = step->card ? "its kernel has AdamW's update alone" : step->host;
    return step->card && kind == MR_ADAMW;
}

int mr_step_begin(struct mr_step *step, int micro_batches, struct mr_error *err)
{
    forget(step);
    int rc = mr_store_begin(step->store, micro_batches, err);
    for (size_t i = 0; i < step->tensors && rc == 0; i++)
        if (step->begun)
            rc = mr_store_set_unit(step->store, i, step->units[i], err);
        else
            step->units[i] = mr_store_unit(step->store, i);
    if (rc < 0)
        return rc;
    step->begun = true;
    step->batches = calloc((size_t)micro_batches, sizeof *step->batches);
    if (!step->batches)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a step of %d micro-batches",
                       micro_batches);
    step->most = micro_batches;
    step->loss = (struct mr_loss){0};
    step->repeated = 0;
    step->raised = 0;
    step->before = mr_pass_counts(step->pass);
    step->streamed_before = mr_pass_streaming(step->pass);
    step->measures = !mr_store_has_units(step->store);
    for (size_t i = 0; i < step->tensors; i++)
        step->wanted[i] = INT_MIN;
    mr_pass_set_limit(step->pass, (uint32_t)(INT32_MAX / micro_batches));
    return 0;
}

static int keep(struct mr_step *s, const struct mr_batch *batch, struct mr_error *err)
{
    size_t rows, n = (size_t)batch->n_sequences;
    int rc = mr_pass_check(s->pass, batch, &rows, err);
    if (rc < 0)
        return rc;
    int *memory = calloc(2 * (n + rows), sizeof *memory), *behind = memory + n + rows;
    if (!memory)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a micro-batch of %zu tokens", rows);
    struct mr_batch kept = {
        .n_sequences = batch->n_sequences, .lengths = memory, .tokens = memory + n};
    memcpy(memory, batch->lengths, n * sizeof *memory);
    memcpy(memory + n, batch->tokens, rows * sizeof *memory);
    if (batch->labels) {
        kept.types = behind;
        kept.labels = behind + rows;
        memcpy(behind + rows, batch->labels, n * sizeof *memory);
        if (batch->types)
            memcpy(behind, batch->types, rows * sizeof *memory);
    } else {
        kept.targets = behind;
        memcpy(behind, batch->targets, rows * sizeof *memory);
    }
    s->batches[s->count++] = (struct kept_batch){kept, memory};
    return 0;
}

// ---- a micro-batch into the store --------------------------------------------------------------

static int add_rows(struct mr_step *s, size_t i, const struct mr_batch *batch, struct mr_error *err)
{
    size_t stride, rows = 0;
    const float *gradient = mr_pass_row_gradient(s->pass, &stride);
    int *positions = NULL, rc = 0;
    enum mr_by by = mr_tensor_spec(s->config, i).item->by;
    const int *index = by == MR_BY_TYPE ? batch->types : batch->tokens;
    for (int k = 0; k < batch->n_sequences; k++)
        rows += (size_t)batch->lengths[k];
    if (by == MR_BY_POSITION) {
        index = positions = malloc(rows * sizeof *positions);
        if (!positions)
            return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu positions", rows);
        for (int k = 0, r = 0; k < batch->n_sequences; k++)
            for (int t = 0; t < batch->lengths[k]; t++)
                positions[r++] = t;
    }
    rc = mr_store_add_rows(s->store, i, index, rows, gradient, stride, err);
    free(positions);
    return rc;
}

// Does tensor i have gradients of the rows that were looked up?
static bool looked_up(const struct mr_step *s, size_t i)
{
    return mr_tensor_spec(s->config, i).item->kind == MR_EMBED && mr_store_learns(s->store, i);
}

// The gradient of a tensor that the host computes, as integers.
static int add_of_host(struct mr_step *s, size_t i, struct mr_error *err)
{
    size_t count;
    void *region = malloc(mr_store_region(s->store, i));
    if (!region)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the gradient of a tensor");
    mr_store_round(s->store, i, mr_pass_host_gradient(s->pass, i, &count), region);
    int rc = mr_store_add(s->store, i, region, err);
    free(region);
    return rc;
}

// The gradients of the pass that has just run.
static int add_gradients(struct mr_step *s, const struct mr_batch *batch, struct mr_error *err)
{
    size_t count;
    int rc = 0;
    for (size_t i = 0; i < s->tensors && rc == 0; i++) {
        struct mr_pass_gradient g = mr_pass_gradient(s->pass, i);
        if (g.tiles)
            rc = mr_store_add(s->store, i, g.tiles, err);
        if (rc == 0 && mr_pass_host_gradient(s->pass, i, &count))
            rc = add_of_host(s, i, err);
        if (rc == 0 && looked_up(s, i))
            rc = add_rows(s, i, batch, err);
    }
    return rc == 0 ? mr_store_end(s->store, err) : rc;
}

static int run(struct mr_step *s, const struct mr_batch *batch, struct mr_loss *loss,
               struct mr_error *err)
{
    for (size_t i = 0; i < s->tensors; i++)
        mr_pass_set_unit(s->pass, i, mr_store_unit(s->store, i));
    int rc = mr_pass_run(s->pass, batch, loss, err);
    return rc == 0 ? add_gradients(s, batch, err) : rc;
}

static int run_all_again(struct mr_step *s, struct mr_error *err)
{
    struct mr_loss loss = {0};
    int rc = mr_store_begin(s->store, s->most, err);
    for (int k = 0; k < s->count && rc == 0; k++)
        rc = run(s, &s->batches[k].batch, &loss, err);
    return rc;
}

// ---- the first units ---------------------------------------------------------------------------

// A unit in which no sum of so many numbers can be too large.
static int guess(struct mr_step *s, size_t i, const float *gradient, size_t n, size_t sum_of)
{
    float most = 0;
    int exponent;
    for (size_t k = 0; k < n; k++)
        most = isfinite(gradient[k]) ? fmaxf(most, fabsf(gradient[k])) : most;
    (void)frexpf(most, &exponent); // most < 2^exponent
    int bits = 64 - __builtin_clzll(sum_of),
        limit = 32 - __builtin_clz((uint32_t)mr_store_limit(s->store, i));
    return exponent + bits + 1 - limit;
}

// Of a tensor whose gradient comes in fp32: a table that is only looked up, or the host's.
static int guess_of_floats(struct mr_step *s, size_t i, const struct mr_batch *batch)
{
    size_t stride, rows = 0, count;
    const float *own = mr_pass_host_gradient(s->pass, i, &count);
    if (own)
        return guess(s, i, own, count, 1);
    own = mr_pass_row_gradient(s->pass, &stride);
    for (int k = 0; k < batch->n_sequences; k++)
        rows += (size_t)batch->lengths[k];
    return guess(s, i, own, rows * stride, rows);
}

// Which units the micro-batch wants, by itself: from a guess that holds every sum, by the rule of
// the next step. The largest of all micro-batches has no order.
static int measure(struct mr_step *s, const struct mr_batch *batch, struct mr_loss *loss,
                   struct mr_error *err)
{
    size_t count;
    mr_pass_guess_units(s->pass);
    int rc = mr_pass_run(s->pass, batch, loss, err);
    if (rc == 0)
        rc = mr_store_begin(s->store, s->most, err);
    for (size_t i = 0; i < s->tensors && rc == 0; i++) {
        struct mr_pass_gradient g = mr_pass_gradient(s->pass, i);
        if (g.tiles || looked_up(s, i) || mr_pass_host_gradient(s->pass, i, &count))
            rc = mr_store_set_unit(s->store, i, g.tiles ? g.unit : guess_of_floats(s, i, batch),
                                   err);
    }
    if (rc == 0)
        rc = add_gradients(s, batch, err);
    if (rc == 0)
        rc = mr_store_settle(s->store, err); // too large a sum here shows again with its unit
    for (size_t i = 0; i < s->tensors && rc >= 0; i++) {
        int unit = mr_store_unit(s->store, i);
        s->wanted[i] = unit > s->wanted[i] ? unit : s->wanted[i];
    }
    return rc < 0 ? rc : 0;
}

static int take_units(struct mr_step *s, struct mr_error *err)
{
    int rc = mr_store_begin(s->store, s->most, err);
    for (size_t i = 0; i < s->tensors && rc == 0; i++)
        if (mr_store_learns(s->store, i))
            rc = mr_store_set_unit(s->store, i, s->wanted[i], err);
    s->repeated++;
    return rc == 0 ? run_all_again(s, err) : rc;
}

// ---- the step ----------------------------------------------------------------------------------

// What every rank wants of the first units, and the losses: of all ranks.
static int share(struct mr_step *s, struct mr_error *err)
{
    size_t n = s->tensors, ranks = (size_t)s->ranks->count;
    int *wanted = calloc(ranks * n, sizeof *wanted);
    struct mr_loss *loss = calloc(ranks, sizeof *loss), own = s->loss;
    int rc = wanted && loss ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for %zu ranks", ranks);
    if (rc == 0) {
        mr_ranks_gather(s->ranks, s->wanted, wanted, n * sizeof *wanted);
        mr_ranks_gather(s->ranks, &own, loss, sizeof own);
        s->loss = (struct mr_loss){0};
    }
    for (size_t k = 0; rc == 0 && k < ranks * n; k++)
        s->wanted[k % n] = wanted[k] > s->wanted[k % n] ? wanted[k] : s->wanted[k % n];
    for (size_t k = 0; rc == 0 && k < ranks; k++)
        mr_loss_add(&s->loss, loss + k);
    free(wanted);
    free(loss);
    return rc;
}

// Behind the last micro-batch: until each sum of each rank holds, then all sums to rank 0.
static int finish(struct mr_step *s, struct mr_error *err)
{
    int rc = share(s, err);
    if (rc == 0 && s->measures)
        rc = take_units(s, err);
    while (rc == 0 && (rc = mr_store_share(s->store, s->ranks, err)) == 0) {
        size_t raised = mr_store_raise(s->store);
        if (raised == 0)
            break;
        s->repeated++;
        s->raised += raised;
        rc = run_all_again(s, err);
    }
    if (rc == 0)
        mr_store_collect(s->store, s->ranks);
    return rc;
}

static int add(struct mr_step *s, const struct mr_batch *batch, struct mr_loss *loss,
               struct mr_error *err)
{
    bool own = s->added % s->ranks->count == s->ranks->rank;
    int rc = own ? keep(s, batch, err) : 0;
    if (rc < 0)
        return rc;
    s->added++;
    if (own)
        batch = &s->batches[s->count - 1].batch;
    if (own)
        rc = s->measures ? measure(s, batch, loss, err) : run(s, batch, loss, err);
    if (rc == 0)
        mr_loss_add(&s->loss, loss);
    if (rc == 0 && s->added == s->most)
        rc = finish(s, err);
    if (rc < 0)
        forget(s);
    return rc;
}

int mr_step_add(struct mr_step *step, const struct mr_batch *batch, struct mr_loss *loss,
                struct mr_error *err)
{
    struct mr_loss own = {0};
    if (step->added >= step->most)
        return mr_fail(err, MR_ERR_USAGE,
                       "a micro-batch before a step begins, or behind its last one (%d)",
                       step->most);
    int rc = add(step, batch, &own, err);
    if (rc == 0 && loss)
        *loss = own;
    return rc;
}

bool mr_step_whole(const struct mr_step *step)
{
    return step->most > 0 && step->added == step->most;
}

// Of the step, not of what was before.
static uint64_t counted(const struct mr_step *step, const struct mr_pass_counts *now, int counter)
{
    return now->counter[counter] - step->before.counter[counter];
}

static struct mr_pass_streaming less(struct mr_pass_streaming a, const struct mr_pass_streaming *b)
{
    a.up -= b->up;
    a.down -= b->down;
    a.sums -= b->sums;
    for (int i = 0; i < MR_LINKS; i++)
        a.waited[i] -= b->waited[i];
    return a;
}

int mr_step_apply(struct mr_step *step, const struct mr_store_update *update,
                  struct mr_step_done *done, struct mr_error *err)
{
    struct mr_store_update u = *update;
    struct mr_store_done stored = {0};
    const char *why;
    if (!mr_step_whole(step))
        return mr_fail(err, MR_ERR_USAGE, "the step has %d of its %d micro-batches", step->added,
                       step->most);
    u.targets = step->loss.rows;
    struct mr_error upload = {0};
    int rc = step->ranks->rank == 0 ? mr_store_apply(step->store, &u, &stored, err) : 0;
    step->begun = rc < 0;
    int sent = step->upload ? mr_weight_upload_end(step->upload, &upload) : 0;
    if (rc == 0 && sent < 0) {
        *err = upload;
        rc = sent;
    }
    if (rc == 0) {
        mr_ranks_send(step->ranks, &stored, sizeof stored);
        rc = mr_store_spread(step->store, step->ranks, err);
    }
    const struct mr_pass_counts after = mr_pass_counts(step->pass);
    const uint64_t cycles = counted(step, &after, MR_CNT_CYCLES);
    const double blocks = (double)counted(step, &after, MR_CNT_MAC_BLOCKS);
    *done = (struct mr_step_done){
        .step = stored.step,
        .loss = step->loss,
        .norm = stored.norm,
        .repeated = step->repeated,
        .raised = step->raised,
        .cycles = cycles,
        .streaming = less(mr_pass_streaming(step->pass), &step->streamed_before),
        .mac_utilisation = cycles > 0 ? blocks / (step->products * (double)cycles) : 0};
    forget(step);
    if (rc == 0 && sent == 0 && !mr_step_on_device(step, u.adamw.kind, &why))
        rc = mr_pass_weights(step->pass, step->store, err);
    return rc;
}

int mr_step_evaluate(struct mr_step *step, const struct mr_batch *batch, struct mr_loss *loss,
                     struct mr_error *err)
{
    const struct mr_pass_counts from = mr_pass_counts(step->pass);
    const struct mr_pass_streaming moved =
        less(mr_pass_streaming(step->pass), &step->streamed_before);
    int rc = mr_pass_evaluate(step->pass, batch, loss, err);
    const struct mr_pass_counts to = mr_pass_counts(step->pass);
    for (int i = 0; i < (int)MR_ALL_COUNTERS; i++) // not the step's
        step->before.counter[i] += to.counter[i] - from.counter[i];
    step->streamed_before = less(mr_pass_streaming(step->pass), &moved);
    return rc;
}
