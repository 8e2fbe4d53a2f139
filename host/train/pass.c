// SPDX-License-Identifier: Apache-2.0
// Memory of training on a device, and the order of a pass.
#include "train/pass.h"

#include <stdlib.h>
#include <string.h>

#include "model/arch.h"
#include "train/pass_impl.h"

// ---- memory ------------------------------------------------------------------------------------

static int allocate_channels(struct mr_pass *p, struct mr_error *err)
{
    int rc = 0;
    size_t stash = (size_t)p->mem.size.stash * MR_BEAT;
    for (int c = 0; c < p->g.n && rc == 0; c++) {
        rc = mr_device_alloc(p->dev, c, (size_t)p->mem.size.weights * MR_BEAT, NULL,
                             &p->mem.weight_addr[c], err);
        if (rc == 0)
            rc = mr_device_alloc(p->dev, c, stash, NULL, &p->mem.stash_addr[c], err);
        if (rc == 0)
            rc = mr_device_alloc(p->dev, c, (size_t)p->at.kv_layer * MR_BEAT, NULL,
                                 &p->mem.kv_addr[c], err);
        p->host.image[c] = malloc(stash);
        if (rc == 0 && !p->host.image[c])
            rc = mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    }
    return rc;
}

static int allocate(struct mr_pass *p, struct mr_error *err)
{
    uint64_t rows = (uint64_t)p->most_rows;
    int rc = allocate_channels(p, err);
    struct pass_buffer buffers[PASS_BUFFERS];
    pass_buffers(p, buffers);
    for (size_t i = 0; i < PASS_BUFFERS && rc == 0; i++)
        rc = mr_device_alloc(p->dev, buffers[i].channel, (size_t)buffers[i].beats * MR_BEAT, NULL,
                             buffers[i].addr, err);
    p->host.tiles = malloc((size_t)p->host.tiles_beats * MR_BEAT + 1);
    p->host.item = malloc(pass_item_bytes(p));
    p->host.row_grad = calloc((rows + 1) * (uint64_t)p->d.d, sizeof *p->host.row_grad);
    p->host.logits = calloc(p->mem.result_beats * 16, sizeof *p->host.logits);
    p->pool = mr_pool_new(mr_pool_default());
    if (rc == 0 &&
        (!p->host.tiles || !p->host.item || !p->host.row_grad || !p->host.logits || !p->pool))
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    return rc;
}

// Of an encoder; it is what learns from labels.
static int has_classifier(struct mr_pass *p, struct mr_error *err)
{
    const struct mr_arch *arch = mr_arch_of(p->c);
    if (!arch->encoder)
        return 0;
    if (!p->c->learns_labels)
        return mr_fail(err, MR_ERR_UNSUPPORTED, "%s trains with a classifier of whole texts alone",
                       arch->title);
    p->encoder = calloc(1, sizeof *p->encoder);
    return p->encoder ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for training");
}

int pass_new(struct mr_pass **pass, const struct mr_geometry *g, const char *name, uint64_t room,
             const struct mr_config *config, const struct mr_pass_options *options,
             struct mr_error *err)
{
    struct mr_pass *p = *pass = calloc(1, sizeof *p);
    if (!p)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    p->filler = pass_fills_pauses;
    p->name = name;
    p->g = *g;
    p->c = config;
    p->d = mr_dims_of(config);
    p->most_rows = options->rows;
    p->chunk = options->chunk ? options->chunk : p->g.t / 32 * 32;
    p->limit = INT32_MAX;
    p->recompute = options->recompute;
    p->room = room;
    p->least = options->least;
    size_t tensors = mr_tensor_specs(config);
    int rc = has_classifier(p, err);
    if (rc == 0)
        rc = pass_fits(p, err);
    p->choice = calloc(tensors, sizeof *p->choice);
    if (rc == 0 && !p->choice)
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    if (rc == 0 && options->choice)
        memcpy(p->choice, options->choice, tensors);
    if (rc == 0)
        rc = pass_place(p, err);
    size_t rows = (size_t)p->most_rows;
    p->batch.pos = calloc(rows, sizeof *p->batch.pos);
    p->batch.start = calloc(rows, sizeof *p->batch.start);
    p->batch.end = calloc(rows, sizeof *p->batch.end);
    p->sums.of = calloc(tensors, sizeof *p->sums.of);
    p->flow = calloc((size_t)p->at.n_items + 1, sizeof *p->flow);
    if (rc == 0 && (!p->batch.pos || !p->batch.start || !p->batch.end || !p->sums.of || !p->flow))
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    if (rc == 0) {
        pass_find_flow(p);
        return 0;
    }
    mr_pass_close(p);
    *pass = NULL;
    return rc;
}

int mr_pass_open(struct mr_pass **pass, struct mr_device *device, const struct mr_config *config,
                 const struct mr_pass_options *options, struct mr_error *err)
{
    const struct mr_device_info *info = mr_device_info(device);
    int rc = pass_new(pass, &info->g, info->config, info->room, config, options, err);
    if (rc < 0)
        return rc;
    (*pass)->dev = device;
    rc = allocate(*pass, err);
    if (rc == 0 && (*pass)->encoder)
        rc = pass_encoder_open(*pass, err);
    if (rc == 0)
        rc = pass_stream_open(*pass, info->clock_khz, err);
    if (rc == 0)
        return 0;
    mr_pass_close(*pass);
    *pass = NULL;
    return rc;
}

struct mr_pass_counts mr_pass_counts(const struct mr_pass *pass)
{
    return pass->counts;
}

