// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/peft.h"
#include "millrace.h"
#include "common/file.h"
#include "store/adapter_step.h"
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

// Streams of an adapter's state are made by who opens it.
static void sizes_of(const struct mr_store_layout *l, uint64_t gap, uint64_t *size)
{
    size[MR_V_HEADER] = 2 * (uint64_t)mr_store_slot_bytes(l);
    size[MR_V_STATE] = l->bytes + gap_of(l, gap);
    size[MR_V_GRADIENTS] = l->elements * sizeof(int32_t);
    size[MR_V_STREAM] = l->adapter ? 0 : mr_store_stream_bytes(l->config);
    size[MR_V_TURNED] = l->adapter ? 0 : mr_store_turned_bytes(l->config);
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

int mr_store_adapter_sizes(const struct mr_config *config, const struct mr_lora *lora, uint64_t gap,
                           uint64_t *size, struct mr_error *err)
{
    struct mr_store_layout l;
    int rc = mr_store_layout_of_adapter(&l, config, lora, err);
    if (rc == 0)
        sizes_of(&l, gap, size);
    mr_store_layout_free(&l);
    size[MR_V_STREAM] = mr_store_stream_bytes(config);
    size[MR_V_TURNED] = mr_store_turned_bytes(config);
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
    h->version = l->adapter ? MR_STORE_ADAPTER : 0;
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
        rc = s->adapter ? mr_store_import_adapter(s, err)
                        : mr_store_import(s, checkpoint, options, err);
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
    return rc;
}

// The model below an adapter, and room for the streams.
static int open_base(struct mr_store *s, const struct mr_store_options *options,
                     struct mr_error *err)
{
    const char *dir = options->base ? options->base : s->adapter->base_name;
    if (options->alone)
        return 0;
    if (!dir) // JSON has no other names than UTF-8's
        return mr_fail(err, MR_ERR_USAGE,
                       "%s: does not say where the adapter's model is, as the directory's name was "
                       "not UTF-8; name it",
                       s->dir);
    s->volume->unnamed = true;
    return mr_adapter_open_base(s->adapter, &s->config, dir, s->header->origin, err);
}

// Of an old state.
static int make_streams(struct mr_store *s, const struct mr_store_options *options,
                        struct mr_error *err)
{
    int rc = s->adapter ? open_base(s, options, err) : 0;
    if (s->adapter)
        mr_adapter_follow(s, false);
    if (rc < 0 || (s->adapter && options->alone))
        return rc;
    rc = mr_store_streams_fit(s->volume, s->model, mr_store_where(s), err);
    if (rc == 0)
        mr_streams_make(s);
    return rc;
}

// ---- both --------------------------------------------------------------------------------------

static int check_expected(const struct mr_store *s, const struct mr_config *expected,
                          struct mr_error *err)
{
    struct mr_config other = expected ? *expected : s->config;
    other.n_labels = s->config.n_labels; // a training may have others than its model
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

// The adapter of a state, and what it is called; count 0: it is of a whole model.
struct adapter_of {
    struct mr_lora lora;
    char *base_name;
};

static void forget(struct adapter_of *a)
{
    mr_lora_free(&a->lora);
    free(a->base_name);
    *a = (struct adapter_of){0};
}

static int lay_out(struct mr_store *s, struct adapter_of *adapter, struct mr_error *err)
{
    s->model = &s->layout;
    if (adapter->lora.count == 0)
        return mr_store_layout_make(&s->layout, &s->config, err);
    int rc = mr_store_layout_of_adapter(&s->layout, &s->config, &adapter->lora, err);
    if (rc == 0) {
        rc = mr_adapter_new(&s->adapter, &s->config, &adapter->lora, adapter->base_name, err);
        adapter->base_name = NULL;
    }
    if (rc == 0)
        s->model = &s->adapter->layout;
    return rc;
}

// A store of these files, which it takes over, without a header; also the adapter.
static int new_store(struct mr_store **store, const char *dir, struct mr_volume *volume,
                     const struct mr_config *config, struct adapter_of *adapter, int threads,
                     struct mr_error *err)
{
    struct mr_store *s = *store = calloc(1, sizeof *s);
    if (!s) {
        volume->close(volume);
        forget(adapter);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a store");
    }
    s->volume = volume;
    s->config = *config;
    s->dir = dir ? strdup(dir) : NULL;
    s->pool = mr_pool_new(threads > 0 ? threads : mr_pool_default());
    int rc = s->pool && (s->dir || !dir) ? lay_out(s, adapter, err)
                                         : mr_fail(err, MR_ERR_MEMORY, "no memory for a store");
    forget(adapter);
    if (rc == 0) {
        s->tally = calloc(s->model->tensors, sizeof *s->tally);
        s->choice = calloc(s->model->tensors, sizeof *s->choice);
        if (!s->tally || !s->choice)
            rc = mr_fail(err, MR_ERR_MEMORY, "no memory for a store");
    }
    if (rc == 0)
        rc = mr_streams_new(&s->streams, s->model, err);
    if (rc == 0)
        mr_store_choose(s, NULL);
    if (rc < 0) {
        mr_store_close(s);
        *store = NULL;
    }
    return rc;
}

static int open_store(struct mr_store **store, const char *dir, struct mr_volume *volume,
                      const struct mr_config *config, struct adapter_of *adapter,
                      const struct mr_checkpoint *checkpoint,
                      const struct mr_store_options *options, struct mr_error *err)
{
    int rc = new_store(store, dir, volume, config, adapter, options->threads, err);
    struct mr_store *s = *store;
    if (rc < 0)
        return rc;
    rc = check_expected(s, options->expected, err);
    if (rc == 0)
        rc = checkpoint ? fill(s, checkpoint, options, err) : check(s, options->origin, err);
    if (rc == 0 && checkpoint && !s->adapter)
        mr_streams_make(s);
    if (rc == 0 && !checkpoint)
        rc = make_streams(s, options, err);
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
    struct adapter_of none = {0};
    return open_store(store, NULL, volume, config, &none, checkpoint, options, err);
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
    struct adapter_of none = {0};
    if (rc == 0)
        rc = new_store(store, NULL, volume, config, &none, threads, err);
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
    mr_adapter_free(s->adapter);
    mr_store_layout_free(&s->layout);
    free(s->header);
    free(s->tally);
    free(s->choice);
    mr_streams_free(s->streams);
    free(s->dir);
    free(s);
}

// ---- directories -------------------------------------------------------------------------------

// adapter_config.json of a state; without one it is of a whole model.
static int read_adapter(struct adapter_of *a, const char *dir, const struct mr_config *config,
                        struct mr_error *err)
{
    char *path = mr_path_join(dir, MR_PEFT_CONFIG, err);
    if (!path)
        return MR_ERR_MEMORY;
    int rc =
        mr_file_exists(path) ? mr_peft_read_config(&a->lora, config, path, &a->base_name, err) : 0;
    free(path);
    return rc;
}

int mr_store_open(struct mr_store **store, const char *dir, const struct mr_store_options *options,
                  struct mr_error *err)
{
    struct mr_config config;
    struct mr_volume *volume;
    struct adapter_of adapter = {0};
    *store = NULL;
    int rc = mr_volume_open(&volume, dir, err);
    if (rc < 0)
        return rc;
    rc = mr_config_load_from(&config, dir, err);
    config = mr_config_to_train(&config);
    if (rc == 0)
        rc = read_adapter(&adapter, dir, &config, err);
    if (rc < 0) {
        volume->close(volume);
        return rc;
    }
    rc = open_store(store, dir, volume, &config, &adapter, NULL, options, err);
    if (rc == 0)
        rc = mr_store_carried_check(*store, err);
    if (rc < 0) {
        mr_store_close(*store);
        *store = NULL;
    }
    return rc;
}

// The adapter that a new state is to be of.
static int new_adapter(struct adapter_of *a, const char *from, const struct mr_config *config,
                       const struct mr_lora_options *wanted, struct mr_error *err)
{
    if (!wanted)
        return 0;
    int rc = wanted->adapter
                 ? mr_peft_read(&a->lora, config, wanted->adapter, err)
                 : mr_lora_new(&a->lora, config, wanted->rank, wanted->alpha, wanted->targets, err);
    if (rc < 0)
        return rc;
    if (!wanted->adapter)
        mr_lora_draw(&a->lora, wanted->seed);
    a->base_name = realpath(wanted->base ? wanted->base : from, NULL);
    if (a->base_name)
        return 0;
    forget(a);
    return mr_fail(err, MR_ERR_IO, "%s: %s", from, strerror(errno));
}

static int take_labels(struct mr_config *config, const char *from,
                       const struct mr_store_options *options, struct mr_error *err)
{
    if (options->n_labels == 0)
        return 0;
    if (!config->learns_labels)
        return mr_fail(err, MR_ERR_USAGE, "%s: is no encoder, which would learn labels", from);
    if (options->n_labels > MR_MAX_LABELS)
        return mr_fail(err, MR_ERR_USAGE, "%d labels; at most %d", options->n_labels,
                       MR_MAX_LABELS);
    config->n_labels = options->n_labels;
    return 0;
}

static int create_in(const struct mr_directory *d, const char *from,
                     const struct mr_checkpoint *checkpoint, const struct mr_store_options *options,
                     struct mr_error *err)
{
    uint64_t size[MR_V_FILES];
    struct mr_volume *volume;
    struct mr_store *s;
    struct mr_store_layout l = {0};
    struct adapter_of adapter = {0};
    struct mr_config config = mr_config_to_train(mr_checkpoint_config(checkpoint));
    int rc = take_labels(&config, from, options, err);
    if (rc == 0)
        rc = mr_config_set_positions(&config, options->positions, err);
    if (rc == 0)
        rc = new_adapter(&adapter, from, &config, options->adapter, err);
    if (rc == 0)
        rc = options->adapter ? mr_store_layout_of_adapter(&l, &config, &adapter.lora, err)
                              : mr_store_layout_make(&l, &config, err);
    if (rc == 0)
        sizes_of(&l, options->gap, size);
    mr_store_layout_free(&l);
    if (rc == 0)
        rc = mr_volume_create(&volume, d->tmp, size, err);
    if (rc < 0) {
        forget(&adapter);
        return rc;
    }
    rc = open_store(&s, d->dir, volume, &config, &adapter, checkpoint, options, err);
    if (rc < 0)
        return rc;
    rc = mr_store_carry(s, d, from, options, err);
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
        rc = mr_checkpoint_open(&checkpoint, from, MR_EITHER, NULL, err);
    if (rc < 0)
        return rc;
    rc = mr_directory_open(&d, dir, options->stop, err);
    if (rc == 0) {
        rc = create_in(&d, from, checkpoint, options, err);
        rc = mr_directory_end(&d, rc, err);
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

const struct mr_lora *mr_store_lora(const struct mr_store *s)
{
    return s->adapter ? &s->adapter->lora : NULL;
}

enum mr_update_kind mr_store_optimizer(const struct mr_store *s)
{
    return s->header->step > 0 ? mr_store_kind(s->header) : MR_UPDATE_KINDS;
}

const void *mr_store_note(const struct mr_store *s)
{
    return s->header->note;
}
