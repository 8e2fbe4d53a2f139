// SPDX-License-Identifier: Apache-2.0
// Weights in device memory: all of them, or some, with two slots for the others.
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "engine/deal.h"
#include "engine/engine_impl.h"
#include "pack/identity.h"

// ---- programs ----------------------------------------------------------------------------------

static uint64_t whole(uint64_t beats)
{
    return (beats * BEAT + MR_DEVICE_GRAIN - 1) / MR_DEVICE_GRAIN * MR_DEVICE_GRAIN;
}

// The result and input windows of e->chunk rows, from a program of the model.
static void size_windows(struct engine *e, const struct mr_program *p, bool stages)
{
    e->input_beats = (uint32_t)(p->res_off + e->chunk * p->res_beats);
    e->side_beats = stages ? (uint32_t)(e->chunk * p->res_beats) : 0;
    e->result_beats = (uint32_t)(p->out_beats * e->chunk);
}

// What is beside the weights in a channel's memory, with programs of so many beats.
static uint64_t others(const struct engine *e, uint64_t programs)
{
    enum { DESC_BEATS = 9 };
    return whole(e->kv_beats) + whole((uint64_t)e->input_beats + e->side_beats) +
           whole(e->result_beats) + whole(DESC_BEATS) + programs;
}

static int too_small(const struct engine *e, uint64_t least, uint64_t beside, struct mr_error *err)
{
    const struct mr_device_info *info = mr_device_info(e->dev);
    uint64_t kv = whole(e->kv_beats);
    return mr_fail(
        err, MR_ERR_FIT,
        "%s: its memory of %.2f MB%s is too small: two layers' weights take %.2f MB, the "
        "KV store of %d sequence%s %.2f, rows and programs %.2f; take fewer sequences, "
        "a smaller chunk, or a device with %.2f MB",
        info->uri, 1e-6 * (double)info->room, e->n > 1 ? " a channel" : "", 1e-6 * (double)least,
        e->opt.max_seqs, e->opt.max_seqs == 1 ? "" : "s", 1e-6 * (double)kv,
        1e-6 * (double)(beside - kv), 1e-6 * e->n * (double)(least + beside));
}

static int add_tasks(struct engine *e, const struct mr_stage *list, int n, struct mr_error *err)
{
    const struct mr_packed *p = e->packed;
    e->tasks = calloc((size_t)n, sizeof *e->tasks);
    int rc = e->tasks ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for the engine's programs");
    for (int i = 0; rc == 0 && i < n; i++) {
        struct task *t = &e->tasks[i];
        t->stage = list[i];
        rc = mr_program_build(&t->program, &p->config, p->format, &t->stage.what, err);
        e->n_tasks += rc == 0;
    }
    return rc;
}

static int add_stages(struct engine *e, uint64_t room, struct mr_error *err)
{
    const struct mr_packed *p = e->packed;
    struct mr_stages *all = &e->plan;
    int rc = mr_stages_make(all, &p->config, p->format, e->n, room, (int)e->side_beats, err);
    if (rc == 0)
        rc = add_tasks(e, all->list, all->count, err);
    e->stages = true;
    e->count[0] = all->layers;
    e->count[1] = all->count;
    for (int s = 0; s < MR_SLOTS; s++)
        e->slots[s] = (struct slot){.e = e, .task = -1};
    e->stats.units = all->units;
    e->stats.streamed = all->streamed;
    e->room = malloc((size_t)all->slot_beats * BEAT);
    if (rc == 0 && !e->room)
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for a layer's weights");
    const struct mr_device_info *info = mr_device_info(e->dev);
    return rc == 0 ? mr_mover_new(&e->mover, info->clock_khz, info->overlaps, err) : rc;
}

