// SPDX-License-Identifier: Apache-2.0
// The table of the suites of `make bench`, and how results are held against its bars.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/suite/report.h"

static int run_named(const char *id)
{
    for (int i = 0; i < suite_run_count; i++)
        if (strcmp(suite_runs[i].id, id) == 0)
            return i;
    fail_msg("the table has no run '%s'", id);
    return -1;
}

static void every_row_has_its_runs(void **state)
{
    (void)state;
    unsigned used[64] = {0};
    assert_true(suite_run_count <= 64);
    for (int i = 0; i < suite_row_count; i++) {
        const struct suite_row *r = &suite_rows[i];
        const char *ids[2] = {r->a, r->b};
        for (int k = 0; k < 2 && ids[k]; k++) {
            int run = run_named(ids[k]);
            used[run] |= r->in;
            if ((suite_runs[run].in & r->in) != r->in)
                fail_msg("'%s' needs run '%s' in a suite that does not have it", r->figure, ids[k]);
        }
        bool two = r->measure == SPEED_OVER_BYTES || r->measure == OVER_BYTES ||
                   r->measure == ADDED_CYCLES || r->measure == OF_LINEAR;
        assert_int_equal(r->b != NULL, two);
        assert_in_range(r->bar_of_issue, 1, 7);
    }
    for (int i = 0; i < suite_run_count; i++) {
        assert_int_equal(run_named(suite_runs[i].id), i); // no name twice
        assert_int_equal(used[i], suite_runs[i].in);      // no run for nothing
        assert_true(suite_runs[i].kind != RUN_AGAINST || suite_runs[i].timed);
    }
}

static int counter(const char *name)
{
    for (int i = 0; mr_stats_name(i); i++)
        if (strcmp(mr_stats_name(i), name) == 0)
            return i;
    fail_msg("no counter '%s'", name);
    return -1;
}

static struct suite_result result(uint64_t cycles, uint64_t beats, uint64_t macs)
{
    struct suite_result r = {.done = true, .against = 3, .peak_kib = 8000000};
    r.p.seconds = 2;
    r.p.s = (struct mr_stats){.counts = true,
                              .channels = 1,
                              .rows = 4,
                              .columns = 4,
                              .pin_rate = 1,
                              .sequential_rate = 0.8};
    r.p.s.counter[counter("cycles")] = cycles;
    r.p.s.counter[counter("weight_beats")] = beats;
    r.p.s.counter[counter("mac_blocks")] = macs;
    return r;
}

// Results of the quick suite that meet all bars, some just so.
static void good(struct suite_result *r)
{
    for (int i = 0; i < suite_run_count; i++)
        r[i] = result(100000, 80000, 0);
    r[run_named("s2047")] = result(111055, 88800, 0); // its bytes: 11000 cycles more
    r[run_named("fp1")] = result(50500, 40000, 0);    // 99.0 % of 2
    r[run_named("two1")] = result(100500, 80000, 0);
    r[run_named("batch4")] = result(101900, 80000, 0);
    r[run_named("pre16")] = result(100000, 80000, 1560000); // 97.5 %
}

static json_t *judged(const struct suite_result *r, int status)
{
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_int_equal(suite_report("quick", SUITE_QUICK, r, f), status);
    rewind(f);
    json_t *j = json_loadf(f, 0, NULL);
    assert_non_null(j);
    (void)fclose(f);
    return j;
}

static double value_of(json_t *j, const char *figure)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(j, "rows"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "figure")), figure) == 0)
            return json_number_value(json_object_get(row, "value"));
    }
    fail_msg("no row '%s'", figure);
    return 0;
}

