// SPDX-License-Identifier: Apache-2.0
// A model as the device wants it: the weight stream of one channel (other channel counts are dealt
// from it), the embedding as it was in the checkpoint, configuration and tokenizer.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/checkpoint.h"
#include "common/error.h"
#include "common/file.h"
#include "pack/layout.h"
#include "text/tokenizer.h"

struct mr_packed {
    struct mr_config config;
    enum mr_format format; // of the layer matrices; the head's is MXINT8
    bool smooth, calibrated;
    struct mr_stream_list list; // of the stream's items
    const uint8_t *stream;      // list.bytes, 64-byte aligned
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

// What of a model the host has, and a file's embedding section: the tables that it looks up, in the
// order of the description (embedding, positions, types), and behind them those tensors of an
// encoder's heads (config->heads) that are no copies. mr_packed_shape() gives the shape, where
// cols = 0 is a vector, and returns the head's index in its list, or -1 for a table.
int mr_packed_tables(const struct mr_config *c);
int mr_packed_shape(const struct mr_config *c, int index, int *rows, int *cols);
const struct mr_tensor *mr_packed_table(const struct mr_packed *packed, int index);

// An error where those have several types, which a file cannot say.
int mr_packed_one_type(const struct mr_packed *packed, const char *dir, struct mr_error *err);

enum mr_model_kind mr_packed_kind(const struct mr_packed *packed);

// An error unless the model has a tokenizer.
int mr_packed_need_tokenizer(const struct mr_packed *packed, struct mr_error *err);

// Releases what packing or opening has put there; all is zero then.
void mr_packed_close(struct mr_packed *packed);

// ---- making and opening ------------------------------------------------------------------------

// Packs the Hugging Face directory `path` in memory, or opens the packed file `path`.
// On success the caller owns *packed until mr_packed_close(); on failure it is all zero.
int mr_packed_load(struct mr_packed *packed, const char *path, const struct mr_pack_options *opt,
                   struct mr_error *err);

// Packs the Hugging Face directory `dir` in memory. Refuses Inf and NaN weights.
// On success the caller owns *packed until mr_packed_close(); on failure it is all zero.
int mr_pack_directory(struct mr_packed *packed, const char *dir, const struct mr_pack_options *opt,
                      struct mr_error *err);

// Maps and checks a packed file, all of it; with `describe` and without `verify` no tensor beyond
// 1 MiB, so that the file is not read as a whole.
int mr_packed_open(struct mr_packed *packed, const char *path, const struct mr_pack_options *opt,
                   struct mr_error *err);

// ---- writing -----------------------------------------------------------------------------------

// Writes a packed file; `path` appears only when it is complete. `dir` is the Hugging Face
// directory that `packed` was made from (its configuration and tokenizer are copied). *stop, unless
// NULL, is looked at while writing: non-zero gives MR_ERR_INTERRUPTED.
int mr_packed_save(const struct mr_packed *packed, const char *dir, const char *path,
                   const volatile sig_atomic_t *stop, struct mr_error *err);

struct mr_pack_result {
    struct mr_config config;
    uint64_t file_bytes, stream_bytes;
    uint64_t input_bytes; // of the checkpoint's tensors
};

// Packs the Hugging Face directory `dir` into a file without having the model in memory: a few
// megabytes a thread (with calibration, several gigabytes). The bytes are those of
// mr_pack_directory() and mr_packed_save(), whatever the number of threads. `path` appears only
// when it is complete, also if the program is killed.
int mr_pack_file(const char *dir, const char *path, const struct mr_pack_options *opt,
                 struct mr_pack_result *result, struct mr_error *err);

// A packed file back into a Hugging Face directory: writes config.json, tokenizer.json (if there is
// one) and model.safetensors with the values that the device multiplies with: matrices in bf16,
// which holds every MXINT8 and MXFP4 value exactly, vectors in fp32, the embedding as it is stored.
// A smoothed model stays smoothed.
//
// `dir` must not exist or be empty; it appears only when it is complete. *stop, unless NULL, is
// looked at while writing: non-zero gives MR_ERR_INTERRUPTED. `packed` must be from a packed file.
int mr_export(const struct mr_packed *packed, const char *dir, const volatile sig_atomic_t *stop,
              struct mr_error *err);

// ---- numbers -----------------------------------------------------------------------------------

struct mr_unpacked;

// The weights in fp32, for the reference: the values that the device computes with, smoothing
// included. On success the caller owns *unpacked until mr_unpacked_close(); it borrows the
// embedding of `packed`. Needs four bytes a weight.
int mr_unpack(struct mr_unpacked **unpacked, const struct mr_packed *packed, struct mr_error *err);
void mr_unpacked_close(struct mr_unpacked *unpacked); // NULL is allowed

// As mr_checkpoint_item(): of a matrix the values that the device multiplies with, of a table its
// own. NULL if there is no such tensor.
const struct mr_tensor *mr_unpacked_item(const struct mr_unpacked *unpacked, int layer,
                                         const struct mr_item *item, enum mr_part part);

// How far the values are from the checkpoint's, matrix by matrix.
// One entry for each matrix, in stream order, in new memory. `checkpoint` is what `packed` was made
// from; smoothing, which the packed values have in them, is planned again and taken out.
int mr_report(const struct mr_packed *packed, const struct mr_checkpoint *checkpoint,
              const volatile sig_atomic_t *stop, struct mr_quality **list, size_t *count,
              struct mr_error *err);

// What packing is measured against, reading alone: copies all tensors of the directory, part by
// part, to nowhere, on all processors: the time that packing cannot be below.
int mr_pack_plain_read(const char *dir, const volatile sig_atomic_t *stop, struct mr_error *err);
