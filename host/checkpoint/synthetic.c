// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/synthetic.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "model/tensors.h"

enum { BYTE_TOKENS = 256 };

// Tensor `i` as the file has it: block by block, then those of the model.
static struct mr_tensor_spec part_at(const struct mr_config *c, size_t i)
{
    size_t model = (size_t)mr_model_tensors(c), blocks = mr_tensor_specs(c) - model;
    return mr_tensor_spec(c, i < blocks ? model + i : i - blocks);
}

// What the weights of a file follow from.
struct weights {
    const struct mr_config *c;
    uint64_t seed;
    const struct mr_synthetic_draw *draw; // of a training's start; NULL: of the usual size
};

static int draw_of(const struct mr_item *item)
{
    return item->kind == MR_EMBED    ? MR_DRAW_TABLE
           : item->to == MR_RESIDUAL ? MR_DRAW_OUTPUT
                                     : MR_DRAW_MATRIX;
}

// Mean and standard deviation. Of the usual size, outputs of matrices are as large as their inputs,
// but for logits and scores, which are larger.
static void sizes_of(const struct mr_tensor_spec *t, const struct mr_synthetic_draw *draw,
                     float *mean, float *scale)
{
    const struct mr_item *item = t->item;
    *mean = item->kind == MR_NORM && t->part == MR_WEIGHT ? 1 : 0;
    if (draw)
        *scale = t->part == MR_BIAS || item->kind == MR_NORM ? 0 : draw[draw_of(item)].deviation;
    else if (t->part == MR_BIAS)
        *scale = 0.1F;
    else if (item->kind == MR_NORM)
        *scale = 0.2F;
    else if (item->kind == MR_EMBED)
        *scale = item->by == MR_BY_TOKEN ? 1 : 0.5F;
    else
        *scale = (item->to == MR_Q || item->to == MR_K || item->to == MR_RESULT ? 2.0F : 1.0F) *
                 (1.0F / sqrtf((float)(item->transposed ? t->rows : t->cols)));
}

// xorshift64*; the sum of four uniform numbers has about a normal distribution (variance 1/3).
float mr_synthetic_normal(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    x *= 0x2545F4914F6CDD1Du;
    int sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (int)(x >> (16 * i) & 0xFFFF) - 32768;
    return (float)sum * (1.7320508F / 65536);
}

static uint16_t bf16(float v)
{
    uint32_t u;
    memcpy(&u, &v, 4);
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

static int open_file(FILE **f, const char *dir, const char *name, struct mr_error *err)
{
    char *path = mr_path_join(dir, name, err);
    *f = path ? fopen(path, "wb") : NULL;
    int rc =
        *f ? 0 : mr_fail(err, MR_ERR_IO, "%s/%s: cannot create: %s", dir, name, strerror(errno));
    free(path);
    return rc;
}

static int close_file(FILE *f, const char *dir, const char *name, struct mr_error *err)
{
    bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad)
        return mr_fail(err, MR_ERR_IO, "%s/%s: cannot write: %s", dir, name, strerror(errno));
    return 0;
}

// Writes and frees `root`.
static int write_json(json_t *root, const char *dir, const char *name, struct mr_error *err)
{
    FILE *f = NULL;
    int rc = root ? open_file(&f, dir, name, err)
                  : mr_fail(err, MR_ERR_MEMORY, "%s/%s: no memory", dir, name);
    if (rc == 0) {
        bool bad = json_dumpf(root, f, JSON_INDENT(1)) < 0;
        rc = close_file(f, dir, name, err);
        if (rc == 0 && bad)
            rc = mr_fail(err, MR_ERR_IO, "%s/%s: cannot write", dir, name);
    }
    json_decref(root);
    return rc;
}

static json_t *config_json(const struct mr_config *c)
{
    json_t *eos = c->eos_token_id < 0 ? json_null() : json_integer(c->eos_token_id);
    if (c->n_more_eos > 0) {
        eos = json_pack("[o]", eos);
        for (int i = 0; i < c->n_more_eos; i++)
            json_array_append_new(eos, json_integer(c->more_eos_ids[i]));
    }
    const struct mr_arch *arch = mr_arch_of(c);
    json_t *root = json_pack("{s:s}", "model_type", arch->type);
    for (int i = 0; i < arch->n_keys; i++) {
        const struct mr_config_key *k = &arch->keys[i];
        int value = *(const int *)(const void *)((const char *)c + k->at);
        json_object_set_new(root, k->key, json_integer(value));
    }
    for (int i = 0; i < arch->n_flags; i++) {
        bool value = *(const bool *)(const void *)((const char *)c + arch->flags[i].at);
        json_object_set_new(root, arch->flags[i].key, json_boolean(value));
    }
    for (int i = 0; i < arch->n_settings; i++) {
        const struct mr_config_setting *s = &arch->settings[i];
        if (s->function && c->function)
            json_object_set_new(root, s->key, json_string(mr_function_name(c->function)));
    }
    // No key would mean GPT-2's rates, which nothing here draws or trains with.
    for (int i = 0; i < arch->n_dropout; i++)
        if (arch->dropout[i].missing > 0)
            json_object_set_new(root, arch->dropout[i].key, json_real(0));
    json_object_set_new(root, "eos_token_id", eos);
    json_object_set_new(root, "bos_token_id", json_null());
    return root;
}

