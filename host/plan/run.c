// SPDX-License-Identifier: Apache-2.0
// The walk: dispatch, and memory channel 0, which all units meet at. The other channels
// move in step with it.
#include "plan/job.h"

#include <stdlib.h>

#include "common/error.h"
#include "plan/walk.h"

// ---- commands -----------------------------------------------------------------------------------

// Deals out what has been fetched; a full queue holds up all behind it.
static bool dispatch(struct walk *w)
{
    bool moved = false;
    for (; w->dispatched < w->fetched; w->dispatched++) {
        struct cmd *c = &w->cmds[w->dispatched];
        if (c->before >= 0) {
            if (w->next[c->queue] <= c->before)
                break;
            w->dispatch_time = later(w->dispatch_time, w->cmds[c->before].ready);
        }
        c->dispatched = ++w->dispatch_time;
        moved = true;
    }
    // The command FIFO has room for two requests.
    if (w->fetch_asked == w->fetched && w->fetched < w->count &&
        w->fetched - w->dispatched <= FETCH) {
        int n = w->count - w->fetched < FETCH ? w->count - w->fetched : FETCH;
        w->fetch_asked += n;
        mr_walk_ask(w, w->fetch_time, n, -1, false, true);
        moved = true;
    }
    return moved;
}

// ---- channel 0 ----------------------------------------------------------------------------------

// Moves `beats` that may begin at `from`; returns when the last one has passed.
static double transfer(struct walk *w, double from, double cost)
{
    w->out->memory += cost;
    // Into the idle time before the last transfer, if it was asked for then.
    double start = later(from, w->bus.gap);
    if (start + cost <= w->bus.gap_end) {
        w->bus.gap = start + cost;
        return start + cost;
    }
    start = later(from, w->bus.free);
    if (start > w->bus.free) {
        w->bus.gap = w->bus.free;
        w->bus.gap_end = start;
    }
    w->bus.free = start + cost;
    return w->bus.free;
}

static void host_done(struct walk *w, const struct host_op *op, double at)
{
    if (op->write && w->cmds[op->command].op == MR_OP_MATMUL)
        mr_array_result_written(w, op->command, at);
    else if (op->write)
        mr_writer_written(w, at);
    else if (op->command >= 0)
        mr_vector_loaded(w, at, op->beats);
    else { // the program's next commands
        w->fetched = w->fetch_asked;
        w->dispatch_time = later(w->dispatch_time, at - (op->beats - 1) / w->m->rate + L_FETCHED);
        w->fetch_time = at + L_FETCHED;
    }
}

static void serve_host(struct walk *w, bool write)
{
    struct host_op op = w->ops[write][w->op_head[write]];
    w->op_head[write] = (w->op_head[write] + 1) % HOST_OPS;
    w->op_count[write]--;
    double latency = write ? w->m->write_latency : w->m->read_latency;
    double beats = op.beats / w->m->rate, at;
    if (op.local) {
        at = transfer(w, op.ready + latency, beats + (write ? w->m->write : w->m->swap));
        w->bus.turn = QUANTUM;
        w->bus.last = write ? FLOW_HOST_WRITE : FLOW_HOST_READ;
    } else {
        at = op.ready + latency + beats;
    }
    host_done(w, &op, at);
}

static void serve_port(struct walk *w, enum flow flow, double ready, int beats)
{
    double cost = beats / w->m->rate + (w->bus.last == !flow ? w->m->swap : 0);
    double at = transfer(w, ready + w->m->read_latency, cost);
    w->bus.last = flow;
    w->bus.turn -= beats;
    w->bus.read_beats = w->bus.reads == flow ? w->bus.read_beats + beats : beats;
    w->bus.reads = flow;
    if (flow == FLOW_W) {
        w->out->weight_beats += (double)beats * w->g->n;
        mr_stream_arrived(w, at, beats);
    } else {
        w->out->kv_beats += (double)beats * w->g->n;
        mr_attention_arrived(w, at, beats);
    }
}

