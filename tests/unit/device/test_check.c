// SPDX-License-Identifier: Apache-2.0
// What `check` compares behind each command: the C model stands in for the device, one of its
// memories lies once, and the comparison says where.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/command.h"
#include "cmodel/machine.h"
#include "cmodel/memory.h"
#include "cmodel/num.h"
#include "device/check.h"
#include "device/configs.h"
#include "unit/check.h"
#include "unit/files.h"

enum { BEAT = 64, N_ROWS = 5, LANES = 128, WINDOW = 1024, MOST = 24 };
enum { ACT_BASE = 3 }; // first block in activation memory

// Where a command's results are looked for: words of this memory of the core, and the name in the
// message.
struct place {
    const char *memory, *text;
    int words;
};
static const struct place act = {"u_matmul.u_act_mem", "activation memory", N_ROWS *LANES / 32};
static const struct place few = {"u_matmul.u_act_mem", "activation memory", 3 * LANES / 32};
static const struct place qkv = {"u_kv.u_qkv.mem", "q/k/v memory", N_ROWS *LANES / 32};
static const struct place rows = {"u_vector.u_residual.mem", "residual", N_ROWS *LANES / 4};
static const struct place second = {"u_vector.gen_second", "second row memory", N_ROWS *LANES / 4};

struct bench {
    struct mr_geometry g;
    struct mr_memory memory;
    struct mr_machine *device;
    uint64_t desc;
    mr_sim_on_done *call;
    void *user;
    const char *lies; // in peeks of memories whose names begin like this, or NULL
    int peeks;        // of them
    enum lie { COUNTED, ELEMENT, SCALE, FAILS } lie;
};
static struct bench b;

static struct mr_command program[MOST];
static const struct place *places[MOST][2]; // what command i writes
static int count;

static struct mr_command *add(unsigned op, const struct place *first, const struct place *other)
{
    assert_true(count < MOST);
    places[count][0] = first;
    places[count][1] = other;
    struct mr_command *c = &program[count++];
    memset(c, 0, sizeof *c);
    mr_command_set(c, MR_F_CMD_OPCODE, op);
    return c;
}

static void fetch(bool to_second)
{
    struct mr_command *c = add(MR_OP_FETCH_ROWS, to_second ? &second : &rows, NULL);
    mr_command_set(c, MR_F_FETCH_ROWS_BEATS, LANES / 16);
    mr_command_set(c, MR_F_FETCH_ROWS_ROW, to_second);
}

static struct mr_command *move(unsigned work, const struct place *to)
{
    struct mr_command *c = add(MR_OP_MOVE_ROWS, to, NULL);
    mr_command_set(c, MR_F_MOVE_ROWS_WORK, work);
    mr_command_set(c, MR_F_MOVE_ROWS_COLS, LANES);
    mr_command_set(c, MR_F_MOVE_ROWS_N, LANES);
    return c;
}

static void product(unsigned dst, bool row, const struct place *to)
{
    struct mr_command *c = add(MR_OP_STREAM_STASH, NULL, NULL);
    mr_command_set(c, MR_F_STREAM_STASH_KBLOCKS, 1);
    mr_command_set(c, MR_F_STREAM_STASH_ALL_KBLOCKS, 1);
    mr_command_set(c, MR_F_STREAM_STASH_COLS, LANES);
    c = add(MR_OP_MATMUL, to, NULL);
    mr_command_set(c, MR_F_MATMUL_SRC_BASE, 0);
    mr_command_set(c, MR_F_MATMUL_KBLOCKS, 1);
    mr_command_set(c, MR_F_MATMUL_COLS, LANES);
    mr_command_set(c, MR_F_MATMUL_DST, dst);
    mr_command_set(c, MR_F_MATMUL_DST_BASE, dst == MR_DST_RES ? 0 : ACT_BASE);
    mr_command_set(c, MR_F_MATMUL_DST_SLOT, 1);
    mr_command_set(c, MR_F_MATMUL_ROW, row);
}

