// SPDX-License-Identifier: Apache-2.0
// The keys of a training's configuration: their names in both generations, types, ranges, and what
// is refused and why. Internal to host/config.
#pragma once

#include "config/key.h"

extern const struct mr_key_place mr_key_places[]; // ends with a prefix of NULL
