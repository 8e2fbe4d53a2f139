// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <hdf5/serial/hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/grow.h"
#include "data/examples.h"
#include "device/device.h"
#include "model/config.h"
#include "pack/hash.h"

enum { CHUNK = 1 << 16, LEVEL = 4 }; // numbers of a chunk; how hard zlib tries

static int failed(const struct mr_examples_writer *w, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_IO,
                   "%s: cannot be written: %s; give another place, or see to room and permissions",
                   w->path, errno ? strerror(errno) : "HDF5 refuses");
}

// ---- what HDF5 makes ----------------------------------------------------------------------------

// An id that could not be made is refused by what is called with it.

// Room in front; no times, so that the same data is the same bytes.
static hid_t create_file(const char *name)
{
    hid_t how = H5Pcreate(H5P_FILE_CREATE), file = -1;
    if (H5Pset_userblock(how, MR_EXAMPLES_FRONT) >= 0)
        file = H5Fcreate(name, H5F_ACC_TRUNC, how, H5P_DEFAULT);
    (void)H5Pclose(how);
    return file;
}

static hid_t create_set(hid_t file, const char *name, int rank, const hsize_t *size,
                        const hsize_t *most, const hsize_t *chunk)
{
    hid_t how = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(rank, size, most), set = -1;
    bool ok = H5Pset_chunk(how, rank, chunk) >= 0;
    ok &= H5Pset_shuffle(how) >= 0;
    ok &= H5Pset_deflate(how, LEVEL) >= 0;
    ok &= H5Pset_fletcher32(how) >= 0;
    ok &= H5Pset_obj_track_times(how, false) >= 0;
    if (ok)
        set = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    (void)H5Pclose(how);
    (void)H5Sclose(space);
    return set;
}

static hid_t create_data(hid_t file, int length, int block)
{
    const hsize_t none[3] = {0, 3, (hsize_t)length}, most[3] = {H5S_UNLIMITED, 3, (hsize_t)length},
                  chunk[3] = {(hsize_t)block, 3, (hsize_t)length};
    return create_set(file, "data", 3, none, most, chunk);
}

static bool put_number(hid_t file, const char *name, hid_t type, uint64_t value)
{
    hid_t space = H5Screate(H5S_SCALAR),
          a = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool ok = H5Awrite(a, H5T_NATIVE_UINT64, &value) >= 0;
    ok &= H5Aclose(a) >= 0;
    ok &= H5Sclose(space) >= 0;
    return ok;
}

static bool write_rows(struct mr_examples_writer *w)
{
    const hsize_t from[3] = {w->count - (uint64_t)w->filled, 0, 0},
                  size[3] = {(hsize_t)w->filled, 3, (hsize_t)w->length},
                  all[3] = {w->count, 3, (hsize_t)w->length};
    if (w->filled == 0)
        return true;
    w->filled = 0;
    bool ok = H5Dset_extent(w->data, all) >= 0;
    hid_t memory = H5Screate_simple(3, size, NULL), file = H5Dget_space(w->data);
    ok &= H5Sselect_hyperslab(file, H5S_SELECT_SET, from, NULL, size, NULL) >= 0;
    ok &= H5Dwrite(w->data, H5T_NATIVE_INT32, memory, file, H5P_DEFAULT, w->rows) >= 0;
    (void)H5Sclose(memory);
    (void)H5Sclose(file);
    return ok;
}

// ---- the file -----------------------------------------------------------------------------------

static void release(struct mr_examples_writer *w)
{
    if (w->data >= 0)
        (void)H5Dclose(w->data); // not wanted
    if (w->file >= 0)
        (void)H5Fclose(w->file);
    w->data = w->file = -1;
    if (w->out.fd >= 0)
        mr_output_abandon(&w->out);
    free(w->rows);
    free(w->labels);
    w->rows = w->labels = NULL;
}

