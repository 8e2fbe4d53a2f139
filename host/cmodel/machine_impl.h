// SPDX-License-Identifier: Apache-2.0
// What the files of the C model share: the state of the device, windows of memory, on-chip
// addressing.
#ifndef MILLRACE_CMODEL_MACHINE_IMPL_H
#define MILLRACE_CMODEL_MACHINE_IMPL_H

#include <stdbool.h>
#include <string.h>

#include "cmodel/command.h"
#include "cmodel/geometry.h"
#include "cmodel/kernel_select.h"
#include "cmodel/legal.h"
#include "cmodel/memory.h"
#include "cmodel/num.h"
#include "cmodel/tiles.h"
#include "common/pool.h"
#include "mr_device.h"

enum { BEAT = MR_BEAT_BYTES, MAX_CHANNELS = 64 };

struct row {
    uint64_t kv_off; // beats
    int pos;
    bool logits, continues;
};

// A matrix in the stream whose MATMUL has not come yet.
struct pending {
    uint64_t beat; // offset in each channel's stream
    int kblocks, cols;
    bool fp4, bias;
    // in the stash: `beat` is the matrix' offset, of which a part is streamed
    bool stash;
    int all_kblocks, first_kblock, first_col;
};

// A matrix of the stash, found in all channels.
struct stash_matrix {
    uint8_t *at[MAX_CHANNELS];
    struct mr_tiles_shape shape;
};

// What one worker of a command needs for itself.
struct scratch {
    float *columns; // [t][32] finished columns on their way to a block
    int64_t *grads; // [t][32] sums of gradients
    uint8_t *tile;  // a group of columns as bytes, when it must be changed
    uint8_t *part;  // eight groups of which a part was streamed
    unsigned flags; // of sums of gradients
    uint32_t peak;
    bool nan; // a result of this run is NaN
    // of the positions that a head looks at, [ctx_max]
    int64_t *sums;
    uint8_t *top; // largest code of a key
    int32_t *shares;
    float *scores;
    float *row; // [d_max] of MOVE_ROWS, with TRAIN
};

struct mr_machine {
    struct mr_geometry g;
    struct mr_memory *mem;
    const struct mr_kernels *kernels;
    struct mr_pool *pool;
    struct scratch *scratch; // of each worker
    // of the present MATMUL, if its tokens are taken together, and if not
    struct mr_panel panel;
    struct mr_operand *operands; // [t]
    uint8_t *below;              // [t][ring / 2]
    int32_t *sum;
    // on-chip memories
    float *res;        // [t][d_max]
    float *second;     // the same again; with TRAIN
    float *rot;        // [t][rot_max]
    int8_t *act, *qkv; // [t][act_words][32], [t][2 qkv_words][32]
    uint8_t *act_code, *qkv_code;
    uint8_t *row_max[4]; // [t]
    uint8_t *pm;         // [t][w_max / 32]
    float *gain, *bias;  // [d_max]
    struct row *rows;    // [t]
    int *logit_tokens;   // tokens that want logits, in order
    int n_logits;
    float *line;                    // [d_max]
    const uint8_t **keys, **values; // [ctx_max] the records of a token's positions
    // the run
    const uint32_t *desc;
    const uint32_t *prog;
    uint32_t n_cmds, next;
    int n_rows;
    bool two_pass;
    uint64_t stream_beat;
    uint64_t mac_blocks; // so far
    struct pending pending[MR_TILES_MAX];
    int n_pending;
    struct mr_legal legal;
    struct mr_device_error *dev;
};

static inline float field_f32(const uint32_t *cmd, unsigned f)
{
    return mr_float(mr_field(cmd, f));
}

static inline int raise_error(struct mr_machine *m, unsigned code, uint64_t addr)
{
    m->dev->code = code;
    m->dev->command = m->next;
    m->dev->addr = addr;
    return MR_ERR_DEVICE;
}

