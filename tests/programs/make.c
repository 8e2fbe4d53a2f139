// SPDX-License-Identifier: Apache-2.0
// Programs that are legal, small and compute something: a layer as the engine would write it, or
// commands in a random order. mutate.c then breaks most of them.
#include <assert.h>
#include <string.h>

#include "cmodel/legal.h"
#include "maker.h"

// KV is what the sanitizer's allocator still takes from memory that it has.
const uint32_t part_bytes[PARTS] = {4096, 8192, 32768, 32768, 1 << 19, 28 << 12};

uint64_t random64(uint64_t *s)
{
    uint64_t z = *s += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static uint32_t below(struct maker *m, uint32_t n)
{
    return n ? (uint32_t)(random64(m->rng) % n) : 0;
}

static bool one_in(struct maker *m, uint32_t n)
{
    return below(m, n) == 0;
}

struct mr_command *add(struct maker *m, unsigned op, unsigned wait, unsigned signal)
{
    struct mr_command *c = &m->c->cmds[m->c->count++];
    *c = (struct mr_command){{0}};
    mr_command_set(c, MR_F_CMD_OPCODE, op);
    mr_command_set(c, MR_F_CMD_WAIT, wait);
    mr_command_set(c, MR_F_CMD_SIGNAL, signal);
    return c;
}

// ---- commands with all their fields -------------------------------------------------------------

void load_rows(struct maker *m, unsigned wait, unsigned signal)
{
    struct mr_command *c = add(m, MR_OP_LOAD_ROWS, wait, signal);
    uint32_t rot = TABLE_OFF + 2 + below(m, 3);
    mr_command_set(c, MR_F_LOAD_ROWS_TABLE_OFF, TABLE_OFF);
    mr_command_set(c, MR_F_LOAD_ROWS_ROT_OFF, rot);
    mr_command_set(c, MR_F_LOAD_ROWS_RES_OFF, rot + m->rows * m->rot_beats + below(m, 3));
    mr_command_set(c, MR_F_LOAD_ROWS_RES_BEATS, m->d / 16);
    mr_command_set(c, MR_F_LOAD_ROWS_ROT_BEATS, m->rot_beats);
    m->tracked = m->d;
}

uint32_t bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

void layernorm(struct maker *m, uint32_t base, uint32_t slot, bool logits, unsigned wait,
               unsigned signal)
{
    struct mr_command *c = add(m, MR_OP_LAYERNORM, wait, signal);
    // What is behind the n floats is zero in an engine's rows; here it is not.
    uint32_t n = one_in(m, 4) ? m->d - below(m, one_in(m, 2) ? 32 : m->d) : m->d;
    mr_command_set(c, MR_F_LAYERNORM_DST_BASE, base);
    mr_command_set(c, MR_F_LAYERNORM_DBLOCKS, m->d / 32);
    mr_command_set(c, MR_F_LAYERNORM_N, n);
    mr_command_set(c, MR_F_LAYERNORM_DST_SLOT, slot);
    mr_command_set(c, MR_F_LAYERNORM_LOGIT_ROWS, logits);
    mr_command_set(c, MR_F_LAYERNORM_BACK, !logits && one_in(m, 3));
    mr_command_set(c, MR_F_LAYERNORM_INV_N, bits(1 / (float)n));
    mr_command_set(c, MR_F_LAYERNORM_INV_N2, bits(1 / ((float)n * (float)n)));
    mr_command_set(c, MR_F_LAYERNORM_EPS, bits(1e-5F));
}

void stream_vec(struct maker *m, unsigned wait, unsigned signal)
{
    mr_command_set(add(m, MR_OP_STREAM_VEC, wait, signal), MR_F_STREAM_VEC_D, m->d);
}

struct mr_command *matmul(struct maker *m, uint32_t src, uint32_t kblocks, uint32_t cols,
                          uint32_t src_slot, uint32_t dst, unsigned wait, unsigned signal)
{
    bool fp4 = one_in(m, 3), bias = one_in(m, 2);
    struct mr_command *c = add(m, MR_OP_STREAM_TILES, 0, 0);
    mr_command_set(c, MR_F_STREAM_TILES_KBLOCKS, kblocks);
    mr_command_set(c, MR_F_STREAM_TILES_FP4, fp4);
    mr_command_set(c, MR_F_STREAM_TILES_BIAS, bias);
    mr_command_set(c, MR_F_STREAM_TILES_COLS, cols);
    c = add(m, MR_OP_MATMUL, wait, signal);
    mr_command_set(c, MR_F_MATMUL_SRC_BASE, src);
    mr_command_set(c, MR_F_MATMUL_KBLOCKS, kblocks);
    mr_command_set(c, MR_F_MATMUL_COLS, cols);
    mr_command_set(c, MR_F_MATMUL_DST, dst);
    mr_command_set(c, MR_F_MATMUL_SRC_SLOT, src_slot);
    mr_command_set(c, MR_F_MATMUL_BIAS, bias);
    mr_command_set(c, MR_F_MATMUL_FP4, fp4);
    return c;
}

void rotate(struct maker *m, struct mr_command *c)
{
    mr_command_set(c, MR_F_MATMUL_ROTARY, 1);
    mr_command_set(c, MR_F_MATMUL_HEAD_LANES, 64);
    mr_command_set(c, MR_F_MATMUL_ROTARY_DIM, 2 * below(m, 8 * m->rot_beats + 1));
}

void result_of(struct maker *m, struct mr_command *c)
{
    uint32_t cols = mr_command_get(c, MR_F_MATMUL_COLS), out = cols - below(m, 40);
    mr_command_set(c, MR_F_MATMUL_OUT_COLS, out);
    mr_command_set(c, MR_F_MATMUL_OUT_OFF, below(m, 200));
    mr_command_set(c, MR_F_MATMUL_OUT_STRIDE, (out + 15) / 16 + below(m, 3));
}

void pm_load(struct maker *m, uint32_t layer, bool to_end, unsigned wait, unsigned signal)
{
    struct mr_command *c = add(m, MR_OP_PM_LOAD, wait, signal);
    mr_command_set(c, MR_F_PM_LOAD_TO_END, to_end);
    mr_command_set(c, MR_F_PM_LOAD_LAYER, layer);
    mr_command_set(c, MR_F_PM_LOAD_WBEATS, m->w / 64);
}

void store_kv(struct maker *m, uint32_t layer, uint32_t src, bool is_v, unsigned wait,
              unsigned signal)
{
    struct mr_command *c = add(m, MR_OP_STORE_KV, wait, signal);
    mr_command_set(c, MR_F_STORE_KV_LAYER, layer);
    mr_command_set(c, MR_F_STORE_KV_SRC_BASE, src);
    mr_command_set(c, MR_F_STORE_KV_WBEATS, m->w / 64);
    mr_command_set(c, MR_F_STORE_KV_IS_V, is_v);
}

void attend(struct maker *m, uint32_t layer, uint32_t q, uint32_t dst, uint32_t slot, unsigned wait,
            unsigned signal)
{
    struct mr_command *c = add(m, MR_OP_ATTEND, wait, signal);
    uint32_t heads = m->w / 64, wide = 1;
    if (heads % 2 == 0 && one_in(m, 3)) {
        heads /= 2;
        wide = 2;
    }
    mr_command_set(c, MR_F_ATTEND_LAYER, layer);
    mr_command_set(c, MR_F_ATTEND_HEADS, heads);
    mr_command_set(c, MR_F_ATTEND_HEAD_BEATS, wide);
    mr_command_set(c, MR_F_ATTEND_SCALE, bits(0.18F));
    mr_command_set(c, MR_F_ATTEND_Q_BASE, q);
    mr_command_set(c, MR_F_ATTEND_DST_BASE, dst);
    mr_command_set(c, MR_F_ATTEND_DST_SLOT, slot);
}

void store_res(struct maker *m, unsigned wait, unsigned signal)
{
    struct mr_command *c = add(m, MR_OP_STORE_RES, wait, signal);
    mr_command_set(c, MR_F_STORE_RES_OUT_OFF, below(m, 300));
    mr_command_set(c, MR_F_STORE_RES_BEATS, m->d / 16);
}

// ---- a GPT-J layer and head, with the engine's semaphores ---------------------------------------

enum {
    VEC_LOADED = 1 << 0,
    VEC_FREE = 1 << 1,
    X = 1 << 2,
    K = 1 << 3,
    V = 1 << 4,
    STORED = 1 << 5,
    PM = 1 << 6,
    HIDDEN = 1 << 7,
    FC_OUT = 1 << 8,
    ATTENDED = 1 << 9,
    RES = 1 << 10,
    ROWS = 1 << 11,
    LAST = 1 << 12,
    OUT = 1 << 13
};

static void layer(struct maker *m, uint32_t number, unsigned done)
{
    uint32_t db = m->d / 32, wb = m->w / 64, hidden = 64 * (1 + below(m, 3));
    stream_vec(m, number ? VEC_FREE : 0, VEC_LOADED);
    pm_load(m, number, false, number ? 0 : ROWS, PM);
    layernorm(m, 0, 0, false, (number ? RES : 0) | VEC_LOADED, X | VEC_FREE);
    rotate(m, matmul(m, 0, db, m->w, 0, MR_DST_QKV, X, 0));
    struct mr_command *c = matmul(m, 0, db, m->w, 0, MR_DST_QKV, 0, K);
    rotate(m, c);
    mr_command_set(c, MR_F_MATMUL_DST_BASE, wb);
    store_kv(m, number, wb, false, K, 0);
    c = matmul(m, 0, db, m->w, 0, MR_DST_QKV, PM, V);
    mr_command_set(c, MR_F_MATMUL_DST_BASE, 2 * wb);
    mr_command_set(c, MR_F_MATMUL_PREFIX_MAX, 1);
    store_kv(m, number, 2 * wb, true, V, STORED);
    bool to_end = one_in(m, 2); // as the engine does for rows that have an end
    if (to_end)
        pm_load(m, number, true, STORED, 0);
    attend(m, number, 0, db, 1, to_end ? 0 : STORED, ATTENDED);
    c = matmul(m, 0, db, hidden, 0, MR_DST_ACT, 0, HIDDEN);
    mr_command_set(c, MR_F_MATMUL_DST_BASE, db + 2 * wb);
    mr_command_set(c, MR_F_MATMUL_DST_SLOT, 2);
    mr_command_set(c, MR_F_MATMUL_FUNCTION, 1 + below(m, 3));
    matmul(m, db + 2 * wb, hidden / 32, m->d, 2, MR_DST_RES, HIDDEN, FC_OUT);
    c = matmul(m, db, 2 * wb, m->d, 1, MR_DST_RES, FC_OUT | ATTENDED, done);
    mr_command_set(c, MR_F_MATMUL_TRACK_EXP, 1);
}

static void engine_program(struct maker *m)
{
    uint32_t layers = 1 + below(m, 2);
    bool head = m->logits != 0;
    m->c->what = "layer";
    load_rows(m, 0, ROWS);
    for (uint32_t i = 0; i < layers; i++)
        layer(m, i, i + 1 < layers || head ? RES : OUT);
    if (head) {
        stream_vec(m, VEC_FREE, VEC_LOADED);
        layernorm(m, 0, 0, true, RES | VEC_LOADED, X);
        struct mr_command *c =
            matmul(m, 0, m->d / 32, 64 * (1 + below(m, 5)), 0, MR_DST_RESULT, X, LAST);
        mr_command_set(c, MR_F_MATMUL_LOGIT_ROWS, 1);
        result_of(m, c);
    } else {
        store_res(m, OUT, LAST);
    }
    add(m, MR_OP_END, LAST, 0);
}

// ---- commands in any order ----------------------------------------------------------------------

static void any_matmul(struct maker *m)
{
    uint32_t kblocks = 1 + below(m, 8), cols = 64 * (1 + below(m, 3));
    uint32_t src = below(m, 128 - kblocks + 1), dst = below(m, 4), slot = below(m, 4);
    if (dst == MR_DST_RES && cols > m->d)
        cols = m->d;
    struct mr_command *c = matmul(m, src, kblocks, cols, slot, dst, 0, 0);
    bool logits = m->logits != 0 && one_in(m, 3);
    mr_command_set(c, MR_F_MATMUL_LOGIT_ROWS, logits);
    mr_command_set(c, MR_F_MATMUL_FUNCTION, one_in(m, 3) ? 1 + below(m, 3) : MR_FUNCTION_NONE);
    if (one_in(m, 3))
        rotate(m, c);
    if (dst == MR_DST_ACT) {
        uint32_t blocks = cols / 32, at = below(m, 128 - blocks + 1);
        if (at < src + kblocks && src < at + blocks) // beside what it reads
            at = src >= blocks ? src - blocks : src + kblocks;
        mr_command_set(c, MR_F_MATMUL_DST_BASE, at);
        mr_command_set(c, MR_F_MATMUL_DST_SLOT, (slot + 1 + below(m, 3)) % 4);
    } else if (dst == MR_DST_QKV) {
        mr_command_set(c, MR_F_MATMUL_DST_BASE, below(m, 32 - cols / 64 + 1));
        mr_command_set(c, MR_F_MATMUL_PREFIX_MAX, one_in(m, 2));
    } else if (dst == MR_DST_RES) {
        bool track = one_in(m, 2);
        mr_command_set(c, MR_F_MATMUL_TRACK_EXP, track);
        m->tracked = !track ? 0 : !logits || m->tracked == cols ? cols : 0;
    } else {
        result_of(m, c);
    }
}

static void any_program(struct maker *m)
{
    uint32_t wb = m->w / 64, steps = 1 + below(m, 7);
    m->c->what = "commands";
    load_rows(m, 0, 0);
    for (uint32_t i = 0; i < steps; i++) {
        switch (below(m, 8)) {
        case 0:
            pm_load(m, below(m, m->layers), one_in(m, 3), 0, 0);
            break;
        case 1:
            store_kv(m, below(m, m->layers), below(m, 32 - wb + 1), one_in(m, 2), 0, 0);
            break;
        case 2:
            attend(m, below(m, m->layers), below(m, 32 - wb + 1), below(m, 128 - 2 * wb + 1),
                   below(m, 4), 0, 0);
            break;
        case 3:
            store_res(m, 0, 0);
            break;
        case 4:
            if (one_in(m, 4))
                load_rows(m, 0, 0);
            else if (m->tracked == m->d) {
                stream_vec(m, 0, 0);
                layernorm(m, below(m, 128 - m->d / 32 + 1), below(m, 4), one_in(m, 3), 0, 0);
            }
            break;
        default:
            any_matmul(m);
        }
    }
    store_res(m, 0, 0);
    add(m, MR_OP_END, 0, 0);
    m->c->chained = true;
}

// ---- what programs read -------------------------------------------------------------------------

static float any_float(struct maker *m, bool odd)
{
    static const uint32_t strange[] = {0,          0x80000000, 0x00000001, 0x807FFFFF, 0x00800000,
                                       0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0xFF7FFFFF};
    uint32_t u = (uint32_t)random64(m->rng);
    u = (u & 0x807FFFFFu) | (120 + (u >> 23 & 7) * (one_in(m, 8) ? 3u : 1u)) << 23;
    if (odd && one_in(m, 40))
        u = strange[below(m, sizeof strange / sizeof *strange)];
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static void floats(struct maker *m, uint8_t *to, uint32_t n, bool odd)
{
    for (uint32_t i = 0; i < n; i++) {
        float f = any_float(m, odd);
        memcpy(to + 4 * (size_t)i, &f, sizeof f);
    }
}

static void bytes(struct maker *m, uint8_t *to, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 8) {
        uint64_t r = random64(m->rng);
        memcpy(to + i, &r, n - i < 8 ? n - i : 8);
    }
}

static void codes(struct maker *m, uint8_t *to, uint32_t n, uint32_t top)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = (uint8_t)(top - below(m, 12));
}

