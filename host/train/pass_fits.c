// SPDX-License-Identifier: Apache-2.0
// Whether a device trains and holds a model's training, and what is too small if not.
#include "train/pass_fits.h"

#include <stdio.h>
#include <string.h>

#include "device/configs.h"
#include "device/open.h"
#include "engine/program.h"
#include "store/turned.h"
#include "train/pass_impl.h"

enum { LIMITS = 8 };
struct limit {
    const char *what;
    int need, have;
};

// What the model asks of a device of this geometry.
static void limits_of(const struct mr_pass *p, const struct mr_geometry *g,
                      struct limit out[LIMITS])
{
    struct mr_program_places places = mr_program_places(p->c);
    int widest = p->d.f > p->d.w ? p->d.f : p->d.w;
    widest = (widest > p->d.d ? widest : p->d.d) / 32;
    const struct limit limits[LIMITS] = {
        {"n_embd (padded)", p->d.d, g->d_max},
        {"width of all heads (padded)", p->d.w, g->w_max < g->d_max ? g->w_max : g->d_max},
        {"rotary dimensions (padded)", p->d.rot_floats, g->rot_max},
        {"n_positions", p->c->n_positions, g->ctx_max},
        {"activation memory in words", places.act_words, g->act_words},
        {"memory of q, k and v in words", places.qkv_words, g->qkv_words},
        {"blocks of a row of gradients", widest + p->d.d / 32, g->act_words},
        {"blocks of the widest row", widest, g->ring / 2},
    };
    memcpy(out, limits, sizeof limits);
}

static const struct limit *too_small(const struct limit limits[LIMITS])
{
    for (int i = 0; i < LIMITS; i++)
        if (limits[i].need > limits[i].have)
            return &limits[i];
    return NULL;
}

// What a contraction may have, beside what inference asks of a device.
int pass_fits(const struct mr_pass *p, struct mr_error *err)
{
    int stream = p->g.ring / 2, words = p->g.act_words, blocks = pass_blocks(p->most_rows);
    struct limit limits[LIMITS], of_sim[LIMITS];
    if (!p->g.train)
        return mr_fail(err, MR_ERR_USAGE, "device %s cannot train; model:sim can", p->name);
    if (p->g.t < 32)
        return mr_fail(err, MR_ERR_FIT,
                       "device %s has %d rows; training needs 32 at a time, which tinyt has",
                       p->name, p->g.t);
    if (p->chunk % 32 || p->chunk <= 0 || p->chunk > p->g.t)
        return mr_fail(err, MR_ERR_USAGE, "chunks of %d rows: a multiple of 32 up to %d is needed",
                       p->chunk, p->g.t);
    limits_of(p, &p->g, limits);
    limits_of(p, &mr_config_named("sim")->g, of_sim); // no configuration has more
    const struct limit *l = too_small(limits);
    if (l)
        return mr_fail(err, MR_ERR_FIT,
                       "the model does not fit device %s for training: %s is %d, the device has "
                       "%d; %s",
                       p->name, l->what, l->need, l->have,
                       too_small(of_sim) ? "no configuration holds it" : "model:sim holds it");
    if (!p->encoder && mr_segment_kblocks(p->d.vocab / 32, 0) > words)
        return mr_fail(err, MR_ERR_FIT, "the vocabulary of %d does not fit device %s for training",
                       p->c->vocab_size, p->name);
    if (blocks + p->d.head_lanes / 32 > words || blocks > stream || blocks > MR_GRAD_KBLOCKS)
        return mr_fail(err, MR_ERR_FIT, "a micro-batch of %d rows does not fit device %s",
                       p->most_rows, p->name);
    if (pass_most_keys(p) + 64 > p->g.d_max)
        return mr_fail(err, MR_ERR_FIT, "scores of %d positions do not fit device %s",
                       p->c->n_positions, p->name);
    return 0;
}

// Whether the first part of "[config],..." is a configuration without TRAIN, and no other adds it.
// Of a word that no device knows it is not asked: opening says so.
static const struct mr_config_entry *without_training(const char *args)
{
    char name[32];
    size_t n = strcspn(args, ",");
    (void)snprintf(name, sizeof name, "%.*s", (int)n, args);
    const struct mr_config_entry *config = mr_config_named(n > 0 ? name : "sim");
    for (const char *at = args + n; *at; at += 1 + strcspn(at + 1, ","))
        if (strncmp(at, ",check", 6) != 0 && !memchr(at, '=', 1 + strcspn(at + 1, ",")))
            return NULL;
    return config && !config->g.train ? config : NULL;
}

int mr_pass_kind(const char *uri, struct mr_error *err)
{
    if (strncmp(uri, "cpu:", 4) == 0)
        return mr_fail(err, MR_ERR_USAGE,
                       "device %s cannot train: it is the reference for inference; "
                       "model:sim can",
                       uri);
    const struct mr_config_entry *sim =
        strncmp(uri, "sim:", 4) == 0 ? without_training(uri + 4) : NULL;
    if (sim)
        return mr_fail(err, MR_ERR_USAGE, "device %.300s cannot train; %s model:sim can", uri,
                       sim->g.t < 32 ? "sim:tinyt and" : "with ',train' it can, and");
    return 0;
}

int mr_pass_device(struct mr_device **dev, const char *uri, struct mr_error *err)
{
    static const char scheme[] = "model:";
    size_t n = sizeof scheme - 1;
    char name[MR_DEVICE_URI];
    int rc = mr_pass_kind(uri, err);
    *dev = NULL;
    if (rc < 0)
        return rc;
    if (strncmp(uri, scheme, n) != 0 || !without_training(uri + n))
        return mr_device_open(dev, uri, err);
    n += strcspn(uri + n, ",");
    int size = snprintf(name, sizeof name, "%.*s,train%s", (int)n, uri, uri + n);
    return size > 0 && (size_t)size < sizeof name
               ? mr_device_open(dev, name, err)
               : mr_fail(err, MR_ERR_USAGE, "%.64s...: too long", uri);
}
