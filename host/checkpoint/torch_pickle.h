// SPDX-License-Identifier: Apache-2.0
// The pickle inside a PyTorch checkpoint (a state_dict as torch.save writes it), parsed as data.
//
// A pickle is a program; here it is one for a machine that can do nothing: it knows the opcodes
// that build strings, numbers, tuples, lists and dictionaries, and a list of names (the functions
// that torch.save refers to) that stand for "a tensor", "a storage" and "a dictionary". Anything
// else ends the parsing with an error. Nothing is called, imported or executed.
#pragma once

#include "checkpoint/torch_tensor.h"

// Bounds of memory; GPT-J-6B needs 60 KB, 285 tensors and less than 2000 objects.
enum {
    MR_PICKLE_BYTES = 8 << 20,
    MR_PICKLE_VALUES = 1 << 20, // on the stack or in the memo
    MR_PICKLE_OBJECTS = 1 << 18,
    MR_PICKLE_DEPTH = 64, // of marks: tuples in tuples
    MR_PICKLE_TENSORS = 1 << 16,
};

struct mr_pickle {
    struct mr_pickle_tensor *tensors; // in file order
    size_t count;
};

// Reads a state_dict. Each tensor lies inside its storage as the pickle declares it; whether the
// storage exists is for the caller to see. `where` names the file in messages. On success
// mr_pickle_free() releases it, on failure nothing is left.
int mr_pickle_read(struct mr_pickle *pickle, const void *data, size_t size, const char *where,
                   struct mr_error *err);
void mr_pickle_free(struct mr_pickle *pickle);