// GPT-2's alphabet: printable Latin-1 stands for itself, other bytes for U+0100 and on.
static json_t *byte_vocab(void)
{
    json_t *vocab = json_object();
    int next = 0x100;
    for (int byte = 0; byte < BYTE_TOKENS; byte++) {
        bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
        int c = printable ? byte : next++;
        char utf8[3] = {(char)c, 0, 0};
        if (c >= 0x80) {
            utf8[0] = (char)(0xC0 | c >> 6);
            utf8[1] = (char)(0x80 | (c & 63));
        }
        json_object_set_new(vocab, utf8, json_integer(byte));
    }
    return vocab;
}

static json_t *tokenizer_json(void)
{
    return json_pack("{s:[{s:s, s:i, s:b}], s:{s:s, s:b, s:b}, s:{s:s}, s:{s:s, s:o, s:[]}}",
                     "added_tokens", "content", "<|endoftext|>", "id", BYTE_TOKENS, "special", 1,
                     "pre_tokenizer", "type", "ByteLevel", "add_prefix_space", 0, "use_regex", 1,
                     "decoder", "type", "ByteLevel", "model", "type", "BPE", "vocab", byte_vocab(),
                     "merges");
}

static char *header_text(const struct mr_config *c)
{
    json_t *root = json_object();
    size_t at = 0;
    for (size_t i = 0; i < mr_tensor_specs(c); i++) {
        char name[MR_NAME];
        struct mr_tensor_spec t = part_at(c, i);
        if (t.item->share > 0)
            continue;
        struct mr_file_tensor f = mr_file_tensor(&t);
        json_t *shape = f.cols ? json_pack("[i, i]", f.rows, f.cols) : json_pack("[i]", f.rows);
        size_t end = at + 2 * f.lines * f.run * (size_t)f.shares;
        json_object_set_new(root, mr_tensor_name(c, t.layer, t.item, t.part, name),
                            json_pack("{s:s, s:o, s:[I, I]}", "dtype", "BF16", "shape", shape,
                                      "data_offsets", (json_int_t)at, (json_int_t)end));
        at = end;
    }
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

// `count` weights of a tensor of the list.
static void write_run(FILE *f, const struct mr_tensor_spec *t, size_t count,
                      const struct mr_synthetic_draw *draw, uint64_t *state)
{
    float mean, scale;
    sizes_of(t, draw, &mean, &scale);
    const struct mr_synthetic_draw *d = draw && scale > 0 ? &draw[draw_of(t->item)] : NULL;
    for (size_t k = 0; k < count; k++) {
        float x = scale * mr_synthetic_normal(state);
        while (d && d->low < d->high && (x < d->low || x > d->high))
            x = scale * mr_synthetic_normal(state);
        uint16_t v = bf16(mean + x);
        fwrite(&v, sizeof v, 1, f);
    }
}

static int write_weights(const char *dir, const struct weights *w, struct mr_error *err)
{
    static const char file[] = "model.safetensors";
    const struct mr_config *c = w->c;
    FILE *f = NULL;
    char *header = header_text(c);
    int rc = header ? open_file(&f, dir, file, err)
                    : mr_fail(err, MR_ERR_MEMORY, "%s/%s: no memory", dir, file);
    if (rc == 0) {
        uint64_t size = strlen(header), state = w->seed * 0x9E3779B97F4A7C15u + 1;
        fwrite(&size, sizeof size, 1, f); // errors are looked at once, when closing
        fwrite(header, 1, size, f);
        for (size_t i = 0; i < mr_tensor_specs(c); i++) {
            struct mr_tensor_spec t = part_at(c, i);
            struct mr_file_tensor whole = mr_file_tensor(&t);
            size_t shares = t.item->share > 0 ? 0 : (size_t)whole.shares;
            for (size_t k = 0; k < whole.lines * shares; k++) {
                t = part_at(c, i + k % shares * whole.step);
                write_run(f, &t, whole.run, w->draw, &state);
            }
        }
        rc = close_file(f, dir, file, err);
    }
    free(header);
    return rc;
}

static int write_all(const char *dir, const struct weights *w, struct mr_error *err)
{
    int rc = write_json(config_json(w->c), dir, "config.json", err);
    if (rc == 0 && w->c->vocab_size > BYTE_TOKENS)
        rc = write_json(tokenizer_json(), dir, "tokenizer.json", err);
    return rc == 0 ? write_weights(dir, w, err) : rc;
}

int mr_synthetic_write(const char *dir, const struct mr_config *c, uint64_t seed,
                       struct mr_error *err)
{
    return write_all(dir, &(struct weights){c, seed, NULL}, err);
}

int mr_synthetic_start(const char *dir, const struct mr_config *c, uint64_t seed,
                       const struct mr_synthetic_draw draw[MR_DRAWS], struct mr_error *err)
{
    static const struct mr_synthetic_draw usual[MR_DRAWS] = {
        {0.02F, 0, 0}, {0.02F, 0, 0}, {0.02F, 0, 0}};
    return write_all(dir, &(struct weights){c, seed, draw ? draw : usual}, err);
}
