// SPDX-License-Identifier: Apache-2.0
// Timelines from made-up intervals: merging keeps every cycle, windows cut, the files are what they
// should be. tests/e2e/trace/trace.sh has those of the device.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "trace/timeline.h"
#include "unit/trace/trace_events.h"

static struct mr_error err;

static uint32_t draw(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*s >> 33);
}

static void setup_trace(struct mr_trace *t, unsigned channels, unsigned commands)
{
    *t = (struct mr_trace){.channels = channels,
                           .rows = 4,
                           .columns = 4 * channels,
                           .clock_khz = 300000,
                           .sequential_rate = 0.95,
                           .layer = -1,
                           .to = UINT64_MAX,
                           .max_slices = 1000000,
                           .n_commands = commands};
    t->commands = calloc(commands ? commands : 1, sizeof *t->commands);
    assert_non_null(t->commands);
    for (unsigned i = 0; i < commands; i++) {
        t->commands[i].queue = (uint8_t)(i % MR_SIM_QUEUES);
        t->commands[i].layer = (int)(i / 10);
        t->commands[i].opcode = MR_OP_MATMUL;
        snprintf(t->commands[i].label, sizeof t->commands[i].label, "<c> & \"%u\"", i);
    }
}

// Lanes of short and long intervals, as the simulator gives them, and the counters of them.
static void give_lanes(struct mr_trace *t, uint64_t cycles, uint64_t *seed)
{
    struct mr_sim_timeline to = mr_trace_listener(t);
    for (unsigned l = 0; l < mr_trace_lanes(t); l++) {
        const struct mr_lane_kind *k = mr_lane_kind(l);
        uint8_t state = MR_SIM_STATE_NONE;
        for (uint64_t at = 0; at < cycles;) {
            uint64_t n = 1 + draw(seed) % (draw(seed) % 8 ? 3 : 400);
            n = n < cycles - at ? n : cycles - at;
            struct mr_sim_span s = {at, n, (uint16_t)(1u << at % 13), (uint8_t)l, state};
            to.spans(to.user, &s, 1);
            if (k->counter >= 0 && l <= MR_LANE_READER && state < k->states)
                t->counters[k->counter + state] += n;
            if (l == MR_LANE_HOST_READ && state == MR_PORT_BEAT)
                t->counters[MR_CNT_HOST_BEATS] += n;
            if (l == MR_LANE_HOST_WRITE && state == MR_PORT_BEAT)
                t->counters[MR_CNT_WRITE_BEATS] += n;
            at += n;
            uint8_t before = state; // neighbours differ
            while (state == before) {
                state = (uint8_t)(draw(seed) % (uint32_t)(k->states + 1));
                state = state < k->states ? state : MR_SIM_STATE_NONE;
            }
        }
    }
}

static void give_sums(struct mr_trace *t, uint64_t cycles)
{
    struct mr_sim_timeline to = mr_trace_listener(t);
    for (uint64_t at = 0; at < cycles; at += 100) {
        uint32_t n = cycles - at < 100 ? (uint32_t)(cycles - at) : 100;
        struct mr_sim_sample s = {.from = at, .cycles = n, .mac_blocks = 3 * n, .grad_blocks = n};
        for (unsigned c = 0; c < t->channels; c++) {
            s.weights[c] = (uint16_t)(n / 2);
            s.kv[c] = (uint16_t)(n / 4);
            s.stash[c] = (uint16_t)(n / 8);
            t->counters[MR_CNT_WEIGHT_BEATS] += n / 8;
            t->counters[MR_CNT_STASH_BEATS] += n / 8;
            t->counters[MR_CNT_WEIGHT_BEATS] += n / 2;
            t->counters[MR_CNT_KV_BEATS] += n / 4;
        }
        if (at == 0) { // all of them at once: only the sum matters
            s.host_read = (uint32_t)t->counters[MR_CNT_HOST_BEATS];
            s.host_write = (uint32_t)t->counters[MR_CNT_WRITE_BEATS];
        }
        t->counters[MR_CNT_MAC_BLOCKS] += 3 * n;
        t->counters[MR_CNT_GRAD_BLOCKS] += n;
        to.sample(to.user, &s);
    }
    t->counters[MR_CNT_CYCLES] = cycles;
    to.end(to.user, cycles);
    mr_trace_end(t);
}