// Notes a NaN among a worker's results, for STICKY.
static inline void note_nan(const struct mr_machine *m, struct scratch *s, const float *v, int n)
{
    if (m->kernels->lanes->has_nan(v, n)) // workers share cache lines: a write only where needed
        s->nan = true;
}

// ---- windows -----------------------------------------------------------------------------------

static inline uint64_t desc_u64(const struct mr_machine *m, unsigned lo)
{
    return m->desc[lo] | (uint64_t)m->desc[lo + 1] << 32;
}

// Beats [off, off + beats) of a window, NULL if they are not all there.
static inline uint8_t *look(struct mr_machine *m, uint64_t base, uint32_t limit, uint64_t off,
                            uint64_t beats, bool write)
{
    return off + beats > limit ? NULL
                               : mr_memory_at(m->mem, base + off * BEAT, beats * BEAT, write);
}

// The same; NULL after raising the error.
static inline uint8_t *window(struct mr_machine *m, uint64_t base, uint32_t limit, uint64_t off,
                              uint64_t beats, bool write)
{
    uint8_t *p = look(m, base, limit, off, beats, write);
    if (!p)
        raise_error(m,
                    off + beats > limit ? MR_DEVERR_WINDOW
                    : write             ? MR_DEVERR_WRITE
                                        : MR_DEVERR_READ,
                    base + off * BEAT);
    return p;
}

static inline uint8_t *input_window(struct mr_machine *m, uint64_t off, uint64_t beats)
{
    return window(m, desc_u64(m, MR_RUN_INPUT_LO), m->desc[MR_RUN_INPUT_BEATS], off, beats, false);
}

static inline uint8_t *result_window(struct mr_machine *m, uint64_t off, uint64_t beats)
{
    return window(m, desc_u64(m, MR_RUN_RESULT_LO), m->desc[MR_RUN_RESULT_BEATS], off, beats, true);
}

static inline uint8_t *stream_window(struct mr_machine *m, int c, uint64_t off, uint64_t beats)
{
    const unsigned w = MR_RUN_CHANNEL((unsigned)c);
    return window(m, desc_u64(m, w + MR_CHANNEL_WEIGHTS_LO), m->desc[w + MR_CHANNEL_WEIGHTS_BEATS],
                  off, beats, false);
}

// The smallest KV window says how far all go.
static inline uint32_t kv_limit(const struct mr_machine *m)
{
    uint32_t least = UINT32_MAX;
    for (int c = 0; c < m->g.n; c++) {
        uint32_t beats = m->desc[MR_RUN_CHANNEL(c) + MR_CHANNEL_KV_BEATS];
        least = beats < least ? beats : least;
    }
    return least;
}

static inline uint8_t *kv_window(struct mr_machine *m, int c, uint64_t off, uint64_t beats,
                                 bool write)
{
    return window(m, desc_u64(m, MR_RUN_CHANNEL((unsigned)c) + MR_CHANNEL_KV_LO), kv_limit(m), off,
                  beats, write);
}

// As kv_window() to read, without an error.
static inline const uint8_t *kv_look(struct mr_machine *m, int c, uint64_t off, uint64_t beats)
{
    return look(m, desc_u64(m, MR_RUN_CHANNEL((unsigned)c) + MR_CHANNEL_KV_LO), kv_limit(m), off,
                beats, false);
}

static inline uint8_t *rows_window(struct mr_machine *m, uint64_t off, uint64_t beats, bool write)
{
    const uint32_t *w = m->desc + 16 * (1 + ((size_t)m->g.n + 1) / 2);
    return window(m, w[MR_TRAINING_ROWS_LO] | (uint64_t)w[MR_TRAINING_ROWS_HI] << 32,
                  w[MR_TRAINING_ROWS_BEATS], off, beats, write);
}