// Each command that writes to the memories of the core, and each place that it may write to.
static void write_program(void)
{
    count = 0;
    mr_command_set(add(MR_OP_STREAM_VEC, NULL, NULL), MR_F_STREAM_VEC_D, LANES);
    struct mr_command *c = add(MR_OP_LOAD_ROWS, &rows, NULL);
    mr_command_set(c, MR_F_LOAD_ROWS_RES_BEATS, LANES / 16);
    mr_command_set(c, MR_F_LOAD_ROWS_RES_OFF, 8);
    for (int back = 0; back < 2; back++) {
        c = add(MR_OP_LAYERNORM, &act, back ? &rows : &second);
        mr_command_set(c, MR_F_LAYERNORM_DST_BASE, ACT_BASE);
        mr_command_set(c, MR_F_LAYERNORM_DBLOCKS, LANES / 32);
        mr_command_set(c, MR_F_LAYERNORM_N, LANES);
        mr_command_set(c, back ? MR_F_LAYERNORM_BACK : MR_F_LAYERNORM_KEEP, 1);
    }
    for (int keep = 0; keep < 2; keep++) {
        c = add(MR_OP_ATTEND, &act, keep ? &second : NULL);
        mr_command_set(c, MR_F_ATTEND_HEADS, 1);
        mr_command_set(c, MR_F_ATTEND_HEAD_BEATS, LANES / 64);
        mr_command_set(c, MR_F_ATTEND_DST_BASE, ACT_BASE);
        mr_command_set(c, MR_F_ATTEND_KEEP, (uint32_t)keep);
    }
    fetch(false);
    fetch(true);
    c = add(MR_OP_LOAD_ACT, &few, NULL);
    mr_command_set(c, MR_F_LOAD_ACT_KBLOCKS, LANES / 32);
    mr_command_set(c, MR_F_LOAD_ACT_ALL_KBLOCKS, LANES / 32);
    mr_command_set(c, MR_F_LOAD_ACT_ROWS, 3);
    mr_command_set(c, MR_F_LOAD_ACT_DST_BASE, ACT_BASE);
    c = move(MR_MOVE_COPY, &act);
    mr_command_set(c, MR_F_MOVE_ROWS_TO_ACT, 1);
    mr_command_set(c, MR_F_MOVE_ROWS_DST_BASE, ACT_BASE);
    c = move(MR_MOVE_COPY, NULL);
    mr_command_set(c, MR_F_MOVE_ROWS_TURNED, 1);
    mr_command_set(c, MR_F_MOVE_ROWS_ALL_KBLOCKS, 1);
    (void)move(MR_MOVE_NORM_BACK, &second);
    (void)move(MR_MOVE_SOFTMAX_BACK, &second);
    (void)move(MR_MOVE_SOFTMAX, &rows);
    (void)move(MR_MOVE_NORM_GAIN, &rows);
    product(MR_DST_ACT, false, &act);
    product(MR_DST_QKV, false, &qkv);
    product(MR_DST_RES, false, &rows);
    product(MR_DST_RES, true, &second);
    add(MR_OP_END, NULL, NULL);
}

static void put_u64(uint32_t *w, uint64_t x)
{
    w[0] = (uint32_t)x;
    w[1] = (uint32_t)(x >> 32);
}

// The windows, all of one size, and in the input window sequences of one row each.
static uint64_t fill(struct mr_memory *m)
{
    enum { PROG, INPUT, WEIGHTS, KV, OF_ROWS, GRAD, STASH, DESC, WINDOWS };
    uint64_t at[WINDOWS];
    struct mr_error err = {0};
    for (int i = 0; i < WINDOWS; i++)
        check(mr_memory_alloc(m, 0, (size_t)WINDOW * BEAT, NULL, &at[i], &err), &err);
    memcpy(mr_memory_at(m, at[PROG], sizeof program, true), program, sizeof program);
    uint32_t *w = mr_memory_at(m, at[DESC], (size_t)4 * BEAT, true);
    w[MR_RUN_MAGIC] = MR_MAGIC_RUN;
    w[MR_RUN_N_CMDS] = (uint32_t)count;
    w[MR_RUN_N_ROWS] = N_ROWS;
    w[MR_RUN_FLAGS] = MR_FLAG_TRAIN;
    w[MR_RUN_KV_LAYER_BEATS] = 64;
    w[MR_RUN_KV_V_BEATS] = 16;
    w[MR_RUN_KV_PM_BEATS] = 32;
    put_u64(w + MR_RUN_PROG_LO, at[PROG]);
    put_u64(w + MR_RUN_INPUT_LO, at[INPUT]);
    put_u64(w + MR_RUN_RESULT_LO, at[INPUT]);
    w[MR_RUN_PROG_BEATS] = w[MR_RUN_INPUT_BEATS] = WINDOW;
    put_u64(w + 16, at[WEIGHTS]); // the channel's words
    put_u64(w + 20, at[KV]);
    w[18] = w[22] = WINDOW;
    put_u64(w + 32 + MR_TRAINING_ROWS_LO, at[OF_ROWS]);
    put_u64(w + 32 + MR_TRAINING_GRAD_LO, at[GRAD]);
    w[32 + MR_TRAINING_ROWS_BEATS] = w[32 + MR_TRAINING_GRAD_BEATS] = WINDOW;
    put_u64(w + 48 + MR_STASH_LO, at[STASH]);
    w[48 + MR_STASH_BEATS] = WINDOW;
    return at[DESC];
}

// ---- the device --------------------------------------------------------------------------------

static void sim_on_done(struct mr_sim *sim, mr_sim_on_done *call, void *user)
{
    (void)sim;
    b.call = call;
    b.user = user;
}

