// SPDX-License-Identifier: Apache-2.0
#include "reference/params.h"

#include <stdint.h>
#include <stdlib.h>

int mr_params_new(struct mr_params *p, const struct mr_config *config, struct mr_error *err)
{
    *p = (struct mr_params){.config = config, .count = mr_tensor_specs(config)};
    p->first = calloc(p->count + 1, sizeof *p->first);
    size_t all = 0;
    for (size_t i = 0; p->first && i < p->count; i++) {
        int rows, cols;
        mr_params_shape(config, i, &rows, &cols);
        p->first[i] = all;
        all += (size_t)rows * (size_t)cols;
    }
    if (p->first)
        p->first[p->count] = all;
    p->data = p->first && all <= SIZE_MAX / sizeof *p->data ? calloc(all, sizeof *p->data) : NULL;
    if (!p->data) {
        mr_params_free(p);
        return mr_fail(err, MR_ERR_MEMORY, "out of memory: %zu parameters in fp32", all);
    }
    return 0;
}

void mr_params_free(struct mr_params *p)
{
    free(p->first);
    free(p->data);
    *p = (struct mr_params){0};
}

float *mr_params_at(const struct mr_params *p, size_t i)
{
    return p->data + p->first[i];
}

size_t mr_params_size(const struct mr_params *p, size_t i)
{
    return p->first[i + 1] - p->first[i];
}

int mr_params_read(struct mr_params *p, const struct mr_checkpoint *checkpoint,
                   struct mr_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        struct mr_tensor_spec s = mr_tensor_spec(p->config, i);
        int layer = s.layer < 0 ? p->config->n_layer : s.layer;
        const struct mr_tensor *t = mr_checkpoint_item(checkpoint, layer, s.item, s.part);
        int rc =
            t ? mr_tensor_read_f32(t, 0, mr_params_size(p, i), mr_params_at(p, i)) : MR_ERR_USAGE;
        char name[MR_NAME];
        if (rc)
            return mr_fail(err, rc, "%s: cannot read its %zu elements from the checkpoint",
                           mr_tensor_name(p->config, s.layer, s.item, s.part, name),
                           mr_params_size(p, i));
    }
    return 0;
}

void mr_params_export(const struct mr_params *p, size_t i, float *out)
{
    mr_params_turn(p->config, i, mr_params_at(p, i), out);
}
