// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "store/carried.h"
#include "store/import.h"
#include "store/mirror.h"
#include "store/origin.h"
#include "store/patch.h"
#include "store/streams.h"
#include "store/turned.h"

enum { GAP = 256 << 20 };

// ---- the files ---------------------------------------------------------------------------------

// Never less than a patch, nor more than it takes to have all of them twice.
static uint64_t gap_of(const struct mr_store_layout *l, uint64_t wish)
{
    uint64_t gap = (wish ? wish : GAP) / MR_PATCH_ALIGN * MR_PATCH_ALIGN;
    gap = gap < l->bytes ? gap : l->bytes;
    return gap > l->largest ? gap : l->largest;
}

static void sizes_of(const struct mr_store_layout *l, uint64_t gap, uint64_t *size)
{
    size[MR_V_HEADER] = 2 * (uint64_t)mr_store_slot_bytes(l);
    size[MR_V_STATE] = l->bytes + gap_of(l, gap);
    size[MR_V_GRADIENTS] = l->elements * sizeof(int32_t);
    size[MR_V_STREAM] = mr_store_stream_bytes(l->config);
    size[MR_V_TURNED] = mr_store_turned_bytes(l->config);
}

int mr_store_sizes(const struct mr_config *config, uint64_t gap, uint64_t *size,
                   struct mr_error *err)
{
    struct mr_store_layout l;
    int rc = mr_store_layout_make(&l, config, err);
    if (rc == 0)
        sizes_of(&l, gap, size);
    mr_store_layout_free(&l);
    return rc;
}

// ---- a new state -------------------------------------------------------------------------------

static int new_header(struct mr_store *s, uint64_t gap, struct mr_error *err)
{
    const struct mr_store_layout *l = &s->layout;
    struct mr_store_header *h = s->header = calloc(1, mr_store_slot_bytes(l));
    if (!h)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the header of a state");
    h->slot_bytes = mr_store_slot_bytes(l);
    h->model = mr_store_model(&s->config);
    h->tensors = l->tensors;
    h->patches = l->patches;
    h->state_bytes = l->bytes;
    h->gap = gap_of(l, gap);
    return 0;
}

static int fill(struct mr_store *s, const struct mr_checkpoint *checkpoint,
                const struct mr_store_options *options, struct mr_error *err)
{
    int rc = new_header(s, options->gap, err);
    if (rc == 0)
        rc = mr_store_origin(&s->header->origin, checkpoint, err);
    if (rc == 0)
        s->header->lineage = mr_store_begins(s->header).lineage;
    if (rc == 0)
        rc = mr_store_import(s, checkpoint, options->stop, err);
    if (rc == 0)
        rc = s->volume->sync(s->volume, MR_V_STATE, err);
    return rc < 0 ? rc : mr_store_header_write(s->header, s->volume, err);
}

// ---- an old one --------------------------------------------------------------------------------

static int check_patch(void *arg, size_t i, int worker, struct mr_error *err)
{
    const struct mr_store *s = arg;
    (void)worker;
    enum mr_store_condition c =
        mr_store_patch_check(s, i, s->header->side, mr_store_now(s->header));
    return c == MR_PATCH_GOOD ? 0 : mr_store_patch_refuse(s, i, c, "", err);
}

// A state that does not say what it began from is taken.
static int check_origin(const struct mr_store *s, uint32_t wanted, struct mr_error *err)
{
    uint32_t origin = s->header->origin;
    if (wanted == 0 || origin == 0 || origin == wanted)
        return 0;
    return mr_fail(err, MR_ERR_FIT,
                   "%s: is the state of another model: of the same sizes, but it began from other "
                   "weights; name the model that it was made from, or another directory",
                   mr_store_where(s));
}

