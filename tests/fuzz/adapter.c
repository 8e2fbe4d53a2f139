// SPDX-License-Identifier: Apache-2.0
// A PEFT adapter of a small GPT-J: its adapter_config.json, a NUL, its weights.
#include "checkpoint/peft.h"

#include <math.h>
#include <string.h>

#include "fuzz.h"

static void read_adapter(const uint8_t *settings, size_t size, const uint8_t *weights, size_t rest)
{
    const struct mr_config c = {.arch = mr_arch_find("gptj"),
                                .vocab_size = 32,
                                .n_positions = 8,
                                .n_embd = 8,
                                .n_layer = 2,
                                .n_head = 2,
                                .head_dim = 4,
                                .rotary_dim = 2,
                                .n_inner = 16,
                                .layer_norm_epsilon = 1e-5F};
    struct mr_error err = {0};
    struct mr_lora lora;
    struct fuzz_file a, b;
    fuzz_open(&a, settings, size);
    fuzz_open(&b, weights, rest);
    int rc = mr_peft_read_files(&lora, &c, a.path, b.path, false, &err);
    fuzz_check_outcome(rc, &err);
    fuzz_check((rc == 0) == (lora.count > 0), "nothing to free after a failure");
    if (rc == 0) {
        float w[16] = {0};
        fuzz_check(lora.rank >= 1 && lora.rank <= MR_LORA_RANKS, "rank");
        fuzz_check(isfinite(mr_lora_factor(&lora)), "the factor is finite");
        for (size_t k = 0; k < lora.count; k++)
            mr_lora_add(&lora, &lora.pair[k], lora.pair[k].outputs - 1, 0, lora.pair[k].inputs, w);
        mr_lora_free(&lora);
    }
    fuzz_close(&a);
    fuzz_close(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, 0, size);
    if (end)
        read_adapter(data, (size_t)(end - data), end + 1, size - (size_t)(end - data) - 1);
    return 0;
}
