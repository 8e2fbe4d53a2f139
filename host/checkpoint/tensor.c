// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/tensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/str.h"

// The files are little endian and so are all hosts that we build for.
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "big-endian hosts need byte swaps here");

const char *mr_dtype_name(enum mr_dtype dtype)
{
    switch (dtype) {
    case MR_DTYPE_F32:
        return "F32";
    case MR_DTYPE_F16:
        return "F16";
    case MR_DTYPE_BF16:
        return "BF16";
    case MR_DTYPE_I32:
        return "I32";
    case MR_DTYPE_I64:
        return "I64";
    case MR_DTYPE_OTHER:
        break;
    }
    return "other";
}

static float float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

// All three cases are computed and one is selected, so that the compiler can vectorise the loop.
static float float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000U) << 16;
    uint32_t magnitude = half & 0x7fffU;
    uint32_t subnormal;
    float small = (float)(int32_t)magnitude * 0x1p-24F;
    memcpy(&subnormal, &small, sizeof subnormal);
    uint32_t normal = (magnitude << 13) + (112U << 23);
    uint32_t special = (magnitude << 13) | 0x7f800000U; // infinity and NaN
    uint32_t bits = magnitude < 0x400U ? subnormal : magnitude < 0x7c00U ? normal : special;
    return float_of_bits(sign | bits);
}

static bool in_range(const struct mr_tensor *tensor, size_t first, size_t count)
{
    return first <= tensor->count && count <= tensor->count - first;
}

static size_t element_bytes(const struct mr_tensor *t)
{
    return t->bytes / t->count; // where there are any
}

// Elements [first, first + count) of a strided tensor, one after the other.
static void gather(const struct mr_tensor *t, size_t first, size_t count, unsigned char *out)
{
    size_t size = element_bytes(t), at = 0;
    size_t index[MR_MAX_RANK] = {0};
    for (int i = t->rank - 1; i >= 0; i--) {
        index[i] = first % (size_t)t->shape[i];
        first /= (size_t)t->shape[i];
        at += index[i] * (size_t)t->stride[i];
    }
    for (size_t k = 0; k < count; k++, out += size) {
        memcpy(out, t->data + at * size, size);
        for (int i = t->rank - 1; i >= 0; i--) { // the next index, carried like digits
            at += (size_t)t->stride[i];
            if (++index[i] < (size_t)t->shape[i])
                break;
            at -= (size_t)t->shape[i] * (size_t)t->stride[i];
            index[i] = 0;
        }
    }
}

int mr_tensor_copy(const struct mr_tensor *tensor, size_t first, size_t count, void *out)
{
    if (!in_range(tensor, first, count))
        return MR_ERR_USAGE;
    if (count == 0)
        return 0; // `out` may be NULL, which memcpy() must not see
    size_t size = element_bytes(tensor);
    if (tensor->strided)
        gather(tensor, first, count, out);
    else
        memcpy(out, tensor->data + first * size, count * size);
    return 0;
}

const float *mr_tensor_view_f32(const struct mr_tensor *tensor, size_t first, size_t count)
{
    const unsigned char *at = tensor->data + first * sizeof(float);
    if (!in_range(tensor, first, count) || tensor->dtype != MR_DTYPE_F32 || tensor->strided ||
        (uintptr_t)at % _Alignof(float) != 0)
        return NULL;
    return (const float *)(const void *)at;
}

static void halves_to_floats(const unsigned char *in, size_t count, bool half, float *out)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, in + i * sizeof bits, sizeof bits);
        out[i] = half ? float_of_half(bits) : float_of_bits((uint32_t)bits << 16);
    }
}

int mr_tensor_read_f32(const struct mr_tensor *tensor, size_t first, size_t count, float *out)
{
    enum { PART = 512 };
    unsigned char part[PART * sizeof(uint16_t)];
    bool half = tensor->dtype == MR_DTYPE_F16;
    if (tensor->dtype == MR_DTYPE_F32)
        return mr_tensor_copy(tensor, first, count, out);
    if (!in_range(tensor, first, count) || (!half && tensor->dtype != MR_DTYPE_BF16))
        return MR_ERR_USAGE;
    if (!tensor->strided) {
        if (count > 0)
            halves_to_floats(tensor->data + first * sizeof(uint16_t), count, half, out);
        return 0;
    }
    for (size_t n; count > 0; first += n, count -= n, out += n) {
        n = count < PART ? count : PART;
        gather(tensor, first, n, part);
        halves_to_floats(part, n, half, out);
    }
    return 0;
}

void mr_tensor_release(const struct mr_tensor *tensor, size_t first, size_t count)
{
    if (tensor->strided)
        return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    size_t size = element_bytes(tensor);
    uintptr_t begin = (uintptr_t)(tensor->data + first * size), end = begin + count * size;
    begin = (begin + page - 1) / page * page; // pages shared with neighbours stay
    end = end / page * page;
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED); // advice
}

void mr_tensor_turn(struct mr_tensor *t)
{
    const struct mr_tensor was = *t;
    for (int i = 0; i < 2; i++) {
        t->shape[i] = was.shape[1 - i];
        t->stride[i] = was.strided ? was.stride[1 - i] : i == 0 ? 1 : was.shape[1];
    }
    t->strided = true;
}

void mr_tensor_cut(struct mr_tensor *t, int share, int shares)
{
    size_t size = t->bytes / t->count, rows = (size_t)t->shape[0] / (size_t)shares;
    size_t row = t->strided ? (size_t)t->stride[0] : t->count / (size_t)t->shape[0];
    t->data += (size_t)share * rows * row * size;
    t->shape[0] = (int64_t)rows;
    t->count /= (size_t)shares;
    t->bytes /= (size_t)shares;
}

static int by_name(const void *a, const void *b)
{
    const struct mr_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

const struct mr_tensor *mr_tensors_find(const struct mr_tensors *list, const char *name)
{
    struct mr_tensor key = {.name = name};
    return bsearch(&key, list->at, list->count, sizeof *list->at, by_name);
}

int mr_tensors_sort(struct mr_tensors *list, const char *path, struct mr_error *err)
{
    if (list->count > 1)
        qsort(list->at, list->count, sizeof *list->at, by_name);
    for (size_t i = 1; i < list->count; i++)
        if (by_name(&list->at[i - 1], &list->at[i]) == 0)
            return mr_fail(err, MR_ERR_FORMAT, "%s: tensor %s occurs twice", path,
                           mr_show(list->at[i].name).text);
    return 0;
}
