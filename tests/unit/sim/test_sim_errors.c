// SPDX-License-Identifier: Apache-2.0
// What goes wrong in a run: each fault ends in one error with the documented code, the C model says
// the same where it knows the fault, and the next run on the same device has the right bits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device/open.h"
#include "device/sim.h"
#include "engine/program.h"
#include "unit/fixtures.h"

enum { ROWS = 5, ANY = -1, WATCHDOG = 12, NO_SUCH = 0x77 };

// A device in front of another one that changes a run's descriptor, program and input before it
// starts and puts them back afterwards.
struct proxy {
    struct mr_device base;
    struct mr_device *inner;
    void (*tamper)(struct proxy *, uint32_t *desc, struct mr_command *prog, uint32_t *input);
    const struct edit *edit;
    int command; // that was changed
    uint64_t weights, kv, program, input, result, descriptor;
};

static struct proxy *self(struct mr_device *dev)
{
    return (struct proxy *)dev;
}

static int proxy_alloc(struct mr_device *d, int channel, size_t bytes, const void *map,
                       uint64_t *addr, struct mr_error *err)
{
    return mr_device_alloc(self(d)->inner, channel, bytes, map, addr, err);
}

static int proxy_write(struct mr_device *d, uint64_t addr, const void *data, size_t bytes,
                       struct mr_error *err)
{
    return mr_device_write(self(d)->inner, addr, data, bytes, err);
}

static int proxy_read(struct mr_device *d, uint64_t addr, void *data, size_t bytes,
                      struct mr_error *err)
{
    return mr_device_read(self(d)->inner, addr, data, bytes, err);
}

static int proxy_counters(struct mr_device *d, uint64_t *out, struct mr_error *err)
{
    return mr_device_counters(self(d)->inner, out, err);
}

static uint64_t u64(const uint32_t *w)
{
    return w[0] | (uint64_t)w[1] << 32;
}

static int proxy_run(struct mr_device *d, uint64_t run_addr, struct mr_error *err)
{
    enum { DESC = 2 * MR_BEAT_BYTES, INPUT = 4 * MR_BEAT_BYTES };
    struct proxy *p = self(d);
    struct mr_error e = {0};
    uint32_t desc[DESC / 4], desc_was[DESC / 4], input[INPUT / 4], input_was[INPUT / 4];
    check(proxy_read(d, run_addr, desc, DESC, &e), &e);
    p->descriptor = run_addr;
    p->program = u64(desc + MR_RUN_PROG_LO);
    p->input = u64(desc + MR_RUN_INPUT_LO);
    p->result = u64(desc + MR_RUN_RESULT_LO);
    p->weights = u64(desc + 16);
    p->kv = u64(desc + 20);
    size_t bytes = (size_t)desc[MR_RUN_N_CMDS] * MR_BEAT_BYTES;
    struct mr_command *prog = allocate(1, bytes), *prog_was = allocate(1, bytes);
    check(proxy_read(d, p->program, prog, bytes, &e), &e);
    check(proxy_read(d, p->input, input, INPUT, &e), &e);
    memcpy(desc_was, desc, DESC);
    memcpy(prog_was, prog, bytes);
    memcpy(input_was, input, INPUT);
    if (p->tamper)
        p->tamper(p, desc, prog, input);
    check(proxy_write(d, run_addr, desc, DESC, &e), &e);
    check(proxy_write(d, p->program, prog, bytes, &e), &e);
    check(proxy_write(d, p->input, input, INPUT, &e), &e);
    int rc = mr_device_run(p->inner, run_addr, err);
    check(proxy_write(d, run_addr, desc_was, DESC, &e), &e);
    check(proxy_write(d, p->program, prog_was, bytes, &e), &e);
    check(proxy_write(d, p->input, input_was, INPUT, &e), &e);
    free(prog);
    free(prog_was);
    return rc;
}

static void proxy_close(struct mr_device *d)
{
    mr_device_close(self(d)->inner);
}

static const struct mr_device_ops proxy_ops = {proxy_alloc, proxy_write,    proxy_read,
                                               proxy_run,   proxy_counters, proxy_close};

// ---- a model on a proxied device ---------------------------------------------------------------

static int wrong; // cases of this test that did not end as they should

struct bench {
    struct fixture f;
    struct proxy p;
    struct mr_backend *b;
    const struct mr_sim_api *api; // NULL: the C model
    struct mr_sim *sim;
    uint64_t good; // hash of the logits of two steps in the right
    int seq;
};