static int check(struct mr_store *s, uint32_t origin, struct mr_error *err)
{
    int rc = mr_store_header_read(&s->header, s->volume, &s->layout, mr_store_where(s), err);
    if (rc == 0)
        rc = check_origin(s, origin, err);
    if (rc == 0 && s->header->updating)
        rc = mr_store_complete(s, err);
    if (rc == 0)
        rc = mr_store_tasks(s->pool, 0, s->layout.patches, check_patch, s, err);
    return rc < 0 ? rc : mr_store_streams_fit(s->volume, &s->layout, mr_store_where(s), err);
}

// ---- both --------------------------------------------------------------------------------------

static int check_expected(const struct mr_store *s, const struct mr_config *expected,
                          struct mr_error *err)
{
    struct mr_config other = expected ? *expected : s->config;
    if (mr_store_model(&other) == mr_store_model(&s->config))
        return 0;
    other.n_positions = s->config.n_positions;
    if (mr_store_model(&other) == mr_store_model(&s->config))
        return mr_fail(err, MR_ERR_FIT,
                       "%s: is the state of another model: of %d positions, not %d; name as many",
                       mr_store_where(s), s->config.n_positions, expected->n_positions);
    return mr_fail(err, MR_ERR_FIT,
                   "%s: is the state of another model; name the model that it was made from, or "
                   "another directory",
                   mr_store_where(s));
}

// A store of these files, which it takes over, without a header.
static int new_store(struct mr_store **store, const char *dir, struct mr_volume *volume,
                     const struct mr_config *config, int threads, struct mr_error *err)
{
    struct mr_store *s = *store = calloc(1, sizeof *s);
    if (!s) {
        volume->close(volume);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a store");
    }
    s->volume = volume;
    s->config = *config;
    s->dir = dir ? strdup(dir) : NULL;
    s->pool = mr_pool_new(threads > 0 ? threads : mr_pool_default());
    int rc = s->pool && (s->dir || !dir) ? mr_store_layout_make(&s->layout, &s->config, err)
                                         : mr_fail(err, MR_ERR_MEMORY, "no memory for a store");
    if (rc == 0) {
        s->tally = calloc(s->layout.tensors, sizeof *s->tally);
        s->choice = calloc(s->layout.tensors, sizeof *s->choice);
        if (!s->tally || !s->choice)
            rc = mr_fail(err, MR_ERR_MEMORY, "no memory for a store");
    }
    if (rc == 0)
        rc = mr_streams_new(&s->streams, &s->layout, err);
    if (rc < 0) {
        mr_store_close(s);
        *store = NULL;
    }
    return rc;
}

static int open_store(struct mr_store **store, const char *dir, struct mr_volume *volume,
                      const struct mr_config *config, const struct mr_checkpoint *checkpoint,
                      const struct mr_store_options *options, struct mr_error *err)
{
    int rc = new_store(store, dir, volume, config, options->threads, err);
    struct mr_store *s = *store;
    if (rc < 0)
        return rc;
    rc = check_expected(s, options->expected, err);
    if (rc == 0)
        rc = checkpoint ? fill(s, checkpoint, options, err) : check(s, options->origin, err);
    if (rc == 0)
        mr_streams_make(s);
    if (rc < 0) {
        mr_store_close(s);
        *store = NULL;
    }
    return rc;
}

int mr_store_open_volume(struct mr_store **store, struct mr_volume *volume,
                         const struct mr_config *config, const struct mr_checkpoint *checkpoint,
                         const struct mr_store_options *options, struct mr_error *err)
{
    return open_store(store, NULL, volume, config, checkpoint, options, err);
}

int mr_store_mirror(struct mr_store **store, const struct mr_config *config, int threads,
                    struct mr_error *err)
{
    uint64_t size[MR_V_FILES];
    struct mr_volume *volume;
    *store = NULL;
    int rc = mr_store_sizes(config, 0, size, err);
    if (rc == 0)
        rc = mr_volume_untouched(&volume, size, err);
    if (rc == 0)
        rc = new_store(store, NULL, volume, config, threads, err);
    if (rc == 0)
        rc = new_header(*store, 0, err);
    if (rc < 0) {
        mr_store_close(*store);
        *store = NULL;
    }
    return rc;
}

