// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/peft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/heads.h"
#include "checkpoint/safetensors_write.h"
#include "checkpoint/weights.h"
#include "common/file.h"
#include "common/json.h"
#include "common/str.h"

static const char prefix[] = "base_model.model.";

enum factor { FACTOR_A, FACTOR_B };

static const char *const endings[] = {".lora_A.weight", ".lora_B.weight"};

// ---- the configuration -------------------------------------------------------------------------

struct settings {
    const char *path;
    json_t *json;
};

static int refuse(const struct settings *s, const char *key, const char *why, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_UNSUPPORTED, "%s: \"%s\" %s", s->path, key, why);
}

// Set, and neither false, empty, nor "none"?
static bool asks_for(const struct settings *s, const char *key)
{
    const json_t *v = json_object_get(s->json, key);
    if (json_is_string(v))
        return json_string_length(v) > 0 && strcmp(json_string_value(v), "none") != 0;
    return json_is_true(v) || json_array_size(v) > 0 || json_object_size(v) > 0 ||
           (json_is_number(v) && json_number_value(v) != 0);
}

static int check_kind(const struct settings *s, struct mr_error *err)
{
    static const struct {
        const char *key, *why;
    } refused[] = {
        {"use_dora", "is set: DoRA scales columns beside the pair; train with plain LoRA"},
        {"bias", "is not \"none\": the adapter changes biases of the model as well"},
        {"modules_to_save", "names modules that the adapter replaces as a whole"},
        {"rank_pattern", "gives single modules another rank"},
        {"alpha_pattern", "gives single modules another alpha"},
        {"trainable_token_indices", "changes rows of the table of tokens"},
        {"target_parameters", "adapts what is no module"},
        {"lora_bias", "is set: B has a bias"},
    };
    const json_t *kind = json_object_get(s->json, "peft_type");
    if (!json_is_string(kind) || strcmp(json_string_value(kind), "LORA") != 0)
        return refuse(s, "peft_type", "is not \"LORA\", which is the only kind that there is here",
                      err);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (asks_for(s, refused[i].key))
            return refuse(s, refused[i].key, refused[i].why, err);
    return 0;
}

static int number_of(const struct settings *s, const char *key, double least, double most,
                     double usual, double *out, struct mr_error *err)
{
    const json_t *v = json_object_get(s->json, key);
    *out = v ? json_number_value(v) : usual;
    if (v && (!json_is_number(v) || !(*out >= least && *out <= most)))
        return mr_fail(err, MR_ERR_FORMAT, "%s: \"%s\" is no number of %g to %g", s->path, key,
                       least, most);
    return 0;
}

// A list of names, or "all-linear". A string is else a regular expression.
static int targets_of(const struct settings *s, const char **targets, struct mr_error *err)
{
    const json_t *list = json_object_get(s->json, "target_modules");
    size_t n = json_array_size(list);
    if (json_is_string(list) && strcmp(json_string_value(list), "all-linear") == 0) {
        targets[0] = json_string_value(list);
        return 0;
    }
    if (json_is_string(list))
        return refuse(s, "target_modules",
                      "is a regular expression; write the names of modules, or \"all-linear\"",
                      err);
    if (n < 1 || n > MR_LORA_TARGETS)
        return mr_fail(err, MR_ERR_FORMAT, "%s: \"target_modules\" is no list of 1 to %d names",
                       s->path, MR_LORA_TARGETS);
    for (size_t i = 0; i < n; i++) {
        targets[i] = json_string_value(json_array_get(list, i));
        if (!targets[i])
            return mr_fail(err, MR_ERR_FORMAT, "%s: \"target_modules\" has %s where a name belongs",
                           s->path, mr_json_kind(json_array_get(list, i)));
    }
    return 0;
}

static int read_settings(struct mr_lora *l, const struct mr_config *config,
                         const struct settings *s, struct mr_error *err)
{
    const char *targets[MR_LORA_TARGETS + 1] = {NULL};
    double rank, alpha, dropout;
    int rc = check_kind(s, err);
    if (rc == 0)
        rc = number_of(s, "r", 1, MR_LORA_RANKS, 8, &rank, err);
    if (rc == 0)
        rc = number_of(s, "lora_alpha", MR_LORA_ALPHA_LEAST, MR_LORA_ALPHA_MOST, 8, &alpha, err);
    if (rc == 0)
        rc = number_of(s, "lora_dropout", 0, 1, 0, &dropout, err);
    if (rc == 0 && rank != floor(rank))
        rc = mr_fail(err, MR_ERR_FORMAT, "%s: \"r\" is %g, no whole number", s->path, rank);
    if (rc == 0)
        rc = targets_of(s, targets, err);
    if (rc == 0)
        rc = mr_lora_new(l, config, (int)rank, alpha, targets, err);
    if (rc < 0)
        return rc;
    l->root = json_is_true(json_object_get(s->json, "use_rslora"));
    l->dropout = dropout;
    return 0;
}

