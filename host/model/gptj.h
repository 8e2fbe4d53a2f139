// SPDX-License-Identifier: Apache-2.0
#ifndef MILLRACE_MODEL_GPTJ_H
#define MILLRACE_MODEL_GPTJ_H

#include "model/model.h"

extern const struct mr_arch mr_arch_gptj;

#endif
