// SPDX-License-Identifier: Apache-2.0
#include "cli/train/start.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/synthetic.h"
#include "common/error.h"
#include "common/file.h"
#include "common/grow.h"
#include "config/read.h"

static const char prefix[] = "checkpoint-";

void train_remove(char *path)
{
    if (path)
        mr_remove_tree(path);
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
        rc = mr_grow(steps, *count, 1, sizeof **steps, err);
        if (rc == 0)
            (*steps)[(*count)++] = step;
    }
    (void)closedir(d); // only read
    if (*count > 0)
        qsort(*steps, *count, sizeof **steps, compare);
    return rc;
}

// ---- those that stay ----------------------------------------------------------------------------

static const char best_name[] = "best-checkpoint";

int train_best_read(const char *dir, struct train_best *best, struct mr_error *err)
{
    char *path = mr_path_join(dir, best_name, err);
    unsigned long long step;
    *best = (struct train_best){0};
    if (!path)
        return MR_ERR_MEMORY;
    FILE *f = fopen(path, "r");
    int rc = 0;
    if (f && fscanf(f, "%llu %lf", &step, &best->loss) == 2 && step < 1ULL << 40)
        best->step = step;
    else if (f || errno != ENOENT)
        rc =
            mr_fail(err, MR_ERR_FORMAT,
                    "%s: does not say which checkpoint is the best; remove it to begin anew", path);
    if (f)
        (void)fclose(f); // only read
    free(path);
    return rc;
}

int train_best_write(const char *dir, const struct train_best *best, struct mr_error *err)
{
    char *path = mr_path_join(dir, best_name, err);
    char *beside = path ? mr_path_join(dir, "best-checkpoint.new", err) : NULL;
    FILE *f = beside ? fopen(beside, "w") : NULL;
    int rc = beside ? 0 : MR_ERR_MEMORY;
    bool good = f && fprintf(f, "%llu %.17g\n", (unsigned long long)best->step, best->loss) > 0;
    good = f && fclose(f) == 0 && good && rename(beside, path) == 0;
    if (beside && !good)
        rc = mr_fail(err, MR_ERR_IO, "%s: %s", path, strerror(errno));
    free(path);
    free(beside);
    return rc;
}

// It loses its name first, so that none is found half removed.
static int drop(const char *dir, uint64_t step, struct mr_error *err)
{
    char *path = train_checkpoint(dir, step, err);
    char *away = path ? mr_path_join(dir, "removed-checkpoint", err) : NULL;
    int rc = away ? 0 : MR_ERR_MEMORY;
    if (away && rename(path, away) != 0)
        rc = mr_fail(err, MR_ERR_IO, "%s: cannot be removed: %s", path, strerror(errno));
    free(path);
    if (rc == 0)
        train_remove(away);
    else
        free(away);
    return rc;
}

int train_prune(const char *dir, int most, const struct train_best *best, struct mr_error *err)
{
    uint64_t *steps;
    size_t count;
    char *left = mr_path_join(dir, "removed-checkpoint", err);
    train_remove(left); // of a program that was killed meanwhile
    int rc = left ? train_checkpoints(dir, &steps, &count, err) : MR_ERR_MEMORY;
    if (rc < 0)
        return rc;
    for (size_t i = 0; i + (size_t)most < count && rc == 0; i++)
        if (steps[i] != 0 && steps[i] != best->step)
            rc = drop(dir, steps[i], err);
    free(steps);
    return rc;
}
