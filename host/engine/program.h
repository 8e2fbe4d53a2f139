// SPDX-License-Identifier: Apache-2.0
// GPT-J as a device program (docs/commands.md): compiled once per model, free of geometry.
#ifndef MILLRACE_ENGINE_PROGRAM_H
#define MILLRACE_ENGINE_PROGRAM_H

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

// head: with ln_f and lm_head, logits to the result window; else the KV store is all that is left.
int mr_program_build(struct mr_program *p, const struct mr_config *c, enum mr_format layers,
                     bool head, struct mr_error *err);

// Words of activation and q/k/v memory that a row slot needs.
int mr_program_act_words(const struct mr_dims *d);
int mr_program_qkv_words(const struct mr_dims *d);
void mr_program_free(struct mr_program *p);

#endif
