// SPDX-License-Identifier: Apache-2.0
// New weights on their way to a device while the host still updates others: each item of the
// streams goes as soon as the store has it, by a thread of its own. For devices without the update.
#pragma once

#include "device/device.h"
#include "store/store.h"

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
