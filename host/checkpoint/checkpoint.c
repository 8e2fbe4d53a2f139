// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/foreign.h"
#include "checkpoint/heads.h"
#include "checkpoint/lora.h"
#include "checkpoint/peft.h"
#include "checkpoint/weight_files.h"
#include "common/file.h"
#include "common/str.h"

struct mr_checkpoint {
    struct mr_config config;
    struct mr_weight_files files;
    const struct mr_tensor **tensors; // the file's, in order of mr_tensor_spec(), NULL until found
    size_t n_tensors;
    const struct mr_tensor **heads;  // of an encoder, in order of its list
    const struct mr_tensor *copy;    // of the tied matrix, if a file has one
    const struct mr_tensor **stored; // [n_stored]: `tensors`, but each once
    size_t n_stored;
    struct mr_tensor *views; // [n_tensors]: where the file has [inputs][outputs], or several in one
    struct mr_tensor *adapted; // [n_adapted]: with an adapter's pair, in memory of their own
    size_t n_adapted;
};

enum { SLOT_BUFFER = -1, SLOT_UNKNOWN = -2, SLOT_COPY = -3, SLOT_HEAD = -4 };

// The slot of the block's tensor `name` in layer 0, or one of the SLOT_ values.
static int block_slot(const struct mr_checkpoint *c, const char *name)
{
    const struct mr_arch *arch = c->config.arch;
    int first = mr_model_tensors(&c->config);
    for (int i = 0; i < mr_block_tensors(arch); i++) {
        struct mr_tensor_spec t = mr_tensor_spec(&c->config, (size_t)(first + i));
        size_t n = strlen(t.item->name);
        if (strncmp(name, t.item->name, n) == 0 && name[n] == '.' &&
            strcmp(name + n + 1, t.part == MR_WEIGHT ? "weight" : "bias") == 0)
            return first + i;
    }
    for (int i = 0; i < arch->n_skipped; i++) {
        if (strcmp(name, arch->skipped[i]) == 0)
            return SLOT_BUFFER;
    }
    return SLOT_UNKNOWN;
}

static int layer_slot(const struct mr_checkpoint *c, int layer, const char *name)
{
    if (layer >= c->config.n_layer)
        return SLOT_UNKNOWN;
    int slot = block_slot(c, name);
    return slot < 0 ? slot : slot + layer * mr_block_tensors(c->config.arch);
}

// Where the tensor of this name belongs in c->tensors (of shares, where the first does), or one of
// the SLOT_ values.
static int slot_of(const struct mr_checkpoint *c, const char *name)
{
    const struct mr_arch *arch = c->config.arch;
    for (int i = 0; i < mr_model_tensors(&c->config); i++) {
        char full[MR_NAME];
        struct mr_tensor_spec t = mr_tensor_spec(&c->config, (size_t)i);
        (void)mr_tensor_name(&c->config, -1, t.item, t.part, full);
        if (mr_name_is(arch, name, full))
            return i;
    }
    if (arch->buffer && mr_name_is(arch, name, arch->buffer))
        return SLOT_BUFFER;
    if (mr_head_find(arch, name) >= 0)
        return SLOT_HEAD;
    if (arch->tied_copy && strcmp(name, arch->tied_copy) == 0)
        return SLOT_COPY;
    const char *rest = mr_name_behind(name, arch->block_prefix, strlen(arch->prefix));
    if (!rest)
        return SLOT_UNKNOWN;
    int layer = 0;
    int digits = 0;
    for (; *rest >= '0' && *rest <= '9' && digits < 4; rest++, digits++)
        layer = layer * 10 + (*rest - '0');
    // "h.01.x" would be a second name for "h.1.x".
    if (digits == 0 || *rest != '.' || (digits > 1 && rest[-digits] == '0'))
        return SLOT_UNKNOWN;
    return layer_slot(c, layer, rest + 1);
}

// The full name of a slot, for messages.
static struct mr_shown slot_name(const struct mr_checkpoint *c, size_t slot)
{
    struct mr_tensor_spec t = mr_tensor_spec(&c->config, slot);
    char name[MR_NAME];
    return mr_show(mr_tensor_name(&c->config, t.layer, t.item, t.part, name));
}

