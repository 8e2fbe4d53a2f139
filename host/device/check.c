// SPDX-License-Identifier: Apache-2.0
#include "device/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/command.h"
#include "cmodel/num.h"
#include "cmodel/row_work.h"

enum { BLOCK_BYTES = 33 }; // 32 elements and the scale code

// Which part of the on-chip memories a command writes.
enum area { AREA_NONE, AREA_ACT, AREA_QKV, AREA_ROWS, AREA_SECOND };

struct dest {
    enum area area;
    int base, count; // ACT, QKV: first block and blocks a slot; row memories: floats a token
    int rows;        // tokens
    bool lo;         // second passes are there too
};

enum { DESTS = 3 }; // what a command keeps it also writes elsewhere

// What the model left in a command's destinations, kept until the device has completed the command.
struct snapshot {
    struct dest dest;
    uint8_t *bytes;
};

struct mr_check {
    struct mr_geometry g;
    const struct mr_sim_api *api;
    struct mr_sim *sim;
    struct mr_memory *ref;
    struct mr_machine *machine;
    struct mr_machine_run run;
    struct snapshot (*snaps)[DESTS]; // [n_commands]
    struct mr_error err;             // of the callback
    bool finished;                   // the model has reached END
};

static const struct mr_command *command(const struct mr_check *c, unsigned i)
{
    return (const struct mr_command *)(c->run.commands + (size_t)i * MR_CMD_WORDS);
}

static bool is_rows(const struct dest *d)
{
    return d->area == AREA_ROWS || d->area == AREA_SECOND;
}

static struct dest row_dest(bool second, uint32_t floats)
{
    return (struct dest){.area = second ? AREA_SECOND : AREA_ROWS, .count = (int)floats};
}

static struct dest matmul_dest(const struct mr_command *m, bool training)
{
    uint32_t cols = mr_command_get(m, MR_F_MATMUL_COLS);
    int base = (int)mr_command_get(m, MR_F_MATMUL_DST_BASE);
    switch (mr_command_get(m, MR_F_MATMUL_DST)) {
    case MR_DST_ACT:
        return (struct dest){.area = AREA_ACT, .base = base, .count = (int)cols / 32};
    case MR_DST_QKV:
        return (struct dest){.area = AREA_QKV, .base = 2 * base, .count = (int)cols / 32};
    case MR_DST_RES:
        return row_dest(training && mr_command_get(m, MR_F_MATMUL_ROW), cols);
    default:
        return (struct dest){0}; // results are compared in memory at the end
    }
}

static struct dest move_dest(const struct mr_command *m)
{
    unsigned work = mr_command_get(m, MR_F_MOVE_ROWS_WORK);
    uint32_t cols = mr_command_get(m, MR_F_MOVE_ROWS_COLS);
    if (work != MR_MOVE_COPY)
        return row_dest(mr_row_work_writes(work) == 2, cols);
    if (!mr_command_get(m, MR_F_MOVE_ROWS_TO_ACT))
        return (struct dest){0};
    return (struct dest){.area = AREA_ACT,
                         .base = (int)mr_command_get(m, MR_F_MOVE_ROWS_DST_BASE),
                         .count = (int)cols / 32};
}

static void dests_of(const struct mr_check *c, unsigned i, struct dest d[DESTS])
{
    const struct mr_command *m = command(c, i);
    struct mr_machine_run r = mr_machine_state(c->machine);
    int rows = r.n_rows;
    memset(d, 0, DESTS * sizeof *d);
    switch (mr_command_get(m, MR_F_CMD_OPCODE)) {
    case MR_OP_LOAD_ROWS:
        d[0] = row_dest(false, 16 * mr_command_get(m, MR_F_LOAD_ROWS_RES_BEATS));
        break;
    case MR_OP_LAYERNORM:
        d[0].area = AREA_ACT;
        d[0].base = (int)mr_command_get(m, MR_F_LAYERNORM_DST_BASE);
        d[0].count = (int)mr_command_get(m, MR_F_LAYERNORM_DBLOCKS);
        if (mr_command_get(m, MR_F_LAYERNORM_LOGIT_ROWS))
            rows = r.n_logits;
        if (mr_command_get(m, MR_F_LAYERNORM_BACK))
            d[1] = row_dest(false, 32 * (uint32_t)d[0].count);
        if (r.training && mr_command_get(m, MR_F_LAYERNORM_KEEP))
            d[2] = row_dest(true, 32 * (uint32_t)d[0].count);
        break;
    case MR_OP_ATTEND:
        d[0].area = AREA_ACT;
        d[0].base = (int)mr_command_get(m, MR_F_ATTEND_DST_BASE);
        d[0].count = 2 * (int)(mr_command_get(m, MR_F_ATTEND_HEADS) *
                               mr_command_get(m, MR_F_ATTEND_HEAD_BEATS));
        if (r.training && mr_command_get(m, MR_F_ATTEND_KEEP))
            d[1] = row_dest(true, 32 * (uint32_t)d[0].count);
        break;
    case MR_OP_MATMUL:
        d[0] = matmul_dest(m, r.training);
        break;
    case MR_OP_LOAD_ACT:
        d[0].area = AREA_ACT;
        d[0].base = (int)mr_command_get(m, MR_F_LOAD_ACT_DST_BASE);
        d[0].count = (int)mr_command_get(m, MR_F_LOAD_ACT_KBLOCKS);
        rows = (int)mr_command_get(m, MR_F_LOAD_ACT_ROWS);
        break;
    case MR_OP_FETCH_ROWS:
        d[0] = row_dest(mr_command_get(m, MR_F_FETCH_ROWS_ROW),
                        16 * mr_command_get(m, MR_F_FETCH_ROWS_BEATS));
        break;
    case MR_OP_MOVE_ROWS:
        d[0] = move_dest(m);
        break;
    default:
        break;
    }
    for (int k = 0; k < DESTS; k++) {
        d[k].rows = rows;
        d[k].lo = r.two_pass && !is_rows(&d[k]);
    }
}

