// SPDX-License-Identifier: Apache-2.0
// A training from a configuration of the Model Zoo.
#pragma once

#include "common/error.h"
#include "config/training.h"

// Reads the file but for the keys in `set` ("KEY=VALUE" each, with the file's keys or those of the
// other generation; the last one of a key counts, and null is no value), then these, and judges the
// whole for the mode, or, where that is MR_TRAINING_MODES, for the file's or MR_TRAIN.
// MR_ERR_USAGE, MR_ERR_FORMAT or MR_ERR_UNSUPPORTED name line and key, and the nearest known one.
// mr_training_free() releases it, also after a failure.
int mr_training_load(struct mr_training *t, int mode, const char *path, const char *const *set,
                     int sets, struct mr_error *err);
// The same for text in memory.
int mr_training_parse(struct mr_training *t, int mode, const void *text, size_t size,
                      const char *where, struct mr_error *err);

// Is there a key of this name, with dots, in either generation?
bool mr_training_knows(const char *key);

// What a checkpoint must have been made with. Positions alone may be more, where they rotate: they
// are t->positions then.
int mr_training_fits(struct mr_training *t, const struct mr_config *checkpoint,
                     struct mr_error *err);
// The model from which a training from scratch begins: every size is there, and belongs to the
// others.
int mr_training_shape(const struct mr_training *t, struct mr_config *config, struct mr_error *err);