// Weights or KV, in the order of their requests; but KV keeps its turn while attention takes beats
// as fast as they come and so asks in time to lose no cycle, as in mr_reader.
static enum flow next_reads(const struct walk *w, const double port[2])
{
    if (port[FLOW_W] == UNKNOWN || port[FLOW_KV] == UNKNOWN)
        return port[FLOW_W] == UNKNOWN ? FLOW_KV : FLOW_W;
    // Of the beats of this turn, those that attention has not taken yet; half of PROMPT are on
    // their way through it.
    double held = PROMPT / 2 + w->bus.read_beats * (1 - 1 / (w->t.per_beat * w->m->rate));
    if (w->bus.reads == FLOW_KV && held <= PROMPT) {
        enum flow next = w->bus.read_beats < READ_QUANTUM ? FLOW_KV : FLOW_W;
        if (port[next] + w->m->read_latency <= w->bus.free)
            return next;
    }
    return port[FLOW_W] < port[FLOW_KV] ? FLOW_W : FLOW_KV;
}

// The next transfer; false if there is none.
static bool serve(struct walk *w)
{
    int beats[2];
    double port[2] = {mr_stream_request(w, &beats[0]), mr_attention_request(w, &beats[1])};
    enum flow flow = next_reads(w, port);
    double at = port[flow];
    bool write = w->op_count[1] > 0 && (w->op_count[0] == 0 || w->ops[1][w->op_head[1]].ready <
                                                                   w->ops[0][w->op_head[0]].ready);
    if (w->op_count[0] + w->op_count[1] == 0) {
        if (at == UNKNOWN)
            return false;
        if (w->bus.turn <= 0)
            w->bus.turn = QUANTUM;
        serve_port(w, flow, at, beats[flow]);
        return true;
    }
    const struct host_op *op = &w->ops[write][w->op_head[write]];
    double latency = w->m->read_latency;
    bool host_waits = op->ready + latency <= w->bus.free;
    bool port_waits = at != UNKNOWN && at + latency <= w->bus.free;
    bool goes_on = w->bus.last == (write ? FLOW_HOST_WRITE : FLOW_HOST_READ);
    bool host = at == UNKNOWN || !op->local ||
                (host_waits && (goes_on || w->bus.turn <= 0 || !port_waits)) ||
                (!host_waits && !port_waits && op->ready <= at);
    if (host) {
        serve_host(w, write);
        return true;
    }
    if (w->bus.turn <= 0)
        w->bus.turn = QUANTUM;
    serve_port(w, flow, at, beats[flow]);
    return true;
}

// ---- the run ------------------------------------------------------------------------------------

static bool advance(struct walk *w)
{
    bool any = dispatch(w);
    while (mr_stream_advance(w) || mr_array_advance(w))
        any = true;
    any |= mr_vector_advance(w);
    any |= mr_writer_advance(w);
    return mr_attention_advance(w) || any;
}

static int load_commands(struct walk *w)
{
    const int depth[QUEUES] = {32, 16, 16, 16, 16};
    int n = w->count = w->program.count;
    w->cmds = calloc((size_t)n, sizeof *w->cmds);
    for (int s = 0; s < SEMAPHORES; s++)
        w->signals[s] = calloc((size_t)n, sizeof *w->signals[s]);
    for (int i = 0; i < 2; i++)
        w->ops[i] = calloc(HOST_OPS, sizeof *w->ops[i]);
    if (!w->cmds || !w->ops[0] || !w->ops[1])
        return -1;
    for (int s = 0; s < SEMAPHORES; s++)
        if (!w->signals[s])
            return -1;
    for (int i = 0; i < n; i++) {
        const struct mr_command *c = &w->program.cmds[i];
        struct cmd *x = &w->cmds[i];
        *x = (struct cmd){.c = c, .before = -1, .dispatched = UNKNOWN, .done = UNKNOWN};
        x->op = mr_command_get(c, MR_F_CMD_OPCODE);
        x->wait = mr_command_get(c, MR_F_CMD_WAIT);
        x->signal = mr_command_get(c, MR_F_CMD_SIGNAL);
        x->queue = mr_opcode_queue(x->op);
        int left = depth[x->queue];
        for (int k = i - 1; k >= 0 && left > 0; k--)
            if (w->cmds[k].queue == x->queue && --left == 0)
                x->before = k;
    }
    for (int q = 0; q < QUEUES; q++)
        w->next[q] = mr_walk_next(w, q, 0);
    return 0;
}