int mr_examples_create(struct mr_examples_writer *w, const char *path, int length,
                       struct mr_error *err)
{
    *w = (struct mr_examples_writer){.path = path, .file = -1, .data = -1, .length = length};
    w->out.fd = -1;
    w->block = CHUNK / (3 * length) + 1;
    w->rows = calloc((size_t)w->block * 3 * (size_t)length, sizeof *w->rows);
    if (!w->rows)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %d rows of %d tokens", w->block, length);
    int rc = mr_output_open_named(&w->out, path, err); // HDF5 wants a name
    if (rc == 0) {
        (void)H5dont_atexit(); // it would try to write again what could not be written
        (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
        errno = 0;
        w->file = create_file(w->out.temporary);
        w->data = create_data(w->file, length, w->block);
        rc = w->data >= 0 ? 0 : failed(w, err);
    }
    if (rc < 0)
        release(w);
    return rc;
}

// Counts the row that has been filled, and writes a whole block.
static int add(struct mr_examples_writer *w, struct mr_error *err)
{
    w->count++;
    errno = 0;
    return ++w->filled < w->block || write_rows(w) ? 0 : failed(w, err);
}

int mr_examples_add(struct mr_examples_writer *w, const int32_t *ids,
                    const struct mr_window *window, int32_t pad, struct mr_error *err)
{
    int length = w->length;
    int32_t *row = w->rows + (size_t)w->filled * 3 * (size_t)length;
    for (int i = 0; i < length; i++) {
        bool there = i < window->count;
        const int32_t *at = ids + window->at + i;
        row[i] = there ? at[0] : pad;
        row[length + i] = there && i >= window->skip;
        row[2 * length + i] = there ? at[1] : pad;
    }
    return add(w, err);
}

int mr_examples_add_text(struct mr_examples_writer *w, const int32_t *ids, const int32_t *types,
                         int count, int32_t pad, int32_t label, struct mr_error *err)
{
    int length = w->length;
    int32_t *row = w->rows + (size_t)w->filled * 3 * (size_t)length;
    int rc = mr_grow(&w->labels, w->count, 1, sizeof *w->labels, err);
    if (rc < 0)
        return rc;
    w->labels[w->count] = label;
    for (int i = 0; i < length; i++) {
        row[i] = i < count ? ids[i] : pad;
        row[length + i] = i < count;
        row[2 * length + i] = i < count ? types[i] : 0;
    }
    return add(w, err);
}

static bool put_names(hid_t file, const struct mr_labels *labels)
{
    const hsize_t count = (hsize_t)labels->count;
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &count, NULL);
    bool ok = H5Tset_size(type, MR_LABEL) >= 0;
    hid_t a = H5Acreate2(file, "label_names", type, space, H5P_DEFAULT, H5P_DEFAULT);
    ok &= H5Awrite(a, type, labels->names) >= 0;
    ok &= H5Aclose(a) >= 0;
    (void)H5Tclose(type);
    (void)H5Sclose(space);
    return ok;
}

// Numbers of labels, in the order that their names have now.
static bool write_labels(struct mr_examples_writer *w, struct mr_labels *labels)
{
    int32_t to[MR_MAX_LABELS];
    const hsize_t count = w->count, chunk = count < CHUNK ? count : CHUNK;
    if (!labels->closed) {
        mr_labels_sort(labels, to);
        for (uint64_t i = 0; i < w->count; i++)
            w->labels[i] = to[w->labels[i]];
    }
    hid_t d = create_set(w->file, "labels", 1, &count, NULL, &chunk);
    bool ok = H5Dwrite(d, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, w->labels) >= 0;
    ok &= H5Dclose(d) >= 0;
    ok &= put_names(w->file, labels);
    return ok;
}

// With the hash and the size of what stands behind it.
static int write_front(struct mr_examples_writer *w, struct mr_error *err)
{
    struct mr_file file;
    struct mr_examples_front f = {
        .magic = "MILLRDAT", .version = MR_EXAMPLES_VERSION, .bytes = MR_EXAMPLES_FRONT};
    int rc = mr_file_map(&file, w->out.temporary, err);
    if (rc < 0)
        return rc;
    f.size = file.size;
    f.hash = XXH3_64bits(file.data + sizeof f, file.size - sizeof f);
    mr_file_unmap(&file);
    f.check = XXH3_64bits(&f, offsetof(struct mr_examples_front, check));
    return mr_output_write(&w->out, 0, &f, sizeof f, err);
}

// All but the front.
static int finish(struct mr_examples_writer *w, const struct mr_examples_notes *notes,
                  struct mr_error *err)
{
    errno = 0;
    bool ok = write_rows(w);
    ok &= put_number(w->file, "n_examples", H5T_STD_I64LE, w->count);
    ok &= put_number(w->file, "vocabulary", H5T_STD_U64LE, notes->vocabulary);
    ok &= put_number(w->file, "vocab_size", H5T_STD_I64LE, (uint64_t)notes->vocab_size);
    ok &= put_number(w->file, "overlap", H5T_STD_I64LE, (uint64_t)notes->overlap);
    if (w->labels)
        ok &= write_labels(w, notes->labels);
    ok &= H5Dclose(w->data) >= 0;
    ok &= H5Fclose(w->file) >= 0;
    w->data = w->file = -1;
    return ok ? 0 : failed(w, err);
}

int mr_examples_end(struct mr_examples_writer *w, const struct mr_examples_notes *notes, int rc,
                    struct mr_error *err)
{
    if (rc == 0)
        rc = finish(w, notes, err);
    if (rc == 0)
        rc = write_front(w, err);
    if (rc == 0 && mr_device_stop) // the last moment to be told
        rc = mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
    if (rc == 0)
        rc = mr_output_commit(&w->out, err);
    release(w);
    return rc;
}
