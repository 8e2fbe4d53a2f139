// SPDX-License-Identifier: Apache-2.0
// What an update does otherwise with some tensors: they keep their weights, or do not decay.
#pragma once

#include <stdint.h>

#include "checkpoint/lora.h"
#include "common/error.h"
#include "model/config.h"

// Bits of a tensor's choice; in the header of a store while an update is under way.
enum { MR_CHOICE_NO_DECAY = 1, MR_CHOICE_FROZEN = 2, MR_CHOICES = 4 };

// Sets `bit` for the tensors whose name, as the checkpoint has it, one of the patterns matches, of
// which the last one counts: shell patterns (*, ?, [a-z]), and with '!' in front they take tensors
// out again. NULL ends them; `patterns` itself may be NULL. A pattern that matches nothing is
// MR_ERR_USAGE; `what` names it in the message.
int mr_choose(uint8_t *choice, const struct mr_config *config, int bit, const char *const *patterns,
              const char *what, struct mr_error *err);

// Freezes everything but the matrices of an adapter.
void mr_choose_pairs(uint8_t *choice, const struct mr_config *config, const struct mr_lora *lora);
