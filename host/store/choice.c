// SPDX-License-Identifier: Apache-2.0
#include "store/choice.h"

#include <fnmatch.h>
#include <stdbool.h>

#include "common/str.h"
#include "model/tensors.h"

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
    struct mr_tensor_spec last = mr_tensor_spec(c, n - 1);
    return found > 0 ? 0
                     : mr_fail(err, MR_ERR_USAGE,
                               "%s '%s': no tensor has such a name; the last one is %s", what,
                               mr_show(pattern).text,
                               mr_tensor_name(c, last.layer, last.item, last.part, name));
}

int mr_choose(uint8_t *choice, const struct mr_config *config, int bit, const char *const *patterns,
              const char *what, struct mr_error *err)
{
    int rc = 0;
    for (; patterns && *patterns && rc == 0; patterns++)
        rc = choose_by(choice, config, bit, *patterns, what, err);
    return rc;
}
