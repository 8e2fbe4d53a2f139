// SPDX-License-Identifier: Apache-2.0
// The header of a store, version 5 (docs/inside/store.md): two slots, of which the newer valid one
// counts. Writing one slot, with a sync before and behind it, is what makes a step atomic.
#pragma once

#include "store/update.h"
#include "store/choice.h"
#include "store/layout.h"
#include "store/volume.h"

enum {
    MR_STORE_VERSION = 5,   // those since 1 are read, too
    MR_STORE_ORIGIN = 2,    // the first version that says what a state was made from
    MR_STORE_LINEAGE = 3,   // the first one that says which training it is of
    MR_STORE_OPTIMIZER = 4, // the first one with other optimizers, and choices of tensors; states
                            // and updates without them stay version 3
    MR_STORE_ADAPTER = 5,   // of an adapter; all others stay as they were
    MR_STORE_NOTE = 256,    // bytes of the caller's, which a step writes along
    MR_STORE_CARRIED = 8,
    MR_UNIT_LIMIT = 400, // units are 2^-400 .. 2^400
};

// What an update does: bit 0, everything decays; from bit 1 on its kind, AdamW's being 0.
enum { MR_RULE_DECAY_ALL = 1, MR_RULE_KIND = 2 };

struct mr_store_carried {
    uint64_t size, hash; // of a file beside the header; both 0: there is none
};

// Of a tensor: its gradients' unit is 2^unit.
struct mr_store_unit {
    int32_t now, next; // next: when the update is complete; until then with the tensor's choice
};

struct mr_store_header {
    char magic[8];
    uint32_t version, slot_bytes;
    uint64_t hash;     // of the slot with this field zero
    uint64_t sequence; // the higher one is the newer
    uint64_t model;    // mr_store_model()
    uint64_t tensors, patches;
    uint64_t lineage;          // lineage.h; 0: it is not known
    uint64_t state_bytes, gap; // the file of the state has both
    uint64_t step;             // steps done
    uint32_t side;             // 0: the state begins at 0; 1: at `gap`
    uint32_t updating;         // 1: an update to step + 1 and the other side is under way
    // What the update needs, besides the gradients. Of none all is zero.
    uint64_t gradients; // hash of the hashes of their patches
    double rate, scale; // mr_update_factors_of()
    double beta1, beta2, epsilon, decay;
    uint32_t rule;   // MR_RULE_*; between updates the family alone
    uint32_t origin; // mr_store_origin() of what it was made from; 0: it is not known
    struct mr_store_carried carried[MR_STORE_CARRIED];
    uint8_t note[MR_STORE_NOTE], next_note[MR_STORE_NOTE];
    // Behind it: struct mr_store_unit [tensors], zeros up to slot_bytes. Of an adapter: units of
    // its tensors, of the model's tensors, struct mr_store_carried of adapter_config.json, zeros.
};

_Static_assert(sizeof(struct mr_store_header) == 800, "the layout of the file is the structure's");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are read and written in place");

// At the end of each patch of the state.
struct mr_store_seal {
    uint64_t model, step, patch;
    uint64_t lineage; // of the state at that step
    uint64_t zero[3];
    uint64_t hash; // of all bytes of the patch before it
};

_Static_assert(sizeof(struct mr_store_seal) == MR_PATCH_SEAL, "the layout of the file");

// What the parameters of a model have in common with those of another one that fits its state.
uint64_t mr_store_model(const struct mr_config *config);

uint32_t mr_store_slot_bytes(const struct mr_store_layout *l);

// Reads the newer valid slot of a header of this layout and model. *header is new memory of
// slot_bytes; it keeps its version until it is written. `where` names the store in messages.
int mr_store_header_read(struct mr_store_header **header, const struct mr_volume *v,
                         const struct mr_store_layout *l, const char *where, struct mr_error *err);

// Makes streams anew that are missing or have another size. Their contents follow.
int mr_store_streams_fit(struct mr_volume *v, const struct mr_store_layout *l, const char *where,
                         struct mr_error *err);

// Writes it over the older slot, with the next sequence, and syncs.
int mr_store_header_write(struct mr_store_header *header, struct mr_volume *v,
                          struct mr_error *err);

// `next` of an update: a unit, and MR_CHOICE_* in front of its bits.
int mr_store_coded(int unit, int choice);
int mr_store_choice(const struct mr_store_unit *unit);
int mr_store_unit_next(const struct mr_store_unit *unit);

// Of the update that is under way, else the family that the moments are of.
enum mr_update_kind mr_store_kind(const struct mr_store_header *header);

struct mr_store_unit *mr_store_units(struct mr_store_header *header);
// An adapter's: what is known of its adapter_config.json.
struct mr_store_carried *mr_store_settings(struct mr_store_header *header,
                                           const struct mr_store_layout *l);
