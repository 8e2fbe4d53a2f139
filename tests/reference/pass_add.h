// SPDX-License-Identifier: Apache-2.0
// The gradients of a pass on a device as floats, to be compared with those of fp32.
#ifndef MILLRACE_REFERENCE_PASS_ADD_H
#define MILLRACE_REFERENCE_PASS_ADD_H

#include "reference/params.h"
#include "train/pass.h"

// All gradients of the pass's last run, added to *gradient; `batch` is that of the run.
void mr_pass_add(const struct mr_pass *pass, const struct mr_batch *batch,
                 struct mr_params *gradient);

#endif