// A matrix: header, then 16 groups, until all columns are there.
static uint8_t *tiles(struct maker *m, uint8_t *p, const struct mr_command *c)
{
    uint32_t kblocks = mr_command_get(c, MR_F_STREAM_TILES_KBLOCKS);
    bool fp4 = mr_command_get(c, MR_F_STREAM_TILES_FP4),
         bias = mr_command_get(c, MR_F_STREAM_TILES_BIAS);
    for (uint32_t col = 0; col < mr_command_get(c, MR_F_STREAM_TILES_COLS); col += 64) {
        uint8_t *max = p;
        memset(max, 0, 64);
        p += 64;
        if (bias) {
            floats(m, p, 64, m->odd_stream);
            p += 256;
        }
        for (uint32_t g = 0; g < 16; g++)
            for (uint32_t k = 0; k < kblocks; k += 16) {
                uint32_t n = kblocks - k < 16 ? kblocks - k : 16;
                codes(m, p, 64, 128);
                if (m->odd_stream && one_in(m, 30))
                    p[below(m, 64)] = one_in(m, 2) ? 255 : (uint8_t)random64(m->rng);
                for (uint32_t i = 0; i < 4 * n; i++)
                    if (p[i] > max[4 * g + i % 4])
                        max[4 * g + i % 4] = p[i];
                memset(p + 4 * (size_t)n, 0, 64 - 4 * n);
                p += 64;
                bytes(m, p, n * (fp4 ? 64 : 128));
                p += n * (fp4 ? 64 : 128);
            }
        // A maximum below a block's code.
        while (m->odd_stream && one_in(m, 3))
            max[below(m, 64)] = (uint8_t)(118 + below(m, 12));
    }
    return p;
}

