// SPDX-License-Identifier: Apache-2.0
// What the files of the C model share: the state of the device, and what they do with it. Memory
// outside is in windows.h, memory inside in places.h.
#pragma once

#include <stdbool.h>
#include <string.h>

#include "cmodel/command.h"
#include "cmodel/geometry.h"
#include "cmodel/kernel.h"
#include "cmodel/legal.h"
#include "cmodel/memory.h"
#include "cmodel/num.h"
#include "cmodel/tiles.h"
#include "common/pool.h"
#include "mr_device.h"

enum { BEAT = MR_BEAT_BYTES, MAX_CHANNELS = 64 };

struct row {
    uint64_t kv_off; // beats
    int pos, last;   // the last position that it sees
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
    uint64_t stream_beat, streamed;   // where the stream goes on; beats so far, of each channel
    uint64_t mac_blocks, grad_blocks; // so far
    struct pending pending[MR_TILES_MAX];
    int n_pending;
    struct mr_legal legal;
    struct mr_device_error *dev;
};

static inline float field_f32(const uint32_t *cmd, unsigned f)
{
    return mr_float(mr_field(cmd, f));
}

// Notes a NaN among a worker's results, for STICKY.
static inline void note_nan(const struct mr_machine *m, struct scratch *s, const float *v, int n)
{
    if (m->kernels->lanes->has_nan(v, n)) // workers share cache lines: a write only where needed
        s->nan = true;
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