static void figures_are_what_they_say(void **state)
{
    struct suite_result r[64];
    (void)state;
    good(r);
    json_t *j = judged(r, EXIT_OK);
    assert_int_equal(json_integer_value(json_object_get(j, "missed")), 0);
    assert_int_equal(json_integer_value(json_object_get(j, "met")),
                     (json_int_t)json_array_size(json_object_get(j, "rows")));
    assert_float_equal(value_of(j, "decode S = 1, ddr4-2400"), 1, 1e-6);
    assert_float_equal(value_of(j, "MXFP4 over MXINT8, S = 1"), 0.99009900990, 1e-6);
    assert_float_equal(value_of(j, "attention at S = 2047, over its bytes"), 0.005, 1e-6);
    assert_float_equal(value_of(j, "two passes, batch 1"), 0.005, 1e-6);
    assert_float_equal(value_of(j, "prefill of 16 at position 0, MACs"), 0.975, 1e-6);
    assert_float_equal(value_of(j, "model: over cpu:, layer, S = 1"), 1.5, 1e-6);
    json_decref(j);
}

static void a_missed_bar_is_reported(void **state)
{
    static const struct {
        const char *run;
        uint64_t cycles, beats, macs;
    } bad[] = {
        {"s2047", 112000, 88600, 0},  {"fp1", 51000, 40000, 0},          {"two1", 100600, 80000, 0},
        {"batch4", 102100, 80000, 0}, {"pre16", 100000, 80000, 1550000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct suite_result r[64];
        good(r);
        r[run_named(bad[i].run)] = result(bad[i].cycles, bad[i].beats, bad[i].macs);
        json_t *j = judged(r, EXIT_DIFFERS);
        assert_true(json_integer_value(json_object_get(j, "missed")) >= 1);
        json_decref(j);
    }
    struct suite_result r[64];
    good(r);
    r[run_named("cpu1")].against = 1.9;
    json_decref(judged(r, EXIT_DIFFERS));
}

// The first line that the report prints.
static void header_of(const struct suite_result *r, char *line, int size)
{
    FILE *f = tmpfile();
    int out = dup(STDOUT_FILENO);
    assert_non_null(f);
    assert_true(out >= 0);
    (void)fflush(stdout);
    assert_true(dup2(fileno(f), STDOUT_FILENO) >= 0);
    int status = suite_report("quick", SUITE_QUICK, r, NULL);
    (void)fflush(stdout);
    assert_true(dup2(out, STDOUT_FILENO) >= 0);
    (void)close(out);
    assert_int_equal(status, EXIT_OK);
    rewind(f);
    assert_non_null(fgets(line, size, f));
    (void)fclose(f);
}

static void results_say_version_and_date(void **state)
{
    struct suite_result r[64];
    char line[512];
    (void)state;
    good(r);
    json_t *j = judged(r, EXIT_OK);
    const char *date = json_string_value(json_object_get(j, "date"));
    assert_string_equal(json_string_value(json_object_get(j, "version")), MR_VERSION_STRING);
    assert_non_null(date);
    int year, n = 0;
    assert_int_equal(sscanf(date, "%4d-%*2d-%*2dT%*2d:%*2d:%*2dZ%n", &year, &n), 1);
    assert_int_equal(n, 20);
    assert_true(date[n] == 0 && year >= 2024);
    header_of(r, line, sizeof line);
    assert_non_null(strstr(line, "suite quick, millrace " MR_VERSION_STRING ", "));
    date = strstr(line, MR_VERSION_STRING ", ") + strlen(MR_VERSION_STRING ", ");
    assert_int_equal(sscanf(date, "%4d-%*2d-%*2dT%*2d:%*2d:%*2dZ%n", &year, &n), 1);
    json_decref(j);
}

// Before anything is measured, which would take minutes.
static void a_file_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(suite_run("quick", "/nonexistent/bench.json"), EXIT_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_its_runs),
        cmocka_unit_test(figures_are_what_they_say),
        cmocka_unit_test(a_missed_bar_is_reported),
        cmocka_unit_test(results_say_version_and_date),
        cmocka_unit_test(a_file_that_cannot_be_written_is_an_error),
    };
    return cmocka_run_group_tests_name("suite", tests, NULL, NULL);
}
