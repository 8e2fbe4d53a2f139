// SPDX-License-Identifier: Apache-2.0
// A micro-batch on `model:`: its gradient against the reference in fp32, and its bits over chunks,
// geometries and threads.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/synthetic.h"
#include "device/configs.h"
#include "device/open.h"
#include "reference/pass_add.h"
#include "reference/reference.h"
#include "store/choice.h"
#include "train/pass.h"
#include "train/pass_impl.h"
#include "train/work.h"
#include "unit/check.h"
#include "unit/files.h"
#include "unit/memory_store.h"
#include "unit/toy_model.h"
#include "unit/train/spoken.h"

#define FIXTURES "tests/fixtures/train/"
enum { MOST = 4160, SEQUENCES = 260 }; // 130 blocks of 32 rows

static uint64_t state = 1;

static unsigned draw(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

// ---- a model and a batch ------------------------------------------------------------------------

struct subject {
    struct mr_checkpoint *checkpoint;
    const struct mr_config *config;
    struct mr_params weights; // of the reference
    struct mr_volume *volume;
    struct mr_store *store; // the same, for the device
    int lengths[SEQUENCES], tokens[MOST], targets[MOST], rows;
    struct mr_batch batch;
};

static void subject_open(struct subject *s, const char *model)
{
    struct mr_error err = {0};
    check(toy_register(&err), &err);
    check(mr_checkpoint_open(&s->checkpoint, model, MR_DECODER, NULL, &err), &err);
    s->config = mr_checkpoint_config(s->checkpoint);
    check(mr_params_new(&s->weights, s->config, &err), &err);
    check(mr_params_read(&s->weights, s->checkpoint, &err), &err);
    s->store = memory_store(s->checkpoint, &s->volume);
}

static void subject_close(struct subject *s)
{
    mr_store_close(s->store);
    mr_params_free(&s->weights);
    mr_checkpoint_close(s->checkpoint);
}

// Sequences of these lengths (cut to the model's positions), with random tokens.
static void take_lengths(struct subject *s, const int *lengths, int n)
{
    s->rows = 0;
    for (int i = 0; i < n; i++) {
        int most = s->config->n_positions;
        s->lengths[i] = lengths[i] < most ? lengths[i] : most;
        for (int t = 0; t < s->lengths[i]; t++, s->rows++) {
            s->tokens[s->rows] = (int)draw((unsigned)s->config->vocab_size);
            s->targets[s->rows] =
                draw(8) ? (int)draw((unsigned)s->config->vocab_size) : MR_NO_TARGET;
        }
    }
    s->batch = (struct mr_batch){
        .n_sequences = n, .lengths = s->lengths, .tokens = s->tokens, .targets = s->targets};
}

// ---- gradients ----------------------------------------------------------------------------------

struct trained {
    struct mr_device *dev;
    struct mr_pass *pass;
    struct mr_loss loss;
};

static void train_with(struct trained *t, const struct subject *s, const char *uri,
                       struct mr_pass_options o)
{
    struct mr_error err = {0};
    o.rows = s->rows + 40;
    *t = (struct trained){0};
    check(mr_device_open(&t->dev, uri, &err), &err);
    check(mr_pass_open(&t->pass, t->dev, s->config, &o, &err), &err);
    check(mr_pass_weights(t->pass, s->store, &err), &err);
    check(mr_pass_run(t->pass, &s->batch, &t->loss, &err), &err);
}

static void train_by(struct trained *t, const struct subject *s, const char *uri, int chunk,
                     bool recompute)
{
    train_with(t, s, uri, (struct mr_pass_options){.chunk = chunk, .recompute = recompute});
}

static void train(struct trained *t, const struct subject *s, const char *uri, int chunk)
{
    train_by(t, s, uri, chunk, false);
}

static void trained_close(struct trained *t)
{
    mr_pass_close(t->pass);
    mr_device_close(t->dev);
}

static double sqnr(const float *want, const float *got, size_t n)
{
    double error = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        error += ((double)want[i] - got[i]) * ((double)want[i] - got[i]);
        size += (double)want[i] * want[i];
    }
    return 10 * log10(size / error);
}

