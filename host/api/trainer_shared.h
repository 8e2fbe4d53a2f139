// SPDX-License-Identifier: Apache-2.0
// A trainer that several ranks share: the command line's, not a part of the C interface.
#pragma once

#include "common/ranks.h"
#include "model/model.h"
#include "millrace.h"

// As mr_trainer_open(). Only rank 0 reads `dir`, and only its trainer can be saved. All ranks are
// given each micro-batch of a step in the same order, and apply it.
int mr_trainer_open_shared(struct mr_trainer **trainer, const char *dir, const char *device,
                           const struct mr_trainer_options *options, const struct mr_ranks *ranks,
                           struct mr_error *err);

// As mr_trainer_check(), of a model that need not be there yet.
int mr_trainer_check_config(const struct mr_config *config, const char *device,
                            const struct mr_trainer_options *options, struct mr_error *err);
