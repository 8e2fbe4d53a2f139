// SPDX-License-Identifier: Apache-2.0
// Data sets of HDF5 of which the library has a checksum, and a byte of one that it does not fit.
#pragma once

#include <cmocka.h>
#include <hdf5/serial/hdf5.h>
#include <stdio.h>

// Adds one of int32 to a file, as a single chunk, and closes the file; where its bytes begin there.
static inline long write_checksummed(hid_t file, const char *name, int rank, const hsize_t *shape,
                                     const int32_t *values)
{
    hid_t how = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(rank, shape, NULL);
    assert_true(H5Pset_chunk(how, rank, shape) >= 0 && H5Pset_fletcher32(how) >= 0);
    hid_t data = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(H5Dwrite(data, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    haddr_t at;
    hsize_t size;
    assert_true(H5Dget_chunk_info(data, space, 0, NULL, NULL, &at, &size) >= 0 && size > 8);
    assert_true(H5Dclose(data) >= 0 && H5Sclose(space) >= 0 && H5Pclose(how) >= 0);
    assert_true(H5Fclose(file) >= 0);
    return (long)at;
}

static inline void damage(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    assert_true(f && fseek(f, at, SEEK_SET) == 0 && fputc(9, f) == 9 && fclose(f) == 0);
}
