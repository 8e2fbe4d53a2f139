// SPDX-License-Identifier: Apache-2.0
#include "engine/program.h"

#include <math.h>
#include <stdlib.h>

#include "cmodel/num.h"
#include "common/error.h"

// Semaphores. Each is waited for by one queue.
enum {
    S_VEC_LOADED, // reader -> LAYERNORM
    S_VEC_FREE,   // LAYERNORM -> reader
    S_X,          // LAYERNORM -> q and lm_head
    S_K,          // k -> STORE_KV
    S_V,          // v -> STORE_KV
    S_KV,         // STORE_KV V (after K, same queue) -> ATTEND
    S_PM,         // PM_LOAD -> v
    S_HIDDEN,     // fc_in -> fc_out
    S_FC_OUT,     // fc_out -> out_proj: same residual rows
    S_ATTEND,     // ATTEND -> out_proj
    S_RES,        // out_proj -> LAYERNORM
    S_ROWS,       // LOAD_ROWS -> PM_LOAD
    S_LAST,       // last result -> END
};

// Commands are appended to a program whose array was allocated large enough by the builder.
static struct mr_command *add(struct mr_program *p, unsigned op, unsigned wait, unsigned signal)
{
    struct mr_command *c = &p->cmds[p->count++];
    *c = (struct mr_command){{0}};
    mr_command_set(c, MR_F_CMD_OPCODE, op);
    mr_command_set(c, MR_F_CMD_WAIT, wait);
    mr_command_set(c, MR_F_CMD_SIGNAL, signal);
    return c;
}

static unsigned bit(int s)
{
    return 1u << s;
}

struct builder {
    struct mr_program *p;
    const struct mr_config *c;
    struct mr_dims d;
    enum mr_format layers;
    int attn_base, hidden_base; // activation memory words; x is at 0
};

static void stream_vec(struct builder *b, unsigned wait)
{
    struct mr_command *c = add(b->p, MR_OP_STREAM_VEC, wait, bit(S_VEC_LOADED));
    mr_command_set(c, MR_F_STREAM_VEC_D, (uint32_t)b->d.d);
}

static void layernorm(struct builder *b, unsigned wait, bool last)
{
    struct mr_ln_const k = mr_ln_consts(b->c->n_embd, b->c->layer_norm_epsilon);
    struct mr_command *c = add(b->p, MR_OP_LAYERNORM, wait | bit(S_VEC_LOADED),
                               bit(S_X) | (last ? 0 : bit(S_VEC_FREE)));
    mr_command_set(c, MR_F_LAYERNORM_DBLOCKS, (uint32_t)b->d.d / 32);
    mr_command_set(c, MR_F_LAYERNORM_N, (uint32_t)k.n);
    mr_command_set(c, MR_F_LAYERNORM_DST_SLOT, MR_SLOT_X);
    mr_command_set(c, MR_F_LAYERNORM_LOGIT_ROWS, last);
    mr_command_set(c, MR_F_LAYERNORM_INV_N, mr_bits(k.inv_n));
    mr_command_set(c, MR_F_LAYERNORM_INV_N2, mr_bits(k.inv_n2));
    mr_command_set(c, MR_F_LAYERNORM_EPS, mr_bits(k.eps));
}

