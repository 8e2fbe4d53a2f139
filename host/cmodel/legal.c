// SPDX-License-Identifier: Apache-2.0
#include "cmodel/legal.h"

#include <stddef.h>
#include <string.h>

#include "cmodel/command.h"
#include "mr_legal.inc"

enum { SEM_MOST = 15 };

struct mr_values mr_values_of(const struct mr_geometry *g)
{
    return (struct mr_values){
#define X(name) .name = (uint64_t)g->name,
        MR_GEOMETRY_LIST(X)
#undef X
    };
}

uint64_t mr_legal_desc_beats(const struct mr_legal *l, const uint32_t *desc)
{
    uint64_t channels = (l->v.n + 1) / 2;
    bool train = l->can_train && (desc[MR_RUN_FLAGS] & MR_FLAG_TRAIN);
    return train ? 2 + 2 * channels : 1 + channels;
}

// What stands behind the channels' words.
static const char *begin_training(struct mr_values *v, const uint32_t *desc)
{
    const uint32_t *more = desc + 16 * (1 + (v->n + 1) / 2);
    const char *rule = check_TRAINING(more, v);
    for (unsigned c = 0; c < v->n && !rule; c++)
        rule = check_STASH(more + 16 + (size_t)8 * c, v);
    v->rows_beats = more[MR_TRAINING_ROWS_BEATS];
    v->grad_beats = more[MR_TRAINING_GRAD_BEATS];
    return rule;
}

const char *mr_legal_begin(struct mr_legal *l, const uint32_t *desc, uint64_t run_addr)
{
    struct mr_values *v = &l->v;
    v->run_addr = (uint32_t)run_addr;
    v->train =
        l->can_train && run_addr % MR_BEAT_BYTES == 0 && (desc[MR_RUN_FLAGS] & MR_FLAG_TRAIN) != 0;
    v->rows_beats = v->grad_beats = 0;
    const char *rule = check_RUN(desc, v);
    for (unsigned c = 0; c < v->n && !rule; c++)
        rule = check_CHANNEL(desc + 16 + (size_t)8 * c, v);
    if (!rule && v->train)
        rule = begin_training(v, desc);
    if (rule)
        return rule; // desc may lie where no word lies
    v->n_rows = desc[MR_RUN_N_ROWS];
    v->two_pass = desc[MR_RUN_FLAGS] & 1;
    v->input_beats = desc[MR_RUN_INPUT_BEATS];
    v->result_beats = desc[MR_RUN_RESULT_BEATS];
    v->tiles = v->exp_cols = 0;
    memset(l->sem, 0, sizeof l->sem);
    for (int s = 0; s < MR_SEMAPHORES; s++)
        l->waits[s] = -1;
    return NULL;
}

// Takes and adds of a command in program order; *missing: it takes what is not there.
static const char *semaphores(const struct mr_legal *l, const uint32_t *cmd, int queue,
                              unsigned after[MR_SEMAPHORES], bool *missing)
{
    uint32_t wait = mr_field(cmd, MR_F_CMD_WAIT), signal = mr_field(cmd, MR_F_CMD_SIGNAL);
    *missing = false;
    for (int s = 0; s < MR_SEMAPHORES; s++) {
        unsigned n = l->sem[s];
        if (wait >> s & 1) {
            if (l->waits[s] >= 0 && l->waits[s] != queue)
                return "another queue waits for this semaphore";
            *missing |= n == 0;
            n -= n != 0;
        }
        n += signal >> s & 1;
        if (n > SEM_MOST)
            return "a semaphore counts to 15";
        after[s] = n;
    }
    return NULL;
}

static bool outside(const struct mr_legal *l, const uint32_t *cmd)
{
    struct mr_window w[MR_WINDOWS_MOST];
    bool out = false;
    for (int i = 0, n = windows_of(cmd, &l->v, w); i < n; i++)
        out |= w[i].off + w[i].beats > window_beats(w[i].of, &l->v);
    return out;
}

// The oldest matrix of the stream, as values.
static void note_oldest(struct mr_legal *l)
{
    l->v.tile_kblocks = l->tiles[0].kblocks;
    l->v.tile_cols = l->tiles[0].cols;
    l->v.tile_fp4 = l->tiles[0].fp4;
    l->v.tile_bias = l->tiles[0].bias;
}

static void note(struct mr_legal *l, const uint32_t *cmd)
{
    after_command(cmd, &l->v);
    if (mr_field(cmd, MR_F_CMD_OPCODE) == MR_OP_STREAM_TILES)
        l->tiles[l->v.tiles++] = (struct mr_tiles){
            mr_field(cmd, MR_F_STREAM_TILES_KBLOCKS), mr_field(cmd, MR_F_STREAM_TILES_COLS),
            mr_field(cmd, MR_F_STREAM_TILES_FP4), mr_field(cmd, MR_F_STREAM_TILES_BIAS)};
    if (mr_field(cmd, MR_F_CMD_OPCODE) == MR_OP_STREAM_STASH)
        l->tiles[l->v.tiles++] =
            (struct mr_tiles){mr_field(cmd, MR_F_STREAM_STASH_KBLOCKS),
                              mr_field(cmd, MR_F_STREAM_STASH_COLS), false, false};
    if (mr_field(cmd, MR_F_CMD_OPCODE) == MR_OP_MATMUL ||
        mr_field(cmd, MR_F_CMD_OPCODE) == MR_OP_GRAD)
        memmove(l->tiles, l->tiles + 1, (size_t)--l->v.tiles * sizeof *l->tiles);
    note_oldest(l);
}

unsigned mr_legal_command(struct mr_legal *l, const uint32_t *cmd, const char **rule)
{
    unsigned after[MR_SEMAPHORES];
    int queue = mr_opcode_queue(mr_field(cmd, MR_F_CMD_OPCODE));
    bool missing;
    *rule = check_command(cmd, &l->v);
    if (!*rule)
        *rule = semaphores(l, cmd, queue, after, &missing);
    if (*rule)
        return MR_DEVERR_COMMAND;
    if (outside(l, cmd)) {
        *rule = "outside its window";
        return MR_DEVERR_WINDOW;
    }
    if (missing) {
        *rule = "waits for a semaphore that nothing before it signals";
        return MR_DEVERR_WATCHDOG;
    }
    for (int s = 0; s < MR_SEMAPHORES; s++) {
        l->sem[s] = after[s];
        if (mr_field(cmd, MR_F_CMD_WAIT) >> s & 1)
            l->waits[s] = queue;
    }
    note(l, cmd);
    return 0;
}

uint64_t mr_legal_stream_beats(const uint32_t *cmd, unsigned channels)
{
    if (mr_field(cmd, MR_F_CMD_OPCODE) == MR_OP_STREAM_VEC) {
        uint64_t d = mr_field(cmd, MR_F_STREAM_VEC_D);
        return 2 * ((d + 16 * channels - 1) / (16 * channels));
    }
    uint64_t kblocks = mr_field(cmd, MR_F_STREAM_TILES_KBLOCKS);
    uint64_t groups = mr_field(cmd, MR_F_STREAM_TILES_COLS) / 4 / channels;
    uint64_t group = (kblocks + 15) / 16 + kblocks * (mr_field(cmd, MR_F_STREAM_TILES_FP4) ? 1 : 2);
    return (groups + 15) / 16 * (mr_field(cmd, MR_F_STREAM_TILES_BIAS) ? 5 : 1) + groups * group;
}
