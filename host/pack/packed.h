// SPDX-License-Identifier: Apache-2.0
// A model as the device wants it: the weight stream of one channel (other channel counts are dealt
// from it), the embedding as it was in the checkpoint, configuration and tokenizer.
#ifndef MILLRACE_PACK_PACKED_H
#define MILLRACE_PACK_PACKED_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/checkpoint.h"
#include "common/file.h"
#include "pack/layout.h"
#include "text/tokenizer.h"

struct mr_packed {
    struct mr_config config;
    enum mr_format format; // of the layer matrices; lm_head is MXINT8
    bool smooth, calibrated;
    const uint8_t *stream; // mr_stream_beats(config, format, 1) * 64 bytes, 64-byte aligned
    size_t stream_bytes;
    struct mr_tensor embedding;     // [vocab_size][n_embd]
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
    bool verify;           // packed files to be described: the checksums of all tensors
    const char *calibrate; // NULL: each block is rounded for itself; else as mr_calibration_open()
    // Called now and then, by the caller's thread, with bytes of the checkpoint (or of a packed
    // file that is checked) done and in all; a non-zero return stops with MR_ERR_INTERRUPTED. May
    // be NULL.
    int (*progress)(void *arg, size_t done, size_t total);
    void *arg;
};

// Packs the Hugging Face directory `dir` in memory. Refuses Inf and NaN weights.
// On success the caller owns *packed until mr_packed_close(); on failure it is all zero.
int mr_pack_directory(struct mr_packed *packed, const char *dir, const struct mr_pack_options *opt,
                      struct mr_error *err);

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

// Copies all tensors of the directory, part by part, to nowhere, on all processors: the time that
// packing cannot be below.
int mr_pack_plain_read(const char *dir, const volatile sig_atomic_t *stop, struct mr_error *err);

// Maps and checks a packed file, all of it; with `describe` and without `verify` no tensor beyond
// 1 MiB, so that the file is not read as a whole.
int mr_packed_open(struct mr_packed *packed, const char *path, const struct mr_pack_options *opt,
                   struct mr_error *err);

// Either of the two, by what `path` is.
int mr_packed_load(struct mr_packed *packed, const char *path, const struct mr_pack_options *opt,
                   struct mr_error *err);

void mr_packed_close(struct mr_packed *packed);

#endif
