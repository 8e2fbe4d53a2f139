// SPDX-License-Identifier: Apache-2.0
// The list of jobs by which the kernel `millrace_pack` makes the stream W of a checkpoint, and what
// of the checkpoint has to be on the card before: the host's side of it.
#ifndef MILLRACE_HLS_PACK_JOBS_H
#define MILLRACE_HLS_PACK_JOBS_H

#include <stddef.h>

#include "checkpoint/checkpoint.h"
#include "hls/millrace_pack.h"

// A part of the checkpoint's files, and the byte of the kernel's port `tensors` where it goes.
struct mr_pack_copy {
    const unsigned char *from;
    uint64_t bytes, to;
};

struct mr_pack_jobs {
    struct mr_pack_job *job;
    struct mr_pack_copy *copy;
    size_t count, copies, job_room, copy_room;
    uint64_t tensor_bytes; // of the port `tensors`, a multiple of 64
    uint64_t beats;        // of a channel of W
};

// For 1, 2, 4, 8 or 16 channels. Padding of W has to be zero before. On failure there is nothing to
// free.
int mr_pack_jobs_make(struct mr_pack_jobs *jobs, const struct mr_checkpoint *checkpoint,
                      int channels, struct mr_error *err);
void mr_pack_jobs_free(struct mr_pack_jobs *jobs); // of zeros too

#endif
