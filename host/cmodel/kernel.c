// SPDX-License-Identifier: Apache-2.0
#include "cmodel/kernel.h"

#include <string.h>

void mr_panel_put(struct mr_panel_block *block, int lane, const int8_t act[32], uint8_t code)
{
    int32_t sum = 0;
    for (int i = 0; i < 32; i++)
        sum += act[i];
    for (int k = 0; k < 8; k++)
        memcpy(block->words[k][lane], act + 4 * k, 4);
    block->start[lane] = -128 * sum;
    block->code[lane] = code;
}
