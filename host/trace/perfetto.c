// SPDX-License-Identifier: Apache-2.0
// Events are built and written one at a time: all of them as one JSON value would be a hundred
// times the file.
#include "trace/timeline.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "millrace.h"
#include "trace/commands.h"

// Processes are the headings of the display; threads its tracks. A thread number of 0 is a
// process's counters.
enum { UNITS = 1, CHANNELS, COMMANDS };
enum { TRACKS = 8 }; // most commands of a queue at the same time, then its head's waits

struct writer {
    const struct mr_trace *t;
    FILE *out;
    bool first, failed;
};

static json_int_t number(uint64_t n)
{
    return (json_int_t)n;
}

// Takes the event. NULL (no memory) fails the file as a failed write does.
static void put(struct writer *w, json_t *event)
{
    if (!event || fputs(w->first ? "\n" : ",\n", w->out) < 0 ||
        json_dumpf(event, w->out, JSON_COMPACT) < 0)
        w->failed = true;
    w->first = false;
    json_decref(event);
}

static void name(struct writer *w, const char *what, int pid, unsigned tid, const char *text)
{
    put(w, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", what, "pid", pid, "tid",
                     (int)tid, "args", "name", text));
    if (strcmp(what, "thread_name") == 0)
        put(w, json_pack("{s:s, s:s, s:i, s:i, s:{s:i}}", "ph", "M", "name", "thread_sort_index",
                         "pid", pid, "tid", (int)tid, "args", "sort_index", (int)tid));
}

static void slice(struct writer *w, int pid, unsigned tid, const char *text, uint64_t from,
                  uint64_t cycles, json_t *args)
{
    put(w, json_pack("{s:s, s:i, s:i, s:s, s:I, s:I, s:o}", "ph", "X", "pid", pid, "tid", (int)tid,
                     "name", text, "ts", number(from), "dur", number(cycles), "args", args));
}

// ---- units and channels -------------------------------------------------------------------------

static unsigned queue_of(unsigned lane)
{
    static const unsigned queues[] = {MR_QUEUE_ARRAY, MR_QUEUE_VECTOR, MR_QUEUE_ATTENTION,
                                      MR_QUEUE_WRITER};
    return lane <= MR_LANE_WRITER ? queues[lane] : MR_QUEUES;
}

// The first command of the queue, from *at on, that is not done at that cycle. One that was never
// issued is done at 0.
static const struct mr_trace_command *running(const struct mr_trace *t, unsigned queue,
                                              uint64_t cycle, unsigned *at)
{
    while (*at < t->n_commands &&
           (t->commands[*at].queue != queue || t->commands[*at].done <= cycle))
        ++*at;
    const struct mr_trace_command *c = &t->commands[*at];
    return *at < t->n_commands && c->issue <= cycle ? c : NULL;
}

static json_t *shares(const struct mr_lane_kind *kind, const struct mr_trace_slice *s)
{
    json_t *args = json_object();
    for (int i = 0; i < kind->states; i++)
        if (s->in[i])
            json_object_set_new(args, kind->state[i], json_integer(number(s->in[i])));
    return args;
}

static void unit(struct writer *w, unsigned lane)
{
    const struct mr_lane_kind *kind = mr_lane_kind(lane);
    unsigned at = 0;
    bool channel = lane >= MR_LANE_READER;
    for (size_t i = 0; i < w->t->lane[lane].count; i++) {
        const struct mr_trace_slice *s = &w->t->lane[lane].slices[i];
        int state = mr_trace_state(s);
        if (state == kind->idle || state == MR_TRACE_NONE)
            continue; // an empty track says the same
        json_t *args = state < 0 ? shares(kind, s) : json_object();
        const struct mr_trace_command *c =
            queue_of(lane) < MR_QUEUES ? running(w->t, queue_of(lane), s->from, &at) : NULL;
        if (c)
            json_object_set_new(args, "command", json_integer(c - w->t->commands));
        slice(w, channel ? CHANNELS : UNITS, channel ? lane - MR_LANE_READER + 1 : lane + 1,
              state < 0 ? "mixed" : kind->state[state], s->from, s->cycles, args);
    }
}

