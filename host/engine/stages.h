// SPDX-License-Identifier: Apache-2.0
// A pass in stages, where device memory does not hold all weights: which of them stay there, and
// which come over the link in each pass, through two slots (docs/use/streaming.md).
#pragma once

#include "engine/program.h"
#include "pack/packed.h"

// Each is a run of the device.
struct mr_stage {
    struct mr_program_stage what;
    bool streamed;
    int64_t beats; // of its weights on a channel
};

struct mr_stages {
    struct mr_stage *list;
    int count, layers;      // all; those before the tail's
    int units, streamed;    // layers and pieces of the tail; how many of them come over the link
    int64_t slot_beats;     // of one slot on a channel
    int64_t streamed_beats; // a pass with head, on a channel
};

// Bytes on a channel that two slots take.
uint64_t mr_stages_least(const struct mr_config *c, enum mr_format layers, int channels);

// For `room` bytes on a channel, at least the above. side_beats: the residual rows alternate
// between res_off and so many beats before the input (struct mr_program_stage). MR_ERR_MEMORY.
int mr_stages_make(struct mr_stages *stages, const struct mr_config *c, enum mr_format layers,
                   int channels, uint64_t room, int side_beats, struct mr_error *err);
void mr_stages_free(struct mr_stages *stages);

// What the slots are to hold while stage i runs (-1: before the first), of a pass that ends before
// `end`: what comes next in it, then in the pass after it, which has the same layers. held[s]:
// whose weights slot s has or gets, -1 nobody's; what is to be copied is put there. Returns a mask
// of the slots that have changed.
enum { MR_SLOTS = 2 };
unsigned mr_stages_ahead(const struct mr_stages *stages, int i, int end, int held[MR_SLOTS]);

// The stage's bytes on a channel: at `room`, dealt from the one-channel stream, or where they lie
// behind each other in it.
const void *mr_stage_bytes(const struct mr_stage *stage, const struct mr_packed *packed,
                           int channels, int channel, uint8_t *room);
