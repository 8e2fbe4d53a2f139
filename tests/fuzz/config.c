// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/config.h"
#include "model/arch.h"
#include "model/model.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    struct mr_config c;
    int rc = mr_config_parse(&c, data, size, MR_EITHER, "config.json", &err);
    fuzz_check_outcome(rc, &err);
    if (rc < 0)
        return 0;
    fuzz_check(c.vocab_size >= 1 && c.vocab_size <= MR_MAX_VOCAB, "vocab_size");
    fuzz_check(c.n_positions >= 1 && c.n_positions <= MR_MAX_POSITIONS, "n_positions");
    fuzz_check(c.n_layer >= 1 && c.n_layer <= MR_MAX_LAYER, "n_layer");
    fuzz_check(c.n_head >= 1 && c.n_head <= MR_MAX_HEAD, "n_head");
    fuzz_check(c.n_embd <= MR_MAX_EMBD && c.n_embd == c.n_head * c.head_dim, "n_embd");
    bool rotates = !mr_arch_positions(mr_arch_of(&c));
    fuzz_check(rotates ? c.rotary_dim >= 2 && c.rotary_dim % 2 == 0 && c.rotary_dim <= c.head_dim
                       : c.rotary_dim == 0,
               "rotary");
    fuzz_check(c.n_inner >= 1 && c.n_inner <= MR_MAX_INNER, "n_inner");
    fuzz_check(c.layer_norm_epsilon > 0 && c.layer_norm_epsilon <= 1, "layer_norm_epsilon");
    fuzz_check(c.bos_token_id >= -1 && c.eos_token_id >= -1, "token ids");
    fuzz_check(c.n_more_eos >= 0 && c.n_more_eos < MR_MAX_EOS, "eos_token_id");
    for (int i = 0; i < c.n_more_eos; i++)
        fuzz_check(mr_config_is_eos(&c, c.more_eos_ids[i]) && c.more_eos_ids[i] < c.vocab_size,
                   "eos_token_id");
    return 0;
}
