// SPDX-License-Identifier: Apache-2.0
#include "device/configs.h"

#include <stddef.h>
#include <string.h>

static const struct mr_config_entry configs[] = {
#include "mr_configs.inc"
};

const struct mr_config_entry *mr_config_at(int index)
{
    return index >= 0 && index < (int)(sizeof configs / sizeof *configs) ? &configs[index] : NULL;
}

const struct mr_config_entry *mr_config_named(const char *name)
{
    const struct mr_config_entry *c;
    for (int i = 0; (c = mr_config_at(i)); i++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}