// ---- commands -----------------------------------------------------------------------------------

static json_t *command_args(const struct mr_trace *t, const struct mr_trace_command *c)
{
    json_t *args =
        json_pack("{s:I, s:s, s:I, s:I}", "command", (json_int_t)(c - t->commands), "opcode",
                  mr_opcode_name(c->opcode), "issue", number(c->issue), "done", number(c->done));
    if (args && c->layer >= 0)
        json_object_set_new(args, "layer", json_integer(c->layer));
    if (args && c->k)
        json_object_update_new(args, json_pack("{s:i, s:i}", "k", c->k, "columns", c->cols));
    if (args && c->beats)
        json_object_set_new(args, "beats a channel", json_integer(c->beats));
    return args;
}

static void commands(struct writer *w, unsigned queue)
{
    const struct mr_trace *t = w->t;
    uint64_t end[TRACKS] = {0};
    unsigned named = 0;
    char text[64];
    for (unsigned i = 0; i < t->n_commands; i++) {
        const struct mr_trace_command *c = &t->commands[i];
        if (c->queue != queue || !c->finished || c->done <= t->from || c->issue >= t->to)
            continue;
        unsigned k = 0; // commands of a queue may overlap, slices of a track may not
        while (k < TRACKS - 1 && end[k] > c->issue)
            k++;
        end[k] = c->done;
        for (; named <= k; named++)
            name(w, "thread_name", COMMANDS, 10 * queue + 1 + named,
                 mr_lane_name(MR_LANE_QUEUE + queue, text, sizeof text));
        if (c->layer >= 0)
            snprintf(text, sizeof text, "layer %d %s", c->layer, c->label);
        else
            snprintf(text, sizeof text, "%s", c->label);
        uint64_t from = c->issue > t->from ? c->issue : t->from;
        uint64_t to = c->done < t->to ? c->done : t->to;
        slice(w, COMMANDS, 10 * queue + 1 + k, text, from, to - from, command_args(t, c));
    }
}

static void waits(struct writer *w, unsigned queue)
{
    const struct mr_trace_lane *l = &w->t->lane[MR_LANE_QUEUE + queue];
    char names[160];
    for (size_t i = 0; i < l->count; i++) {
        const struct mr_trace_slice *s = &l->slices[i];
        if (s->in[MR_HEAD_SEMAPHORE] == 0)
            continue;
        slice(w, COMMANDS, 10 * queue + 1 + TRACKS,
              mr_trace_state(s) < 0 ? "mixed" : "waits for a semaphore", s->from, s->cycles,
              json_pack("{s:s, s:I}", "from",
                        mr_semaphore_names(w->t, s->detail, names, sizeof names), "cycles",
                        number(s->in[MR_HEAD_SEMAPHORE])));
    }
}

// ---- counters -----------------------------------------------------------------------------------

static double rate(uint64_t beats, const struct mr_trace_bin *b)
{
    return 1000 * (double)beats / (double)b->cycles;
}

static void sums(struct writer *w)
{
    const struct mr_trace *t = w->t;
    char text[48];
    for (unsigned c = 0; c < t->channels; c++) {
        snprintf(text, sizeof text, "channel %u: beats in 1000 cycles", c);
        for (unsigned i = 0; i < t->bins; i++) {
            const struct mr_trace_bin *b = &t->bin[i];
            json_t *args =
                json_pack("{s:f, s:f}", "weights", rate(b->weights[c], b), "KV", rate(b->kv[c], b));
            if (args && t->train)
                json_object_set_new(args, "stash", json_real(rate(b->stash[c], b)));
            put(w, json_pack("{s:s, s:i, s:s, s:I, s:o}", "ph", "C", "pid", CHANNELS, "name", text,
                             "ts", number(b->from > t->from ? b->from : t->from), "args", args));
        }
    }
    for (unsigned i = 0; i < t->bins; i++) {
        const struct mr_trace_bin *b = &t->bin[i];
        json_int_t ts = number(b->from > t->from ? b->from : t->from);
        double blocks = (double)b->cycles * t->rows * t->columns;
        put(w, json_pack("{s:s, s:i, s:s, s:I, s:{s:f, s:f}}", "ph", "C", "pid", UNITS, "name",
                         "host port: beats in 1000 cycles", "ts", ts, "args", "read",
                         rate(b->host_read, b), "written", rate(b->host_write, b)));
        put(w, json_pack("{s:s, s:i, s:s, s:I, s:{s:f}}", "ph", "C", "pid", UNITS, "name",
                         "MAC utilisation, percent", "ts", ts, "args", "array",
                         100 * (double)b->mac_blocks / blocks));
    }
}

