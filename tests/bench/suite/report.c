// SPDX-License-Identifier: Apache-2.0
#include "bench/suite/report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "common/error.h"
#include "common/output_file.h"

// A row's outcome. Shares and ratios are numbers as such, not percent.
struct outcome {
    double value;
    bool at_most; // the bar is a ceiling
    bool met;
    char text[32]; // the value as it is printed
    char bar[32];
    char detail[96];
};

static int index_of(const char *id)
{
    for (int i = 0; id && i < suite_run_count; i++)
        if (strcmp(suite_runs[i].id, id) == 0)
            return i;
    return -1;
}

static double cycles(const struct suite_result *r)
{
    return point_count(&r->p, "cycles");
}

static void percent(struct outcome *o, double bar)
{
    snprintf(o->text, sizeof o->text, "%.2f %%", 100 * o->value);
    if (bar > 0)
        snprintf(o->bar, sizeof o->bar, "%s %.4g %%", o->at_most ? "<=" : ">=", 100 * bar);
}

static void number(struct outcome *o, double bar, const char *unit)
{
    snprintf(o->text, sizeof o->text, "%.2f%s", o->value, unit);
    if (bar > 0)
        snprintf(o->bar, sizeof o->bar, "%s %.4g%s", o->at_most ? "<=" : ">=", bar, unit);
}

// Cycles that the additional beats of `a` over `b` need at the sequential reader's rate.
static double bytes_cycles(const struct suite_result *a, const struct suite_result *b)
{
    return (point_beats(&a->p) - point_beats(&b->p)) / (a->p.s.sequential_rate * a->p.s.channels);
}

static struct outcome evaluate(const struct suite_row *row, const struct suite_result *a,
                               const struct suite_result *b)
{
    struct outcome o = {0};
    char *detail = o.detail;
    const size_t size = sizeof o.detail;
    switch (row->measure) {
    case OF_SEQUENTIAL:
        o.value = point_bandwidth(&a->p) / a->p.s.sequential_rate;
        snprintf(detail, size, "%.0f cycles, %.2f %% of pin", cycles(a),
                 100 * point_bandwidth(&a->p) / a->p.s.pin_rate);
        break;
    case SPEED_OVER_BYTES: {
        double speed = cycles(b) / cycles(a), bytes = point_beats(&b->p) / point_beats(&a->p);
        o.value = speed / bytes;
        snprintf(detail, size, "%.0f cycles, speed x %.3f, bytes x %.3f", cycles(a), speed, bytes);
        break;
    }
    case OVER_BYTES:
        o.at_most = true;
        o.value = (cycles(a) - cycles(b)) / bytes_cycles(a, b) - 1;
        snprintf(detail, size, "%.0f cycles more, its bytes need %.0f", cycles(a) - cycles(b),
                 bytes_cycles(a, b));
        break;
    case ADDED_CYCLES:
        o.at_most = true;
        o.value = cycles(a) / cycles(b) - 1;
        snprintf(detail, size, "%.0f cycles, %+.0f", cycles(a), cycles(a) - cycles(b));
        break;
    case OF_MACS:
        o.value = point_mac_share(&a->p);
        snprintf(detail, size, "%.0f cycles", cycles(a));
        break;
    case OF_LINEAR:
        o.value = cycles(b) / cycles(a) * b->p.s.channels / a->p.s.channels;
        snprintf(detail, size, "%.0f cycles", cycles(a));
        break;
    case WALL_SECONDS:
        o.at_most = true;
        o.value = a->p.seconds;
        snprintf(detail, size, "%.0f cycles, %.1f s of processor; weights made in %.1f s before",
                 cycles(a), a->processor_seconds, a->load_seconds);
        break;
    case PEAK_GIB:
        o.at_most = true;
        o.value = (double)a->peak_kib * 1024 / 1e9;
        break;
    case NS_PER_CYCLE:
        o.value = 1e9 * a->p.seconds / cycles(a);
        break;
    case TIMES_FASTER:
        o.value = a->against / a->p.seconds;
        snprintf(detail, size, "%.1f ms against %.1f ms", 1e3 * a->p.seconds, 1e3 * a->against);
        break;
    }
    if (row->measure == WALL_SECONDS)
        number(&o, row->bar, " s");
    else if (row->measure == PEAK_GIB)
        number(&o, row->bar, " GB");
    else if (row->measure == NS_PER_CYCLE)
        number(&o, row->bar, " ns");
    else if (row->measure == TIMES_FASTER)
        number(&o, row->bar, " x");
    else
        percent(&o, row->bar);
    o.met = o.at_most ? o.value <= row->bar : o.value >= row->bar;
    return o;
}

// The processor's name, as a wall time means nothing without it.
static void machine_name(char *name, size_t size)
{
    struct utsname u;
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(name, size, "%s", uname(&u) == 0 ? u.machine : "unknown");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            line[strcspn(line, "\n")] = 0;
            snprintf(name, size, "%s", colon + 2);
            break;
        }
    }
    if (f)
        (void)fclose(f); // only read
}

