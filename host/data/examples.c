// SPDX-License-Identifier: Apache-2.0
#include "data/examples.h"

#include <dirent.h>
#include <errno.h>
#include <hdf5/serial/hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "common/file.h"
#include "common/grow.h"
#include "common/str.h"
#include "data/labels.h"
#include "device/device.h"
#include "pack/hash.h"

enum { BLOCK = 1 << 18 }; // numbers that are read at a time
#define AS_IT_IS "give a file as millrace data or Cerebras' Model Zoo writes it"

static bool is_named_so(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".h5") == 0 || strcasecmp(dot, ".hdf5") == 0);
}

// "MILLRDAT" alone: the rest may be damaged.
static bool has_front(const char *path)
{
    char first[8] = "";
    FILE *f = fopen(path, "rb");
    bool has = f && fread(first, 1, sizeof first, f) == sizeof first &&
               memcmp(first, "MILLRDAT", sizeof first) == 0;
    if (f)
        (void)fclose(f); // only read
    return has;
}

bool mr_examples_is(const char *path)
{
    struct stat st;
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return stat(path, &st) == 0 &&
           (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && (is_named_so(path) || has_front(path) ||
                                                            H5Fis_hdf5(path) > 0)));
}

// ---- what stands in front -----------------------------------------------------------------------

static int check_front(const struct mr_file *file, const char *path, struct mr_error *err)
{
    struct mr_examples_front f;
    bool named = file->size >= 8 && memcmp(file->data, "MILLRDAT", 8) == 0,
         whole = file->size >= sizeof f;
    if (whole)
        memcpy(&f, file->data, sizeof f);
    // Its first bytes may be the ones that are damaged.
    if (!named && !(whole && ((f.version == MR_EXAMPLES_VERSION && f.bytes == sizeof f) ||
                              f.size == file->size)))
        return 0; // from somebody else
    const char *what = !whole ? "it is not as long as it was"
                       : f.check != XXH3_64bits(&f, offsetof(struct mr_examples_front, check))
                           ? "the checksum of its beginning is wrong"
                       : f.version != MR_EXAMPLES_VERSION ? "it is of another version"
                       : f.size != file->size             ? "it is not as long as it was"
                       : f.hash != XXH3_64bits(file->data + sizeof f, file->size - sizeof f)
                           ? "its checksum is wrong"
                           : NULL;
    return what
               ? mr_fail(err, MR_ERR_FORMAT, "%s: %s; make it again with millrace data", path, what)
               : 0;
}

// ---- HDF5 ---------------------------------------------------------------------------------------

static int wrong(const struct mr_examples_file *f, struct mr_error *err, const char *what)
{
    return mr_fail(err, MR_ERR_FORMAT, "%s: %s; " AS_IT_IS, f->path, what);
}

static bool is_whole_number(hid_t type)
{
    bool is = H5Tget_class(type) == H5T_INTEGER;
    (void)H5Tclose(type);
    return is;
}

// A whole number that the file has as an attribute. 1: there is one, 0: none.
static int get_number(hid_t file, const char *name, uint64_t *value)
{
    if (H5Aexists(file, name) <= 0)
        return 0;
    hid_t a = H5Aopen(file, name, H5P_DEFAULT), space = H5Aget_space(a);
    bool ok = H5Sget_simple_extent_npoints(space) == 1 && is_whole_number(H5Aget_type(a)) &&
              H5Aread(a, H5T_NATIVE_UINT64, value) >= 0;
    (void)H5Sclose(space);
    (void)H5Aclose(a);
    return ok ? 1 : -1;
}

enum { DEFLATE_MOST = 1032 }; // bytes that zlib makes of one, at most

// Rows that the file's bytes cannot hold would be read for hours: HDF5 makes them up.
static int check_room(const struct mr_examples_file *f, uint64_t rows, int length,
                      struct mr_error *err)
{
    hid_t type = H5Dget_type(f->data);
    double bytes = (double)rows * 3 * length * (double)H5Tget_size(type),
           stored = (double)H5Dget_storage_size(f->data);
    (void)H5Tclose(type);
    return bytes <= stored * DEFLATE_MOST
               ? 0
               : mr_fail(
                     err, MR_ERR_FORMAT,
                     "%s: claims %llu rows, which its %.0f bytes of data cannot hold; " AS_IT_IS,
                     f->path, (unsigned long long)rows, stored);
}