static int step(struct bench *t, float *logits, struct mr_error *err)
{
    struct mr_row rows[ROWS];
    for (int i = 0; i < ROWS; i++)
        rows[i] = (struct mr_row){t->seq, (int32_t)t->f.ids[i], true};
    return mr_backend_step(t->b, rows, ROWS, logits, err);
}

// Two steps of an own sequence, so that the second one reads the KV store.
static uint64_t two_steps(struct bench *t)
{
    struct mr_error err = {0};
    size_t count = (size_t)ROWS * (size_t)t->f.vocab;
    float *logits = allocate(2 * count, sizeof *logits);
    check(mr_backend_seq_new(t->b, &t->seq, &err), &err);
    check(step(t, logits, &err), &err);
    check(step(t, logits + count, &err), &err);
    uint64_t h = fnv(0xCBF29CE484222325u, logits, 2 * count * sizeof *logits);
    mr_backend_seq_free(t->b, t->seq);
    free(logits);
    return h;
}

static void open_bench(struct bench *t, const char *uri)
{
    struct mr_error err = {0};
    struct mr_engine_options opt = {.max_seqs = 1};
    *t = (struct bench){0};
    wrong = 0;
    open_fixture(&t->f, "fp32-d16-r2", MR_FORMAT_MXINT8);
    t->p.base.ops = &proxy_ops;
    check(mr_device_open(&t->p.inner, uri, &err), &err);
    t->p.base.info = *mr_device_info(t->p.inner);
    if (strncmp(uri, "sim:", 4) == 0) {
        t->api = mr_device_sim_of(t->p.inner, &t->sim);
        check(t->api->reg_write(t->sim, MR_REG_WATCHDOG, WATCHDOG, &err), &err);
    }
    check(mr_engine_open(&t->b, &t->f.packed, &t->p.base, &opt, &err), &err);
    t->good = two_steps(t);
}

static void close_bench(struct bench *t)
{
    mr_backend_close(t->b);
    mr_device_close(&t->p.base);
    close_fixture(&t->f);
    assert_int_equal(wrong, 0);
}

static void expect(const char *device, const char *name, int rc, const struct mr_error *err,
                   unsigned code, int command)
{
    char want[64];
    (void)snprintf(want, sizeof want, "(code %u) at command %d,", code, command);
    if (command == ANY)
        (void)snprintf(want, sizeof want, "(code %u) at command ", code);
    // The model refuses a bad descriptor in words of its own.
    bool refused = code == MR_DEVERR_DESCRIPTOR && strstr(err->text, "bad run descriptor");
    if (rc == MR_ERR_DEVICE && err->status == rc && !strchr(err->text, '\n') &&
        (refused || strstr(err->text, want)))
        return;
    print_message("# %s on %s: expected '%s', got %d '%s'\n", name, device, want, rc, err->text);
    wrong++;
}

// Whatever happened, the next two runs are right.
static void still_works(struct bench *t, const char *name)
{
    mr_backend_seq_free(t->b, t->seq);
    if (two_steps(t) != t->good) {
        print_message("# %s: wrong logits in the runs after it\n", name);
        wrong++;
    }
}

// ---- wrong programs and descriptors ------------------------------------------------------------

enum kind { DESC, CMD, INPUT, ENDS };

struct edit {
    const char *name;
    enum kind kind;
    unsigned opcode; // CMD: the first command with it
    unsigned at;     // CMD: field (MR_F_*); else word
    uint32_t value;
    unsigned code;
    int command; // expected; for CMD 0 means the changed one, ANY that it is not defined
    int how;     // 1: in the second step; 2: with a destination of 127
};

