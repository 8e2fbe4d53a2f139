// SPDX-License-Identifier: Apache-2.0
#include "tests/rtl/update/lists.h"

#include <stdlib.h>
#include <string.h>

#include "card/jobs.h"

static const char *fill(struct update_list *list, const struct mr_store_layout *layout,
                        int channels, struct mr_error *err)
{
    const struct mr_adamw_options o = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .decay = 0.1};
    const struct mr_adamw a = mr_adamw_of(&o, 3, 1e-3, 0.01, true);
    struct mr_update_jobs jobs;
    int32_t *unit = calloc(layout->tensors, sizeof *unit);
    if (!unit)
        return "no memory";
    for (size_t i = 0; i < layout->tensors; i++)
        unit[i] = -20 - (int)(i % 9);
    int rc = mr_update_jobs_make(&jobs, layout, &o, unit, channels, 0, 0, err);
    free(unit);
    if (rc < 0)
        return err->text;
    *list = (struct update_list){.job = jobs.job,
                                 .count = (uint32_t)jobs.count,
                                 .state_bytes = layout->bytes,
                                 .gradient_bytes = layout->elements * sizeof(int32_t),
                                 .beats = {jobs.beats[0], jobs.beats[1]}};
    memcpy(list->factor, &a, sizeof list->factor);
    return NULL;
}

const char *update_list_make(struct update_list *list, const struct update_shape *shape,
                             int channels)
{
    static struct mr_error err;
    struct mr_store_layout layout;
    const struct mr_config config = {.arch = mr_arch_find(shape->type),
                                     .vocab_size = shape->vocab_size,
                                     .n_positions = 8,
                                     .n_embd = shape->n_embd,
                                     .n_layer = shape->n_layer,
                                     .n_head = shape->n_head,
                                     .head_dim = shape->n_embd / shape->n_head,
                                     .rotary_dim = 4,
                                     .n_inner = shape->n_inner,
                                     .layer_norm_epsilon = 1e-5F,
                                     .bos_token_id = -1,
                                     .eos_token_id = -1};
    if (mr_store_layout_make(&layout, &config, &err) < 0)
        return err.text;
    const char *wrong = fill(list, &layout, channels, &err);
    mr_store_layout_free(&layout);
    return wrong;
}

void update_list_free(struct update_list *list)
{
    free(list->job);
    *list = (struct update_list){0};
}
