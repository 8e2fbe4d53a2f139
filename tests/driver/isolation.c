// SPDX-License-Identifier: Apache-2.0
// Clients that look for what another one has left, inside the virtual machine: in the engine's
// memories (with programs of their own), in card memory, and in the driver's answers.
#include "tests/driver/fault.h"

enum {
    OP_STREAM_VEC = 0x10,
    OP_STREAM_TILES = 0x11,
    OP_LOAD_ROWS = 0x20,
    OP_LAYERNORM = 0x21,
    OP_FETCH_ROWS = 0x24,
    OP_MATMUL = 0x30,
    OP_STORE_KV = 0x50,
    OP_STORE_RES = 0x51,
    OP_SAVE_ROWS = 0x52,
    OP_END = 0x5F,
    DST_QKV = 1,
    DST_RESULT = 3,
    PREFIX_MAX = 1 << 26,
    ONE = 0x3F800000, // 1.0f
    PAGE = 4096,
    MAXIMA_BEATS = 16, // at the end of a layer's KV store
};

// A client with a program, input, weights, KV and result in card memory, and a copy of all here.
struct client {
    int fd;
    uint64_t at[5]; // program, input, weights, KV, result
    uint32_t *here[5];
    uint32_t handle[5];
    uint32_t rows, d, act, qkv, w;
    uint32_t most;     // blocks of a product: half of the ring
    uint32_t desc[64]; // of the last run
    bool trains;
};
enum { PROGRAM, INPUT, WEIGHTS, KV, RESULT, PARTS };
static size_t sizes[PARTS];
static size_t stream; // all but the program: what the largest of the programs here reads of one

// Input: row table and rows; weights: gain and bias, then a product of one block into q, k and v,
// or one of `most` blocks into 64 columns.
static void set_sizes(const struct client *c)
{
    size_t input = (size_t)c->rows * (16 + 4 * c->d), qkv = 8 * c->d + (size_t)c->qkv * 16 * 4 * 64,
           product = (size_t)(c->most * 2 + c->most / 16 + 2) * 16 * 64;
    for (stream = 512 << 10; stream < input || stream < qkv || stream < product;)
        stream *= 2;
    sizes[PROGRAM] = 2 * PAGE;
    for (int i = INPUT; i < PARTS; i++)
        sizes[i] = stream;
}

static bool client_open(struct client *c)
{
    struct millrace_info info;
    c->fd = open_device();
    if (ioctl(c->fd, MILLRACE_IOC_INFO, &info) != 0 || info.channels != 1)
        return false;
    c->rows = info.engine[2] >> 16;
    c->act = info.engine[3] & 0xFFFF;
    c->qkv = info.engine[3] >> 16;
    c->d = info.engine[4] & 0xFFFF;
    c->w = info.engine[9] & 0xFFFF;
    c->most = (info.engine[6] & 0xFFFF) / 2;
    c->trains = info.engine[7] & 0x20; // it has a second row memory
    if (c->most > c->act)
        c->most = c->act;
    set_sizes(c);
    for (int i = 0; i < PARTS; i++) {
        c->at[i] = card(c->fd, sizes[i]) - 1;
        c->here[i] = aligned_alloc(PAGE, sizes[i]);
        if (!c->here[i])
            return false;
        memset(c->here[i], 0, sizes[i]);
        c->handle[i] = map(c->fd, c->here[i], sizes[i], MILLRACE_MAP_READ | MILLRACE_MAP_WRITE);
        if (!c->handle[i])
            return false;
    }
    return true;
}

static void client_close(struct client *c)
{
    close(c->fd);
    for (int i = 0; i < PARTS; i++)
        free(c->here[i]);
}

static void put_window(uint32_t *w, uint64_t at, size_t bytes)
{
    w[0] = (uint32_t)at;
    w[1] = (uint32_t)(at >> 32);
    w[2] = (uint32_t)(bytes / 64);
}

static uint32_t desc_bytes(const struct client *c)
{
    return c->trains ? 256 : 128;
}

