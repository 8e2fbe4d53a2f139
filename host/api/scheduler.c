// SPDX-License-Identifier: Apache-2.0
// Continuous batching: each device step carries one token of every running request, and prompt
// tokens of those that have joined in the rest of a device run.
#include <stdlib.h>
#include <string.h>

#include "api/task.h"

struct mr_scheduler {
    struct mr_session *session;
    int prefill_rows;
    struct mr_task_tools tools;
    struct mr_task *first, *last; // waiting
    struct mr_task **running;     // [max_seqs], the oldest first
    struct mr_scheduler_info info;
    bool sweep; // some of the waiting have been cancelled
    uint64_t last_id;
    struct mr_row *rows;
    float *logits;
    size_t row_capacity, logit_capacity; // in rows
};

int mr_scheduler_open(struct mr_scheduler **scheduler, struct mr_session *session,
                      const struct mr_scheduler_options *opt, struct mr_error *err)
{
    *scheduler = NULL;
    if (opt && opt->prefill_rows < 0)
        return mr_fail(err, MR_ERR_USAGE, "prefill_rows must not be negative");
    struct mr_scheduler *s = calloc(1, sizeof *s);
    if (!s)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a scheduler");
    s->session = session;
    s->prefill_rows = opt ? opt->prefill_rows : 0;
    s->running = calloc((size_t)session->max_seqs, sizeof(struct mr_task *));
    int rc = s->running
                 ? mr_task_tools_open(&s->tools, session, err)
                 : mr_fail(err, MR_ERR_MEMORY, "no memory for %d sequences", session->max_seqs);
    if (rc < 0) {
        mr_scheduler_close(s);
        return rc;
    }
    *scheduler = s;
    return 0;
}

void mr_scheduler_get_info(const struct mr_scheduler *scheduler, struct mr_scheduler_info *info)
{
    *info = scheduler->info;
}

// ---- the queue ----

int mr_scheduler_submit(struct mr_scheduler *s, const struct mr_request *request, uint64_t *id,
                        struct mr_error *err)
{
    struct mr_task *t;
    if (request->own_seq &&
        (mr_session_seq_length(s->session, request->seq) != (int)request->resident ||
         request->resident >= request->prompt_count))
        return mr_fail(err, MR_ERR_USAGE,
                       "sequence %d does not have the first %zu of %zu tokens of the prompt",
                       request->seq, request->resident, request->prompt_count);
    int rc = mr_task_open(&t, &s->tools, request, err);
    if (rc < 0)
        return rc;
    t->id = ++s->last_id;
    if (id)
        *id = t->id;
    *(s->last ? &s->last->next : &s->first) = t;
    s->last = t;
    s->info.waiting++;
    return 0;
}

static struct mr_task *find(const struct mr_scheduler *s, uint64_t id)
{
    for (int i = 0; i < s->info.running; i++)
        if (s->running[i]->id == id)
            return s->running[i];
    struct mr_task *t = s->first;
    while (t && t->id != id)
        t = t->next;
    return t;
}

void mr_scheduler_cancel(struct mr_scheduler *scheduler, uint64_t id)
{
    struct mr_task *t = find(scheduler, id);
    if (!t)
        return;
    mr_task_end(t, MR_FINISH_CANCELLED);
    scheduler->sweep |= t->seq < 0;
}

static void release(struct mr_task *t)
{
    mr_task_report(t);
    mr_task_close(t);
}

static void retire_running(struct mr_scheduler *s)
{
    for (int i = 0; i < s->info.running;) {
        struct mr_task *t = s->running[i];
        if (!t->ended) {
            i++;
            continue;
        }
        size_t behind = (size_t)(--s->info.running - i);
        memmove(s->running + i, s->running + i + 1, behind * sizeof(struct mr_task *));
        if (!t->request.own_seq)
            mr_session_seq_free(s->session, t->seq);
        release(t);
    }
}

static struct mr_task *take_first(struct mr_scheduler *s)
{
    struct mr_task *t = s->first;
    s->first = t->next;
    if (!s->first)
        s->last = NULL;
    s->info.waiting--;
    return t;
}

// Cancelled requests leave the queue wherever they stand: a full queue is to shrink.
static void retire_waiting(struct mr_scheduler *s)
{
    struct mr_task *kept = NULL, *last = NULL;
    if (!s->sweep)
        return;
    s->sweep = false;
    // A callback may submit or cancel, so each one is unlinked before its turn.
    for (int n = s->info.waiting; n > 0; n--) {
        struct mr_task *t = take_first(s);
        t->next = NULL;
        if (t->ended) {
            release(t);
            continue;
        }
        *(last ? &last->next : &kept) = t;
        last = t;
        s->info.waiting++;
    }
    if (!last)
        return;
    last->next = s->first; // what callbacks have added
    s->first = kept;
    if (!s->last)
        s->last = last;
}