// The shape of `data`: rows, and the length of one.
static int get_shape(struct mr_examples_file *f, uint64_t *rows, int *length, struct mr_error *err)
{
    hsize_t size[3] = {0};
    uint64_t said = 0;
    f->data =
        H5Lexists(f->file, "data", H5P_DEFAULT) > 0 ? H5Dopen2(f->file, "data", H5P_DEFAULT) : -1;
    if (f->data < 0)
        return wrong(f, err, "has no 'data'");
    hid_t space = H5Dget_space(f->data);
    int rank = H5Sget_simple_extent_ndims(space);
    if (rank == 3)
        (void)H5Sget_simple_extent_dims(space, size, NULL);
    (void)H5Sclose(space);
    if (!is_whole_number(H5Dget_type(f->data)))
        return wrong(f, err, "'data' has no whole numbers");
    if (rank != 3 || size[1] != 3)
        return wrong(f, err, "'data' is not of shape [n, 3, length]: ids, mask and targets");
    if (size[2] < 1 || size[2] > MR_EXAMPLES_LONGEST || size[0] < 1)
        return wrong(f, err, "'data' has no rows, or none of 1 to 1048576 tokens");
    if (get_number(f->file, "n_examples", &said) != 0 && said != size[0])
        return wrong(f, err, "n_examples is not the number of rows");
    *rows = size[0];
    *length = (int)size[2];
    return check_room(f, *rows, *length, err);
}

// Why rows cannot be read: a compression that the library lacks, or bytes that are wrong.
static int unreadable(const struct mr_examples_file *f, struct mr_error *err)
{
    hid_t how = H5Dget_create_plist(f->data);
    char name[32] = "";
    int filters = H5Pget_nfilters(how);
    unsigned flags, config;
    H5Z_filter_t missing = H5Z_FILTER_NONE;
    for (int i = 0; i < filters && missing == H5Z_FILTER_NONE; i++) {
        size_t none = 0;
        H5Z_filter_t id =
            H5Pget_filter2(how, (unsigned)i, &flags, &none, NULL, sizeof name, name, &config);
        missing = H5Zfilter_avail(id) <= 0 ? id : missing;
    }
    (void)H5Pclose(how);
    if (missing == H5Z_FILTER_NONE)
        return wrong(f, err, "rows cannot be read: it is damaged or cut off");
    name[sizeof name - 1] = 0;
    return mr_fail(err, MR_ERR_UNSUPPORTED,
                   "%s: is compressed by a filter that is not here: %s (%d); write it with gzip",
                   f->path, *name ? mr_show(name).text : "it has no name", (int)missing);
}

static int read_rows(const struct mr_examples *e, int file, uint64_t first, uint64_t count,
                     int32_t *to, struct mr_error *err)
{
    const struct mr_examples_file *f = &e->files[file];
    const hsize_t from[3] = {first, 0, 0}, size[3] = {count, 3, (hsize_t)e->length};
    hid_t memory = H5Screate_simple(3, size, NULL), space = H5Dget_space(f->data);
    bool ok = H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, size, NULL) >= 0 &&
              H5Dread(f->data, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, to) >= 0;
    (void)H5Sclose(memory);
    (void)H5Sclose(space);
    return ok ? 0 : unreadable(f, err);
}

// ---- rows ---------------------------------------------------------------------------------------

static int keep(struct mr_examples *e, uint64_t row, int count, int32_t label, struct mr_error *err)
{
    int rc = mr_grow(&e->list, e->count, 1, sizeof *e->list, err);
    if (rc < 0)
        return rc;
    e->list[e->count++] = (struct mr_example){row, e->n_files - 1, count, label};
    e->tokens += (uint64_t)count;
    return 0;
}

// Behind the last target, or the text, nothing changes what is learnt.
static int tokens_of(const int32_t *mask, int length)
{
    while (length > 0 && mask[length - 1] == 0)
        length--;
    return length;
}

