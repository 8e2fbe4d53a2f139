// SPDX-License-Identifier: Apache-2.0
// The names that a pickled state_dict may refer to, and what they stand for.
#include <string.h>

#include "checkpoint/torch_value.h"

// Every name that is accepted. torch.save writes typed storages with _rebuild_tensor_v2, and an
// untyped one with _rebuild_tensor_v3 and a dtype for the types that have no storage of their own.
static const struct mr_pv_global globals[] = {
    {"collections", "OrderedDict", MR_PV_MAKES_DICT, MR_DTYPE_OTHER, 0},
    {"torch._utils", "_rebuild_tensor", MR_PV_MAKES_TENSOR, MR_DTYPE_OTHER, 0},
    {"torch._utils", "_rebuild_tensor_v2", MR_PV_MAKES_TENSOR, MR_DTYPE_OTHER, 0},
    {"torch._utils", "_rebuild_tensor_v3", MR_PV_MAKES_TENSOR, MR_DTYPE_OTHER, 0},
    {"torch._utils", "_rebuild_parameter", MR_PV_MAKES_PARAMETER, MR_DTYPE_OTHER, 0},
    {"torch._utils", "_rebuild_parameter_with_state", MR_PV_MAKES_PARAMETER, MR_DTYPE_OTHER, 0},
    {"torch", "FloatStorage", MR_PV_STORAGE_TYPE, MR_DTYPE_F32, 4},
    {"torch", "HalfStorage", MR_PV_STORAGE_TYPE, MR_DTYPE_F16, 2},
    {"torch", "BFloat16Storage", MR_PV_STORAGE_TYPE, MR_DTYPE_BF16, 2},
    {"torch", "DoubleStorage", MR_PV_STORAGE_TYPE, MR_DTYPE_OTHER, 8},
    {"torch", "LongStorage", MR_PV_STORAGE_TYPE, MR_DTYPE_I64, 8},
    {"torch", "IntStorage", MR_PV_STORAGE_TYPE, MR_DTYPE_I32, 4},
    {"torch", "ShortStorage", MR_PV_STORAGE_TYPE, MR_DTYPE_OTHER, 2},
    {"torch", "CharStorage", MR_PV_STORAGE_TYPE, MR_DTYPE_OTHER, 1},
    {"torch", "ByteStorage", MR_PV_STORAGE_TYPE, MR_DTYPE_OTHER, 1},
    {"torch", "BoolStorage", MR_PV_STORAGE_TYPE, MR_DTYPE_OTHER, 1},
    {"torch", "UntypedStorage", MR_PV_STORAGE_TYPE, MR_DTYPE_OTHER, 1},
    {"torch.storage", "UntypedStorage", MR_PV_STORAGE_TYPE, MR_DTYPE_OTHER, 1},
    {"torch", "float32", MR_PV_DTYPE, MR_DTYPE_F32, 4},
    {"torch", "float16", MR_PV_DTYPE, MR_DTYPE_F16, 2},
    {"torch", "bfloat16", MR_PV_DTYPE, MR_DTYPE_BF16, 2},
    {"torch", "uint16", MR_PV_DTYPE, MR_DTYPE_OTHER, 2},
    {"torch", "uint32", MR_PV_DTYPE, MR_DTYPE_OTHER, 4},
    {"torch", "uint64", MR_PV_DTYPE, MR_DTYPE_OTHER, 8},
    {"torch", "float8_e4m3fn", MR_PV_DTYPE, MR_DTYPE_OTHER, 1},
    {"torch", "float8_e5m2", MR_PV_DTYPE, MR_DTYPE_OTHER, 1},
};

static bool is_text(const char *expected, const char *text, size_t size)
{
    return strlen(expected) == size && memcmp(expected, text, size) == 0;
}

const struct mr_pv_global *mr_pv_find_global(const char *module, size_t module_size,
                                             const char *name, size_t name_size)
{
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (is_text(globals[i].module, module, module_size) &&
            is_text(globals[i].name, name, name_size))
            return &globals[i];
    return NULL;
}

// Keys become member names: torch writes decimal numbers.
static bool is_key(const struct mr_pv *v)
{
    if (v->kind != MR_PV_STRING || v->size == 0 || v->size > 20)
        return false;
    for (size_t i = 0; i < v->size; i++)
        if (v->text[i] < '0' || v->text[i] > '9')
            return false;
    return true;
}

