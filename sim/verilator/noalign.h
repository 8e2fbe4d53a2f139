// SPDX-License-Identifier: Apache-2.0
// Included before everything in the Verilated model's C++. Verilator aligns its model classes to
// cache lines; clang then widens byte loads of their members to 32 bits, which wait for narrower
// stores that are still under way.
#include "verilatedos.h"
#undef VL_ATTR_ALIGNED
#define VL_ATTR_ALIGNED(alignment)