// ---- the file -----------------------------------------------------------------------------------

static void names(struct writer *w)
{
    static const char *const process[] = {"units", "memory channels", "commands"};
    char text[64], lane[32];
    for (int p = UNITS; p <= COMMANDS; p++) {
        name(w, "process_name", p, 0, process[p - 1]);
        put(w, json_pack("{s:s, s:s, s:i, s:i, s:{s:i}}", "ph", "M", "name", "process_sort_index",
                         "pid", p, "tid", 0, "args", "sort_index", p));
    }
    for (unsigned l = 0; l < mr_trace_lanes(w->t); l++) {
        mr_lane_name(l, lane, sizeof lane);
        if (l >= MR_LANE_READER) {
            name(w, "thread_name", CHANNELS, l - MR_LANE_READER + 1, lane);
        } else if (mr_trace_is_unit(w->t, l)) {
            name(w, "thread_name", UNITS, l + 1, lane);
        } else if (l < MR_LANE_TRAIN) {
            unsigned tid = 10 * (l - MR_LANE_QUEUE) + 1;
            snprintf(text, sizeof text, "%s: waits", lane);
            name(w, "thread_name", COMMANDS, tid + TRACKS, text);
        }
    }
}

static json_t *about(const struct mr_trace *t, const char *title)
{
    char merged[240] = "no intervals were merged";
    if (t->resolution)
        snprintf(merged, sizeof merged,
                 "neighbouring intervals shorter than %llu cycles were merged into slices named "
                 "'mixed', whose args have the cycles of each state; sums are exact",
                 (unsigned long long)t->resolution);
    json_t *counters = json_object(), *meaning = json_object();
#define X(i, name) json_object_set_new(counters, name, json_integer(number(t->counters[i])));
    MR_COUNTER_LIST(X)
    if (t->train) {
        MR_TRAIN_COUNTER_LIST(X)
    }
#undef X
    for (unsigned l = 0; l <= MR_LANE_READER; l++) {
        const struct mr_lane_kind *k = mr_lane_kind(l);
        char text[64];
        for (int s = 0; s < k->states; s++) {
            snprintf(text, sizeof text, "%s %s", k->name, k->state[s]);
            json_object_set_new(meaning, text, json_string(k->means[s]));
        }
    }
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:i, s:I, s:s, s:o, s:o}", "title", title, "time",
                     "1 us in this file is 1 cycle of the device; cycle 0 is the run's first",
                     "cycles", number(t->cycles), "from", number(t->from), "to", number(t->to),
                     "clock_khz", (int)t->clock_khz, "resolution", number(t->resolution), "merged",
                     merged, "counters", counters, "states", meaning);
}

int mr_trace_json(const struct mr_trace *t, const char *title, FILE *out, struct mr_error *err)
{
    struct writer w = {t, out, true, false};
    errno = 0;
    json_t *other = about(t, title);
    w.failed = !other || fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":", out) < 0 ||
               json_dumpf(other, out, JSON_COMPACT) < 0 || fputs(",\"traceEvents\":[", out) < 0;
    json_decref(other);
    names(&w);
    for (unsigned l = 0; l < mr_trace_lanes(t); l++)
        if (mr_trace_is_unit(w.t, l))
            unit(&w, l);
    for (unsigned q = 0; q < MR_SIM_QUEUES; q++) {
        commands(&w, q);
        waits(&w, q);
    }
    sums(&w);
    if (fputs("\n]}\n", out) < 0 || w.failed || fflush(out) != 0)
        return mr_fail(err, MR_ERR_IO, "the JSON cannot be written: %s",
                       errno ? strerror(errno) : "no memory");
    return 0;
}
