// SPDX-License-Identifier: Apache-2.0
#include "pack/packed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pack/quantise.h"
#include "pack/smooth.h"

struct tracker {
    const struct mr_pack_options *opt;
    size_t done, total;
};

static int track(void *arg, size_t bytes)
{
    struct tracker *t = arg;
    t->done += bytes;
    return t->opt->progress ? t->opt->progress(t->opt->arg, t->done, t->total) : 0;
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

int mr_pack_directory(struct mr_packed *packed, const char *dir, const struct mr_pack_options *opt,
                      struct mr_error *err)
{
    *packed = (struct mr_packed){
        .format = opt->format, .smooth = opt->smooth, .calibrated = opt->calibrate != NULL};
    struct mr_smooth smooth = {0};
    struct mr_inputs inputs = {0};
    int rc = mr_checkpoint_open(&packed->checkpoint, dir, err);
    if (rc == 0 && has_tokenizer(dir))
        rc = mr_tokenizer_open(&packed->tokenizer, dir, err);
    if (rc == 0) {
        packed->config = *mr_checkpoint_config(packed->checkpoint);
        packed->embedding = *mr_checkpoint_tensor(packed->checkpoint, "transformer.wte.weight");
        packed->stream_bytes = (size_t)mr_stream_beats(&packed->config, opt->format, 1) * MR_BEAT;
        packed->memory = aligned_alloc(4096, (packed->stream_bytes + 4095) / 4096 * 4096);
        if (!packed->memory)
            rc = mr_fail(err, MR_ERR_MEMORY, "%s: no memory for a weight stream of %zu bytes", dir,
                         packed->stream_bytes);
        packed->stream = packed->memory;
    }
    if (rc == 0)
        rc = mr_smooth_plan(&smooth, packed->checkpoint, opt->smooth, err);
    uint8_t *out = packed->memory;
    struct tracker t = {opt, 0, packed->stream_bytes};
    if (rc == 0 && opt->calibrate)
        rc = mr_calibration_open(&inputs.calibration, packed->checkpoint, packed->tokenizer,
                                 opt->calibrate, stopped, &t, err);
    int n = rc == 0 ? mr_stream_items(&packed->config) : 0;
    for (int i = 0; rc == 0 && i < n; i++) {
        struct mr_stream_item item = mr_stream_item(&packed->config, opt->format, i);
        rc = mr_quantise_item(packed->checkpoint, &smooth, &inputs, &item, out, track, &t, err);
        out += (size_t)mr_item_beats(&item, 1) * MR_BEAT;
    }
    mr_smooth_free(&smooth);
    mr_calibration_close(inputs.calibration);
    mr_inputs_free(&inputs);
    if (rc < 0)
        mr_packed_close(packed);
    return rc;
}

void mr_packed_close(struct mr_packed *packed)
{
    mr_tokenizer_close(packed->tokenizer);
    mr_checkpoint_close(packed->checkpoint);
    mr_file_unmap(&packed->map);
    free(packed->memory);
    *packed = (struct mr_packed){0};
}

int mr_packed_load(struct mr_packed *packed, const char *path, const struct mr_pack_options *opt,
                   struct mr_error *err)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        *packed = (struct mr_packed){0};
        return mr_fail(err, MR_ERR_IO, "%s: %s; give a Hugging Face directory or a packed file",
                       path, strerror(errno));
    }
    return S_ISDIR(st.st_mode) ? mr_pack_directory(packed, path, opt, err)
                               : mr_packed_open(packed, path, opt->verify, err);
}
