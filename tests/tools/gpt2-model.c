// SPDX-License-Identifier: Apache-2.0
// Writes a small GPT-2 with random weights and a tokenizer of bytes: gpt2-model DIRECTORY. Its
// sizes are no multiples of those that the engine stores.
#include <stdio.h>

#include "checkpoint/synthetic.h"
#include "model/model.h"

int main(int argc, char **argv)
{
    static const struct mr_config c = {.arch = &mr_arch_gpt2,
                                       .vocab_size = 257,
                                       .n_positions = 96,
                                       .n_embd = 48,
                                       .n_layer = 2,
                                       .n_head = 2,
                                       .head_dim = 24,
                                       .n_inner = 100,
                                       .layer_norm_epsilon = 1e-5F,
                                       .bos_token_id = 256,
                                       .eos_token_id = 256};
    struct mr_error err = {0};
    if (argc == 2 && mr_synthetic_write(argv[1], &c, 1, &err) == 0)
        return 0;
    fprintf(stderr, "%s\n", argc == 2 ? err.text : "usage: gpt2-model DIRECTORY");
    return 1;
}
