// SPDX-License-Identifier: Apache-2.0
#include "train/work.h"

#include "cmodel/legal.h"
#include "pack/layout.h"

static uint64_t get(const struct mr_command *c, unsigned field)
{
    return mr_command_get(c, field);
}

static uint64_t beats(uint64_t bytes)
{
    return (bytes + MR_BEAT - 1) / MR_BEAT;
}

// Blocks of 32 elements and a code.
static uint64_t blocks(uint64_t n)
{
    return beats(n * 33);
}

// Columns of a matrix that is read, four side by side; with their headers, if they are streamed.
static uint64_t columns(uint64_t cols, uint64_t first, uint64_t kblocks, uint64_t headers)
{
    uint64_t codes = (first + kblocks + 15) / 16 - first / 16;
    return (cols + 3) / 4 * (codes + 2 * kblocks) + headers;
}

static struct mr_work matmul(const struct mr_command *c, uint64_t rows)
{
    uint64_t kblocks = get(c, MR_F_MATMUL_KBLOCKS), cols = get(c, MR_F_MATMUL_COLS);
    struct mr_work w = {.mac_blocks = kblocks * cols * rows};
    if (get(c, MR_F_MATMUL_TILES))
        w.stash_written += blocks(rows * cols / 32);
    if (get(c, MR_F_MATMUL_TURNED))
        w.stash_written += blocks((rows + 31) / 32 * cols);
    if (get(c, MR_F_MATMUL_SLOPE))
        w.host_read = rows * cols / 32;
    if (get(c, MR_F_MATMUL_KEEP_SLOPE))
        w.host_written = rows * cols / 32;
    if (get(c, MR_F_MATMUL_DST) == MR_DST_RESULT)
        w.host_written += rows * beats(4 * get(c, MR_F_MATMUL_OUT_COLS));
    return w;
}

static struct mr_work grad(const struct mr_command *c)
{
    uint64_t rows = get(c, MR_F_GRAD_ROWS), cols = get(c, MR_F_GRAD_COLS);
    uint64_t bands = (rows + MR_GRAD_TILE_ROWS - 1) / MR_GRAD_TILE_ROWS;
    return (struct mr_work){.mac_blocks = get(c, MR_F_GRAD_KBLOCKS) * cols * rows,
                            .host_read = get(c, MR_F_GRAD_BEGIN) ? 0 : 1,
                            .host_written = bands * MR_GRAD_TILE_ROWS * beats(4 * cols) + 1};
}

static struct mr_work stream_stash(const struct mr_command *c, uint64_t n)
{
    uint64_t cols = get(c, MR_F_STREAM_STASH_COLS), groups = (cols / 4 + n - 1) / n;
    return (struct mr_work){.stash_read = columns(cols, get(c, MR_F_STREAM_STASH_FIRST_KBLOCK),
                                                  get(c, MR_F_STREAM_STASH_KBLOCKS),
                                                  n * ((groups + 15) / 16))};
}

static struct mr_work load_rows(const struct mr_command *c, uint64_t rows)
{
    return (struct mr_work){
        .host_read = (rows + 3) / 4 +
                     rows * (get(c, MR_F_LOAD_ROWS_ROT_BEATS) + get(c, MR_F_LOAD_ROWS_RES_BEATS))};
}

static struct mr_work store_kv(const struct mr_command *c, uint64_t rows)
{
    uint64_t words = get(c, MR_F_STORE_KV_WBEATS), scales = (2 * words + 63) / 64;
    uint64_t maxima = get(c, MR_F_STORE_KV_IS_V) ? scales : 0;
    return (struct mr_work){.kv_written = rows * (words + scales + maxima)};
}

struct mr_work mr_work_of(const struct mr_command *c, int n, int rows)
{
    uint64_t channels = (uint64_t)n, r = (uint64_t)rows;
    switch (get(c, MR_F_CMD_OPCODE)) {
    case MR_OP_STREAM_VEC:
    case MR_OP_STREAM_TILES:
        return (struct mr_work){.weights =
                                    channels * mr_legal_stream_beats(c->word, (unsigned)channels)};
    case MR_OP_STREAM_STASH:
        return stream_stash(c, channels);
    case MR_OP_LOAD_ACT:
        return (struct mr_work){.stash_read = columns(get(c, MR_F_LOAD_ACT_ROWS),
                                                      get(c, MR_F_LOAD_ACT_FIRST_KBLOCK),
                                                      get(c, MR_F_LOAD_ACT_KBLOCKS), 0)};
    case MR_OP_MOVE_ROWS:
        return (struct mr_work){.stash_written =
                                    get(c, MR_F_MOVE_ROWS_TURNED)
                                        ? blocks((r + 31) / 32 * get(c, MR_F_MOVE_ROWS_COLS))
                                        : 0};
    case MR_OP_LOAD_ROWS:
        return load_rows(c, r);
    case MR_OP_FETCH_ROWS:
        return (struct mr_work){.host_read = r * get(c, MR_F_FETCH_ROWS_BEATS)};
    case MR_OP_SAVE_ROWS:
        return (struct mr_work){.host_written = r * get(c, MR_F_SAVE_ROWS_BEATS)};
    case MR_OP_STORE_KV:
        return store_kv(c, r);
    case MR_OP_MATMUL:
        return matmul(c, r);
    case MR_OP_GRAD:
        return grad(c);
    default:
        return (struct mr_work){0};
    }
}

void mr_work_add(struct mr_work *sum, const struct mr_work *w)
{
    sum->mac_blocks += w->mac_blocks;
    sum->weights += w->weights;
    sum->stash_read += w->stash_read;
    sum->stash_written += w->stash_written;
    sum->host_read += w->host_read;
    sum->host_written += w->host_written;
    sum->kv_written += w->kv_written;
}
