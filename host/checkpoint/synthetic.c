// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/synthetic.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"

enum { BYTE_TOKENS = 256, NAME = 96 };

struct part {
    const char *name;
    int rows, cols; // cols 0: a vector
    float mean, scale;
};

enum { LAYER_PARTS = 10, MODEL_PARTS = 5 };

// Part `i` of the checkpoint, layer by layer, then those of the model.
static struct part part_at(const struct mr_config *c, int i, char name[NAME])
{
    int e = c->n_embd, f = c->n_inner, layer = i / LAYER_PARTS;
    float we = 1.0F / sqrtf((float)e), wf = 1.0F / sqrtf((float)f);
    const struct part in_layer[LAYER_PARTS] = {
        {"ln_1.weight", e, 0, 1, 0.2F},          {"ln_1.bias", e, 0, 0, 0.1F},
        {"attn.q_proj.weight", e, e, 0, 2 * we}, {"attn.k_proj.weight", e, e, 0, 2 * we},
        {"attn.v_proj.weight", e, e, 0, we},     {"attn.out_proj.weight", e, e, 0, we},
        {"mlp.fc_in.weight", f, e, 0, we},       {"mlp.fc_in.bias", f, 0, 0, 0.1F},
        {"mlp.fc_out.weight", e, f, 0, wf},      {"mlp.fc_out.bias", e, 0, 0, 0.1F},
    };
    const struct part in_model[MODEL_PARTS] = {
        {"transformer.wte.weight", c->vocab_size, e, 0, 1},
        {"transformer.ln_f.weight", e, 0, 1, 0.2F},
        {"transformer.ln_f.bias", e, 0, 0, 0.1F},
        {"lm_head.weight", c->vocab_size, e, 0, 2 * we},
        {"lm_head.bias", c->vocab_size, 0, 0, 0.1F},
    };
    struct part p;
    if (layer < c->n_layer) {
        p = in_layer[i % LAYER_PARTS];
        snprintf(name, NAME, "transformer.h.%d.%s", layer, p.name);
    } else {
        p = in_model[i - c->n_layer * LAYER_PARTS];
        snprintf(name, NAME, "%s", p.name);
    }
    p.name = name;
    return p;
}

static int part_count(const struct mr_config *c)
{
    return c->n_layer * LAYER_PARTS + MODEL_PARTS;
}

static size_t part_size(const struct part *p)
{
    return (size_t)p->rows * (size_t)(p->cols ? p->cols : 1);
}

// xorshift64*; the sum of four uniform numbers has about a normal distribution (variance 1/3).
static float noise(uint64_t *state)
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
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:n}", "model_type", "gptj",
                     "vocab_size", c->vocab_size, "n_positions", c->n_positions, "n_embd",
                     c->n_embd, "n_layer", c->n_layer, "n_head", c->n_head, "rotary_dim",
                     c->rotary_dim, "n_inner", c->n_inner, "eos_token_id", eos, "bos_token_id");
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
    for (int i = 0; i < part_count(c); i++) {
        char name[NAME];
        struct part p = part_at(c, i, name);
        json_t *shape = p.cols ? json_pack("[i, i]", p.rows, p.cols) : json_pack("[i]", p.rows);
        size_t end = at + 2 * part_size(&p);
        json_object_set_new(root, name,
                            json_pack("{s:s, s:o, s:[I, I]}", "dtype", "BF16", "shape", shape,
                                      "data_offsets", (json_int_t)at, (json_int_t)end));
        at = end;
    }
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

static int write_weights(const char *dir, const struct mr_config *c, uint64_t seed,
                         struct mr_error *err)
{
    static const char file[] = "model.safetensors";
    FILE *f = NULL;
    char *header = header_text(c);
    int rc = header ? open_file(&f, dir, file, err)
                    : mr_fail(err, MR_ERR_MEMORY, "%s/%s: no memory", dir, file);
    if (rc == 0) {
        uint64_t size = strlen(header), state = seed * 0x9E3779B97F4A7C15u + 1;
        fwrite(&size, sizeof size, 1, f); // errors are looked at once, when closing
        fwrite(header, 1, size, f);
        for (int i = 0; i < part_count(c); i++) {
            char name[NAME];
            struct part p = part_at(c, i, name);
            for (size_t k = 0; k < part_size(&p); k++) {
                uint16_t v = bf16(p.mean + p.scale * noise(&state));
                fwrite(&v, sizeof v, 1, f);
            }
        }
        rc = close_file(f, dir, file, err);
    }
    free(header);
    return rc;
}

int mr_synthetic_write(const char *dir, const struct mr_config *c, uint64_t seed,
                       struct mr_error *err)
{
    int rc = write_json(config_json(c), dir, "config.json", err);
    if (rc == 0 && c->vocab_size > BYTE_TOKENS)
        rc = write_json(tokenizer_json(), dir, "tokenizer.json", err);
    return rc == 0 ? write_weights(dir, c, seed, err) : rc;
}
