// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/lora.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"

enum { RUN = 64 }; // weights whose sums are in registers

// ---- which matrices ----------------------------------------------------------------------------

const char *mr_lora_module(const struct mr_config *config, const struct mr_lora_pair *pair,
                           char name[MR_NAME])
{
    static const char end[] = ".weight";
    struct mr_tensor_spec t = mr_tensor_spec(config, pair->tensor);
    mr_tensor_name(config, t.layer, t.item, t.part, name);
    name[strlen(name) - (sizeof end - 1)] = 0;
    return name;
}

// Can the tensor be the first share of a pair's?
static bool can_adapt(const struct mr_config *config, size_t i)
{
    struct mr_tensor_spec t = mr_tensor_spec(config, i);
    return t.item->kind == MR_LINEAR && t.part == MR_WEIGHT && t.item->share == 0;
}

static struct mr_lora_pair pair_of(const struct mr_config *config, size_t i)
{
    struct mr_tensor_spec t = mr_tensor_spec(config, i);
    struct mr_file_tensor whole = mr_file_tensor(&t);
    int inputs = t.item->transposed ? whole.rows : whole.cols;
    int outputs = t.item->transposed ? whole.cols : whole.rows;
    return (struct mr_lora_pair){i, whole.step, whole.shares, inputs, outputs, NULL, NULL};
}

static bool matches(const char *module, const char *target)
{
    size_t n = strlen(module), k = strlen(target);
    return k <= n && strcmp(module + n - k, target) == 0 && (k == n || module[n - k - 1] == '.');
}

// Does any of the targets choose it? Notes which did.
static bool chosen(const struct mr_lora *l, const struct mr_config *config,
                   const struct mr_lora_pair *pair, bool *used)
{
    char name[MR_NAME];
    bool found = false;
    mr_lora_module(config, pair, name);
    for (int k = 0; l->target[k]; k++) {
        bool hit = matches(name, l->target[k]);
        used[k] |= hit;
        found |= hit;
    }
    return found;
}

static int refuse_target(const struct mr_config *config, const char *target, struct mr_error *err)
{
    char name[MR_NAME], all[256] = "";
    size_t n = 0;
    for (size_t i = 0; i < mr_tensor_specs(config); i++) {
        struct mr_tensor_spec t = mr_tensor_spec(config, i);
        if (!can_adapt(config, i) || t.layer != 0)
            continue;
        struct mr_lora_pair pair = pair_of(config, i);
        const char *last = strrchr(mr_lora_module(config, &pair, name), '.');
        if (n + strlen(last) + 3 < sizeof all)
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", last + 1);
    }
    return mr_fail(err, MR_ERR_USAGE,
                   "LoRA's target '%s': the model has no matrix of that name; its blocks have %s",
                   mr_show(target).text, all);
}

// Those of the targets, at most `room` of them into `pair`, which may be NULL.
static size_t choose(const struct mr_lora *l, const struct mr_config *config, bool *used,
                     struct mr_lora_pair *pair)
{
    size_t n = 0;
    for (size_t i = 0; i < mr_tensor_specs(config); i++) {
        if (!can_adapt(config, i))
            continue;
        struct mr_lora_pair p = pair_of(config, i);
        if (!chosen(l, config, &p, used))
            continue;
        if (pair)
            pair[n] = p;
        n++;
    }
    return n;
}

// PEFT's: the matrices of queries and values.
static const char *const *usual_targets(const struct mr_config *config)
{
    static const char *const apart[] = {"q_proj", "v_proj", NULL}, *const joined[] = {"c_attn",
                                                                                      NULL};
    const struct mr_list *block = &mr_arch_of(config)->block;
    bool shares = false;
    for (int i = 0; i < block->count; i++)
        shares |= block->items[i].shares > 1;
    return shares ? joined : apart;
}

static int add_target(struct mr_lora *l, int *n, const char *name, struct mr_error *err)
{
    if (*n == MR_LORA_TARGETS)
        return mr_fail(err, MR_ERR_USAGE, "LoRA has %d targets at most", MR_LORA_TARGETS);
    l->target[*n] = strdup(name);
    return l->target[(*n)++] ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for LoRA's targets");
}

// By their names within a block. PEFT takes the word alone and in no list, and writes names, too.
static int add_all_linear(struct mr_lora *l, const struct mr_config *config, int *n,
                          struct mr_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < mr_tensor_specs(config) && rc == 0; i++) {
        struct mr_tensor_spec t = mr_tensor_spec(config, i);
        if (can_adapt(config, i) && t.layer == 0)
            rc = add_target(l, n, t.item->name, err);
    }
    return rc;
}

static int take_targets(struct mr_lora *l, const struct mr_config *config,
                        const char *const *targets, struct mr_error *err)
{
    int n = 0, rc = 0;
    for (int i = 0; targets[i] && rc == 0; i++)
        rc = strcmp(targets[i], "all-linear") == 0 ? add_all_linear(l, config, &n, err)
                                                   : add_target(l, &n, targets[i], err);
    return rc < 0 || n > 0 ? rc : mr_fail(err, MR_ERR_USAGE, "LoRA has no target");
}