int mr_peft_read_config(struct mr_lora *lora, const struct mr_config *config, const char *path,
                        char **base, struct mr_error *err)
{
    struct settings s = {.path = path};
    *lora = (struct mr_lora){0};
    *base = NULL;
    int rc = mr_json_load(&s.json, path, err);
    if (rc == 0)
        rc = read_settings(lora, config, &s, err);
    const char *name = json_string_value(json_object_get(s.json, "base_model_name_or_path"));
    if (rc == 0 && name && *name && !(*base = strdup(name))) {
        mr_lora_free(lora);
        rc = mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", path);
    }
    json_decref(s.json);
    return rc;
}

char *mr_peft_config(const struct mr_lora *lora, const struct mr_config *config, const char *base)
{
    struct mr_tensor_spec first = mr_tensor_spec(config, lora->pair[0].tensor);
    json_t *targets = json_array();
    int bad = targets == NULL;
    for (int k = 0; lora->target[k]; k++)
        bad |= json_array_append_new(targets, json_string(lora->target[k])) != 0;
    json_t *json = json_pack(
        "{s:s, s:s, s:o?, s:i, s:o, s:f, s:o, s:b, s:s, s:n, s:b, s:b, s:{}, s:{}, s:b, s:b}",
        "peft_type", "LORA", "task_type", "CAUSAL_LM", "base_model_name_or_path",
        base ? json_string(base) : NULL, "r", lora->rank, "lora_alpha",
        lora->alpha == floor(lora->alpha) ? json_integer((json_int_t)lora->alpha)
                                          : json_real(lora->alpha),
        "lora_dropout", 0.0, "target_modules", targets, "fan_in_fan_out",
        (int)first.item->transposed, "bias", "none", "modules_to_save", "init_lora_weights", 1,
        "inference_mode", 1, "rank_pattern", "alpha_pattern", "use_rslora", (int)lora->root,
        "use_dora", 0);
    char *text = json && !bad ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    return text;
}

// ---- the numbers -------------------------------------------------------------------------------

struct reading {
    struct mr_lora *lora;
    const struct mr_config *config;
    const char *path;
    bool *found; // [count][2]
};

// The pair of a tensor's name, without its ending; -1: none.
static int pair_named(const struct reading *r, const char *name, size_t length)
{
    char module[MR_NAME], own[MR_NAME];
    if (length >= sizeof own)
        return -1;
    memcpy(own, name, length);
    own[length] = 0;
    for (size_t k = 0; k < r->lora->count; k++)
        if (mr_name_is(mr_arch_of(r->config), own,
                       mr_lora_module(r->config, &r->lora->pair[k], module)))
            return (int)k;
    return -1;
}

static int read_factor(struct reading *r, const struct mr_tensor *t, int pair, enum factor factor,
                       struct mr_error *err)
{
    const struct mr_lora_pair *p = &r->lora->pair[pair];
    int rows = factor == FACTOR_A ? r->lora->rank : p->outputs;
    int cols = factor == FACTOR_A ? p->inputs : r->lora->rank;
    float *to = factor == FACTOR_A ? p->a : p->b;
    size_t n = (size_t)rows * (size_t)cols;
    if (t->rank != 2 || t->shape[0] != rows || t->shape[1] != cols)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: tensor %s is not [%d, %d], as the model and the adapter's rank want it",
                       r->path, mr_show(t->name).text, rows, cols);
    if (r->found[2 * pair + (int)factor])
        return mr_fail(err, MR_ERR_FORMAT, "%s: tensor %s occurs twice", r->path,
                       mr_show(t->name).text);
    if (mr_tensor_read_f32(t, 0, n, to) < 0)
        return mr_fail(err, MR_ERR_UNSUPPORTED, "%s: tensor %s has type %s; F32, F16 or BF16",
                       r->path, mr_show(t->name).text, mr_dtype_name(t->dtype));
    for (size_t i = 0; i < n; i++)
        if (!isfinite(to[i]))
            return mr_fail(err, MR_ERR_FORMAT, "%s: element %zu of %s is infinite or NaN", r->path,
                           i, mr_show(t->name).text);
    r->found[2 * pair + (int)factor] = true;
    return 0;
}

static int read_tensor(struct reading *r, const struct mr_tensor *t, struct mr_error *err)
{
    size_t n = strlen(t->name), skip = sizeof prefix - 1;
    for (int f = 0; f < 2; f++) {
        size_t end = strlen(endings[f]);
        if (n <= skip + end || strncmp(t->name, prefix, skip) != 0 ||
            strcmp(t->name + n - end, endings[f]) != 0)
            continue;
        int pair = pair_named(r, t->name + skip, n - skip - end);
        if (pair >= 0)
            return read_factor(r, t, pair, (enum factor)f, err);
    }
    return mr_fail(err, MR_ERR_FORMAT,
                   "%s: tensor %s is of no matrix that the model has and the adapter's "
                   "target_modules name; is it another model's adapter?",
                   r->path, mr_show(t->name).text);
}

