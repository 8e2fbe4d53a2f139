// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/encoder_impl.h"
#include "common/file.h"
#include "common/json.h"
#include "device/open.h"
#include "pack/packed.h"

// ---- opening ----

// config.json of a directory, or of a packed file.
static int read_config(const struct mr_packed *p, const char *model, json_t **config,
                       struct mr_error *err)
{
    if (p->config_text)
        return mr_json_parse(config, p->config_text, p->config_bytes, model, err);
    char *path = mr_path_join(model, "config.json", err);
    int rc = path ? mr_json_load(config, path, err) : MR_ERR_MEMORY;
    free(path);
    return rc;
}

// "id2label": each name is a string, under the label's number.
static int read_labels(struct mr_encoder *e, const char *model, struct mr_error *err)
{
    json_t *config = NULL;
    int rc = read_config(&e->packed, model, &config, err), n = e->config->n_labels;
    json_t *names = json_object_get(config, "id2label");
    e->names = calloc((size_t)n, sizeof *e->names);
    if (rc == 0 && !e->names)
        rc = mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", model);
    for (int i = 0; rc == 0 && i < n; i++) {
        (void)snprintf(e->names[i], sizeof *e->names, "%d", i);
        if (json_object_size(names) > 0 && !json_string_value(json_object_get(names, e->names[i])))
            rc = mr_fail(err, MR_ERR_FORMAT, "%s: \"id2label\" has no name for label %d", model, i);
        (void)snprintf(e->names[i], sizeof *e->names, "LABEL_%d", i);
    }
    if (rc == 0 && json_object_size(names) > 0)
        e->labels = json_incref(names);
    json_decref(config);
    return rc;
}

static int take_tokenizer(struct mr_encoder *e, const char *model, struct mr_error *err)
{
    const struct mr_tokenizer *tokenizer = e->packed.tokenizer;
    e->frame = mr_tokenizer_frame(tokenizer);
    if (!e->frame)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: its tokenizer is byte-level BPE, not WordPiece", model);
    int size = mr_tokenizer_vocab_size(tokenizer);
    if (size > e->config->vocab_size)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: the tokenizer has ids up to %d, but the model's vocabulary has %d",
                       model, size - 1, e->config->vocab_size);
    return 0;
}

static int stopped(void *arg, size_t done, size_t total)
{
    (void)arg;
    (void)done;
    (void)total;
    return mr_device_stop ? 1 : 0;
}

static int load(struct mr_encoder *e, const char *model, bool weights,
                const struct mr_encoder_options *opt, struct mr_error *err)
{
    const struct mr_pack_options pack = {.wanted = MR_ENCODER,
                                         .text = true,
                                         .smooth = true,
                                         .describe = !weights,
                                         .verify = opt->verify,
                                         .calibrate = weights ? opt->calibrate : NULL,
                                         .progress = stopped};
    int rc = mr_packed_load(&e->packed, model, &pack, err);
    e->config = &e->packed.config;
    if (rc == 0 && weights && opt->calibrate && !e->packed.checkpoint)
        return mr_fail(err, MR_ERR_USAGE, "%s: is packed already; it cannot be calibrated now",
                       model);
    if (rc == 0)
        rc = take_tokenizer(e, model, err);
    return rc ? rc : read_labels(e, model, err);
}

static int open_encoder(struct mr_encoder *e, const char *model, const char *device,
                        const struct mr_encoder_options *opt, struct mr_error *err)
{
    bool cpu = device && strcmp(device, "cpu:") == 0;
    int rc = device && !cpu ? mr_device_open(&e->dev, device, err) : 0;
    if (rc == 0)
        rc = load(e, model, device && !cpu, opt, err);
    if (rc == 0 && cpu)
        rc = e->packed.checkpoint
                 ? mr_cpu_open(&e->cpu, e->packed.checkpoint, err)
                 : mr_fail(err, MR_ERR_UNSUPPORTED,
                           "cpu: computes from the fp32 checkpoint; give the Hugging Face "
                           "directory, or name an engine with --device");
    if (rc == 0 && e->dev)
        rc = mr_encode_open(&e->device, &e->packed, e->dev, opt->two_pass, err);
    return rc ? rc
              : mr_cpu_heads_open(&e->heads, e->config, e->packed.heads, &e->packed.embedding, err);
}