// The whole gradient, in dB.
static double whole(const struct subject *s, const struct trained *t, double *worst)
{
    struct mr_error err = {0};
    struct mr_params want, got;
    struct mr_reference *reference;
    struct mr_loss loss = {0};
    check(mr_params_new(&want, s->config, &err), &err);
    check(mr_params_new(&got, s->config, &err), &err);
    check(mr_reference_open(&reference, &s->weights, &err), &err);
    check(mr_reference_run(reference, &s->batch, &loss, &want, &err), &err);
    mr_pass_add(t->pass, &s->batch, &got);
    double db = sqnr(want.data, got.data, want.first[want.count]);
    *worst = 200;
    for (size_t i = 0; i < want.count; i++) {
        double of = sqnr(mr_params_at(&want, i), mr_params_at(&got, i), mr_params_size(&want, i));
        double size = 0; // of a key's bias all is rounding
        for (size_t k = 0; k < mr_params_size(&want, i); k++)
            size += fabs(mr_params_at(&want, i)[k]);
        if (size > 1e-3)
            *worst = of < *worst ? of : *worst;
    }
    assert_true(fabs(mr_loss_mean(&loss) - mr_loss_mean(&t->loss)) < 0.02 * mr_loss_mean(&loss));
    mr_reference_close(reference);
    mr_params_free(&want);
    mr_params_free(&got);
    return db;
}

static const char *const fixtures[] = {FIXTURES "gptj-d12-r4", FIXTURES "gptj-d22-one-head",
                                       FIXTURES "gptj-d6-r6-long", FIXTURES "toy-d10"};
static const int lengths[] = {19, 70, 1, 28, 43};

// Random weights of a few lanes: bounds as wide as they are odd.
static void fixtures_have_the_gradient(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++) {
        struct subject s;
        struct trained t;
        double worst;
        subject_open(&s, fixtures[i]);
        take_lengths(&s, lengths, 5);
        train(&t, &s, "model:tinyt", 0);
        double db = whole(&s, &t, &worst);
        printf("# %s: gradient %.1f dB, the worst tensor %.1f dB\n", fixtures[i], db, worst);
        assert_true(db > 28);
        assert_true(worst > 18);
        trained_close(&t);
        subject_close(&s);
    }
}

// Eight batches of its own text, in sequences.
static void demo_has_the_gradient(void **unused)
{
    (void)unused;
    static int of[2][3] = {{96, 33, 31}, {129, 31, 0}};
    for (int i = 0; i < 8; i++) {
        struct spoken spoken;
        struct subject s;
        struct trained t;
        double worst;
        spoken_open(&spoken, "models/demo", 160);
        spoken_batch(&spoken, 7 + (unsigned)i);
        subject_open(&s, "models/demo");
        s.rows = spoken.rows;
        s.batch = (struct mr_batch){.n_sequences = 3 - i % 2,
                                    .lengths = of[i % 2],
                                    .tokens = spoken.tokens,
                                    .targets = spoken.targets};
        train(&t, &s, "model:tinyt", 0);
        double db = whole(&s, &t, &worst);
        printf("# demo, batch %d: loss %.3f, gradient %.1f dB, the worst tensor %.1f dB\n", i,
               mr_loss_mean(&t.loss), db, worst);
        assert_true(db >= 28);
        trained_close(&t);
        subject_close(&s);
        spoken_close(&spoken);
    }
}

// A vocabulary whose gradient is contracted in two segments, the second one shorter.
static void large_model(struct subject *s, int vocab, int layers)
{
    const struct mr_config c = {.vocab_size = vocab,
                                .n_positions = 40,
                                .n_embd = 32,
                                .n_layer = layers,
                                .n_head = 2,
                                .rotary_dim = 8,
                                .n_inner = 64,
                                .eos_token_id = -1};
    struct mr_error err = {0};
    check(mr_synthetic_start(files_dir, &c, 5, NULL, &err), &err);
    subject_open(s, files_dir);
}

static void large_vocabularies_have_the_gradient(void **unused)
{
    (void)unused;
    struct subject s;
    struct trained t;
    double worst;
    large_model(&s, 16384 + 4000, 1);
    take_lengths(&s, lengths, 2);
    train(&t, &s, "model:sim,train", 32);
    double db = whole(&s, &t, &worst);
    printf("# 20384 tokens: gradient %.1f dB, the worst tensor %.1f dB\n", db, worst);
    assert_true(db > 28);
    assert_true(worst > 18);
    trained_close(&t);
    subject_close(&s);
}

// ---- bits ---------------------------------------------------------------------------------------