static void free_walk(struct walk *w)
{
    for (int s = 0; s < SEMAPHORES; s++)
        free(w->signals[s]);
    free(w->ops[0]);
    free(w->ops[1]);
    free(w->cmds);
    mr_program_free(&w->program);
    free(w);
}

static void blocks_of(struct walk *w)
{
    for (int i = 0; i < w->count; i++) {
        const struct mr_command *c = w->cmds[i].c;
        if (w->cmds[i].op != MR_OP_MATMUL)
            continue;
        int tokens = mr_command_get(c, MR_F_MATMUL_LOGIT_ROWS) ? w->n_logits : w->n_rows;
        w->out->mac_blocks += (double)mr_command_get(c, MR_F_MATMUL_KBLOCKS) *
                              (double)mr_command_get(c, MR_F_MATMUL_COLS) * tokens * w->slots;
    }
}

static int walk(struct mr_plan_run *out, const struct mr_plan_job *job,
                const struct mr_plan_row *rows, int n, struct mr_error *err)
{
    *out = (struct mr_plan_run){0};
    struct walk *w = calloc(1, sizeof *w);
    if (!w)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a plan");
    w->job = job;
    w->g = job->g;
    w->m = job->memory;
    w->rows = rows;
    w->out = out;
    w->n_rows = n;
    w->slots = job->two_pass ? 2 : 1;
    w->v = 4 * job->g->n;
    w->a.command = -1;
    w->bus.turn = QUANTUM;
    for (int i = 0; i < n; i++)
        w->n_logits += rows[i].logits;
    bool encoder = mr_arch_of(job->model)->encoder;
    const struct mr_program_stage all = {.last = job->model->n_layer + (job->head && !encoder),
                                         .save = encoder};
    int rc =
        mr_program_build(&w->program, job->model, job->format, job->stage ? job->stage : &all, err);
    if (rc == 0 && load_commands(w) < 0)
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for a plan");
    if (rc == 0) {
        // The descriptor, then the first commands.
        int descriptor = 1 + (job->g->n + 1) / 2;
        w->out->host_beats += descriptor;
        w->fetch_time = 9 + L_ASK + w->m->read_latency + descriptor;
        while (w->end == 0 && (advance(w) || serve(w)))
            continue;
        if (w->end == 0)
            rc = mr_fail(err, MR_ERR_FIT, "the plan has come to a stop at command %d of %d",
                         w->dispatched, w->count);
        out->cycles = w->end;
        out->state[MR_PLAN_END] += w->end - w->a.time;
        blocks_of(w);
    }
    free_walk(w);
    return rc;
}

// out = a + k (a - b)
static void extend(struct mr_plan_run *out, const struct mr_plan_run *a,
                   const struct mr_plan_run *b, double k)
{
    double *o = (double *)out;
    const double *x = (const double *)a, *y = (const double *)b;
    for (size_t i = 0; i < sizeof *out / sizeof *o; i++)
        o[i] = x[i] + k * (x[i] - y[i]);
}

int mr_plan_run(struct mr_plan_run *out, const struct mr_plan_job *job,
                const struct mr_plan_row *rows, int n, struct mr_error *err)
{
    // Layers; from the second on they are alike. Stages of an encoder's chunks have one each.
    enum { FOLLOWED = 4 };
    struct mr_program_stage stage = {0};
    if (job->stage)
        stage = *job->stage;
    int layers = job->stage ? stage.last - stage.first : job->model->n_layer;
    if (layers <= FOLLOWED + 2)
        return walk(out, job, rows, n, err);
    struct mr_plan_run a, b;
    struct mr_config model = *job->model;
    struct mr_plan_job part = *job;
    part.stage = job->stage ? &stage : NULL;
    part.model = job->stage ? job->model : &model;
    model.n_layer = FOLLOWED;
    stage.last = stage.first + FOLLOWED;
    int rc = walk(&a, &part, rows, n, err);
    model.n_layer = FOLLOWED - 1;
    stage.last = stage.first + FOLLOWED - 1;
    if (rc == 0)
        rc = walk(&b, &part, rows, n, err);
    if (rc == 0)
        extend(out, &a, &b, layers - FOLLOWED);
    return rc;
}