static int slots(const struct dest *d)
{
    return d->rows * (d->lo ? 2 : 1);
}

static size_t row_bytes(const struct dest *d)
{
    return (size_t)d->count * (is_rows(d) ? 4 : BLOCK_BYTES);
}

static void model_block(const struct mr_check *c, const struct dest *d, int slot, int i,
                        uint8_t *out)
{
    uint8_t code;
    const int8_t *q = d->area == AREA_ACT ? mr_machine_act(c->machine, slot, d->base + i, &code)
                                          : mr_machine_qkv(c->machine, slot, d->base + i, &code);
    memcpy(out, q, 32);
    out[32] = code;
}

static int take_snapshot(struct mr_check *c, struct snapshot *s)
{
    const struct dest *d = &s->dest;
    if (d->area == AREA_NONE)
        return 0;
    size_t bytes = row_bytes(d);
    s->bytes = malloc(bytes * (size_t)slots(d) + 1);
    if (!s->bytes)
        return mr_fail(&c->err, MR_ERR_MEMORY, "no memory for the comparison of a command");
    for (int r = 0; r < slots(d); r++) {
        uint8_t *out = s->bytes + (size_t)r * bytes;
        if (is_rows(d))
            memcpy(out, mr_machine_row(c->machine, d->area == AREA_SECOND, r), bytes);
        else
            for (int b = 0; b < d->count; b++)
                model_block(c, d, r, b, out + (size_t)b * BLOCK_BYTES);
    }
    return 0;
}

// The device's words: V floats of the residual, a block, or two blocks of the q/k/v memory.
static int device_block(struct mr_check *c, const struct dest *d, int slot, int i, uint8_t *out)
{
    char name[64];
    uint8_t word[72];
    if (d->area == AREA_ACT) {
        snprintf(name, sizeof name, "u_matmul.u_act_mem.gen_bank[%d].u_act.mem", slot % c->g.r);
        uint32_t index = (uint32_t)(slot / c->g.r * c->g.act_words + d->base + i);
        int n = c->api->peek(c->sim, name, index, word, sizeof word, &c->err);
        memcpy(out, word, BLOCK_BYTES);
        return n;
    }
    int block = d->base + i;
    int n = c->api->peek(c->sim, "u_kv.u_qkv.mem", (uint32_t)(slot * c->g.qkv_words + block / 2),
                         word, sizeof word, &c->err);
    memcpy(out, word + (block % 2 ? BLOCK_BYTES : 0), BLOCK_BYTES);
    return n;
}

static int differs(struct mr_check *c, unsigned i, const char *what, int row, int index,
                   const char *part, double device, double model)
{
    unsigned op = mr_command_get(command(c, i), MR_F_CMD_OPCODE);
    return mr_fail(
        &c->err, MR_ERR_DIFF,
        "the device and the C model differ after command %u (%s): %s, row %d, %s %d: device "
        "%.9g, model %.9g",
        i, mr_opcode_name(op), what, row, part, index, device, model);
}

static int compare_blocks(struct mr_check *c, unsigned i, const struct snapshot *s)
{
    const char *what = s->dest.area == AREA_ACT ? "activation memory" : "q/k/v memory";
    const uint8_t *ref = s->bytes;
    for (int r = 0; r < slots(&s->dest); r++)
        for (int b = 0; b < s->dest.count; b++, ref += BLOCK_BYTES) {
            uint8_t got[BLOCK_BYTES];
            int n = device_block(c, &s->dest, r, b, got);
            if (n < 0)
                return n;
            if (got[32] != ref[32])
                return differs(c, i, what, r, b, "scale code of block", got[32], ref[32]);
            for (int e = 0; e < 32; e++)
                if (got[e] != ref[e])
                    return differs(c, i, what, r, 32 * b + e, "element", (int8_t)got[e],
                                   (int8_t)ref[e]);
        }
    return 0;
}

