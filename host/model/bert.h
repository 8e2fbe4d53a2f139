// SPDX-License-Identifier: Apache-2.0
#ifndef MILLRACE_MODEL_BERT_H
#define MILLRACE_MODEL_BERT_H

#include "model/model.h"

extern const struct mr_arch mr_arch_bert;

#endif