static const struct edit edits[] = {
    {"magic", DESC, 0, MR_RUN_MAGIC, 0, MR_DEVERR_DESCRIPTOR, ANY, 0},
    {"no rows", DESC, 0, MR_RUN_N_ROWS, 0, MR_DEVERR_DESCRIPTOR, ANY, 0},
    {"too many rows", DESC, 0, MR_RUN_N_ROWS, 9, MR_DEVERR_DESCRIPTOR, ANY, 0},
    {"too many rows for two passes", DESC, 0, MR_RUN_FLAGS, 1, MR_DEVERR_DESCRIPTOR, ANY, 0},
    {"no commands", DESC, 0, MR_RUN_N_CMDS, 0, MR_DEVERR_DESCRIPTOR, ANY, 0},
    {"program beyond its window", DESC, 0, MR_RUN_PROG_BEATS, 3, MR_DEVERR_DESCRIPTOR, ANY, 0},

    {"opcode", CMD, MR_OP_STORE_KV, MR_F_CMD_OPCODE, NO_SUCH, MR_DEVERR_COMMAND, 0, 0},
    {"opcode 0", CMD, MR_OP_LOAD_ROWS, MR_F_CMD_OPCODE, 0, MR_DEVERR_COMMAND, 0, 0},

    {"STREAM_VEC of nothing", CMD, MR_OP_STREAM_VEC, MR_F_STREAM_VEC_D, 0, MR_DEVERR_COMMAND, 0, 0},
    {"STREAM_VEC 65", CMD, MR_OP_STREAM_VEC, MR_F_STREAM_VEC_D, 65, MR_DEVERR_COMMAND, 0, 0},
    {"STREAM_VEC too long", CMD, MR_OP_STREAM_VEC, MR_F_STREAM_VEC_D, 320, MR_DEVERR_COMMAND, 0, 0},
    {"STREAM_TILES kblocks 0", CMD, MR_OP_STREAM_TILES, MR_F_STREAM_TILES_KBLOCKS, 0,
     MR_DEVERR_COMMAND, 0, 0},
    {"STREAM_TILES kblocks 513", CMD, MR_OP_STREAM_TILES, MR_F_STREAM_TILES_KBLOCKS, 513,
     MR_DEVERR_COMMAND, 0, 0},
    {"STREAM_TILES cols 0", CMD, MR_OP_STREAM_TILES, MR_F_STREAM_TILES_COLS, 0, MR_DEVERR_COMMAND,
     0, 0},
    {"STREAM_TILES cols 96", CMD, MR_OP_STREAM_TILES, MR_F_STREAM_TILES_COLS, 96, MR_DEVERR_COMMAND,
     0, 0},

    {"LOAD_ROWS residual too long", CMD, MR_OP_LOAD_ROWS, MR_F_LOAD_ROWS_RES_BEATS, 17,
     MR_DEVERR_COMMAND, 0, 0},
    {"LOAD_ROWS rotary too long", CMD, MR_OP_LOAD_ROWS, MR_F_LOAD_ROWS_ROT_BEATS, 17,
     MR_DEVERR_COMMAND, 0, 0},
    {"LOAD_ROWS outside its window", CMD, MR_OP_LOAD_ROWS, MR_F_LOAD_ROWS_RES_OFF, 1u << 20,
     MR_DEVERR_WINDOW, 0, 0},
    {"row beyond the context", INPUT, 0, 5, 512, MR_DEVERR_COMMAND, 0, 0},
    {"row with reserved flags", INPUT, 0, 6, 4, MR_DEVERR_COMMAND, 0, 0},
    {"row with a reserved word", INPUT, 0, 3, 1, MR_DEVERR_COMMAND, 0, 0},

    {"LAYERNORM of nothing", CMD, MR_OP_LAYERNORM, MR_F_LAYERNORM_DBLOCKS, 0, MR_DEVERR_COMMAND, 0,
     0},
    {"LAYERNORM 3 blocks", CMD, MR_OP_LAYERNORM, MR_F_LAYERNORM_DBLOCKS, 3, MR_DEVERR_COMMAND, 0,
     0},
    {"LAYERNORM beyond memory", CMD, MR_OP_LAYERNORM, MR_F_LAYERNORM_DST_BASE, 127,
     MR_DEVERR_COMMAND, 0, 0},

    {"MATMUL source beyond memory", CMD, MR_OP_MATMUL, MR_F_MATMUL_SRC_BASE, 127, MR_DEVERR_COMMAND,
     0, 0},
    {"MATMUL kblocks 0", CMD, MR_OP_MATMUL, MR_F_MATMUL_KBLOCKS, 0, MR_DEVERR_COMMAND, 0, 0},
    {"MATMUL cols 0", CMD, MR_OP_MATMUL, MR_F_MATMUL_COLS, 0, MR_DEVERR_COMMAND, 0, 0},
    {"MATMUL cols 96", CMD, MR_OP_MATMUL, MR_F_MATMUL_COLS, 96, MR_DEVERR_COMMAND, 0, 0},
    {"MATMUL q/k/v beyond memory", CMD, MR_OP_MATMUL, MR_F_MATMUL_DST_BASE, 32, MR_DEVERR_COMMAND,
     0, 0},
    {"MATMUL to activations beyond memory", CMD, MR_OP_MATMUL, MR_F_MATMUL_DST, MR_DST_ACT,
     MR_DEVERR_COMMAND, ANY, 2},
    {"MATMUL head lanes 0", CMD, MR_OP_MATMUL, MR_F_MATMUL_HEAD_LANES, 0, MR_DEVERR_COMMAND, 0, 0},
    {"MATMUL head lanes 63", CMD, MR_OP_MATMUL, MR_F_MATMUL_HEAD_LANES, 63, MR_DEVERR_COMMAND, 0,
     0},
    {"MATMUL rotary beyond memory", CMD, MR_OP_MATMUL, MR_F_MATMUL_ROTARY_DIM, 258,
     MR_DEVERR_COMMAND, 0, 0},

    {"PM_LOAD of nothing", CMD, MR_OP_PM_LOAD, MR_F_PM_LOAD_WBEATS, 0, MR_DEVERR_COMMAND, 0, 0},
    {"PM_LOAD too wide", CMD, MR_OP_PM_LOAD, MR_F_PM_LOAD_WBEATS, 9, MR_DEVERR_COMMAND, 0, 0},
    {"ATTEND no heads", CMD, MR_OP_ATTEND, MR_F_ATTEND_HEADS, 0, MR_DEVERR_COMMAND, 0, 0},
    {"ATTEND too wide", CMD, MR_OP_ATTEND, MR_F_ATTEND_HEADS, 9, MR_DEVERR_COMMAND, 0, 0},
    {"ATTEND queries beyond memory", CMD, MR_OP_ATTEND, MR_F_ATTEND_Q_BASE, 31, MR_DEVERR_COMMAND,
     0, 0},
    {"ATTEND result beyond memory", CMD, MR_OP_ATTEND, MR_F_ATTEND_DST_BASE, 127, MR_DEVERR_COMMAND,
     0, 0},
    {"STORE_KV of nothing", CMD, MR_OP_STORE_KV, MR_F_STORE_KV_WBEATS, 0, MR_DEVERR_COMMAND, 0, 0},
    {"STORE_KV too wide", CMD, MR_OP_STORE_KV, MR_F_STORE_KV_WBEATS, 9, MR_DEVERR_COMMAND, 0, 0},
    {"STORE_KV source beyond memory", CMD, MR_OP_STORE_KV, MR_F_STORE_KV_SRC_BASE, 31,
     MR_DEVERR_COMMAND, 0, 0},

    {"input window", DESC, 0, MR_RUN_INPUT_BEATS, 1, MR_DEVERR_WINDOW, 0, 0},
    {"result window", DESC, 0, MR_RUN_RESULT_BEATS, 1, MR_DEVERR_WINDOW, ANY, 0},
    {"weight window", DESC, 0, 16 + 2, 10, MR_DEVERR_WINDOW, ANY, 0},
    {"KV window, writing", DESC, 0, 16 + 6, 1, MR_DEVERR_WINDOW, ANY, 0},
    {"KV window, reading", DESC, 0, 16 + 6, 1, MR_DEVERR_WINDOW, ANY, 1},
    {"first row continues", INPUT, 0, 2, 3, MR_DEVERR_COMMAND, 0, 0},
    {"an end beyond all positions", INPUT, 0, 3, 4097, MR_DEVERR_COMMAND, 0, 0},
    {"an end in front of a row", ENDS, 0, 0, ROWS - 2, MR_DEVERR_COMMAND, 0, 0},
    {"rows of a sequence that leave out a position", INPUT, 0, 5, 3, MR_DEVERR_COMMAND, 0, 0},
    {"KV offset of the values", DESC, 0, MR_RUN_KV_V_BEATS, 1u << 30, MR_DEVERR_WINDOW, ANY, 1},
    {"rows of a sequence that lie apart", INPUT, 0, 0, 1u << 30, MR_DEVERR_COMMAND, 0, 1},

    {"a signal that does not come", CMD, MR_OP_LAYERNORM, MR_F_CMD_SIGNAL, 0, MR_DEVERR_WATCHDOG,
     ANY, 0},
    {"no END", CMD, MR_OP_END, MR_F_CMD_OPCODE, MR_OP_PM_LOAD, MR_DEVERR_COMMAND, 0, 0},
    {"a program that stops before END", DESC, 0, MR_RUN_N_CMDS, 1, MR_DEVERR_WATCHDOG, ANY, 0},
};

