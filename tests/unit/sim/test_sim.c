// SPDX-License-Identifier: Apache-2.0
// The RTL in Verilator: bit for bit the C model, in any memory and whatever it starts from, with
// counters that add up and cycle counts that do not change unnoticed (tests/cycles.tsv; written
// anew with MILLRACE_WRITE_CYCLES=1 in the environment). All cases of each kind are in
// tests/full/sweep.c.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device/open.h"
#include "device/sim.h"
#include "engine/synthetic.h"
#include "pack/layout.h"
#include "pack/packed.h"
#include "unit/fixtures.h"
#include "unit/simulated.h"

// Every fixture, cut to few tokens a sequence; each in one format, and in turn all ways of running.
static void on_fixtures(int tokens, enum mr_format format, void (*test)(const struct fixture *))
{
    struct dirent **names;
    int n = names_in(FIXTURES, &names); // GPT-2's are in test_gpt2.c
    for (int i = 0; i < n; i++) {
        struct fixture f;
        open_fixture(&f, names[i]->d_name, format);
        f.n_tok = tokens < f.n_tok ? tokens : f.n_tok;
        test(&f);
        close_fixture(&f);
        free(names[i]);
    }
    free(names);
}

static void same_as_model(const struct fixture *f, const char *device, int chunk, bool two_pass,
                          enum grouping grouping)
{
    struct ran want, got;
    char model[64];
    struct run_options o = {model, chunk, two_pass, grouping};
    model_of(device, model, sizeof model);
    assert_int_equal(simulate(f, &o, &want), 0);
    o.device = device;
    assert_int_equal(simulate(f, &o, &got), 0);
    if (got.logits != want.logits || got.kv != want.kv)
        fail_msg("%s on %s: %s are not the C model's", f->name, device,
                 got.logits != want.logits ? "logits" : "keys and values");
}

// ---- command by command ------------------------------------------------------------------------

static void decode(const struct fixture *f)
{
    same_as_model(f, "sim:sim,check", 1, false, ALONE);
}

static void in_chunks(const struct fixture *f)
{
    same_as_model(f, "sim:sim,check,memory=ideal", 3, false, ALONE);
}

static void whole(const struct fixture *f)
{
    same_as_model(f, "sim:sim,check,seed=1", 0, false, ALONE);
}

static void batch(const struct fixture *f)
{
    same_as_model(f, "sim:sim,check,seed=2,stalls=30", 0, false, UNEVEN);
}

static void two_passes(const struct fixture *f)
{
    same_as_model(f, "sim:sim,check,seed=3,stalls=20", 3, true, INTERLEAVED);
}

static void tiny(const struct fixture *f)
{
    same_as_model(f, "sim:tiny,check,seed=4", 3, false, INTERLEAVED);
}

static void every_command_of_decode_is_the_models(void **state)
{
    (void)state;
    on_fixtures(2, MR_FORMAT_MXINT8, decode);
}

static void every_command_in_chunks_is_the_models(void **state)
{
    (void)state;
    on_fixtures(7, MR_FORMAT_MXINT8, in_chunks);
}

static void every_command_of_a_prompt_is_the_models(void **state)
{
    (void)state;
    on_fixtures(11, MR_FORMAT_MXINT8, whole);
}

static void every_command_of_a_batch_is_the_models(void **state)
{
    (void)state;
    on_fixtures(4, MR_FORMAT_MXINT8, batch);
}

static void every_command_of_two_passes_is_the_models(void **state)
{
    (void)state;
    on_fixtures(4, MR_FORMAT_MXINT8, two_passes);
}

static void every_command_with_mxfp4_is_the_models(void **state)
{
    (void)state;
    on_fixtures(4, MR_FORMAT_MXFP4, batch);
}

static void every_command_on_tiny_is_the_models(void **state)
{
    (void)state;
    on_fixtures(4, MR_FORMAT_MXINT8, tiny);
}

// ---- start values, stalls, memories ------------------------------------------------------------

static void seeds(const struct fixture *f)
{
    static const char *const devices[] = {"sim:tiny", "sim:tiny,seed=1", "sim:tiny,seed=99"};
    struct ran first, r;
    for (int i = 0; i < 3; i++) {
        struct run_options o = {devices[i], 3, false, ALONE};
        assert_int_equal(simulate(f, &o, i ? &r : &first), 0);
        if (i == 0)
            continue;
        if (r.logits != first.logits || r.kv != first.kv)
            fail_msg("%s: %s gives other bits than zeros do", f->name, devices[i]);
        assert_int_equal(r.stats.counter[MR_CNT_CYCLES], first.stats.counter[MR_CNT_CYCLES]);
    }
}

static void bits_and_cycles_do_not_depend_on_the_start_values(void **state)
{
    (void)state;
    on_fixtures(4, MR_FORMAT_MXINT8, seeds);
}

