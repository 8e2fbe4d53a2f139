// SPDX-License-Identifier: Apache-2.0
// Units that the device's memory does not hold (docs/use/streaming.md#training): each has one of
// two places while it is in work, and what it needs there comes over the link beside the unit
// before it. Forward W comes and the stash leaves, backward Wt and the stash come and the sums
// leave.
#include <stdlib.h>

#include "train/pass_impl.h"

static struct pass_slot *slot_of(struct mr_pass *p, int unit)
{
    return &p->stream.slot[p->at.unit[unit].slot];
}

// Units first to last, then back; -1 where the pass has ended.
static int unit_of(const struct pass_stream *s, int streamed, int use)
{
    if (use >= s->uses)
        return -1;
    return s->list[use < streamed ? use : 2 * streamed - 1 - use];
}

static unsigned needs(const struct mr_pass *p, int use)
{
    return use < p->at.streamed ? PASS_W
                                : PASS_WT | (p->recompute ? PASS_W : PASS_VECTORS | PASS_KEPT);
}

// ---- copies -------------------------------------------------------------------------------------

static uint64_t beats(const struct pass_span *s)
{
    return s->end - s->begin;
}

static uint64_t kept_bytes(const struct mr_pass *p, const struct pass_unit *u)
{
    return (beats(&u->stash) * (uint64_t)p->g.n + beats(&u->rows)) * MR_BEAT;
}

static int copy_kept(struct mr_pass *p, const struct pass_unit *u, bool back, struct mr_error *err)
{
    int rc = 0;
    uint8_t *at = u->kept;
    for (int c = 0; c <= p->g.n && rc == 0; c++) { // the last one is the rows
        const struct pass_span *span = c < p->g.n ? &u->stash : &u->rows;
        uint64_t addr = (c < p->g.n ? p->mem.stash_addr[c] : p->mem.rows_addr);
        size_t bytes = (size_t)beats(span) * MR_BEAT;
        addr += span->begin * MR_BEAT;
        if (bytes > 0)
            rc = back ? mr_device_write(p->dev, addr, at, bytes, err)
                      : mr_device_read(p->dev, addr, at, bytes, err);
        at += bytes;
    }
    return rc;
}

static int copy(void *arg, struct mr_error *err)
{
    const struct pass_slot *s = arg;
    struct mr_pass *p = s->p;
    int rc = s->keeps >= 0 ? copy_kept(p, &p->at.unit[s->keeps], false, err) : 0;
    if (rc == 0 && s->sums >= 0)
        rc = pass_read_sums(p, s->sums, err);
    if (rc == 0)
        rc = pass_write_unit(p, s->unit, s->brings, err);
    if (rc == 0 && s->brings & PASS_KEPT)
        rc = copy_kept(p, &p->at.unit[s->unit], true, err);
    return rc;
}

static int without_device(void *arg, struct mr_error *err)
{
    (void)arg;
    (void)err;
    return 0;
}

static void begin(struct mr_pass *p, struct pass_slot *s, int unit, unsigned need, bool backward)
{
    const struct pass_unit *u = p->at.unit;
    int leaves = s->unit == unit ? -1 : s->unit;
    bool keeps = p->stream.learns && !p->recompute && leaves >= 0 && pass_reaches(p, leaves);
    if (leaves >= 0)
        s->has = 0;
    s->keeps = keeps && !backward ? leaves : -1;
    s->sums = backward ? leaves : -1;
    s->brings = need & ~s->has;
    s->unit = unit;
    s->has |= need;
    s->move = (struct mr_move){
        .work = p->dev ? copy : without_device,
        .arg = s,
        .up = pass_unit_bytes(p, unit, s->brings) +
              (s->brings & PASS_KEPT ? kept_bytes(p, &u[unit]) : 0),
        .down = (s->keeps >= 0 ? kept_bytes(p, &u[s->keeps]) : 0) +
                (s->sums >= 0 ? beats(&u[s->sums].sums) * MR_BEAT : 0),
    };
    s->moving = true;
    p->stream.sums += s->sums >= 0 ? beats(&u[s->sums].sums) * MR_BEAT : 0;
    mr_mover_begin(p->stream.mover, &s->move);
}

