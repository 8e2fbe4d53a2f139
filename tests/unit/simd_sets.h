// SPDX-License-Identifier: Apache-2.0
// The entry of a table of kernels for an instruction set; NULL: this processor lacks it.
#pragma once

#include "common/simd.h"

#define SIMD_NAMED(table, name) (mr_simd_named(name) < 0 ? NULL : (table)[mr_simd_named(name)])
