// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/weight_files.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoint/foreign.h"
#include "common/file.h"
#include "common/json.h"
#include "common/str.h"

#define MAX_SHARDS 4096

static int add_file(struct mr_weight_files *w, const char *path, struct mr_error *err)
{
    struct mr_weights *file = &w->files[w->count]; // has room: the callers allocate it
    int rc = mr_weights_open(file, w->torch, path, err);
    if (rc)
        return rc;
    w->count++;
    return w->add(w->arg, file, path, err);
}

static int allocate_files(struct mr_weight_files *w, size_t count, struct mr_error *err)
{
    w->files = calloc(count ? count : 1, sizeof *w->files);
    if (!w->files)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory for %zu files", count);
    return 0;
}

// A shard is a file in the checkpoint's own directory: anything that could lead elsewhere is
// refused, since an index from the network must not choose which files we read.
static bool is_plain_name(const char *name)
{
    return name[0] != '\0' && !strchr(name, '/') && !strchr(name, '\\') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

// The shard that the index gives for a tensor is the shard that has it.
static int check_weight_map(const struct mr_weight_files *w, json_t *map, json_t *shards,
                            const char *path, struct mr_error *err)
{
    const char *name;
    json_t *shard;
    size_t listed = 0;
    json_object_foreach(map, name, shard)
    {
        json_int_t number = json_integer_value(json_object_get(shards, json_string_value(shard)));
        if (!mr_tensors_find(&w->files[number].tensors, name))
            return mr_fail(err, MR_ERR_FORMAT, "%s: lists tensor %s in %s, which does not have it",
                           path, mr_show(name).text, mr_show(json_string_value(shard)).text);
        listed++;
    }
    size_t present = 0;
    for (size_t i = 0; i < w->count; i++)
        present += w->files[i].tensors.count;
    if (present != listed)
        return mr_fail(err, MR_ERR_FORMAT, "%s: lists %zu tensors, but its files have %zu", path,
                       listed, present);
    return 0;
}

// Collects the distinct shard names of the index into `shards`: name -> number.
static int collect_shards(json_t *map, json_t *shards, const char *path, struct mr_error *err)
{
    const char *name;
    json_t *shard;
    json_object_foreach(map, name, shard)
    {
        if (!json_is_string(shard))
            return mr_fail(err, MR_ERR_FORMAT,
                           "%s: the file of tensor %s is %s where a string is "
                           "expected",
                           path, mr_show(name).text, mr_json_kind(shard));
        const char *file = json_string_value(shard);
        if (!is_plain_name(file))
            return mr_fail(err, MR_ERR_FORMAT,
                           "%s: \"%s\" (tensor %s) is not the name of a file "
                           "in the checkpoint's directory",
                           path, mr_show(file).text, mr_show(name).text);
        if (json_object_get(shards, file))
            continue;
        size_t number = json_object_size(shards);
        if (number == MAX_SHARDS)
            return mr_fail(err, MR_ERR_FORMAT, "%s: names more than %d files", path, MAX_SHARDS);
        if (json_object_set_new(shards, file, json_integer((json_int_t)number)) != 0)
            return mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", path);
    }
    return 0;
}

static int open_shards(struct mr_weight_files *w, const char *dir, json_t *map, json_t *shards,
                       const char *path, struct mr_error *err)
{
    int rc = collect_shards(map, shards, path, err);
    if (!rc)
        rc = allocate_files(w, json_object_size(shards), err);
    if (rc)
        return rc;
    const char *name;
    json_t *number;
    // In order of first mention, so that file i is the shard of number i.
    json_object_foreach(shards, name, number)
    {
        char *shard = mr_path_join(dir, name, err);
        rc = shard ? add_file(w, shard, err) : MR_ERR_MEMORY;
        free(shard);
        if (rc)
            return rc;
    }
    return check_weight_map(w, map, shards, path, err);
}

static int open_index(struct mr_weight_files *w, const char *dir, const char *path,
                      struct mr_error *err)
{
    json_t *index;
    int rc = mr_json_load(&index, path, err);
    if (rc)
        return rc;
    json_t *map = json_object_get(index, "weight_map");
    json_t *shards = json_object();
    if (!shards)
        rc = mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", path);
    else if (!json_is_object(map))
        rc = mr_fail(err, MR_ERR_FORMAT, "%s: \"weight_map\" is %s where an object is expected",
                     path, mr_json_kind(map));
    else
        rc = open_shards(w, dir, map, shards, path, err);
    json_decref(shards);
    json_decref(index);
    return rc;
}

// True when dir/name exists; *path is the joined path, which the caller frees.
static int look_for(const char *dir, const char *name, char **path, bool *found,
                    struct mr_error *err)
{
    free(*path);
    *path = mr_path_join(dir, name, err);
    *found = *path && mr_file_exists(*path);
    return *path ? 0 : MR_ERR_MEMORY;
}

// What host/store makes has these names. 1: it is one, 0, or a failure.
static int is_state(const char *dir, struct mr_error *err)
{
    int has = mr_directory_has(dir, "header", err);
    return has > 0 ? mr_directory_has(dir, "state", err) : has;
}

// In the order in which transformers looks for them.
static const struct {
    const char *name;
    bool torch, index;
} known[] = {
    {"model.safetensors", false, false},
    {"model.safetensors.index.json", false, true},
    {"pytorch_model.bin", true, false},
    {"pytorch_model.bin.index.json", true, true},
};

int mr_weight_files_open(struct mr_weight_files *w, const char *dir, mr_weight_file_seen *add,
                         void *arg, struct mr_error *err)
{
    *w = (struct mr_weight_files){.add = add, .arg = arg};
    char *path = NULL;
    bool found = false;
    int rc = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known && !rc && !found; i++) {
        rc = look_for(dir, known[i].name, &path, &found, err);
        if (rc || !found)
            continue;
        w->torch = known[i].torch;
        if (known[i].index) {
            rc = open_index(w, dir, path, err);
        } else {
            rc = allocate_files(w, 1, err);
            if (!rc)
                rc = add_file(w, path, err);
        }
    }
    free(path);
    if (!rc && !found)
        rc = mr_refuse_foreign_directory(dir, err);
    const int state = rc == 0 && !found ? is_state(dir, err) : 0;
    if (state < 0)
        rc = state;
    else if (state > 0)
        rc = mr_fail(err, MR_ERR_FORMAT,
                     "%s: is a training's state and no model; 'millrace export %s DIR' writes the "
                     "model of it",
                     dir, dir);
    else if (!rc && !found)
        rc = mr_fail(err, MR_ERR_IO,
                     "%s: has neither model.safetensors nor pytorch_model.bin, nor an index of "
                     "shards (model.safetensors.index.json, pytorch_model.bin.index.json)",
                     dir);
    return rc;
}

void mr_weight_files_close(struct mr_weight_files *w)
{
    for (size_t i = 0; i < w->count; i++)
        mr_weights_close(&w->files[i]);
    free(w->files);
}