// Copies everything in, runs `count` commands of here[PROGRAM] + 1024 bytes, copies KV and result
// out. On an engine that trains it is a run of training: its rows window is the KV store.
static bool client_run(struct client *c, uint32_t count)
{
    uint32_t *desc = c->desc;
    struct millrace_op ops[PARTS + 3];
    struct millrace_wait w;
    for (uint32_t i = 0; i < PARTS; i++)
        ops[i] = (struct millrace_op){
            .op = MILLRACE_OP_COPY_IN, .addr = c->at[i], .bytes = sizes[i], .handle = c->handle[i]};
    const uint64_t windows[] = {c->at[PROGRAM] + 1024, c->at[INPUT], c->at[RESULT]};
    memset(desc, 0, sizeof c->desc);
    desc[0] = 0x4E55524D;
    desc[1] = count;
    desc[2] = c->rows;
    for (int i = 0; i < 3; i++) {
        desc[4 + 2 * i] = (uint32_t)windows[i];
        desc[5 + 2 * i] = (uint32_t)(windows[i] >> 32);
        desc[10 + i] = i == 0 ? count : stream / 64;
    }
    desc[13] = stream / 64; // of the one layer
    desc[14] = stream / 128;
    desc[15] = stream / 64 - MAXIMA_BEATS;
    for (int i = 0; i < 2; i++)
        put_window(desc + 16 + 4 * i, c->at[WEIGHTS + i], stream);
    if (c->trains) {
        desc[3] = 2;
        put_window(desc + 32, c->at[KV], stream);
    }
    ops[PARTS] = (struct millrace_op){.op = MILLRACE_OP_RUN,
                                      .addr = c->at[PROGRAM],
                                      .bytes = desc_bytes(c),
                                      .offset = (uintptr_t)desc};
    for (uint32_t i = 0; i < 2; i++)
        ops[PARTS + 1 + i] = (struct millrace_op){.op = MILLRACE_OP_COPY_OUT,
                                                  .addr = c->at[KV + i],
                                                  .bytes = sizes[KV + i],
                                                  .handle = c->handle[KV + i]};
    int status = job(c->fd, ops, PARTS + 3, &w);
    if (status != 0)
        printf("# status %d of operation %u, error %08x\n", status, w.op, w.error);
    return status == 0;
}

static uint32_t *command(struct client *c, uint32_t index, uint32_t op, uint32_t wait,
                         uint32_t signal)
{
    uint32_t *w = c->here[PROGRAM] + 256 + 16 * index;
    memset(w, 0, 64);
    w[0] = op;
    w[1] = wait | signal << 16;
    return w;
}

// Leaves a secret in every memory: rows, gain and bias, activations, q, k and v.
static bool leave_secret(struct client *c)
{
    uint32_t n = 0, *w;
    for (size_t i = 0; i < stream / 4; i++) {
        c->here[INPUT][i] = ONE + (uint32_t)(i * 2654435761u) % 0x400000; // 1 to 1.5
        c->here[WEIGHTS][i] = i < 2 * c->d ? ONE : 0x7F7F7F7F;            // scales 1, elements 127
    }
    memset(c->here[INPUT], 0, c->rows * 16); // row table: position 0
    w = command(c, n++, OP_STREAM_VEC, 0, 2);
    w[2] = c->d;
    w = command(c, n++, OP_LOAD_ROWS, 0, 0);
    w[3] = w[4] = c->rows * 16 / 64;
    w[5] = c->d / 16 | 4 << 16;
    for (uint32_t base = 0; base < c->act; base += c->d / 32) {
        bool last = base + c->d / 32 == c->act;
        w = command(c, n++, OP_LAYERNORM, base ? 0 : 2, last ? 4 : 0);
        w[2] = base | (c->d / 32) << 16;
        w[3] = c->d;
        w[4] = w[5] = w[6] = ONE;
    }
    w = command(c, n++, OP_STREAM_TILES, 0, 0);
    w[2] = 1;
    w[3] = 64 * c->qkv;
    w = command(c, n++, OP_MATMUL, 4, 0);
    w[2] = 1 << 16;
    w[3] = 64 * c->qkv;
    w[4] = DST_QKV << 16;
    // Prefix maxima are as wide as attention.
    w = command(c, n++, OP_STREAM_TILES, 0, 0);
    w[2] = 1;
    w[3] = c->w;
    w = command(c, n++, OP_MATMUL, 0, 8);
    w[2] = 1 << 16;
    w[3] = c->w;
    w[4] = DST_QKV << 16 | PREFIX_MAX;
    if (c->trains) {
        for (size_t i = 0; i < stream / 4; i++)
            c->here[KV][i] = ONE;
        w = command(c, n++, OP_FETCH_ROWS, 0, 16);
        w[3] = c->d / 16 | 1 << 16;
    }
    command(c, n++, OP_END, c->trains ? 24 : 8, 0);
    return client_run(c, n);
}