// Number i of a row as it stands in the file, where 32 bits have cut it off.
static long long exact(const struct mr_examples_file *f, uint64_t row, int part, int i)
{
    const hsize_t from[3] = {row, (hsize_t)part, (hsize_t)i}, one[3] = {1, 1, 1};
    long long value = -1;
    hid_t memory = H5Screate_simple(3, one, NULL), space = H5Dget_space(f->data);
    if (H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, one, NULL) >= 0)
        (void)H5Dread(f->data, H5T_NATIVE_LLONG, memory, space, H5P_DEFAULT, &value); // was read
    (void)H5Sclose(memory);
    (void)H5Sclose(space);
    return value;
}

// A row as it stands in the file: all that is used of it is in range.
static int check_row(const struct mr_examples *e, uint64_t number, const int32_t *row, int count,
                     int vocab, struct mr_error *err)
{
    const char *path = e->files[e->n_files - 1].path;
    const int32_t *mask = row + e->length, *targets = mask + e->length;
    for (int i = 0; i < count; i++) {
        bool learnt = mask[i] == 1;
        if (!learnt && mask[i] != 0)
            return mr_fail(err, MR_ERR_FORMAT,
                           "%s: row %llu: the mask is %d at %d, neither 0 nor 1", path,
                           (unsigned long long)number, mask[i], i);
        bool id = row[i] < 0 || row[i] >= vocab;
        if (id || (learnt && (targets[i] < 0 || targets[i] >= vocab)))
            return mr_fail(err, MR_ERR_FIT,
                           "%s: row %llu: token %lld is not one of the model's %d; the data was "
                           "made for another tokenizer",
                           path, (unsigned long long)number,
                           exact(&e->files[e->n_files - 1], number, id ? 0 : 2, i), vocab);
    }
    return 0;
}

// The same of a text, whose types stand in the place of targets.
static int check_text(const struct mr_examples *e, uint64_t number, const int32_t *row, int count,
                      int vocab, struct mr_error *err)
{
    const int32_t *mask = row + e->length, *types = mask + e->length;
    for (int i = 0; i < count; i++) {
        bool id = row[i] >= 0 && row[i] < vocab, type = types[i] >= 0 && types[i] < e->types;
        if (mask[i] != 1 || !type || !id)
            return mr_fail(err, MR_ERR_FORMAT,
                           "%s: row %llu: token %d has mask %d, type %d and id %d; this model "
                           "wants 1, a type below %d and an id below %d",
                           e->files[e->n_files - 1].path, (unsigned long long)number, i, mask[i],
                           types[i], row[i], e->types, vocab);
    }
    return 0;
}

// label -1: a window.
static int look_at(struct mr_examples *e, uint64_t number, int32_t *row, int32_t label, int vocab,
                   struct mr_error *err)
{
    int count = tokens_of(row + e->length, e->length);
    int rc = label < 0 ? check_row(e, number, row, count, vocab, err)
                       : check_text(e, number, row, count, vocab, err);
    if (rc < 0 || count == 0)
        return rc;
    for (int part = 0; part < 3; part++)
        e->hash = XXH3_64bits_withSeed(row + (ptrdiff_t)part * e->length,
                                       (size_t)count * sizeof *row, e->hash + (uint64_t)count);
    if (label >= 0)
        e->hash = XXH3_64bits_withSeed(&label, sizeof label, e->hash);
    for (int i = 0; i < count && label < 0; i++)
        e->targets += (uint64_t)row[e->length + i];
    e->targets += label >= 0;
    return keep(e, number, count, label, err);
}

// Those of the last file. labels NULL: windows.
static int look_over(struct mr_examples *e, uint64_t rows, const int32_t *labels, int vocab,
                     struct mr_error *err)
{
    size_t size = 3 * (size_t)e->length, block = BLOCK / size + 1;
    int32_t *many = malloc(block * size * sizeof *many);
    int rc = many ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for %zu rows", block);
    for (uint64_t first = 0; first < rows && rc == 0; first += block) {
        uint64_t n = rows - first < block ? rows - first : block;
        rc = mr_device_stop ? mr_fail(err, MR_ERR_INTERRUPTED, "interrupted")
                            : read_rows(e, e->n_files - 1, first, n, many, err);
        for (uint64_t i = 0; i < n && rc == 0; i++)
            rc =
                look_at(e, first + i, many + i * size, labels ? labels[first + i] : -1, vocab, err);
    }
    free(many);
    return rc;
}

