// SPDX-License-Identifier: Apache-2.0
// Tensors of an unpacked model by name.
#pragma once

#include <string.h>

#include "model/arch.h"
#include "model/tensors.h"
#include "pack/packed.h"

static inline const struct mr_tensor *unpacked_in(const struct mr_unpacked *u,
                                                  const struct mr_config *c,
                                                  const struct mr_list *list, int layer,
                                                  const char *name)
{
    char known[MR_NAME];
    for (int i = 0; i < list->count; i++)
        for (int part = 0; part < 2; part++) {
            const struct mr_item *item = &list->items[i];
            enum mr_part p = part ? MR_BIAS : MR_WEIGHT;
            if (mr_item_has(item, p) && strcmp(mr_tensor_name(c, -1, item, p, known), name) == 0)
                return mr_unpacked_item(u, layer, item, p);
        }
    return NULL;
}

// "ln_1.weight" of a block, or, for layer -1, "transformer.wte.weight".
static inline const struct mr_tensor *
unpacked_named(const struct mr_unpacked *u, const struct mr_config *c, int layer, const char *name)
{
    const struct mr_tensor *t =
        layer < 0 ? unpacked_in(u, c, &mr_arch_of(c)->tables, -1, name) : NULL;
    layer = layer < 0 ? c->n_layer : layer;
    return t ? t : unpacked_in(u, c, mr_items_of(c, layer), layer, name);
}