static void memories(const struct fixture *f)
{
    static const char *const devices[] = {"sim:tiny,memory=ideal", "sim:tiny,memory=ddr4-2400",
                                          "sim:tiny,memory=hbm2", "sim:tiny,seed=7,stalls=60",
                                          "sim:tiny,seed=8,stalls=85,memory=hbm2"};
    struct ran first, r;
    for (int i = 0; i < 5; i++) {
        struct run_options o = {devices[i], 4, false, ALONE};
        assert_int_equal(simulate(f, &o, i ? &r : &first), 0);
        if (i && (r.logits != first.logits || r.kv != first.kv))
            fail_msg("%s: other bits on %s", f->name, devices[i]);
        if (i) // the memories do differ
            assert_int_not_equal(r.stats.counter[MR_CNT_CYCLES],
                                 first.stats.counter[MR_CNT_CYCLES]);
    }
}

static void bits_do_not_depend_on_the_memory(void **state)
{
    (void)state;
    on_fixtures(4, MR_FORMAT_MXINT8, memories);
}

// ---- counters ----------------------------------------------------------------------------------

// Array block products of a run with `rows` tokens that all want logits.
static uint64_t mac_blocks(const struct fixture *f, int rows)
{
    const struct mr_packed *p = &f->packed;
    uint64_t blocks = 0;
    for (int i = 0; i < p->list.count; i++) { // vectors have no columns
        const struct mr_stream_item *it = &p->list.entries[i].item;
        blocks += (uint64_t)(it->k / 32) * (uint64_t)it->cols;
    }
    return blocks * (uint64_t)rows;
}

static void sums(const struct fixture *f)
{
    static const struct run_options ways[] = {
        {"sim:sim", 0, false, ALONE},
        {"sim:sim,memory=hbm2", 2, true, INTERLEAVED},
        {"sim:tiny,memory=ideal", 3, false, UNEVEN},
        {"sim:tiny,seed=2,stalls=40", 1, false, DECODE},
    };
    static const struct {
        const char *unit;
        int first, last;
    } units[] = {
        {"array", MR_CNT_ARRAY_BUSY, MR_CNT_ARRAY_IDLE},
        {"vector", MR_CNT_VECTOR_BUSY, MR_CNT_VECTOR_IDLE},
        {"attention", MR_CNT_ATTENTION_BUSY, MR_CNT_ATTENTION_KV},
        {"writer", MR_CNT_WRITER_BUSY, MR_CNT_WRITER_IDLE},
        {"reader", MR_CNT_READER_CREDIT, MR_CNT_READER_ISSUE},
    };
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        struct ran r;
        assert_int_equal(simulate(f, &ways[w], &r), 0);
        const uint64_t *c = r.stats.counter;
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            uint64_t sum = 0;
            for (int i = units[u].first; i <= units[u].last; i++)
                sum += c[i];
            if (sum != c[MR_CNT_CYCLES])
                fail_msg("%s on %s: the %s's counters add up to %llu of %llu cycles", f->name,
                         ways[w].device, units[u].unit, (unsigned long long)sum,
                         (unsigned long long)c[MR_CNT_CYCLES]);
        }
        // Weights are read once a run, however many tokens are resident.
        uint64_t stream = (uint64_t)mr_stream_beats(&f->packed.config, f->packed.format, 1);
        assert_int_equal(c[MR_CNT_WEIGHT_BEATS], stream * r.stats.steps);
        assert_int_equal(c[MR_CNT_MAC_BLOCKS],
                         mac_blocks(f, f->n_seq * f->n_tok) * (ways[w].two_pass ? 2 : 1));
        assert_int_equal(c[MR_CNT_WEIGHT_BEATS] + c[MR_CNT_KV_BEATS], r.memory.port_beats);
        assert_int_equal(c[MR_CNT_HOST_BEATS], r.memory.host_beats);
        assert_int_equal(c[MR_CNT_WRITE_BEATS], r.memory.write_beats);
    }
}

static void counters_add_up(void **state)
{
    (void)state;
    on_fixtures(3, MR_FORMAT_MXINT8, sums);
}

// ---- exact cycles ------------------------------------------------------------------------------

#define CYCLES "tests/cycles.tsv"