// Commands of a queue overlap by a few cycles; the last one is never done.
static void give_commands(struct mr_trace *t, uint64_t cycles)
{
    struct mr_sim_timeline to = mr_trace_listener(t);
    uint64_t step = cycles / (t->n_commands + 1);
    for (unsigned i = 0; i < t->n_commands; i++) {
        struct mr_sim_event e = {i * step, (uint16_t)i, t->commands[i].queue, false};
        to.command(to.user, &e);
        e.done = true;
        e.cycle += 6 * step;
        if (i + 1 < t->n_commands)
            to.command(to.user, &e);
    }
    struct mr_sim_event beyond = {0, UINT16_MAX, 0, true};
    to.command(to.user, &beyond);
}

static void fill(struct mr_trace *t, uint64_t cycles, uint64_t seed)
{
    give_commands(t, cycles);
    give_lanes(t, cycles, &seed);
    give_sums(t, cycles);
    assert_int_equal(t->status, 0);
}

static json_t *written(const struct mr_trace *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    assert_int_equal(mr_trace_json(t, "a \"title\"", f, &err), 0);
    assert_int_equal(fclose(f), 0);
    json_error_t where;
    json_t *file = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    if (!file)
        print_error("line %d: %s\n", where.line, where.text);
    assert_non_null(file);
    free(text);
    return file;
}

static void assert_no_fault(const struct mr_trace *t)
{
    json_t *file = written(t);
    const char *fault = events_fault(file);
    if (fault)
        print_error("%s\n", fault);
    assert_null(fault);
    json_decref(file);
}

static void events_add_up_to_the_counters(void **state)
{
    (void)state;
    for (unsigned channels = 1; channels <= 16; channels *= 4) {
        struct mr_trace t;
        setup_trace(&t, channels, 30);
        fill(&t, 20000, channels);
        assert_int_equal(t.resolution, 0);
        assert_int_equal(mr_trace_compare(&t, &err), 0);
        assert_no_fault(&t);
        mr_trace_free(&t);
    }
}

static size_t count_slices(const struct mr_trace *t)
{
    size_t n = 0;
    for (unsigned l = 0; l < mr_trace_lanes(t); l++)
        n += t->lane[l].count;
    return n;
}

// Runs one behind the other are one timeline, and what is not kept leaves nothing.
static void runs_are_put_together(void **state)
{
    (void)state;
    struct mr_trace t;
    uint64_t seed = 11;
    setup_trace(&t, 2, 30);
    t.train = true;
    for (int run = 0; run < 6; run++) {
        t.keep = run % 3 != 1;
        t.base = t.cycles;
        uint64_t counters[MR_ALL_COUNTERS], cycles = 5000 + 1000 * (uint64_t)run;
        memcpy(counters, t.counters, sizeof counters);
        memset(t.counters, 0, sizeof t.counters);
        give_lanes(&t, cycles, &seed);
        give_sums(&t, cycles);
        for (int i = 0; i < (int)MR_ALL_COUNTERS; i++)
            t.counters[i] = counters[i] + (t.keep ? t.counters[i] : 0);
    }
    assert_int_equal(t.cycles, 5000 + 7000 + 8000 + 10000);
    assert_int_equal(mr_trace_compare(&t, &err), 0);
    assert_no_fault(&t);
    mr_trace_free(&t);
}

// However small the bound: exact sums, lanes without a gap, long intervals untouched.
static void merging_is_bounded_and_loses_no_cycle(void **state)
{
    (void)state;
    for (size_t most = 50000; most >= 500; most /= 10) {
        struct mr_trace t;
        setup_trace(&t, 2, 30);
        t.max_slices = most;
        fill(&t, 300000, most);
        assert_true(count_slices(&t) <= most);
        assert_true(t.resolution > 0);
        assert_int_equal(mr_trace_compare(&t, &err), 0);
        for (unsigned l = 0; l < mr_trace_lanes(&t); l++) {
            uint64_t at = 0, in[MR_TRACE_STATES];
            for (size_t i = 0; i < t.lane[l].count; i++) {
                const struct mr_trace_slice *s = &t.lane[l].slices[i];
                assert_int_equal(s->from, at);
                at += s->cycles;
                if (mr_trace_state(s) < 0) // closed soon after it is four resolutions long
                    assert_true(s->cycles < 8 * t.resolution);
            }
            assert_int_equal(at, 300000);
            mr_trace_window_total(&t, l, in);
            assert_memory_equal(in, t.lane[l].total, sizeof in);
        }
        assert_no_fault(&t);
        mr_trace_free(&t);
    }
}

