// SPDX-License-Identifier: Apache-2.0
#include "store/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/directory.h"
#include "checkpoint/tensor.h"
#include "checkpoint/peft.h"
#include "checkpoint/safetensors_write.h"
#include "checkpoint/synthetic.h"
#include "common/file.h"
#include "store/adapter.h"
#include "store/carried.h"
#include "store/params.h"

// ---- from a checkpoint -------------------------------------------------------------------------

struct import {
    struct mr_store *s;
    const float *natural; // of the tensor
};

static int import_patch(void *arg, size_t i, int worker, struct mr_error *err)
{
    const struct import *in = arg;
    const struct mr_store_patch *p = &in->s->layout.patch[i];
    const struct mr_store_tensor *t = &in->s->layout.tensor[p->tensor];
    struct mr_store_writer w;
    (void)worker;
    int rc = 0;
    mr_store_write_begin(&w, in->s, i, 0, mr_store_now(in->s->header));
    for (size_t e = 0, n; e < p->count && rc == 0; e += n) {
        float tile[3 * MR_TILE] = {0};
        n = mr_store_tile_size(p, e / MR_TILE);
        for (size_t k = 0; k < n; k++) {
            size_t at = mr_store_natural(t, p, e + k);
            tile[k] = at == SIZE_MAX ? 0.0F : in->natural[at];
        }
        mr_store_write_sum(&w, tile, 3 * n * sizeof *tile, NULL);
        rc = mr_store_write_put(&w, tile, 3 * n * sizeof *tile, err);
    }
    return mr_store_write_end(&w, rc, err);
}

// A tensor of the classifier, if the checkpoint has it for as many labels of whole texts.
static const struct mr_tensor *of_top(const struct mr_tensor *t, const struct mr_checkpoint *c,
                                      size_t n)
{
    return t && t->count == n && !mr_checkpoint_config(c)->by_token ? t : NULL;
}

// As transformers draws a head: deviations of 0.02, biases of 0.
static void draw(float *natural, size_t n, bool vector, uint64_t seed)
{
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du;
    state |= state == 0;
    for (int i = 0; i < 16; i++)
        (void)mr_synthetic_normal(&state);
    for (size_t k = 0; k < n; k++)
        natural[k] = vector ? 0 : 0.02F * mr_synthetic_normal(&state);
}

static int import_tensor(struct mr_store *s, const struct mr_checkpoint *checkpoint, size_t i,
                         const struct mr_store_options *options, struct mr_error *err)
{
    const struct mr_store_tensor *t = &s->layout.tensor[i];
    struct mr_tensor_spec spec = mr_tensor_spec(&s->config, i);
    size_t n = (size_t)t->outputs * (size_t)t->inputs;
    int layer = spec.layer < 0 ? s->config.n_layer : spec.layer;
    const struct mr_tensor *from = mr_checkpoint_item(checkpoint, layer, spec.item, spec.part);
    float *natural = malloc(n * sizeof *natural);
    bool top = spec.item->kind == MR_LINEAR && mr_item_on_host(mr_arch_of(&s->config), spec.item);
    char name[MR_NAME];
    int rc = 0;
    if (top)
        from = of_top(from, checkpoint, n);
    if (!natural)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the %zu weights of %s", n,
                       mr_store_tensor_name(s, i, name));
    if (!from && top) {
        draw(natural, n, spec.cols == 0, options->seed + ((uint64_t)i << 32));
        if (options->drawn)
            *options->drawn |= spec.item->to == MR_LABELS ? MR_DRAWN_CLASSIFIER : MR_DRAWN_POOLER;
    } else {
        (void)mr_tensor_read_f32(from, 0, n, natural); // of a checkpoint, which has all others
    }
    for (size_t k = 0; k < n && rc == 0; k++)
        if (!isfinite(natural[k]))
            rc = mr_fail(err, MR_ERR_FORMAT,
                         "%s: element %zu is infinite or NaN; the checkpoint is damaged or its "
                         "training diverged",
                         mr_store_tensor_name(s, i, name), k);
    if (rc == 0)
        rc = mr_store_tasks(s->pool, t->patch, t->patches, import_patch,
                            &(struct import){s, natural}, err);
    if (rc == 0 && from)
        mr_tensor_release(from, 0, n);
    free(natural);
    return rc;
}

int mr_store_import(struct mr_store *s, const struct mr_checkpoint *checkpoint,
                    const struct mr_store_options *options, struct mr_error *err)
{
    const volatile sig_atomic_t *stop = options->stop;
    int rc = 0;
    if (options->drawn)
        *options->drawn = 0;
    for (size_t i = 0; i < s->layout.tensors && rc == 0; i++) {
        if (stop && *stop)
            return mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
        rc = import_tensor(s, checkpoint, i, options, err);
    }
    return rc;
}

