// SPDX-License-Identifier: Apache-2.0
#include "data/labels.h"

#include <hdf5/serial/hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "model/config.h"

static int wrong(const char *path, struct mr_error *err, const char *what)
{
    return mr_fail(err, MR_ERR_FORMAT, "%s: %s; make it with millrace data, of texts with labels",
                   path, what);
}

// The names in the file, each with its end and what is behind it 0.
static int read_names(hid_t file, const char *path, struct mr_labels *names, struct mr_error *err)
{
    if (H5Aexists(file, "label_names") <= 0)
        return wrong(path, err, "has no 'label_names'");
    hid_t a = H5Aopen(file, "label_names", H5P_DEFAULT), type = H5Aget_type(a),
          space = H5Aget_space(a);
    hssize_t n = H5Sget_simple_extent_npoints(space);
    bool ok = n >= 1 && n <= MR_MAX_LABELS && H5Tget_class(type) == H5T_STRING &&
              H5Tis_variable_str(type) == 0 && H5Tget_size(type) == MR_LABEL;
    char(*read)[MR_LABEL] = ok ? calloc((size_t)n, sizeof *read) : NULL;
    int rc = !ok     ? wrong(path, err, "'label_names' is no list of 1 to 4096 strings of 64 bytes")
             : !read ? mr_fail(err, MR_ERR_MEMORY, "no memory for labels")
             : H5Aread(a, type, read) < 0 ? wrong(path, err, "'label_names' cannot be read")
                                          : 0;
    for (hssize_t i = 0; i < n && rc == 0; i++) {
        rc = mr_labels_add(names, read[i], strnlen(read[i], MR_LABEL), err);
        rc = rc < 0 ? mr_fail_in(err, "%.300s", path) : 0;
    }
    names->closed = true;
    free(read);
    (void)H5Tclose(type);
    (void)H5Sclose(space);
    (void)H5Aclose(a);
    return rc;
}

static int read_numbers(hid_t file, const char *path, uint64_t rows, int count, int32_t *labels,
                        struct mr_error *err)
{
    hid_t data = H5Dopen2(file, "labels", H5P_DEFAULT);
    if (data < 0)
        return wrong(path, err, "'labels' cannot be read");
    hid_t type = H5Dget_type(data), space = H5Dget_space(data);
    bool ok = H5Tget_class(type) == H5T_INTEGER && H5Sget_simple_extent_ndims(space) == 1 &&
              (uint64_t)H5Sget_simple_extent_npoints(space) == rows;
    int rc = !ok ? wrong(path, err, "'labels' is not a whole number for each row")
             : H5Dread(data, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels) < 0
                 ? wrong(path, err, "'labels' cannot be read: it is damaged or cut off")
                 : 0;
    (void)H5Tclose(type);
    (void)H5Sclose(space);
    (void)H5Dclose(data); // only read
    for (uint64_t i = 0; i < rows && rc == 0; i++)
        if (labels[i] < 0 || labels[i] >= count)
            rc = mr_fail(err, MR_ERR_FORMAT, "%s: row %llu: label %d is none of its %d", path,
                         (unsigned long long)i, labels[i], count);
    return rc;
}

int mr_examples_labels(int64_t file, const char *path, uint64_t rows, struct mr_labels *names,
                       int32_t **labels, struct mr_error *err)
{
    *names = (struct mr_labels){0};
    *labels = NULL;
    int rc = read_names(file, path, names, err);
    if (rc == 0 && !(*labels = reallocarray(NULL, rows, sizeof **labels)))
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for labels");
    if (rc == 0)
        rc = read_numbers(file, path, rows, names->count, *labels, err);
    if (rc < 0) {
        mr_labels_free(names);
        free(*labels);
        *labels = NULL;
    }
    return rc;
}
