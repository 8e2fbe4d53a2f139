// SPDX-License-Identifier: Apache-2.0
// What the machine of torch_pickle.c works on, and what the names that it knows make of it.
// Internal to the two.
#pragma once

#include <stdbool.h>

#include "checkpoint/torch_tensor.h"

enum mr_pv_kind {
    MR_PV_NONE,
    MR_PV_BOOL,
    MR_PV_INT,
    MR_PV_FLOAT,
    MR_PV_STRING,
    MR_PV_TUPLE,
    MR_PV_LIST,
    MR_PV_DICT,
    MR_PV_GLOBAL,
    MR_PV_STORAGE,
    MR_PV_TENSOR,
};

struct mr_pv_object;

struct mr_pv {
    enum mr_pv_kind kind;
    size_t size; // of a string, in bytes
    union {
        int64_t number;              // BOOL, INT
        const char *text;            // STRING: into the pickle, not NUL-terminated
        struct mr_pv_object *object; // TUPLE, LIST, DICT
        const struct mr_pv_global *global;
        const struct mr_pv_storage *storage;
        const struct mr_pv_tensor *tensor;
    };
};

// Items of a tuple or list; of a dictionary its keys and values in turn.
struct mr_pv_object {
    struct mr_pv *items;
    size_t count;
};

enum mr_pv_role {
    MR_PV_MAKES_DICT,
    MR_PV_MAKES_TENSOR,    // _rebuild_tensor, _rebuild_tensor_v2, _rebuild_tensor_v3
    MR_PV_MAKES_PARAMETER, // the tensor that is its first argument
    MR_PV_STORAGE_TYPE,    // FloatStorage, ...
    MR_PV_DTYPE,           // torch.float32, ...
};

struct mr_pv_global {
    const char *module, *name;
    enum mr_pv_role role;
    enum mr_dtype dtype;
    size_t element_bytes; // 1 of UntypedStorage
};

struct mr_pv_storage {
    const char *key; // a string of the pickle
    size_t key_size;
    const struct mr_pv_global *type;
    uint64_t bytes;
};

struct mr_pv_tensor {
    struct mr_pickle_tensor tensor; // without name and storage key
    const struct mr_pv_storage *in;
};

// The known name, or NULL.
const struct mr_pv_global *mr_pv_find_global(const char *module, size_t module_size,
                                             const char *name, size_t name_size);

// A persistent id: ("storage", type, key, place, elements).
int mr_pv_make_storage(struct mr_pv_storage *out, const struct mr_pv *id, const char *where,
                       struct mr_error *err);

// The tensor that rebuilding it from the tuple `args` would give.
int mr_pv_make_tensor(struct mr_pv_tensor *out, const struct mr_pv_object *args, const char *where,
                      struct mr_error *err);
