// SPDX-License-Identifier: Apache-2.0
#include "card/update.h"

#include <stdlib.h>

#include "device/device.h"
#include "device/mover.h"
#include "card/places.h"
#include "pack/layout.h"
#include "store/choice.h"
#include "store/target.h"

struct item {
    struct mr_weight_upload *upload;
    struct mr_move move;
    int number, parts, left; // tensors of it: all, and those that are not ready
    bool begun;
};

struct mr_weight_upload {
    struct mr_store *store;
    mr_weight_send *send;
    void *arg;
    struct mr_mover *mover;
    struct mr_store_target target;
    struct mr_stream_place *place; // [tensors]
    struct item *item;             // [items]
    int items;
};

static int send_item(void *arg, struct mr_error *err)
{
    struct item *i = arg;
    return i->upload->send(i->upload->arg, i->number, err);
}

static void ready(void *arg, size_t first, size_t count)
{
    struct mr_weight_upload *u = arg;
    for (size_t t = first; t < first + count; t++) {
        bool frozen = mr_store_choices(u->store)[t] & MR_CHOICE_FROZEN;
        struct item *i = u->place[t].known && !frozen ? &u->item[u->place[t].item] : NULL;
        if (!i || --i->left > 0)
            continue;
        i->begun = true;
        mr_mover_begin(u->mover, &i->move);
    }
}

int mr_weight_upload_open(struct mr_weight_upload **upload, struct mr_store *store,
                          struct mr_device *dev, mr_weight_send *send, void *arg,
                          struct mr_error *err)
{
    const struct mr_config *c = mr_store_config(store);
    uint64_t beats[2];
    size_t tensors = mr_tensor_specs(c);
    struct mr_weight_upload *u = *upload = calloc(1, sizeof *u);
    if (!u)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    u->store = store;
    u->send = send;
    u->arg = arg;
    u->items = mr_stream_items(c);
    u->place = calloc(tensors, sizeof *u->place);
    u->item = calloc((size_t)u->items, sizeof *u->item);
    int rc = u->place && u->item
                 ? mr_mover_new(&u->mover, mr_device_info(dev)->clock_khz, true, err)
                 : mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    if (rc < 0) {
        mr_weight_upload_close(u);
        *upload = NULL;
        return rc;
    }
    const uint8_t *choice = mr_store_choices(store);
    mr_stream_places(c, 1, u->place, beats);
    for (size_t t = 0; t < tensors; t++)
        if (u->place[t].known && !(choice[t] & MR_CHOICE_FROZEN))
            u->item[u->place[t].item].parts++;
    for (int i = 0; i < u->items; i++) {
        u->item[i].upload = u;
        u->item[i].number = i;
        u->item[i].left = u->item[i].parts;
        u->item[i].move = (struct mr_move){.work = send_item, .arg = &u->item[i]};
    }
    u->target = (struct mr_store_target){.arg = u, .ready = ready};
    mr_store_set_target(store, &u->target);
    return 0;
}

void mr_weight_upload_close(struct mr_weight_upload *upload)
{
    if (!upload)
        return;
    mr_store_set_target(upload->store, NULL);
    mr_mover_free(upload->mover);
    free(upload->place);
    free(upload->item);
    free(upload);
}

int mr_weight_upload_end(struct mr_weight_upload *upload, struct mr_error *err)
{
    int rc = 0, sent = 0;
    for (int k = 0; k < upload->items; k++) {
        struct item *i = &upload->item[k];
        struct mr_error own = {0};
        int one = i->begun ? mr_mover_end(upload->mover, &i->move, &own) : 0;
        if (one < 0 && rc == 0) {
            rc = one;
            *err = own;
        }
        sent += i->begun || i->parts == 0; // all of it is frozen
        i->begun = false;
        i->left = i->parts;
    }
    return rc < 0 ? rc : sent == upload->items;
}
