// SPDX-License-Identifier: Apache-2.0
// Training data of other software. HDF5's library is not ours to test, so the input is not a file
// but what is in one: type, shape and values of `data`, and what n_examples says.
#include "data/examples.h"

#include <hdf5/serial/hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

enum { MOST = 4096 }; // values

struct shape {
    hid_t type;
    int rank;
    hsize_t size[4];
    int said; // 0: there is no n_examples
    int vocab;
};

static void make(const char *path, const struct shape *s, const int64_t *values)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(s->rank, s->size, NULL), one = H5Screate(H5S_SCALAR);
    hid_t data = H5Dcreate2(file, "data", s->type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    fuzz_check(data >= 0 &&
                   H5Dwrite(data, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0,
               "a dataset");
    if (s->said) {
        int64_t n = s->said - 1;
        hid_t a = H5Acreate2(file, "n_examples", H5T_STD_I64LE, one, H5P_DEFAULT, H5P_DEFAULT);
        fuzz_check(H5Awrite(a, H5T_NATIVE_INT64, &n) >= 0 && H5Aclose(a) >= 0, "an attribute");
    }
    (void)H5Dclose(data);
    (void)H5Sclose(space);
    (void)H5Sclose(one);
    fuzz_check(H5Fclose(file) >= 0, "a file");
}

static void check_examples(struct mr_examples *e, int vocab)
{
    int32_t *tokens = malloc(sizeof *tokens * (size_t)e->length),
            *targets = malloc(sizeof *targets * (size_t)e->length);
    struct mr_error err = {0};
    fuzz_check(tokens && targets && e->count > 0 && e->length > 0, "examples");
    for (size_t i = 0; i < e->count; i++) {
        int learnt = 0;
        fuzz_check(e->list[i].count > 0 && e->list[i].count <= e->length, "tokens of an example");
        fuzz_check(mr_examples_read(e, i, tokens, targets, &err) == 0, "an example");
        for (int k = 0; k < e->list[i].count; k++) {
            fuzz_check(tokens[k] >= 0 && tokens[k] < vocab, "ids");
            fuzz_check(targets[k] >= -1 && targets[k] < vocab, "targets");
            learnt += targets[k] >= 0;
        }
        fuzz_check(learnt > 0, "what is learnt");
    }
    free(tokens);
    free(targets);
}

// Ten bytes of shape, then values of two bytes each, the last one again and again.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int64_t values[MOST];
    if (size < 10)
        return 0;
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const hid_t types[] = {H5T_STD_I32LE, H5T_STD_I64BE, H5T_STD_U8LE, H5T_IEEE_F32LE};
    struct shape s = {.type = types[data[0] % 4],
                      .rank = 1 + data[1] % 4,
                      .size = {data[2] % 8, data[3] % 8, data[4] % 8, data[5] % 8},
                      .said = data[6] % 10,
                      .vocab = 1 + data[7]};
    size_t at = 10;
    for (int i = 0; i < MOST; i++) {
        int16_t v = 0;
        if (at + 2 <= size) {
            memcpy(&v, data + at, 2);
            at += 2;
            values[i] = v;
        } else {
            values[i] = i ? values[i - 1] : 0;
        }
    }
    struct mr_examples e;
    struct mr_error err = {0};
    char path[] = "/tmp/fuzz-examples-XXXXXX"; // HDF5 opens none that has no place
    int fd = mkstemp(path);
    fuzz_check(fd >= 0, "mkstemp()");
    make(path, &s, values);
    int rc = mr_examples_open_all(&e, (const char *const[]){path}, 1, s.vocab, &err);
    fuzz_check(unlink(path) == 0 && close(fd) == 0, "unlink()");
    fuzz_check_outcome(rc, &err);
    fuzz_check(rc == 0 || !strstr(err.text, "is no HDF5 file"), "HDF5 reads what it has written");
    if (rc == 0)
        check_examples(&e, s.vocab);
    mr_examples_close(&e);
    return 0;
}
