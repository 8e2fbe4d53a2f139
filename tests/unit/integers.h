// SPDX-License-Identifier: Apache-2.0
// The integers of a fixture's tensor, which are I32.
#ifndef MILLRACE_TESTS_INTEGERS_H
#define MILLRACE_TESTS_INTEGERS_H

#include "checkpoint/tensor.h"

static inline void read_integers(const struct mr_tensor *t, int64_t *out)
{
    assert_int_equal(t->dtype, MR_DTYPE_I32);
    for (size_t i = 0; i < t->count; i++) {
        int32_t value;
        assert_int_equal(mr_tensor_copy(t, i, 1, &value), 0);
        out[i] = value;
    }
}

#endif