// What comes next, if its place is free: backward not before the sums of the unit there are done.
// What is there at the end of the forward pass stays for the backward pass.
static bool bring(struct mr_pass *p)
{
    int use = p->stream.use + 1, unit = unit_of(&p->stream, p->at.streamed, use);
    bool backward = use >= p->at.streamed;
    if (unit < 0)
        return true;
    struct pass_slot *s = slot_of(p, unit);
    if (s->unit == unit && !(needs(p, use) & ~s->has))
        return true;
    if (s->moving || (backward && s->unit >= 0 && pass_sums_wait(p, s->unit)))
        return false;
    begin(p, s, unit, needs(p, use), backward);
    return true;
}

// ---- a pass -------------------------------------------------------------------------------------

void pass_stream_begin(struct mr_pass *p, bool learns)
{
    struct pass_stream *s = &p->stream;
    if (!s->mover)
        return;
    s->learns = learns;
    s->use = -1;
    s->uses = p->at.streamed;
    for (int i = p->at.streamed; i-- > 0 && learns && pass_reaches(p, s->list[i]);)
        s->uses++;
    for (int i = 0; i < 2; i++)
        s->slot[i] = (struct pass_slot){.p = p, .unit = -1};
    (void)bring(p);
}

int pass_stream_use(struct mr_pass *p, int layer, struct mr_error *err)
{
    struct pass_stream *stream = &p->stream;
    int rc = 0;
    if (p->at.unit[layer].slot < 0)
        return 0;
    if (!bring(p)) {
        rc = pass_sums(p, EVERYTHING, err);
        (void)bring(p);
    }
    struct pass_slot *s = slot_of(p, layer);
    stream->use++;
    if (rc == 0 && s->moving) {
        s->moving = false;
        rc = mr_mover_end(stream->mover, &s->move, err);
        if (rc < 0)
            return mr_fail_in(err, "a layer did not get to the device");
    }
    s->has |= PASS_KEPT; // written there, or written back
    if (rc == 0)
        (void)bring(p);
    return rc;
}

void pass_stream_ran(struct mr_pass *p)
{
    if (p->stream.mover)
        (void)bring(p);
}

void pass_stream_end(struct mr_pass *p)
{
    for (int i = 0; i < 2; i++) {
        struct pass_slot *s = &p->stream.slot[i];
        if (s->moving)
            (void)mr_mover_end(p->stream.mover, &s->move, NULL);
        s->moving = false;
    }
}

// ---- memory -------------------------------------------------------------------------------------

int pass_stream_open(struct mr_pass *p, unsigned clock_khz, struct mr_error *err)
{
    struct pass_stream *s = &p->stream;
    int n = 0;
    if (p->at.streamed == 0)
        return 0;
    s->list = calloc((size_t)p->at.streamed, sizeof *s->list);
    bool all = s->list != NULL;
    for (int u = 0; u <= p->c->n_layer && all; u++) {
        struct pass_unit *unit = &p->at.unit[u];
        if (unit->slot < 0)
            continue;
        s->list[n++] = u;
        if (p->dev)
            all = (unit->kept = malloc(kept_bytes(p, unit) + 1)) != NULL;
    }
    if (!all)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for what %d layers keep", p->at.streamed);
    return mr_mover_new(&s->mover, clock_khz, p->dev && mr_device_info(p->dev)->overlaps, err);
}

void pass_stream_close(struct mr_pass *p)
{
    mr_mover_free(p->stream.mover); // before what it works on
    for (int u = 0; p->at.unit && u <= p->c->n_layer; u++)
        free(p->at.unit[u].kept);
    free(p->stream.list);
    free(p->at.unit);
}
