// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_DRIVER_KERNEL_MINMAX_H
#define TESTS_DRIVER_KERNEL_MINMAX_H

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))

#endif
