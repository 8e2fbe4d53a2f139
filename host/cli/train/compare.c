// SPDX-License-Identifier: Apache-2.0
#include "cli/train/args.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/train/engines.h"
#include "common/error.h"
#include "common/file.h"
#include "pack/hash.h"
#include "store/header.h"
#include "store/origin.h"

// What decides how many micro-batches there are, of what, and when something else happens. What an
// update takes (rates, decay, what is frozen) is rank 0's alone: it updates the weights of all.
#define SETTINGS(X)                                                                                \
    X("the mode", mode)                                                                            \
    X("steps", steps)                                                                              \
    X("num_steps", more_steps)                                                                     \
    X("epochs", epochs)                                                                            \
    X("steps_per_epoch", epoch_steps)                                                              \
    X("accumulate", accumulate)                                                                    \
    X("batch", train.micro)                                                                        \
    X("sequence", train.sequence)                                                                  \
    X("batch_size", train.batch)                                                                   \
    X("seed", train.seed)                                                                          \
    X("shuffle", train.shuffle)                                                                    \
    X("positions", positions)                                                                      \
    X("eval_frequency", eval_frequency)                                                            \
    X("eval_steps", eval_steps)                                                                    \
    X("eval-windows", eval_windows)                                                                \
    X("eval_input.batch_size", held[0].batch)                                                      \
    X("eval_input.max_sequence_length", held[0].sequence)
#define COUNT(NAME, MEMBER) +1
enum { NUMBERS = 0 SETTINGS(COUNT) };

struct fingerprint {
    char version[32], host[128];
    uint64_t model, origin; // its sizes; its weights
    int64_t number[NUMBERS];
    uint64_t config; // the file's text
    uint64_t data, held;
};

// The weights may lie anywhere, in any form.
static int look_at_model(const struct train_args *a, struct fingerprint *f, struct mr_error *err)
{
    struct mr_checkpoint *checkpoint;
    uint32_t origin = 0;
    int rc = mr_checkpoint_open(&checkpoint, a->c.model, MR_EITHER, NULL, err);
    if (rc < 0)
        return rc;
    f->model = mr_store_model(mr_checkpoint_config(checkpoint));
    rc = mr_store_origin(&origin, checkpoint, err);
    f->origin = origin;
    mr_checkpoint_close(checkpoint);
    return rc;
}

static int look_at_settings(const struct train_args *a, struct fingerprint *f, struct mr_error *err)
{
    const struct mr_training *t = &a->t;
#define VALUE(NAME, MEMBER) t->MEMBER,
    const int64_t numbers[NUMBERS] = {SETTINGS(VALUE)};
    memcpy(f->number, numbers, sizeof numbers);
    struct mr_file file = {0};
    int rc = a->config ? mr_file_map(&file, a->config, err) : 0;
    if (rc == 0 && a->config)
        f->config = XXH3_64bits(file.data, file.size);
    mr_file_unmap(&file);
    return rc;
}

static int compare_numbers(const struct fingerprint *own, const struct fingerprint *first,
                           struct mr_error *err)
{
#define LABEL(NAME, MEMBER) NAME,
    static const char *const names[NUMBERS] = {SETTINGS(LABEL)};
    for (int i = 0; i < NUMBERS; i++)
        if (own->number[i] != first->number[i])
            return mr_fail(err, MR_ERR_FIT,
                           "%s is %lld, and %lld on rank 0 (%s); give all ranks the same", names[i],
                           (long long)own->number[i], (long long)first->number[i], first->host);
    return 0;
}

static int compare(const struct train_args *a, const struct fingerprint *own,
                   const struct fingerprint *first, struct mr_error *err)
{
    if (strcmp(own->version, first->version) != 0)
        return mr_fail(err, MR_ERR_FIT,
                       "is millrace %s, and rank 0 on %s is %s; install the same one", own->version,
                       first->host, first->version);
    int rc = compare_numbers(own, first, err);
    if (rc < 0)
        return rc;
    const char *what = NULL, *which = "";
    if (own->config != first->config) {
        what = "another configuration";
        which = a->config ? a->config : "the command line";
    } else if (own->model != first->model || own->origin != first->origin) {
        what = "another model";
        which = a->c.model;
    } else if (own->data != first->data || own->held != first->held) {
        what = "other data";
        which = own->data != first->data ? a->t.train.data : a->t.held[0].data;
    }
    return what ? mr_fail(err, MR_ERR_FIT, "%s: is %s than on rank 0 (%s); give all ranks the same",
                          which, what, first->host)
                : 0;
}

int train_compare(struct train_run *r, struct mr_error *err)
{
    struct train_args *a = r->a;
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
    rc = compare(a, &own, &first, err);
    // All end together, so that each removes what it has made.
    unsigned char same = rc == 0, all[ENGINES_MOST];
    mr_ranks_gather(&a->ranks, &same, all, sizeof same);
    for (int k = 0; k < a->ranks.count; k++)
        a->ended |= !all[k];
    return a->ended ? MR_ERR_FIT : 0;
}
