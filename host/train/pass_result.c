// SPDX-License-Identifier: Apache-2.0
// What a pass hands out: gradients as integers with their units.
#include "train/pass.h"
#include "train/pass_impl.h"

void mr_pass_set_unit(struct mr_pass *pass, size_t i, int unit)
{
    pass->host.tensors[i].unit = unit;
}

void mr_pass_guess_units(struct mr_pass *pass)
{
    for (size_t i = 0; i < mr_tensor_specs(pass->c); i++)
        pass->host.tensors[i].unit = NO_UNIT;
}

void mr_pass_set_limit(struct mr_pass *pass, uint32_t limit)
{
    pass->limit = limit;
}

struct mr_pass_gradient mr_pass_gradient(const struct mr_pass *pass, size_t i)
{
    const struct tensor_grad *t = &pass->host.tensors[i];
    struct mr_pass_gradient g = {.rows = t->rows,
                                 .cols = t->cols,
                                 .inputs_are_rows = t->inputs_are_rows,
                                 .unit = t->unit,
                                 .peak = t->peak,
                                 .too_large = t->flags & 1};
    if (t->record)
        g.tiles = pass_sum_on_host(pass, t, t->off);
    return g;
}

const float *mr_pass_host_gradient(const struct mr_pass *pass, size_t i, size_t *count)
{
    for (int k = 0; k < PASS_HOST_TENSORS && pass->encoder; k++)
        if (pass->encoder->of[k].tensor == i) {
            *count = pass->encoder->of[k].count;
            return pass->encoder->of[k].gradient;
        }
    return NULL;
}

const float *mr_pass_row_gradient(const struct mr_pass *pass, size_t *stride)
{
    *stride = (size_t)pass->d.d;
    return pass->host.row_grad;
}
