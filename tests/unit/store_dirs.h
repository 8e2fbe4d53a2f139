// SPDX-License-Identifier: Apache-2.0
// Directories of states, for tests. Include <cmocka.h> and what it needs first.
#ifndef MILLRACE_TESTS_UNIT_STORE_DIRS_H
#define MILLRACE_TESTS_UNIT_STORE_DIRS_H

#include <dirent.h>

#include "store/store.h"
#include "unit/check.h"
#include "unit/files.h"
#include "unit/toy_model.h"

#define TRAIN_FIXTURES "tests/fixtures/train"

// A directory of plain files.
UNUSED static void remove_dir(const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        (void)unlinkat(dirfd(dir), e->d_name, 0);
    if (dir)
        (void)closedir(dir);
    assert_int_equal(rmdir(path), 0);
}

// What files_dir has in it.
UNUSED static int entries(void)
{
    int n = 0;
    DIR *dir = opendir(files_dir);
    while (dir && readdir(dir))
        n++;
    if (dir)
        (void)closedir(dir);
    return n;
}

UNUSED static void read_tensor(const struct mr_tensor *t, float *out)
{
    assert_int_equal(mr_tensor_read_f32(t, 0, t->count, out), 0);
}

#endif
