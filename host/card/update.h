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