static void a_difference_from_the_counters_is_an_error(void **state)
{
    (void)state;
    static const unsigned counters[] = {
        MR_CNT_CYCLES,     MR_CNT_ARRAY_DRAIN, MR_CNT_ATTENTION_KV, MR_CNT_READER_ISSUE,
        MR_CNT_KV_BEATS,   MR_CNT_MAC_BLOCKS,  MR_CNT_HOST_BEATS,   MR_CNT_WRITE_BEATS,
        MR_CNT_GRAD_ALONE, MR_CNT_MOVE_BUSY,   MR_CNT_STASH_BEATS,  MR_CNT_GRAD_BLOCKS};
    struct mr_trace t;
    setup_trace(&t, 1, 5);
    fill(&t, 5000, 3);
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        t.counters[counters[i]]++;
        assert_int_equal(mr_trace_compare(&t, &err), MR_ERR_DIFF);
        t.counters[counters[i]]--;
    }
    assert_int_equal(mr_trace_compare(&t, &err), 0);
    mr_trace_free(&t);
}

static void a_window_cuts(void **state)
{
    (void)state;
    struct mr_trace t;
    setup_trace(&t, 1, 30);
    t.from = 1234;
    t.to = 5678;
    fill(&t, 20000, 5);
    assert_int_equal(mr_trace_compare(&t, &err), 0); // totals are of the whole run
    for (unsigned l = 0; l < mr_trace_lanes(&t); l++) {
        uint64_t in[MR_TRACE_STATES], sum = 0;
        mr_trace_window_total(&t, l, in);
        for (int i = 0; i < MR_TRACE_STATES; i++)
            sum += in[i];
        assert_int_equal(sum, 5678 - 1234);
    }
    assert_no_fault(&t);
    mr_trace_free(&t);

    setup_trace(&t, 1, 0);
    t.from = 20000; // begins where the run ends
    fill(&t, 20000, 5);
    assert_true(t.from >= t.to);
    mr_trace_free(&t);
}

// A layer's window: from its first command's issue to its last one's end, readers left out.
static void a_layer_is_a_window(void **state)
{
    (void)state;
    struct mr_trace t;
    setup_trace(&t, 1, 30);
    t.layer = 1; // commands 10 to 19, of which 10 and 15 are the reader's
    t.from = t.to = UINT64_MAX;
    for (unsigned i = 0; i < t.n_commands; i++)
        t.to_come += mr_trace_in_layer(&t, &t.commands[i]);
    assert_int_equal(t.to_come, 8);
    give_commands(&t, 31000);
    give_sums(&t, 31000);
    assert_int_equal(t.from, 11 * 1000);
    assert_int_equal(t.to, (19 + 6) * 1000 + 1);
    mr_trace_free(&t);
}

static void bins_stay_few_and_keep_their_sums(void **state)
{
    (void)state;
    struct mr_trace t;
    setup_trace(&t, 1, 0);
    give_sums(&t, 1234567);
    assert_in_range(t.bins, MR_TRACE_BINS / 2, MR_TRACE_BINS);
    uint64_t cycles = 0, blocks = 0;
    for (unsigned i = 0; i < t.bins; i++) {
        assert_int_equal(t.bin[i].from, cycles);
        cycles += t.bin[i].cycles;
        blocks += t.bin[i].mac_blocks;
    }
    assert_int_equal(cycles, 1234567);
    assert_int_equal(blocks, t.counters[MR_CNT_MAC_BLOCKS]);
    mr_trace_free(&t);
}

