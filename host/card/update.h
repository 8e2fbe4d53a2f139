// SPDX-License-Identifier: Apache-2.0
// A step's update on the device that trains (hls/README.md): weights and both moments lie in its
// memory, its kernel writes both streams where the engine reads them. What the host has of a step
// goes there, its gradients, and what a step makes safe comes back, the new state.
#pragma once

#include "device/device.h"
#include "store/store.h"

struct mr_card_update;

// Has the store's steps done by the device, which has the streams there, until it is closed. Where
// the device cannot, or has no room, *card is NULL and `why` says so in a few words; it is empty
// where no device of its kind can. Store and device are borrowed.
int mr_card_update_open(struct mr_card_update **card, struct mr_store *store, struct mr_device *dev,
                        const struct mr_device_streams *streams, char why[160],
                        struct mr_error *err);
void mr_card_update_close(struct mr_card_update *card);           // NULL is allowed
uint64_t mr_card_update_bytes(const struct mr_card_update *card); // of device memory

// New weights on their way to a device while the host still updates others: each item of the
// streams goes as soon as the store has it, by a thread of its own. For devices without the update.
struct mr_weight_upload;

// Writes an item of both streams (mr_stream_items()) into the device's memory.
typedef int mr_weight_send(void *arg, int item, struct mr_error *err);

// From now on the store's steps hand over their streams; all are borrowed. No run of the device may
// be under way in a step's update.
int mr_weight_upload_open(struct mr_weight_upload **upload, struct mr_store *store,
                          struct mr_device *dev, mr_weight_send *send, void *arg,
                          struct mr_error *err);
void mr_weight_upload_close(struct mr_weight_upload *upload); // NULL is allowed
// Behind mr_store_apply(), whatever that returned: waits. 1: the device has all new weights, 0: not
// all were handed over.
int mr_weight_upload_end(struct mr_weight_upload *upload, struct mr_error *err);