// ---- files --------------------------------------------------------------------------------------

static bool same(const struct mr_labels *a, const struct mr_labels *b)
{
    return a->count == b->count &&
           memcmp(a->names, b->names, (size_t)a->count * sizeof *a->names) == 0;
}

// Labels of the last file, whose names are those of the others; NULL of windows.
static int take_labels(struct mr_examples *e, uint64_t rows, int32_t **labels, struct mr_error *err)
{
    struct mr_labels names;
    struct mr_examples_file *f = &e->files[e->n_files - 1];
    bool there = H5Lexists(f->file, "labels", H5P_DEFAULT) > 0;
    *labels = NULL;
    if (!there)
        return e->types ? wrong(f, err, "has no 'labels', which a classifier learns") : 0;
    if (e->types == 0)
        return mr_fail(err, MR_ERR_FIT,
                       "%s: has texts with labels, which an encoder's classifier learns; make "
                       "windows with millrace data and this model",
                       f->path);
    int rc = mr_examples_labels(f->file, f->path, rows, &names, labels, err);
    if (rc < 0)
        return rc;
    if (e->n_files == 1) {
        e->labels = names;
        return 0;
    }
    if (!same(&names, &e->labels))
        rc = mr_fail(err, MR_ERR_FIT,
                     "%s: has other labels than %s; name them in one order with --labels of "
                     "millrace data",
                     f->path, e->files[0].path);
    mr_labels_free(&names);
    return rc;
}

// One more file, which is taken over; all have windows of one length, and one tokenizer if they
// name it.
static int take(struct mr_examples *e, int64_t file, const char *path, int vocab,
                struct mr_error *err)
{
    uint64_t rows = 0, vocabulary = 0;
    int32_t *labels;
    int length = 0;
    char *copy = strdup(path);
    if (!copy || mr_grow(&e->files, (size_t)e->n_files, 1, sizeof *e->files, NULL) < 0) {
        free(copy);
        (void)H5Fclose(file);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a file");
    }
    struct mr_examples_file *f = &e->files[e->n_files++];
    *f = (struct mr_examples_file){file, -1, copy};
    int rc = get_shape(f, &rows, &length, err);
    if (rc == 0 && get_number(file, "vocabulary", &vocabulary) < 0)
        rc = wrong(f, err, "'vocabulary' is no number");
    if (rc == 0 && e->n_files > 1 && (length != e->length || vocabulary != e->vocabulary))
        rc = mr_fail(err, MR_ERR_FIT, "%s: has other %s than %s; give one of them", path,
                     length != e->length ? "windows" : "tokens", e->files[0].path);
    if (rc < 0)
        return rc;
    e->length = length;
    e->vocabulary = vocabulary;
    rc = take_labels(e, rows, &labels, err);
    if (rc == 0)
        rc = look_over(e, rows, labels, vocab, err);
    free(labels);
    return rc;
}

static int open_file(struct mr_examples *e, const char *path, int vocab, struct mr_error *err)
{
    struct mr_file file = {0};
    int rc = mr_file_map(&file, path, err);
    if (rc == 0)
        rc = check_front(&file, path, err);
    mr_file_unmap(&file);
    if (rc < 0)
        return rc;
    hid_t id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    return id >= 0 ? take(e, id, path, vocab, err)
                   : mr_fail(err, MR_ERR_FORMAT, "%s: is no HDF5 file that can be read; " AS_IT_IS,
                             path);
}

