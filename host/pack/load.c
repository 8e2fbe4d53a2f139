// SPDX-License-Identifier: Apache-2.0
#include "pack/load.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pack/pack_memory.h"
#include "pack/packed_read.h"

// model/pytorch_model.bin instead of model: what a file of weights is comes from its directory.
static bool is_weights(const char *path)
{
    static const char *const ends[] = {".bin", ".safetensors"};
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (n > strlen(ends[i]) && strcmp(path + n - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

static int describe_directory_of(struct mr_packed *packed, const char *path,
                                 const struct mr_pack_options *opt, struct mr_error *err)
{
    char *copy = strdup(path);
    int rc = copy ? mr_pack_directory(packed, dirname(copy), opt, err)
                  : mr_fail(err, MR_ERR_MEMORY, "no memory for a path");
    free(copy);
    return rc;
}

int mr_packed_load(struct mr_packed *packed, const char *path, const struct mr_pack_options *opt,
                   struct mr_error *err)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        *packed = (struct mr_packed){0};
        return mr_fail(err, MR_ERR_IO, "%s: %s; give a Hugging Face directory or a packed file",
                       path, strerror(errno));
    }
    if (opt->describe && S_ISREG(st.st_mode) && is_weights(path))
        return describe_directory_of(packed, path, opt, err);
    return S_ISDIR(st.st_mode) ? mr_pack_directory(packed, path, opt, err)
                               : mr_packed_open(packed, path, opt, err);
}