static void same_sums(const struct mr_pass_gradient *x, const struct mr_pass_gradient *y)
{
    assert_int_equal(x->tiles != NULL, y->tiles != NULL);
    if (!x->tiles)
        return;
    assert_int_equal(x->unit, y->unit);
    assert_int_equal(x->peak, y->peak);
    assert_memory_equal(x->tiles, y->tiles,
                        (size_t)((x->rows + 31) / 32) * (size_t)(x->cols / 64) * 8192);
}

static void same_bits(const struct subject *s, const struct trained *a, const struct trained *b)
{
    size_t stride_a, stride_b;
    const float *rows_a = mr_pass_row_gradient(a->pass, &stride_a);
    const float *rows_b = mr_pass_row_gradient(b->pass, &stride_b);
    assert_true(a->loss.sum == b->loss.sum);
    assert_int_equal(stride_a, stride_b);
    assert_memory_equal(rows_a, rows_b, (size_t)s->rows * stride_a * sizeof(float));
    for (size_t i = 0; i < s->weights.count; i++) {
        struct mr_pass_gradient x = mr_pass_gradient(a->pass, i), y = mr_pass_gradient(b->pass, i);
        same_sums(&x, &y);
    }
}

static void bits_are_the_same_everywhere(void **unused)
{
    (void)unused;
    static const struct {
        const char *uri;
        int chunk;
        const char *threads, *simd;
    } ways[] = {
        {"model:sim,train", 32, "1", "portable"}, {"model:sim,train", 64, "3", "avx2"},
        {"model:sim,train", 96, "2", "avx512"},   {"model:sim,train", 128, "8", "avx2"},
        {"model:wide,train", 128, "2", "avx512"}, {"model:u280,train", 0, "2", "avx512"},
    };
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f += 2) {
        struct subject s;
        struct trained first;
        subject_open(&s, fixtures[f]);
        take_lengths(&s, lengths, 5);
        train(&first, &s, "model:tinyt", 0);
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            struct trained t;
            assert_int_equal(setenv("MILLRACE_THREADS", ways[i].threads, 1), 0);
            assert_int_equal(setenv("MILLRACE_SIMD", ways[i].simd, 1), 0);
            train(&t, &s, ways[i].uri, ways[i].chunk);
            same_bits(&s, &first, &t);
            trained_close(&t);
        }
        assert_int_equal(setenv("MILLRACE_THREADS", "1", 1), 0);
        assert_int_equal(unsetenv("MILLRACE_SIMD"), 0);
        trained_close(&first);
        subject_close(&s);
    }
}

// What the programs of a pass do, beside what the device counts.
struct asked {
    struct mr_work work;
    uint64_t commands, grad_blocks, stash; // commands but END; the latter in beats of STREAM_STASH
    int channels;
};

static int ask(void *arg, const struct mr_pass_program *p)
{
    struct asked *a = arg;
    for (int i = 0; i < p->count; i++) {
        unsigned op = mr_command_get(&p->commands[i], MR_F_CMD_OPCODE);
        struct mr_work w = mr_work_of(&p->commands[i], a->channels, p->rows);
        mr_work_add(&a->work, &w);
        a->grad_blocks += op == MR_OP_GRAD ? w.mac_blocks : 0;
        a->stash += op == MR_OP_STREAM_STASH ? w.stash_read : 0;
    }
    a->commands += (uint64_t)p->count - 1;
    return 0;
}

static void counts_add_up(const struct asked *a, const struct mr_pass_counts *from,
                          const struct mr_pass_counts *to)
{
    uint64_t n[MR_ALL_COUNTERS];
    for (int i = 0; i < (int)MR_ALL_COUNTERS; i++)
        n[i] = to->counter[i] - from->counter[i];
    assert_int_equal(n[MR_CNT_COMMANDS], a->commands);
    assert_int_equal(n[MR_CNT_MAC_BLOCKS], a->work.mac_blocks);
    assert_int_equal(n[MR_CNT_GRAD_BLOCKS], a->grad_blocks);
    assert_int_equal(n[MR_CNT_WEIGHT_BEATS] - n[MR_CNT_STASH_BEATS], a->work.weights);
    // Beats before the first block that is wanted are read too; a k-row that is not full is
    // written.
    assert_in_range(n[MR_CNT_STASH_BEATS], a->stash, 2 * a->stash);
    assert_in_range(n[MR_CNT_STASH_PUTS], a->work.stash_written, n[MR_CNT_WRITE_BEATS]);
    assert_in_range(n[MR_CNT_GRAD_ALONE] + n[MR_CNT_GRAD_WRITES], 1, n[MR_CNT_CYCLES]);
    uint64_t rows = (a->work.host_read + a->work.host_written) / 2;
    assert_in_range(n[MR_CNT_ROWS_BUSY], 1, 2 * rows + n[MR_CNT_CYCLES]);
    assert_in_range(n[MR_CNT_ACT_LOADS] + n[MR_CNT_MOVE_BUSY], 1, n[MR_CNT_VECTOR_BUSY]);
    for (int i = MR_CNT_STASH_BEATS; i < (int)MR_ALL_COUNTERS; i++)
        printf("# counter %d: %llu\n", i, (unsigned long long)n[i]);
}

