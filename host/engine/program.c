// SPDX-License-Identifier: Apache-2.0
#include "engine/program.h"

#include <stdlib.h>

#include "cmodel/num.h"
#include "common/error.h"
#include "engine/depend.h"

// ---- places ------------------------------------------------------------------------------------

static bool in_qkv(enum mr_place place)
{
    return place == MR_Q || place == MR_K || place == MR_V;
}

static bool in_activation(enum mr_place place)
{
    return place == MR_X || place == MR_ATTENTION || place == MR_HIDDEN;
}

struct mr_program_places mr_program_places(const struct mr_config *c)
{
    struct mr_dims d = mr_dims_of(c);
    struct mr_program_places p = {0};
    bool placed[MR_PLACES] = {false};
    int slots = 0;
    for (int layer = c->n_layer - 1; layer <= c->n_layer; layer++) {
        const struct mr_list *list = mr_items_of(c, layer);
        for (int i = 0; i < list->count; i++) {
            enum mr_place to = list->items[i].to;
            int length = mr_axis_padded(&d, mr_place_axis(to));
            if (placed[to])
                continue;
            placed[to] = true;
            p.base[to] = in_qkv(to) ? p.qkv_words : in_activation(to) ? p.act_words : 0;
            p.slot[to] = in_activation(to) ? slots++ : 0;
            p.qkv_words += in_qkv(to) ? length / 64 : 0;
            p.act_words += in_activation(to) ? length / 32 : 0;
        }
    }
    return p;
}

// ---- commands ----------------------------------------------------------------------------------

struct builder {
    struct mr_program *p;
    const struct mr_config *c;
    struct mr_dims d;
    struct mr_program_places places;
    struct mr_depend *depend;
    enum mr_format layers;
    const struct mr_program_stage *stage;
    int stream;  // items of its weights so far
    bool loaded; // the prefix maxima of this block
    int rc;      // first failure
    struct mr_error *err;
};

static unsigned bit(int memory)
{
    return 1u << memory;
}

static unsigned place(enum mr_place place)
{
    return bit(MR_MEM_PLACES + (int)place);
}

// Commands are appended to a program whose array was allocated large enough by the builder.
static struct mr_command *add(struct builder *b, unsigned op, unsigned reads, unsigned writes)
{
    struct mr_command *c = &b->p->cmds[b->p->count++];
    *c = (struct mr_command){{0}};
    mr_command_set(c, MR_F_CMD_OPCODE, op);
    if (b->rc == 0)
        b->rc = mr_depend_note(b->depend, b->p->cmds, b->p->count - 1, reads, writes, b->err);
    return c;
}

// Without semaphores: the ring's space holds the reader back.
static void stream_tiles(struct builder *b, const struct mr_stream_item *it)
{
    struct mr_command *c = &b->p->cmds[b->p->count++];
    *c = (struct mr_command){{0}};
    mr_command_set(c, MR_F_CMD_OPCODE, MR_OP_STREAM_TILES);
    mr_command_set(c, MR_F_STREAM_TILES_KBLOCKS, (uint32_t)it->k / 32);
    mr_command_set(c, MR_F_STREAM_TILES_FP4, it->format == MR_FORMAT_MXFP4);
    mr_command_set(c, MR_F_STREAM_TILES_BIAS, it->bias);
    mr_command_set(c, MR_F_STREAM_TILES_COLS, (uint32_t)it->cols);
}

static void load_rows(struct builder *b)
{
    const struct mr_program *p = b->p;
    int shift = b->stage->shift;
    struct mr_command *c = add(b, MR_OP_LOAD_ROWS, 0, bit(MR_MEM_ROWS) | place(MR_RESIDUAL));
    mr_command_set(c, MR_F_LOAD_ROWS_TABLE_OFF, (uint32_t)(p->table_off + shift));
    mr_command_set(c, MR_F_LOAD_ROWS_ROT_OFF, (uint32_t)(p->rot_off + shift));
    mr_command_set(c, MR_F_LOAD_ROWS_RES_OFF, shift ? 0 : (uint32_t)p->res_off);
    mr_command_set(c, MR_F_LOAD_ROWS_RES_BEATS, (uint32_t)p->res_beats);
    mr_command_set(c, MR_F_LOAD_ROWS_ROT_BEATS, (uint32_t)p->rot_beats);
}