// "2026-01-31T12:00:00Z"
static void date_now(char *date, size_t size)
{
    struct tm tm;
    time_t now = time(NULL);
    if (!gmtime_r(&now, &tm) || strftime(date, size, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(date, size, "unknown");
}

static json_t *row_json(const struct suite_row *row, const struct outcome *o)
{
    json_t *j = json_pack("{s:i, s:s, s:f, s:s, s:s, s:s, s:s}", "group", row->bar_of_issue,
                          "figure", row->figure, "value", o->value, "measured", o->text, "bar",
                          o->bar, "detail", o->detail, "anchor", row->anchor);
    if (row->bar > 0)
        json_object_set_new(j, "met", json_boolean(o->met));
    return j;
}

static json_t *run_json(const struct suite_run *r, const struct suite_result *result)
{
    json_t *j = r->kind == RUN_AGAINST ? json_object() : cli_stats_json(&result->p.s);
    json_object_set_new(j, "id", json_string(r->id));
    json_object_set_new(j, "model", json_string(r->model));
    json_object_set_new(j, "format", json_string(r->fp4 ? "mxfp4" : "mxint8"));
    json_object_set_new(j, "device", json_string(r->device));
    json_object_set_new(j, "two_pass", json_boolean(r->two_pass));
    json_object_set_new(j, "batch", json_integer(r->batch));
    json_object_set_new(j, "position", json_integer(r->at));
    json_object_set_new(j, "size", json_integer(r->n));
    json_object_set_new(j, "seconds", json_real(result->p.seconds));
    json_object_set_new(j, "processor_seconds", json_real(result->processor_seconds));
    if (r->kind == RUN_AGAINST)
        json_object_set_new(j, "seconds_cpu", json_real(result->against));
    return j;
}

struct tally {
    int met, missed;
};

// Prints the rows and fills `list`.
static struct tally judge(unsigned in, const struct suite_result *results, json_t *list)
{
    struct tally t = {0};
    int group = 0;
    const char *anchor = ""; // the last row's
    for (int i = 0; i < suite_row_count; i++) {
        const struct suite_row *row = &suite_rows[i];
        int a = index_of(row->a), b = index_of(row->b);
        if (!(row->in & in) || a < 0)
            continue;
        struct outcome o = evaluate(row, &results[a], b < 0 ? NULL : &results[b]);
        const char *verdict = row->bar <= 0 ? "" : o.met ? "met" : "MISSED";
        if (row->bar > 0) {
            t.met += o.met;
            t.missed += !o.met;
        }
        if (row->bar_of_issue != group)
            printf("\n");
        if (*row->anchor && strcmp(row->anchor, anchor) != 0)
            printf("   elsewhere: %s\n", row->anchor);
        printf("%d  %-38s %10s  %-10s %-7s %s\n", row->bar_of_issue, row->figure, o.text, o.bar,
               verdict, o.detail);
        anchor = row->anchor;
        group = row->bar_of_issue;
        json_array_append_new(list, row_json(row, &o));
    }
    return t;
}

int suite_report(const char *name, unsigned in, const struct suite_result *results, FILE *save)
{
    char machine[256], date[32];
    json_t *rows = json_array(), *runs = json_array();
    machine_name(machine, sizeof machine);
    date_now(date, sizeof date);
    printf("suite %s, millrace %s, %s, on %s\n"
           "cycles are the device's own, its clock of 300 MHz an assumption\n"
           "   %-38s %10s  %-10s\n",
           name, MR_VERSION_STRING, date, machine, "figure", "measured", "bar");
    struct tally t = judge(in, results, rows);
    for (int i = 0; i < suite_run_count; i++)
        if (results[i].done)
            json_array_append_new(runs, run_json(&suite_runs[i], &results[i]));
    json_t *all = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:o, s:o}", "suite", name, "version",
                            MR_VERSION_STRING, "date", date, "machine", machine, "met", t.met,
                            "missed", t.missed, "rows", rows, "runs", runs);
    int status = EXIT_OK;
    if (save && json_dumpf(all, save, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) < 0 &&
        !ferror(save)) { // else whoever closes it reports
        fprintf(stderr, "suite: no memory for the results\n");
        status = EXIT_INPUT;
    }
    json_decref(all);
    printf("\n%d bars met, %d missed\n", t.met, t.missed);
    return status == EXIT_OK && t.missed > 0 ? EXIT_DIFFERS : status;
}

int suite_run(const char *name, const char *save)
{
    struct mr_error err = {0};
    unsigned in = strcmp(name, "full") == 0 ? SUITE_FULL : SUITE_QUICK;
    struct suite_result *results = calloc((size_t)suite_run_count, sizeof *results);
    if (!results) {
        fprintf(stderr, "suite: no memory for the results\n");
        return EXIT_INPUT;
    }
    struct mr_output_file out = {0};
    int rc = mr_output_file_open(&out, save, &err);
    if (rc == 0)
        rc = suite_measure_all(in, results, &err);
    int status = rc < 0 ? cli_fail(&err) : suite_report(name, in, results, out.file);
    // A missed bar is a result; JSON that could not be made is none.
    bool keep = rc == 0 && (status == EXIT_OK || status == EXIT_DIFFERS);
    if (keep && mr_output_file_commit(&out, save, &err) < 0)
        status = cli_fail(&err);
    mr_output_file_abandon(&out);
    free(results);
    return status;
}