// All that the program streams; a matrix that has no room, with what is behind it, is left out.
void stream(struct maker *m)
{
    uint8_t *p = m->c->bytes[WEIGHTS] + ROOM;
    uint64_t room = (part_bytes[WEIGHTS] - 2 * ROOM) / 64;
    for (int i = 0; i < m->c->count; i++) {
        const struct mr_command *c = &m->c->cmds[i];
        unsigned op = mr_command_get(c, MR_F_CMD_OPCODE);
        if (op != MR_OP_STREAM_VEC && op != MR_OP_STREAM_TILES)
            continue;
        uint64_t beats = mr_legal_stream_beats(c->word, 1);
        if (beats > room)
            break;
        room -= beats;
        if (op == MR_OP_STREAM_VEC) {
            floats(m, p, 2 * mr_command_get(c, MR_F_STREAM_VEC_D), m->odd_stream);
            p += 8 * (size_t)mr_command_get(c, MR_F_STREAM_VEC_D);
        } else if (op == MR_OP_STREAM_TILES) {
            p = tiles(m, p, c);
        }
    }
    assert(p <= m->c->bytes[WEIGHTS] + part_bytes[WEIGHTS] - ROOM);
    m->c->streamed = (uint32_t)(p - (m->c->bytes[WEIGHTS] + ROOM)) / 64;
    m->c->desc[18] = m->c->streamed; // and not a beat more
}

