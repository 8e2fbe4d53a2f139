// SPDX-License-Identifier: Apache-2.0
// The driver's pure logic (driver/check.h), built for user space: windows, run
// descriptors, rings, and the program between two clients (driver/scrub.h).
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <linux/compiler.h>

#include "device/device.h"
#include "device/open.h"
#include "driver/check.h"
#include "driver/scrub.h"

static const struct millrace_extent extents[] = {
    {0x1000, 0x1000}, {0x2000, 0x40}, {0x5000, 100}, {0xFFFFFFFFFFFFF000, 0x1000}};
enum { EXTENTS = sizeof extents / sizeof *extents };

static bool in(u64 addr, u64 bytes)
{
    return millrace_window_ok(extents, EXTENTS, addr, bytes);
}

static void driver_windows(void **state)
{
    (void)state;
    assert_true(in(0x1000, 0x1000));
    assert_true(in(0x1FFF, 1));
    assert_false(in(0x0FFF, 1));
    assert_false(in(0x0FFF, 2));
    assert_false(in(0x1000, 0x1001)); // the next buffer is a neighbour, and another one
    assert_false(in(0x1FFF, 2));
    assert_true(in(0x2000, 0x40));
    assert_false(in(0x2040, 1));
    assert_true(in(0x5000, 100));
    assert_false(in(0x5001, 100));
    assert_false(in(0x1000, ~0ull));
    assert_false(in(0x1001, ~0ull - 0x1000));
    assert_true(in(0xFFFFFFFFFFFFFFFF, 1));
    assert_false(in(0xFFFFFFFFFFFFFFFF, 2)); // wraps
    assert_false(millrace_window_ok(NULL, 0, 0, 1));
}

// Every address and size of a small memory against byte by byte.
static void driver_windows_exhaustively(void **state)
{
    (void)state;
    const struct millrace_extent small[] = {{3, 5}, {8, 4}, {20, 1}};
    for (u64 addr = 0; addr < 32; addr++)
        for (u64 bytes = 1; bytes < 32; bytes++) {
            bool want = false;
            for (int e = 0; e < 3; e++) {
                bool all = true;
                for (u64 b = addr; b < addr + bytes; b++)
                    all = all && b >= small[e].addr && b < small[e].addr + small[e].bytes;
                want = want || all;
            }
            assert_int_equal(millrace_window_ok(small, 3, addr, bytes), want);
        }
}

static void put64(__le32 *w, u64 v)
{
    w[0] = htole32((u32)v);
    w[1] = htole32((u32)(v >> 32));
}

enum { DESC_WORDS = MR_PCIE_RUN_BYTES / 4 };

// Word of the window's address, and of its beats behind it.
struct place {
    unsigned at, beats;
};

// The windows: program, input, result, weights and KV of each channel; then of training rows,
// gradients, and each channel's stash. As many as there are.
static unsigned windows_of(unsigned channels, bool trains, struct place *w)
{
    unsigned n = 0, more = millrace_run_words(channels);
    for (unsigned k = 0; k < 3; k++)
        w[n++] = (struct place){MR_RUN_PROG_LO + 2 * k, MR_RUN_PROG_BEATS + k};
    for (unsigned k = 0; k < 2 * channels; k++)
        w[n++] = (struct place){16 + 4 * k, 18 + 4 * k};
    for (unsigned k = 0; trains && k < 2; k++)
        w[n++] = (struct place){more + 4 * k, more + 4 * k + 2};
    for (unsigned c = 0; trains && c < channels; c++)
        w[n++] = (struct place){more + 16 + 8 * c, more + 18 + 8 * c};
    return n;
}

static void fill(__le32 *d, unsigned channels, bool trains)
{
    struct place w[3 + 2 * 16 + 2 + 16];
    unsigned n = windows_of(channels, trains, w);
    memset(d, 0, 4 * DESC_WORDS);
    d[MR_RUN_MAGIC] = htole32(MR_MAGIC_RUN);
    d[MR_RUN_FLAGS] = htole32(trains ? MR_FLAG_TRAIN : 0);
    for (unsigned k = 0; k < n; k++) {
        bool small = k % 3 == 1;
        put64(d + w[k].at, small ? 0x2000 : 0x1400);
        d[w[k].beats] = htole32(small ? 1 : 16);
    }
}