static void save_rows(struct builder *b)
{
    struct mr_command *c = add(b, MR_OP_STORE_RES, bit(MR_MEM_ROWS) | place(MR_RESIDUAL), 0);
    mr_command_set(c, MR_F_STORE_RES_BEATS, (uint32_t)b->p->res_beats);
}

// to_end: those over whole texts, from where STORE_KV has put them.
static void pm_load(struct builder *b, int layer, bool to_end)
{
    unsigned reads = bit(MR_MEM_ROWS) | (to_end ? bit(MR_MEM_KV) : 0);
    struct mr_command *c = add(b, MR_OP_PM_LOAD, reads, bit(MR_MEM_MAXIMA));
    mr_command_set(c, MR_F_PM_LOAD_LAYER, (uint32_t)layer);
    mr_command_set(c, MR_F_PM_LOAD_WBEATS, (uint32_t)b->d.w / 64);
    mr_command_set(c, MR_F_PM_LOAD_TO_END, to_end);
}

// Once a block, before the first command that waits for another: it runs ahead.
static void load_maxima(struct builder *b, int layer)
{
    if (b->loaded || layer < 0 || layer == b->c->n_layer)
        return;
    pm_load(b, layer, false);
    b->loaded = true;
}

static void norm(struct builder *b, int layer, const struct mr_item *item)
{
    struct mr_ln_const k = mr_ln_consts(b->c->n_embd, b->c->layer_norm_epsilon);
    struct mr_command *c = add(b, MR_OP_STREAM_VEC, 0, bit(MR_MEM_VECTORS));
    mr_command_set(c, MR_F_STREAM_VEC_D, (uint32_t)b->d.d);
    load_maxima(b, layer);
    c = add(b, MR_OP_LAYERNORM, bit(MR_MEM_ROWS) | bit(MR_MEM_VECTORS) | place(item->from),
            place(item->to) | (item->back ? place(item->from) : 0));
    mr_command_set(c, MR_F_LAYERNORM_DST_BASE, (uint32_t)b->places.base[item->to]);
    mr_command_set(c, MR_F_LAYERNORM_DBLOCKS, (uint32_t)b->d.d / 32);
    mr_command_set(c, MR_F_LAYERNORM_N, (uint32_t)k.n);
    mr_command_set(c, MR_F_LAYERNORM_DST_SLOT, (uint32_t)b->places.slot[item->to]);
    mr_command_set(c, MR_F_LAYERNORM_LOGIT_ROWS, layer == b->c->n_layer);
    mr_command_set(c, MR_F_LAYERNORM_BACK, item->back);
    mr_command_set(c, MR_F_LAYERNORM_INV_N, mr_bits(k.inv_n));
    mr_command_set(c, MR_F_LAYERNORM_INV_N2, mr_bits(k.inv_n2));
    mr_command_set(c, MR_F_LAYERNORM_EPS, mr_bits(k.eps));
}

static void store_kv(struct builder *b, int layer, enum mr_place from)
{
    unsigned reads = bit(MR_MEM_ROWS) | place(from);
    struct mr_command *c =
        add(b, MR_OP_STORE_KV, reads | (from == MR_V ? bit(MR_MEM_MAXIMA) : 0), bit(MR_MEM_KV));
    mr_command_set(c, MR_F_STORE_KV_LAYER, (uint32_t)layer);
    mr_command_set(c, MR_F_STORE_KV_SRC_BASE, (uint32_t)b->places.base[from]);
    mr_command_set(c, MR_F_STORE_KV_WBEATS, (uint32_t)b->d.w / 64);
    mr_command_set(c, MR_F_STORE_KV_IS_V, from == MR_V);
}

