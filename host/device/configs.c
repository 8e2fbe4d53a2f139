// SPDX-License-Identifier: Apache-2.0
#include "device/configs.h"

#include <stddef.h>
#include <string.h>

static const struct mr_config_entry configs[] = {
#include "mr_configs.inc"
};

const struct mr_config_entry *mr_config_at(int index)
{
    int n = (int)(sizeof configs / sizeof *configs);
    return index >= 0 && index < n && !configs[index].g.train ? &configs[index] : NULL;
}

const struct mr_config_entry *mr_config_named(const char *name)
{
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        if (strcmp(configs[i].name, name) == 0)
            return &configs[i];
    return NULL;
}