static void checks_windows(unsigned channels, bool trains)
{
    struct place w[3 + 2 * 16 + 2 + 16];
    unsigned n = windows_of(channels, trains, w);
    unsigned words = trains ? millrace_training_words(channels) : millrace_run_words(channels);
    __le32 d[DESC_WORDS];
    assert_in_range(w[n - 1].beats, 0, words - 1);
    assert_in_range(words, 16 + 8 * channels, DESC_WORDS);
    fill(d, channels, trains);
    assert_true(millrace_run_ok(extents, EXTENTS, d, words, channels));
    for (unsigned other = 0; other <= DESC_WORDS; other += 16)
        assert_int_equal(millrace_run_ok(extents, EXTENTS, d, other, channels), other == words);
    d[MR_RUN_MAGIC] ^= 1;
    assert_false(millrace_run_ok(extents, EXTENTS, d, words, channels));
    d[MR_RUN_MAGIC] ^= 1;
    d[MR_RUN_FLAGS] ^= htole32(1); // two passes
    assert_true(millrace_run_ok(extents, EXTENTS, d, words, channels));
    d[MR_RUN_FLAGS] ^= htole32(MR_FLAG_TRAIN); // more windows, or fewer
    assert_false(millrace_run_ok(extents, EXTENTS, d, words, channels));
    for (unsigned k = 0; k < n; k++) {
        // Not aligned, between buffers, out of one at its front, and beyond the end of all memory:
        // one beat there lies in the last extent.
        const u64 bad[] = {0x1020, 0x3000, 0xFC0, ~0x3Full};
        for (unsigned b = 0; b < 4; b++) {
            fill(d, channels, trains);
            put64(d + w[k].at, bad[b]);
            if (b == 3) {
                d[w[k].beats] = htole32(1);
                assert_true(millrace_run_ok(extents, EXTENTS, d, words, channels));
                d[w[k].beats] = htole32(2);
            }
            assert_false(millrace_run_ok(extents, EXTENTS, d, words, channels));
        }
        // All of a buffer, and a beat of its neighbour, which is the client's too.
        fill(d, channels, trains);
        put64(d + w[k].at, 0x1000);
        d[w[k].beats] = htole32(64);
        assert_true(millrace_run_ok(extents, EXTENTS, d, words, channels));
        d[w[k].beats] = htole32(65);
        assert_false(millrace_run_ok(extents, EXTENTS, d, words, channels));
        // As many as there can be: 64 times as many bytes do not fit 32 bits.
        d[w[k].beats] = htole32(UINT32_MAX);
        assert_false(millrace_run_ok(extents, EXTENTS, d, words, channels));
        d[w[k].beats] = htole32(1u << 26);
        assert_false(millrace_run_ok(extents, EXTENTS, d, words, channels));
        put64(d + w[k].at, 0x1000 | 1ull << 32);
        d[w[k].beats] = htole32(1);
        assert_false(millrace_run_ok(extents, EXTENTS, d, words, channels));
        put64(d + w[k].at, 0x3000);
        d[w[k].beats] = 0; // never used
        assert_true(millrace_run_ok(extents, EXTENTS, d, words, channels));
        put64(d + w[k].at, 0x3001);
        assert_false(millrace_run_ok(extents, EXTENTS, d, words, channels));
    }
}

static void driver_run_descriptor(void **state)
{
    (void)state;
    for (unsigned channels = 1; channels <= 16; channels++)
        for (int trains = 0; trains < 2; trains++)
            checks_windows(channels, trains);
    assert_int_equal(millrace_training_words(16), DESC_WORDS);
    assert_int_equal(MILLRACE_SCRUB_DESC_BYTES, MR_PCIE_RUN_BYTES);
}

static void driver_ring_space(void **state)
{
    (void)state;
    const u32 starts[] = {0, 1, 63, 64, 0xFFFF, 0x10000, UINT32_MAX - 20, UINT32_MAX};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        for (u32 used = 0; used <= 64; used++)
            assert_int_equal(millrace_ring_space(starts[i], starts[i] + used, 64), 64 - used);
    assert_int_equal(millrace_ring_space(5, 5 + 65, 64), 0);
    assert_int_equal(millrace_ring_space(6, 5, 64),
                     0); // more completed than submitted: never any room
}

