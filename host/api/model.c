// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
#include "common/buf.h"
#include "engine/engine.h"
#include "engine/synthetic.h"
#include "pack/packed.h"

// mr_interrupt() ends packing too, with or without a progress function of the caller's.
static int watch(void *arg, size_t done, size_t total)
{
    const struct mr_load_options *opt = arg;
    if (mr_device_stop)
        return 1;
    return opt->progress ? opt->progress(opt->arg, done, total) : 0;
}

static int load_synthetic(struct mr_packed *packed, const char *text,
                          const struct mr_pack_options *opt, struct mr_error *err)
{
    struct mr_config c;
    uint64_t seed;
    int rc = mr_synthetic_parse(text, &c, &seed, err);
    if (rc == 0 && opt->text)
        rc = mr_packed_need_tokenizer(packed, err);
    if (rc == 0 && opt->adapter)
        rc = mr_fail(err, MR_ERR_USAGE, "%s: an adapter is of a checkpoint; name its directory",
                     opt->adapter);
    return rc < 0 ? rc : mr_packed_synthetic(packed, &c, opt, seed, err);
}

static struct mr_pack_options pack_options(const struct mr_load_options *opt)
{
    return (struct mr_pack_options){
        .format = opt->format == MR_WEIGHTS_MXFP4 ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8,
        .smooth = !opt->no_smoothing,
        .verify = opt->verify,
        .calibrate = opt->calibrate,
        .adapter = opt->adapter,
        .describe = opt->describe,
        .text = opt->text,
        .wanted = opt->encoder ? MR_ENCODER : MR_DECODER,
        .progress = watch,
        .arg = (void *)(uintptr_t)opt,
    };
}

int mr_model_load(struct mr_model **model, const char *path, const struct mr_load_options *opt,
                  struct mr_error *err)
{
    static const struct mr_load_options defaults;
    *model = NULL;
    if (!opt)
        opt = &defaults;
    struct mr_model *m = calloc(1, sizeof *m);
    if (!m)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a model");
    struct mr_pack_options pack = pack_options(opt);
    static const char synthetic[] = "synthetic:";
    m->synthetic = strncmp(path, synthetic, sizeof synthetic - 1) == 0;
    int rc = m->synthetic ? load_synthetic(&m->packed, path + sizeof synthetic - 1, &pack, err)
                          : mr_packed_load(&m->packed, path, &pack, err);
    if (rc == 0 && m->packed.checkpoint && !(m->dir = strdup(path)))
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for a path");
    if (rc < 0) {
        mr_model_close(m);
        return rc;
    }
    *model = m;
    return 0;
}

void mr_model_close(struct mr_model *model)
{
    if (!model)
        return;
    mr_packed_close(&model->packed);
    free(model->dir);
    free(model);
}

static uint64_t bytes_of(const struct mr_packed *p, enum mr_dtype dtype)
{
    if (p->checkpoint)
        return mr_checkpoint_bytes(p->checkpoint, dtype);
    return p->embedding.dtype == dtype ? p->embedding.bytes + p->positions.bytes : 0;
}

void mr_model_get_info(const struct mr_model *model, struct mr_model_info *info)
{
    const struct mr_packed *p = &model->packed;
    const struct mr_config *c = &p->config;
    uint64_t wbeats = (uint64_t)mr_dims_of(c).w / 64, scales = (2 * wbeats + 63) / 64;
    *info = (struct mr_model_info){
        .kind = mr_packed_kind(p),
        .files = p->checkpoint ? (int)mr_checkpoint_files(p->checkpoint)
                 : p->map.data ? 1
                               : 0,
        .f32_bytes = bytes_of(p, MR_DTYPE_F32),
        .f16_bytes = bytes_of(p, MR_DTYPE_F16),
        .bf16_bytes = bytes_of(p, MR_DTYPE_BF16),
        .file_bytes = p->map.size,
        .embedding_bytes = p->embedding.bytes / (uint64_t)c->vocab_size +
                           p->positions.bytes / (uint64_t)c->n_positions,
        .vocab_size = c->vocab_size,
        .n_positions = c->n_positions,
        .n_embd = c->n_embd,
        .n_layer = c->n_layer,
        .n_head = c->n_head,
        .head_dim = c->head_dim,
        .rotary_dim = c->rotary_dim,
        .n_inner = c->n_inner,
        .eos_token_id = c->eos_token_id,
        .format = p->format == MR_FORMAT_MXFP4 ? MR_WEIGHTS_MXFP4 : MR_WEIGHTS_MXINT8,
        .smoothed = p->smooth,
        .calibrated = p->calibrated,
        .packed_file = !p->checkpoint,
        .has_tokenizer = p->tokenizer != NULL,
        .parameters = mr_config_parameters(c),
        .stream_bytes = p->list.bytes,
        .architecture = mr_arch_of(c)->title,
        .encoder = mr_arch_of(c)->encoder,
        .kv_bytes = (uint64_t)c->n_layer * (2 * (wbeats + scales) + scales) * MR_BEAT,
    };
}

