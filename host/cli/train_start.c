// SPDX-License-Identifier: Apache-2.0
#include "cli/train_start.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/synthetic.h"
#include "common/error.h"
#include "common/file.h"
#include "config/read.h"

static const char prefix[] = "checkpoint-";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    (void)remove(path); // what stays is no harm
    return 0;
}

void train_remove(char *path)
{
    if (path)
        (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
}

int train_start(const struct mr_training *t, const char *dir, struct mr_error *err)
{
    const struct mr_training_model *m = &t->model;
    struct mr_synthetic_draw draw[MR_DRAWS];
    struct mr_config config;
    int rc = mr_training_shape(t, &config, err);
    for (int i = 0; i < MR_DRAWS; i++) {
        const struct mr_training_start *s = &m->start[i];
        double usual = m->range > 0 ? m->range : 0.02;
        draw[i] = s->deviation > 0 ? (struct mr_synthetic_draw){(float)s->deviation, (float)s->low,
                                                                (float)s->high}
                                   : (struct mr_synthetic_draw){(float)usual, 0, 0};
    }
    // Matrices that add to the residual are drawn as others are unless somebody says.
    if (m->start[MR_START_OUTPUT].deviation == 0)
        draw[MR_DRAW_OUTPUT] = draw[MR_DRAW_MATRIX];
    return rc == 0 ? mr_synthetic_start(dir, &config, (uint64_t)t->seed, draw, err) : rc;
}

char *train_checkpoint(const char *dir, uint64_t step, struct mr_error *err)
{
    char name[48];
    (void)snprintf(name, sizeof name, "%s%llu", prefix, (unsigned long long)step);
    return mr_path_join(dir, name, err);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// The number behind "checkpoint-", and nothing else.
static bool step_of(const char *name, uint64_t *step)
{
    size_t n = sizeof prefix - 1,
           digits = strspn(name + (strncmp(name, prefix, n) == 0 ? n : 0), "0123456789");
    if (strncmp(name, prefix, n) != 0 || digits == 0 || digits > 18 || name[n + digits])
        return false;
    *step = strtoull(name + n, NULL, 10);
    return true;
}

uint64_t train_checkpoint_step(const char *path)
{
    const char *slash = strrchr(path, '/');
    uint64_t step;
    return step_of(slash ? slash + 1 : path, &step) ? step : 0;
}

int train_checkpoints(const char *dir, uint64_t **steps, size_t *count, struct mr_error *err)
{
    DIR *d = opendir(dir);
    *steps = NULL;
    *count = 0;
    if (!d)
        return mr_fail(err, MR_ERR_IO, "%s: %s", dir, strerror(errno));
    int rc = 0;
    uint64_t step;
    for (struct dirent *e; rc == 0 && (e = readdir(d));) {
        if (!step_of(e->d_name, &step))
            continue;
        uint64_t *more = realloc(*steps, (*count + 1) * sizeof *more);
        rc = more ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for %zu checkpoints", *count);
        *steps = more ? more : *steps;
        if (more)
            more[(*count)++] = step;
    }
    (void)closedir(d); // only read
    if (*count > 0)
        qsort(*steps, *count, sizeof **steps, compare);
    return rc;
}