static void apply(struct proxy *p, uint32_t *desc, struct mr_command *prog, uint32_t *input)
{
    const struct edit *e = p->edit;
    int n = (int)desc[MR_RUN_N_CMDS];
    p->command = 0;
    switch (e->kind) {
    case DESC:
        desc[e->at] = e->value;
        break;
    case INPUT:
        input[e->at] = e->value;
        break;
    case ENDS: // of all rows
        for (int i = 0; i < ROWS; i++)
            input[4 * i + 3] = e->value;
        break;
    default:
        while (p->command < n && mr_command_get(&prog[p->command], MR_F_CMD_OPCODE) != e->opcode)
            p->command++;
        assert_in_range(p->command, 0, n - 1);
        mr_command_set(&prog[p->command], e->at, e->value);
        if (e->how == 2)
            mr_command_set(&prog[p->command], MR_F_MATMUL_DST_BASE, 127);
    }
}

static void try_edit(struct bench *t, const char *device, const struct edit *e)
{
    struct mr_error err = {0};
    float *logits = allocate((size_t)ROWS * (size_t)t->f.vocab, sizeof *logits);
    check(mr_backend_seq_new(t->b, &t->seq, &err), &err);
    if (e->how == 1)
        check(step(t, logits, &err), &err);
    t->p.tamper = apply;
    t->p.edit = e;
    int rc = step(t, logits, &err);
    t->p.tamper = NULL;
    int command = e->command;
    if (e->kind == CMD && command == 0)
        command = t->p.command;
    expect(device, e->name, rc, &err, e->code, command);
    still_works(t, e->name);
    free(logits);
}