static inline uint8_t *grad_window(struct mr_machine *m, uint64_t off, uint64_t beats)
{
    const uint32_t *w = m->desc + 16 * (1 + ((size_t)m->g.n + 1) / 2);
    return window(m, w[MR_TRAINING_GRAD_LO] | (uint64_t)w[MR_TRAINING_GRAD_HI] << 32,
                  w[MR_TRAINING_GRAD_BEATS], off, beats, true);
}

// ---- addressing --------------------------------------------------------------------------------

static inline int slot_of(const struct mr_machine *m, int token)
{
    return m->two_pass ? 2 * token : token;
}

// Row of a token in the first or the second row memory.
static inline float *row_at(const struct mr_machine *m, bool second, int token)
{
    return (second ? m->second : m->res) + (size_t)token * (size_t)m->g.d_max;
}

static inline int8_t *act_at(const struct mr_machine *m, int slot, int word, uint8_t **code)
{
    size_t i = (size_t)slot * (size_t)m->g.act_words + (size_t)word;
    *code = m->act_code + i;
    return m->act + 32 * i;
}

static inline int8_t *qkv_at(const struct mr_machine *m, int slot, int block, uint8_t **code)
{
    size_t i = (size_t)slot * 2 * (size_t)m->g.qkv_words + (size_t)block;
    *code = m->qkv_code + i;
    return m->qkv + 32 * i;
}

static inline uint8_t *pm_at(const struct mr_machine *m, int token)
{
    return m->pm + (size_t)token * (size_t)(m->g.w_max / 32);
}

// Scale beats of a record of `wbeats` data beats.
static inline int scale_beats(int wbeats)
{
    return (2 * wbeats + 63) / 64;
}

// Offset of a K (part 0) or V (1) record or prefix maximum (2) of position pos, in the channel of
// pos.
static inline uint64_t kv_offset(const struct mr_machine *m, const struct row *row, int layer,
                                 int part, int pos, int wbeats)
{
    uint64_t off = row->kv_off + (uint64_t)layer * m->desc[MR_RUN_KV_LAYER_BEATS];
    uint64_t i = (uint64_t)(pos / m->g.n);
    if (part == 2)
        return off + m->desc[MR_RUN_KV_PM_BEATS] + i * (uint64_t)scale_beats(wbeats);
    if (part == 1)
        off += m->desc[MR_RUN_KV_V_BEATS];
    return off + i * (uint64_t)(scale_beats(wbeats) + wbeats);
}

// ---- quantising into on-chip memory -------------------------------------------------------------

static inline uint8_t quantise(const struct mr_machine *m, const float v[MR_BLOCK],
                               int8_t q[MR_BLOCK])
{
    return m->kernels->lanes->quantise(v, q);
}

// Block `block` of a token into activation memory at word base + block; set_row_max() follows when
// all are there.
static inline void put_act(struct mr_machine *m, int slot, int base, int block,
                           const float v[MR_BLOCK])
{
    uint8_t *code;
    int8_t *q = act_at(m, slot, base + block, &code);
    *code = quantise(m, v, q);
    if (m->two_pass) {
        float lo[MR_BLOCK];
        uint8_t *lo_code;
        int8_t *lo_q = act_at(m, slot + 1, base + block, &lo_code);
        mr_mxint8_residue(v, *code, q, lo);
        *lo_code = quantise(m, lo, lo_q);
    }
}

// The row maximum of a region that was written from `base` on. Both passes share it.
static inline void set_row_max(struct mr_machine *m, int slot, int base, int region, int blocks)
{
    uint8_t *code, max = 0;
    (void)act_at(m, slot, base, &code);
    for (int b = 0; b < blocks; b++)
        max = code[b] > max ? code[b] : max;
    m->row_max[region][slot] = max;
    if (m->two_pass)
        m->row_max[region][slot + 1] = max;
}

