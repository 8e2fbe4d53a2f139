// SPDX-License-Identifier: Apache-2.0
// What a step does with an adapter: gradients in front of the update, numbers behind it. Internal
// to host/store.
#pragma once

#include "store/adapter.h"
#include "store/patch.h"

// The gradients of A and B, from the sums of a step, into the file of gradients, with new units:
//   dB = f dW A^T, dA = f B^T dW, f = mr_lora_factor().
// Products and sums are in double: of a patch over its elements in their order, then over patches
// in theirs, so no bit depends on threads. MR_ERR_FORMAT if one is infinite.
int mr_adapter_gradients(struct mr_store *s, struct mr_error *err);

// The numbers of the state become those of lora; with `streams` the streams become theirs.
void mr_adapter_follow(struct mr_store *s, bool streams);