int mr_encoder_open(struct mr_encoder **encoder, const char *model, const char *device,
                    const struct mr_encoder_options *opt, struct mr_error *err)
{
    static const struct mr_encoder_options none;
    *encoder = NULL;
    struct mr_encoder *e = calloc(1, sizeof *e);
    if (!e)
        return mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", model);
    int rc = open_encoder(e, model, device, opt ? opt : &none, err);
    if (rc) {
        mr_encoder_close(e);
        return rc;
    }
    *encoder = e;
    return 0;
}

void mr_encoder_close(struct mr_encoder *encoder)
{
    if (!encoder)
        return;
    mr_cpu_heads_close(encoder->heads);
    mr_cpu_close(encoder->cpu);
    mr_encode_close(encoder->device);
    mr_device_close(encoder->dev);
    mr_packed_close(&encoder->packed);
    json_decref(encoder->labels);
    free(encoder->names);
    free(encoder);
}

void mr_encoder_get_info(const struct mr_encoder *encoder, struct mr_encoder_info *info)
{
    const struct mr_config *c = encoder->config;
    bool labels = mr_cpu_heads_have(encoder->heads, MR_HEAD_LABELS);
    *info = (struct mr_encoder_info){
        .kind = mr_packed_kind(&encoder->packed),
        .calibrated = encoder->packed.calibrated,
        .file_bytes = encoder->packed.map.size,
        .architecture = mr_arch_of(c)->title,
        .parameters = mr_config_parameters(c),
        .vocab_size = c->vocab_size,
        .n_positions = c->n_positions,
        .n_embd = c->n_embd,
        .n_layer = c->n_layer,
        .n_head = c->n_head,
        .n_inner = c->n_inner,
        .max_tokens = encoder->packed.max_tokens,
        .pooling = encoder->packed.pooling,
        .stream_bytes = encoder->packed.list.bytes,
        .words = mr_cpu_heads_have(encoder->heads, MR_HEAD_WORDS),
        .n_labels = labels ? c->n_labels : 0,
        .by_token = labels && c->by_token,
    };
}

const char *mr_encoder_label(const struct mr_encoder *encoder, int label)
{
    char key[16];
    if (label < 0 || label >= encoder->config->n_labels)
        return NULL;
    (void)snprintf(key, sizeof key, "%d", label);
    const char *name = json_string_value(json_object_get(encoder->labels, key));
    return name ? name : encoder->names[label];
}

const char *mr_encoder_token(const struct mr_encoder *encoder, int32_t id, size_t *size)
{
    return mr_tokenizer_bytes(encoder->packed.tokenizer, id, size);
}

int mr_encoder_need(const struct mr_encoder *e, enum mr_head head, const char *what,
                    struct mr_error *err)
{
    return mr_cpu_heads_have(e->heads, head)
               ? 0
               : mr_fail(err, MR_ERR_UNSUPPORTED, "the model has no %s", what);
}

// ---- texts ----

void mr_framed_free(struct mr_framed *framed)
{
    mr_tokens_free(&framed->tokens);
    mr_tokens_free(&framed->types);
}

static int put(struct mr_tokens *list, int32_t id, struct mr_error *err)
{
    int rc = mr_tokens_reserve(list, 1, err);
    if (rc == 0)
        list->ids[list->count++] = id;
    return rc;
}

// Takes tokens from the end of the longer of two texts, of two equal ones from the second, until
// both have `room`.
static void cut(size_t *first, size_t *second, size_t room)
{
    while (*first + *second > room)
        *(*first > *second ? first : second) -= 1;
}