// "[4096, 16384]"
static struct mr_shown show_shape(const int64_t *shape, int rank)
{
    struct mr_shown shown;
    size_t n = (size_t)snprintf(shown.text, sizeof shown.text, "[");
    for (int i = 0; i < rank && n < sizeof shown.text; i++)
        n += (size_t)snprintf(shown.text + n, sizeof shown.text - n, "%s%lld", i ? ", " : "",
                              (long long)shape[i]);
    if (n < sizeof shown.text)
        (void)snprintf(shown.text + n, sizeof shown.text - n, "]");
    return shown;
}

// No columns: a vector.
static int check_tensor(int rows, int cols, const struct mr_tensor *t, const char *path,
                        struct mr_error *err)
{
    const int64_t shape[2] = {rows, cols};
    int rank = cols ? 2 : 1;
    if (t->rank != rank || t->shape[0] != shape[0] || (rank == 2 && t->shape[1] != shape[1]))
        return mr_fail(err, MR_ERR_FORMAT, "%s: tensor %s has shape %s, but config.json implies %s",
                       path, mr_show(t->name).text, show_shape(t->shape, t->rank).text,
                       show_shape(shape, rank).text);
    if (t->dtype != MR_DTYPE_F32 && t->dtype != MR_DTYPE_F16 && t->dtype != MR_DTYPE_BF16)
        return mr_fail(
            err, MR_ERR_UNSUPPORTED,
            "%s: tensor %s has type %s; weights must be F32, F16 or BF16 (8-bit and other "
            "quantised checkpoints cannot be packed: take the original)",
            path, mr_show(t->name).text, mr_dtype_name(t->dtype));
    return 0;
}

static int refuse_unknown(const struct mr_checkpoint *c, const char *name, const char *path,
                          struct mr_error *err)
{
    const char *what = mr_foreign_tensor(name);
    if (what)
        return mr_fail(err, MR_ERR_UNSUPPORTED, "%s: tensor %s is %s", path, mr_show(name).text,
                       what);
    return mr_fail(err, MR_ERR_FORMAT, "%s: tensor %s is not part of a %s model with %d layers",
                   path, mr_show(name).text, c->config.arch->title, c->config.n_layer);
}

static int add_head(struct mr_checkpoint *c, const struct mr_tensor *t, int i, const char *path,
                    struct mr_error *err)
{
    if (c->heads[i])
        return mr_fail(err, MR_ERR_FORMAT, "%s: tensor %s occurs twice in this checkpoint", path,
                       mr_show(t->name).text);
    c->heads[i] = t;
    return check_tensor(mr_head_rows(&c->config, i), mr_head_cols(&c->config, i), t, path, err);
}

// Files every tensor of an open file under its slot.
static int add_tensors(void *checkpoint, const struct mr_weights *file, const char *path,
                       struct mr_error *err)
{
    struct mr_checkpoint *c = checkpoint;
    for (size_t i = 0; i < file->tensors.count; i++) {
        const struct mr_tensor *t = &file->tensors.at[i];
        char name[MR_NAME];
        int slot = slot_of(c, mr_name_today(c->config.arch, t->name, name));
        if (slot == SLOT_BUFFER)
            continue;
        if (slot == SLOT_HEAD) {
            int rc = add_head(c, t, mr_head_find(c->config.arch, name), path, err);
            if (rc)
                return rc;
            continue;
        }
        if (slot < 0 && slot != SLOT_COPY)
            return refuse_unknown(c, t->name, path, err);
        const struct mr_tensor **place = slot == SLOT_COPY ? &c->copy : &c->tensors[slot];
        if (*place)
            return mr_fail(err, MR_ERR_FORMAT, "%s: tensor %s occurs twice in this checkpoint",
                           path, mr_show(t->name).text);
        size_t like = slot == SLOT_COPY ? 0 : (size_t)slot; // the first is the table of tokens
        struct mr_tensor_spec spec = mr_tensor_spec(&c->config, like);
        struct mr_file_tensor whole = mr_file_tensor(&spec);
        int rc = check_tensor(whole.rows, whole.cols, t, path, err);
        if (rc)
            return rc;
        for (int k = 0; k < whole.shares; k++)
            place[(size_t)k * whole.step] = t;
    }
    return 0;
}

