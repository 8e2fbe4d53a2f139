// SPDX-License-Identifier: Apache-2.0
#include "trace/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "common/grow.h"

enum { LONGEST = 4 }; // a merged slice is closed at this many times the resolution

int mr_trace_state(const struct mr_trace_slice *s)
{
    for (int i = 0; i < MR_TRACE_STATES; i++)
        if (s->in[i])
            return s->in[i] == s->cycles ? i : -1;
    return -1;
}

// ---- slices: bounded by merging -----------------------------------------------------------------

// Two neighbours of which this is true become one; so at least every second slice is long.
static bool mergeable(const struct mr_trace *t, const struct mr_trace_slice *s)
{
    uint64_t limit = mr_trace_state(s) >= 0 ? t->resolution : LONGEST * t->resolution;
    return s->cycles < limit;
}

static void append(const struct mr_trace *t, struct mr_trace_lane *l,
                   const struct mr_trace_slice *s)
{
    if (l->count == 0 || !mergeable(t, &l->slices[l->count - 1]) || !mergeable(t, s)) {
        l->slices[l->count++] = *s;
        return;
    }
    struct mr_trace_slice *last = &l->slices[l->count - 1];
    last->cycles += s->cycles;
    last->detail |= s->detail;
    for (int i = 0; i < MR_TRACE_STATES; i++)
        last->in[i] += s->in[i];
}

static size_t slices(const struct mr_trace *t)
{
    size_t n = 0;
    for (unsigned i = 0; i < MR_TRACE_LANES; i++)
        n += t->lane[i].count;
    return n;
}

static void coarsen(struct mr_trace *t)
{
    t->resolution = t->resolution ? 2 * t->resolution : 4;
    for (unsigned i = 0; i < MR_TRACE_LANES; i++) {
        struct mr_trace_lane *l = &t->lane[i];
        size_t n = l->count;
        l->count = 0;
        for (size_t k = 0; k < n; k++) {
            struct mr_trace_slice s = l->slices[k]; // append() writes at or before k
            append(t, l, &s);
        }
    }
}

// The array is idle, and the head of its queue waits for the first of the missing semaphores.
static void add_wait(struct mr_trace *t, unsigned missing, uint64_t cycles)
{
    const char *name = t->semaphore[__builtin_ctz(missing)];
    unsigned i = 0;
    while (i < t->n_waits && strcmp(t->waits[i].name, name) != 0)
        i++;
    if (i == MR_TRACE_WAITS)
        return;
    if (i == t->n_waits)
        memcpy(t->waits[t->n_waits++].name, name, sizeof t->waits[0].name);
    t->waits[i].cycles += cycles;
}

static void add_span(struct mr_trace *t, const struct mr_sim_span *span)
{
    struct mr_trace_lane *l = &t->lane[span->lane];
    int state = span->state < MR_TRACE_NONE ? span->state : MR_TRACE_NONE;
    l->total[state] += span->cycles;
    uint64_t from = t->base + span->from, end = from + span->cycles;
    from = from > t->from ? from : t->from;
    end = end < t->to ? end : t->to;
    if (from >= end)
        return;
    if (t->train && span->lane == MR_LANE_ARRAY && span->detail)
        add_wait(t, span->detail, end - from);
    struct mr_trace_slice s = {.from = from, .cycles = end - from, .detail = span->detail};
    s.in[state] = s.cycles;
    if (mr_grow(&l->slices, l->count, 1, sizeof *l->slices, NULL) < 0) {
        t->status = MR_ERR_MEMORY;
        return;
    }
    append(t, l, &s);
}

static void on_spans(void *user, const struct mr_sim_span *spans, size_t n)
{
    struct mr_trace *t = user;
    if (t->train && !t->keep)
        return;
    for (size_t i = 0; i < n && t->status == 0; i++)
        add_span(t, &spans[i]);
    // A lane has at least one slice, and a bound below that would never be reached.
    while (slices(t) > t->max_slices && t->resolution <= t->base + t->cycles + spans[n - 1].from)
        coarsen(t);
}

// ---- commands, and the window of a layer --------------------------------------------------------

bool mr_trace_in_layer(const struct mr_trace *t, const struct mr_trace_command *c)
{
    return t->layer >= 0 && c->layer == t->layer && c->queue != MR_QUEUE_READER &&
           c->opcode != MR_OP_PM_LOAD;
}

static void on_command(void *user, const struct mr_sim_event *e)
{
    struct mr_trace *t = user;
    if ((t->train && !t->keep) || t->first + e->index >= t->n_commands)
        return;
    struct mr_trace_command *c = &t->commands[t->first + e->index];
    bool mine = mr_trace_in_layer(t, c);
    if (e->done) {
        c->done = t->base + e->cycle + 1; // that cycle is its last
        c->finished = true;
        if (mine && --t->to_come == 0)
            t->to = c->done;
    } else {
        c->issue = t->base + e->cycle;
        c->issued = true;
        if (mine && t->from == UINT64_MAX)
            t->from = e->cycle;
    }
}

// ---- sums ---------------------------------------------------------------------------------------

