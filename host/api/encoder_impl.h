// SPDX-License-Identifier: Apache-2.0
// What stands behind struct mr_encoder, and its texts as tokens; not for callers.
#pragma once

#include <jansson.h>

#include "cpu/cpu.h"
#include "cpu/heads.h"
#include "engine/encode.h"
#include "millrace.h"
#include "text/tokenizer.h"

struct mr_encoder {
    struct mr_packed packed; // for cpu: without its stream
    const struct mr_config *config;
    struct mr_cpu *cpu; // NULL: on a device
    struct mr_device *dev;
    struct mr_encode *device;
    struct mr_cpu_heads *heads;
    const struct mr_frame *frame; // of packed.tokenizer
    json_t *labels;               // "id2label" of config.json, or NULL
    char (*names)[24];            // of labels without one: "LABEL_3"
};

// A text as the model reads it: [CLS] text [SEP], and pair [SEP] of type 1. Zero-initialise.
struct mr_framed {
    struct mr_tokens tokens, types;
    bool cut;
};

int mr_encoder_frame(const struct mr_encoder *e, const struct mr_encoder_text *text,
                     struct mr_framed *framed, struct mr_error *err);
// rows[count][n_embd] of texts that are framed already, all of them at once. opt NULL: as the
// directory says.
int mr_encoder_embed_framed(struct mr_encoder *e, int count, const struct mr_framed *framed,
                            const struct mr_embed_options *opt, float *rows, struct mr_error *err);
void mr_framed_free(struct mr_framed *framed);

// Can the model do what needs this head?
int mr_encoder_need(const struct mr_encoder *e, enum mr_head head, const char *what,
                    struct mr_error *err);