static int join(const struct mr_encoder *e, const struct mr_tokens *a, const struct mr_tokens *b,
                bool pair, struct mr_framed *f, struct mr_error *err)
{
    int rc = put(&f->tokens, e->frame->cls, err);
    for (size_t i = 0; rc == 0 && i < a->count; i++)
        rc = put(&f->tokens, a->ids[i], err);
    if (rc == 0)
        rc = put(&f->tokens, e->frame->sep, err);
    size_t first = f->tokens.count;
    for (size_t i = 0; rc == 0 && pair && i < b->count; i++)
        rc = put(&f->tokens, b->ids[i], err);
    if (rc == 0 && pair)
        rc = put(&f->tokens, e->frame->sep, err);
    for (size_t i = 0; rc == 0 && i < f->tokens.count; i++)
        rc = put(&f->types, i >= first, err);
    return rc;
}

static int take_ids(const struct mr_encoder *e, const struct mr_encoder_text *text,
                    struct mr_tokens *to, struct mr_error *err)
{
    int rc = mr_tokens_reserve(to, text->count, err);
    for (size_t i = 0; rc == 0 && i < text->count; i++) {
        int32_t id = text->ids[i];
        if (id < 0 || id >= e->config->vocab_size)
            rc = mr_fail(err, MR_ERR_USAGE, "token %d is outside the vocabulary of %d", id,
                         e->config->vocab_size);
        to->ids[to->count++] = id;
    }
    return rc;
}

int mr_encoder_frame(const struct mr_encoder *e, const struct mr_encoder_text *text,
                     struct mr_framed *framed, struct mr_error *err)
{
    struct mr_tokens a = {0}, b = {0};
    int most =
        text->most > 0 && text->most < e->packed.max_tokens ? text->most : e->packed.max_tokens;
    size_t around = text->pair ? 3 : 2, room = (size_t)most - around;
    int rc = text->ids ? take_ids(e, text, &a, err)
                       : mr_tokenizer_encode(e->packed.tokenizer, text->text, text->size,
                                             MR_SPECIAL_PARSE, &a, err);
    if (rc == 0 && text->pair)
        rc = mr_tokenizer_encode(e->packed.tokenizer, text->pair, text->pair_size, MR_SPECIAL_PARSE,
                                 &b, err);
    if (rc == 0 && (size_t)most < around + (a.count + b.count > 0))
        rc = mr_fail(err, MR_ERR_FIT, "%d tokens are too few for any text", most);
    if (rc == 0 && text->pair && e->config->n_types < 2)
        rc =
            mr_fail(err, MR_ERR_UNSUPPORTED, "the model has one type of tokens: it reads no pairs");
    if (rc == 0 && a.count + b.count > room && !text->cut)
        rc = mr_fail(err, MR_ERR_FIT,
                     "a text of %zu tokens is too long: the model reads %d; shorten it, or have it "
                     "cut (--truncate)",
                     a.count + b.count + around, most);
    framed->cut = a.count + b.count > room;
    if (rc == 0)
        cut(&a.count, &b.count, room);
    if (rc == 0)
        rc = join(e, &a, &b, text->pair != NULL, framed, err);
    mr_tokens_free(&a);
    mr_tokens_free(&b);
    return rc;
}

int mr_encoder_encode(const struct mr_encoder *encoder, const struct mr_encoder_text *text,
                      struct mr_encoder_tokens *tokens, struct mr_error *err)
{
    struct mr_framed framed = {0};
    int rc = mr_encoder_frame(encoder, text, &framed, err);
    if (rc) {
        mr_framed_free(&framed);
        return rc;
    }
    *tokens = (struct mr_encoder_tokens){framed.tokens.ids, framed.types.ids,
                                         (int)framed.tokens.count, framed.cut};
    return 0;
}
