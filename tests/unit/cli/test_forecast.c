// SPDX-License-Identifier: Apache-2.0
// What is said of a long simulation before it begins.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/base/forecast.h"
#include "cli/base/watch.h"

static const struct cli_work one_token = {1, 1, 1, 0};
static const struct mr_plan_point one_point = {1, 0, 1};

static struct cli_forecast forecast(const char *device, const struct cli_work *work)
{
    const struct cli_common c = {.model = "synthetic:gptj-6b", .device = device};
    struct cli_forecast f = {0};
    assert_true(cli_forecast(&f, &c, work));
    return f;
}

// GPT-J-6B's weights are 92 million beats for each token; ddr4-2400 passes 95 in 100 cycles.
static void a_token_of_gptj(void **state)
{
    (void)state;
    struct cli_forecast f = forecast("sim:", &one_token);
    assert_true(f.cycles > 92e6 && f.cycles < 102e6);
    assert_true(f.seconds > 25 && f.seconds < 35);
    struct cli_forecast many = forecast("sim:sim", &(struct cli_work){1, 64, 1, 0});
    assert_true(many.cycles > 63 * f.cycles && many.cycles < 66 * f.cycles);
    many = forecast("sim:sim", &(struct cli_work){1, 1, 3, 0});
    assert_true(many.cycles == 3 * f.cycles && many.seconds == 3 * f.seconds);
    // Four texts that decode together share the weights, and have a row of the array each.
    struct cli_forecast batch = forecast("sim:sim", &(struct cli_work){1, 64, 1, 4});
    many = forecast("sim:sim", &(struct cli_work){1, 64, 1, 0});
    assert_true(batch.cycles > many.cycles && batch.cycles < 1.2 * many.cycles);
    assert_true(batch.seconds > 1.5 * many.seconds);
    // Reading many tokens together takes the array's time and not the memory's.
    many = forecast("sim:", &(struct cli_work){128, 1, 1, 0});
    assert_true(many.cycles > 5 * f.cycles && many.cycles < 32 * f.cycles);
    // A text beyond the model's 2048 positions is read in windows.
    double window = forecast("sim:", &(struct cli_work){2048, 0, 1, 0}).cycles;
    assert_true(forecast("sim:", &(struct cli_work){3 * 2048, 0, 1, 0}).cycles == 3 * window);
}

static void options_of_the_device(void **state)
{
    (void)state;
    double sim = forecast("sim:", &one_token).cycles;
    assert_true(forecast("sim:sim,seed=3", &one_token).cycles == sim);
    assert_true(forecast("sim:seed=3", &one_token).cycles == sim);
    assert_true(forecast("sim:check", &one_token).cycles == sim);
    assert_true(forecast("sim:memory=ideal", &one_token).cycles < 0.97 * sim);
    assert_true(forecast("sim:sim,memory=hbm2,seed=1", &one_token).cycles > 1.2 * sim);
    double wide = forecast("sim:wide", &one_token).cycles;
    assert_true(wide > sim / 8.5 && wide < sim / 7.5);
}

static void formats_and_passes(void **state)
{
    (void)state;
    struct cli_common c = {.model = "synthetic:gptj-6b", .device = "sim:"};
    struct cli_forecast plain, fp4;
    assert_true(cli_forecast(&plain, &c, &one_token));
    c.load.format = MR_WEIGHTS_MXFP4;
    assert_true(cli_forecast(&fp4, &c, &one_token));
    assert_true(fp4.cycles < 0.56 * plain.cycles);
}

static struct cli_forecast points(const char *model, const struct mr_plan_point *p, int n,
                                  bool head)
{
    const struct cli_common c = {.model = model, .device = "sim:"};
    struct cli_forecast f;
    assert_true(cli_forecast_points(&f, &c, &(struct cli_points){p, n, head, 0}));
    return f;
}

