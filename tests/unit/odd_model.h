// SPDX-License-Identifier: Apache-2.0
// A GPT-J or a GPT-2 of odd sizes, with weights from a seed, in the directory `type` of files_dir.
#ifndef MILLRACE_TESTS_ODD_MODEL_H
#define MILLRACE_TESTS_ODD_MODEL_H

#include "checkpoint/synthetic.h"
#include "unit/check.h"
#include "unit/store_dirs.h"

static inline struct mr_config odd_config(const char *type, int n_layer, int n_inner)
{
    return (struct mr_config){.arch = mr_arch_find(type),
                              .vocab_size = 96,
                              .n_positions = 16,
                              .n_embd = 40,
                              .n_layer = n_layer,
                              .n_head = 4,
                              .head_dim = 10,
                              .rotary_dim = strcmp(type, "gptj") == 0 ? 4 : 0,
                              .n_inner = n_inner,
                              .layer_norm_epsilon = 1e-5F};
}

static inline void odd_model(const char *type, int n_layer, int n_inner)
{
    struct mr_error err = {0};
    const struct mr_config c = odd_config(type, n_layer, n_inner);
    assert_int_equal(mkdir(files_path(type), 0700), 0);
    check(mr_synthetic_write(files_path(type), &c, 3, &err), &err);
}

#endif