static int admit(struct mr_scheduler *s, struct mr_error *err)
{
    while (s->first && s->info.running < s->session->max_seqs) {
        const struct mr_request *r = &s->first->request;
        int seq = r->seq;
        int rc = r->own_seq ? 0 : mr_session_seq_new(s->session, &seq, err);
        if (rc < 0 && s->info.running > 0)
            return 0; // the caller has some of the sequences: wait for one of ours
        if (rc < 0)
            return rc;
        struct mr_task *t = take_first(s);
        t->seq = seq;
        s->running[s->info.running++] = t;
        mr_task_begin(t, &s->tools);
    }
    return 0;
}

void mr_scheduler_close(struct mr_scheduler *scheduler)
{
    struct mr_scheduler *s = scheduler;
    if (!s)
        return;
    while (s->info.running > 0 || s->first) { // `done` may submit once more
        for (struct mr_task *t = s->first; t; t = t->next)
            mr_task_end(t, MR_FINISH_CANCELLED);
        for (int i = 0; i < s->info.running; i++)
            mr_task_end(s->running[i], MR_FINISH_CANCELLED);
        s->sweep = true;
        retire_running(s);
        retire_waiting(s);
    }
    mr_task_tools_close(&s->tools);
    free(s->running);
    free(s->rows);
    free(s->logits);
    free(s);
}

// ---- a step ----

static bool reading(const struct mr_task *t)
{
    return t->count == 0;
}

// How many rows each running request gets: new tokens first, then prompts, in equal shares and what
// is left over to the oldest, until the device run is full.
static int share_rows(struct mr_scheduler *s)
{
    int chunk = s->session->backend->chunk, total = 0, readers = 0;
    for (int i = 0; i < s->info.running; i++) {
        struct mr_task *t = s->running[i];
        t->rows = reading(t) ? 0 : 1;
        total += t->rows;
        readers += reading(t);
    }
    // At least a quarter of a run is for prompts: they must not wait until others end.
    int room = chunk - total % chunk;
    room = room < (chunk + 3) / 4 ? room + chunk : room;
    room = s->prefill_rows > 0 && s->prefill_rows < room ? s->prefill_rows : room;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0, left = readers; i < s->info.running && room > 0; i++) {
            struct mr_task *t = s->running[i];
            if (!reading(t))
                continue;
            int share = pass == 0 ? (room + left - 1) / left : room;
            size_t pending = mr_task_pending(t) - (size_t)t->rows;
            int more = pending < (size_t)share ? (int)pending : share;
            t->rows += more;
            room -= more;
            total += more;
            left--;
        }
    return total;
}

static int reserve(struct mr_scheduler *s, size_t rows, size_t wanted, struct mr_error *err)
{
    size_t vocab = (size_t)s->tools.config->vocab_size;
    if (rows > s->row_capacity) {
        struct mr_row *r = realloc(s->rows, rows * sizeof *r);
        if (!r)
            return mr_fail(err, MR_ERR_MEMORY, "no memory for a step of %zu rows", rows);
        s->rows = r;
        s->row_capacity = rows;
    }
    if (wanted > s->logit_capacity) {
        float *f = realloc(s->logits, wanted * vocab * sizeof *f);
        if (!f)
            return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu rows of logits", wanted);
        s->logits = f;
        s->logit_capacity = wanted;
    }
    return 0;
}

static int run_step(struct mr_scheduler *s, struct mr_error *err)
{
    int total = share_rows(s);
    size_t wanted = 0, n = 0;
    s->info.step_rows = total;
    s->info.step_requests = 0;
    for (int i = 0; i < s->info.running; i++)
        for (int k = 0; k < s->running[i]->rows; k++)
            wanted += mr_task_wants(s->running[i], (size_t)k);
    int rc = reserve(s, (size_t)total, wanted, err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < s->info.running; i++) {
        const struct mr_task *t = s->running[i];
        s->info.step_requests += t->rows > 0;
        for (size_t k = 0; k < (size_t)t->rows; k++)
            s->rows[n++] = (struct mr_row){t->seq, t->tokens[t->fed + k], mr_task_wants(t, k)};
    }
    rc = mr_session_step(s->session, s->rows, total, s->logits, err);
    float *logits = s->logits;
    for (int i = 0; rc == 0 && i < s->info.running; i++)
        logits = mr_task_advance(s->running[i], &s->tools, logits);
    return rc;
}

int mr_scheduler_step(struct mr_scheduler *scheduler, struct mr_error *err)
{
    struct mr_scheduler *s = scheduler;
    struct mr_error local = {0};
    retire_running(s);
    retire_waiting(s);
    int rc = admit(s, &local);
    retire_running(s); // those that needed no device
    if (rc == 0 && s->info.running > 0)
        rc = run_step(s, &local);
    for (int i = 0; rc < 0 && i < s->info.running; i++)
        mr_task_fail(s->running[i], &local);
    retire_running(s);
    if (rc < 0 && err)
        *err = local;
    return rc < 0 ? rc : s->info.running > 0 || s->first != NULL;
}