static int allocate(struct mr_lora *l, const struct mr_config *config, bool *used,
                    struct mr_error *err)
{
    size_t all = 0, rank = (size_t)l->rank;
    l->pair = calloc(l->count, sizeof *l->pair);
    if (!l->pair)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu pairs of LoRA", l->count);
    (void)choose(l, config, used, l->pair);
    for (size_t k = 0; k < l->count; k++)
        all += rank * ((size_t)l->pair[k].inputs + (size_t)l->pair[k].outputs);
    l->factors = calloc(all, sizeof *l->factors);
    if (!l->factors)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu parameters of LoRA", all);
    float *at = l->factors;
    for (size_t k = 0; k < l->count; k++) {
        l->pair[k].a = at;
        l->pair[k].b = at + rank * (size_t)l->pair[k].inputs;
        at = l->pair[k].b + rank * (size_t)l->pair[k].outputs;
    }
    return 0;
}

int mr_lora_new(struct mr_lora *lora, const struct mr_config *config, int rank, double alpha,
                const char *const *targets, struct mr_error *err)
{
    bool used[MR_LORA_TARGETS] = {false};
    *lora = (struct mr_lora){.rank = rank, .alpha = alpha};
    if (rank < 1 || rank > MR_LORA_RANKS)
        return mr_fail(err, MR_ERR_USAGE, "LoRA's rank is %d; 1 to %d", rank, MR_LORA_RANKS);
    if (!(alpha > 0 && alpha <= 1e6))
        return mr_fail(err, MR_ERR_USAGE, "LoRA's alpha is %g; above 0, at most 1e6", alpha);
    int rc = take_targets(lora, config, targets ? targets : usual_targets(config), err);
    if (rc == 0) {
        lora->count = choose(lora, config, used, NULL);
        for (int k = 0; lora->target[k] && rc == 0; k++)
            if (!used[k])
                rc = refuse_target(config, lora->target[k], err);
    }
    if (rc == 0)
        rc = allocate(lora, config, used, err);
    if (rc < 0)
        mr_lora_free(lora);
    return rc;
}

void mr_lora_free(struct mr_lora *lora)
{
    for (int k = 0; k < MR_LORA_TARGETS; k++)
        free(lora->target[k]);
    free(lora->pair);
    free(lora->factors);
    *lora = (struct mr_lora){0};
}

const struct mr_lora_pair *mr_lora_of(const struct mr_lora *lora, size_t i, int *share)
{
    for (size_t k = 0; k < lora->count; k++) {
        const struct mr_lora_pair *p = &lora->pair[k];
        for (int s = 0; s < p->shares; s++)
            if (p->tensor + (size_t)s * p->step == i) {
                *share = s;
                return p;
            }
    }
    return NULL;
}

// ---- numbers -----------------------------------------------------------------------------------

// SplitMix64 (Steele, Lea and Flood, 2014): the 24 leading bits are an even number of 0..1.
static float even(uint64_t *state)
{
    uint64_t x = *state += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    x ^= x >> 31;
    return (float)(x >> 40) * 0x1p-24F;
}

void mr_lora_draw(struct mr_lora *lora, uint64_t seed)
{
    uint64_t state = seed;
    for (size_t k = 0; k < lora->count; k++) {
        struct mr_lora_pair *p = &lora->pair[k];
        float most = (float)(1 / sqrt((double)p->inputs));
        for (size_t i = 0; i < (size_t)lora->rank * (size_t)p->inputs; i++)
            p->a[i] = (2 * even(&state) - 1) * most;
        memset(p->b, 0, (size_t)lora->rank * (size_t)p->outputs * sizeof *p->b);
    }
}

uint64_t mr_lora_parameters(const struct mr_lora *lora)
{
    uint64_t lines = 0;
    for (size_t k = 0; k < lora->count; k++)
        lines += (uint64_t)lora->pair[k].inputs + (uint64_t)lora->pair[k].outputs;
    return lines * (uint64_t)lora->rank;
}

float mr_lora_factor(const struct mr_lora *lora)
{
    return (float)(lora->alpha / (lora->root ? sqrt((double)lora->rank) : (double)lora->rank));
}

void mr_lora_add(const struct mr_lora *lora, const struct mr_lora_pair *pair, int output, int input,
                 int n, float *w)
{
    const float factor = mr_lora_factor(lora);
    const float *b = pair->b + (size_t)output * (size_t)lora->rank;
    for (int at = 0; at < n; at += RUN) {
        float sum[RUN] = {0};
        int count = n - at < RUN ? n - at : RUN;
        for (int k = 0; k < lora->rank; k++) {
            const float *a = pair->a + (size_t)k * (size_t)pair->inputs + input + at;
            for (int i = 0; i < count; i++)
                sum[i] += b[k] * a[i];
        }
        for (int i = 0; i < count; i++)
            w[at + i] += factor * sum[i];
    }
}
