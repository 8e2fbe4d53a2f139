// SPDX-License-Identifier: Apache-2.0
// What packing is measured against: reading alone.
#pragma once

#include <signal.h>

#include "common/error.h"

// Copies all tensors of the directory, part by part, to nowhere, on all processors: the time that
// packing cannot be below.
int mr_pack_plain_read(const char *dir, const volatile sig_atomic_t *stop, struct mr_error *err);