// Where entries are, what their completions are called, and the doorbell, for every base near the
// ends of 16 and 32 bits: each against counting on one by one.
static void driver_ring_positions(void **state)
{
    (void)state;
    enum { SIZE = 64 };
    const u32 bases[] = {0, 1, 63, 64, 65, 0xFFC0, 0xFFFF, 0x10000, UINT32_MAX - 63, UINT32_MAX};
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
        for (u32 n = 0, place = 0, bell = 0; n < 3 * SIZE; n++) {
            u32 index = bases[b] + n;
            assert_int_equal(millrace_ring_place(bases[b], index, SIZE), place);
            assert_int_equal(millrace_ring_seq(bases[b], index), n + 1);
            assert_int_equal(millrace_ring_bell(bases[b], index), bell);
            place = place + 1 == SIZE ? 0 : place + 1;
            bell = (bell + 1) & 0xFFFF;
        }
    assert_int_equal(millrace_ring_bell(5, 5 + 0xFFFF), 0xFFFF);
    assert_int_equal(millrace_ring_bell(5, 5 + 0x10000), 0);
    assert_int_equal(millrace_ring_seq(0, UINT32_MAX), 0);
}

// The device changes each word as soon as it was read.
u32 test_read_once(const u32 *word)
{
    u32 value = *word;
    *(u32 *)(uintptr_t)word = ~value;
    return value;
}

static void driver_completion_is_read_once(void **state)
{
    (void)state;
    u32 record[64];
    u64 counters[MR_COUNTERS];
    for (u32 i = 0; i < 64; i++)
        record[i] = htole32(1000 + i);
    struct millrace_completion c = millrace_completion_read(record);
    assert_int_equal(c.status, 1048);
    assert_int_equal(c.tag, 1049);
    assert_int_equal(c.error, 1050);
    assert_int_equal(c.sticky, 1051);
    assert_true(c.addr == (1052 | 1053ull << 32));
    millrace_counters_read(record, counters);
    for (u32 i = 0; i < MR_COUNTERS; i++)
        assert_true(counters[i] == ((1000 + 2 * i) | (1001 + 2ull * i) << 32));
}

static bool completion_ok(u32 status, u32 tag, u32 index)
{
    const struct millrace_completion c = {.status = status, .tag = tag};
    return millrace_completion_ok(&c, index);
}

static void driver_completion(void **state)
{
    (void)state;
    for (u32 status = MR_PCIE_OK; status <= MR_PCIE_E_CANCELLED; status++)
        assert_true(completion_ok(status, 7, 7));
    assert_false(completion_ok(MR_PCIE_E_CANCELLED + 1, 7, 7));
    assert_false(completion_ok(MR_PCIE_E_DOORBELL, 7, 7));
    assert_false(completion_ok(UINT32_MAX, 7, 7));
    assert_false(completion_ok(MR_PCIE_OK, 6, 7));
    assert_false(completion_ok(MR_PCIE_OK, 8, 7));
    assert_true(completion_ok(MR_PCIE_OK, UINT32_MAX, UINT32_MAX));
}

// HEAD and STATUS of a ring that was stopped: what it had begun and not completed.
static void driver_ring_begun(void **state)
{
    (void)state;
    const u32 busy = MR_PCIE_Q_BUSY, fault = MR_PCIE_E_WRITE << MR_PCIE_Q_FAULT,
              fetch = MR_PCIE_E_READ << MR_PCIE_Q_FAULT;
    const u32 bases[] = {0, 40, UINT32_MAX - 3};
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
        u32 base = bases[b], head = base + 10, tail = base + 15;
        assert_int_equal(millrace_ring_begun(base, head, tail, 10, 0), 0);
        assert_int_equal(millrace_ring_begun(base, head, tail, 10, MR_PCIE_Q_ENABLED), 0);
        assert_int_equal(millrace_ring_begun(base, head, tail, 10, busy), 1);
        assert_int_equal(millrace_ring_begun(base, head, tail, 11, fault), 1);
        assert_int_equal(millrace_ring_begun(base, head, tail, 11, busy), 2);
        assert_int_equal(millrace_ring_begun(base, head, tail, 11, fetch), 0);
        assert_int_equal(millrace_ring_begun(base, head, tail, 15, 0), 5);
        // Its last completion is there, and it has not counted it yet.
        assert_int_equal(millrace_ring_begun(base, head, tail, 9, busy), 0);
        assert_int_equal(millrace_ring_begun(base, head, tail, 9, 0), 0);
        // It cannot have done these: all are given up.
        assert_int_equal(millrace_ring_begun(base, head, tail, 8, 0), 5);
        assert_int_equal(millrace_ring_begun(base, head, tail, 16, 0), 5);
        assert_int_equal(millrace_ring_begun(base, head, tail, 0, 0), 5);
        assert_int_equal(millrace_ring_begun(base, head, tail, UINT32_MAX, 0), 5);
        // Nothing submitted, nothing begun.
        assert_int_equal(millrace_ring_begun(base, head, head, 10, busy), 0);
        assert_int_equal(millrace_ring_begun(base, head, head, UINT32_MAX, ~0u), 0);
        assert_int_equal(millrace_ring_begun(base, base, base + 1, 0, 0), 0);
        assert_int_equal(millrace_ring_begun(base, base, base + 1, 0, fetch), 0);
        assert_int_equal(millrace_ring_begun(base, base, base + 1, UINT32_MAX, 0), 1);
    }
}

