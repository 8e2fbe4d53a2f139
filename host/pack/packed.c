// SPDX-License-Identifier: Apache-2.0
#include "pack/packed.h"

#include <stdlib.h>

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
    return index == 0 ? &packed->embedding : &packed->positions;
}