static int read_tensors(struct reading *r, const struct mr_weights *w, struct mr_error *err)
{
    char module[MR_NAME];
    int rc = 0;
    for (size_t i = 0; i < w->tensors.count && rc == 0; i++)
        rc = read_tensor(r, &w->tensors.at[i], err);
    for (size_t k = 0; k < 2 * r->lora->count && rc == 0; k++)
        if (!r->found[k])
            rc = mr_fail(err, MR_ERR_FORMAT, "%s: has no %s%s", r->path,
                         mr_lora_module(r->config, &r->lora->pair[k / 2], module), endings[k % 2]);
    return rc;
}

int mr_peft_read_files(struct mr_lora *lora, const struct mr_config *config, const char *settings,
                       const char *weights, bool torch, struct mr_error *err)
{
    struct mr_weights w = {0};
    char *base = NULL;
    int rc = mr_peft_read_config(lora, config, settings, &base, err);
    free(base);
    if (rc < 0)
        return rc;
    struct reading r = {.lora = lora, .config = config, .path = weights};
    if (weights)
        rc = mr_weights_open(&w, torch, weights, err);
    else
        rc = mr_fail(
            err, MR_ERR_IO,
            "%s: there is neither adapter_model.safetensors nor adapter_model.bin beside it",
            settings);
    if (rc == 0 && !(r.found = calloc(2 * lora->count, sizeof *r.found)))
        rc = mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", weights);
    if (rc == 0)
        rc = read_tensors(&r, &w, err);
    if (rc < 0)
        mr_lora_free(lora);
    mr_weights_close(&w);
    free(r.found);
    return rc;
}

// Which of the two forms is there: *path, which the caller frees, or NULL for neither.
static int find_weights(char **path, bool *torch, const char *dir, struct mr_error *err)
{
    static const char *const names[] = {"adapter_model.safetensors", "adapter_model.bin"};
    *path = NULL;
    for (int k = 0; k < 2 && !*path; k++) {
        *path = mr_path_join(dir, names[k], err);
        if (!*path)
            return MR_ERR_MEMORY;
        *torch = k == 1;
        if (!mr_file_exists(*path)) {
            free(*path);
            *path = NULL;
        }
    }
    return 0;
}

int mr_peft_read(struct mr_lora *lora, const struct mr_config *config, const char *dir,
                 struct mr_error *err)
{
    char *settings = mr_path_join(dir, MR_PEFT_CONFIG, err), *weights = NULL;
    bool torch = false;
    *lora = (struct mr_lora){0};
    if (!settings)
        return MR_ERR_MEMORY;
    int rc =
        mr_file_exists(settings)
            ? find_weights(&weights, &torch, dir, err)
            : mr_fail(err, MR_ERR_IO,
                      "%s: has no " MR_PEFT_CONFIG "; give the directory of a PEFT adapter", dir);
    if (rc == 0)
        rc = mr_peft_read_files(lora, config, settings, weights, torch, err);
    free(settings);
    free(weights);
    return rc;
}

// ---- writing -----------------------------------------------------------------------------------

struct writing {
    const struct mr_lora *lora;
    const struct mr_config *config;
    const char *base;
    const struct mr_directory *d;
};

static int put_config(void *arg, FILE *f, struct mr_error *err)
{
    const struct writing *w = arg;
    char *text = mr_peft_config(w->lora, w->config, w->base);
    int rc = text ? mr_directory_put(w->d, f, text, strlen(text), err)
                  : mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", w->d->dir);
    free(text);
    return rc;
}

static int put_factors(void *arg, FILE *f, struct mr_error *err)
{
    const struct writing *w = arg;
    struct mr_safetensors_header header;
    char module[MR_NAME], name[MR_NAME + 64];
    size_t size, rank = (size_t)w->lora->rank;
    mr_safetensors_begin(&header);
    for (size_t k = 0; k < 2 * w->lora->count; k++) {
        const struct mr_lora_pair *p = &w->lora->pair[k / 2];
        int rows = k % 2 ? p->outputs : w->lora->rank, cols = k % 2 ? w->lora->rank : p->inputs;
        (void)snprintf(name, sizeof name, "%s%s%s", prefix, mr_lora_module(w->config, p, module),
                       endings[k % 2]);
        mr_safetensors_add(&header, name, "F32", rows, cols,
                           (size_t)rows * (size_t)cols * sizeof(float));
    }
    char *text = mr_safetensors_end(&header, &size);
    int rc = text ? mr_directory_put(w->d, f, text, size, err)
                  : mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", w->d->dir);
    free(text);
    for (size_t k = 0; k < w->lora->count && rc == 0; k++) {
        const struct mr_lora_pair *p = &w->lora->pair[k];
        rc = mr_directory_put(w->d, f, p->a, rank * (size_t)p->inputs * sizeof(float), err);
        if (rc == 0)
            rc = mr_directory_put(w->d, f, p->b, rank * (size_t)p->outputs * sizeof(float), err);
    }
    return rc;
}

int mr_peft_write(const struct mr_lora *lora, const struct mr_config *config, const char *base,
                  const struct mr_directory *d, struct mr_error *err)
{
    struct writing w = {lora, config, base, d};
    int rc = mr_directory_file(d, MR_PEFT_CONFIG, put_config, &w, err);
    return rc < 0 ? rc : mr_directory_file(d, "adapter_model.safetensors", put_factors, &w, err);
}