int weights_tasks(struct engine *e, struct mr_error *err)
{
    const struct mr_packed *p = e->packed;
    const struct mr_config *c = &p->config;
    uint64_t room = mr_device_info(e->dev)->room;
    int64_t beats = mr_stream_beats(c, p->format, e->n);
    struct mr_stage all[2] = {{{.last = c->n_layer}, false, beats},
                              {{.last = c->n_layer + 1}, false, beats}};
    if (beats > UINT32_MAX)
        return mr_fail(err, MR_ERR_FIT, "the weight stream has more than 2^32 beats a channel");
    e->first[1] = e->count[0] = e->count[1] = 1;
    int rc = add_tasks(e, all, 2, err);
    if (rc < 0)
        return rc;
    uint64_t commands = (uint64_t)e->tasks[1].program.count;
    size_windows(e, &e->tasks[1].program, false);
    if (!room || whole((uint64_t)beats) + others(e, 2 * whole(commands)) <= room)
        return 0;
    size_windows(e, &e->tasks[1].program, true);
    // A stage has LOAD_ROWS, STORE_RES and END beside its layers' commands.
    uint64_t least = mr_stages_least(c, p->format, e->n);
    uint64_t stages = (uint64_t)c->n_layer + 2 * whole((uint64_t)beats) / least + 2;
    uint64_t beside = others(e, whole(commands + 8 * stages));
    if (least + beside > room)
        return too_small(e, least, beside, err);
    weights_free(e);
    e->first[1] = 0;
    return add_stages(e, room - beside, err);
}

// ---- memory ------------------------------------------------------------------------------------

