// SPDX-License-Identifier: Apache-2.0
// BERT checkpoints whose weights follow from the tensors' names, as tests/fixtures/make_bert.py
// draws them.
#ifndef MILLRACE_TESTS_UNIT_BERT_MODEL_H
#define MILLRACE_TESTS_UNIT_BERT_MODEL_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/config.h"
#include "common/buf.h"
#include "model/tensors.h"

static uint64_t bert_fnv(const char *text)
{
    uint64_t h = 0xcbf29ce484222325U;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3U;
    return h;
}

// What make_bert.py draws for a tensor of this name.
static void bert_draw(const char *name, size_t count, int cols, float *out)
{
    uint64_t state = bert_fnv(name);
    const char *norm = strstr(name, "LayerNorm.weight");
    int shift = cols ? 1 - (int)rint(log2(cols) / 2) : 0;
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        double w = (double)((state >> 40) & 255) / 128 - 1;
        if (norm)
            w = 1 + w / 4;
        else if (!cols)
            w /= 2;
        else if (!strstr(name, "embeddings"))
            w = ldexp(w, shift);
        out[i] = (float)w;
    }
}

// A checkpoint that is written tensor by tensor, and what may be wrong with it.
struct bert_file {
    struct mr_buf header, data;
    uint64_t names;          // as make_bert.py's names()
    const char *left_out;    // a tensor
    const char *wrong_shape; // one that has a row too many
    int failed;
    bool old; // gamma and beta, no prefix, and the buffer of positions
};

static void bert_entry(struct bert_file *w, const char *name, int rows, int cols, const float *data)
{
    struct mr_error err = {0};
    size_t bytes = (size_t)rows * (size_t)(cols ? cols : 1) * sizeof *data;
    char entry[256], shape[32];
    (void)snprintf(shape, sizeof shape, cols ? "%d,%d" : "%d", rows, cols);
    int n = snprintf(entry, sizeof entry,
                     "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                     w->header.size ? "," : "{", name, shape, w->data.size, w->data.size + bytes);
    w->failed |= mr_buf_append(&w->header, entry, (size_t)n, &err);
    w->failed |= mr_buf_append(&w->data, data, bytes, &err);
}

static void bert_tensor(struct bert_file *w, const char *name, int rows, int cols)
{
    char text[160], called[128];
    (void)snprintf(text, sizeof text, cols ? "%s [%d, %d]" : "%s [%d]", name, rows, cols);
    w->names += bert_fnv(text);
    if (w->left_out && strcmp(name, w->left_out) == 0)
        return;
    rows += w->wrong_shape && strcmp(name, w->wrong_shape) == 0;
    size_t count = (size_t)rows * (size_t)(cols ? cols : 1);
    float *data = calloc(count, sizeof *data);
    if (!data) {
        w->failed = 1;
        return;
    }
    bert_draw(name, count, cols, data);
    (void)snprintf(called, sizeof called, "%s",
                   w->old && strncmp(name, "bert.", 5) == 0 ? name + 5 : name);
    char *norm = w->old ? strstr(called, "LayerNorm.") : NULL;
    if (norm)
        (void)strcpy(norm + 10, strcmp(norm + 10, "weight") == 0 ? "gamma" : "beta");
    bert_entry(w, called, rows, cols, data);
    free(data);
}

static int bert_file(const char *dir, const char *name, const void *data, size_t size)
{
    char path[600];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    if (!f)
        return 1;
    size_t n = fwrite(data, 1, size, f);
    return fclose(f) != 0 || n != size;
}

// Writes config.json and model.safetensors with every tensor that the configuration asks for; 0, or
// not if it cannot.
static int bert_write(struct bert_file *w, const char *dir, const char *config)
{
    struct mr_config c;
    struct mr_error err = {0};
    char path[600];
    (void)snprintf(path, sizeof path, "%s/config.json", dir);
    if (bert_file(dir, "config.json", config, strlen(config)) ||
        mr_config_load(&c, path, MR_ENCODER, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (size_t i = 0; i < mr_tensor_specs(&c); i++) {
        char name[MR_NAME];
        struct mr_tensor_spec t = mr_tensor_spec(&c, i);
        bert_tensor(w, mr_tensor_name(&c, t.layer, t.item, t.part, name), t.rows, t.cols);
    }
    for (int i = 0; i < c.arch->n_heads; i++)
        if (c.heads >> c.arch->heads[i].head & 1U && !c.arch->heads[i].copy_of)
            bert_tensor(w, c.arch->heads[i].name, mr_head_rows(&c, i), mr_head_cols(&c, i));
    if (w->old) // of integers in real files, but it is skipped whatever it is
        bert_entry(w, "embeddings.position_ids", 2, 0, (float[]){0, 1});
    w->failed |= mr_buf_append(&w->header, "}", 1, &err);
    uint64_t length = w->header.size;
    struct mr_buf file = {0};
    w->failed |= mr_buf_append(&file, &length, sizeof length, &err);
    w->failed |= mr_buf_append(&file, w->header.data, w->header.size, &err);
    w->failed |= mr_buf_append(&file, w->data.data, w->data.size, &err);
    w->failed |= bert_file(dir, "model.safetensors", file.data, file.size);
    mr_buf_free(&file);
    mr_buf_free(&w->header);
    mr_buf_free(&w->data);
    return w->failed;
}

#endif
