// SPDX-License-Identifier: Apache-2.0
// Files for tests: a temporary directory, and safetensors files written by hand. Include <cmocka.h>
// and what it needs first.
#ifndef MILLRACE_TESTS_UNIT_FILES_H
#define MILLRACE_TESTS_UNIT_FILES_H

#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"

#define UNUSED __attribute__((unused))

static char files_dir[256]; // valid between files_setup() and files_teardown()

UNUSED static int files_setup(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(files_dir, sizeof files_dir, "%s/millrace-test-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(files_dir) ? 0 : -1;
}

static int files_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

// All that is in there, also of a test that failed on its way.
UNUSED static int files_teardown(void **state)
{
    (void)state;
    return nftw(files_dir, files_remove, 8, FTW_DEPTH | FTW_PHYS);
}

// The path of a file in the temporary directory; good until the fourth call after this one.
UNUSED static const char *files_path(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", files_dir, name);
    return path;
}

UNUSED static const char *files_write(const char *name, const void *data, size_t size)
{
    const char *path = files_path(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    return path;
}

UNUSED static const char *files_write_text(const char *name, const char *text)
{
    return files_write(name, text, strlen(text));
}

// The whole file in new memory, with a NUL behind it.
UNUSED static char *files_read(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s cannot be opened; run the tests from the repository's root", path);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long length = ftell(f);
    assert_true(length >= 0);
    rewind(f);
    *size = (size_t)length;
    char *data = malloc(*size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *size, f), *size);
    data[*size] = '\0';
    (void)fclose(f);
    return data;
}

// A safetensors file: the header's length, the header, `data_size` bytes that count 0, 1, 2, ...
UNUSED static const char *files_write_safetensors(const char *name, const char *header,
                                                  size_t data_size)
{
    uint64_t length = strlen(header);
    size_t size = sizeof length + (size_t)length + data_size;
    unsigned char *file = malloc(size);
    assert_non_null(file);
    memcpy(file, &length, sizeof length);
    memcpy(file + sizeof length, header, (size_t)length);
    for (size_t i = 0; i < data_size; i++)
        file[sizeof length + (size_t)length + i] = (unsigned char)i;
    const char *path = files_write(name, file, size);
    free(file);
    return path;
}

// A refusal has the expected status, and its message is one printable line that has `words` in it.
UNUSED static void assert_refused(int rc, int status, const struct mr_error *err, const char *words)
{
    if (rc != status || err->status != status || !strstr(err->text, words))
        fail_msg("got %d \"%s\"; expected %d and \"%s\"", rc, err->text, status, words);
    for (const char *c = err->text; *c; c++)
        assert_false((unsigned char)*c < 0x20 || *c == 0x7f);
}

#endif
