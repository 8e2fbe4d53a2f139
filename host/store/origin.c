// SPDX-License-Identifier: Apache-2.0
#include "store/origin.h"

#include "pack/hash.h"

enum { PIECES = 16, PIECE = 1024 };

// All elements of a tensor of at most PIECES x PIECE, else pieces from its first to its last.
static void add_tensor(XXH3_state_t *hash, const struct mr_tensor *t)
{
    float values[PIECE];
    size_t pieces = (t->count + PIECE - 1) / PIECE, all = pieces;
    pieces = pieces < PIECES ? pieces : PIECES;
    for (size_t k = 0; k < pieces; k++) {
        size_t first = all > PIECES ? (t->count - PIECE) * k / (PIECES - 1) : k * PIECE;
        size_t n = t->count - first < PIECE ? t->count - first : PIECE;
        (void)mr_tensor_read_f32(t, first, n, values); // of a checkpoint
        (void)XXH3_64bits_update(hash, values, n * sizeof *values);
    }
}

int mr_store_origin(uint32_t *origin, const struct mr_checkpoint *checkpoint, struct mr_error *err)
{
    const struct mr_config *c = mr_checkpoint_config(checkpoint);
    XXH3_state_t *hash = XXH3_createState();
    if (!hash)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a checksum");
    (void)XXH3_64bits_reset(hash);
    for (size_t i = 0; i < mr_tensor_specs(c); i++) {
        struct mr_tensor_spec t = mr_tensor_spec(c, i);
        char name[MR_NAME];
        if (t.item->share == 0) // the others went with the first
            add_tensor(hash, mr_checkpoint_tensor(
                                 checkpoint, mr_tensor_name(c, t.layer, t.item, t.part, name)));
    }
    uint32_t found = (uint32_t)XXH3_64bits_digest(hash);
    *origin = found ? found : 1;
    XXH3_freeState(hash);
    return 0;
}
