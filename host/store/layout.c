// SPDX-License-Identifier: Apache-2.0
#include "store/layout.h"

#include <stdlib.h>

#include "pack/layout.h"
#include "store/params.h"

enum { LANES = 64 };

static int padded(int n, int head)
{
    int unit = head ? head : n;
    return (head ? n / head : 1) * ((unit + LANES - 1) / LANES * LANES);
}

static int head_of(const struct mr_config *c, enum mr_place place)
{
    return mr_place_axis(place) == MR_AXIS_HEADS ? c->head_dim : 0;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static struct mr_store_tensor shape_of(const struct mr_config *c, size_t i)
{
    struct mr_tensor_spec s = mr_tensor_spec(c, i);
    struct mr_store_tensor t = {.vector = s.cols == 0, .across = 1};
    mr_params_shape(c, i, &t.outputs, &t.inputs);
    if (s.item->kind == MR_LINEAR) {
        t.output_head = head_of(c, s.item->to);
        t.input_head = t.vector ? 0 : head_of(c, s.item->from);
    }
    int outputs = padded(t.outputs, t.output_head), inputs = padded(t.inputs, t.input_head);
    t.inputs_resident = !t.vector && inputs <= outputs;
    t.rows = t.vector ? 1 : t.inputs_resident ? inputs : outputs;
    t.cols = t.vector || t.inputs_resident ? outputs : inputs;
    t.count = (size_t)t.rows * (size_t)t.cols;
    t.patches = 1;
    if (!t.vector) {
        t.across = (t.cols + MR_PATCH - 1) / MR_PATCH;
        t.patches = (size_t)((t.rows + MR_PATCH - 1) / MR_PATCH) * (size_t)t.across;
    }
    return t;
}

static void cut(struct mr_store_layout *l, size_t i, size_t *first)
{
    const struct mr_store_tensor *t = &l->tensor[i];
    for (size_t k = 0; k < t->patches; k++) {
        struct mr_store_patch *p = &l->patch[t->patch + k];
        *p = (struct mr_store_patch){.tensor = i, .first = *first, .at = l->bytes};
        p->row = (int)(k / (size_t)t->across) * MR_PATCH;
        p->col = (int)(k % (size_t)t->across) * MR_PATCH;
        p->rows = t->vector ? 1 : least(MR_PATCH, t->rows - p->row);
        p->cols = t->vector ? t->cols : least(MR_PATCH, t->cols - p->col);
        p->count = (size_t)p->rows * (size_t)p->cols;
        uint64_t used = (uint64_t)p->count * 3 * sizeof(float) + MR_PATCH_SEAL;
        p->bytes = (used + MR_PATCH_ALIGN - 1) / MR_PATCH_ALIGN * MR_PATCH_ALIGN;
        l->bytes += p->bytes;
        l->largest = p->bytes > l->largest ? p->bytes : l->largest;
        *first += p->count;
    }
}

// A factor of a pair: its numbers one behind the other.
static struct mr_store_tensor factor_of(const struct mr_lora *lora, size_t i)
{
    const struct mr_lora_pair *p = &lora->pair[i / 2];
    int n = lora->rank * (i % 2 ? p->outputs : p->inputs), all = padded(n, 0);
    return (struct mr_store_tensor){.outputs = n,
                                    .inputs = 1,
                                    .vector = true,
                                    .rows = 1,
                                    .cols = all,
                                    .count = (size_t)all,
                                    .patches = 1,
                                    .across = 1};
}

static int make(struct mr_store_layout *l, const struct mr_config *config,
                const struct mr_lora *lora, struct mr_error *err)
{
    size_t model = mr_tensor_specs(config), n = lora ? 2 * lora->count : model;
    *l = (struct mr_store_layout){
        .config = config, .tensors = n, .units = lora ? n + model : n, .adapter = lora != NULL};
    l->tensor = calloc(l->tensors, sizeof *l->tensor);
    for (size_t i = 0; l->tensor && i < l->tensors; i++) {
        l->tensor[i] = lora ? factor_of(lora, i) : shape_of(config, i);
        l->tensor[i].first = l->elements;
        l->tensor[i].patch = l->patches;
        l->elements += l->tensor[i].count;
        l->patches += l->tensor[i].patches;
    }
    l->patch = l->tensor ? calloc(l->patches, sizeof *l->patch) : NULL;
    if (!l->patch) {
        mr_store_layout_free(l);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a list of %zu tensors", n);
    }
    size_t first = 0;
    for (size_t i = 0; i < l->tensors; i++)
        cut(l, i, &first);
    return 0;
}

int mr_store_layout_make(struct mr_store_layout *l, const struct mr_config *config,
                         struct mr_error *err)
{
    return make(l, config, NULL, err);
}

int mr_store_layout_of_adapter(struct mr_store_layout *l, const struct mr_config *config,
                               const struct mr_lora *lora, struct mr_error *err)
{
    return make(l, config, lora, err);
}

void mr_store_layout_free(struct mr_store_layout *l)
{
    free(l->tensor);
    free(l->patch);
    *l = (struct mr_store_layout){0};
}

size_t mr_store_natural(const struct mr_store_tensor *t, const struct mr_store_patch *p, size_t e)
{
    int row = 0, col = (int)e;
    if (!t->vector) {
        int tile = (int)(e / MR_TILE), in = (int)(e % MR_TILE), wide = p->cols / MR_TILE_COLS;
        row = p->row + tile / wide * MR_TILE_ROWS + in / MR_TILE_COLS;
        col = p->col + tile % wide * MR_TILE_COLS + in % MR_TILE_COLS;
    }
    bool turned = t->vector || t->inputs_resident;
    int output = mr_unpad(turned ? col : row, t->output_head, t->outputs);
    int input = t->vector ? 0 : mr_unpad(turned ? row : col, t->input_head, t->inputs);
    return output < 0 || input < 0 ? SIZE_MAX : (size_t)output * (size_t)t->inputs + (size_t)input;
}

struct mr_store_spot mr_store_spot(const struct mr_store_tensor *t, int output, int input)
{
    int row = t->inputs_resident ? input : output, col = t->inputs_resident ? output : input;
    struct mr_store_spot spot;
    size_t wide = (size_t)t->cols / MR_TILE_COLS;
    mr_store_tile(t, (size_t)row / MR_TILE_ROWS * wide + (size_t)col / MR_TILE_COLS, &spot.patch,
                  &spot.tile);
    spot.patch += t->patch;
    spot.element = (size_t)(row % MR_TILE_ROWS) * MR_TILE_COLS + (size_t)(col % MR_TILE_COLS);
    return spot;
}

size_t mr_store_tiles(const struct mr_store_tensor *t)
{
    return t->vector ? (size_t)t->cols / MR_TILE_COLS : t->count / MR_TILE;
}

void mr_store_tile(const struct mr_store_tensor *t, size_t i, size_t *patch, size_t *inner)
{
    const size_t side = MR_PATCH / MR_TILE_COLS, high = MR_PATCH / MR_TILE_ROWS;
    size_t wide = (size_t)t->cols / MR_TILE_COLS, band = i / wide, col = i % wide;
    size_t at = col / side, left = wide - at * side;
    *patch = band / high * (size_t)t->across + at;
    *inner = band % high * (left < side ? left : side) + col % side;
}

size_t mr_store_tile_size(const struct mr_store_patch *p, size_t k)
{
    size_t left = p->count - k * MR_TILE;
    return left < MR_TILE ? left : MR_TILE;
}
