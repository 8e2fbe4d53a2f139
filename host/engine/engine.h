// SPDX-License-Identifier: Apache-2.0
// The engine: a packed model resident on a device.
#pragma once

#include "device/device.h"
#include "engine/backend.h"
#include "engine/options.h"
#include "engine/program.h"
#include "pack/packed.h"

// Puts the model on the device; where memory (mr_device_info.room) does not hold its weights, as
// many layers as it holds, and the others come in each step (docs/use/streaming.md). `packed` and
// `dev` must outlive the backend, which owns neither. MR_ERR_FIT, with what is too large, if the
// device's configuration does not hold the model, or its memory not two layers.
int mr_engine_open(struct mr_backend **backend, const struct mr_packed *packed,
                   struct mr_device *dev, const struct mr_engine_options *opt,
                   struct mr_error *err);

// What a configuration must have room for, and what it has: it holds the model if nothing exceeds.
// docs/use/checkpoints.md lists them (tests/unit/engine/test_limits.c holds the page to them).
struct mr_engine_limit {
    const char *what;
    int need, have;
};
enum { MR_ENGINE_LIMITS = 11 };
void mr_engine_limits(const struct mr_geometry *g, const struct mr_config *model, bool two_pass,
                      struct mr_engine_limit limits[MR_ENGINE_LIMITS]);

// "" if some configuration of rtl/spec/configs.def holds the model; else which limits of the one
// that comes nearest are exceeded, cut off at size - 1 bytes.
void mr_engine_exceeds(const struct mr_config *model, char *text, size_t size);

// Whether a configuration holds the model, as mr_engine_open() looks at it; `config` is for the
// message.
int mr_engine_fits(const struct mr_geometry *g, const char *config, const struct mr_config *model,
                   bool two_pass, struct mr_error *err);
// The same of its sizes alone, for encoders, which have a way of their own (engine/encode.h).
int mr_engine_holds(const struct mr_geometry *g, const char *config, const struct mr_config *model,
                    bool two_pass, struct mr_error *err);

// Makes the sequence `length` positions long without computing them: its KV store holds whatever is
// there. For measurements at a position.
int mr_engine_seq_set_length(struct mr_backend *backend, int seq, int length, struct mr_error *err);

// Positions so far, -1: there is no such sequence.
int mr_engine_seq_length(const struct mr_backend *backend, int seq);
bool mr_engine_two_pass(const struct mr_backend *backend);

// The KV store of a layer's first `count` positions in a form that does not depend on the device:
// K records, then V records, each mr_engine_kv_record() bytes (docs/inside/layout.md). The prefix
// maxima follow from V and are made again when it is written.
int mr_engine_kv_record(const struct mr_backend *backend);
int mr_engine_kv_read(struct mr_backend *backend, int seq, int layer, int count, uint8_t *records,
                      struct mr_error *err);
int mr_engine_kv_write(struct mr_backend *backend, int seq, int layer, int count,
                       const uint8_t *records, struct mr_error *err);

// The program of a step without or with logits; it lives as long as the backend. NULL: a step is
// several programs, because device memory does not hold all weights.
const struct mr_program *mr_engine_program(const struct mr_backend *backend, bool head);

// FNV-1a over the KV records of a sequence, position by position, in a form that does not depend on
// the number of channels. For tests that compare configurations.
int mr_engine_kv_hash(struct mr_backend *backend, int seq, uint64_t *hash, struct mr_error *err);
