// SPDX-License-Identifier: Apache-2.0
// The shape of a model, from the config.json of a Hugging Face checkpoint.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "model/config.h"

// Whether token `id` ends a text: any of the ids that config.json gives, as in transformers.
bool mr_config_is_eos(const struct mr_config *c, int id);

// Which models a caller takes: those that write text, encoders (BERT), both. Of others it is said
// what runs them.
enum mr_wanted { MR_DECODER, MR_ENCODER, MR_EITHER };

// Reads config.json at `path`. Its model_type names the architecture, whose description
// (host/model/model.h) says which keys there are. Refuses architectures that are not known, and
// every setting that would change the computation. Keys that do not change inference (dropout,
// dtype, versions) are ignored.
int mr_config_load(struct mr_config *config, const char *path, enum mr_wanted wanted,
                   struct mr_error *err);
// That of a directory, of either kind.
int mr_config_load_from(struct mr_config *config, const char *dir, struct mr_error *err);
// A config.json in memory; `where` names it in messages.
int mr_config_parse(struct mr_config *config, const void *text, size_t size, enum mr_wanted wanted,
                    const char *where, struct mr_error *err);

// Rates of dropout that config.json of `dir` has, which training leaves out: "attn_pdrop 0.1, ..".
// Empty if there are none. A key that is missing has the value that transformers gives it.
enum { MR_DROPOUT_TEXT = 128 };
int mr_config_dropout(const char *dir, char text[MR_DROPOUT_TEXT], struct mr_error *err);