static void add_bin(struct mr_trace_bin *to, const struct mr_trace_bin *b)
{
    to->cycles += b->cycles;
    to->mac_blocks += b->mac_blocks;
    to->grad_blocks += b->grad_blocks;
    to->host_read += b->host_read;
    to->host_write += b->host_write;
    for (int c = 0; c < MR_MEM_MAX_CHANNELS; c++) {
        to->weights[c] += b->weights[c];
        to->kv[c] += b->kv[c];
        to->stash[c] += b->stash[c];
    }
}

static void on_sample(void *user, const struct mr_sim_sample *s)
{
    struct mr_trace *t = user;
    struct mr_trace_bin b = {.from = t->base + s->from,
                             .cycles = s->cycles,
                             .mac_blocks = s->mac_blocks,
                             .grad_blocks = s->grad_blocks,
                             .host_read = s->host_read,
                             .host_write = s->host_write};
    if (t->train && !t->keep)
        return;
    for (int c = 0; c < MR_MEM_MAX_CHANNELS; c++) {
        b.weights[c] = s->weights[c];
        b.kv[c] = s->kv[c];
        b.stash[c] = s->stash[c];
    }
    add_bin(&t->total, &b);
    if (b.from + b.cycles <= t->from || b.from >= t->to)
        return;
    // All bins but the last are equally long: twice as long each time there is no room.
    if (t->bins > 1 && t->bin[t->bins - 1].cycles < t->bin[0].cycles) {
        add_bin(&t->bin[t->bins - 1], &b);
        return;
    }
    if (t->bins == MR_TRACE_BINS) {
        for (unsigned i = 0; i < MR_TRACE_BINS / 2; i++) {
            t->bin[i] = t->bin[2 * i];
            add_bin(&t->bin[i], &t->bin[2 * i + 1]);
        }
        t->bins /= 2;
    }
    t->bin[t->bins++] = b;
}

static void on_end(void *user, uint64_t cycles)
{
    struct mr_trace *t = user;
    if (!t->train || t->keep)
        t->cycles = t->base + cycles;
}

void mr_trace_end(struct mr_trace *t)
{
    t->to = t->to < t->cycles ? t->to : t->cycles;
    t->from = t->from < t->to ? t->from : t->to;
}

struct mr_sim_timeline mr_trace_listener(struct mr_trace *t)
{
    return (struct mr_sim_timeline){t, on_spans, on_command, on_sample, on_end};
}

// ---- after the run ------------------------------------------------------------------------------

static int same(const char *what, const char *state, uint64_t here, uint64_t device,
                struct mr_error *err)
{
    return here == device
               ? 0
               : mr_fail(err, MR_ERR_DIFF,
                         "the timeline is not what the device counted: %s %s: %llu here, %llu "
                         "there; please report this",
                         what, state, (unsigned long long)here, (unsigned long long)device);
}

int mr_trace_compare(const struct mr_trace *t, struct mr_error *err)
{
    const uint64_t *n = t->counters;
    uint64_t weights = 0, kv = 0, stash = 0;
    for (unsigned c = 0; c < t->channels; c++) {
        weights += t->total.weights[c];
        kv += t->total.kv[c];
        stash += t->total.stash[c];
    }
    int rc = same("run", "cycles", t->cycles, n[MR_CNT_CYCLES], err);
    for (unsigned l = 0; rc == 0 && l <= MR_LANE_READER; l++) { // of the readers, channel 0
        const struct mr_lane_kind *k = mr_lane_kind(l);
        for (int s = 0; rc == 0 && k->counter >= 0 && s < k->states; s++)
            rc = same(k->name, k->state[s], t->lane[l].total[s], n[k->counter + s], err);
    }
    if (rc == 0)
        rc = same("weight", "beats", weights + stash, n[MR_CNT_WEIGHT_BEATS], err);
    if (rc == 0)
        rc = same("stash", "beats", stash, n[MR_CNT_STASH_BEATS], err);
    if (rc == 0)
        rc = same("GRAD's", "block products", t->total.grad_blocks, n[MR_CNT_GRAD_BLOCKS], err);
    if (rc == 0)
        rc = same("KV", "beats", kv, n[MR_CNT_KV_BEATS], err);
    if (rc == 0)
        rc = same("host read", "beats", t->total.host_read, n[MR_CNT_HOST_BEATS], err);
    if (rc == 0)
        rc = same("host write", "beats", t->total.host_write, n[MR_CNT_WRITE_BEATS], err);
    return rc ? rc
              : same("array", "block products", t->total.mac_blocks, n[MR_CNT_MAC_BLOCKS], err);
}

void mr_trace_window_total(const struct mr_trace *t, unsigned lane, uint64_t in[MR_TRACE_STATES])
{
    for (int s = 0; s < MR_TRACE_STATES; s++)
        in[s] = 0;
    for (size_t i = 0; i < t->lane[lane].count; i++)
        for (int s = 0; s < MR_TRACE_STATES; s++)
            in[s] += t->lane[lane].slices[i].in[s];
}

void mr_trace_free(struct mr_trace *t)
{
    for (unsigned i = 0; i < MR_TRACE_LANES; i++)
        free(t->lane[i].slices);
    free(t->commands);
    free(t->marks);
    *t = (struct mr_trace){0};
}