void mr_store_close(struct mr_store *s)
{
    if (!s)
        return;
    s->volume->close(s->volume);
    mr_pool_free(s->pool);
    mr_store_layout_free(&s->layout);
    free(s->header);
    free(s->tally);
    free(s->choice);
    mr_streams_free(s->streams);
    free(s->dir);
    free(s);
}

// ---- directories -------------------------------------------------------------------------------

int mr_store_open(struct mr_store **store, const char *dir, const struct mr_store_options *options,
                  struct mr_error *err)
{
    struct mr_config config;
    struct mr_volume *volume;
    *store = NULL;
    int rc = mr_volume_open(&volume, dir, err);
    if (rc < 0)
        return rc;
    rc = mr_config_load_from(&config, dir, err);
    if (rc < 0) {
        volume->close(volume);
        return rc;
    }
    rc = open_store(store, dir, volume, &config, NULL, options, err);
    if (rc == 0)
        rc = mr_store_carried_check(*store, err);
    if (rc < 0) {
        mr_store_close(*store);
        *store = NULL;
    }
    return rc;
}

static int create_in(const struct mr_directory *d, const char *from,
                     const struct mr_checkpoint *checkpoint, const struct mr_store_options *options,
                     struct mr_error *err)
{
    uint64_t size[MR_V_FILES];
    struct mr_volume *volume;
    struct mr_store *s;
    struct mr_config config = *mr_checkpoint_config(checkpoint);
    int rc = mr_config_set_positions(&config, options->positions, err);
    if (rc == 0)
        rc = mr_store_sizes(&config, options->gap, size, err);
    if (rc == 0)
        rc = mr_volume_create(&volume, d->tmp, size, err);
    if (rc < 0)
        return rc;
    rc = open_store(&s, d->dir, volume, &config, checkpoint, options, err);
    if (rc < 0)
        return rc;
    rc = mr_store_carry(s, d, from, options->positions, err);
    if (rc == 0)
        rc = mr_store_header_write(s->header, s->volume, err);
    mr_store_close(s);
    return rc;
}

// A directory that has all of a state but its header is not one where another can be made.
static int refuse_headless(const char *dir, struct mr_error *err)
{
    char *header = mr_path_join(dir, mr_volume_name(MR_V_HEADER), err);
    char *patches = header ? mr_path_join(dir, mr_volume_name(MR_V_STATE), err) : NULL;
    int rc = patches ? 0 : MR_ERR_MEMORY;
    if (patches && mr_file_exists(patches) && !mr_file_exists(header))
        rc = mr_fail(err, MR_ERR_IO,
                     "%s: is missing, and without it the state cannot be read; take a copy of the "
                     "state, or name a new directory",
                     header);
    free(header);
    free(patches);
    return rc;
}

int mr_store_create(const char *dir, const char *from, const struct mr_store_options *options,
                    struct mr_error *err)
{
    struct mr_checkpoint *checkpoint;
    struct mr_directory d;
    int rc = refuse_headless(dir, err);
    if (rc == 0)
        rc = mr_checkpoint_open(&checkpoint, from, err);
    if (rc < 0)
        return rc;
    rc = mr_directory_open(&d, dir, options->stop, err);
    if (rc == 0) {
        rc = create_in(&d, from, checkpoint, options, err);
        if (rc == 0)
            rc = mr_directory_commit(&d, err);
        else
            mr_directory_abandon(&d);
    }
    mr_checkpoint_close(checkpoint);
    return rc;
}

// ---- what is in it -----------------------------------------------------------------------------

const struct mr_config *mr_store_config(const struct mr_store *s)
{
    return &s->config;
}

uint64_t mr_store_step(const struct mr_store *s)
{
    return s->header->step;
}

enum mr_update_kind mr_store_optimizer(const struct mr_store *s)
{
    return s->header->step > 0 ? mr_store_kind(s->header) : MR_UPDATE_KINDS;
}

const void *mr_store_note(const struct mr_store *s)
{
    return s->header->note;
}
