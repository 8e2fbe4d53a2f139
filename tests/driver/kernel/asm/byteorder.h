// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_DRIVER_KERNEL_BYTEORDER_H
#define TESTS_DRIVER_KERNEL_BYTEORDER_H

#include <endian.h>

#define le32_to_cpu(x) le32toh(x)
#define cpu_to_le32(x) htole32(x)

#endif