static int peek(struct mr_sim *sim, const char *name, uint32_t index, void *buf, size_t bytes,
                struct mr_error *err)
{
    (void)sim;
    uint8_t word[72] = {0};
    size_t size = 33;
    int bank, i = (int)index;
    if (sscanf(name, "u_matmul.u_act_mem.gen_bank[%d].u_act.mem", &bank) == 1) {
        int slot = i / b.g.act_words * b.g.r + bank;
        memcpy(word, mr_machine_act(b.device, slot, i % b.g.act_words, &word[32]), 32);
    } else if (strcmp(name, "u_kv.u_qkv.mem") == 0) {
        for (int k = 0; k < 2; k++)
            memcpy(word + 33 * k,
                   mr_machine_qkv(b.device, i / b.g.qkv_words, 2 * (i % b.g.qkv_words) + k,
                                  &word[33 * k + 32]),
                   32);
        size = 66;
    } else {
        bool is_second = strcmp(name, "u_vector.gen_second.u_second.mem") == 0;
        assert_true(is_second || strcmp(name, "u_vector.u_residual.mem") == 0);
        int v = 4 * b.g.n, words = b.g.d_max / v;
        size = (size_t)v * 4;
        memcpy(word, mr_machine_row(b.device, is_second, i / words) + i % words * v, size);
    }
    if (b.lies && strncmp(name, b.lies, strlen(b.lies)) == 0) {
        if (b.lie == FAILS)
            return mr_fail(err, MR_ERR_DEVICE, "no memory %s", name);
        if (b.peeks++ == 0 && b.lie != COUNTED)
            word[b.lie == SCALE ? 32 : 3] ^= 0x40;
    }
    assert_true(size <= bytes);
    memcpy(buf, word, size);
    return (int)size;
}

// Runs the program with the check beside it; of command `index` the first word of memory `lies` is
// wrong, or cannot be read. Words are counted.
static int run(int index, const char *lies, enum lie lie, struct mr_error *err)
{
    static const struct mr_sim_api api = {.on_done = sim_on_done, .peek = peek};
    struct mr_device_info info = {.g = b.g};
    struct mr_memory ref = {0};
    struct mr_device_error dev = {0};
    struct mr_check *c;
    assert_true(fill(&ref) == b.desc);
    check(mr_check_new(&c, &info, &api, NULL, &ref, err), err);
    check(mr_machine_begin(b.device, b.desc, &dev, err), err);
    check(mr_check_begin(c, b.desc, err), err);
    int stop = 0;
    b.peeks = 0;
    b.lie = lie;
    for (int i = 0, rc = 0; i < count && stop == 0; i++) {
        rc = mr_machine_step(b.device, &dev, err);
        if (rc < 0)
            fail_msg("command %d: error %u", i, dev.code);
        b.lies = i == index ? lies : NULL;
        stop = b.call(b.user, 0, (unsigned)i);
    }
    assert_int_equal(stop != 0, mr_check_failed(c));
    int rc = mr_check_end(c, &b.memory, err);
    mr_check_free(c);
    mr_memory_free(&ref);
    return rc;
}

static int bench_open(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    write_program();
    b.g = mr_config_named("tinyt")->g;
    b.desc = fill(&b.memory);
    return mr_machine_new(&b.device, &b.g, &b.memory, &err);
}

static int bench_close(void **unused)
{
    (void)unused;
    mr_machine_free(b.device);
    mr_memory_free(&b.memory);
    return 0;
}

static void every_destination_is_compared(void **unused)
{
    (void)unused;
    int compared = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) {
            const struct place *at = places[i][k];
            struct mr_error err = {0};
            char text[80];
            if (!at)
                continue;
            check(run(i, at->memory, COUNTED, &err), &err);
            assert_int_equal(b.peeks, at->words);
            bool blocks = at == &act || at == &few || at == &qkv; // others have no scales
            for (enum lie lie = ELEMENT; lie <= (blocks ? SCALE : ELEMENT); lie++) {
                assert_int_equal(run(i, at->memory, lie, &err), MR_ERR_DIFF);
                snprintf(text, sizeof text, "after command %d (%s): %s, row 0, %s", i,
                         mr_opcode_name(mr_command_get(&program[i], MR_F_CMD_OPCODE)), at->text,
                         lie == SCALE ? "scale code of block 0:" : "element ");
                if (!strstr(err.text, text))
                    fail_msg("'%s' in '%s'", text, err.text);
            }
            assert_refused(run(i, at->memory, FAILS, &err), MR_ERR_DEVICE, &err, "no memory u_");
            compared++;
        }
    assert_int_equal(compared, 20);
}

// All else is the host's to see, and compared when the run has ended.
static void windows_are_compared_at_the_end(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    uint8_t *stash = b.memory.regions[6].data;
    stash[(size_t)WINDOW * BEAT - 1] ^= 1;
    assert_int_equal(run(-1, NULL, COUNTED, &err), MR_ERR_DIFF);
    assert_non_null(strstr(err.text, "differ in memory after the run"));
    stash[(size_t)WINDOW * BEAT - 1] ^= 1;
    check(run(-1, NULL, COUNTED, &err), &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_destination_is_compared),
        cmocka_unit_test(windows_are_compared_at_the_end),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