// Elements are closed, hostile text is escaped, the file stays small.
static void the_picture_is_well_formed_and_small(void **state)
{
    (void)state;
    struct mr_trace t;
    char *text = NULL;
    size_t size = 0, open = 0, closed = 0, single = 0;
    setup_trace(&t, 16, 30);
    fill(&t, 200000, 7);
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    assert_int_equal(mr_trace_svg(&t, "<script> & \001", f, &err), 0);
    assert_int_equal(fclose(f), 0);
    assert_true(size < 600000);
    assert_non_null(strstr(text, "&lt;script&gt; &amp; </text>"));
    assert_null(strstr(text, "<c>"));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    for (const char *p = text; (p = strchr(p, '<')); p++)
        p[1] == '/' ? closed++ : open++;
    for (const char *p = text; (p = strstr(p, "/>")); p++)
        single++;
    assert_int_equal(open, closed + single);
    free(text);
    mr_trace_free(&t);
}

static int count(const char *text, const char *words)
{
    int n = 0;
    for (; (text = strstr(text, words)); text += strlen(words))
        n++;
    return n;
}

// As many as neighbours need to differ, at 300 MHz.
static void microseconds_have_the_digits_they_need(void **state)
{
    (void)state;
    static const struct {
        uint64_t cycles;
        const char *text;
    } rows[] = {{100, ">0.03</text>"}, {1000, ">0.3</text>"}, {100000, ">33</text>"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mr_trace t;
        char *text = NULL;
        size_t size = 0;
        setup_trace(&t, 1, 0);
        fill(&t, rows[i].cycles, 3);
        FILE *f = open_memstream(&text, &size);
        assert_non_null(f);
        assert_int_equal(mr_trace_svg(&t, "t", f, &err), 0);
        assert_int_equal(fclose(f), 0);
        assert_non_null(strstr(text, rows[i].text));
        free(text);
        mr_trace_free(&t);
    }
}

// The save file begins where it is told, names the waves beside it and has a group for each
// channel.
static void the_view_of_the_waves_has_all_channels(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    assert_int_equal(mr_trace_gtkw(f, "somewhere/else/run.fst", 3, 2000, &err), 0);
    assert_int_equal(fclose(f), 0);
    assert_non_null(strstr(text, "\n[dumpfile] \"run.fst\"\n[timestart] 20000\n"));
    assert_non_null(strstr(text, "\n@28\nTOP.millrace_core.clk_i\n"));
    assert_non_null(strstr(text, "\n@22\nTOP.millrace_core.c_w_beat[2:0]\n"));
    for (int c = 0; c < 3; c++) {
        char title[32], scope[64];
        (void)snprintf(title, sizeof title, "-channel %d\n", c);
        (void)snprintf(scope, sizeof scope, "gen_channel[%d].u_reader.m_araddr_o[63:0]\n", c);
        assert_int_equal(count(text, title), 2); // opened and closed
        assert_non_null(strstr(text, scope));
    }
    assert_null(strstr(text, "channel 3"));
    free(text);
}

static void full_disk_is_reported(void **state)
{
    (void)state;
    struct mr_trace t;
    setup_trace(&t, 1, 5);
    fill(&t, 5000, 9);
    for (int i = 0; i < 4; i++) { // at once, and when the buffer is full
        FILE *f = fopen("/dev/full", "w");
        assert_non_null(f);
        if (i % 2)
            setbuf(f, NULL);
        assert_int_equal((i / 2 ? mr_trace_svg : mr_trace_json)(&t, "t", f, &err), MR_ERR_IO);
        assert_non_null(strstr(err.text, "cannot be written: No space left on device"));
        fclose(f);
    }
    FILE *f = fopen("/dev/full", "w");
    assert_non_null(f);
    setbuf(f, NULL);
    assert_int_equal(mr_trace_gtkw(f, "w.fst", 1, 0, &err), MR_ERR_IO);
    fclose(f);
    mr_trace_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_add_up_to_the_counters),
        cmocka_unit_test(runs_are_put_together),
        cmocka_unit_test(merging_is_bounded_and_loses_no_cycle),
        cmocka_unit_test(a_difference_from_the_counters_is_an_error),
        cmocka_unit_test(a_window_cuts),
        cmocka_unit_test(a_layer_is_a_window),
        cmocka_unit_test(bins_stay_few_and_keep_their_sums),
        cmocka_unit_test(the_picture_is_well_formed_and_small),
        cmocka_unit_test(the_view_of_the_waves_has_all_channels),
        cmocka_unit_test(microseconds_have_the_digits_they_need),
        cmocka_unit_test(full_disk_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
