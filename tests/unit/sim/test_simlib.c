// SPDX-License-Identifier: Apache-2.0
// The simulation library, on a stand-in core (tests/simlib): registers, data through every
// port, interrupt, limits, faults, protocol checks, determinism, the view of memories.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sim/verilator/simlib.h"

#define RESULT 0x10000 // RUN_ADDR on channel 0
#define BASE   0x40000 // stream of every channel
#define WORDS  (1 << 18)

static struct mr_error err;
static const struct mr_sim_api *one, *four, *broken;

static const struct mr_sim_api *load(const char *path)
{
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!so)
        print_error("%s\n", dlerror());
    assert_non_null(so);
    mr_sim_get_api_fn *get = NULL;
    *(void **)&get = dlsym(so, "mr_sim_get_api");
    assert_non_null(get);
    assert_int_equal(get()->abi, MR_SIM_ABI);
    return get();
}

static int load_all(void **state)
{
    (void)state;
    one = load(STANDINS "/libmillrace-sim-standin1.so");
    four = load(STANDINS "/libmillrace-sim-standin4-view.so");
    broken = load(STANDINS "/libmillrace-sim-standin-broken.so");
    return 0;
}

// A device with 1 MiB of numbers behind BASE of each channel and a page behind RESULT.
struct bed {
    const struct mr_sim_api *api;
    struct mr_sim *sim;
    uint32_t *stream[MR_MEM_MAX_CHANNELS];
    uint32_t *result; // 64 KiB
};

static void open_bed(struct bed *bed, const struct mr_sim_api *api, struct mr_sim_options options)
{
    *bed = (struct bed){.api = api};
    bed->sim = api->open(&options, &err);
    assert_non_null(bed->sim);
    bed->result = calloc(16384, sizeof *bed->result);
    assert_non_null(bed->result);
    for (int i = 0; i < 16384; i++)
        bed->result[i] = (uint32_t)i * 3;
    assert_int_equal(api->map(bed->sim, 0, RESULT, bed->result, 65536, true, &err), 0);
    for (unsigned c = 0; c < api->channels; c++) {
        bed->stream[c] = calloc(WORDS, sizeof **bed->stream);
        assert_non_null(bed->stream[c]);
        for (uint32_t i = 0; i < WORDS; i++)
            bed->stream[c][i] = (i + c) * 2654435761U;
        assert_int_equal(
            api->map(bed->sim, c, BASE, bed->stream[c], WORDS * sizeof **bed->stream, false, &err),
            0);
    }
}

static void close_bed(struct bed *bed)
{
    bed->api->close(bed->sim);
    for (unsigned c = 0; c < bed->api->channels; c++)
        free(bed->stream[c]);
    free(bed->result);
}

static void put(struct bed *bed, uint32_t addr, uint32_t value)
{
    assert_int_equal(bed->api->reg_write(bed->sim, addr, value, &err), 0);
}

static uint32_t get(struct bed *bed, uint32_t addr)
{
    uint32_t value = 0;
    assert_int_equal(bed->api->reg_read(bed->sim, addr, &value, &err), 0);
    return value;
}

static void start(struct bed *bed, uint32_t beats)
{
    put(bed, 0x048, RESULT);
    put(bed, 0x04C, 0);
    put(bed, 0x080, BASE);
    put(bed, 0x084, beats);
    put(bed, 0x040, 1);
}

static uint32_t sum(const uint32_t *words, uint32_t count)
{
    uint32_t s = 0;
    for (uint32_t i = 0; i < count; i++)
        s += words[i];
    return s;
}

// Runs the stand-in over `beats` beats and checks its sums; returns the cycles.
static int64_t run_checked(struct bed *bed, uint32_t beats)
{
    uint32_t host = sum(bed->result, 16 * beats);
    start(bed, beats);
    enum mr_sim_stop stop;
    int64_t ran = bed->api->run(bed->sim, 1000000, &stop, &err);
    assert_true(ran > 0);
    assert_int_equal(stop, MR_SIM_STOP_IRQ);
    assert_int_equal(get(bed, 0x044), 2);
    for (unsigned c = 0; c < bed->api->channels; c++)
        assert_int_equal(bed->result[c], sum(bed->stream[c], 16 * beats));
    assert_int_equal(bed->result[15], host);
    assert_int_equal(bed->api->run(bed->sim, 1000, &stop, &err), 0); // the line is still high
    put(bed, 0x054, 1);
    assert_int_equal(get(bed, 0x054), 0);
    return ran;
}