// Two micro-batches on the RTL, every command checked: on tinyt, or on TRAIN_CONFIG (sim,train).
static void the_rtl_gives_the_same_bits(void **unused)
{
    (void)unused;
    const char *config = getenv("TRAIN_CONFIG");
    char rtl[64], model[64];
    (void)snprintf(rtl, sizeof rtl, "sim:%s,check,stalls=10", config ? config : "tinyt");
    (void)snprintf(model, sizeof model, "model:%s", config ? config : "tinyt");
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++) {
        struct mr_error err = {0};
        struct subject s;
        struct trained a, b;
        subject_open(&s, fixtures[f]);
        take_lengths(&s, lengths, 5);
        train(&a, &s, model, 0);
        train(&b, &s, rtl, 0);
        same_bits(&s, &a, &b);
        assert_int_equal(mr_pass_counts(a.pass).counter[MR_CNT_CYCLES], 0);
        const struct mr_pass_counts from = mr_pass_counts(b.pass);
        struct asked asked = {.channels = mr_device_info(b.dev)->g.n};
        take_lengths(&s, lengths + 1, 3);
        mr_pass_watch(b.pass, NULL, ask, &asked);
        check(mr_pass_run(a.pass, &s.batch, &a.loss, &err), &err);
        check(mr_pass_run(b.pass, &s.batch, &b.loss, &err), &err);
        same_bits(&s, &a, &b);
        const struct mr_pass_counts to = mr_pass_counts(b.pass);
        counts_add_up(&asked, &from, &to);
        trained_close(&a);
        trained_close(&b);
        subject_close(&s);
    }
}

// Without the layers' stash, which is made again: the same bits. Models of one layer and of
// several, parallel blocks and serial ones.
static void recomputation_changes_no_bit(void **unused)
{
    (void)unused;
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++) {
        struct subject s;
        struct trained kept, again;
        subject_open(&s, fixtures[f]);
        take_lengths(&s, lengths, 5);
        train(&kept, &s, "model:tinyt", 0);
        train_by(&again, &s, f % 2 ? "model:sim,train" : "model:tinyt", f % 2 ? 96 : 0, true);
        same_bits(&s, &kept, &again);
        struct mr_pass_memory all = mr_pass_memory(kept.pass), less = mr_pass_memory(again.pass);
        printf("# %s, %d layers: stash and rows of %llu bytes, %llu with recomputation\n",
               fixtures[f], s.config->n_layer, (unsigned long long)(all.stash + all.rows),
               (unsigned long long)(less.stash + less.rows));
        if (s.config->n_layer > 1)
            assert_true(less.stash < all.stash && less.stash + less.rows < all.stash + all.rows);
        else
            assert_true(less.stash == all.stash && less.rows == all.rows);
        trained_close(&kept);
        trained_close(&again);
        subject_close(&s);
    }
}

// ---- frozen tensors -----------------------------------------------------------------------------

struct seen {
    int lowest;          // layer whose gradients are made
    uint64_t mac_blocks; // of the whole pass
    uint64_t below;      // of dX of tensors of the first layer that learn, where nothing below does
    const struct mr_config *config;
    const char *pattern; // of what learns
    int channels;
};

// Does the item have a tensor that learns?
static bool matches(const struct seen *seen, const struct mr_item *item)
{
    char name[MR_NAME];
    bool found = false;
    for (int part = 0; item && seen->pattern && part < MR_PARTS; part++)
        found |= mr_item_has(item, (enum mr_part)part) &&
                 fnmatch(seen->pattern,
                         mr_tensor_name(seen->config, 0, item, (enum mr_part)part, name), 0) == 0;
    return found;
}

