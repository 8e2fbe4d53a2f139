// SPDX-License-Identifier: Apache-2.0
#include "data/examples.h"

#include <hdf5/serial/hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "pack/hash.h"

enum { BLOCK = 1 << 18 }; // numbers that are read at a time
#define AS_IT_IS "give a file as millrace data or Cerebras' Model Zoo writes it"

bool mr_examples_is(const char *path)
{
    struct stat st;
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && H5Fis_hdf5(path) > 0;
}

// ---- what stands in front -----------------------------------------------------------------------

static int check_front(const struct mr_file *file, const char *path, struct mr_error *err)
{
    struct mr_examples_front f;
    if (file->size < sizeof f || memcmp(file->data, "MILLRDAT", 8) != 0)
        return 0; // from somebody else
    memcpy(&f, file->data, sizeof f);
    const char *what = f.check != XXH3_64bits(&f, offsetof(struct mr_examples_front, check))
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

static int wrong(const struct mr_examples *e, struct mr_error *err, const char *what)
{
    return mr_fail(err, MR_ERR_FORMAT, "%s: %s; " AS_IT_IS, e->path, what);
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
    bool ok = a >= 0 && H5Sget_simple_extent_npoints(space) == 1 &&
              is_whole_number(H5Aget_type(a)) && H5Aread(a, H5T_NATIVE_UINT64, value) >= 0;
    (void)H5Sclose(space);
    (void)H5Aclose(a);
    return ok ? 1 : -1;
}

// The shape of `data`; rows.
static int get_shape(struct mr_examples *e, uint64_t *rows, struct mr_error *err)
{
    hsize_t size[3] = {0};
    uint64_t said;
    e->data =
        H5Lexists(e->file, "data", H5P_DEFAULT) > 0 ? H5Dopen2(e->file, "data", H5P_DEFAULT) : -1;
    if (e->data < 0)
        return wrong(e, err, "has no 'data'");
    hid_t space = H5Dget_space(e->data);
    int rank = H5Sget_simple_extent_ndims(space);
    if (rank == 3)
        (void)H5Sget_simple_extent_dims(space, size, NULL);
    (void)H5Sclose(space);
    if (!is_whole_number(H5Dget_type(e->data)))
        return wrong(e, err, "'data' has no whole numbers");
    if (rank != 3 || size[1] != 3)
        return wrong(e, err, "'data' is not of shape [n, 3, length]: ids, mask and targets");
    if (size[2] < 1 || size[2] > MR_EXAMPLES_LONGEST || size[0] < 1)
        return wrong(e, err, "'data' has no rows, or none of 1 to 1048576 tokens");
    if (get_number(e->file, "n_examples", &said) != 0 && said != size[0])
        return wrong(e, err, "n_examples is not the number of rows");
    if (get_number(e->file, "vocabulary", &e->vocabulary) < 0)
        return wrong(e, err, "'vocabulary' is no number");
    *rows = size[0];
    e->length = (int)size[2];
    return 0;
}

static int read_rows(struct mr_examples *e, uint64_t first, uint64_t count, int32_t *to,
                     struct mr_error *err)
{
    const hsize_t from[3] = {first, 0, 0}, size[3] = {count, 3, (hsize_t)e->length};
    hid_t memory = H5Screate_simple(3, size, NULL), file = H5Dget_space(e->data);
    bool ok = memory >= 0 && file >= 0 &&
              H5Sselect_hyperslab(file, H5S_SELECT_SET, from, NULL, size, NULL) >= 0 &&
              H5Dread(e->data, H5T_NATIVE_INT32, memory, file, H5P_DEFAULT, to) >= 0;
    (void)H5Sclose(memory);
    (void)H5Sclose(file);
    return ok ? 0 : wrong(e, err, "rows cannot be read: it is damaged or cut off");
}

// ---- rows ---------------------------------------------------------------------------------------

static int keep(struct mr_examples *e, uint64_t row, int count, struct mr_error *err)
{
    if (e->count == e->capacity) {
        size_t capacity = e->capacity ? 2 * e->capacity : 1024;
        uint64_t *rows = realloc(e->rows, capacity * sizeof *rows);
        e->rows = rows ? rows : e->rows;
        int *counts = realloc(e->counts, capacity * sizeof *counts);
        e->counts = counts ? counts : e->counts;
        if (!rows || !counts)
            return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu rows", capacity);
        e->capacity = capacity;
    }
    e->rows[e->count] = row;
    e->counts[e->count++] = count;
    e->tokens += (uint64_t)count;
    return 0;
}

// Behind the last target nothing changes what is learnt.
static int tokens_of(const int32_t *mask, int length)
{
    while (length > 0 && mask[length - 1] == 0)
        length--;
    return length;
}

// A row as it stands in the file: all that is used of it is in range.
static int check_row(const struct mr_examples *e, uint64_t number, const int32_t *row, int count,
                     int vocab, struct mr_error *err)
{
    const int32_t *mask = row + e->length, *targets = mask + e->length;
    for (int i = 0; i < count; i++) {
        bool learnt = mask[i] == 1;
        if (!learnt && mask[i] != 0)
            return mr_fail(err, MR_ERR_FORMAT,
                           "%s: row %llu: the mask is %d at %d, neither 0 nor 1", e->path,
                           (unsigned long long)number, mask[i], i);
        if (row[i] < 0 || row[i] >= vocab || (learnt && (targets[i] < 0 || targets[i] >= vocab)))
            return mr_fail(err, MR_ERR_FIT,
                           "%s: row %llu: token %d is not one of the model's %d; the data was made "
                           "for another tokenizer",
                           e->path, (unsigned long long)number,
                           row[i] < 0 || row[i] >= vocab ? row[i] : targets[i], vocab);
    }
    return 0;
}

static int look_at(struct mr_examples *e, uint64_t number, int32_t *row, int vocab,
                   XXH3_state_t *hash, struct mr_error *err)
{
    int count = tokens_of(row + e->length, e->length);
    int rc = check_row(e, number, row, count, vocab, err);
    if (rc < 0 || count == 0)
        return rc;
    for (int part = 0; part < 3; part++)
        (void)XXH3_64bits_update(hash, row + (ptrdiff_t)part * e->length,
                                 (size_t)count * sizeof *row);
    (void)XXH3_64bits_update(hash, &count, sizeof count);
    return keep(e, number, count, err);
}

static int look_over(struct mr_examples *e, uint64_t rows, int vocab, struct mr_error *err)
{
    size_t size = 3 * (size_t)e->length, block = BLOCK / size + 1;
    int32_t *many = malloc(block * size * sizeof *many);
    XXH3_state_t *hash = XXH3_createState();
    e->row = malloc(size * sizeof *e->row);
    int rc = many && hash && e->row ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for rows");
    if (rc == 0)
        (void)XXH3_64bits_reset(hash);
    for (uint64_t first = 0; first < rows && rc == 0; first += block) {
        uint64_t n = rows - first < block ? rows - first : block;
        rc = read_rows(e, first, n, many, err);
        for (uint64_t i = 0; i < n && rc == 0; i++)
            rc = look_at(e, first + i, many + i * size, vocab, hash, err);
    }
    if (rc == 0 && e->count == 0)
        rc = wrong(e, err, "no row has a target that is learnt");
    if (rc == 0)
        e->hash = XXH3_64bits_digest(hash);
    (void)XXH3_freeState(hash);
    free(many);
    return rc;
}

// ---- all together -------------------------------------------------------------------------------

int mr_examples_from(struct mr_examples *e, int64_t file, const char *path, int vocab,
                     struct mr_error *err)
{
    uint64_t rows = 0;
    *e = (struct mr_examples){.file = file, .data = -1, .path = path};
    int rc = get_shape(e, &rows, err);
    if (rc == 0)
        rc = look_over(e, rows, vocab, err);
    if (rc < 0)
        mr_examples_close(e);
    return rc;
}

int mr_examples_open(struct mr_examples *e, const char *path, int vocab, struct mr_error *err)
{
    struct mr_file file = {0};
    *e = (struct mr_examples){.file = -1, .data = -1, .path = path};
    (void)H5dont_atexit();
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    int rc = mr_file_map(&file, path, err);
    if (rc == 0)
        rc = check_front(&file, path, err);
    mr_file_unmap(&file);
    if (rc < 0)
        return rc;
    hid_t id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    return id >= 0 ? mr_examples_from(e, id, path, vocab, err)
                   : wrong(e, err, "is no HDF5 file that can be read");
}

void mr_examples_close(struct mr_examples *e)
{
    if (!e->path)
        return;
    if (e->data >= 0)
        (void)H5Dclose(e->data); // only read
    if (e->file >= 0)
        (void)H5Fclose(e->file);
    free(e->rows);
    free(e->counts);
    free(e->row);
    *e = (struct mr_examples){.file = -1, .data = -1};
}

int mr_examples_read(struct mr_examples *e, size_t i, int32_t *tokens, int32_t *targets,
                     struct mr_error *err)
{
    int rc = read_rows(e, e->rows[i], 1, e->row, err);
    for (int k = 0; k < e->counts[i] && rc == 0; k++) {
        tokens[k] = e->row[k];
        targets[k] = e->row[e->length + k] ? e->row[2 * e->length + k] : MR_NO_TARGET;
    }
    return rc;
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
