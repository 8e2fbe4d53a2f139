// SPDX-License-Identifier: Apache-2.0
// Which gradients a backward pass makes: those of tensors that learn, and of what lies between them
// and the loss.
#include "store/choice.h"
#include "train/pass_impl.h"

static bool frozen(const struct mr_pass *p, int layer, const struct mr_item *item,
                   enum mr_part part)
{
    return p->choice[mr_params_index(p->c, layer, item, part)] & MR_CHOICE_FROZEN;
}

bool pass_learns(const struct mr_pass *p, int layer, const struct mr_item *item, enum mr_part part)
{
    return mr_item_has(item, part) && !mr_item_gradient_is_zero(item, part) &&
           !frozen(p, layer, item, part);
}

bool pass_reaches(const struct mr_pass *p, int layer)
{
    bool reaches = false;
    for (int i = 0; i < mr_items_of(p->c, layer)->count; i++)
        reaches |= pass_flow(p, layer, i)->writes;
    return reaches;
}

// Forward through a layer. *residual: whether something in front of it learns.
static void find_in_layer(struct mr_pass *p, int layer, bool *residual)
{
    const struct mr_list *list = mr_items_of(p->c, layer);
    bool wants[MR_PLACES] = {false};
    wants[MR_RESIDUAL] = *residual;
    wants[MR_X] = *residual && p->encoder; // a layer begins with what the last norm wrote
    for (int i = 0; i < list->count; i++) {
        const struct mr_item *item = &list->items[i];
        struct pass_flow *flow = pass_flow(p, layer, i);
        flow->reads =
            item->kind == MR_ATTEND ? wants[MR_Q] || wants[MR_K] || wants[MR_V] : wants[item->from];
        flow->writes = flow->reads;
        for (int part = 0; part < MR_PARTS; part++)
            flow->writes |= pass_learns(p, layer, item, (enum mr_part)part);
        wants[item->to] = flow->writes || (item->to == MR_RESIDUAL && wants[MR_RESIDUAL]);
        if (item->back)
            wants[MR_RESIDUAL] = flow->writes;
    }
    *residual = wants[MR_RESIDUAL];
}

void pass_find_flow(struct mr_pass *p)
{
    const struct mr_list *tables = &mr_arch_of(p->c)->tables;
    p->tables_learn = false;
    for (int t = 0; t < tables->count; t++)
        p->tables_learn |= !frozen(p, p->c->n_layer, &tables->items[t], MR_WEIGHT);
    for (int part = 0; part < MR_PARTS && p->encoder; part++)
        p->tables_learn |=
            !frozen(p, p->c->n_layer, mr_arch_of(p->c)->front.items, (enum mr_part)part);
    bool residual = p->tables_learn;
    for (int layer = 0; layer <= p->c->n_layer; layer++)
        find_in_layer(p, layer, &residual);
}
