// SPDX-License-Identifier: Apache-2.0
#include "cli/data/train_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/str.h"
#include "model/arch.h"
#include "pack/hash.h"
#include "plan/model.h"

// ---- windows -----------------------------------------------------------------------------------

static size_t cut_all(const struct train_data *d, const struct mr_model *model, int sequence,
                      struct mr_window *out)
{
    const struct mr_cut cut = {sequence, 0};
    size_t n = 0, from = 0;
    for (size_t i = 0; i < d->count; i++)
        if (i + 1 == d->count || mr_model_is_eos(model, d->ids[i])) {
            n += mr_windows_cut(&cut, from, from + 1, i + 1, out ? out + n : NULL);
            from = i + 1;
        }
    return n;
}

// Learns the first windows, in an order of its own, and holds the last ones.
static int divide(struct train_data *d, size_t windows, double share, struct mr_error *err)
{
    d->order = calloc(windows + 1, sizeof *d->order);
    if (!d->order)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu windows", windows);
    d->held_out = (size_t)ceil((double)windows * share);
    if (windows == 0)
        return mr_fail(err, MR_ERR_FORMAT, "the text is too short: its %zu token%s no window",
                       d->count, d->count == 1 ? " makes" : "s make");
    if (windows <= d->held_out && share < 1) // 1: none is to be learnt
        return mr_fail(
            err, MR_ERR_USAGE,
            "the text is too short: its %zu tokens make %zu window%s, of which %zu would "
            "be held out",
            d->count, windows, windows == 1 ? "" : "s", d->held_out);
    d->learnt = windows - d->held_out;
    return 0;
}

int train_data_make(struct train_data *d, struct mr_model *model, const char *text, size_t size,
                    int sequence, double share, uint64_t seed, struct mr_error *err)
{
    *d = (struct train_data){.seed = seed, .epoch = UINT64_MAX};
    int rc = mr_model_encode(model, text, size, true, &d->ids, &d->count, err);
    if (rc < 0)
        return rc;
    size_t windows = cut_all(d, model, sequence, NULL);
    d->hash = XXH3_64bits(d->ids, d->count * sizeof *d->ids);
    d->windows = calloc(windows + 1, sizeof *d->windows);
    if (!d->windows)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu windows", windows);
    (void)cut_all(d, model, sequence, d->windows);
    d->full = true;
    for (size_t i = 0; i < windows; i++)
        d->full &= d->windows[i].count == sequence;
    return divide(d, windows, share, err);
}

// What `own`, a hash of the model's tokens, and the opened files say; they are divided.
static int take_examples(struct train_data *d, uint64_t own, const char *path, double share,
                         struct mr_error *err)
{
    if (own != 0 && d->examples.vocabulary != 0 && d->examples.vocabulary != own)
        return mr_fail(err, MR_ERR_FIT,
                       "%s: was made with another tokenizer than the model's; make it again with "
                       "millrace data and this model",
                       path);
    d->hash = d->examples.hash;
    d->full = d->examples.targets == (uint64_t)d->examples.count * (uint64_t)d->examples.length;
    d->count = d->examples.tokens;
    int rc = divide(d, d->examples.count, share, err);
    return rc < 0 ? mr_fail_in(err, "%.300s", path) : rc;
}

int train_data_open(struct train_data *d, const struct mr_model *model, const char *const *paths,
                    int count, double share, uint64_t seed, struct mr_error *err)
{
    struct mr_model_info info;
    mr_model_get_info(model, &info);
    *d = (struct train_data){.seed = seed, .epoch = UINT64_MAX};
    int rc = mr_examples_open_all(&d->examples, paths, count, info.vocab_size, err);
    if (rc < 0)
        return rc;
    uint64_t own = d->examples.vocabulary != 0 ? mr_vocabulary_hash(model, info.vocab_size) : 0;
    return take_examples(d, own, paths[0], share, err);
}

// A classifier that is kept and the texts number their labels alike: a name that both have has one
// number. Other names may be new ones of the same labels.
static int judge_labels(const struct mr_encoder *encoder, const struct mr_labels *labels,
                        const char *path, struct mr_error *err)
{
    struct mr_encoder_info info;
    mr_encoder_get_info(encoder, &info);
    if (info.by_token || info.n_labels != labels->count)
        return 0; // its classifier is drawn anew
    for (int i = 0; i < labels->count; i++)
        for (int k = 0; k < labels->count; k++)
            if (k != i && strcmp(labels->names[i], mr_encoder_label(encoder, k)) == 0)
                return mr_fail(err, MR_ERR_FIT,
                               "%.300s: label %d is '%s', the model's label %d; make the file with "
                               "--labels in the model's order",
                               path, i, mr_show(labels->names[i]).text, k);
    return 0;
}

