// SPDX-License-Identifier: Apache-2.0
// The layout of the packed file, version 1 (docs/use/packed-file.md): frozen. Internal to this
// folder.
#pragma once

#include "checkpoint/tensor.h"
#include "pack/packed.h"

enum {
    MR_PACKED_VERSION = 1,
    MR_PACKED_PAGE = 4096, // sections begin at multiples of it
    MR_PACKED_SMOOTHED = 1,
    MR_PACKED_CALIBRATED = 2,
};

enum { MR_S_CONFIG, MR_S_TOKENIZER, MR_S_TENSORS, MR_S_EMBEDDING, MR_S_STREAM, MR_S_COUNT };

struct mr_packed_section {
    uint32_t id;     // its index + 1
    uint32_t detail; // of the embedding: see mr_packed_detail(); else 0
    uint64_t offset, size;
    uint64_t hash; // XXH3-64; 0 for embedding and stream, whose tensors have their own
    uint64_t zero[4];
};

struct mr_packed_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint32_t format, flags;
    uint32_t n_sections, zero;
    uint64_t file_bytes;
    uint64_t hash;                // of the header page with this field zero
    uint32_t pooling, max_tokens; // of an encoder: 1 + enum mr_pooling, and of a text; else 0
    uint64_t zeros;
    struct mr_packed_section section[MR_S_COUNT];
};

// An entry of the section of tensors: the tables, then the items of the stream in their order.
struct mr_packed_tensor {
    uint32_t id;           // 0 a table, else 1.. in the order of block and tail
    uint32_t layer;        // n_layer for the tail; of tables 0 the embedding, 1 positions
    uint64_t offset, size; // in the file; in the section without gaps
    uint64_t hash;         // XXH3-64
};

_Static_assert(sizeof(struct mr_packed_section) == 64 && sizeof(struct mr_packed_tensor) == 32 &&
                   sizeof(struct mr_packed_header) == 64 + 64 * MR_S_COUNT,
               "the layout of the file is that of the structures");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is read and written in place");

extern const char mr_packed_magic[8];

// The types that an embedding may have: 0 fp32, 1 fp16, 2 bf16, and their sizes in bytes. Its
// detail is one of them, and in the bits from 8 on the heads of an encoder, 1 << enum mr_head.
enum { MR_PACKED_DTYPES = 3 };
#define MR_PACKED_DTYPE(detail) ((detail) & 0xFFU)
#define MR_PACKED_HEADS(detail) ((detail) >> 8)
enum mr_dtype mr_packed_dtype(uint32_t kind, size_t *bytes);

// All of a file but for its contents: hashes are zero.
struct mr_packed_layout {
    struct mr_packed_header header;
    struct mr_packed_tensor *tensors; // [count]
    size_t count, tables;             // the first `tables` of them are tables
};

// Of a model with its list, whose embedding has its type.
int mr_packed_layout_make(struct mr_packed_layout *l, const struct mr_packed *packed,
                          size_t config_bytes, size_t tokenizer_bytes, struct mr_error *err);
void mr_packed_layout_free(struct mr_packed_layout *l);

uint64_t mr_packed_header_hash(const struct mr_packed_header *h);