static int is_h5(const struct dirent *d)
{
    size_t n = strlen(d->d_name);
    return n > 3 && *d->d_name != '.' && strcmp(d->d_name + n - 3, ".h5") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int open_directory(struct mr_examples *e, const char *dir, int vocab, struct mr_error *err)
{
    struct dirent **names;
    int n = scandir(dir, &names, is_h5, by_name), rc = 0;
    if (n < 0)
        return mr_fail(err, MR_ERR_IO, "%s: %s", dir, strerror(errno));
    if (n == 0 || n > MR_EXAMPLES_FILES)
        rc = mr_fail(
            err, MR_ERR_FORMAT,
            "%s: has %d .h5 files; 1 to %d can be taken; of texts, 'cat %s/*.txt |' and '-' in "
            "the place of the file make one",
            dir, n, MR_EXAMPLES_FILES, dir);
    for (int i = 0; i < n; i++) {
        char *path = rc == 0 ? mr_path_join(dir, names[i]->d_name, err) : NULL;
        if (rc == 0)
            rc = path ? open_file(e, path, vocab, err) : MR_ERR_MEMORY;
        free(path);
        free(names[i]);
    }
    free(names);
    return rc;
}

// What is there is something to learn.
static int finish(struct mr_examples *e, int rc, struct mr_error *err)
{
    if (rc == 0 && e->count == 0)
        rc = wrong(&e->files[0], err, "no row has a target that is learnt");
    if (rc == 0 && !(e->row = malloc(3 * (size_t)e->length * sizeof *e->row)))
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for a row");
    if (rc < 0)
        mr_examples_close(e);
    return rc;
}

int mr_examples_open_labelled(struct mr_examples *e, const char *const *paths, int count, int vocab,
                              int types, struct mr_error *err)
{
    int rc = 0;
    *e = (struct mr_examples){.types = types};
    (void)H5dont_atexit();
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    for (int i = 0; i < count && rc == 0; i++) {
        struct stat st;
        bool directory = stat(paths[i], &st) == 0 && S_ISDIR(st.st_mode);
        rc = directory ? open_directory(e, paths[i], vocab, err)
                       : open_file(e, paths[i], vocab, err);
        if (rc == 0 && e->n_files > MR_EXAMPLES_FILES)
            rc = mr_fail(err, MR_ERR_FORMAT, "%s: with it there are %d files; %d can be taken",
                         paths[i], e->n_files, MR_EXAMPLES_FILES);
    }
    return finish(e, rc, err);
}

int mr_examples_open_all(struct mr_examples *e, const char *const *paths, int count, int vocab,
                         struct mr_error *err)
{
    return mr_examples_open_labelled(e, paths, count, vocab, 0, err);
}

void mr_examples_close(struct mr_examples *e)
{
    for (int i = 0; i < e->n_files; i++) {
        if (e->files[i].data >= 0)
            (void)H5Dclose(e->files[i].data); // only read
        (void)H5Fclose(e->files[i].file);
        free(e->files[i].path);
    }
    free(e->files);
    free(e->list);
    free(e->row);
    mr_labels_free(&e->labels);
    *e = (struct mr_examples){0};
}

int mr_examples_read(struct mr_examples *e, size_t i, int32_t *tokens, int32_t *targets,
                     struct mr_error *err)
{
    const struct mr_example *x = &e->list[i];
    int rc = read_rows(e, x->file, x->row, 1, e->row, err);
    for (int k = 0; k < x->count && rc == 0; k++) {
        bool there = e->types > 0 || e->row[e->length + k];
        tokens[k] = e->row[k];
        targets[k] = there ? e->row[2 * e->length + k] : MR_NO_TARGET;
    }
    return rc;
}

uint64_t mr_encoder_vocabulary_hash(const struct mr_encoder *encoder, int vocab)
{
    uint64_t hash = 0;
    for (int32_t id = 0; id < vocab; id++) {
        size_t size;
        const char *text = mr_encoder_token(encoder, id, &size);
        if (text)
            hash = XXH3_64bits_withSeed(text, size, hash + (uint64_t)id + 1);
    }
    return hash;
}

uint64_t mr_vocabulary_hash(const struct mr_model *model, int vocab)
{
    uint64_t hash = 0;
    for (int32_t id = 0; id < vocab; id++) {
        struct mr_error unused;
        char *text;
        size_t size;
        if (mr_model_decode(model, &id, 1, &text, &size, &unused) < 0)
            continue; // a row that no token has
        hash = XXH3_64bits_withSeed(text, size, hash + (uint64_t)id + 1);
        free(text);
    }
    return hash;
}
