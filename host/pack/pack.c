// SPDX-License-Identifier: Apache-2.0
#include "pack/pack.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoint/pooling.h"

static int track(void *arg, size_t bytes)
{
    struct mr_packer *p = arg;
    p->done += bytes;
    // The caller is told about the checkpoint's bytes, which is what takes the time.
    double share = (double)p->done / (double)p->output_bytes;
    return p->opt->progress
               ? p->opt->progress(p->opt->arg, (size_t)(share * (double)p->input_bytes),
                                  p->input_bytes)
               : 0;
}

static int stopped(void *arg)
{
    return track(arg, 0);
}

// 1: there is one, 0: there is none, or MR_ERR_MEMORY. vocab.txt is WordPiece, which encoders have.
static int has_tokenizer(const char *dir, bool encoder, struct mr_error *err)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json", "vocab.txt"};
    int has = 0;
    for (int i = 0; i < (encoder ? 3 : 2) && has == 0; i++)
        has = mr_directory_has(dir, names[i], err);
    return has;
}

// Configuration, tables and heads of the checkpoint.
static void take_tables(struct mr_packed *packed)
{
    const struct mr_config *c = mr_checkpoint_config(packed->checkpoint);
    const struct mr_arch *arch = mr_arch_of(c);
    struct mr_tensor *to[] = {&packed->embedding, &packed->positions, &packed->types};
    packed->config = *c;
    for (int i = 0; i < arch->tables.count; i++)
        *to[i] =
            *mr_checkpoint_item(packed->checkpoint, c->n_layer, &arch->tables.items[i], MR_WEIGHT);
    for (int i = 0; i < arch->n_heads; i++)
        if (mr_checkpoint_head(packed->checkpoint, i) && !arch->heads[i].copy_of)
            packed->heads[i] = *mr_checkpoint_head(packed->checkpoint, i);
}

// How an encoder's texts become rows.
static int take_pooling(struct mr_packed *packed, const char *dir, struct mr_error *err)
{
    int most = packed->config.n_positions;
    packed->max_tokens = most;
    int rc = mr_pooling_read(dir, &packed->pooling, &packed->max_tokens, err);
    packed->max_tokens = packed->max_tokens < most ? packed->max_tokens : most;
    return rc == 0 && packed->format != MR_FORMAT_MXINT8
               ? mr_fail(err, MR_ERR_UNSUPPORTED, "%s: the weights of %s are mxint8 alone", dir,
                         mr_arch_of(&packed->config)->title)
               : rc;
}

static int open_model(struct mr_packed *packed, const char *dir, const struct mr_pack_options *opt,
                      struct mr_error *err)
{
    *packed = (struct mr_packed){
        .format = opt->format, .smooth = opt->smooth, .calibrated = opt->calibrate != NULL};
    int rc = mr_checkpoint_open(&packed->checkpoint, dir, opt->wanted, opt->adapter, err);
    if (rc < 0)
        return rc;
    take_tables(packed);
    bool encoder = mr_arch_of(&packed->config)->encoder;
    rc = mr_stream_list_make(&packed->list, &packed->config, packed->format, err);
    if (rc == 0)
        rc = has_tokenizer(dir, encoder, err);
    if (rc > 0)
        rc = mr_tokenizer_open(&packed->tokenizer, dir, err);
    if (rc == 0 && opt->text)
        rc = mr_packed_need_tokenizer(packed, err);
    if (rc == 0)
        rc = encoder ? take_pooling(packed, dir, err) : mr_packed_one_type(packed, dir, err);
    return rc;
}

int mr_packer_describe(struct mr_packed *packed, const char *dir, const struct mr_pack_options *opt,
                       struct mr_error *err)
{
    int rc = open_model(packed, dir, opt, err);
    if (rc < 0)
        mr_packed_close(packed);
    return rc;
}

int mr_packer_open(struct mr_packer *p, struct mr_packed *packed, const char *dir,
                   const struct mr_pack_options *opt, struct mr_error *err)
{
    *p = (struct mr_packer){.packed = packed, .opt = opt};
    int rc = open_model(packed, dir, opt, err);
    if (rc == 0)
        rc = mr_smooth_init(&p->smooth, &packed->config, err);
    if (rc == 0 && !(p->pool = mr_pool_new(mr_pool_default())))
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for threads");
    if (rc == 0) {
        static const enum mr_dtype dtypes[] = {MR_DTYPE_F32, MR_DTYPE_F16, MR_DTYPE_BF16};
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
            p->input_bytes += mr_checkpoint_bytes(packed->checkpoint, dtypes[i]);
        p->output_bytes = packed->list.bytes;
    }
    if (rc == 0 && opt->calibrate)
        rc = mr_calibration_open(&p->calibration, packed->checkpoint, packed->tokenizer,
                                 opt->calibrate, stopped, p, err);
    if (rc == 0) {
        const struct mr_quantise_input in = {
            packed->checkpoint, &p->smooth, p->calibration, p->pool, track, p};
        rc = mr_quantiser_open(&p->quantiser, &in, err);
    }
    if (rc < 0) {
        mr_packer_close(p);
        mr_packed_close(packed);
    }
    return rc;
}

void mr_packer_close(struct mr_packer *p)
{
    mr_quantiser_close(p->quantiser);
    mr_calibration_close(p->calibration);
    mr_smooth_free(&p->smooth);
    mr_pool_free(p->pool);
    *p = (struct mr_packer){0};
}

int mr_packer_tables(struct mr_packer *p, struct mr_sink *sink, struct mr_packed_tensor *t,
                     struct mr_error *err)
{
    int tables = mr_packed_tables(&p->packed->config), rc = 0;
    for (int i = 0; i < tables; i++)
        p->output_bytes += mr_packed_table(p->packed, i)->bytes;
    for (int i = 0; i < tables && rc == 0; i++) {
        if (sink)
            mr_sink_begin(sink, t[i].offset);
        rc = mr_quantise_copy(p->quantiser, mr_packed_table(p->packed, i), sink, err);
        if (sink)
            t[i].hash = mr_sink_end(sink);
    }
    return rc;
}

// A layer's tensors are read twice, for smoothing and for packing: one after the other, so that the
// second time they come from the page cache even where the checkpoint is larger than memory.
int mr_packer_stream(struct mr_packer *p, struct mr_sink *sink, struct mr_packed_tensor *t,
                     struct mr_error *err)
{
    const struct mr_packed *packed = p->packed;
    int rc = 0, smoothed = -1;
    for (int i = 0; rc == 0 && i < packed->list.count; i++) {
        const struct mr_stream_entry *place = &packed->list.entries[i];
        int layer = place->item.layer;
        if (packed->smooth && layer != smoothed)
            rc = mr_smooth_layer(&p->smooth, packed->checkpoint, smoothed = layer, p->pool, err);
        mr_sink_begin(sink, t ? t[i].offset : place->at);
        if (rc == 0)
            rc = mr_quantise_item(p->quantiser, &place->item, sink, err);
        uint64_t hash = mr_sink_end(sink);
        if (t)
            t[i].hash = hash;
    }
    return rc;
}
