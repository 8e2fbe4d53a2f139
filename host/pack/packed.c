// SPDX-License-Identifier: Apache-2.0
#include "pack/packed.h"

#include <stdlib.h>

#include "common/error.h"
#include "model/tensors.h"

int mr_packed_need_tokenizer(const struct mr_packed *packed, struct mr_error *err)
{
    if (packed->tokenizer)
        return 0;
    if (!packed->checkpoint && !packed->map.data)
        return mr_fail(
            err, MR_ERR_USAGE,
            "synthetic: weights have no tokenizer and no text; bench, trace, info and plan "
            "take them");
    return mr_fail(err, MR_ERR_FORMAT,
                   "the model has no tokenizer; put its tokenizer.json (or %s) into the "
                   "directory%s",
                   mr_arch_of(&packed->config)->encoder ? "vocab.txt" : "vocab.json and merges.txt",
                   packed->checkpoint ? "" : " that it was packed from, and pack it again");
}

enum mr_model_kind mr_packed_kind(const struct mr_packed *packed)
{
    if (!packed->checkpoint)
        return packed->map.data ? MR_KIND_PACKED : MR_KIND_SYNTHETIC;
    return mr_checkpoint_kind(packed->checkpoint) == MR_CHECKPOINT_TORCH ? MR_KIND_TORCH
                                                                         : MR_KIND_SAFETENSORS;
}

void mr_packed_close(struct mr_packed *packed)
{
    mr_tokenizer_close(packed->tokenizer);
    mr_checkpoint_close(packed->checkpoint);
    mr_file_unmap(&packed->map);
    free(packed->memory);
    mr_stream_list_free(&packed->list);
    *packed = (struct mr_packed){0};
}

static bool is_stored(const struct mr_config *c, int head)
{
    const struct mr_head_tensor *t = &mr_arch_of(c)->heads[head];
    return !t->copy_of && c->heads >> t->head & 1U;
}

int mr_packed_tables(const struct mr_config *c)
{
    int count = mr_arch_of(c)->tables.count;
    for (int i = 0; i < mr_arch_of(c)->n_heads; i++)
        count += is_stored(c, i);
    return count;
}

int mr_packed_shape(const struct mr_config *c, int index, int *rows, int *cols)
{
    const struct mr_list *tables = &mr_arch_of(c)->tables;
    if (index < tables->count) {
        int by = (int)tables->items[index].by;
        *rows = by == MR_BY_TOKEN      ? c->vocab_size
                : by == MR_BY_POSITION ? c->n_positions
                                       : c->n_types;
        *cols = c->n_embd;
        return -1;
    }
    int head = 0;
    for (int left = index - tables->count; !is_stored(c, head) || left > 0; head++)
        left -= is_stored(c, head);
    *rows = mr_head_rows(c, head);
    *cols = mr_head_cols(c, head);
    return head;
}

const struct mr_tensor *mr_packed_table(const struct mr_packed *packed, int index)
{
    const struct mr_tensor *tables[] = {&packed->embedding, &packed->positions, &packed->types};
    int rows, cols, head = mr_packed_shape(&packed->config, index, &rows, &cols);
    return head < 0 ? tables[index] : &packed->heads[head];
}

int mr_packed_one_type(const struct mr_packed *packed, const char *dir, struct mr_error *err)
{
    const struct mr_tensor *first = &packed->embedding;
    for (int i = 1; i < mr_packed_tables(&packed->config); i++) {
        const struct mr_tensor *t = mr_packed_table(packed, i);
        if (t->dtype != first->dtype)
            return mr_fail(
                err, MR_ERR_UNSUPPORTED, "%s: %s is %s and %s is %s; save both in the same type",
                dir, first->name, mr_dtype_name(first->dtype), t->name, mr_dtype_name(t->dtype));
    }
    return 0;
}
