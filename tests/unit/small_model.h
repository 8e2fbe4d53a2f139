// SPDX-License-Identifier: Apache-2.0
// A checkpoint of one layer with weights from a seed, in files_dir, loaded for a group of tests.
#ifndef MILLRACE_TESTS_SMALL_MODEL_H
#define MILLRACE_TESTS_SMALL_MODEL_H

#include "checkpoint/synthetic.h"
#include "millrace.h"
#include "unit/check.h"
#include "unit/files.h"

enum { VOCAB = 257, EOS = 256 };

static struct mr_model *model;

static int small_model_setup(void **state, int positions)
{
    const struct mr_config c = {.vocab_size = VOCAB,
                                .n_positions = positions,
                                .n_embd = 64,
                                .n_layer = 1,
                                .n_head = 2,
                                .rotary_dim = 8,
                                .n_inner = 64,
                                .eos_token_id = EOS};
    struct mr_error err = {0};
    if (files_setup(state) < 0 || mr_synthetic_write(files_dir, &c, 3, &err) < 0)
        return -1;
    return mr_model_load(&model, files_dir, NULL, &err);
}

static int teardown(void **state)
{
    mr_model_close(model);
    return files_teardown(state);
}

#endif
