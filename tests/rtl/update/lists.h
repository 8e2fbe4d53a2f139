// SPDX-License-Identifier: Apache-2.0
// A step of a model as the kernel `millrace_update` gets it: the list of host/card/jobs.c, sizes of
// what it works on, and the factors of the optimizer. In C and C++.
#ifndef MILLRACE_TESTS_RTL_UPDATE_LISTS_H
#define MILLRACE_TESTS_RTL_UPDATE_LISTS_H

#include "hls/millrace_update.h"

struct update_shape {
    const char *type; // "gptj", "gpt2"
    int vocab_size, n_embd, n_head, n_inner, n_layer;
};
enum { UPDATE_FACTORS = 9 }; // scale .. decay, bits of fp32

struct update_list {
    struct mr_update_job *job;
    uint32_t count;
    uint64_t state_bytes, gradient_bytes; // of all tensors
    uint64_t beats[2];                    // of a channel of W, of Wt
    uint32_t factor[UPDATE_FACTORS];
};

#ifdef __cplusplus
extern "C" {
#endif
// 0, or what went wrong, in words.
const char *update_list_make(struct update_list *list, const struct update_shape *shape,
                             int channels);
void update_list_free(struct update_list *list);
#ifdef __cplusplus
}
#endif

#endif