static inline uint8_t put_qkv(struct mr_machine *m, int slot, int base, int block,
                              const float v[MR_BLOCK])
{
    uint8_t *code;
    int8_t *q = qkv_at(m, slot, 2 * base + block, &code);
    *code = quantise(m, v, q);
    if (m->two_pass) {
        float lo[MR_BLOCK];
        uint8_t *lo_code;
        int8_t *lo_q = qkv_at(m, slot + 1, 2 * base + block, &lo_code);
        mr_mxint8_residue(v, *code, q, lo);
        *lo_code = quantise(m, lo, lo_q);
    }
    return *code;
}

// `n` blocks with their codes as the kernels take them; below[n] and sum[n] are filled.
static inline struct mr_operand operand_of(const struct mr_machine *m, const int8_t *act,
                                           const uint8_t *code, int max, int n, uint8_t *below,
                                           int32_t *sum)
{
    for (int k = 0; k < n; k++)
        below[k] = (uint8_t)mr_below(max, code[k]);
    m->kernels->lanes->block_sums(act, n, sum);
    return (struct mr_operand){act, below, sum};
}

// Whether a command's work, in block products, is worth waking the other workers.
static inline bool worth_sharing(uint64_t blocks)
{
    return blocks >= 1 << 15;
}

// ---- resident rows (resident.c) -----------------------------------------------------------------

enum { ROWS_TOGETHER = 5 }; // from which a group of 16, even with empty lanes, is faster

// Rows of a product: `kblocks` words of activation memory from `src` on. row_max NULL: GRAD, whose
// codes stand for themselves; the maximum is then 255.
struct resident {
    int src, kblocks, rows;
    const uint8_t *row_max;
};
// Fills m->operands, for one row after the other, or m->panel, for 16 at a time.
void mr_machine_fill_operands(struct mr_machine *m, const struct resident *r);
void mr_machine_fill_panel(struct mr_machine *m, const struct resident *r);

// ---- the stash (stash.c) ------------------------------------------------------------------------

// Finds `count` matrices of `cols` columns, one behind the other from `off` on; m is the first.
int mr_machine_stash_look(struct mr_machine *m, uint64_t off, int kblocks, int cols, int count,
                          bool write, struct stash_matrix *found);
uint8_t *mr_machine_stash_largest(const struct stash_matrix *s, int col);
// 32 columns of rows y[rows][stride], blocks along the rows, into columns from `col`, a multiple of
// 4, and blocks from `kblock` on. Columns from `begin` on have no other blocks before.
void mr_machine_stash_turn(const struct mr_machine *m, const struct stash_matrix *s, int col,
                           int kblock, int begin, const float *y, int rows, int stride);

// The column groups of a MATMUL or GRAD: 32 columns from 32 `block` on.
struct columns_source {
    const struct pending *p;
    const uint8_t *stream[MAX_CHANNELS]; // the matrix in each channel
};
int mr_machine_columns_find(struct mr_machine *m, const struct pending *p,
                            struct columns_source *s);
// `bias` is filled where the matrix has one; `part` is room for what is not aligned.
void mr_machine_columns(const struct mr_machine *m, const struct columns_source *s, int block,
                        uint8_t *part, struct mr_columns *columns, float bias[MR_BLOCK_COLUMNS]);
struct pending mr_machine_take_tiles(struct mr_machine *m);

int mr_machine_stream_stash(struct mr_machine *m, const uint32_t *cmd);
int mr_machine_load_act(struct mr_machine *m, const uint32_t *cmd);
int mr_machine_move_rows(struct mr_machine *m, const uint32_t *cmd);
int mr_machine_fetch_rows(struct mr_machine *m, const uint32_t *cmd);
int mr_machine_save_rows(struct mr_machine *m, const uint32_t *cmd);
int mr_machine_grad(struct mr_machine *m, const uint32_t *cmd);
int mr_machine_matmul(struct mr_machine *m, const uint32_t *cmd);
int mr_machine_attend(struct mr_machine *m, const uint32_t *cmd);

#endif