enum { POSITIONS = 20 };

// Rows of up to four sequences, in ascending positions.
void row_table(struct maker *m)
{
    uint32_t rec = m->w / 64 + 1, table[8][4] = {{0}};
    uint32_t *desc = m->c->desc;
    desc[MR_RUN_KV_V_BEATS] = POSITIONS * rec;
    desc[MR_RUN_KV_PM_BEATS] = 2 * POSITIONS * rec;
    desc[MR_RUN_KV_LAYER_BEATS] = POSITIONS * (2 * rec + 1);
    uint32_t kv = m->layers * desc[MR_RUN_KV_LAYER_BEATS];
    desc[22] = m->sequences * kv;
    for (uint32_t i = 0, seq = 0, pos = below(m, 12); i < m->rows; i++, pos++) {
        bool next = i != 0 && one_in(m, 4) && seq + 1 < m->sequences;
        if (next) {
            seq++;
            pos = below(m, 12);
        }
        bool wants = one_in(m, 2);
        m->logits += wants;
        table[i][0] = seq * kv;
        table[i][1] = pos;
        table[i][2] = wants | (uint32_t)(i != 0 && !next) << 1;
    }
    // A sequence may have an end: that of its last row, or a later one.
    uint32_t end = 0;
    for (uint32_t i = m->rows; i-- > 0;) {
        if (i + 1 == m->rows || !(table[i + 1][2] & 2)) {
            end = table[i][1] + 1;
            end = one_in(m, 2) ? 0 : end + below(m, POSITIONS - end + 1);
        }
        table[i][3] = end;
    }
    // The rest of the input window is rows of floats.
    uint8_t *in = m->c->bytes[INPUT] + ROOM;
    floats(m, in, 16384 / 4, m->odd_rows);
    memcpy(in + 64 * TABLE_OFF, table, sizeof table);
}

