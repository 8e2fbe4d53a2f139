// SPDX-License-Identifier: Apache-2.0
#include "plan/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/error.h"
#include "device/configs.h"
#include "engine/program.h"
#include "engine/synthetic.h"
#include "pack/packed.h"
#include "store/turned.h"

int mr_plan_model_of(struct mr_config *model, enum mr_format *format, const char *path,
                     struct mr_error *err)
{
    static const char synthetic[] = "synthetic:";
    uint64_t seed;
    if (strncmp(path, synthetic, sizeof synthetic - 1) == 0)
        return mr_synthetic_parse(path + sizeof synthetic - 1, model, &seed, err);
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return mr_config_load_from(model, path, err);
    struct mr_packed packed;
    struct mr_pack_options options = {.describe = true,
                                      .wanted = MR_EITHER}; // its weights are not used
    int rc = mr_packed_load(&packed, path, &options, err);
    if (rc < 0)
        return rc;
    *model = packed.config;
    *format = packed.format;
    mr_packed_close(&packed);
    return 0;
}

// "key=value,key=value": the values of the known keys; others, and a key twice, are refused.
static int parse_list(const char *text, const char *const *keys, long *values, const char *option,
                      struct mr_error *err)
{
    const char *p = text;
    unsigned given = 0;
    while (*p) {
        size_t n = strcspn(p, "=,");
        int k = 0;
        while (keys[k] && (strlen(keys[k]) != n || strncmp(keys[k], p, n) != 0))
            k++;
        char *end = NULL;
        long v = keys[k] && p[n] == '=' ? strtol(p + n + 1, &end, 10) : 0;
        if (!keys[k] && n == 4 && strncmp(p, "pair", 4) == 0 && p[n] != '=') {
            values[k] = 1; // the place behind the numbers
            end = (char *)p + n;
        }
        if (!end || end == p + n + 1 || (*end && *end != ','))
            return mr_fail(err, MR_ERR_USAGE, "%s: '%.40s' is not KEY=NUMBER with a known key",
                           option, p);
        if (given >> k & 1)
            return mr_fail(err, MR_ERR_USAGE, "%s: '%.*s' is there twice; leave one out", option,
                           (int)n, p);
        given |= 1U << k;
        if (keys[k])
            values[k] = v;
        if (*end && !end[1])
            return mr_fail(err, MR_ERR_USAGE, "%s: nothing follows the last comma", option);
        p = *end ? end + 1 : end;
    }
    return 0;
}

// The limits of a checkpoint's config.json, in the option's words.
static int check_sizes(const char *const *keys, const long *v, struct mr_error *err)
{
    static const int most[] = {MR_MAX_LAYER, MR_MAX_EMBD,      MR_MAX_HEAD, MR_MAX_INNER,
                               MR_MAX_VOCAB, MR_MAX_POSITIONS, MR_MAX_EMBD};
    long d = v[1], heads = v[2], rotary = v[6];
    for (int i = 0; i < 7; i++)
        if (v[i] < 1 || v[i] > most[i])
            return mr_fail(err, MR_ERR_USAGE, "--geometry: %s is %ld; give 1 to %d", keys[i], v[i],
                           most[i]);
    if (d % heads != 0)
        return mr_fail(err, MR_ERR_USAGE,
                       "--geometry: d is %ld; give a multiple of heads, which is %ld", d, heads);
    if (rotary % 2 != 0 || rotary > d / heads)
        return mr_fail(err, MR_ERR_USAGE,
                       "--geometry: rotary is %ld; give an even number from 2 to d / heads, which "
                       "is %ld",
                       rotary, d / heads);
    return 0;
}

int mr_plan_model_parse(struct mr_config *model, const char *geometry, struct mr_error *err)
{
    static const char *const keys[] = {"layers", "d",   "heads",  "inner",
                                       "vocab",  "ctx", "rotary", NULL};
    long v[] = {28, 4096, 16, -1, 50400, 2048, 64, 0};
    int rc = parse_list(geometry, keys, v, "--geometry", err);
    if (rc < 0)
        return rc;
    if (v[7])
        return mr_fail(err, MR_ERR_USAGE, "--geometry: 'pair' belongs to --config");
    if (v[3] < 0)
        v[3] = 4 * v[1];
    rc = check_sizes(keys, v, err);
    if (rc < 0)
        return rc;
    *model = mr_arch_at(0)->presets[0].config; // the sizes are GPT-J's, as are the option's keys
    model->n_layer = (int)v[0];
    model->n_embd = (int)v[1];
    model->n_head = (int)v[2];
    model->head_dim = model->n_embd / model->n_head;
    model->n_inner = (int)v[3];
    model->vocab_size = (int)v[4];
    model->n_positions = (int)v[5];
    model->rotary_dim = (int)v[6];
    return 0;
}

static int power(int n)
{
    int p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static int at_least(int a, int b)
{
    return a > b ? a : b;
}

int mr_plan_geometry_parse(struct mr_geometry *g, bool *pair, const char *text,
                           const struct mr_config *model, struct mr_error *err)
{
    static const char *const keys[] = {"n", "r", "t", NULL};
    long v[] = {1, 4, 128, 0};
    int rc = parse_list(text, keys, v, "--config", err);
    if (rc < 0)
        return rc;
    const struct {
        const char *name;
        long value, high;
    } sizes[] = {{"n", v[0], 16}, {"r", v[1], 32}, {"t", v[2], 512}};
    for (int i = 0; i < 3; i++)
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].high ||
            (sizes[i].value & (sizes[i].value - 1)))
            return mr_fail(err, MR_ERR_USAGE, "--config: %s is %ld; powers of two from 1 to %ld",
                           sizes[i].name, sizes[i].value, sizes[i].high);
    if (v[2] < v[1] || (v[3] && v[1] < 2))
        return mr_fail(err, MR_ERR_USAGE, "--config: t must be at least r, and r 2 with pair");
    *g = mr_config_named("sim")->g;
    g->n = (int)v[0];
    g->r = (int)v[1];
    g->t = (int)v[2];
    *pair = v[3];
    struct mr_dims d = mr_dims_of(model);
    g->d_max = power(at_least(d.d, 256));
    g->w_max = power(at_least(d.w, 256));
    g->act_words = power(mr_program_places(model).act_words);
    g->qkv_words = power(mr_program_places(model).qkv_words);
    g->ring = power(at_least(g->ring, 2 * (d.longest / 32)));
    return 0;
}

bool mr_plan_config_trains(char *name, size_t size, const char *text)
{
    static const char end[] = ",train";
    size_t n = strlen(text), tail = sizeof end - 1;
    bool train = n > tail && strcmp(text + n - tail, end) == 0;
    (void)snprintf(name, size, "%.*s", (int)(train ? n - tail : n), text);
    return train;
}

void mr_plan_geometry_train(struct mr_geometry *g, const struct mr_config *model, bool free)
{
    struct mr_dims d = mr_dims_of(model);
    int widest = at_least(d.d, at_least(d.f, d.w));
    g->train = 1;
    if (!free)
        return;
    // Both sides of a matrix, and a segment of the vocabulary; the scores of a sequence that begins
    // and ends within chunks.
    g->act_words = power(
        at_least(g->act_words, at_least((widest + d.d) / 32, mr_segment_kblocks(d.vocab / 32, 0))));
    g->d_max = power(at_least(g->d_max, model->n_positions + at_least(g->t, 64) + g->t + 64));
}