// Words of a part that are not zero.
static size_t found(const struct client *c, int part)
{
    size_t n = 0;
    for (size_t i = 0; i < sizes[part] / 4; i++)
        n += c->here[part][i] != 0;
    return n;
}

static void clean(struct client *c)
{
    for (int i = 0; i < PARTS; i++)
        memset(c->here[i], 0, sizes[i]);
}

// Cycles in which the function had work since the machine began: the function counts them.
static uint32_t busy_cycles(void)
{
    uint32_t value = 0;
    int fd = open(pci_file("config"), O_RDONLY);
    if (fd < 0 || pread(fd, &value, sizeof value, 0xC0 + 4 * 5) != sizeof value)
        printf("# no count of cycles\n");
    close(fd);
    return value;
}

// Those of a run that only ends: no copies around it.
static uint32_t run_cycles(struct client *c)
{
    uint32_t before;
    struct millrace_op end = {
        .op = MILLRACE_OP_RUN, .addr = c->at[PROGRAM], .bytes = desc_bytes(c)};
    struct millrace_wait w;
    end.offset = (uintptr_t)c->desc;
    before = busy_cycles();
    return job(c->fd, &end, 1, &w) == 0 ? busy_cycles() - before : 0;
}

// What it costs that another client has run before. Erasing is no part of the runs' own counters.
static void cost(struct client *a, struct client *b)
{
    clean(a);
    clean(b);
    command(a, 0, OP_END, 0, 0);
    command(b, 0, OP_END, 0, 0);
    bool ran = client_run(a, 1) && client_run(b, 1);
    uint32_t own = run_cycles(b), other = run_cycles(a), again = run_cycles(a);
    ok(ran && own && other > own && other > again,
       "a client that follows another one waits %u cycles", other - own);
}

// Each looks at one memory without having written it; words found, or -1.
static long see_residual(struct client *c)
{
    clean(c);
    command(c, 0, OP_STORE_RES, 0, 0)[3] = c->d / 16;
    command(c, 1, OP_END, 0, 0);
    return client_run(c, 2) ? (long)found(c, RESULT) : -1;
}

static long see_second(struct client *c)
{
    clean(c);
    command(c, 0, OP_SAVE_ROWS, 0, 0)[3] = c->d / 16 | 1 << 16;
    command(c, 1, OP_END, 0, 0);
    return client_run(c, 2) ? (long)found(c, KV) : -1;
}

static long see_kv(struct client *c)
{
    long n = 0;
    // Rows are those that are still there: a row table of the look-out's own would need LOAD_ROWS.
    for (uint32_t base = 0; n >= 0 && base < c->qkv; base += c->w / 64) {
        clean(c);
        uint32_t *w = command(c, 0, OP_STORE_KV, 0, 0);
        w[2] = base << 16;
        w[3] = c->w / 64;
        command(c, 1, OP_END, 0, 0);
        n = client_run(c, 2) ? n + (long)found(c, KV) : -1;
    }
    return n;
}

// They go to the KV store beside V.
static long see_maxima(struct client *c)
{
    long n = 0;
    clean(c);
    uint32_t *w = command(c, 0, OP_STORE_KV, 0, 0);
    w[3] = c->w / 64 | 1 << 16;
    command(c, 1, OP_END, 0, 0);
    if (!client_run(c, 2))
        return -1;
    for (size_t i = stream / 4 - MAXIMA_BEATS * 16; i < stream / 4; i++)
        n += c->here[KV][i] != 0;
    return n;
}