// STREAM_TILES and MATMUL of one matrix; the caller sets what is special about its epilogue.
static struct mr_command *matmul(struct builder *b, int index, int src_base, int src_slot, int dst,
                                 unsigned wait, unsigned signal)
{
    struct mr_stream_item it = mr_stream_item(b->c, b->layers, index);
    struct mr_command *s = add(b->p, MR_OP_STREAM_TILES, 0, 0);
    mr_command_set(s, MR_F_STREAM_TILES_KBLOCKS, (uint32_t)it.k / 32);
    mr_command_set(s, MR_F_STREAM_TILES_FP4, it.format == MR_FORMAT_MXFP4);
    mr_command_set(s, MR_F_STREAM_TILES_BIAS, it.bias);
    mr_command_set(s, MR_F_STREAM_TILES_COLS, (uint32_t)it.cols);
    struct mr_command *c = add(b->p, MR_OP_MATMUL, wait, signal);
    mr_command_set(c, MR_F_MATMUL_SRC_BASE, (uint32_t)src_base);
    mr_command_set(c, MR_F_MATMUL_SRC_SLOT, (uint32_t)src_slot);
    mr_command_set(c, MR_F_MATMUL_KBLOCKS, (uint32_t)it.k / 32);
    mr_command_set(c, MR_F_MATMUL_COLS, (uint32_t)it.cols);
    mr_command_set(c, MR_F_MATMUL_DST, (uint32_t)dst);
    mr_command_set(c, MR_F_MATMUL_BIAS, it.bias);
    mr_command_set(c, MR_F_MATMUL_FP4, it.format == MR_FORMAT_MXFP4);
    return c;
}

static void rotate(const struct builder *b, struct mr_command *c)
{
    mr_command_set(c, MR_F_MATMUL_ROTARY, 1);
    mr_command_set(c, MR_F_MATMUL_ROTARY_DIM, (uint32_t)b->c->rotary_dim);
    mr_command_set(c, MR_F_MATMUL_HEAD_LANES, (uint32_t)b->d.head_lanes);
}

static void store_kv(struct builder *b, int layer, bool is_v)
{
    struct mr_command *c = add(b->p, MR_OP_STORE_KV, bit(is_v ? S_V : S_K), is_v ? bit(S_KV) : 0);
    mr_command_set(c, MR_F_STORE_KV_LAYER, (uint32_t)layer);
    mr_command_set(c, MR_F_STORE_KV_SRC_BASE, (uint32_t)(b->d.w / 64 * (is_v ? 2 : 1)));
    mr_command_set(c, MR_F_STORE_KV_WBEATS, (uint32_t)b->d.w / 64);
    mr_command_set(c, MR_F_STORE_KV_IS_V, is_v);
}

static void attend(struct builder *b, int layer)
{
    float scale = (float)(1.4426950408889634 / sqrt((double)b->c->head_dim)); // log2(e) / sqrt(d)
    struct mr_command *c = add(b->p, MR_OP_ATTEND, bit(S_KV), bit(S_ATTEND));
    mr_command_set(c, MR_F_ATTEND_LAYER, (uint32_t)layer);
    mr_command_set(c, MR_F_ATTEND_HEADS, (uint32_t)b->c->n_head);
    mr_command_set(c, MR_F_ATTEND_HEAD_BEATS, (uint32_t)b->d.head_lanes / 64);
    mr_command_set(c, MR_F_ATTEND_SCALE, mr_bits(scale));
    mr_command_set(c, MR_F_ATTEND_DST_BASE, (uint32_t)b->attn_base);
    mr_command_set(c, MR_F_ATTEND_DST_SLOT, MR_SLOT_ATTENTION);
}