int mr_pv_make_storage(struct mr_pv_storage *out, const struct mr_pv *id, const char *where,
                       struct mr_error *err)
{
    const struct mr_pv *v = id->kind == MR_PV_TUPLE ? id->object->items : NULL;
    size_t n = v ? id->object->count : 0;
    // A sixth item describes views in very old files; torch.save has written None there since 0.4.
    if (n < 5 || n > 6 || v[0].kind != MR_PV_STRING || !is_text("storage", v[0].text, v[0].size) ||
        v[1].kind != MR_PV_GLOBAL || v[1].global->role != MR_PV_STORAGE_TYPE || !is_key(&v[2]) ||
        v[3].kind != MR_PV_STRING || v[4].kind != MR_PV_INT || v[4].number < 0 ||
        (n == 6 && v[5].kind != MR_PV_NONE))
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: a persistent id is not a storage as torch.save writes it", where);
    *out = (struct mr_pv_storage){.key = v[2].text, .key_size = v[2].size, .type = v[1].global};
    if (__builtin_mul_overflow((uint64_t)v[4].number, out->type->element_bytes, &out->bytes))
        return mr_fail(err, MR_ERR_FORMAT, "%s: the size of a storage overflows", where);
    return 0;
}

// A tuple of `rank` numbers >= 0, or of any number up to MR_MAX_RANK when *rank is -1.
static bool read_extents(const struct mr_pv *v, int *rank, int64_t *out)
{
    if (v->kind != MR_PV_TUPLE || v->object->count > MR_MAX_RANK ||
        (*rank >= 0 && v->object->count != (size_t)*rank))
        return false;
    *rank = (int)v->object->count;
    for (int i = 0; i < *rank; i++) {
        const struct mr_pv *item = &v->object->items[i];
        if (item->kind != MR_PV_INT || item->number < 0)
            return false;
        out[i] = item->number;
    }
    return true;
}

// The last element that the tensor reaches lies inside the storage.
static bool fits(struct mr_pickle_tensor *t)
{
    uint64_t room = t->storage_bytes / t->element_bytes, last = t->offset;
    t->count = 1;
    for (int i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(t->count, (size_t)t->shape[i], &t->count))
            return false;
    for (int i = 0; i < t->rank && t->count > 0; i++) {
        uint64_t reach;
        if (__builtin_mul_overflow((uint64_t)t->shape[i] - 1, (uint64_t)t->stride[i], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return false;
    }
    size_t bytes;
    return !__builtin_mul_overflow(t->count, t->element_bytes, &bytes) &&
           (t->count == 0 || last < room);
}

int mr_pv_make_tensor(struct mr_pv_tensor *out, const struct mr_pv_object *args, const char *where,
                      struct mr_error *err)
{
    struct mr_pickle_tensor *t = &out->tensor;
    *t = (struct mr_pickle_tensor){.rank = -1};
    const struct mr_pv *v = args->items;
    // (storage, offset, shape, stride[, requires_grad, hooks[, dtype or metadata ...]])
    if (args->count < 4 || v[0].kind != MR_PV_STORAGE || v[1].kind != MR_PV_INT ||
        v[1].number < 0 || !read_extents(&v[2], &t->rank, t->shape) ||
        !read_extents(&v[3], &t->rank, t->stride))
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: a tensor is not described as torch.save does it (at most %d "
                       "dimensions, no negative offset, shape or stride)",
                       where, MR_MAX_RANK);
    // What torch.save says beyond that of a tensor in memory: {"neg": True} or {"conj": True}.
    for (size_t i = 6; i < args->count; i++)
        if (v[i].kind == MR_PV_DICT && v[i].object->count > 0)
            return mr_fail(err, MR_ERR_UNSUPPORTED,
                           "%s: a tensor is a negated or conjugated view, whose values are not "
                           "those in the file; in Python, save it after resolve_neg()",
                           where);
    out->in = v[0].storage;
    const struct mr_pv_global *type = out->in->type;
    if (args->count >= 7 && v[6].kind == MR_PV_GLOBAL && v[6].global->role == MR_PV_DTYPE)
        type = v[6].global;
    t->dtype = type->dtype;
    t->element_bytes = type->element_bytes;
    t->storage_bytes = out->in->bytes;
    t->offset = (uint64_t)v[1].number;
    if (!fits(t))
        return mr_fail(err, MR_ERR_FORMAT, "%s: a tensor reaches beyond its storage of %llu bytes",
                       where, (unsigned long long)t->storage_bytes);
    return 0;
}
