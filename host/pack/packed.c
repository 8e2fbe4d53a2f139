// SPDX-License-Identifier: Apache-2.0
#include "pack/packed.h"

#include <stdlib.h>

#include "common/error.h"

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
                   "the model has no tokenizer; put its tokenizer.json (or vocab.json and "
                   "merges.txt) into the directory%s",
                   packed->checkpoint ? "" : " that it was packed from, and pack it again");
}

void mr_packed_close(struct mr_packed *packed)
{
    mr_tokenizer_close(packed->tokenizer);
    mr_checkpoint_close(packed->checkpoint);
    mr_file_unmap(&packed->map);
    free(packed->memory);
    *packed = (struct mr_packed){0};
}

const struct mr_tensor *mr_packed_table(const struct mr_packed *packed, int index)
{
    return index == 0 ? &packed->embedding : index == 1 ? &packed->positions : &packed->types;
}
