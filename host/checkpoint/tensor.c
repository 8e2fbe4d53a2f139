// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/tensor.h"

#include <stdbool.h>
#include <string.h>

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

int mr_tensor_read_f32(const struct mr_tensor *tensor, size_t first, size_t count, float *out)
{
    if (!in_range(tensor, first, count))
        return MR_ERR_USAGE;
    if (count == 0)
        return 0; // `out` may be NULL, which memcpy() must not see
    if (tensor->dtype == MR_DTYPE_F32) {
        memcpy(out, tensor->data + first * sizeof(float), count * sizeof(float));
        return 0;
    }
    if (tensor->dtype != MR_DTYPE_F16 && tensor->dtype != MR_DTYPE_BF16)
        return MR_ERR_USAGE;
    const unsigned char *in = tensor->data + first * sizeof(uint16_t);
    bool half = tensor->dtype == MR_DTYPE_F16;
    for (size_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, in + i * sizeof bits, sizeof bits);
        out[i] = half ? float_of_half(bits) : float_of_bits((uint32_t)bits << 16);
    }
    return 0;
}

int mr_tensor_read_i64(const struct mr_tensor *tensor, size_t first, size_t count, int64_t *out)
{
    if (!in_range(tensor, first, count))
        return MR_ERR_USAGE;
    if (count == 0)
        return 0;
    if (tensor->dtype == MR_DTYPE_I64) {
        memcpy(out, tensor->data + first * sizeof(int64_t), count * sizeof(int64_t));
        return 0;
    }
    if (tensor->dtype != MR_DTYPE_I32)
        return MR_ERR_USAGE;
    for (size_t i = 0; i < count; i++) {
        int32_t value;
        memcpy(&value, tensor->data + (first + i) * sizeof value, sizeof value);
        out[i] = value;
    }
    return 0;
}