static void attend(struct builder *b, int layer, const struct mr_item *item)
{
    float scale = (float)(1.4426950408889634 / mr_attention_root(b->c, layer)); // log2(e) / root
    unsigned reads = bit(MR_MEM_ROWS) | bit(MR_MEM_MAXIMA) | bit(MR_MEM_KV) | place(item->from);
    load_maxima(b, layer);
    if (mr_arch_of(b->c)->encoder)
        pm_load(b, layer, true);
    struct mr_command *c = add(b, MR_OP_ATTEND, reads, place(item->to));
    mr_command_set(c, MR_F_ATTEND_LAYER, (uint32_t)layer);
    mr_command_set(c, MR_F_ATTEND_HEADS, (uint32_t)b->c->n_head);
    mr_command_set(c, MR_F_ATTEND_HEAD_BEATS, (uint32_t)b->d.head_lanes / 64);
    mr_command_set(c, MR_F_ATTEND_SCALE, mr_bits(scale));
    mr_command_set(c, MR_F_ATTEND_Q_BASE, (uint32_t)b->places.base[item->from]);
    mr_command_set(c, MR_F_ATTEND_DST_BASE, (uint32_t)b->places.base[item->to]);
    mr_command_set(c, MR_F_ATTEND_DST_SLOT, (uint32_t)b->places.slot[item->to]);
}

static int destination(enum mr_place to)
{
    return to == MR_RESULT     ? MR_DST_RESULT
           : to == MR_RESIDUAL ? MR_DST_RES
           : in_qkv(to)        ? MR_DST_QKV
                               : MR_DST_ACT;
}

// Is a LayerNorm the next item that touches the residual? Behind a block comes another, or the
// tail, and both begin with the same kind of item in this respect.
static bool norm_follows(const struct mr_list *list, int i)
{
    for (int k = 1; k <= list->count; k++) {
        const struct mr_item *next = &list->items[(i + k) % list->count];
        if (next->to == MR_RESIDUAL)
            return false;
        if (next->kind == MR_NORM)
            return true;
    }
    return false;
}

static void matrix(struct builder *b, const struct mr_stream_item *it)
{
    const struct mr_item *item = it->item;
    unsigned reads = bit(MR_MEM_ROWS) | place(item->from), writes = place(item->to);
    if (item->to == MR_RESIDUAL)
        reads |= writes;
    if (item->to == MR_V) { // with the prefix maxima, which it carries on
        reads |= bit(MR_MEM_MAXIMA);
        writes |= bit(MR_MEM_MAXIMA);
    }
    load_maxima(b, it->layer);
    stream_tiles(b, it);
    struct mr_command *c = add(b, MR_OP_MATMUL, reads, writes);
    mr_command_set(c, MR_F_MATMUL_SRC_BASE, (uint32_t)b->places.base[item->from]);
    mr_command_set(c, MR_F_MATMUL_SRC_SLOT, (uint32_t)b->places.slot[item->from]);
    mr_command_set(c, MR_F_MATMUL_KBLOCKS, (uint32_t)it->k / 32);
    mr_command_set(c, MR_F_MATMUL_COLS, (uint32_t)it->cols);
    mr_command_set(c, MR_F_MATMUL_DST, (uint32_t)destination(item->to));
    mr_command_set(c, MR_F_MATMUL_DST_BASE, (uint32_t)b->places.base[item->to]);
    mr_command_set(c, MR_F_MATMUL_DST_SLOT, (uint32_t)b->places.slot[item->to]);
    mr_command_set(c, MR_F_MATMUL_BIAS, it->bias);
    mr_command_set(c, MR_F_MATMUL_FP4, it->format == MR_FORMAT_MXFP4);
    mr_command_set(c, MR_F_MATMUL_FUNCTION,
                   item->epilogue == MR_FUNCTION ? mr_function_of(b->c) : MR_FUNCTION_NONE);
    mr_command_set(c, MR_F_MATMUL_PREFIX_MAX, item->to == MR_V);
    mr_command_set(c, MR_F_MATMUL_TRACK_EXP,
                   item->to == MR_RESIDUAL &&
                       norm_follows(mr_items_of(b->c, it->layer), it->index));
    mr_command_set(c, MR_F_MATMUL_LOGIT_ROWS, it->layer == b->c->n_layer);
    if (item->epilogue == MR_ROTARY) {
        mr_command_set(c, MR_F_MATMUL_ROTARY, 1);
        mr_command_set(c, MR_F_MATMUL_ROTARY_DIM, (uint32_t)b->c->rotary_dim);
        mr_command_set(c, MR_F_MATMUL_HEAD_LANES, (uint32_t)b->d.head_lanes);
    }
    if (item->to == MR_RESULT) {
        int left = b->c->vocab_size - b->stage->first_col;
        mr_command_set(c, MR_F_MATMUL_OUT_COLS, (uint32_t)(left < it->cols ? left : it->cols));
        mr_command_set(c, MR_F_MATMUL_OUT_OFF, (uint32_t)b->stage->first_col / 16);
        mr_command_set(c, MR_F_MATMUL_OUT_STRIDE, (uint32_t)b->p->out_beats);
    }
    if (item->to == MR_K || item->to == MR_V)
        store_kv(b, it->layer, item->to);
}

