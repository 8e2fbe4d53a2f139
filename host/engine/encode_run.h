// SPDX-License-Identifier: Apache-2.0
// A run of an encoder on a device, and what its files share.
#pragma once

#include "cpu/cpu.h"
#include "device/device.h"
#include "engine/program.h"
#include "pack/packed.h"

enum { BEAT = MR_BEAT, ENCODE_CHANNELS = 64, ENCODE_DESC_BYTES = 64 * 9 };

// What a run is told.
struct encode_run {
    const struct mr_program *program;
    uint64_t program_at, input, result; // window addresses
    const uint64_t *weights, *kv;       // of each channel
    uint32_t weight_beats, kv_beats;    // of a channel
    uint32_t kv_layer, kv_area;         // beats of a layer; of all its records of K, or of V
    int rows;
};

// Texts that are longer than a run has rows; all of it is made for the first one (encode_chunks.c).
struct encode_chunks {
    bool made;
    int n;                       // stages; 0: not begun
    int taken, next;             // buffers of the device that are there; the one whose turn it is
    struct mr_program *programs; // [n]
    uint64_t *program_at;        // [n]
    uint64_t *weights;           // [n][channels]
    uint32_t *beats;             // [n]: of a stage's weights on a channel
    uint8_t *dealt[ENCODE_CHANNELS];
    uint64_t kv[ENCODE_CHANNELS], input[2]; // rows go from one side to the other
    uint32_t kv_area, kv_layer;
};

struct mr_encode {
    const struct mr_packed *packed;
    const struct mr_config *c;
    struct mr_device *dev;
    struct mr_dims d;
    struct mr_program program;
    bool two_pass;
    int channels, chunk;                                   // rows a run
    uint64_t stream[ENCODE_CHANNELS], kv[ENCODE_CHANNELS]; // of each channel
    uint64_t input, result, desc, program_at;
    uint32_t beats, kv_rec, kv_area; // of a channel: the stream; a record; all records
    uint8_t *dealt[ENCODE_CHANNELS]; // host copies where the device maps them
    float *row;                      // [d]: of a token, zero beyond n_embd
    float *part;                     // [n_embd]: of a table
    uint64_t counter[MR_COUNTERS];   // of all runs
    struct encode_chunks chunks;
};

int encode_no_memory(const char *what, struct mr_error *err);

// Rows first..first + n - 1 of a text, to rows at.. of a run whose input window begins at `input`:
// their places in the table, and the sums of the tables' rows.
int encode_write(struct mr_encode *e, const struct mr_cpu_text *text, int first, int n,
                 uint64_t input, int at, uint32_t kv_off, struct mr_error *err);
int encode_run(struct mr_encode *e, const struct encode_run *run, struct mr_error *err);
// rows[n][n_embd] from device memory.
int encode_read(struct mr_encode *e, uint64_t from, int n, float *rows, struct mr_error *err);