void keep_kv(struct maker *m)
{
    uint32_t n = 64 * m->c->desc[22] + 2 * ROOM;
    bytes(m, m->c->bytes[KV], n);
    if (one_in(m, 4))
        return; // any codes
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *b = &m->c->bytes[KV][i];
        *b = (uint8_t)(118 + *b % 14); // of codes and of elements
    }
}

void windows(struct maker *m, const uint64_t at[PARTS])
{
    static const int word[PARTS] = {0, MR_RUN_PROG_LO, MR_RUN_INPUT_LO, MR_RUN_RESULT_LO, 16, 20};
    uint32_t *desc = m->c->desc;
    for (int i = PROGRAM; i < PARTS; i++) {
        uint64_t a = at[i] + (i == PROGRAM ? 0 : ROOM);
        desc[word[i]] = (uint32_t)a;
        desc[word[i] + 1] = (uint32_t)(a >> 32);
    }
    desc[MR_RUN_MAGIC] = MR_MAGIC_RUN;
    desc[MR_RUN_N_ROWS] = m->rows;
    desc[MR_RUN_FLAGS] = m->two_pass;
    desc[MR_RUN_INPUT_BEATS] = (part_bytes[INPUT] - 2 * ROOM) / 64;
    desc[MR_RUN_RESULT_BEATS] = (part_bytes[RESULT] - 2 * ROOM) / 64;
}

