// SPDX-License-Identifier: Apache-2.0
#include "device/configs.h"

#include <stdio.h>
#include <string.h>

#include "common/error.h"

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

const struct mr_config_entry *mr_config_of(const struct mr_geometry *g)
{
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        if (memcmp(&configs[i].g, g, sizeof *g) == 0)
            return &configs[i];
    return NULL;
}

const char *mr_config_name(int index)
{
    return index >= 0 && index < (int)(sizeof configs / sizeof *configs) ? configs[index].name
                                                                         : NULL;
}

void mr_config_unknown(char *text, size_t size)
{
    (void)snprintf(text, size, "no such configuration; %s exist",
                   mr_names_of(mr_config_name, ", ", " and ").text);
}
