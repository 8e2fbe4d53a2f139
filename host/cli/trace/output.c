// SPDX-License-Identifier: Apache-2.0
// The files that `millrace trace` writes, and what it prints.
#include <sys/stat.h>

#include "cli/trace/args.h"
#include "common/error.h"
#include "trace/timeline.h"

static int open_output(struct trace_output *o)
{
    struct mr_error err = {0};
    if (!o->path || mr_output_file_open(&o->to, o->path, &err) == 0)
        return EXIT_OK;
    (void)mr_fail_in(&err, "%s", o->option);
    return cli_fail(&err);
}

// The simulator opens waves itself, by name, and would remove a device that it finds there.
static int open_waves(struct trace_args *a)
{
    struct mr_error err = {0};
    struct stat st;
    int rc = 0;
    if (!a->fst)
        return EXIT_OK;
    if (stat(a->fst, &st) == 0 && !S_ISREG(st.st_mode))
        rc = mr_fail(&err, MR_ERR_IO, "%s: is not a regular file; waves need one", a->fst);
    if (rc == 0)
        rc = mr_output_open_named(&a->waves, a->fst, &err);
    if (rc == 0)
        return EXIT_OK;
    (void)mr_fail_in(&err, "--fst");
    return cli_fail(&err);
}

int trace_open_outputs(struct trace_args *a)
{
    int status = open_output(&a->json);
    if (status == EXIT_OK)
        status = open_output(&a->svg);
    if (status == EXIT_OK)
        status = open_waves(a);
    return status == EXIT_OK ? open_output(&a->view) : status;
}

static int write_outputs(struct trace_args *a, const struct mr_trace *t, const char *title)
{
    struct mr_error err = {0};
    const struct trace_output *o = &a->json;
    int rc = o->path ? mr_trace_json(t, title, o->to.file, &err) : 0;
    if (rc == 0 && a->svg.path) {
        o = &a->svg;
        rc = mr_trace_svg(t, title, o->to.file, &err);
    }
    if (rc == 0 && a->view.path) {
        o = &a->view;
        rc = mr_trace_gtkw(o->to.file, a->fst, t->channels, t->from, &err);
    }
    if (rc == 0)
        return EXIT_OK;
    (void)mr_fail_in(&err, "%s: %s", o->option, o->path);
    return cli_fail(&err);
}

static int commit_outputs(struct trace_args *a)
{
    struct mr_error err = {0};
    struct trace_output *const o[] = {&a->json, &a->svg, &a->view};
    for (int i = 0; i < 3; i++)
        if (o[i]->path && mr_output_file_commit(&o[i]->to, o[i]->path, &err) < 0) {
            (void)mr_fail_in(&err, "%s", o[i]->option);
            return cli_fail(&err);
        }
    if (!a->fst || mr_output_commit(&a->waves, &err) == 0)
        return EXIT_OK;
    (void)mr_fail_in(&err, "--fst");
    return cli_fail(&err);
}

// ---- what is printed ----------------------------------------------------------------------------

static void print_lane(const struct mr_trace *t, unsigned lane)
{
    const struct mr_lane_kind *k = mr_lane_kind(lane);
    uint64_t in[MR_TRACE_STATES];
    char name[32];
    mr_trace_window_total(t, lane, in);
    printf("  %-11s", mr_lane_name(lane, name, sizeof name));
    for (int s = 0; s < k->states; s++)
        printf(" %s %.2f %%", k->state[s], 100 * (double)in[s] / (double)(t->to - t->from));
    printf("\n");
}

// What the idle array's next command waited for, the most first.
static void print_waits(const struct mr_trace *t)
{
    bool said[MR_TRACE_WAITS] = {false};
    printf("  the idle array waits for");
    for (unsigned n = 0; n < t->n_waits; n++) {
        unsigned most = MR_TRACE_WAITS;
        for (unsigned i = 0; i < t->n_waits; i++)
            if (!said[i] && (most == MR_TRACE_WAITS || t->waits[i].cycles > t->waits[most].cycles))
                most = i;
        said[most] = true;
        printf("%s %s %.2f %%", n > 0 ? "," : "", t->waits[most].name,
               100 * (double)t->waits[most].cycles / (double)(t->to - t->from));
    }
    printf("%s\n", t->n_waits == 0 ? " nothing" : "");
}

static void print(const struct trace_args *a, const struct mr_trace *t, const char *title)
{
    printf("%s\n", title);
    printf("  cycles      %llu\n", (unsigned long long)t->cycles);
    if (t->from > 0 || t->to < t->cycles)
        printf("  window      cycles %llu to %llu of %llu\n", (unsigned long long)t->from,
               (unsigned long long)t->to, (unsigned long long)t->cycles);
    for (unsigned l = 0; l < mr_trace_lanes(t); l++)
        if (mr_trace_is_unit(t, l))
            print_lane(t, l);
    if (t->train)
        print_waits(t);
    if (a->fst)
        printf("  waves       'gtkwave %s %s' shows the main blocks\n", a->fst, a->view.path);
    printf("  the whole run's sums are those of the device's counters\n");
    if (t->resolution)
        printf("  intervals shorter than %llu cycles were merged (--max-events %ld); sums are "
               "exact\n",
               (unsigned long long)t->resolution, a->max_events);
}

int trace_end_outputs(struct trace_args *a, const struct mr_trace *t, const char *title, int status)
{
    if (status == EXIT_OK)
        status = write_outputs(a, t, title);
    if (status == EXIT_OK)
        status = commit_outputs(a);
    if (status == EXIT_OK && !a->c.quiet)
        print(a, t, title);
    mr_output_file_abandon(&a->json.to);
    mr_output_file_abandon(&a->svg.to);
    mr_output_file_abandon(&a->view.to);
    mr_output_abandon(&a->waves);
    return status;
}