int mr_store_import_adapter(struct mr_store *s, struct mr_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < s->layout.tensors && rc == 0; i++) {
        const struct mr_store_tensor *t = &s->layout.tensor[i];
        const struct mr_lora_pair *pair = &s->adapter->lora.pair[i / 2];
        struct import in = {s, i % 2 ? pair->b : pair->a};
        rc = mr_store_tasks(s->pool, t->patch, t->patches, import_patch, &in, err);
    }
    return rc;
}

// ---- out of it ---------------------------------------------------------------------------------

struct reading {
    const struct mr_store *s;
    enum mr_store_part part;
    float *out;
    size_t first; // patch of the tensor
};

static void read_patch(void *arg, int i, int worker)
{
    const struct reading *r = arg;
    const struct mr_store_patch *p = &r->s->model->patch[r->first + (size_t)i];
    const struct mr_store_tensor *t = &r->s->model->tensor[p->tensor];
    (void)worker;
    const int32_t *sum = mr_store_sums(r->s, p->tensor);
    int unit = mr_store_unit(r->s, p->tensor);
    uint32_t side = r->s->header->side;
    for (size_t e = 0, n; e < p->count; e += n) {
        float buffer[MR_TILE];
        const float *tile = r->part == MR_MASTER
                                ? mr_store_weights(r->s, p, e / MR_TILE, side, buffer)
                            : r->s->adapter || r->part == MR_GRADIENT
                                ? NULL
                                : mr_store_tile_at(r->s, p, e / MR_TILE, side);
        n = mr_store_tile_size(p, e / MR_TILE);
        for (size_t k = 0; k < n; k++) {
            size_t at = mr_store_natural(t, p, e + k);
            if (at == SIZE_MAX)
                continue;
            if (r->part == MR_GRADIENT)
                r->out[at] = sum ? (float)ldexp((double)sum[p->first - t->first + e + k], unit) : 0;
            else
                r->out[at] = tile ? tile[(size_t)r->part * n + k] : 0;
        }
    }
}

void mr_store_read(const struct mr_store *s, size_t i, enum mr_store_part part, float *out)
{
    const struct mr_store_tensor *t = &s->model->tensor[i];
    struct reading r = {s, part, out, t->patch};
    mr_pool_run(s->pool, (int)t->patches, read_patch, &r, true);
}

void mr_store_row(const struct mr_store *s, size_t i, int row, float *out)
{
    const struct mr_store_tensor *t = &s->layout.tensor[i];
    if (s->adapter) {
        mr_adapter_row(s->adapter, i, row, out);
        return;
    }
    for (int k = 0; k < t->inputs; k++) {
        struct mr_store_spot spot = mr_store_spot(t, row, k);
        out[k] = mr_store_tile_at(s, &s->layout.patch[spot.patch], spot.tile,
                                  s->header->side)[spot.element];
    }
}

// ---- to a directory ----------------------------------------------------------------------------

struct export
{
    const struct mr_store *s;
    const struct mr_directory *d;
    enum mr_dtype dtype;
    struct mr_file file; // one that is carried along
};

static const char *config_dtype(enum mr_dtype dtype)
{
    return dtype == MR_DTYPE_F32 ? "float32" : dtype == MR_DTYPE_F16 ? "float16" : "bfloat16";
}

static int put_carried(void *arg, FILE *f, struct mr_error *err)
{
    const struct export *x = arg;
    return mr_directory_put(x->d, f, x->file.data, x->file.size, err);
}

static int put_config(void *arg, FILE *f, struct mr_error *err)
{
    const struct export *x = arg;
    char *text;
    int rc =
        mr_config_as_trained(&text, (const char *)x->file.data, x->file.size,
                             config_dtype(x->dtype), mr_arch_of(&x->s->config), x->d->dir, err);
    if (rc == 0)
        rc = mr_directory_put(x->d, f, text, strlen(text), err);
    free(text);
    return rc;
}

static size_t element_bytes(enum mr_dtype dtype)
{
    return dtype == MR_DTYPE_F32 ? 4 : 2;
}

static int put_header(const struct export *x, FILE *f, struct mr_error *err)
{
    const struct mr_store_layout *l = x->s->model;
    struct mr_safetensors_header header;
    size_t size;
    mr_safetensors_begin(&header);
    for (size_t i = 0; i < l->tensors; i++) {
        struct mr_tensor_spec t = mr_tensor_spec(&x->s->config, i);
        struct mr_file_tensor whole = mr_file_tensor(&t);
        char name[MR_NAME];
        size_t n = whole.lines * whole.run * (size_t)whole.shares;
        if (t.item->share == 0)
            mr_safetensors_add(&header, mr_store_tensor_name(x->s, i, name),
                               mr_dtype_name(x->dtype), whole.rows, whole.cols,
                               n * element_bytes(x->dtype));
    }
    char *text = mr_safetensors_end(&header, &size);
    int rc = text ? mr_directory_put(x->d, f, text, size, err)
                  : mr_fail(err, MR_ERR_MEMORY, "%s: no memory for the header", x->d->dir);
    free(text);
    return rc;
}