static int see(void *arg, const struct mr_pass_program *p)
{
    struct seen *seen = arg;
    if (p->part != MR_PASS_FORWARD && p->part != MR_PASS_AGAIN && p->layer < seen->lowest)
        seen->lowest = p->layer;
    bool below = p->part == MR_PASS_INPUTS && p->layer == 0 && matches(seen, p->item);
    for (int i = 0; i < p->count; i++) {
        uint64_t blocks = mr_work_of(&p->commands[i], seen->channels, p->rows).mac_blocks;
        seen->mac_blocks += blocks;
        if (below && mr_command_get(&p->commands[i], MR_F_CMD_OPCODE) == MR_OP_MATMUL)
            seen->below += blocks;
    }
    return 0;
}

// A pass in which the tensors that match learn alone: their gradients have the bits of `all`, no
// other tensor has one, and no program works below them.
static void some_learn(const struct subject *s, const struct trained *all, const char *uri,
                       const char *pattern, int lowest, bool recompute)
{
    struct mr_error err = {0};
    const char *const patterns[] = {"*", pattern, NULL};
    uint8_t choice[128] = {0};
    struct trained some;
    struct seen whole = {.lowest = INT_MAX}, less = whole;
    less.pattern = pattern + 1;
    less.config = s->config;
    struct mr_pass_options o = {.rows = s->rows + 40, .choice = choice, .recompute = recompute};
    assert_true(s->weights.count <= sizeof choice);
    check(mr_choose(choice, s->config, MR_CHOICE_FROZEN, patterns, "test", &err), &err);
    check(mr_device_open(&some.dev, uri, &err), &err);
    check(mr_pass_open(&some.pass, some.dev, s->config, &o, &err), &err);
    check(mr_pass_weights(some.pass, s->store, &err), &err);
    whole.channels = less.channels = mr_device_info(some.dev)->g.n;
    mr_pass_watch(some.pass, NULL, see, &less);
    mr_pass_watch(all->pass, NULL, see, &whole);
    some.loss = (struct mr_loss){0};
    check(mr_pass_run(some.pass, &s->batch, &some.loss, &err), &err);
    struct mr_loss loss = {0};
    mr_pass_guess_units(all->pass);
    check(mr_pass_run(all->pass, &s->batch, &loss, &err), &err);
    assert_true(some.loss.sum == loss.sum);
    for (size_t i = 0; i < s->weights.count; i++) {
        struct mr_pass_gradient x = mr_pass_gradient(all->pass, i);
        struct mr_pass_gradient y = mr_pass_gradient(some.pass, i);
        if (choice[i] & MR_CHOICE_FROZEN) {
            assert_null(y.tiles);
            continue;
        }
        same_sums(&x, &y);
    }
    printf("# %s of %s: %llu of %llu block products\n", pattern, uri,
           (unsigned long long)less.mac_blocks, (unsigned long long)whole.mac_blocks);
    assert_int_equal(less.lowest, lowest);
    assert_int_equal(less.below, 0);
    assert_true(less.mac_blocks < whole.mac_blocks);
    mr_pass_watch(all->pass, NULL, NULL, NULL);
    trained_close(&some);
}

static void frozen_tensors_change_no_bit_of_others(void **unused)
{
    (void)unused;
    static const struct {
        const char *pattern, *toy;
        bool lowest; // of all layers
    } cases[] = {
        {"!*.[qv]_proj.weight", "!*.attn.[qv].weight", true},
        {"!*.out_proj.weight", "!*.attn.proj.weight", true},
        {"!*.fc_out.bias", "!*.down.bias", true},
        {"!*.fc_in.weight", "!*.up.weight", true},
        {"!*.ln_1.weight", "!*.ln_2.weight", true},
        {"!*.ln_1.bias", "!*.ln_1.bias", true},
        {"!*.wte.weight", "!*.wpe.weight", true},
        {"!*.ln_f.bias", "!*.ln_f.weight", false},
    };
    for (size_t f = 0; f < sizeof fixtures / sizeof *fixtures; f++) {
        struct subject s;
        struct trained all;
        subject_open(&s, fixtures[f]);
        take_lengths(&s, lengths, 5);
        train(&all, &s, "model:tinyt", 0);
        bool serial = !mr_arch_rotates(mr_arch_of(s.config));
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
            some_learn(&s, &all, k % 2 ? "model:sim,train" : "model:tinyt",
                       serial ? cases[k].toy : cases[k].pattern,
                       cases[k].lowest ? 0 : s.config->n_layer, k % 3 == 2);
        int last = s.config->n_layer - 1;
        char pattern[64];
        (void)snprintf(pattern, sizeof pattern,
                       serial ? "!*.h.%d.mlp.down.weight" : "!*.h.%d.attn.v_proj.weight", last);
        some_learn(&s, &all, "sim:tinyt,check", pattern, last, false);
        trained_close(&all);
        subject_close(&s);
    }
}

