// SPDX-License-Identifier: Apache-2.0
// Included in front of each file of the build that counts: gcov writes what it has counted at the end
// of main() and in exit(), and knows nothing of _exit().
#pragma once
#include <unistd.h>

#ifdef __cplusplus
extern "C"
#endif
void __gcov_dump(void);
#define _exit(status) (__gcov_dump(), _exit(status))
