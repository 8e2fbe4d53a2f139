// SPDX-License-Identifier: Apache-2.0
// A model as the device wants it: the weight stream of one channel (other channel counts are dealt
// from it), the embedding as it was in the checkpoint, configuration and tokenizer.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/checkpoint.h"
#include "common/file.h"
#include "pack/layout.h"
#include "text/tokenizer.h"

struct mr_packed {
    struct mr_config config;
    enum mr_format format; // of the layer matrices; the head's is MXINT8
    bool smooth, calibrated;
    const uint8_t *stream; // mr_stream_beats(config, format, 1) * 64 bytes, 64-byte aligned
    size_t stream_bytes;
    struct mr_tensor embedding; // [vocab_size][n_embd]
    struct mr_tensor positions; // [n_positions][n_embd], of the same type; count = 0: none
    struct mr_tensor types;     // [n_types][n_embd], of an encoder
    // Of an encoder, in order of its architecture's list; count = 0: it has no such head, or the
    // tensor is a copy.
    struct mr_tensor heads[MR_HEAD_TENSORS];
    enum mr_pooling pooling;        // of an encoder's rows
    int max_tokens;                 // of an encoder's texts
    struct mr_tokenizer *tokenizer; // NULL if the checkpoint has none
    // Of a packed file the texts of both, else NULL; the second is empty without a tokenizer.
    const char *config_text, *tokenizer_text;
    size_t config_bytes, tokenizer_bytes;
    // what the pointers above point into
    struct mr_file map;
    void *memory;
    struct mr_checkpoint *checkpoint;
};

struct mr_pack_options {
    enum mr_format format;
    bool smooth;
    bool describe;         // of directories: no stream (it is NULL, but its size is right)
    bool text;             // a tokenizer must be there
    enum mr_wanted wanted; // an adapter is of a decoder, whatever this says
    bool verify;           // packed files to be described: the checksums of all tensors
    const char *calibrate; // NULL: each block is rounded for itself; else as mr_calibration_open()
    const char *adapter;   // NULL, or that of a directory: mr_checkpoint_open()
    // Called now and then, by the caller's thread, with bytes of the checkpoint (or of a packed
    // file that is checked) done and in all; a non-zero return stops with MR_ERR_INTERRUPTED. May
    // be NULL.
    int (*progress)(void *arg, size_t done, size_t total);
    void *arg;
};

// What of a model the host has: the tables that it looks up, in the order of the description
// (embedding, positions, types), and behind them the tensors of an encoder's heads that are there.
const struct mr_tensor *mr_packed_table(const struct mr_packed *packed, int index);

// An error where those have several types, which a file cannot say.
int mr_packed_one_type(const struct mr_packed *packed, const char *dir, struct mr_error *err);

enum mr_model_kind mr_packed_kind(const struct mr_packed *packed);

// An error unless the model has a tokenizer.
int mr_packed_need_tokenizer(const struct mr_packed *packed, struct mr_error *err);

// Releases what packing (pack_memory.h) or opening (packed_read.h) has put there; all is zero then.
void mr_packed_close(struct mr_packed *packed);
