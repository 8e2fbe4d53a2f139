// SPDX-License-Identifier: Apache-2.0
#include "store/adapter.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pack/layout.h"
#include "store/choice.h"
#include "store/header.h"
#include "store/origin.h"

// ---- the model below ---------------------------------------------------------------------------

static int find_pairs(struct mr_adapter *a, struct mr_error *err)
{
    size_t n = a->layout.tensors, all = 0;
    a->tensor = calloc(n, sizeof *a->tensor);
    if (!a->tensor)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the adapter of %zu tensors", n);
    for (size_t i = 0; i < n; i++) {
        struct mr_adapted *t = &a->tensor[i];
        t->pair = mr_lora_of(&a->lora, i, &t->share);
        t->sums = all;
        all += t->pair ? a->layout.tensor[i].count : 0;
    }
    a->sums_bytes = all * sizeof *a->sums;
    void *sums = mmap(NULL, a->sums_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sums == MAP_FAILED)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu bytes of gradients", a->sums_bytes);
    a->sums = sums;
    return 0;
}

int mr_adapter_new(struct mr_adapter **adapter, const struct mr_config *config,
                   struct mr_lora *lora, char *base_name, struct mr_error *err)
{
    struct mr_adapter *a = *adapter = calloc(1, sizeof *a);
    if (!a) {
        mr_lora_free(lora);
        free(base_name);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for an adapter");
    }
    a->lora = *lora;
    a->base_name = base_name;
    *lora = (struct mr_lora){0};
    int rc = mr_store_layout_make(&a->layout, config, err);
    if (rc == 0)
        rc = find_pairs(a, err);
    if (rc < 0) {
        mr_adapter_free(a);
        *adapter = NULL;
    }
    return rc;
}

void mr_adapter_free(struct mr_adapter *a)
{
    if (!a)
        return;
    if (a->sums)
        (void)munmap(a->sums, a->sums_bytes); // cannot fail
    mr_checkpoint_close(a->base);
    mr_store_layout_free(&a->layout);
    mr_lora_free(&a->lora);
    free(a->base_name);
    free(a->tensor);
    free(a);
}

int mr_adapter_open_base(struct mr_adapter *a, const struct mr_config *config, const char *dir,
                         uint32_t origin, struct mr_error *err)
{
    uint32_t is = 0;
    int rc = mr_checkpoint_open(&a->base, dir, MR_DECODER, NULL, err);
    if (rc < 0)
        return mr_fail_in(err, "the model of the adapter's state");
    struct mr_config own = *mr_checkpoint_config(a->base);
    own.n_positions = config->n_positions;
    if (mr_store_model(&own) != mr_store_model(config))
        return mr_fail(err, MR_ERR_FIT, "%s: is another model than the adapter's state is of", dir);
    rc = mr_store_origin(&is, a->base, err);
    if (rc == 0 && origin != 0 && is != origin)
        rc = mr_fail(err, MR_ERR_FIT,
                     "%s: has other weights than the model that the adapter's state began from; "
                     "name that one, or another state",
                     dir);
    for (size_t i = 0; i < a->layout.tensors && rc == 0; i++) {
        struct mr_tensor_spec t = mr_tensor_spec(&own, i);
        int layer = t.layer < 0 ? own.n_layer : t.layer;
        a->tensor[i].from = mr_checkpoint_item(a->base, layer, t.item, t.part);
    }
    return rc;
}

void mr_adapter_choose(const struct mr_adapter *a, uint8_t *choice)
{
    mr_choose_pairs(choice, a->layout.config, &a->lora);
}

int32_t *mr_adapter_sums(const struct mr_adapter *a, size_t i)
{
    return a->tensor[i].pair ? a->sums + a->tensor[i].sums : NULL;
}

// ---- weights -----------------------------------------------------------------------------------

// `n` weights of an output from an input on, with their pair's part.
static void read_run(const struct mr_adapter *a, size_t i, int output, int input, int n, float *out)
{
    const struct mr_adapted *t = &a->tensor[i];
    const struct mr_store_tensor *shape = &a->layout.tensor[i];
    size_t at = (size_t)output * (size_t)shape->inputs + (size_t)input;
    (void)mr_tensor_read_f32(t->from, at, (size_t)n, out); // of a type and size that were checked
    if (t->pair)
        mr_lora_add(&a->lora, t->pair, t->share * shape->outputs + output, input, n, out);
}

// How many of `most` padded places from `at` on are weights one behind the other, and the first.
static int run_of(int at, int most, int head, int all, int *first)
{
    int n = 0;
    *first = mr_unpad(at, head, all);
    while (*first >= 0 && n < most && mr_unpad(at + n, head, all) == *first + n)
        n++;
    return n;
}

static void vector_tile(const struct mr_adapter *a, const struct mr_store_patch *p, size_t k,
                        float *out)
{
    const struct mr_store_tensor *t = &a->layout.tensor[p->tensor];
    size_t n = mr_store_tile_size(p, k);
    memset(out, 0, n * sizeof *out);
    for (size_t e = 0; e < n; e += MR_TILE_COLS) {
        int first, at = (int)(k * MR_TILE + e);
        int run = run_of(at, MR_TILE_COLS, t->output_head, t->outputs, &first);
        if (run > 0)
            (void)mr_tensor_read_f32(a->tensor[p->tensor].from, (size_t)first, (size_t)run,
                                     out + e);
    }
}

void mr_adapter_tile(const struct mr_adapter *a, const struct mr_store_patch *p, size_t k,
                     float *out)
{
    const struct mr_store_tensor *t = &a->layout.tensor[p->tensor];
    if (t->vector) {
        vector_tile(a, p, k, out);
        return;
    }
    bool turned = t->inputs_resident; // rows stand for inputs
    int wide = p->cols / MR_TILE_COLS, output, input;
    int row = p->row + (int)k / wide * MR_TILE_ROWS, col = p->col + (int)k % wide * MR_TILE_COLS;
    int outputs = run_of(turned ? col : row, turned ? MR_TILE_COLS : MR_TILE_ROWS, t->output_head,
                         t->outputs, &output);
    int inputs = run_of(turned ? row : col, turned ? MR_TILE_ROWS : MR_TILE_COLS, t->input_head,
                        t->inputs, &input);
    memset(out, 0, MR_TILE * sizeof *out);
    for (int o = 0; o < outputs && inputs > 0; o++) {
        float run[MR_TILE_COLS];
        read_run(a, p->tensor, output + o, input, inputs, run);
        for (int i = 0; i < inputs; i++)
            out[turned ? i * MR_TILE_COLS + o : o * MR_TILE_COLS + i] = run[i];
    }
}

void mr_adapter_row(const struct mr_adapter *a, size_t i, int row, float *out)
{
    const struct mr_store_tensor *t = &a->layout.tensor[i];
    size_t n = (size_t)t->inputs;
    (void)mr_tensor_read_f32(a->tensor[i].from, (size_t)row * n, n, out);
}