// Every command but STREAM_TILES waits for the one before it, if that is in another queue.
void chain(struct program_case *c)
{
    int before = -1, before_queue = -1;
    for (int i = 0; i < c->count; i++) {
        unsigned op = mr_command_get(&c->cmds[i], MR_F_CMD_OPCODE);
        int q = -1;
#define IS(code, name, number)                                                                     \
    if (op == (code))                                                                              \
        q = (number);
        MR_OP_LIST(IS)
#undef IS
        if (op == MR_OP_STREAM_TILES || q < 0)
            continue;
        mr_command_set(&c->cmds[i], MR_F_CMD_WAIT, 0);
        mr_command_set(&c->cmds[i], MR_F_CMD_SIGNAL, 0);
        // Also inside a queue: array commands overlap.
        if (before >= 0 && (q != before_queue || q == MR_QUEUE_ARRAY)) {
            mr_command_set(&c->cmds[before], MR_F_CMD_SIGNAL, 1u << q);
            mr_command_set(&c->cmds[i], MR_F_CMD_WAIT, 1u << q);
        }
        before = i;
        before_queue = q;
    }
}

struct maker begin(struct program_case *c, uint64_t seed, uint64_t *rng)
{
    c->seed = seed;
    c->count = 0;
    c->chained = false;
    c->run_skew = 0;
    memset(c->desc, 0, sizeof c->desc);
    for (int i = 0; i < PARTS; i++)
        memset(c->bytes[i], 0, part_bytes[i]);
    return (struct maker){.c = c, .rng = rng};
}

void finish(struct program_case *c)
{
    memcpy(c->bytes[DESC] + c->run_skew, c->desc, sizeof c->desc);
    memcpy(c->bytes[PROGRAM], c->cmds, (size_t)c->count * sizeof *c->cmds);
}

void make_case(struct program_case *c, uint64_t seed, const uint64_t at[PARTS])
{
    uint64_t rng = seed * 0x2545F4914F6CDD1Du + 1;
    struct maker m = begin(c, seed, &rng);
    m.d = 64 * (1 + below(&m, 2));
    m.w = 64 * (1 + below(&m, 3));
    m.two_pass = one_in(&m, 4);
    m.rows = 1 + below(&m, m.two_pass ? 4 : 8);
    m.rot_beats = 4 * below(&m, 3);
    m.odd_stream = one_in(&m, 4);
    m.odd_rows = one_in(&m, 8);
    m.layers = 2 + below(&m, 2);
    m.sequences = m.layers == 2 ? 4 : 3;
    row_table(&m);
    windows(&m, at);
    if (one_in(&m, 4))
        engine_program(&m);
    else
        any_program(&m);
    c->chained |= one_in(&m, 2);
    keep_kv(&m);
    stream(&m);
    c->desc[MR_RUN_N_CMDS] = c->desc[MR_RUN_PROG_BEATS] = (uint32_t)c->count;
    if (c->chained)
        chain(c);
    mutate(c, &rng, at);
    finish(c);
}