static void driver_ring_lost(void **state)
{
    (void)state;
    for (u32 op = MR_PCIE_OP_NOP; op <= MR_PCIE_OP_RUN; op++) {
        assert_false(millrace_ring_lost(0, op));
        assert_int_equal(millrace_ring_lost(1, op), op == MR_PCIE_OP_RUN);
        assert_true(millrace_ring_lost(2, op));
    }
}

// ---- the scrub program, run on the C model
// ------------------------------------------------------

// The engine's registers as the driver reads them.
static void registers(const struct mr_geometry *g, u32 *engine)
{
    memset(engine, 0, 16 * sizeof *engine);
    engine[(MR_REG_GEOMETRY - MR_REG_MAGIC) / 4] = (u32)(g->n | g->r << 8 | g->t << 16);
    engine[(MR_REG_WORDS - MR_REG_MAGIC) / 4] = (u32)(g->act_words | g->qkv_words << 16);
    engine[(MR_REG_ROWS - MR_REG_MAGIC) / 4] = (u32)(g->d_max | g->rot_max << 16);
    engine[(MR_REG_ATTENTION - MR_REG_MAGIC) / 4] = (u32)g->w_max;
    engine[(MR_REG_FORMATS - MR_REG_MAGIC) / 4] = g->train ? MR_HAS_ROWS : 0;
}

static void good(int rc, const struct mr_error *err)
{
    if (rc != 0)
        fail_msg("%s", err->text);
}

static uint64_t buffer(struct mr_device *dev, int channel, size_t bytes)
{
    struct mr_error err = {0};
    uint64_t addr;
    good(mr_device_alloc(dev, channel, bytes, NULL, &addr, &err), &err);
    return addr;
}

static void run(struct mr_device *dev, uint64_t at, uint64_t program, const __le32 *cmds)
{
    struct mr_error err = {0};
    good(mr_device_write(dev, program, cmds, 128, &err), &err);
    good(mr_device_run(dev, at, &err), &err);
}

enum { SAVE_ROWS = 0x52 }; // its BEATS and ROW are FETCH_ROWS's

// A row of either row memory: it goes in with LOAD_ROWS or FETCH_ROWS, and comes out with a
// STORE_RES or SAVE_ROWS of another program: what was there, and after the scrub program zeros.
static void leaves_nothing(struct mr_device *dev, bool second, uint64_t scrub)
{
    const struct mr_geometry *g = &mr_device_info(dev)->g;
    struct mr_error err = {0};
    u32 words = millrace_run_words((u32)g->n), beats = (u32)g->d_max / 16;
    __le32 own[2 * 256] = {0}, load[32] = {0}, store[32] = {0};
    size_t row = 64 * (size_t)beats, input_bytes = 64 + row;
    u64 mine = buffer(dev, 0, sizeof own + sizeof load), input = buffer(dev, 0, input_bytes + row),
        result = input + input_bytes;
    u32 *in = calloc(1, input_bytes), *out = calloc(1, row);
    assert_true(in && out);
    for (int i = 0; i < g->d_max; i++)
        in[16 + i] = htole32(0x3F800000u + (u32)i); // from 1.0 on
    good(mr_device_write(dev, input, in, input_bytes, &err), &err);
    own[MR_RUN_MAGIC] = htole32(MR_MAGIC_RUN);
    own[MR_RUN_N_CMDS] = own[MR_RUN_PROG_BEATS] = htole32(2);
    own[MR_RUN_N_ROWS] = htole32(1);
    put64(own + MR_RUN_PROG_LO, mine + sizeof own);
    if (second) {
        own[MR_RUN_FLAGS] = htole32(MR_FLAG_TRAIN);
        put64(own + words + MR_TRAINING_ROWS_LO, input);
        own[words + MR_TRAINING_ROWS_BEATS] = htole32(1 + 2 * beats);
        load[2] = htole32(1);
        store[2] = htole32(1 + beats);
        load[3] = store[3] = htole32(beats | 1u << 16);
    } else {
        put64(own + MR_RUN_INPUT_LO, input);
        own[MR_RUN_INPUT_BEATS] = htole32(1 + beats);
        put64(own + MR_RUN_RESULT_LO, result);
        own[MR_RUN_RESULT_BEATS] = htole32(beats);
        load[4] = htole32(1);
        load[5] = htole32(beats);
        store[3] = htole32(beats);
    }
    load[0] = htole32(second ? MR_OP_FETCH_ROWS : MR_OP_LOAD_ROWS);
    load[1] = htole32(1u << 16);
    load[16] = htole32(MR_OP_END);
    load[17] = htole32(1);
    store[0] = htole32(second ? SAVE_ROWS : MR_OP_STORE_RES);
    store[16] = htole32(MR_OP_END);
    good(mr_device_write(dev, mine, own, sizeof own, &err), &err);
    for (int after = 0; after < 2; after++) {
        run(dev, mine, mine + sizeof own, load);
        if (after)
            good(mr_device_run(dev, scrub, &err), &err);
        run(dev, mine, mine + sizeof own, store);
        good(mr_device_read(dev, result, out, row, &err), &err);
        if (!after)
            assert_memory_equal(out, in + 16, row);
        for (int i = 0; after && i < g->d_max; i++)
            assert_int_equal(out[i], 0);
    }
    free(in);
    free(out);
}

