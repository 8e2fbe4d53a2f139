// SPDX-License-Identifier: Apache-2.0
#ifndef MILLRACE_MODEL_GPT2_H
#define MILLRACE_MODEL_GPT2_H

#include "model/model.h"

extern const struct mr_arch mr_arch_gpt2;

#endif