static bool needs_view(const struct mr_item *item, enum mr_part part)
{
    return (part == MR_WEIGHT && item->transposed) || item->shares > 1;
}

// Of the tensors, all of which are there: the list of those in the files, and the views.
static int view_tensors(struct mr_checkpoint *c, const char *dir, struct mr_error *err)
{
    c->stored = calloc(c->n_tensors, sizeof(struct mr_tensor *));
    c->views = calloc(c->n_tensors, sizeof *c->views);
    if (!c->stored || !c->views)
        return mr_fail(err, MR_ERR_MEMORY, "%s: out of memory for %zu tensors", dir, c->n_tensors);
    for (size_t i = 0; i < c->n_tensors; i++) {
        struct mr_tensor_spec t = mr_tensor_spec(&c->config, i);
        if (t.item->share == 0)
            c->stored[c->n_stored++] = c->tensors[i];
        c->views[i] = *c->tensors[i];
        if (t.part == MR_WEIGHT && t.item->transposed)
            mr_tensor_turn(&c->views[i]);
        if (t.item->shares > 1)
            mr_tensor_cut(&c->views[i], t.item->share, t.item->shares);
    }
    return 0;
}

// A second copy of the tied matrix says the same as the table, or the model is another one.
static int check_copy(const struct mr_checkpoint *c, const char *dir, struct mr_error *err)
{
    const struct mr_tensor *a = c->tensors[0], *b = c->copy;
    return b ? mr_tensors_equal(a, b, dir, err) : 0;
}

// ---- with an adapter ---------------------------------------------------------------------------

static int add_adapter(struct mr_checkpoint *c, const char *dir, struct mr_error *err)
{
    struct mr_lora lora;
    int rc = mr_peft_read(&lora, &c->config, dir, err);
    if (rc < 0)
        return rc;
    c->adapted = calloc(lora.count, sizeof *c->adapted);
    if (!c->adapted)
        rc = mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", dir);
    for (size_t k = 0; k < lora.count && rc == 0; k++) {
        const struct mr_lora_pair *p = &lora.pair[k];
        bool transposed = mr_tensor_spec(&c->config, p->tensor).item->transposed;
        rc = mr_lora_merge(&c->adapted[k], c->tensors[p->tensor], &lora, p, transposed, err);
        c->n_adapted += rc == 0;
        for (int share = 0; share < p->shares && rc == 0; share++)
            c->tensors[p->tensor + (size_t)share * p->step] = &c->adapted[k];
    }
    mr_lora_free(&lora);
    return rc;
}

static int open_checkpoint(struct mr_checkpoint *c, const char *dir, enum mr_wanted wanted,
                           struct mr_error *err)
{
    char *path = mr_path_join(dir, "config.json", err);
    if (!path)
        return MR_ERR_MEMORY;
    // Without config.json it may be something else that is worth naming.
    int rc = mr_file_exists(path) ? 0 : mr_refuse_foreign_directory(dir, err);
    if (!rc && !mr_file_exists(path))
        rc = mr_fail(err, MR_ERR_IO, "%s: %s; give the directory of a Hugging Face checkpoint", dir,
                     access(dir, F_OK) < 0 ? "there is no such directory" : "has no config.json");
    if (!rc)
        rc = mr_config_load(&c->config, path, wanted, err);
    free(path);
    if (rc)
        return rc;
    c->n_tensors = mr_tensor_specs(&c->config);
    c->tensors = calloc(c->n_tensors, sizeof(struct mr_tensor *));
    c->heads = calloc((size_t)c->config.arch->n_heads + 1, sizeof(struct mr_tensor *));
    if (!c->tensors || !c->heads)
        return mr_fail(err, MR_ERR_MEMORY, "%s: out of memory for %zu tensors", dir, c->n_tensors);
    rc = mr_weight_files_open(&c->files, dir, add_tensors, c, err);
    for (size_t i = 0; i < c->n_tensors && !rc; i++) {
        if (!c->tensors[i])
            rc = mr_fail(err, MR_ERR_FORMAT, "%s: tensor %s is missing", dir, slot_name(c, i).text);
    }
    if (!rc)
        rc = check_copy(c, dir, err);
    if (!rc && c->config.arch->encoder)
        rc = mr_heads_complete(&c->config, c->heads, c->tensors[0], dir, err);
    return rc;
}