static const struct timed {
    const char *name, *model, *device; // model NULL: one layer of GPT-J-6B, weights from a seed
    int filled, rows;                  // positions before the run, rows of it
} timed[] = {
    {"fixture decode, ideal", FIXTURES "/bf16-d32-r6", "sim:sim,memory=ideal", 5, 1},
    {"fixture decode, ddr4-2400", FIXTURES "/bf16-d32-r6", "sim:sim,memory=ddr4-2400", 5, 1},
    {"demo decode at 0, ideal", "models/demo", "sim:sim,memory=ideal", 0, 1},
    {"demo decode at 0, ddr4-2400", "models/demo", "sim:sim,memory=ddr4-2400", 0, 1},
    {"demo prefill of 16, ideal", "models/demo", "sim:sim,memory=ideal", 0, 16},
    {"demo prefill of 16, ddr4-2400", "models/demo", "sim:sim,memory=ddr4-2400", 0, 16},
    {"demo decode at 500, ddr4-2400", "models/demo", "sim:sim,memory=ddr4-2400", 500, 1},
    {"demo prefill of 3 at 500, ddr4-2400", "models/demo", "sim:sim,memory=ddr4-2400", 500, 3},
    {"demo prefill of 8 at 500, hbm2", "models/demo", "sim:sim,memory=hbm2", 500, 8},
    {"GPT-J-6B layer, decode at 0, ddr4-2400", NULL, "sim:sim,memory=ddr4-2400", 0, 1},
    {"GPT-J-6B layer, prefill of 6 at 1000, ddr4-2400", NULL, "sim:sim,memory=ddr4-2400", 1000, 6},
};
enum { N_TIMED = sizeof timed / sizeof *timed };

static void load_timed(const struct timed *t, struct mr_packed *packed)
{
    struct mr_error err = {0};
    if (t->model) {
        struct mr_pack_options pack = {.format = MR_FORMAT_MXINT8, .smooth = true};
        check(mr_pack_directory(packed, t->model, &pack, &err), &err);
        return;
    }
    struct mr_config layer;
    uint64_t seed;
    check(mr_synthetic_parse("gptj-6b,layers=1,vocab=64", &layer, &seed, &err), &err);
    const struct mr_pack_options pack = {.format = MR_FORMAT_MXINT8};
    check(mr_packed_synthetic(packed, &layer, &pack, seed, &err), &err);
}

static uint64_t cycles_of(const struct timed *t)
{
    struct mr_packed packed;
    struct mr_device *dev;
    struct mr_backend *b;
    struct mr_backend_stats stats;
    struct mr_error err = {0};
    struct mr_engine_options opt = {.max_seqs = 1};
    struct mr_row rows[16];
    int seq;
    load_timed(t, &packed);
    check(mr_device_open(&dev, t->device, &err), &err);
    check(mr_engine_open(&b, &packed, dev, &opt, &err), &err);
    check(mr_backend_seq_new(b, &seq, &err), &err);
    check(mr_engine_seq_set_length(b, seq, t->filled, &err), &err);
    for (int i = 0; i < t->rows; i++)
        rows[i] = (struct mr_row){seq, i, i == t->rows - 1};
    float *logits = allocate((size_t)packed.config.vocab_size, sizeof *logits);
    check(mr_backend_step(b, rows, t->rows, logits, &err), &err);
    mr_backend_stats(b, &stats);
    mr_backend_close(b);
    mr_device_close(dev);
    mr_packed_close(&packed);
    free(logits);
    return stats.counter[MR_CNT_CYCLES];
}

static void cycles_are_those_of_the_table(void **state)
{
    char line[256], note[4096] = "";
    unsigned long long want[N_TIMED] = {0}, got[N_TIMED];
    (void)state;
    FILE *f = fopen(CYCLES, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        char *tab = strchr(line, '\t');
        if (line[0] == '#') {
            assert_true(strlen(note) + strlen(line) < sizeof note);
            strcat(note, line);
        }
        if (line[0] == '#' || !tab)
            continue;
        *tab = 0;
        for (int i = 0; i < N_TIMED; i++)
            if (strcmp(line, timed[i].name) == 0)
                want[i] = strtoull(tab + 1, NULL, 10);
    }
    fclose(f);
    bool write = getenv("MILLRACE_WRITE_CYCLES") != NULL;
    f = write ? fopen(CYCLES, "w") : NULL;
    if (f)
        fputs(note, f);
    int wrong = 0;
    for (int i = 0; i < N_TIMED; i++) {
        got[i] = cycles_of(&timed[i]);
        if (f)
            (void)fprintf(f, "%s\t%llu\n", timed[i].name, got[i]);
        else if (got[i] != want[i])
            print_message("# %s: %llu cycles, the table has %llu\n", timed[i].name, got[i],
                          want[i]);
        wrong += got[i] != want[i];
    }
    if (f)
        fclose(f);
    else if (wrong)
        fail_msg("%d of %d cycle counts are not those of " CYCLES, wrong, N_TIMED);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_of_decode_is_the_models),
        cmocka_unit_test(every_command_in_chunks_is_the_models),
        cmocka_unit_test(every_command_of_a_prompt_is_the_models),
        cmocka_unit_test(every_command_of_a_batch_is_the_models),
        cmocka_unit_test(every_command_of_two_passes_is_the_models),
        cmocka_unit_test(every_command_with_mxfp4_is_the_models),
        cmocka_unit_test(every_command_on_tiny_is_the_models),
        cmocka_unit_test(bits_and_cycles_do_not_depend_on_the_start_values),
        cmocka_unit_test(bits_do_not_depend_on_the_memory),
        cmocka_unit_test(counters_add_up),
        cmocka_unit_test(cycles_are_those_of_the_table),
    };
    return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
