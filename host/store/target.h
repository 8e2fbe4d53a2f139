// SPDX-License-Identifier: Apache-2.0
// Who updates the patches of a step: the host, or what is set here, as a device that has the update
// beside its engine. Sums, factors, header and the order in which a step becomes safe stay with the
// store, which takes new patches from the target and writes them as its own.
#pragma once

#include "store/update.h"
#include "store/layout.h"
#include "store/lineage.h"

struct mr_store;

// A step of all patches. Units are mr_store_unit().
struct mr_store_work {
    const struct mr_store_layout *layout;
    const unsigned char *state; // all patches as they were before, each at its `at`
    const int32_t *gradients;   // of all elements
    struct mr_update_options options;
    struct mr_update_factors factors; // of what decays
    const uint8_t *choice;            // MR_CHOICE_* of each tensor
    struct mr_store_point now, after;
};

struct mr_store_target {
    void *arg;
    // Both streams of these tensors are those of the step, while the host still updates others.
    // NULL: nobody wants to know.
    void (*ready)(void *arg, size_t first, size_t count);
    // NULL: the host does all steps. Else what follows is there, and
    enum mr_update_kind kind; // of the steps that the target does; the host does all others
    // Does the step, and puts the new weights where the engine reads them. The store's streams are
    // not made, unless somebody asks for them.
    int (*update)(void *arg, const struct mr_store_work *work, struct mr_error *err);
    // The new tiles of a patch, 12 bytes an element.
    int (*read)(void *arg, const struct mr_store_patch *patch, void *tiles, struct mr_error *err);
};

// Borrowed; NULL: the host. A step that a target cannot end is completed when the state is opened
// again, by the host.
void mr_store_set_target(struct mr_store *store, const struct mr_store_target *target);