static void wrong_programs(const char *device, size_t every)
{
    struct bench t;
    open_bench(&t, device);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i += every)
        try_edit(&t, device, &edits[i]);
    close_bench(&t);
}

static void wrong_programs_are_refused_by_the_model(void **state)
{
    (void)state;
    wrong_programs("model:tiny", 1);
}

static void wrong_programs_are_refused_by_the_device(void **state)
{
    (void)state;
    wrong_programs("sim:tiny", 1);
}

static void wrong_programs_are_refused_with_slow_memory(void **state)
{
    (void)state;
    wrong_programs("sim:tiny,seed=5,stalls=40", 5);
}

// ---- programs of their own ---------------------------------------------------------------------

// Signals a semaphore that nobody waits for, 16 times.
static void overflow(struct proxy *p, uint32_t *desc, struct mr_command *prog, uint32_t *input)
{
    (void)p;
    (void)input;
    assert_in_range(desc[MR_RUN_N_CMDS], 18, 1000);
    mr_command_set(&prog[0], MR_F_CMD_SIGNAL, 1u << 15);
    for (int i = 1; i < 17; i++)
        prog[i] = prog[0];
    mr_command_set(&prog[16], MR_F_CMD_SIGNAL, 1u << 14);
    prog[17] = (struct mr_command){{MR_OP_END, 1u << 14}};
    desc[MR_RUN_N_CMDS] = 18;
}

static void only_end(struct proxy *p, uint32_t *desc, struct mr_command *prog, uint32_t *input)
{
    (void)p;
    (void)input;
    prog[0] = (struct mr_command){{MR_OP_END}};
    desc[MR_RUN_N_CMDS] = 1;
}

static void own_programs(const char *device)
{
    struct bench t;
    struct mr_error err = {0};
    open_bench(&t, device);
    float *logits = allocate((size_t)ROWS * (size_t)t.f.vocab, sizeof *logits);
    check(mr_backend_seq_new(t.b, &t.seq, &err), &err);
    t.p.tamper = overflow;
    int rc = step(&t, logits, &err);
    t.p.tamper = NULL;
    expect(device, "semaphore overflow", rc, &err, MR_DEVERR_COMMAND, ANY);
    still_works(&t, "semaphore overflow");

    check(mr_backend_seq_new(t.b, &t.seq, &err), &err);
    t.p.tamper = only_end;
    check(step(&t, logits, &err), &err); // nothing to do is no error
    t.p.tamper = NULL;
    still_works(&t, "END alone");
    free(logits);
    close_bench(&t);
}

static void a_semaphore_overflows_and_a_program_does_nothing(void **state)
{
    (void)state;
    own_programs("model:tiny");
    own_programs("sim:tiny");
}