// Products of the stale activations with ones.
static long see_activations(struct client *c)
{
    long sum = 0;
    for (uint32_t base = 0; sum >= 0 && base < c->act; base += c->most) {
        uint32_t n = 0, *w;
        clean(c);
        memset(c->here[WEIGHTS], 0x7F, stream);
        w = command(c, n++, OP_STREAM_TILES, 0, 0);
        w[2] = c->most;
        w[3] = 64;
        w = command(c, n++, OP_MATMUL, 0, 8);
        w[2] = base | c->most << 16;
        w[3] = 64;
        w[4] = DST_RESULT << 16;
        w[6] = 64;
        w[8] = 4;
        command(c, n++, OP_END, 8, 0);
        sum = client_run(c, n) ? sum + (long)found(c, RESULT) : -1;
    }
    return sum;
}

// Rows that differ, normalised with the stale gain and bias, then as above.
static long see_gain(struct client *c)
{
    uint32_t n = 0, *w;
    clean(c);
    for (uint32_t i = c->rows * 4; i < stream / 4; i++)
        c->here[INPUT][i] = i & 1 ? ONE : 0;
    memset(c->here[WEIGHTS], 0x7F, stream);
    w = command(c, n++, OP_LOAD_ROWS, 0, 0);
    w[3] = w[4] = c->rows * 16 / 64;
    w[5] = c->d / 16 | 4 << 16;
    w = command(c, n++, OP_LAYERNORM, 0, 4);
    w[2] = (c->d / 32) << 16;
    w[3] = c->d;
    w[4] = w[5] = w[6] = ONE;
    w = command(c, n++, OP_STREAM_TILES, 0, 0);
    w[2] = c->d / 32;
    w[3] = 64;
    w = command(c, n++, OP_MATMUL, 4, 8);
    w[2] = (c->d / 32) << 16;
    w[3] = 64;
    w[4] = DST_RESULT << 16;
    w[6] = 64;
    w[8] = 4;
    command(c, n++, OP_END, 8, 0);
    return client_run(c, n) ? (long)found(c, RESULT) : -1;
}

int main(void)
{
    static const struct {
        const char *name;
        long (*look)(struct client *);
    } looks[] = {{"residual rows", see_residual}, {"q, k and v", see_kv},
                 {"prefix maxima", see_maxima},   {"activations", see_activations},
                 {"gain and bias", see_gain},     {"second row memory", see_second}};
    struct client secret, spy;
    printf("TAP version 13\n");
    ok(client_open(&secret) && client_open(&spy), "two clients");
    const size_t kinds = sizeof looks / sizeof *looks - !secret.trains;
    for (size_t i = 0; i < kinds; i++) {
        // That the look-out sees something at all: its own.
        bool ran = leave_secret(&secret);
        long own = looks[i].look(&secret);
        ok(ran && own > 0, "%s: a client finds its own (%ld words)", looks[i].name, own);
        ran = leave_secret(&secret);
        long other = looks[i].look(&spy);
        ok(ran && other == 0, "%s: another one finds nothing (%ld words)", looks[i].name, other);
        // A ring that was closed and is somebody else's now.
        ran = leave_secret(&spy);
        client_close(&spy);
        ok(client_open(&spy), "a client on the ring of the one that left");
        other = looks[i].look(&spy);
        ok(ran && other == 0, "%s: nor does who comes after (%ld words)", looks[i].name, other);
    }
    cost(&secret, &spy);
    // A reset leaves the memories as they are and takes the erasing away; the driver gives it back.
    for (size_t i = 0; i < kinds; i++) {
        bool ran = leave_secret(&secret) && function_level_reset();
        long across = looks[i].look(&spy);
        ran &= leave_secret(&secret);
        long after = looks[i].look(&spy);
        ok(ran && across == 0 && after == 0, "%s: nothing after a reset (%ld and %ld words)",
           looks[i].name, across, after);
    }
    client_close(&secret);
    client_close(&spy);
    return done();
}