void mr_pass_close(struct mr_pass *pass)
{
    if (!pass)
        return;
    pass_stream_close(pass);
    pass_encoder_close(pass);
    free(pass->at.kept);
    free(pass->at.w_off);
    free(pass->at.wt_off);
    free(pass->host.tensors);
    free(pass->sums.of);
    free(pass->choice);
    free(pass->flow);
    free(pass->at.entry);
    free(pass->at.entry_turned);
    free(pass->batch.pos);
    free(pass->batch.start);
    free(pass->batch.end);
    free(pass->host.tiles);
    free(pass->host.item);
    free(pass->host.row_grad);
    free(pass->host.logits);
    for (int c = 0; c < pass->g.n; c++)
        free(pass->host.image[c]);
    mr_pool_free(pass->pool);
    free(pass);
}

// ---- weights ------------------------------------------------------------------------------------

int mr_pass_item_weights(struct mr_pass *pass, const struct mr_store *store, int item,
                         struct mr_error *err)
{
    int unit = mr_stream_item(pass->c, MR_FORMAT_MXINT8, item).layer, rc = 0;
    for (int turned = 0; turned < 2 && rc == 0 && unit >= 0 && pass->at.unit[unit].slot < 0;
         turned++)
        rc = pass_write_item(pass, store, item, turned, err);
    return rc;
}

int mr_pass_weights(struct mr_pass *pass, const struct mr_store *store, struct mr_error *err)
{
    int rc = 0;
    pass->weights = store;
    for (int s = 0; s < mr_stream_items(pass->c) && rc == 0; s++)
        rc = mr_pass_item_weights(pass, store, s, err);
    return rc;
}

struct mr_device_streams mr_pass_streams(const struct mr_pass *pass)
{
    const uint64_t *at = pass->mem.weight_addr;
    if (pass->at.streamed > 0 || pass->encoder) // whose first norm's vectors are the host's
        return (struct mr_device_streams){0};
    uint64_t apart = pass->g.n > 1 ? at[1] - at[0] : 0;
    for (int c = 2; c < pass->g.n; c++)
        if (at[c] - at[c - 1] != apart)
            return (struct mr_device_streams){0};
    return (struct mr_device_streams){
        pass->g.n,
        {at[0] + pass->at.w_off[0] * MR_BEAT, at[0] + pass->at.wt_off[0] * MR_BEAT},
        apart};
}

// ---- a pass ------------------------------------------------------------------------------------

static const char *tensor_name(const struct mr_pass *p, size_t i, char name[MR_NAME])
{
    struct mr_tensor_spec t = mr_tensor_spec(p->c, i);
    return mr_tensor_name(p->c, t.layer, t.item, t.part, name);
}

static int refuse_infinite(const struct mr_pass *p, struct mr_error *err)
{
    char name[MR_NAME];
    for (size_t i = 0; i < mr_tensor_specs(p->c); i++)
        if (p->host.tensors[i].record != 0 && p->host.tensors[i].flags & 2)
            return mr_fail(err, MR_ERR_FORMAT,
                           "the gradient of %s is infinite or not a number; the weights or the "
                           "learning rate are at fault",
                           tensor_name(p, i, name));
    return 0;
}

int mr_pass_check(const struct mr_pass *p, const struct mr_batch *batch, size_t *rows,
                  struct mr_error *err)
{
    size_t targets;
    int rc = mr_batch_check(batch, p->c, rows, &targets, err);
    return rc == 0 ? pass_holds(p, *rows, err) : rc;
}

static int begin_pass(struct mr_pass *p, const struct mr_batch *batch, bool learns,
                      struct mr_error *err)
{
    size_t rows;
    int rc = mr_pass_check(p, batch, &rows, err);
    if (rc < 0)
        return rc;
    pass_place_rows(p, batch->lengths, batch->n_sequences);
    pass_stream_begin(p, learns);
    if (p->encoder)
        pass_encoder_weights(p);
    rc = pass_write_batch(p, batch, err);
    return rc == 0 ? pass_forward(p, err) : rc;
}

int mr_pass_evaluate(struct mr_pass *pass, const struct mr_batch *batch, struct mr_loss *loss,
                     struct mr_error *err)
{
    int rc = begin_pass(pass, batch, false, err);
    if (rc == 0)
        rc = (pass->encoder ? pass_classify : pass_loss)(pass, batch, false, loss, err);
    pass_stream_end(pass);
    return rc;
}

int mr_pass_run(struct mr_pass *pass, const struct mr_batch *batch, struct mr_loss *loss,
                struct mr_error *err)
{
    struct mr_pass *p = pass;
    struct mr_loss found = {0};
    int rc = begin_pass(p, batch, true, err);
    if (rc == 0)
        rc = (p->encoder ? pass_classify : pass_loss)(p, batch, true, &found, err);
    if (rc == 0 && !p->encoder)
        rc = pass_write_logits_gradient(p, err);
    if (rc == 0)
        rc = pass_backward(p, err);
    pass_stream_end(p);
    if (rc == 0)
        rc = pass_read_gradients(p, err);
    if (rc == 0)
        rc = refuse_infinite(p, err);
    if (rc == 0 && p->tables_learn)
        rc = mr_device_read(p->dev, p->mem.rows_addr + p->at.residual * MR_BEAT, p->host.row_grad,
                            (size_t)p->batch.rows * (size_t)p->d.d * sizeof(float), err);
    if (rc == 0 && p->tables_learn && p->encoder)
        rc = pass_front_back(p, err);
    if (rc == 0)
        mr_loss_add(loss, &found);
    return rc;
}