// ---- faults of the memory ----------------------------------------------------------------------

static void fault(struct bench *t, const char *name, enum mr_mem_fault kind, uint64_t addr,
                  unsigned code)
{
    struct mr_error err = {0};
    float *logits = allocate((size_t)ROWS * (size_t)t->f.vocab, sizeof *logits);
    check(mr_backend_seq_new(t->b, &t->seq, &err), &err);
    check(step(t, logits, &err), &err);
    check(t->api->fault(t->sim, kind, addr, &err), &err);
    int rc = step(t, logits, &err);
    expect("sim:tiny", name, rc, &err, code, ANY);
    if (code == MR_DEVERR_WATCHDOG) {
        // As long as the memory is silent there is no other run, and the host does not hang.
        err = (struct mr_error){0};
        rc = step(t, logits, &err);
        assert_int_equal(rc, MR_ERR_DEVICE);
        assert_non_null(strstr(err.text, "still busy"));
    }
    t->api->clear_faults(t->sim);
    still_works(t, name);
    free(logits);
}

static void faults_of_the_memory(const char *device)
{
    struct bench t;
    open_bench(&t, device);
    const struct proxy *p = &t.p;
    uint64_t record = (uint64_t)(1 + mr_dims_of(&t.f.packed.config).w / 64) * MR_BEAT_BYTES;
    const struct {
        const char *name;
        uint64_t addr;
        bool write;
    } place[] = {
        {"weights", p->weights + 640, false},
        {"first weight", p->weights, false},
        {"KV store, reading", p->kv, false},
        {"descriptor", p->descriptor, false},
        {"program", p->program + 1024, false},
        {"row table", p->input, false},
        {"logits", p->result, true},
        {"KV store, writing", p->kv + ROWS * record, true}, // next position
    };
    for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
        bool w = place[i].write;
        fault(&t, place[i].name, w ? MR_MEM_FAULT_WRITE : MR_MEM_FAULT_READ, place[i].addr,
              w ? MR_DEVERR_WRITE : MR_DEVERR_READ);
        fault(&t, place[i].name, w ? MR_MEM_FAULT_WRITE_DROP : MR_MEM_FAULT_READ_DROP,
              place[i].addr, MR_DEVERR_WATCHDOG);
    }
    close_bench(&t);
}

static void memory_errors_and_silence_end_a_run(void **state)
{
    (void)state;
    faults_of_the_memory("sim:tiny");
}

static void memory_errors_and_silence_end_a_run_with_stalls(void **state)
{
    (void)state;
    faults_of_the_memory("sim:tiny,seed=9,stalls=50,memory=hbm2");
}

// ---- Ctrl-C ------------------------------------------------------------------------------------

static int stop_at_once(void *user, unsigned queue, unsigned index)
{
    (void)user;
    (void)queue;
    (void)index;
    mr_device_stop = 1;
    return 0;
}

static void an_interrupt_ends_a_run(void **state)
{
    struct bench t;
    struct mr_error err = {0};
    (void)state;
    open_bench(&t, "sim:tiny");
    float *logits = allocate((size_t)ROWS * (size_t)t.f.vocab, sizeof *logits);
    for (int before = 0; before < 2; before++) {
        check(mr_backend_seq_new(t.b, &t.seq, &err), &err);
        if (before)
            mr_device_stop = 1;
        else
            t.api->on_done(t.sim, stop_at_once, NULL);
        err = (struct mr_error){0};
        assert_int_equal(step(&t, logits, &err), MR_ERR_INTERRUPTED);
        assert_int_equal(err.status, MR_ERR_INTERRUPTED);
        t.api->on_done(t.sim, NULL, NULL);
        mr_device_stop = 0;
        still_works(&t, "interrupt");
    }
    free(logits);
    close_bench(&t);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_programs_are_refused_by_the_model),
        cmocka_unit_test(wrong_programs_are_refused_by_the_device),
        cmocka_unit_test(wrong_programs_are_refused_with_slow_memory),
        cmocka_unit_test(a_semaphore_overflows_and_a_program_does_nothing),
        cmocka_unit_test(memory_errors_and_silence_end_a_run),
        cmocka_unit_test(memory_errors_and_silence_end_a_run_with_stalls),
        cmocka_unit_test(an_interrupt_ends_a_run),
    };
    return cmocka_run_group_tests_name("sim_errors", tests, NULL, NULL);
}