// A vocabulary that takes all of tinyt's activation memory leaves no room for parts of sums in
// other programs: each waits until its place is needed, and has the bits of a device with room.
static void sums_wait_where_there_is_no_room(void **unused)
{
    (void)unused;
    struct subject s;
    struct trained room, none, again;
    large_model(&s, 32 * 256, 3);
    take_lengths(&s, lengths, 2);
    train(&room, &s, "model:sim,train", 0);
    train(&none, &s, "model:tinyt", 0);
    train_by(&again, &s, "model:tinyt", 0, true);
    same_bits(&s, &room, &none);
    same_bits(&s, &room, &again);
    trained_close(&room);
    trained_close(&none);
    trained_close(&again);
    subject_close(&s);
}

// A micro-batch of more than half of tinyt's activation memory: parts of sums have one place there
// and not two, and the bits of a device with two.
static void sums_have_one_place_of_large_micro_batches(void **unused)
{
    (void)unused;
    int sixteen[SEQUENCES];
    struct subject s;
    struct trained two, one;
    subject_open(&s, fixtures[0]);
    for (int i = 0; i < SEQUENCES; i++)
        sixteen[i] = 16;
    take_lengths(&s, sixteen, SEQUENCES);
    assert_int_equal(s.rows, MOST);
    train(&two, &s, "model:sim,train", 0);
    train(&one, &s, "model:tinyt", 0);
    same_bits(&s, &two, &one);
    trained_close(&two);
    trained_close(&one);
    subject_close(&s);
}

// Codes of 2^97 where the passes before have left smaller ones.
static void spoil(const struct mr_pass *p)
{
    struct mr_error err = {0};
    size_t most =
        (size_t)(p->mem.size.stash > p->mem.size.rows ? p->mem.size.stash : p->mem.size.rows) * 64;
    uint8_t *pattern = malloc(most);
    assert_non_null(pattern);
    memset(pattern, 224, most);
    for (int c = 0; c < p->g.n; c++)
        check(mr_device_write(p->dev, p->mem.stash_addr[c], pattern, p->mem.size.stash * 64, &err),
              &err);
    check(mr_device_write(p->dev, p->mem.rows_addr, pattern, p->mem.size.rows * 64, &err), &err);
    free(pattern);
}

// What an earlier, longer batch has left in memory is not seen, however large.
static void batches_leave_nothing(void **unused)
{
    (void)unused;
    static const int shorter[] = {5, 34};
    struct mr_error err = {0};
    struct subject s;
    struct trained fresh, used;
    subject_open(&s, fixtures[0]);
    take_lengths(&s, lengths, 5);
    train(&used, &s, "model:tinyt", 0);
    take_lengths(&s, shorter, 2);
    train(&fresh, &s, "model:tinyt", 0);
    for (size_t i = 0; i < s.weights.count; i++)
        mr_pass_set_unit(used.pass, i, mr_pass_gradient(fresh.pass, i).unit);
    for (int i = 0; i < 2; i++) {
        used.loss = (struct mr_loss){0};
        check(mr_pass_run(used.pass, &s.batch, &used.loss, &err), &err);
        same_bits(&s, &fresh, &used);
        spoil(used.pass);
    }
    trained_close(&fresh);
    trained_close(&used);
    subject_close(&s);
}

