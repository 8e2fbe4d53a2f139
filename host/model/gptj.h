// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/model.h"

extern const struct mr_arch mr_arch_gptj;