static const struct mr_sim_options quick = {.preset = "ideal"};

static void registers_answer(void **state)
{
    (void)state;
    struct bed bed;
    open_bed(&bed, one, quick);
    assert_int_equal(get(&bed, 0x010), 0x4C4C494D);
    assert_int_equal(get(&bed, 0x018), 1);
    put(&bed, 0x080, 0x12345678);
    put(&bed, 0x084, 0x9ABCDEF0);
    assert_int_equal(get(&bed, 0x080), 0x12345678);
    assert_int_equal(get(&bed, 0x084), 0x9ABCDEF0);
    assert_int_equal(get(&bed, 0xFFC), 0);
    uint64_t before = one->cycles(bed.sim);
    (void)get(&bed, 0x010);
    assert_in_range(one->cycles(bed.sim) - before, 1, 10);
    close_bed(&bed);
}

static void lost_register_accesses_end(void **state)
{
    (void)state;
    struct bed bed;
    open_bed(&bed, one, quick);
    uint32_t value;
    assert_int_equal(one->reg_read(bed.sim, 0x0F8, &value, &err), MR_ERR_DEVICE);
    assert_non_null(strstr(err.text, "no answer to a register read at 0x0f8"));
    assert_int_equal(one->reg_write(bed.sim, 0x0F8, 1, &err), MR_ERR_DEVICE);
    assert_non_null(strstr(err.text, "no answer to a register write"));
    close_bed(&bed);
}

static void data_comes_through_every_port(void **state)
{
    (void)state;
    const struct mr_sim_api *apis[] = {one, four};
    const char *presets[] = {"ideal", "ddr4-2400", "hbm2"};
    for (int a = 0; a < 2; a++)
        for (int p = 0; p < 3; p++) {
            struct bed bed;
            open_bed(&bed, apis[a], (struct mr_sim_options){.preset = presets[p], .seed = 3});
            (void)run_checked(&bed, 1);
            (void)run_checked(&bed, 100);
            (void)run_checked(&bed, 1000);
            assert_true(bed.api->memory_idle(bed.sim));
            for (unsigned c = 0; c < bed.api->channels; c++) {
                struct mr_mem_counts counts;
                bed.api->counts(bed.sim, c, &counts);
                assert_int_equal(counts.port_beats, 1101);
                assert_int_equal(counts.host_beats, c == 0 ? 1101 : 0);
                assert_int_equal(counts.write_beats, c == 0 ? 3 : 0);
            }
            close_bed(&bed);
        }
}

static void streams_run_at_the_rate_of_memory(void **state)
{
    (void)state;
    struct bed bed;
    open_bed(&bed, four, (struct mr_sim_options){.preset = "ddr4-2400"});
    // Channel 0 is shared with the host port, which reads as much.
    int64_t cycles = run_checked(&bed, 1024);
    assert_in_range(cycles, 2 * 1024, 2 * 1024 / 0.93);
    assert_true(four->pin_rate(bed.sim) == 1);
    assert_true(four->sequential_rate(bed.sim) > 0.95 && four->sequential_rate(bed.sim) < 0.953);
    close_bed(&bed);
}

static void stalls_change_time_only(void **state)
{
    (void)state;
    int64_t cycles[4];
    for (unsigned i = 0; i < 4; i++) {
        struct bed bed;
        unsigned stalls[] = {0, 40, 40, 40};
        uint64_t seeds[] = {1, 5, 5, 6};
        open_bed(&bed, four, (struct mr_sim_options){.preset = "ddr4-2400", .seed = seeds[i],
                                                     .stalls = stalls[i]});
        cycles[i] = run_checked(&bed, 500);
        close_bed(&bed);
    }
    assert_true(cycles[1] > cycles[0]);
    assert_int_equal(cycles[1], cycles[2]);
    assert_int_not_equal(cycles[1], cycles[3]);
}