int mr_store_read_file(const struct mr_store *s, size_t i, enum mr_store_part part, float *out,
                       struct mr_error *err)
{
    struct mr_tensor_spec t = mr_tensor_spec(&s->config, i);
    struct mr_file_tensor whole = mr_file_tensor(&t);
    size_t n = whole.lines * whole.run;
    float *natural = malloc(n * sizeof *natural), *turned = malloc(n * sizeof *turned);
    char name[MR_NAME];
    int rc = natural && turned ? 0
                               : mr_fail(err, MR_ERR_MEMORY, "no memory for the %zu elements of %s",
                                         n, mr_store_tensor_name(s, i, name));
    for (int k = 0; k < whole.shares && rc == 0; k++) {
        size_t tensor = i + (size_t)k * whole.step;
        mr_store_read(s, tensor, part, natural);
        mr_params_turn(&s->config, tensor, natural, turned);
        for (size_t line = 0; line < whole.lines; line++)
            memcpy(out + (line * (size_t)whole.shares + (size_t)k) * whole.run,
                   turned + line * whole.run, whole.run * sizeof *out);
    }
    free(natural);
    free(turned);
    return rc;
}

static int put_tensor(const struct export *x, FILE *f, size_t i, struct mr_error *err)
{
    struct mr_tensor_spec t = mr_tensor_spec(&x->s->config, i);
    struct mr_file_tensor whole = mr_file_tensor(&t);
    if (t.item->share > 0)
        return 0; // went with the first
    size_t n = whole.lines * whole.run * (size_t)whole.shares;
    float *all = malloc(n * sizeof *all), *narrow = malloc(n * sizeof *narrow);
    char name[MR_NAME];
    int rc = all && narrow ? mr_store_read_file(x->s, i, MR_MASTER, all, err)
                           : mr_fail(err, MR_ERR_MEMORY, "no memory for the %zu weights of %s", n,
                                     mr_store_tensor_name(x->s, i, name));
    if (rc == 0 && mr_narrow(x->dtype, all, n, narrow) < n)
        rc = mr_fail(err, MR_ERR_FIT, "%s has a weight beyond %s; export as fp32 or bf16",
                     mr_store_tensor_name(x->s, i, name), mr_dtype_name(x->dtype));
    if (rc == 0)
        rc = mr_directory_put(x->d, f, narrow, n * element_bytes(x->dtype), err);
    free(all);
    free(narrow);
    return rc;
}

static int put_weights(void *arg, FILE *f, struct mr_error *err)
{
    const struct export *x = arg;
    int rc = put_header(x, f, err);
    for (size_t i = 0; i < x->s->model->tensors && rc == 0; i++)
        rc = put_tensor(x, f, i, err);
    return rc;
}

static int export_carried(struct export *x, int i, struct mr_error *err)
{
    const char *name = mr_store_carried_name(&x->s->config, i);
    char *path = mr_path_join(x->s->dir, name, err);
    int rc = path ? mr_file_map(&x->file, path, err) : MR_ERR_MEMORY;
    if (rc == 0)
        rc = mr_directory_file(x->d, name, i == 0 ? put_config : put_carried, x, err);
    mr_file_unmap(&x->file);
    free(path);
    return rc;
}

int mr_store_export(const struct mr_store *s, const char *dir, enum mr_dtype dtype,
                    const volatile sig_atomic_t *stop, struct mr_error *err)
{
    if (s->adapter && !s->adapter->base)
        return mr_fail(err, MR_ERR_USAGE, "%s: an adapter without its model", mr_store_where(s));
    if (!s->dir || (dtype != MR_DTYPE_F32 && dtype != MR_DTYPE_F16 && dtype != MR_DTYPE_BF16))
        return mr_fail(err, MR_ERR_USAGE, "%s: a state is exported from a directory, as %s", dir,
                       "fp32, bf16 or fp16");
    struct mr_directory d;
    int rc = mr_directory_open(&d, dir, stop, err);
    if (rc < 0)
        return rc;
    struct export x = {.s = s, .d = &d, .dtype = dtype};
    for (int i = 0; i < MR_STORE_CARRIED && rc == 0; i++)
        if (s->header->carried[i].size > 0)
            rc = export_carried(&x, i, err);
    if (rc == 0)
        rc = mr_directory_file(&d, "model.safetensors", put_weights, &x, err);
    return mr_directory_end(&d, rc, err);
}

int mr_store_export_adapter(const struct mr_store *s, const char *dir,
                            const volatile sig_atomic_t *stop, struct mr_error *err)
{
    struct mr_directory d;
    if (!s->adapter)
        return mr_fail(err, MR_ERR_USAGE, "%s: is the state of a whole model, not of an adapter",
                       mr_store_where(s));
    int rc = mr_directory_open(&d, dir, stop, err);
    if (rc < 0)
        return rc;
    rc = mr_peft_write(&s->adapter->lora, &s->config, s->adapter->base_name, &d, err);
    return mr_directory_end(&d, rc, err);
}
