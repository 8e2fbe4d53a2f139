// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

// The tokens around the texts that BERT reads: [CLS] A [SEP], or [CLS] A [SEP] B [SEP], where B and
// what follows it are of the second kind.
struct mr_frame {
    int32_t cls, sep;
    int32_t mask; // [MASK]; -1 if there is none
};