static int upload_all(struct engine *e, struct mr_error *err)
{
    const struct mr_packed *p = e->packed;
    size_t bytes = (size_t)e->tasks[1].stage.beats * BEAT;
    e->dev->upload.total = (size_t)e->n * bytes;
    if (p->map.data) { // of a packed file it costs nothing
        int rc = mr_packed_identity(p, &e->dev->upload.identity, err);
        if (rc < 0)
            return rc;
    }
    for (int c = 0; c < e->n; c++) {
        const void *stream = p->stream;
        if (e->n > 1) {
            e->dealt[c] = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
            if (!e->dealt[c])
                return mr_fail(err, MR_ERR_MEMORY, "no memory for the weights of channel %d", c);
            mr_deal_channel(p, e->n, c, e->dealt[c]);
            stream = e->dealt[c];
        }
        int rc = mr_device_alloc(e->dev, c, bytes, stream, &e->tasks[0].addr[c], err);
        e->tasks[1].addr[c] = e->tasks[0].addr[c];
        if (mr_device_info(e->dev)->copies) {
            free(e->dealt[c]);
            e->dealt[c] = NULL;
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int write_stage(struct engine *e, const struct task *t, const uint64_t *addr, uint8_t *room,
                       struct mr_error *err)
{
    int rc = 0;
    for (int c = 0; rc == 0 && c < e->n; c++)
        rc = mr_device_write(e->dev, addr[c], mr_stage_bytes(&t->stage, e->packed, e->n, c, room),
                             (size_t)t->stage.beats * BEAT, err);
    return rc;
}

static int upload_stage(struct engine *e, struct task *t, struct mr_error *err)
{
    size_t bytes = (size_t)t->stage.beats * BEAT;
    uint8_t *room = malloc(bytes);
    int rc = room ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for %zu bytes of weights", bytes);
    for (int c = 0; rc == 0 && c < e->n; c++)
        rc = mr_device_alloc(e->dev, c, bytes, NULL, &t->addr[c], err);
    if (rc == 0)
        rc = write_stage(e, t, t->addr, room, err);
    if (rc == 0)
        rc = mr_device_uploaded(e->dev, (size_t)e->n * bytes, err);
    free(room);
    return rc;
}

// ---- slots -------------------------------------------------------------------------------------

static int fill_slot(void *arg, struct mr_error *err)
{
    const struct slot *s = arg;
    return write_stage(s->e, &s->e->tasks[s->task], s->addr, s->e->room, err);
}

static void begin(struct engine *e, struct slot *s, int task)
{
    s->task = task;
    s->moving = true;
    s->move.work = fill_slot;
    s->move.arg = s;
    s->move.up = (uint64_t)e->tasks[task].stage.beats * BEAT * (uint64_t)e->n;
    mr_mover_begin(e->mover, &s->move);
}

// What is not there after a failure is fetched again by the next step.
static int finish(struct engine *e, struct slot *s, struct mr_error *err)
{
    int rc = s->moving ? mr_mover_end(e->mover, &s->move, err) : 0;
    s->moving = false;
    if (rc == 0)
        return 0;
    s->task = -1;
    return mr_fail_in(err, "weights did not get to the device");
}

static struct slot *slot_of(struct engine *e, int task)
{
    for (int s = 0; s < MR_SLOTS; s++)
        if (e->slots[s].task == task)
            return &e->slots[s];
    return NULL;
}

// Fills the slots beside that of task i with what comes next. One on its way stays: a copy is not
// broken off.
static void ahead(struct engine *e, int i, int end)
{
    int held[MR_SLOTS];
    for (int s = 0; s < MR_SLOTS; s++)
        held[s] = e->slots[s].task;
    unsigned changed = mr_stages_ahead(&e->plan, i, end, held);
    for (int s = 0; s < MR_SLOTS; s++)
        if (changed >> s & 1 && !e->slots[s].moving)
            begin(e, &e->slots[s], held[s]);
}

int weights_take(struct engine *e, int i, int end, const uint64_t **addr, struct mr_error *err)
{
    struct task *t = &e->tasks[i];
    struct slot *s = t->stage.streamed ? slot_of(e, i) : NULL;
    *addr = t->addr;
    if (!e->stages)
        return 0;
    if (t->stage.streamed && !s) { // only after a failure, or where a pass went on otherwise
        s = e->slots[0].moving ? &e->slots[1] : &e->slots[0];
        int rc = finish(e, s, err); // of both, if both are on their way
        if (rc < 0)
            return rc;
        begin(e, s, i);
    }
    int rc = s ? finish(e, s, err) : 0;
    if (rc < 0)
        return rc;
    if (s)
        *addr = s->addr;
    ahead(e, i, end);
    return 0;
}

void weights_ran(struct engine *e, uint64_t cycles)
{
    if (e->stages)
        mr_mover_ran(e->mover, cycles);
}

static int upload_stages(struct engine *e, struct mr_error *err)
{
    int rc = 0;
    e->dev->upload.total = 0;
    e->dev->upload.later = true;
    for (int i = 0; i < e->n_tasks; i++)
        if (!e->tasks[i].stage.streamed)
            e->dev->upload.total += (size_t)e->tasks[i].stage.beats * BEAT * (size_t)e->n;
    for (int s = 0; rc == 0 && s < MR_SLOTS; s++)
        for (int c = 0; rc == 0 && c < e->n; c++)
            rc = mr_device_alloc(e->dev, c, (size_t)e->plan.slot_beats * BEAT, NULL,
                                 &e->slots[s].addr[c], err);
    for (int i = 0; rc == 0 && i < e->n_tasks; i++)
        if (!e->tasks[i].stage.streamed)
            rc = upload_stage(e, &e->tasks[i], err);
    e->dev->upload.later = false;
    if (rc < 0)
        return rc;
    ahead(e, -1, e->count[0]);
    for (int s = 0; rc == 0 && s < MR_SLOTS; s++)
        rc = finish(e, &e->slots[s], err);
    mr_mover_rest(e->mover); // what is moved before the first step is no step's
    return rc;
}

int weights_upload(struct engine *e, struct mr_error *err)
{
    return e->stages ? upload_stages(e, err) : upload_all(e, err);
}

void weights_free(struct engine *e)
{
    mr_mover_free(e->mover); // before what it works on
    for (int i = 0; i < e->n_tasks; i++) {
        mr_program_free(&e->tasks[i].program);
        free(e->tasks[i].places);
    }
    free(e->tasks);
    mr_stages_free(&e->plan);
    free(e->room);
    for (int c = 0; c < 64; c++)
        free(e->dealt[c]);
    memset(e->dealt, 0, sizeof e->dealt);
    e->tasks = NULL;
    e->n_tasks = 0;
    e->mover = NULL;
    e->room = NULL;
}