int train_data_open_texts(struct train_data *d, const struct mr_encoder *encoder, int types,
                          const char *const *paths, int count, double share, uint64_t seed,
                          struct mr_error *err)
{
    struct mr_encoder_info info;
    mr_encoder_get_info(encoder, &info);
    *d = (struct train_data){.seed = seed, .epoch = UINT64_MAX};
    int rc = mr_examples_open_labelled(&d->examples, paths, count, info.vocab_size, types, err);
    if (rc == 0)
        rc = take_examples(d, mr_encoder_vocabulary_hash(encoder, info.vocab_size), paths[0], share,
                           err);
    return rc == 0 ? judge_labels(encoder, &d->examples.labels, paths[0], err) : rc;
}

void train_data_free(struct train_data *d)
{
    free(d->ids);
    free(d->windows);
    free(d->order);
    mr_examples_close(&d->examples);
    *d = (struct train_data){0};
}

// ---- order -------------------------------------------------------------------------------------

// splitmix64 (Steele, Lea, Flood 2014)
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void shuffle(struct train_data *d, uint64_t epoch)
{
    uint64_t state = d->seed ^ (epoch + 1) * 0xD1B54A32D192ED03u;
    for (size_t i = 0; i < d->learnt; i++)
        d->order[i] = i;
    for (size_t i = d->learnt; i > 1 && !d->in_order; i--) {
        size_t k = draw(&state) % i, was = d->order[k];
        d->order[k] = d->order[i - 1];
        d->order[i - 1] = was;
    }
    d->epoch = epoch;
}

// ---- micro-batches -----------------------------------------------------------------------------

int train_batch_new(struct train_batch *b, int windows, int sequence, bool texts,
                    struct mr_error *err)
{
    size_t n = (size_t)windows, tokens = n * (size_t)sequence;
    *b = (struct train_batch){.most = windows};
    b->lengths = calloc(2 * n + 2 * tokens, sizeof *b->lengths);
    if (!b->lengths)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a micro-batch of %zu tokens", tokens);
    b->labels = b->lengths + n;
    b->tokens = b->labels + n;
    b->targets = b->tokens + tokens;
    b->batch = (struct mr_micro_batch){.lengths = b->lengths,
                                       .tokens = b->tokens,
                                       .targets = texts ? NULL : b->targets,
                                       .types = texts ? b->targets : NULL,
                                       .labels = texts ? b->labels : NULL};
    return 0;
}

void train_batch_free(struct train_batch *b)
{
    free(b->lengths);
    *b = (struct train_batch){0};
}

static int put(struct train_batch *b, struct train_data *d, size_t window, size_t *rows,
               struct mr_error *err)
{
    int32_t *tokens = b->tokens + *rows, *targets = b->targets + *rows;
    int count, rc = 0;
    if (d->examples.n_files > 0) {
        count = d->examples.list[window].count;
        b->labels[b->batch.sequences] = d->examples.list[window].label;
        rc = mr_examples_read(&d->examples, window, tokens, targets, err);
    } else {
        const struct mr_window *w = &d->windows[window];
        count = w->count;
        memcpy(tokens, d->ids + w->at, (size_t)count * sizeof *tokens);
        memcpy(targets, d->ids + w->at + 1, (size_t)count * sizeof *targets);
    }
    b->lengths[b->batch.sequences++] = count;
    *rows += (size_t)count;
    return rc;
}

int train_batch_learn(struct train_batch *b, struct train_data *d, uint64_t number,
                      struct mr_error *err)
{
    size_t rows = 0;
    int rc = 0;
    b->batch.sequences = 0;
    for (uint64_t k = number; k < number + (uint64_t)b->most && rc == 0; k++) {
        if (k / d->learnt != d->epoch)
            shuffle(d, k / d->learnt);
        rc = put(b, d, d->order[k % d->learnt], &rows, err);
    }
    return rc;
}

int train_batch_hold(struct train_batch *b, struct train_data *d, size_t first, size_t last,
                     struct mr_error *err)
{
    size_t rows = 0;
    int rc = 0;
    b->batch.sequences = 0;
    for (size_t k = first; k < last && b->batch.sequences < b->most && rc == 0; k++)
        rc = put(b, d, d->learnt + (d->spread ? k * d->held_out / d->spread : k), &rows, err);
    return rc < 0 ? rc : b->batch.sequences;
}

int train_data_positions(struct mr_model_info *info, const char *model, int positions,
                         struct mr_error *err)
{
    struct mr_config config;
    enum mr_format format;
    if (positions == 0)
        return 0;
    int rc = mr_plan_model_of(&config, &format, model, err);
    if (rc == 0)
        rc = mr_config_set_positions(&config, positions, err);
    info->n_positions = rc == 0 ? config.n_positions : info->n_positions;
    return rc;
}