static void driver_scrub_leaves_nothing(void **state)
{
    (void)state;
    static const char *const uris[] = {"model:tiny", "model:sim", "model:wide", "model:tinyt"};
    for (size_t u = 0; u < sizeof uris / sizeof *uris; u++) {
        struct mr_error err = {0};
        struct mr_device *dev;
        good(mr_device_open(&dev, uris[u], &err), &err);
        const struct mr_geometry *g = &mr_device_info(dev)->g;
        u32 engine[16];
        __le32 scrub[MILLRACE_SCRUB_RUN_BYTES / 4];
        __le32 *program = scrub + MILLRACE_SCRUB_DESC_BYTES / 4;
        registers(g, engine);
        u32 count = millrace_scrub_program(engine, program);
        u64 zeros[16];
        assert_in_range(count, 6, MILLRACE_SCRUB_CMDS_MAX);
        for (int c = 0; c < g->n; c++)
            zeros[c] = buffer(dev, c, 64 * (size_t)millrace_scrub_beats(engine));
        u64 at = buffer(dev, 0, MILLRACE_SCRUB_RUN_BYTES);
        millrace_scrub_descriptor(engine, scrub, at + MILLRACE_SCRUB_DESC_BYTES, count, zeros);
        size_t bytes = MILLRACE_SCRUB_DESC_BYTES + 64 * (size_t)count;
        good(mr_device_write(dev, at, scrub, bytes, &err), &err);
        assert_int_equal(g->train, u == 3);
        for (int second = 0; second <= g->train; second++)
            leaves_nothing(dev, second, at);
        mr_device_close(dev);
    }
}

static void driver_scrub_of_no_engine(void **state)
{
    (void)state;
    struct mr_geometry g = {.n = 1,
                            .r = 1,
                            .t = 8,
                            .act_words = 128,
                            .qkv_words = 32,
                            .d_max = 256,
                            .rot_max = 256,
                            .w_max = 512};
    __le32 scrub[MILLRACE_SCRUB_CMDS_MAX * MILLRACE_CMD_WORDS];
    u32 engine[16];
    int *const fields[] = {&g.n, &g.t, &g.act_words, &g.qkv_words, &g.d_max};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        int was = *fields[i];
        registers(&g, engine);
        assert_int_not_equal(millrace_scrub_program(engine, scrub), 0);
        *fields[i] = 0;
        registers(&g, engine);
        assert_int_equal(millrace_scrub_program(engine, scrub), 0);
        *fields[i] = was;
    }
    g.act_words = 65535; // more commands than there is room for
    registers(&g, engine);
    assert_int_equal(millrace_scrub_program(engine, scrub), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(driver_windows),
        cmocka_unit_test(driver_windows_exhaustively),
        cmocka_unit_test(driver_run_descriptor),
        cmocka_unit_test(driver_ring_space),
        cmocka_unit_test(driver_ring_positions),
        cmocka_unit_test(driver_completion),
        cmocka_unit_test(driver_completion_is_read_once),
        cmocka_unit_test(driver_ring_begun),
        cmocka_unit_test(driver_ring_lost),
        cmocka_unit_test(driver_scrub_leaves_nothing),
        cmocka_unit_test(driver_scrub_of_no_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
