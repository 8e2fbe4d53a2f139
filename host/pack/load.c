// SPDX-License-Identifier: Apache-2.0
#include "pack/packed.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pack/pack.h"

static int pack_in_memory(struct mr_packer *p, struct mr_packed *packed, struct mr_error *err)
{
    struct mr_sink sink = {0};
    size_t bytes = packed->list.bytes;
    packed->memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!packed->memory)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a weight stream of %zu bytes", bytes);
    packed->stream = packed->memory;
    int rc = mr_sink_init(&sink, packed->memory, NULL, err);
    if (rc == 0) // are used where they lie in the checkpoint
        rc = mr_packer_tables(p, NULL, NULL, err);
    if (rc == 0)
        rc = mr_packer_stream(p, &sink, NULL, err);
    mr_sink_free(&sink);
    return rc;
}

int mr_pack_directory(struct mr_packed *packed, const char *dir, const struct mr_pack_options *opt,
                      struct mr_error *err)
{
    struct mr_packer p;
    if (opt->describe)
        return mr_packer_describe(packed, dir, opt, err);
    int rc = mr_packer_open(&p, packed, dir, opt, err);
    if (rc < 0)
        return rc;
    rc = pack_in_memory(&p, packed, err);
    mr_packer_close(&p);
    if (rc < 0)
        mr_packed_close(packed);
    return rc;
}

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