static int compare_rows(struct mr_check *c, unsigned i, const struct snapshot *s)
{
    int v = 4 * c->g.n;
    bool second = s->dest.area == AREA_SECOND;
    const char *name = second ? "u_vector.gen_second.u_second.mem" : "u_vector.u_residual.mem";
    for (int r = 0; r < s->dest.rows; r++)
        for (int w = 0; w < s->dest.count / v; w++) {
            float got[64], ref[64];
            int n = c->api->peek(c->sim, name, (uint32_t)(r * (c->g.d_max / v) + w), got,
                                 sizeof got, &c->err);
            if (n < 0)
                return n;
            memcpy(ref, s->bytes + (size_t)r * row_bytes(&s->dest) + (size_t)(4 * v * w),
                   4 * (size_t)v);
            for (int e = 0; e < v; e++)
                // A flushed subnormal in the input is the same number to both.
                if (mr_bits(mr_in(got[e])) != mr_bits(mr_in(ref[e])))
                    return differs(c, i, second ? "second row memory" : "residual", r, v * w + e,
                                   "element", (double)got[e], (double)ref[e]);
        }
    return 0;
}

static int compare(struct mr_check *c, unsigned i, const struct snapshot *s)
{
    if (!s->bytes)
        return 0;
    return is_rows(&s->dest) ? compare_rows(c, i, s) : compare_blocks(c, i, s);
}

static int model_until(struct mr_check *c, unsigned index)
{
    struct mr_device_error dev;
    while (!c->finished && mr_machine_state(c->machine).next <= index) {
        unsigned i = mr_machine_state(c->machine).next;
        int rc = mr_machine_step(c->machine, &dev, &c->err);
        if (rc < 0)
            return rc;
        c->finished = rc == 1;
        struct dest d[DESTS];
        dests_of(c, i, d);
        for (int k = 0; k < DESTS; k++) {
            c->snaps[i][k].dest = d[k];
            rc = take_snapshot(c, &c->snaps[i][k]);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

static int on_done(void *user, unsigned queue, unsigned index)
{
    struct mr_check *c = user;
    (void)queue;
    if (c->err.status != 0 || index >= c->run.n_commands)
        return 1;
    int rc = model_until(c, index);
    for (int k = 0; k < DESTS; k++) {
        struct snapshot *s = &c->snaps[index][k];
        if (rc == 0)
            rc = compare(c, index, s);
        free(s->bytes);
        s->bytes = NULL;
    }
    return rc < 0;
}

static void drop_snapshots(struct mr_check *c)
{
    for (unsigned i = 0; c->snaps && i < c->run.n_commands; i++)
        for (int k = 0; k < DESTS; k++)
            free(c->snaps[i][k].bytes);
    free(c->snaps);
    c->snaps = NULL;
}

int mr_check_new(struct mr_check **check, const struct mr_device_info *info,
                 const struct mr_sim_api *api, struct mr_sim *sim, struct mr_memory *ref,
                 struct mr_error *err)
{
    *check = NULL;
    struct mr_check *c = calloc(1, sizeof *c);
    if (!c)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the comparison");
    c->g = info->g;
    c->api = api;
    c->sim = sim;
    c->ref = ref;
    int rc = mr_machine_new(&c->machine, &c->g, ref, err);
    if (rc < 0) {
        free(c);
        return rc;
    }
    *check = c;
    return 0;
}

void mr_check_free(struct mr_check *check)
{
    if (!check)
        return;
    drop_snapshots(check);
    mr_machine_free(check->machine);
    free(check);
}

int mr_check_begin(struct mr_check *c, uint64_t run_addr, struct mr_error *err)
{
    struct mr_device_error dev;
    drop_snapshots(c);
    c->err = (struct mr_error){0};
    c->finished = false;
    int rc = mr_machine_begin(c->machine, run_addr, &dev, err);
    if (rc < 0)
        return rc;
    c->run = mr_machine_state(c->machine);
    c->snaps = calloc(c->run.n_commands, sizeof *c->snaps);
    if (!c->snaps)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the comparison");
    c->api->on_done(c->sim, on_done, c);
    return 0;
}

bool mr_check_failed(const struct mr_check *check)
{
    return check->err.status != 0;
}

int mr_check_end(struct mr_check *c, const struct mr_memory *device, struct mr_error *err)
{
    c->api->on_done(c->sim, NULL, NULL);
    int rc = c->err.status;
    if (rc == 0)
        rc = model_until(c, c->run.n_commands - 1);
    if (rc < 0) {
        *err = c->err;
        return rc;
    }
    for (int i = 0; i < device->count; i++) {
        const struct mr_region *a = &device->regions[i], *b = &c->ref->regions[i];
        if (!a->writable || memcmp(a->data, b->data, a->bytes) == 0)
            continue;
        size_t at = 0;
        while (a->data[at] == b->data[at])
            at++;
        return mr_fail(
            err, MR_ERR_DIFF,
            "the device and the C model differ in memory after the run: address 0x%llx: device "
            "0x%02x, model 0x%02x",
            (unsigned long long)(a->addr + at), a->data[at], b->data[at]);
    }
    return 0;
}
