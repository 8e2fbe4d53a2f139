// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_DRIVER_KERNEL_COMPILER_H
#define TESTS_DRIVER_KERNEL_COMPILER_H

#include <linux/types.h>

// A read of memory that a device writes to; the test says what comes of it.
u32 test_read_once(const u32 *word);
#define READ_ONCE(x) test_read_once(&(x))

#endif
