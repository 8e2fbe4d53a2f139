// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/encoder_impl.h"
#include "api/pooling.h"
#include "common/file.h"
#include "common/json.h"
#include "device/open.h"
#include "pack/pack_memory.h"

// ---- opening ----

// "id2label": each name is a string, under the label's number.
static int read_labels(struct mr_encoder *e, const char *dir, struct mr_error *err)
{
    json_t *config = NULL;
    char *path = mr_path_join(dir, "config.json", err);
    int rc = path ? mr_json_load(&config, path, err) : MR_ERR_MEMORY, n = e->config->n_labels;
    json_t *names = json_object_get(config, "id2label");
    e->names = calloc((size_t)n, sizeof *e->names);
    if (rc == 0 && !e->names)
        rc = mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", dir);
    for (int i = 0; rc == 0 && i < n; i++) {
        (void)snprintf(e->names[i], sizeof *e->names, "%d", i);
        if (json_object_size(names) > 0 && !json_string_value(json_object_get(names, e->names[i])))
            rc = mr_fail(err, MR_ERR_FORMAT, "%s: \"id2label\" has no name for label %d", path, i);
        (void)snprintf(e->names[i], sizeof *e->names, "LABEL_%d", i);
    }
    if (rc == 0 && json_object_size(names) > 0)
        e->labels = json_incref(names);
    json_decref(config);
    free(path);
    return rc;
}

static int open_tokenizer(struct mr_encoder *e, const char *dir, struct mr_error *err)
{
    int rc = mr_tokenizer_open(&e->tokenizer, dir, err);
    if (rc)
        return rc;
    e->frame = mr_tokenizer_frame(e->tokenizer);
    if (!e->frame)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: its tokenizer is byte-level BPE, not WordPiece", dir);
    int size = mr_tokenizer_vocab_size(e->tokenizer);
    if (size > e->config->vocab_size)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: the tokenizer has ids up to %d, but the model's vocabulary has %d", dir,
                       size - 1, e->config->vocab_size);
    return 0;
}

static int stopped(void *arg, size_t done, size_t total)
{
    (void)arg;
    (void)done;
    (void)total;
    return mr_device_stop ? 1 : 0;
}

static int open_encoder(struct mr_encoder *e, const char *dir, const char *device,
                        const struct mr_encoder_options *opt, struct mr_error *err)
{
    bool cpu = !device || strcmp(device, "cpu:") == 0;
    const struct mr_pack_options pack = {.encoder = true,
                                         .smooth = true,
                                         .describe = cpu,
                                         .calibrate = cpu ? NULL : opt->calibrate,
                                         .progress = stopped};
    int rc = cpu ? 0 : mr_device_open(&e->dev, device, err);
    if (rc == 0)
        rc = mr_pack_directory(&e->packed, dir, &pack, err);
    if (rc)
        return rc;
    e->config = mr_checkpoint_config(e->packed.checkpoint);
    e->max_tokens = e->config->n_positions;
    rc = open_tokenizer(e, dir, err);
    if (!rc)
        rc = mr_pooling_read(dir, &e->pooling, &e->max_tokens, err);
    if (e->max_tokens > e->config->n_positions)
        e->max_tokens = e->config->n_positions;
    if (!rc)
        rc = read_labels(e, dir, err);
    if (!rc && device)
        rc = cpu ? mr_cpu_open(&e->cpu, e->packed.checkpoint, err)
                 : mr_encode_open(&e->device, &e->packed, e->dev, opt->two_pass, err);
    return rc ? rc : mr_cpu_heads_open(&e->heads, e->packed.checkpoint, err);
}

int mr_encoder_open(struct mr_encoder **encoder, const char *dir, const char *device,
                    const struct mr_encoder_options *opt, struct mr_error *err)
{
    static const struct mr_encoder_options none;
    *encoder = NULL;
    struct mr_encoder *e = calloc(1, sizeof *e);
    if (!e)
        return mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", dir);
    int rc = open_encoder(e, dir, device, opt ? opt : &none, err);
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
    mr_tokenizer_close(encoder->tokenizer);
    json_decref(encoder->labels);
    free(encoder->names);
    free(encoder);
}

void mr_encoder_get_info(const struct mr_encoder *encoder, struct mr_encoder_info *info)
{
    const struct mr_config *c = encoder->config;
    bool labels = mr_cpu_heads_have(encoder->heads, MR_HEAD_LABELS);
    *info = (struct mr_encoder_info){
        .architecture = mr_arch_of(c)->title,
        .parameters = mr_config_parameters(c),
        .vocab_size = c->vocab_size,
        .n_positions = c->n_positions,
        .n_embd = c->n_embd,
        .n_layer = c->n_layer,
        .n_head = c->n_head,
        .n_inner = c->n_inner,
        .max_tokens = encoder->max_tokens,
        .pooling = encoder->pooling,
        .stream_bytes = (uint64_t)mr_stream_beats(c, MR_FORMAT_MXINT8, 1) * MR_BEAT,
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
    return mr_tokenizer_bytes(encoder->tokenizer, id, size);
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
    int most = text->most > 0 && text->most < e->max_tokens ? text->most : e->max_tokens;
    size_t around = text->pair ? 3 : 2, room = (size_t)most - around;
    int rc = text->ids ? take_ids(e, text, &a, err)
                       : mr_tokenizer_encode(e->tokenizer, text->text, text->size, MR_SPECIAL_PARSE,
                                             &a, err);
    if (rc == 0 && text->pair)
        rc = mr_tokenizer_encode(e->tokenizer, text->pair, text->pair_size, MR_SPECIAL_PARSE, &b,
                                 err);
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