static void devices_are_independent(void **state)
{
    (void)state;
    struct bed a, b;
    open_bed(&a, one, (struct mr_sim_options){.preset = "ddr4-2400"});
    open_bed(&b, one, (struct mr_sim_options){.preset = "ddr4-2400", .seed = 7});
    start(&a, 300);
    int64_t other = run_checked(&b, 300);
    uint32_t host = sum(a.result, 16 * 300);
    enum mr_sim_stop stop;
    assert_int_equal(one->run(a.sim, 100000, &stop, &err), other);
    assert_int_equal(a.result[15], host);
    close_bed(&a);
    close_bed(&b);
}

static void runs_can_be_cut(void **state)
{
    (void)state;
    struct bed bed;
    volatile sig_atomic_t abort = 0;
    open_bed(&bed, one, (struct mr_sim_options){.preset = "ideal", .abort = &abort});
    enum mr_sim_stop stop;
    uint64_t before = one->cycles(bed.sim);
    assert_int_equal(one->run(bed.sim, 12345, &stop, &err), 12345);
    assert_int_equal(stop, MR_SIM_STOP_LIMIT);
    assert_int_equal(one->cycles(bed.sim) - before, 12345);
    abort = 1;
    assert_in_range(one->run(bed.sim, 12345, &stop, &err), 0, 256);
    assert_int_equal(stop, MR_SIM_STOP_ABORT);
    abort = 0;
    (void)run_checked(&bed, 10);
    close_bed(&bed);
}

static void memory_errors_reach_the_device(void **state)
{
    (void)state;
    struct bed bed;
    enum mr_sim_stop stop;
    open_bed(&bed, one, quick);
    assert_int_equal(one->fault(bed.sim, MR_MEM_FAULT_READ, BASE + 640, &err), 0);
    start(&bed, 20);
    assert_true(one->run(bed.sim, 100000, &stop, &err) > 0);
    assert_int_equal(get(&bed, 0x044), 6);
    put(&bed, 0x054, 1);
    one->clear_faults(bed.sim);
    assert_int_equal(one->fault(bed.sim, MR_MEM_FAULT_WRITE, RESULT, &err), 0);
    start(&bed, 20);
    assert_true(one->run(bed.sim, 100000, &stop, &err) > 0);
    assert_int_equal(get(&bed, 0x044), 6);
    put(&bed, 0x054, 1);
    one->clear_faults(bed.sim);
    assert_int_equal(one->unmap(bed.sim, 0, BASE, &err), 0);
    start(&bed, 20);
    assert_true(one->run(bed.sim, 100000, &stop, &err) > 0);
    assert_int_equal(get(&bed, 0x044), 6);
    close_bed(&bed);
}

static void dropped_answers_hang_the_device(void **state)
{
    (void)state;
    struct bed bed;
    enum mr_sim_stop stop;
    open_bed(&bed, one, quick);
    assert_int_equal(one->fault(bed.sim, MR_MEM_FAULT_WRITE_DROP, RESULT, &err), 0);
    start(&bed, 20);
    assert_int_equal(one->run(bed.sim, 20000, &stop, &err), 20000);
    assert_int_equal(stop, MR_SIM_STOP_LIMIT);
    assert_false(one->memory_idle(bed.sim));
    one->clear_faults(bed.sim);
    assert_in_range(one->run(bed.sim, 20000, &stop, &err), 1, 100);
    assert_int_equal(stop, MR_SIM_STOP_IRQ);
    close_bed(&bed);
}

static void broken_axi_is_noticed(void **state)
{
    (void)state;
    struct bed bed;
    enum mr_sim_stop stop;
    open_bed(&bed, broken, (struct mr_sim_options){.preset = "ideal", .seed = 1, .stalls = 50});
    start(&bed, 1000);
    assert_int_equal(broken->run(bed.sim, 100000, &stop, &err), MR_ERR_DEVICE);
    assert_non_null(strstr(err.text, "AR of port 0 changed while it waited"));
    // It stays so.
    uint32_t value;
    assert_int_equal(broken->reg_read(bed.sim, 0x010, &value, &err), MR_ERR_DEVICE);
    close_bed(&bed);
}

static void stop_in_the_rtl_is_an_error(void **state)
{
    (void)state;
    struct bed bed;
    open_bed(&bed, one, quick);
    assert_int_equal(one->reg_write(bed.sim, 0x0F0, 1, &err), MR_ERR_DEVICE);
    assert_non_null(strstr(err.text, "simlib_standin.sv"));
    close_bed(&bed);
}