int mr_checkpoint_open(struct mr_checkpoint **checkpoint, const char *dir, enum mr_wanted wanted,
                       const char *adapter, struct mr_error *err)
{
    *checkpoint = NULL;
    struct mr_checkpoint *c = calloc(1, sizeof *c);
    if (!c)
        return mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", dir);
    int rc = open_checkpoint(c, dir, adapter ? MR_DECODER : wanted, err);
    if (rc == MR_ERR_FORMAT || rc == MR_ERR_IO || rc == MR_ERR_UNSUPPORTED)
        (void)mr_advise(err, "fetch the files again, or save the model anew with transformers");
    if (!rc && adapter)
        rc = add_adapter(c, adapter, err);
    if (!rc)
        rc = view_tensors(c, dir, err);
    if (rc) {
        mr_checkpoint_close(c);
        return rc;
    }
    *checkpoint = c;
    return 0;
}

const struct mr_tensor *mr_checkpoint_head(const struct mr_checkpoint *checkpoint, int i)
{
    return checkpoint->heads[i];
}

void mr_checkpoint_close(struct mr_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    mr_weight_files_close(&checkpoint->files);
    for (size_t i = 0; i < checkpoint->n_adapted; i++)
        mr_lora_merged_free(&checkpoint->adapted[i]);
    free(checkpoint->adapted);
    free(checkpoint->tensors);
    free(checkpoint->heads);
    free(checkpoint->stored);
    free(checkpoint->views);
    free(checkpoint);
}

const struct mr_config *mr_checkpoint_config(const struct mr_checkpoint *checkpoint)
{
    return &checkpoint->config;
}

const struct mr_tensor *mr_checkpoint_tensor(const struct mr_checkpoint *checkpoint,
                                             const char *name)
{
    int slot = slot_of(checkpoint, name);
    return slot >= 0 ? checkpoint->tensors[slot] : NULL;
}

const struct mr_tensor *mr_checkpoint_item(const struct mr_checkpoint *checkpoint, int layer,
                                           const struct mr_item *item, enum mr_part part)
{
    char name[MR_NAME];
    if (!mr_item_has(item, part))
        return NULL;
    int slot = slot_of(checkpoint, mr_tensor_name(&checkpoint->config, layer, item, part, name));
    if (slot == SLOT_HEAD)
        return checkpoint->heads[mr_head_find(checkpoint->config.arch, name)];
    if (slot < 0)
        return NULL;
    // The name is that of the first share.
    struct mr_tensor_spec first = mr_tensor_spec(&checkpoint->config, (size_t)slot);
    slot += item->share * (int)mr_file_tensor(&first).step;
    return needs_view(item, part) ? &checkpoint->views[slot] : checkpoint->tensors[slot];
}

size_t mr_checkpoint_count(const struct mr_checkpoint *checkpoint)
{
    return checkpoint->n_stored;
}

const struct mr_tensor *mr_checkpoint_at(const struct mr_checkpoint *checkpoint, size_t index)
{
    return checkpoint->stored[index];
}

enum mr_checkpoint_kind mr_checkpoint_kind(const struct mr_checkpoint *checkpoint)
{
    return checkpoint->files.torch ? MR_CHECKPOINT_TORCH : MR_CHECKPOINT_SAFETENSORS;
}

size_t mr_checkpoint_files(const struct mr_checkpoint *checkpoint)
{
    return checkpoint->files.count;
}

size_t mr_checkpoint_bytes(const struct mr_checkpoint *checkpoint, enum mr_dtype dtype)
{
    size_t bytes = 0;
    for (size_t i = 0; i < checkpoint->n_stored; i++)
        if (checkpoint->stored[i]->dtype == dtype)
            bytes += checkpoint->stored[i]->bytes;
    return bytes;
}
