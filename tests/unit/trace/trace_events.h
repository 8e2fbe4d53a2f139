// SPDX-License-Identifier: Apache-2.0
// Judges a file in Chrome's trace event format as `millrace trace --json` writes it: names for all
// tracks, slices of a track in order and not overlapping, counters in order, and each unit's sums
// those of the device's counters in the same file. Returns NULL or what is wrong.
#ifndef MILLRACE_TESTS_UNIT_TRACE_EVENTS_H
#define MILLRACE_TESTS_UNIT_TRACE_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { EVENT_TRACKS = 64 };

struct event_track {
    bool named;
    json_int_t end; // of the last slice
};

static char event_fault[200];

static inline json_int_t event_int(const json_t *e, const char *key)
{
    return json_integer_value(json_object_get(e, key));
}

static inline const char *event_text(const json_t *e, const char *key)
{
    const char *s = json_string_value(json_object_get(e, key));
    return s ? s : "";
}

// Cycles of a unit's state: slices of that name, and what mixed ones have of it.
static inline json_int_t event_sum(const json_t *events, int pid, int tid, const char *state)
{
    size_t i;
    json_t *e;
    json_int_t sum = 0;
    json_array_foreach(events, i, e)
    {
        if (strcmp(event_text(e, "ph"), "X") != 0 || event_int(e, "pid") != pid ||
            event_int(e, "tid") != tid)
            continue;
        if (strcmp(event_text(e, "name"), state) == 0)
            sum += event_int(e, "dur");
        else if (strcmp(event_text(e, "name"), "mixed") == 0)
            sum += event_int(json_object_get(e, "args"), state);
    }
    return sum;
}

// Cycles from issue to done of the commands with an opcode, and how many there are.
static inline json_int_t event_commands(const json_t *file, const char *opcode, int *n)
{
    size_t i;
    json_t *e;
    json_int_t sum = 0;
    *n = 0;
    json_array_foreach(json_object_get(file, "traceEvents"), i, e)
    {
        const json_t *args = json_object_get(e, "args");
        if (strcmp(event_text(args, "opcode"), opcode) != 0)
            continue;
        sum += event_int(args, "done") - event_int(args, "issue");
        ++*n;
    }
    return sum;
}

static inline const char *slice_fault(const json_t *e, struct event_track *track, json_int_t from,
                                      json_int_t to)
{
    json_int_t ts = event_int(e, "ts"), dur = event_int(e, "dur"), parts = 0;
    if (dur < 1 || ts < from || ts + dur > to)
        return "a slice lies outside the window or is empty";
    if (!track->named)
        return "a track has no name";
    if (ts < track->end)
        return "two slices of a track overlap, or are out of order";
    track->end = ts + dur;
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(e, "args"), key, value)
    {
        if (strcmp(event_text(e, "name"), "mixed") == 0 && strcmp(key, "command") != 0)
            parts += json_integer_value(value);
    }
    return parts > dur ? "a mixed slice has more than its cycles" : NULL;
}

static inline const char *events_fault(const json_t *file)
{
    static const struct {
        int pid, tid;
        const char *state, *counter;
    } sums[] = {
        {1, 1, "busy", "array_busy"},      {1, 1, "weights", "array_weights"},
        {1, 1, "drain", "array_drain"},    {1, 2, "busy", "vector_busy"},
        {1, 3, "busy", "attention_busy"},  {1, 3, "kv", "attention_kv"},
        {1, 4, "busy", "writer_busy"},     {1, 5, "beat", "host_beats"},
        {1, 6, "beat", "write_beats"},     {2, 1, "issue", "reader_issue"},
        {2, 1, "memory", "reader_memory"}, {2, 1, "credit", "reader_credit"},
        {1, 12, "busy", "grad_alone"},     {1, 13, "busy", "grad_writes"}, // of training
        {1, 14, "busy", "act_loads"},      {1, 15, "busy", "stash_puts"},
        {1, 16, "busy", "move_busy"},      {1, 17, "busy", "rows_busy"},
    };
    const json_t *events = json_object_get(file, "traceEvents");
    const json_t *about = json_object_get(file, "otherData");
    const json_t *counters = json_object_get(about, "counters");
    json_int_t from = event_int(about, "from"), to = event_int(about, "to"), last = 0;
    static struct event_track track[4][EVENT_TRACKS];
    char series[64] = "";
    size_t i;
    json_t *e;
    memset(track, 0, sizeof track);
    if (!json_is_array(events) || !counters || from >= to)
        return "no events, no counters or no window";
    json_array_foreach(events, i, e)
    {
        const char *ph = event_text(e, "ph"), *name = event_text(e, "name"), *fault = NULL;
        json_int_t pid = event_int(e, "pid"), tid = event_int(e, "tid");
        if (pid < 1 || pid > 3 || tid < 0 || tid >= EVENT_TRACKS || !*name)
            return "an event without name, or of an unknown track";
        if (strcmp(ph, "M") == 0) {
            track[pid][tid].named |= strcmp(name, "thread_name") == 0;
        } else if (strcmp(ph, "X") == 0) {
            fault = slice_fault(e, &track[pid][tid], from, to);
        } else if (strcmp(ph, "C") == 0) {
            if (strcmp(series, name) == 0 && event_int(e, "ts") <= last)
                return "a counter's samples are out of order";
            snprintf(series, sizeof series, "%s", name);
            last = event_int(e, "ts");
        } else {
            return "an event of an unknown kind";
        }
        if (fault) {
            snprintf(event_fault, sizeof event_fault, "%s: track %d/%d, %s at %lld", fault,
                     (int)pid, (int)tid, name, (long long)event_int(e, "ts"));
            return event_fault;
        }
    }
    if (from > 0 || to < event_int(about, "cycles"))
        return NULL; // of a part, there are no counters
    for (i = 0; i < sizeof sums / sizeof *sums; i++) {
        json_int_t here = event_sum(events, sums[i].pid, sums[i].tid, sums[i].state);
        json_int_t device = event_int(counters, sums[i].counter);
        if (here != device) {
            snprintf(event_fault, sizeof event_fault, "%s: %lld in the slices, %lld counted",
                     sums[i].counter, (long long)here, (long long)device);
            return event_fault;
        }
    }
    return NULL;
}

#endif