bool mr_model_is_eos(const struct mr_model *model, int32_t id)
{
    return mr_config_is_eos(&model->packed.config, id);
}

int mr_model_save(const struct mr_model *model, const char *path, struct mr_error *err)
{
    if (!model->packed.stream)
        return mr_fail(err, MR_ERR_USAGE, "%s: the model was loaded to be described only", path);
    if (!model->dir)
        return mr_fail(
            err, MR_ERR_USAGE,
            "%s: not written: the model is packed already, or synthetic; load the Hugging Face "
            "directory, or copy the packed file",
            path);
    return mr_packed_save(&model->packed, model->dir, path, &mr_device_stop, err);
}

int mr_model_pack(const char *dir, const char *path, const struct mr_load_options *opt,
                  struct mr_pack_stats *stats, struct mr_error *err)
{
    static const struct mr_load_options defaults;
    struct mr_pack_options pack = pack_options(opt ? opt : &defaults);
    struct mr_pack_result result;
    pack.wanted = MR_EITHER;
    int rc = mr_pack_file(dir, path, &pack, &result, err);
    if (rc < 0)
        return rc;
    *stats = (struct mr_pack_stats){.input_bytes = result.input_bytes,
                                    .file_bytes = result.file_bytes,
                                    .stream_bytes = result.stream_bytes};
    mr_engine_exceeds(&result.config, stats->exceeds, sizeof stats->exceeds);
    return 0;
}

int mr_model_plain_read(const char *dir, struct mr_error *err)
{
    return mr_pack_plain_read(dir, &mr_device_stop, err);
}

int mr_model_unpack(const struct mr_model *model, const char *dir, struct mr_error *err)
{
    return mr_export(&model->packed, dir, &mr_device_stop, err);
}

int mr_model_compare_weights(const struct mr_model *model, const char *dir,
                             struct mr_quality **list, size_t *count, struct mr_error *err)
{
    struct mr_checkpoint *checkpoint;
    *list = NULL;
    *count = 0;
    int rc = mr_checkpoint_open(&checkpoint, dir, MR_EITHER, NULL, err);
    if (rc == 0)
        rc = mr_report(&model->packed, checkpoint, &mr_device_stop, list, count, err);
    mr_checkpoint_close(checkpoint);
    return rc;
}

int mr_model_encode(struct mr_model *model, const char *text, size_t size, bool parse_special,
                    int32_t **ids, size_t *count, struct mr_error *err)
{
    struct mr_tokens tokens = {0};
    int rc = mr_packed_need_tokenizer(&model->packed, err);
    if (rc == 0)
        rc = mr_tokenizer_encode(model->packed.tokenizer, text, size,
                                 parse_special ? MR_SPECIAL_PARSE : MR_SPECIAL_AS_TEXT, &tokens,
                                 err);
    if (rc < 0) {
        mr_tokens_free(&tokens);
        return rc;
    }
    *ids = tokens.ids;
    *count = tokens.count;
    return 0;
}

int mr_model_decode(const struct mr_model *model, const int32_t *ids, size_t count, char **text,
                    size_t *size, struct mr_error *err)
{
    struct mr_buf buf = {0};
    int rc = mr_packed_need_tokenizer(&model->packed, err);
    if (rc == 0)
        rc = mr_tokenizer_decode(model->packed.tokenizer, ids, count, false, &buf, err);
    if (rc == 0)
        rc = mr_buf_append(&buf, "", 1, err);
    if (rc < 0) {
        mr_buf_free(&buf);
        return rc;
    }
    *text = buf.data;
    *size = buf.size - 1;
    return 0;
}
