// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/lora.h"

#include <stdlib.h>

#include "common/str.h"

int mr_lora_merge(struct mr_tensor *to, const struct mr_tensor *from, const struct mr_lora *lora,
                  const struct mr_lora_pair *pair, bool transposed, struct mr_error *err)
{
    size_t inputs = (size_t)pair->inputs, outputs = (size_t)pair->outputs;
    float *row = malloc(inputs * sizeof *row), *all = malloc(from->count * sizeof *all);
    if (!row || !all) {
        free(row);
        free(all);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %s", mr_show(from->name).text);
    }
    (void)mr_tensor_read_f32(from, 0, from->count, all); // of a checkpoint
    for (size_t o = 0; o < outputs; o++) {
        float *w = transposed ? row : all + o * inputs;
        for (size_t i = 0; i < inputs && transposed; i++)
            row[i] = all[i * outputs + o];
        mr_lora_add(lora, pair, (int)o, 0, pair->inputs, w);
        for (size_t i = 0; i < inputs && transposed; i++)
            all[i * outputs + o] = row[i];
    }
    free(row);
    mr_tensor_release(from, 0, from->count);
    *to = (struct mr_tensor){.name = from->name,
                             .dtype = MR_DTYPE_F32,
                             .rank = 2,
                             .shape = {from->shape[0], from->shape[1]},
                             .count = from->count,
                             .data = (const unsigned char *)all,
                             .bytes = from->count * sizeof *all};
    return 0;
}

void mr_lora_merged_free(struct mr_tensor *tensor)
{
    free((void *)(uintptr_t)tensor->data);
}
