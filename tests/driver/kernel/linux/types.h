// SPDX-License-Identifier: Apache-2.0
// The kernel's types, for the driver's pure logic in user space.
#ifndef TESTS_DRIVER_KERNEL_TYPES_H
#define TESTS_DRIVER_KERNEL_TYPES_H

#include <stdbool.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef uint32_t __le32;

#endif
