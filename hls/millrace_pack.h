// SPDX-License-Identifier: Apache-2.0
// Kernel `millrace_pack`: tensors of a checkpoint into the stream W, in MXINT8 without smoothing
// (hls/README.md). What the host and the kernel have in common, in C and C++.
#ifndef MILLRACE_HLS_MILLRACE_PACK_H
#define MILLRACE_HLS_MILLRACE_PACK_H

#include "places.h"

// A job that loads puts a rectangle of a tensor into the patch on the chip. The others write what
// is there, and clear it.
enum {
    MR_PACK_LOAD,    // rectangle
    MR_PACK_PATCH,   // of a matrix: `inputs` x `outputs`, from `to`
    MR_PACK_VECTOR,  // `inputs` floats as they are
    MR_PACK_HEADERS, // behind all patches of a matrix of `outputs` columns
};
enum { MR_PACK_F32, MR_PACK_BF16, MR_PACK_F16 };
enum { MR_PACK_INPUTS = 512, MR_PACK_OUTPUTS = 64 }; // the largest patch

// `runs` runs of `length` elements that lie one behind the other, `pitch` bytes from one to the
// next.
struct mr_pack_job {
    uint32_t kind;
    uint32_t type;          // of the tensor's elements
    uint32_t runs, length;  // of the rectangle
    uint32_t input, output; // of the patch, where its first element goes
    uint32_t outputs_run;   // 1: runs go along the outputs; 0: along the inputs
    uint32_t zero;
    uint64_t from, pitch;     // bytes; multiples of an element's size
    uint32_t inputs, outputs; // of what is written; multiples of 64, vectors of 4
    uint64_t first;           // of a vector, how many of its elements came before
    struct mr_stream_side to;
    uint64_t more[3];
};

#ifdef __cplusplus
static_assert(sizeof(mr_pack_job) == 128, "two beats");
extern "C" {
#else
_Static_assert(sizeof(struct mr_pack_job) == 128, "two beats");
#endif

// w_channel: beats from a channel of W to the next one. *found: infinities and NaNs that were
// loaded, which are no weights: the host refuses the checkpoint.
typedef void mr_pack_kernel(const struct mr_pack_job *jobs, const struct mr_beat *tensors,
                            struct mr_beat *w, struct mr_quad *w_vectors, uint32_t *found,
                            uint32_t count, uint32_t channels, uint64_t w_channel);
mr_pack_kernel millrace_pack;
#ifdef __cplusplus
}
#endif

#endif
