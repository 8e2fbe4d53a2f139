// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "serve/server.h"

// The thread of a unit of the device: the only one that uses its session and scheduler. `unit` is a
// struct mr_unit.
void *mr_serve_engine(void *unit);