// A unit that is too small is noted, whatever the others do; a larger one gives the bits of that
// unit.
static void units_that_are_too_small_are_noted(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct subject s;
    struct trained a, b;
    subject_open(&s, fixtures[0]);
    take_lengths(&s, lengths, 3);
    train(&a, &s, "model:tinyt", 0);
    train(&b, &s, "model:tinyt", 0);
    size_t last = s.weights.count - 1;
    int unit = mr_pass_gradient(a.pass, last).unit, times = 0;
    assert_false(mr_pass_gradient(a.pass, last).too_large);
    for (int now = unit - 12; times == 0 || mr_pass_gradient(a.pass, last).too_large; now += 8) {
        mr_pass_set_unit(a.pass, last, now);
        a.loss = (struct mr_loss){0};
        check(mr_pass_run(a.pass, &s.batch, &a.loss, &err), &err);
        for (size_t i = 0; i < last; i++)
            assert_false(mr_pass_gradient(a.pass, i).too_large);
        times++;
    }
    int grown = mr_pass_gradient(a.pass, last).unit;
    printf("# unit 2^%d, from 2^%d on: %d passes, 2^%d\n", unit, unit - 12, times, grown);
    assert_true(times > 1);
    mr_pass_set_unit(b.pass, last, grown);
    b.loss = (struct mr_loss){0};
    check(mr_pass_run(b.pass, &s.batch, &b.loss, &err), &err);
    same_bits(&s, &a, &b);
    // Of more micro-batches a sum may be less.
    mr_pass_set_limit(a.pass, mr_pass_gradient(a.pass, 1).peak - 1);
    check(mr_pass_run(a.pass, &s.batch, &a.loss, &err), &err);
    assert_true(mr_pass_gradient(a.pass, 1).too_large);
    trained_close(&a);
    trained_close(&b);
    subject_close(&s);
}

// The loss alone is that of a pass.
static void evaluation_has_the_loss(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_loss loss = {0};
    struct subject s;
    struct trained t;
    subject_open(&s, fixtures[1]);
    take_lengths(&s, lengths, 4);
    train(&t, &s, "model:tinyt", 0);
    check(mr_pass_evaluate(t.pass, &s.batch, &loss, &err), &err);
    assert_true(loss.sum == t.loss.sum && loss.rows == t.loss.rows);
    trained_close(&t);
    subject_close(&s);
}

// ---- what is refused ----------------------------------------------------------------------------

static int opens(const struct subject *s, const char *uri, int rows, int chunk,
                 struct mr_error *err)
{
    struct mr_device *dev;
    struct mr_pass *pass;
    struct mr_pass_options o = {.rows = rows, .chunk = chunk};
    check(mr_device_open(&dev, uri, err), err);
    int rc = mr_pass_open(&pass, dev, s->config, &o, err);
    if (rc == 0)
        mr_pass_close(pass);
    else
        assert_null(pass);
    mr_device_close(dev);
    return rc;
}

static void refuses_devices_that_cannot_train(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_device *dev;
    struct subject s;
    subject_open(&s, fixtures[0]);
    assert_int_equal(mr_device_open(&dev, "model:sim,trains", &err), MR_ERR_USAGE);
    assert_int_equal(opens(&s, "model:tiny", 64, 0, &err), MR_ERR_USAGE);
    assert_non_null(strstr(err.text, "cannot train"));
    subject_close(&s);
}

static void refuses_micro_batches_that_do_not_fit(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct subject s;
    subject_open(&s, fixtures[0]);
    static const int chunks[] = {48, 64, -32}; // tinyt has 32 rows
    for (int i = 0; i < 3; i++) {
        assert_int_equal(opens(&s, "model:tinyt", 64, chunks[i], &err), MR_ERR_USAGE);
        assert_non_null(strstr(err.text, "a multiple of 32 up to 32 is needed"));
    }
    assert_int_equal(opens(&s, "model:tinyt", 32 * 256, 0, &err), MR_ERR_FIT);
    assert_int_equal(opens(&s, "model:tinyt", 64, 32, &err), 0);
    subject_close(&s);
    subject_open(&s, "models/demo");
    struct mr_config wide = *s.config;
    wide.n_inner = 8192;
    s.config = &wide;
    assert_int_equal(opens(&s, "model:tinyt", 64, 0, &err), MR_ERR_FIT);
    assert_non_null(strstr(err.text, "for training: activation memory in words is "));
    wide.n_inner = 1024;
    wide.vocab_size = 32 * 256;
    assert_int_equal(opens(&s, "model:tinyt", 64, 0, &err), 0);
    wide.vocab_size++;
    assert_int_equal(opens(&s, "model:tinyt", 64, 0, &err), MR_ERR_FIT);
    assert_non_null(strstr(err.text, "vocabulary of 8193"));
    subject_close(&s);
}