// What bench and trace measure: each point by itself, and the positions before it if they have to
// be computed.
static void points_that_are_measured(void **state)
{
    (void)state;
    static const char gptj[] = "synthetic:gptj-6b,layers=1,vocab=64", demo[] = "models/demo";
    const struct mr_plan_point p[] = {{1, 0, 1}, {1, 127, 1}, {1, 0, 128}, {1, 2047, 2}};
    struct cli_forecast first = points(gptj, p, 1, false), second = points(gptj, p + 1, 1, false);
    // 3,416,061 in docs/inside/performance.md
    assert_true(first.cycles > 3.38e6 && first.cycles < 3.45e6);
    assert_true(second.cycles > first.cycles && second.cycles < 1.01 * first.cycles);
    struct cli_forecast both = points(gptj, p, 2, false);
    assert_true(both.cycles == first.cycles + second.cycles);
    assert_true(both.seconds == first.seconds + second.seconds);
    assert_true(points(gptj, p, 1, true).cycles > first.cycles);
    // A prefill of 128 has 50,734,405 cycles, and more of the array at work in each of them.
    struct cli_forecast prefill = points(gptj, p + 2, 1, false);
    assert_true(prefill.cycles > 50.2e6 && prefill.cycles < 51.2e6);
    assert_true(prefill.seconds / prefill.cycles > 1.5 * first.seconds / first.cycles);
    // Weights that mean something: the 127 positions before are computed, and take a prefill's
    // time.
    struct cli_forecast at0 = points(demo, p, 1, true), at127 = points(demo, p + 1, 1, true);
    struct cli_forecast reads = points(demo, p + 2, 1, true);
    assert_true(at127.cycles > 0.9 * (at0.cycles + reads.cycles));
    assert_true(at127.cycles < 1.2 * (at0.cycles + reads.cycles));
    // The simulator with readable memories.
    const struct cli_common c = {.model = gptj, .device = "sim:"};
    struct cli_forecast f;
    assert_true(cli_forecast_points(&f, &c, &(struct cli_points){p, 1, false, 2}));
    assert_true(f.cycles == first.cycles && f.seconds == 2 * first.seconds);
    // A position that the model does not have is the command's to refuse.
    assert_false(cli_forecast_points(&f, &c, &(struct cli_points){p, 4, false, 0}));
}

static void nothing_to_say(void **state)
{
    (void)state;
    static const char *const devices[] = {"model:", "cpu:",         "xrt:0",
                                          "pci:0",  "sim:nonesuch", "sim:sim,memory=nonesuch"};
    struct cli_forecast f;
    struct cli_common c = {.model = "synthetic:gptj-6b"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        c.device = devices[i];
        assert_false(cli_forecast(&f, &c, &one_token));
        assert_false(cli_forecast_points(&f, &c, &(struct cli_points){&one_point, 1, true, 0}));
    }
    c = (struct cli_common){.model = "/nonexistent", .device = "sim:"};
    assert_false(cli_forecast(&f, &c, &one_token));
    c.model = NULL;
    assert_false(cli_forecast(&f, &c, &one_token));
}

static void words(void **state)
{
    (void)state;
    static const struct {
        struct cli_forecast f;
        const char *text;
    } cases[] = {
        {{97e6, 29}, "about 97 million cycles on sim:, some 29 seconds;"},
        {{97e6, 119}, "some 119 seconds;"},
        {{6.2e9, 1860}, "about 6.2 billion cycles on sim:, some 31 minutes;"},
        {{2e10, 7200}, "some 2 hours;"},
        {{2e12, 864000}, "some 10 days; '-d model:'"},
    };
    char text[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cli_forecast_text(&cases[i].f, "sim:", "'-d model:' is faster", text, sizeof text);
        assert_non_null(strstr(text, cases[i].text));
    }
}

// What a terminal shows while a device computes.
static void progress_in_words(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } left[] = {{-1, ""},
                {0, ", 0 s left"},
                {119, ", 119 s left"},
                {120, ", 2 min left"},
                {7200, ", 2 h left"},
                {172800, ", 2 days left"},
                {1e30, ""}}; // of a rate that is next to none
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        char line[64] = "";
        cli_watch_left(line, sizeof line, left[i].seconds);
        assert_string_equal(line, left[i].text);
    }
    char line[128] = "";
    struct mr_progress p = {.commands = 90, .layer = 2, .layers = 28, .cycles = 400000};
    cli_watch_done(line, sizeof line, 0.412, 1);
    cli_watch_where(line, sizeof line, &p, 1000000);
    assert_string_equal(line, "41 % of a token, layer 3 of 28, 1.4 million cycles");
    *line = 0;
    p.layer = 28;
    cli_watch_done(line, sizeof line, 12.4, 64);
    cli_watch_where(line, sizeof line, &p, 2000000000);
    assert_string_equal(line, "12 of 64 tokens, behind layer 28, 2.00 billion cycles");
    static const struct {
        uint64_t cycles;
        const char *text;
    } counts[] = {{1, ", 1 cycles"},
                  {999, ", 999 cycles"},
                  {1000, ", 1 thousand cycles"},
                  {41234, ", 41 thousand cycles"},
                  {1000000, ", 1.0 million cycles"}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        *line = 0;
        cli_watch_where(line, sizeof line, &(struct mr_progress){.cycles = 1},
                        counts[i].cycles - 1);
        assert_string_equal(line, counts[i].text);
    }
    *line = 0;
    p = (struct mr_progress){0}; // of a device that says nothing but that it works
    cli_watch_where(line, sizeof line, &p, 5);
    assert_string_equal(line, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_of_gptj),    cmocka_unit_test(options_of_the_device),
        cmocka_unit_test(formats_and_passes), cmocka_unit_test(points_that_are_measured),
        cmocka_unit_test(nothing_to_say),     cmocka_unit_test(words),
        cmocka_unit_test(progress_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
