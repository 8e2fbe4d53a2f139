// SPDX-License-Identifier: Apache-2.0
#include "store/choice.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/str.h"
#include "model/tensors.h"

// A tensor whose name matches; false: there is none.
static bool find(const struct mr_config *c, const char *pattern, char name[MR_NAME])
{
    for (size_t i = 0; i < mr_tensor_specs(c); i++) {
        struct mr_tensor_spec t = mr_tensor_spec(c, i);
        if (fnmatch(pattern, mr_tensor_name(c, t.layer, t.item, t.part, name), 0) == 0)
            return true;
    }
    return false;
}

// Which names there are: those that only begin otherwise, or the last one.
static int no_tensor(const struct mr_config *c, const char *pattern, const char *what,
                     struct mr_error *err)
{
    char name[MR_NAME], wider[MR_NAME];
    (void)snprintf(wider, sizeof wider, "*.%s", pattern + (*pattern == '!'));
    if (find(c, wider, name))
        return mr_fail(err, MR_ERR_USAGE,
                       "%s '%s': no tensor has such a name; did you mean '%s%s', which %s has?",
                       what, mr_show(pattern).text, *pattern == '!' ? "!" : "", mr_show(wider).text,
                       name);
    struct mr_tensor_spec last = mr_tensor_spec(c, mr_tensor_specs(c) - 1);
    return mr_fail(err, MR_ERR_USAGE, "%s '%s': no tensor has such a name; the last one is %s",
                   what, mr_show(pattern).text,
                   mr_tensor_name(c, last.layer, last.item, last.part, name));
}

static int choose_by(uint8_t *choice, const struct mr_config *c, int bit, const char *pattern,
                     const char *what, struct mr_error *err)
{
    bool out = *pattern == '!';
    size_t found = 0, n = mr_tensor_specs(c);
    char name[MR_NAME];
    for (size_t i = 0; i < n; i++) {
        struct mr_tensor_spec t = mr_tensor_spec(c, i);
        if (fnmatch(pattern + out, mr_tensor_name(c, t.layer, t.item, t.part, name), 0) != 0)
            continue;
        choice[i] = (uint8_t)(out ? choice[i] & ~bit : choice[i] | bit);
        found++;
    }
    return found > 0 ? 0 : no_tensor(c, pattern, what, err);
}

int mr_choose(uint8_t *choice, const struct mr_config *config, int bit, const char *const *patterns,
              const char *what, struct mr_error *err)
{
    int rc = 0;
    for (; patterns && *patterns && rc == 0; patterns++)
        rc = choose_by(choice, config, bit, *patterns, what, err);
    bool all = rc == 0 && bit == MR_CHOICE_FROZEN;
    for (size_t i = 0; i < mr_tensor_specs(config) && all; i++)
        all = choice[i] & bit;
    return all ? mr_fail(err, MR_ERR_USAGE,
                         "%s: no tensor is left to learn; '!' in front of a pattern takes some out",
                         what)
               : rc;
}

void mr_choose_pairs(uint8_t *choice, const struct mr_config *config, const struct mr_lora *lora)
{
    int share;
    for (size_t i = 0; i < mr_tensor_specs(config); i++)
        choice[i] = mr_lora_of(lora, i, &share) ? 0 : MR_CHOICE_FROZEN;
}
