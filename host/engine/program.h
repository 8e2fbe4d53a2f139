// SPDX-License-Identifier: Apache-2.0
// A model as a device program (docs/inside/commands.md): compiled once from the model's
// description, free of geometry.
#pragma once

#include "cmodel/command.h"
#include "pack/layout.h"

struct mr_program {
    struct mr_command *cmds;
    int count, capacity;
    // what the host must provide for it, per token or per logit row
    int act_words, qkv_words;        // used per row slot
    int res_beats, rot_beats;        // input
    int table_off, rot_off, res_off; // beats in the input window
    int out_beats;                   // a row of logits
};

enum { MR_PROGRAM_ROWS = 512 }; // room for rows in the input window: the largest T

// A part of a pass that is a run of its own: blocks first..last - 1, or the tail (n_layer,
// n_layer + 1) for some columns of the result.
struct mr_program_stage {
    int first, last;
    int first_col, cols; // of the result, multiples of 64; cols 0: all
    bool save;           // at the end the residual rows go to the result window
    int shift;           // 0: they come from res_off; else all else lies so many beats further on
    // Of an encoder whose text is longer than a run has rows. All its chunks go through stage
    // first = 0, then all through stage 1, up to n_layer. A row needs K and V of all chunks, so
    // stage i ends with those of block i. Before it is the rest of block i - 1, and at its
    // beginning the norms that stand in front of that once more: rows are saved as they enter the
    // last norm.
    bool chunks;
};
int mr_program_build(struct mr_program *p, const struct mr_config *c, enum mr_format layers,
                     const struct mr_program_stage *stage, struct mr_error *err);

// Item i of the stage's weights, with its columns; mr_stage_items() of them, from mr_stage_first()
// on, but those of chunks lie elsewhere, too: mr_stage_index() is where each lies in the stream.
int mr_stage_first(const struct mr_config *c, const struct mr_program_stage *stage);
int mr_stage_items(const struct mr_config *c, const struct mr_program_stage *stage);
int mr_stage_index(const struct mr_config *c, const struct mr_program_stage *stage, int i);
struct mr_stream_item mr_stage_item(const struct mr_config *c, enum mr_format layers,
                                    const struct mr_program_stage *stage, int i);
void mr_program_free(struct mr_program *p);

// Where a row slot has the places of items, in words of their memory, and the row-maximum slot of
// those in activation memory. They lie in the order in which items write them first.
struct mr_program_places {
    int base[MR_PLACES], slot[MR_PLACES];
    int act_words, qkv_words; // in all
};

struct mr_program_places mr_program_places(const struct mr_config *c);
