// SPDX-License-Identifier: Apache-2.0
// update() of datapath.h with scalars alone: what clang and XLS turn into a pipeline.
#include "hls/datapath.h"
using namespace millrace;
extern "C" void update_core(uint32_t w, uint32_t m, uint32_t v, int32_t g, int32_t unit,
                            uint32_t scale, uint32_t keep1, uint32_t add1, uint32_t keep2,
                            uint32_t add2, uint32_t rt, uint32_t eps, uint32_t rate, uint32_t decay,
                            uint32_t *ow, uint32_t *om, uint32_t *ov)
{
    factors f = {scale, keep1, add1, keep2, add2, rt, eps, rate, decay};
    element o = {w, m, v};
    element n = update(f, o, g, unit);
    *ow = n.w;
    *om = n.m;
    *ov = n.v;
}
