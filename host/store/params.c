// SPDX-License-Identifier: Apache-2.0
#include "store/params.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int mr_params_new(struct mr_params *p, const struct mr_config *config, struct mr_error *err)
{
    *p = (struct mr_params){.config = config, .count = mr_tensor_specs(config)};
    p->first = calloc(p->count + 1, sizeof *p->first);
    size_t all = 0;
    for (size_t i = 0; p->first && i < p->count; i++) {
        int rows, cols;
        mr_params_shape(config, i, &rows, &cols);
        p->first[i] = all;
        all += (size_t)rows * (size_t)cols;
    }
    if (p->first)
        p->first[p->count] = all;
    p->data = p->first && all <= SIZE_MAX / sizeof *p->data ? calloc(all, sizeof *p->data) : NULL;
    if (!p->data) {
        mr_params_free(p);
        return mr_fail(err, MR_ERR_MEMORY, "out of memory: %zu parameters in fp32", all);
    }
    return 0;
}

void mr_params_free(struct mr_params *p)
{
    free(p->first);
    free(p->data);
    *p = (struct mr_params){0};
}

float *mr_params_at(const struct mr_params *p, size_t i)
{
    return p->data + p->first[i];
}

size_t mr_params_size(const struct mr_params *p, size_t i)
{
    return p->first[i + 1] - p->first[i];
}

static const struct mr_item *table_of(const struct mr_arch *arch, const struct mr_item *tied)
{
    int i = 0;
    while (strcmp(arch->tables.items[i].name, tied->name) != 0)
        i++;
    return &arch->tables.items[i];
}

size_t mr_params_index(const struct mr_config *config, int layer, const struct mr_item *item,
                       enum mr_part part)
{
    const struct mr_arch *arch = mr_arch_of(config);
    if (part == MR_WEIGHT && mr_item_tied(arch, item))
        item = table_of(arch, item);
    size_t i = 0;
    bool block = layer >= 0 && layer < config->n_layer;
    if (block) // the first block's tensors stand behind the model's
        i = (size_t)mr_model_tensors(config);
    for (;; i++) {
        struct mr_tensor_spec t = mr_tensor_spec(config, i);
        if (t.item == item && t.part == part)
            break;
    }
    return block ? i + (size_t)layer * (size_t)mr_block_tensors(arch) : i;
}

static bool turned(const struct mr_tensor_spec *t)
{
    return t->part == MR_WEIGHT && t->item->kind == MR_LINEAR && t->item->transposed;
}

void mr_params_shape(const struct mr_config *config, size_t i, int *rows, int *cols)
{
    struct mr_tensor_spec t = mr_tensor_spec(config, i);
    *rows = turned(&t) ? t.cols : t.rows;
    *cols = turned(&t) ? t.rows : t.cols > 0 ? t.cols : 1;
}

int mr_params_read(struct mr_params *p, const struct mr_checkpoint *checkpoint,
                   struct mr_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        struct mr_tensor_spec s = mr_tensor_spec(p->config, i);
        int layer = s.layer < 0 ? p->config->n_layer : s.layer;
        const struct mr_tensor *t = mr_checkpoint_item(checkpoint, layer, s.item, s.part);
        int rc =
            t ? mr_tensor_read_f32(t, 0, mr_params_size(p, i), mr_params_at(p, i)) : MR_ERR_USAGE;
        char name[MR_NAME];
        if (rc)
            return mr_fail(err, rc, "%s: cannot read its %zu elements from the checkpoint",
                           mr_tensor_name(p->config, s.layer, s.item, s.part, name),
                           mr_params_size(p, i));
    }
    return 0;
}

void mr_params_turn(const struct mr_config *config, size_t i, const float *in, float *out)
{
    struct mr_tensor_spec t = mr_tensor_spec(config, i);
    size_t inputs = (size_t)t.rows, outputs = (size_t)(t.cols > 0 ? t.cols : 1);
    if (!turned(&t)) {
        memcpy(out, in, inputs * outputs * sizeof *out);
        return;
    }
    for (size_t r = 0; r < inputs; r++)
        for (size_t c = 0; c < outputs; c++)
            out[r * outputs + c] = in[c * inputs + r];
}

void mr_params_export(const struct mr_params *p, size_t i, float *out)
{
    mr_params_turn(p->config, i, mr_params_at(p, i), out);
}