static void add_layer(struct builder *b, int layer, bool last_without_head)
{
    int first = 7 * layer; // the layer's LN in stream order
    uint32_t wb = (uint32_t)b->d.w / 64;
    stream_vec(b, layer ? bit(S_VEC_FREE) : 0);
    struct mr_command *c = add(b->p, MR_OP_PM_LOAD, layer ? 0 : bit(S_ROWS), bit(S_PM));
    mr_command_set(c, MR_F_PM_LOAD_LAYER, (uint32_t)layer);
    mr_command_set(c, MR_F_PM_LOAD_WBEATS, wb);
    layernorm(b, layer ? bit(S_RES) : 0, false);

    c = matmul(b, first + 1, 0, MR_SLOT_X, MR_DST_QKV, bit(S_X), 0);
    rotate(b, c);
    c = matmul(b, first + 2, 0, MR_SLOT_X, MR_DST_QKV, 0, bit(S_K));
    mr_command_set(c, MR_F_MATMUL_DST_BASE, wb);
    rotate(b, c);
    store_kv(b, layer, false);
    c = matmul(b, first + 3, 0, MR_SLOT_X, MR_DST_QKV, bit(S_PM), bit(S_V));
    mr_command_set(c, MR_F_MATMUL_DST_BASE, 2 * wb);
    mr_command_set(c, MR_F_MATMUL_PREFIX_MAX, 1);
    store_kv(b, layer, true);
    attend(b, layer);

    c = matmul(b, first + 4, 0, MR_SLOT_X, MR_DST_ACT, 0, bit(S_HIDDEN));
    mr_command_set(c, MR_F_MATMUL_DST_BASE, (uint32_t)b->hidden_base);
    mr_command_set(c, MR_F_MATMUL_DST_SLOT, MR_SLOT_HIDDEN);
    mr_command_set(c, MR_F_MATMUL_GELU, 1);
    matmul(b, first + 5, b->hidden_base, MR_SLOT_HIDDEN, MR_DST_RES, bit(S_HIDDEN), bit(S_FC_OUT));
    c = matmul(b, first + 6, b->attn_base, MR_SLOT_ATTENTION, MR_DST_RES,
               bit(S_FC_OUT) | bit(S_ATTEND), bit(last_without_head ? S_LAST : S_RES));
    mr_command_set(c, MR_F_MATMUL_TRACK_EXP, 1);
}

int mr_program_act_words(const struct mr_dims *d)
{
    return (d->d + d->w + d->f) / 32;
}

int mr_program_qkv_words(const struct mr_dims *d)
{
    return 3 * d->w / 64;
}

int mr_program_build(struct mr_program *p, const struct mr_config *c, enum mr_format layers,
                     bool head, struct mr_error *err)
{
    struct mr_dims d = mr_dims_of(c);
    struct builder b = {p, c, d, layers, d.d / 32, (d.d + d.w) / 32};
    *p = (struct mr_program){
        .capacity = 20 * c->n_layer + 8,
        .act_words = mr_program_act_words(&d),
        .qkv_words = mr_program_qkv_words(&d),
        .res_beats = d.d / 16,
        .rot_beats = d.rot_floats / 16,
        .rot_off = MR_PROGRAM_ROWS / 4,
        .out_beats = (c->vocab_size + 15) / 16,
    };
    p->res_off = p->rot_off + MR_PROGRAM_ROWS * p->rot_beats;
    p->cmds = malloc((size_t)p->capacity * sizeof *p->cmds);
    if (!p->cmds)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a program of %d commands", p->capacity);
    struct mr_command *load = add(p, MR_OP_LOAD_ROWS, 0, bit(S_ROWS));
    mr_command_set(load, MR_F_LOAD_ROWS_TABLE_OFF, (uint32_t)p->table_off);
    mr_command_set(load, MR_F_LOAD_ROWS_ROT_OFF, (uint32_t)p->rot_off);
    mr_command_set(load, MR_F_LOAD_ROWS_RES_OFF, (uint32_t)p->res_off);
    mr_command_set(load, MR_F_LOAD_ROWS_RES_BEATS, (uint32_t)p->res_beats);
    mr_command_set(load, MR_F_LOAD_ROWS_ROT_BEATS, (uint32_t)p->rot_beats);
    for (int l = 0; l < c->n_layer; l++)
        add_layer(&b, l, !head && l == c->n_layer - 1);
    if (head) {
        stream_vec(&b, bit(S_VEC_FREE));
        layernorm(&b, bit(S_RES), true);
        struct mr_command *h =
            matmul(&b, 7 * c->n_layer + 1, 0, MR_SLOT_X, MR_DST_RESULT, bit(S_X), bit(S_LAST));
        mr_command_set(h, MR_F_MATMUL_LOGIT_ROWS, 1);
        mr_command_set(h, MR_F_MATMUL_OUT_COLS, (uint32_t)c->vocab_size);
        mr_command_set(h, MR_F_MATMUL_OUT_STRIDE, (uint32_t)p->out_beats);
    }
    add(p, MR_OP_END, bit(S_LAST), 0);
    return 0;
}

void mr_program_free(struct mr_program *p)
{
    free(p->cmds);
    *p = (struct mr_program){0};
}
