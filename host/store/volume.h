// SPDX-License-Identifier: Apache-2.0
// The files of a store, as memory that is read and as writes that take an order: what is written is
// safe only behind a sync. Two kinds: files of a directory, and memory (for benchmarks and tests,
// which also make disks of it that fail).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum mr_volume_file {
    MR_V_HEADER,    // written by write()
    MR_V_STATE,     // likewise
    MR_V_GRADIENTS, // written in place, synced
    MR_V_STREAM,    // W: written in place, never synced, made anew by each open
    MR_V_TURNED,    // Wt: likewise
    MR_V_FILES,
};

struct mr_volume {
    unsigned char *data[MR_V_FILES]; // mapped, 64-byte aligned; NULL: a stream that is missing
    uint64_t size[MR_V_FILES];
    bool memory;  // many small writes take no longer than a large one
    bool unnamed; // streams that renew() makes have no name, and end with the process
    // Several threads may write at the same time. Of the state others see it behind mr_past_end().
    int (*write)(struct mr_volume *v, enum mr_volume_file f, uint64_t at, const void *data,
                 size_t size, struct mr_error *err);
    // On return all that was written before is safe.
    int (*sync)(struct mr_volume *v, enum mr_volume_file f, struct mr_error *err);
    // Makes a stream that is missing, or has another size, anew: zeros, all of its room reserved.
    // NULL: it cannot.
    int (*renew)(struct mr_volume *v, enum mr_volume_file f, uint64_t size, struct mr_error *err);
    // These bytes will be read soon; their writing should begin. Both may be NULL.
    void (*soon)(struct mr_volume *v, enum mr_volume_file f, uint64_t at, uint64_t size);
    void (*started)(struct mr_volume *v, enum mr_volume_file f, uint64_t at, uint64_t size);
    void (*close)(struct mr_volume *v);
};

// "header", "state", ...: the file's name.
const char *mr_volume_name(enum mr_volume_file f);

// Makes the files of a directory with these sizes, and reserves all of their room. A stream of no
// bytes is left out.
int mr_volume_create(struct mr_volume **v, const char *dir, const uint64_t size[MR_V_FILES],
                     struct mr_error *err);
// Opens what is there, whatever its size; streams may be missing. Another process that has it open
// is an error.
int mr_volume_open(struct mr_volume **v, const char *dir, struct mr_error *err);

// Zeros in memory.
int mr_volume_memory(struct mr_volume **v, const uint64_t size[MR_V_FILES], struct mr_error *err);
// The same, but what is never written takes no memory: for mirrors (mirror.h).
int mr_volume_untouched(struct mr_volume **v, const uint64_t size[MR_V_FILES],
                        struct mr_error *err);
