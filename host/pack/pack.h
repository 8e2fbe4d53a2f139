// SPDX-License-Identifier: Apache-2.0
// Packing a checkpoint layer by layer: what mr_pack_directory() and mr_pack_file() share.
#pragma once

#include "pack/packed.h"
#include "pack/packed_format.h"
#include "pack/quantise.h"

struct mr_packer {
    struct mr_packed *packed;
    const struct mr_pack_options *opt;
    struct mr_smooth smooth;
    struct mr_calibration *calibration;
    struct mr_pool *pool;
    struct mr_quantiser *quantiser;
    size_t input_bytes;        // of the checkpoint's tensors
    size_t done, output_bytes; // packed so far, and in all
};

// Opens the checkpoint and tokenizer of `dir` into *packed, with configuration, embedding and
// options; its stream is not there yet. *packed is all zero on failure.
int mr_packer_open(struct mr_packer *p, struct mr_packed *packed, const char *dir,
                   const struct mr_pack_options *opt, struct mr_error *err);
// The same without anything that packing needs.
int mr_packer_describe(struct mr_packed *packed, const char *dir, const struct mr_pack_options *opt,
                       struct mr_error *err);
void mr_packer_close(struct mr_packer *p); // does not touch *packed

// Puts the tables, or the items of the stream, where t[0], t[1], ... say, and notes their
// checksums. Refuses Inf and NaN; that is all that happens to tables without a sink. Without t the
// items lie as in the stream.
int mr_packer_tables(struct mr_packer *p, struct mr_sink *sink, struct mr_packed_tensor *t,
                     struct mr_error *err);
int mr_packer_stream(struct mr_packer *p, struct mr_sink *sink, struct mr_packed_tensor *t,
                     struct mr_error *err);
