// SPDX-License-Identifier: Apache-2.0
#include "plan/streaming.h"

#include <stdlib.h>

#include "common/error.h"
#include "engine/stages.h"
#include "plan/board.h"
#include "plan/job.h"

enum { COMMANDS = 24 }; // of a stage, about; what they take is little

bool mr_plan_holds(const struct mr_plan_job *job, double capacity, int seqs, uint64_t *room)
{
    struct mr_plan_bytes b = mr_plan_bytes_of(job->model, job->format, job->g, seqs);
    int rows = job->two_pass ? job->g->t / 2 : job->g->t;
    double channel = capacity / job->g->n, kv = b.kv / job->g->n;
    double side = 4.0 * (rows < MR_PROGRAM_ROWS ? rows : MR_PROGRAM_ROWS) * job->model->n_embd;
    double programs = (double)MR_BEAT * COMMANDS * (2 * job->model->n_layer + 2);
    double left = channel - kv - b.windows - side - programs;
    *room = left > 0 ? (uint64_t)left : 0;
    return b.weights / job->g->n + kv + b.windows <= channel;
}

// Two links and the slots, as the engine has them (host/engine/weights.c).
struct course {
    const struct mr_stages *stages;
    int channels, held[MR_SLOTS];
    struct mr_link links[MR_LINKS];
    double ready[MR_SLOTS][MR_LINKS];
};

static void copy(struct course *c, int slot)
{
    uint64_t beats = (uint64_t)c->stages->list[c->held[slot]].beats;
    for (int i = 0; i < MR_LINKS; i++)
        c->ready[slot][i] = mr_link_carry(&c->links[i], beats * MR_BEAT * (uint64_t)c->channels, 0);
}

static void follow(struct course *c, int stage, int end, double cycles)
{
    for (int s = 0; s < MR_SLOTS; s++)
        for (int i = 0; i < MR_LINKS && c->held[s] == stage && stage >= 0; i++)
            mr_link_wait(&c->links[i], c->ready[s][i]);
    unsigned changed = mr_stages_ahead(c->stages, stage, end, c->held);
    for (int s = 0; s < MR_SLOTS; s++)
        if (changed >> s & 1)
            copy(c, s);
    for (int i = 0; i < MR_LINKS; i++)
        mr_link_ran(&c->links[i], cycles);
}

// The cycles of each stage of a pass; those of the same shape take the same.
static int stage_cycles(double *cycles, const struct mr_stages *stages, int end,
                        const struct mr_plan_job *job, const struct mr_plan_row *rows, int n,
                        struct mr_error *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < end; i++) {
        const struct mr_program_stage *a = &stages->list[i].what;
        int same = 0;
        for (; same < i; same++) {
            const struct mr_program_stage *b = &stages->list[same].what;
            if (a->last - a->first == b->last - b->first && a->cols == b->cols &&
                a->save == b->save)
                break;
        }
        struct mr_plan_job run = *job;
        struct mr_plan_run r = {0};
        run.stage = a;
        if (same == i)
            rc = mr_plan_run(&r, &run, rows, n, err);
        cycles[i] = same == i ? r.cycles : cycles[same];
    }
    return rc;
}

// The point's passes, twice: what the second time waits is what each time waits.
static int follow_point(struct mr_plan_streaming *out, struct course *c, double *cycles,
                        const struct mr_plan_job *job, const struct mr_plan_point *p,
                        struct mr_plan_row *rows, struct mr_error *err)
{
    int room = job->two_pass ? job->g->t / 2 : job->g->t, all = p->seqs * p->tokens, rc = 0;
    double before[MR_LINKS] = {0}, beats = 0;
    for (int turn = 0; turn < 2; turn++) {
        out->cycles = beats = 0;
        for (int i = 0; i < MR_LINKS; i++)
            before[i] = c->links[i].waited;
        for (int from = 0; rc == 0 && from < all; from += room) {
            int n = all - from < room ? all - from : room;
            bool head = mr_plan_point_rows(rows, job, p, from, n);
            int end = head ? c->stages->count : c->stages->layers;
            rc = stage_cycles(cycles, c->stages, end, job, rows, n, err);
            for (int i = 0; rc == 0 && i < end; i++) {
                follow(c, i, end, cycles[i]);
                out->cycles += cycles[i];
                beats += c->stages->list[i].streamed ? (double)c->stages->list[i].beats : 0;
            }
        }
    }
    for (int i = 0; i < MR_LINKS; i++)
        out->waited[i] = c->links[i].waited - before[i];
    out->memory = beats / job->memory->rate;
    return rc;
}

int mr_plan_streaming_of(struct mr_plan_streaming *out, const struct mr_plan_job *job,
                         uint64_t room, double clock_mhz, const struct mr_plan_point *p,
                         struct mr_error *err)
{
    static const double rates[MR_LINKS] = MR_LINK_RATES;
    struct mr_stages stages;
    *out = (struct mr_plan_streaming){0};
    int rc = mr_stages_make(&stages, job->model, job->format, job->g->n, room, 1, err);
    if (rc < 0)
        return rc;
    struct course c = {.stages = &stages, .channels = job->g->n, .held = {-1, -1}};
    double *cycles = calloc((size_t)stages.count, sizeof *cycles);
    struct mr_plan_row *rows = calloc((size_t)job->g->t, sizeof *rows);
    if (!cycles || !rows)
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for a plan");
    for (int i = 0; i < MR_LINKS; i++)
        c.links[i] = mr_link_of(rates[i], 1e3 * clock_mhz);
    out->units = stages.units;
    out->streamed = stages.streamed;
    out->runs = job->head ? stages.count : stages.layers;
    out->bytes = (double)stages.streamed_beats * MR_BEAT * job->g->n;
    follow(&c, -1, stages.layers, 0);
    if (rc == 0)
        rc = follow_point(out, &c, cycles, job, p, rows, err);
    free(cycles);
    free(rows);
    mr_stages_free(&stages);
    return rc;
}
