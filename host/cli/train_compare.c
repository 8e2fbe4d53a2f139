// SPDX-License-Identifier: Apache-2.0
#include "cli/train_compare.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/engines.h"
#include "common/error.h"
#include "common/file.h"
#include "pack/hash.h"
#include "store/header.h"
#include "store/origin.h"

struct fingerprint {
    char version[32], host[128];
    uint64_t model, origin; // its sizes; its weights
    uint64_t settings;
    uint64_t data, held;
};

// The weights may lie anywhere, in any form.
static int look_at_model(const struct train_args *a, struct fingerprint *f, struct mr_error *err)
{
    struct mr_checkpoint *checkpoint;
    uint32_t origin = 0;
    int rc = mr_checkpoint_open(&checkpoint, a->c.model, err);
    if (rc < 0)
        return rc;
    f->model = mr_store_model(mr_checkpoint_config(checkpoint));
    rc = mr_store_origin(&origin, checkpoint, err);
    f->origin = origin;
    mr_checkpoint_close(checkpoint);
    return rc;
}

// What decides how many micro-batches there are, of what, and when something else happens.
static int look_at_settings(const struct train_args *a, struct fingerprint *f, struct mr_error *err)
{
    const struct mr_training *t = &a->t;
    const int64_t numbers[] = {
        t->mode,          t->steps,           t->more_steps,     t->epochs,      t->epoch_steps,
        t->accumulate,    t->train.micro,     t->train.sequence, t->train.batch, t->train.seed,
        t->train.shuffle, t->positions,       t->eval_frequency, t->eval_steps,  t->eval_windows,
        t->held[0].batch, t->held[0].sequence};
    f->settings = XXH3_64bits(numbers, sizeof numbers);
    struct mr_file file = {0};
    int rc = a->config ? mr_file_map(&file, a->config, err) : 0;
    if (rc == 0 && a->config)
        f->settings ^= XXH3_64bits(file.data, file.size);
    mr_file_unmap(&file);
    return rc;
}

int train_compare(struct train_run *r, struct mr_error *err)
{
    const struct train_args *a = r->a;
    struct fingerprint own = {.version = MR_VERSION_STRING, .data = r->data.hash}, first;
    if (a->ranks.count == 1)
        return 0;
    own.held = r->held.hash;
    (void)gethostname(own.host, sizeof own.host - 1); // empty: it has none
    int rc = look_at_model(a, &own, err);
    if (rc == 0)
        rc = look_at_settings(a, &own, err);
    if (rc < 0)
        return rc;
    first = own;
    mr_ranks_send(&a->ranks, &first, sizeof first);
    if (strcmp(own.version, first.version) != 0)
        return mr_fail(err, MR_ERR_FIT,
                       "is millrace %s, and rank 0 on %s is %s; install the same one", own.version,
                       first.host, first.version);
    const char *what = NULL, *which = "";
    if (own.settings != first.settings) {
        what = "other settings";
        which = a->config ? a->config : "the command line";
    } else if (own.model != first.model || own.origin != first.origin) {
        what = "another model";
        which = a->c.model;
    } else if (own.data != first.data || own.held != first.held) {
        what = "other data";
        which = own.data != first.data ? a->t.train.data : a->t.held[0].data;
    }
    if (what)
        return mr_fail(err, MR_ERR_FIT, "%s: is %s than on rank 0 (%s); give all ranks the same",
                       which ? which : "the held-out data", what, first.host);
    unsigned char same = 1, all[ENGINES_MOST]; // nobody goes on before that is known
    mr_ranks_gather(&a->ranks, &same, all, sizeof same);
    return 0;
}