static void add_item(struct builder *b, int layer, const struct mr_item *item)
{
    if (item->kind == MR_ATTEND) {
        attend(b, layer, item);
        return;
    }
    struct mr_stream_item it = mr_stage_item(b->c, b->layers, b->stage, b->stream++);
    if (item->kind == MR_NORM)
        norm(b, layer, item);
    else
        matrix(b, &it);
}

static void add_items(struct builder *b, int layer)
{
    const struct mr_list *list = mr_items_of(b->c, layer);
    b->loaded = false;
    for (int i = 0; i < list->count; i++)
        add_item(b, layer, &list->items[i]);
}

// ---- chunks ------------------------------------------------------------------------------------

// What a stage of chunks has of a list: the norms behind which the next block begins, all but K and
// V, or these.
enum chosen { LEADING, REST, KEYS };
struct chunk_part {
    int layer;
    enum chosen chosen;
};
enum { CHUNK_PARTS = 3 };

static void chunk_parts(const struct mr_config *c, int stage, struct chunk_part p[CHUNK_PARTS])
{
    p[0] = (struct chunk_part){stage > 0 ? stage - 2 : -1, LEADING};
    p[1] = (struct chunk_part){stage - 1, REST};
    p[2] = (struct chunk_part){stage < c->n_layer ? stage : -1, KEYS};
}

static bool in_part(const struct mr_config *c, const struct chunk_part *p, int i)
{
    const struct mr_list *list = mr_items_of(c, p->layer);
    const struct mr_item *item = &list->items[i];
    bool key = item->to == MR_K || item->to == MR_V;
    return p->chosen == KEYS      ? key
           : p->chosen == LEADING ? i == list->count - 1
                                  : p->layer >= 0 && !key;
}

// A stage's first PM_LOAD is for its V: the one for attention is another.
static void add_chunk(struct builder *b)
{
    struct chunk_part parts[CHUNK_PARTS];
    int stage = b->stage->first;
    bool last = stage == b->c->n_layer;
    chunk_parts(b->c, stage, parts);
    for (int k = 0; k < CHUNK_PARTS; k++) {
        const struct chunk_part *p = &parts[k];
        const struct mr_list *list = mr_items_of(b->c, p->layer);
        b->loaded = p->chosen != KEYS;
        for (int i = 0; i < list->count; i++) {
            if (p->chosen == REST && p->layer >= 0 && i == list->count - 1 && !last)
                save_rows(b);
            if (in_part(b->c, p, i))
                add_item(b, p->layer, &list->items[i]);
        }
    }
    if (last)
        save_rows(b);
}

// Item i of the weights of a stage of chunks, as a number in the stream; -1: there are no more.
static int chunk_item(const struct mr_config *c, int stage, int i)
{
    const struct mr_arch *arch = mr_arch_of(c);
    struct chunk_part parts[CHUNK_PARTS];
    chunk_parts(c, stage, parts);
    for (int k = 0; k < CHUNK_PARTS; k++) {
        int layer = parts[k].layer;
        const struct mr_list *list = mr_items_of(c, layer);
        int at = layer < 0 ? 0 : mr_stream_front_items(arch) + layer * mr_stream_block_items(arch);
        for (int n = 0; n < list->count; n++) {
            if (mr_item_streams(&list->items[n]) && in_part(c, &parts[k], n) && i-- == 0)
                return at;
            at += mr_item_streams(&list->items[n]);
        }
    }
    return -1;
}

