// SPDX-License-Identifier: Apache-2.0
#include "pack/pack.h"

#include <stdlib.h>
#include <string.h>

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

static bool has_tokenizer(const char *dir)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json"};
    bool found = false;
    for (int i = 0; i < 2 && !found; i++) {
        char *path = mr_path_join(dir, names[i], NULL);
        found = path && mr_file_exists(path);
        free(path);
    }
    return found;
}

// Configuration and tables of the checkpoint.
static void take_tables(struct mr_packed *packed)
{
    const struct mr_config *c = mr_checkpoint_config(packed->checkpoint);
    const struct mr_list *tables = &mr_arch_of(c)->tables;
    struct mr_tensor *to[] = {&packed->embedding, &packed->positions, &packed->types};
    packed->config = *c;
    packed->stream_bytes = (size_t)mr_stream_beats(c, packed->format, 1) * MR_BEAT;
    for (int i = 0; i < tables->count; i++)
        *to[i] = *mr_checkpoint_item(packed->checkpoint, c->n_layer, &tables->items[i], MR_WEIGHT);
}

static int open_model(struct mr_packed *packed, const char *dir, const struct mr_pack_options *opt,
                      struct mr_error *err)
{
    *packed = (struct mr_packed){
        .format = opt->format, .smooth = opt->smooth, .calibrated = opt->calibrate != NULL};
    int rc = opt->encoder ? mr_checkpoint_open_encoder(&packed->checkpoint, dir, err)
                          : mr_checkpoint_open_adapted(&packed->checkpoint, dir, opt->adapter, err);
    if (rc == 0 && (opt->encoder ? opt->calibrate != NULL : has_tokenizer(dir)))
        rc = mr_tokenizer_open(&packed->tokenizer, dir, err);
    if (rc == 0 && opt->text)
        rc = mr_packed_need_tokenizer(packed, err);
    if (rc < 0)
        return rc;
    take_tables(packed);
    if (!opt->encoder && packed->positions.count &&
        packed->positions.dtype != packed->embedding.dtype)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: %s is %s and %s is %s; save both in the same type", dir,
                       packed->embedding.name, mr_dtype_name(packed->embedding.dtype),
                       packed->positions.name, mr_dtype_name(packed->positions.dtype));
    return 0;
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
        p->output_bytes = packed->stream_bytes;
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
    int tables = mr_arch_of(&p->packed->config)->tables.count, rc = 0;
    for (int i = 0; i < tables; i++)
        p->output_bytes += t[i].size;
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
    for (int i = 0; rc == 0 && i < mr_stream_items(&packed->config); i++) {
        struct mr_stream_item item = mr_stream_item(&packed->config, packed->format, i);
        if (packed->smooth && item.layer != smoothed)
            rc = mr_smooth_layer(&p->smooth, packed->checkpoint, smoothed = item.layer, p->pool,
                                 err);
        mr_sink_begin(sink, t[i].offset);
        if (rc == 0)
            rc = mr_quantise_item(p->quantiser, &item, sink, err);
        t[i].hash = mr_sink_end(sink);
    }
    return rc;
}