struct completion {
    struct bed *bed;
    int calls;
    unsigned queue, index;
    uint8_t beat[64];
};

static int completed(void *user, unsigned queue, unsigned index)
{
    struct completion *c = user;
    c->calls++;
    c->queue = queue;
    c->index = index;
    assert_int_equal(c->bed->api->peek(c->bed->sim, "gen_ch[2].u_ram.mem", 3, c->beat, 64, &err),
                     64);
    return 1;
}

static void completions_show_the_memories(void **state)
{
    (void)state;
    struct bed bed;
    enum mr_sim_stop stop;
    open_bed(&bed, four, quick);
    struct completion c = {.bed = &bed};
    four->on_done(bed.sim, completed, &c);
    start(&bed, 10);
    assert_true(four->run(bed.sim, 100000, &stop, &err) > 0);
    assert_int_equal(stop, MR_SIM_STOP_DONE);
    assert_int_equal(c.calls, 1);
    assert_int_equal(c.queue, 4);
    assert_int_equal(c.index, 0);
    assert_memory_equal(c.beat, bed.stream[2] + 3 * 16, 64);
    assert_int_equal(four->run(bed.sim, 100000, &stop, &err), 1);
    assert_int_equal(stop, MR_SIM_STOP_IRQ);
    put(&bed, 0x054, 1);
    start(&bed, 10);
    (void)four->run(bed.sim, 100000, &stop, &err);
    assert_int_equal(c.index, 1);

    uint8_t beat[64];
    assert_int_equal(four->peek(bed.sim, "gen_ch[4].u_ram.mem", 0, beat, 64, &err), MR_ERR_USAGE);
    assert_int_equal(four->peek(bed.sim, "gen_ch[0].u_ram.nem", 0, beat, 64, &err), MR_ERR_USAGE);
    assert_int_equal(four->peek(bed.sim, "gen_ch[0].u_ram.mem", 16, beat, 64, &err), MR_ERR_USAGE);
    close_bed(&bed);

    open_bed(&bed, one, quick);
    assert_false(one->view);
    assert_true(four->view);
    assert_int_equal(one->peek(bed.sim, "gen_ch[0].u_ram.mem", 0, beat, 64, &err),
                     MR_ERR_UNSUPPORTED);
    close_bed(&bed);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    assert_int_equal(one->channels, 1);
    assert_int_equal(four->channels, 4);
    assert_string_equal(one->config, "standin1");
    struct mr_sim_options options = {.preset = "core"};
    assert_null(one->open(&options, &err));
    assert_non_null(strstr(err.text, "\"core\""));
    options = (struct mr_sim_options){.preset = "ideal", .stalls = 91};
    assert_null(one->open(&options, &err));
    one->close(NULL);
}

// The stand-in has no view signals, in a view build or without.
static void refuses_timeline_and_waves_without_signals(void **state)
{
    (void)state;
    const struct mr_sim_api *api[] = {one, four};
    for (int i = 0; i < 2; i++) {
        struct bed bed;
        open_bed(&bed, api[i], (struct mr_sim_options){.preset = "ideal"});
        struct mr_sim_timeline to = {0};
        assert_int_equal(api[i]->timeline(bed.sim, &to, &err), MR_ERR_UNSUPPORTED);
        assert_false(api[i]->tracing);
        assert_int_equal(api[i]->waves(bed.sim, "/dev/null", 0, 1, &err), MR_ERR_UNSUPPORTED);
        close_bed(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_timeline_and_waves_without_signals),
        cmocka_unit_test(registers_answer),
        cmocka_unit_test(lost_register_accesses_end),
        cmocka_unit_test(data_comes_through_every_port),
        cmocka_unit_test(streams_run_at_the_rate_of_memory),
        cmocka_unit_test(stalls_change_time_only),
        cmocka_unit_test(devices_are_independent),
        cmocka_unit_test(runs_can_be_cut),
        cmocka_unit_test(memory_errors_reach_the_device),
        cmocka_unit_test(dropped_answers_hang_the_device),
        cmocka_unit_test(broken_axi_is_noticed),
        cmocka_unit_test(stop_in_the_rtl_is_an_error),
        cmocka_unit_test(completions_show_the_memories),
        cmocka_unit_test(bad_options_are_refused),
    };
    return cmocka_run_group_tests(tests, load_all, NULL);
}