// An item is three commands at most: STREAM_VEC, PM_LOAD and LAYERNORM, or STREAM_TILES, MATMUL and
// STORE_KV, or PM_LOAD and ATTEND; a block may begin with PM_LOAD. Beside the items are LOAD_ROWS,
// STORE_RES and END.
static int most_commands(const struct mr_config *c, const struct mr_program_stage *stage)
{
    const struct mr_arch *arch = mr_arch_of(c);
    int blocks = stage->chunks ? CHUNK_PARTS : stage->last - stage->first;
    return blocks * (3 * arch->block.count + 1) + 3 * arch->front.count + 3 * arch->tail.count + 3;
}

int mr_stage_first(const struct mr_config *c, const struct mr_program_stage *stage)
{
    const struct mr_arch *arch = mr_arch_of(c);
    return stage->first > 0
               ? mr_stream_front_items(arch) + stage->first * mr_stream_block_items(arch)
               : 0;
}

int mr_stage_items(const struct mr_config *c, const struct mr_program_stage *stage)
{
    const struct mr_arch *arch = mr_arch_of(c);
    int n = 0;
    while (stage->chunks && chunk_item(c, stage->first, n) >= 0)
        n++;
    if (stage->chunks)
        return n;
    int end = mr_stream_front_items(arch) + stage->last * mr_stream_block_items(arch);
    return (stage->last > c->n_layer ? mr_stream_items(c) : end) - mr_stage_first(c, stage);
}

int mr_stage_index(const struct mr_config *c, const struct mr_program_stage *stage, int i)
{
    return stage->chunks ? chunk_item(c, stage->first, i) : mr_stage_first(c, stage) + i;
}

struct mr_stream_item mr_stage_item(const struct mr_config *c, enum mr_format layers,
                                    const struct mr_program_stage *stage, int i)
{
    struct mr_stream_item it = mr_stream_item(c, layers, mr_stage_index(c, stage, i));
    if (it.item->to == MR_RESULT && stage->cols)
        it.cols = stage->cols;
    return it;
}

int mr_program_build(struct mr_program *p, const struct mr_config *c, enum mr_format layers,
                     const struct mr_program_stage *stage, struct mr_error *err)
{
    struct builder b = {.p = p,
                        .c = c,
                        .d = mr_dims_of(c),
                        .places = mr_program_places(c),
                        .layers = layers,
                        .stage = stage,
                        .err = err};
    *p = (struct mr_program){
        .capacity = most_commands(c, stage),
        .act_words = b.places.act_words,
        .qkv_words = b.places.qkv_words,
        .res_beats = b.d.d / 16,
        .rot_beats = b.d.rot_floats / 16,
        .rot_off = MR_PROGRAM_ROWS / 4,
        .out_beats = (c->vocab_size + 15) / 16,
    };
    p->res_off = p->rot_off + MR_PROGRAM_ROWS * p->rot_beats;
    p->cmds = malloc((size_t)p->capacity * sizeof *p->cmds);
    b.depend = mr_depend_new(p->capacity);
    if (!p->cmds || !b.depend) {
        mr_depend_free(b.depend);
        mr_program_free(p);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a program of %d commands",
                       most_commands(c, stage));
    }
    load_rows(&b);
    if (stage->chunks)
        add_chunk(&b);
    else if (stage->first == 0)
        add_items(&b, -1);
    for (int l = stage->first; l < stage->last && !stage->chunks; l++)
        add_items(&b, l);
    if (stage->save)
        save_rows(&b);
    (void)add(&b, MR_OP_END, ~0u >> (32 - MR_MEMORIES), 0);
    if (b.rc == 0)
        b.rc = mr_depend_check(b.depend, err);
    mr_depend_free(b.depend);
    if (b.rc < 0)
        mr_program_free(p);
    return b.rc;
}

void mr_program_free(struct mr_program *p)
{
    free(p->cmds);
    *p = (struct mr_program){0};
}