// Of a device that says it has less than any configuration in `configs`.
static void refuses_devices_that_are_too_small(void **unused)
{
    (void)unused;
    struct mr_geometry g = mr_config_named("tinyt")->g;
    const struct {
        int *what, value, rows;
        const char *text;
    } cases[] = {
        {&g.d_max, 32, 64, "n_embd (padded) is 64, the device has 32; model:sim holds it"},
        {&g.w_max, 32, 64, "width of all heads (padded) is 192"},
        {&g.rot_max, 16, 64, "rotary dimensions (padded) is 64"},
        {&g.ctx_max, 16, 64, "n_positions is 100, the device has 16"},
        {&g.qkv_words, 2, 64, "memory of q, k and v in words is 9"},
        {&g.act_words, 3, 64, "activation memory in words is 10"},
        {&g.ring, 2, 64, "blocks of the widest row is 6"},
        {&g.ring, 60, 32 * 31, "a micro-batch of 992 rows does not fit device"},
        {&g.act_words, MR_GRAD_KBLOCKS + 64, 32 * MR_GRAD_KBLOCKS + 1, "a micro-batch of 16385 "},
        {&g.d_max, 192, 64, "scores of 100 positions do not fit device"},
    };
    struct subject s;
    subject_open(&s, fixtures[0]);
    struct mr_config config = *s.config;
    config.n_positions = 100;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_error err = {0};
        struct mr_pass *pass;
        struct mr_pass_options o = {.rows = cases[i].rows};
        const struct mr_geometry all = g;
        if (cases[i].rows > 32 * MR_GRAD_KBLOCKS)
            g.ring = 4096;
        *cases[i].what = cases[i].value;
        assert_int_equal(pass_new(&pass, &g, "small", 0, &config, &o, &err), MR_ERR_FIT);
        if (!strstr(err.text, cases[i].text))
            fail_msg("%s: no '%s'", err.text, cases[i].text);
        assert_null(pass);
        g = all;
    }
    subject_close(&s);
}

static void refuses_losses_that_are_no_numbers(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct subject s;
    struct trained t;
    subject_open(&s, fixtures[0]);
    take_lengths(&s, lengths, 3);
    train(&t, &s, "model:tinyt", 0);
    struct mr_loss before = t.loss;
    s.tokens[0] = s.config->vocab_size;
    assert_int_equal(mr_pass_run(t.pass, &s.batch, &t.loss, &err), MR_ERR_USAGE);
    s.tokens[0] = 0;
    // The first element of the first table: in the row of token 0.
    const float infinity = INFINITY;
    memcpy(s.volume->data[MR_V_STATE], &infinity, sizeof infinity);
    check(mr_pass_weights(t.pass, s.store, &err), &err);
    assert_int_equal(mr_pass_run(t.pass, &s.batch, &t.loss, &err), MR_ERR_FORMAT);
    assert_true(t.loss.sum == before.sum && t.loss.rows == before.rows);
    trained_close(&t);
    subject_close(&s);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixtures_have_the_gradient),
        cmocka_unit_test(demo_has_the_gradient),
        cmocka_unit_test(large_vocabularies_have_the_gradient),
        cmocka_unit_test(bits_are_the_same_everywhere),
        cmocka_unit_test(the_rtl_gives_the_same_bits),
        cmocka_unit_test(recomputation_changes_no_bit),
        cmocka_unit_test(frozen_tensors_change_no_bit_of_others),
        cmocka_unit_test(sums_wait_where_there_is_no_room),
        cmocka_unit_test(sums_have_one_place_of_large_micro_batches),
        cmocka_unit_test(batches_leave_nothing),
        cmocka_unit_test(units_that_are_too_small_are_noted),
        cmocka_unit_test(evaluation_has_the_loss),
        cmocka_unit_test(refuses_devices_that_cannot_train),
        cmocka_unit_test(refuses_micro_batches_that_do_not_fit),
        cmocka_unit_test(refuses_devices_that_are_too_small),
        cmocka_unit_test(refuses_losses_that_are_no_numbers),
    };
    // Small pieces of work: waking threads for them is slow where the processors are busy.
    if (setenv("MILLRACE_THREADS", "1", 1) || setenv("OPENBLAS_NUM_THREADS", "1", 1))
        return 1;
    return cmocka_run_group_tests_name("pass", tests, files_setup, files_teardown);
}
