// SPDX-License-Identifier: Apache-2.0
#include "store/params.h"

#include <string.h>

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
