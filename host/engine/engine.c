// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/num.h"
#include "model/arch.h"
#include "common/clock.h"
#include "device/configs.h"
#include "engine/engine_impl.h"
#include "engine/rotary.h"

enum { DESC_WORDS = 16 * 9 };

// A run that is watched.
struct watched {
    struct engine *e;
    struct task *task;
    int end; // of the pass's tasks
    int rows;
    double start;
};

void mr_engine_limits(const struct mr_geometry *g, const struct mr_config *model, bool two_pass,
                      struct mr_engine_limit limits[MR_ENGINE_LIMITS])
{
    struct mr_dims d = mr_dims_of(model);
    struct mr_program_places places = mr_program_places(model);
    const struct mr_engine_limit all[MR_ENGINE_LIMITS] = {
        {"n_embd (padded)", d.d, g->d_max},
        {"attention width", d.w, g->w_max},
        {"rotary_dim (padded)", d.rot_floats, g->rot_max},
        {"activation words", places.act_words, g->act_words},
        {"q/k/v words", places.qkv_words, g->qkv_words},
        {"n_positions", model->n_positions, g->ctx_max},
        {"scores of one head", model->n_positions, g->scores},
        {"blocks of the longest contraction", d.longest / 32, g->ring / 2},
        {"n_head", model->n_head, g->w_max / 64},
        {"head_dim (padded)", d.head_lanes, MR_HEAD_LANES_MAX},
        {"row slots", two_pass ? 2 : 1, g->t},
    };
    memcpy(limits, all, sizeof all);
}

int mr_engine_fits(const struct mr_geometry *g, const char *config, const struct mr_config *model,
                   bool two_pass, struct mr_error *err)
{
    if (mr_arch_of(model)->encoder)
        return mr_fail(err, MR_ERR_UNSUPPORTED, "%s is an encoder, which writes no text",
                       mr_arch_of(model)->title);
    return mr_engine_holds(g, config, model, two_pass, err);
}

int mr_engine_holds(const struct mr_geometry *g, const char *config, const struct mr_config *model,
                    bool two_pass, struct mr_error *err)
{
    struct mr_engine_limit l[MR_ENGINE_LIMITS];
    mr_engine_limits(g, model, two_pass, l);
    for (int i = 0; i < MR_ENGINE_LIMITS; i++)
        if (l[i].need > l[i].have)
            return mr_fail(
                err, MR_ERR_FIT,
                "the model does not fit configuration '%s': %s is %d, the device has %d; use a "
                "larger configuration ('millrace devices' lists them)",
                config, l[i].what, l[i].need, l[i].have);
    return 0;
}

void mr_engine_exceeds(const struct mr_config *model, char *text, size_t size)
{
    const struct mr_config_entry *c, *nearest = NULL;
    int fewest = MR_ENGINE_LIMITS + 1;
    *text = 0;
    for (int i = 0; fewest > 0 && (c = mr_config_at(i)); i++) {
        struct mr_engine_limit l[MR_ENGINE_LIMITS];
        int over = 0;
        mr_engine_limits(&c->g, model, false, l);
        for (int k = 0; k < MR_ENGINE_LIMITS; k++)
            over += l[k].need > l[k].have;
        nearest = over < fewest ? c : nearest;
        fewest = over < fewest ? over : fewest;
    }
    struct mr_engine_limit l[MR_ENGINE_LIMITS];
    size_t used = 0;
    mr_engine_limits(&nearest->g, model, false, l);
    for (int k = 0; fewest > 0 && k < MR_ENGINE_LIMITS; k++)
        if (l[k].need > l[k].have && used < size) {
            int n = snprintf(text + used, size - used, "%s%s is %d, '%s' has %d", used ? ", " : "",
                             l[k].what, l[k].need, nearest->name, l[k].have);
            used += n > 0 ? (size_t)n : 0;
        }
}

static int size_kv(struct engine *e, struct mr_error *err)
{
    const struct mr_config *c = &e->base.config;
    uint32_t wbeats = (uint32_t)mr_dims_of(c).w / 64;
    e->kv_scale = (2 * wbeats + 63) / 64;
    e->kv_rec = e->kv_scale + wbeats;
    e->kv_positions = (uint32_t)(c->n_positions + e->n - 1) / (uint32_t)e->n;
    e->kv_layer = e->kv_positions * (2 * e->kv_rec + e->kv_scale);
    uint64_t seq = (uint64_t)e->kv_layer * (uint64_t)c->n_layer;
    uint64_t all = seq * (uint64_t)e->opt.max_seqs;
    if (all > UINT32_MAX)
        return mr_fail(err, MR_ERR_FIT, "KV stores for %d sequences need more than 2^32 beats",
                       e->opt.max_seqs);
    e->kv_seq = (uint32_t)seq;
    e->kv_beats = (uint32_t)all;
    return 0;
}

// Each in a buffer of its own, those of stages one behind the other.
static int alloc_programs(struct engine *e, struct mr_error *err)
{
    size_t all = 0, used = 0;
    uint64_t addr = 0;
    int rc = 0;
    for (int i = 0; i < e->n_tasks; i++)
        all += (size_t)e->tasks[i].program.count * BEAT;
    if (e->stages)
        rc = mr_device_alloc(e->dev, 0, all, NULL, &addr, err);
    for (int i = 0; rc == 0 && i < e->n_tasks; i++) {
        struct task *t = &e->tasks[i];
        size_t bytes = (size_t)t->program.count * BEAT;
        t->prog_addr = addr + used;
        if (!e->stages)
            rc = mr_device_alloc(e->dev, 0, bytes, NULL, &t->prog_addr, err);
        if (rc == 0)
            rc = mr_device_write(e->dev, t->prog_addr, t->program.cmds, bytes, err);
        used += bytes;
    }
    return rc;
}

static int alloc_run(struct engine *e, struct mr_error *err)
{
    size_t side = (size_t)e->side_beats * BEAT;
    int rc = 0;
    for (int i = 0; rc == 0 && i < e->n; i++)
        rc = mr_device_alloc(e->dev, i, (size_t)e->kv_beats * BEAT, NULL, &e->kv_addr[i], err);
    if (rc == 0)
        rc = mr_device_alloc(e->dev, 0, side + (size_t)e->input_beats * BEAT, NULL, &e->side_addr,
                             err);
    e->input_addr = e->side_addr + side;
    if (rc == 0)
        rc = mr_device_alloc(e->dev, 0, (size_t)e->result_beats * BEAT, NULL, &e->result_addr, err);
    if (rc == 0)
        rc = mr_device_alloc(e->dev, 0, DESC_WORDS * 4, NULL, &e->desc_addr, err);
    return rc == 0 ? alloc_programs(e, err) : rc;
}

static void put_u64(uint32_t *w, uint64_t v)
{
    w[0] = (uint32_t)v;
    w[1] = (uint32_t)(v >> 32);
}

static int write_descriptor(struct engine *e, const struct task *t, const uint64_t *weights,
                            int n_rows, struct mr_error *err)
{
    uint32_t w[DESC_WORDS] = {0};
    const struct mr_program_stage *stage = &t->stage.what;
    uint32_t rows = (uint32_t)t->program.res_off; // where they are in the input window
    // Rows that are saved go to where they have not come from.
    uint64_t saved = stage->shift ? e->input_addr + (uint64_t)rows * BEAT : e->side_addr;
    w[MR_RUN_MAGIC] = MR_MAGIC_RUN;
    w[MR_RUN_N_CMDS] = (uint32_t)t->program.count;
    w[MR_RUN_N_ROWS] = (uint32_t)n_rows;
    w[MR_RUN_FLAGS] = e->opt.two_pass;
    put_u64(w + MR_RUN_PROG_LO, t->prog_addr);
    put_u64(w + MR_RUN_INPUT_LO, stage->shift ? e->side_addr : e->input_addr);
    put_u64(w + MR_RUN_RESULT_LO, stage->save ? saved : e->result_addr);
    w[MR_RUN_PROG_BEATS] = (uint32_t)t->program.count;
    w[MR_RUN_INPUT_BEATS] = stage->shift ? e->side_beats + rows : e->input_beats;
    w[MR_RUN_RESULT_BEATS] = stage->save ? e->side_beats : e->result_beats;
    w[MR_RUN_KV_LAYER_BEATS] = e->kv_layer;
    w[MR_RUN_KV_V_BEATS] = e->kv_positions * e->kv_rec;
    w[MR_RUN_KV_PM_BEATS] = 2 * e->kv_positions * e->kv_rec;
    for (int c = 0; c < e->n; c++) {
        uint32_t *ch = w + MR_RUN_CHANNEL(c);
        put_u64(ch + MR_CHANNEL_WEIGHTS_LO, weights[c]);
        ch[MR_CHANNEL_WEIGHTS_BEATS] = (uint32_t)t->stage.beats;
        put_u64(ch + MR_CHANNEL_KV_LO, e->kv_addr[c]);
        ch[MR_CHANNEL_KV_BEATS] = e->kv_beats;
    }
    return mr_device_write(e->dev, e->desc_addr, w, sizeof w, err);
}

// e->emb = the sum of the tables' rows, in fp32.
static void look_up(struct engine *e, int token, int position)
{
    const struct mr_list *tables = &mr_arch_of(&e->base.config)->tables;
    size_t n = (size_t)e->base.config.n_embd;
    for (int t = 0; t < tables->count; t++) {
        const struct mr_tensor *table = mr_packed_table(e->packed, t);
        int row = tables->items[t].by == MR_BY_TOKEN ? token : position;
        float *to = t == 0 ? e->emb : e->row;
        (void)mr_tensor_read_f32(table, (size_t)row * n, n, to); // check_rows() looked at it
        for (size_t i = 0; t > 0 && i < n; i++)
            e->emb[i] = mr_fadd(e->emb[i], to[i]);
    }
}

static int write_row(struct engine *e, int i, const struct mr_row *row, bool continues,
                     struct mr_error *err)
{
    const struct mr_program *p = &e->tasks[0].program;
    struct seq *s = &e->seqs[row->seq];
    uint32_t table[4] = {(uint32_t)row->seq * e->kv_seq, (uint32_t)s->pos,
                         (uint32_t)row->want_logits | (uint32_t)continues << 1, 0};
    look_up(e, row->token, s->pos);
    size_t rot = (size_t)p->rot_beats * BEAT, res = (size_t)p->res_beats * BEAT;
    int rc = mr_device_write(e->dev, e->input_addr + 16 * (uint64_t)i, table, sizeof table, err);
    if (rc == 0)
        rc =
            mr_device_write(e->dev, e->input_addr + (uint64_t)p->rot_off * BEAT + (uint64_t)i * rot,
                            e->rotary + (size_t)s->pos * (rot / 4), rot, err);
    if (rc == 0)
        rc =
            mr_device_write(e->dev, e->input_addr + (uint64_t)p->res_off * BEAT + (uint64_t)i * res,
                            e->emb, res, err);
    s->pos++;
    return rc;
}

// A sequence's rows must be neighbours in a run: only then does the device carry the prefix maxima
// from one to the next. order[n]: the rows by sequence, in order of first appearance.
static void group_rows(const struct mr_row *rows, int n, int *order)
{
    bool placed[MR_PROGRAM_ROWS] = {false};
    for (int i = 0, k = 0; i < n; i++) {
        bool first = !placed[i];
        for (int j = i; first && j < n; j++)
            if (rows[j].seq == rows[i].seq) {
                order[k++] = j;
                placed[j] = true;
            }
    }
}

// ---- progress -----------------------------------------------------------------------------------

static bool find_places(struct engine *e, struct task *t)
{
    const struct mr_program *p = &t->program;
    struct place *at = t->places ? NULL : calloc((size_t)p->count + 1, sizeof *at);
    int items = 0;
    if (!at)
        return t->places != NULL;
    at[0].layer = t->stage.what.first;
    for (int i = 0; i < p->count; i++) {
        unsigned op = mr_command_get(&p->cmds[i], MR_F_CMD_OPCODE);
        at[i + 1] = at[i];
        if (op != MR_OP_STREAM_VEC && op != MR_OP_STREAM_TILES)
            continue;
        struct mr_stream_item item =
            mr_stage_item(&e->base.config, e->packed->format, &t->stage.what, items++);
        at[i].layer = at[i + 1].layer = item.layer;
        at[i + 1].beats += (uint64_t)mr_item_beats(&item, e->n);
    }
    t->places = at;
    return true;
}

// Readers are ahead of the array, by the ring: a device that counts beats says where it reads.
static int tell(void *arg, const struct mr_device_moment *m)
{
    const struct watched *w = arg;
    struct engine *e = w->e;
    const struct task *t = w->task;
    const struct place *at = t->places;
    int count = t->program.count, before = 0, all = 0;
    int done = m->commands < (unsigned)count ? (int)m->commands : count;
    double beats = 0, read = (double)at[done].beats;
    if (m->weight_beats)
        read = (double)m->weight_beats / e->n;
    for (int i = e->stages ? 0 : w->end - 1; i < w->end; i++) { // the pass's tasks
        const struct task *each = &e->tasks[i];
        before += each < t ? each->program.count : 0;
        all += each->program.count;
        read += each < t ? (double)each->stage.beats : 0;
        beats += e->stages ? (double)each->stage.beats : (double)at[count].beats;
    }
    struct mr_progress p = {.tokens = e->stats.tokens,
                            .rows = w->rows,
                            .commands = m->commands ? all : 0,
                            .done = m->commands ? before + done : 0,
                            .layer = at[done].layer,
                            .layers = e->base.config.n_layer,
                            .cycles = m->cycles,
                            .seconds = mr_seconds() - w->start};
    p.share = read < beats ? read / beats : 1;
    return e->base.watch(e->base.watch_arg, &p);
}

static int run_watched(struct engine *e, struct watched *w, struct mr_error *err)
{
    if (e->base.watch && find_places(e, w->task)) {
        e->dev->watch.call = tell;
        e->dev->watch.arg = w;
    }
    int rc = mr_device_run(e->dev, e->desc_addr, err);
    e->dev->watch.call = NULL;
    return rc;
}

// A device error names a command; say which one it is.
static int run_device(struct engine *e, struct watched *w, struct mr_error *err)
{
    const struct mr_program *p = &w->task->program;
    e->dev->last_error.code = 0;
    int rc = run_watched(e, w, err);
    unsigned at = e->dev->last_error.command;
    if (rc == MR_ERR_DEVICE && e->dev->last_error.code && at < (unsigned)p->count)
        return mr_fail_in(err, "%s", mr_opcode_name(mr_command_get(&p->cmds[at], MR_F_CMD_OPCODE)));
    return rc;
}

// The tasks of a pass, one after the other.
static int run_tasks(struct engine *e, bool head, int rows, struct mr_error *err)
{
    int end = e->first[head] + e->count[head], rc = 0;
    double start = mr_seconds();
    for (int i = e->first[head]; rc == 0 && i < end; i++) {
        struct watched w = {e, &e->tasks[i], end, rows, start};
        uint64_t counter[MR_ALL_COUNTERS];
        const uint64_t *weights;
        rc = weights_take(e, i, end, &weights, err);
        if (rc == 0)
            rc = write_descriptor(e, w.task, weights, rows, err);
        if (rc == 0)
            rc = run_device(e, &w, err);
        if (rc == 0)
            rc = mr_device_counters(e->dev, counter, err);
        for (int k = 0; rc == 0 && k < (int)MR_COUNTERS; k++)
            e->stats.counter[k] += counter[k];
        if (rc == 0)
            weights_ran(e, counter[MR_CNT_CYCLES]);
    }
    return rc;
}

// One pass over the model: at most e->chunk rows.
static int run_rows(struct engine *e, const struct mr_row *rows, int n, float *logits,
                    struct mr_error *err)
{
    int wanted = 0, rc = 0, order[MR_PROGRAM_ROWS], place[MR_PROGRAM_ROWS];
    for (int i = 0; i < n; i++) // the caller's place of each row's logits
        place[i] = rows[i].want_logits ? wanted++ : -1;
    group_rows(rows, n, order);
    for (int i = 0; rc == 0 && i < n; i++)
        rc = write_row(e, i, &rows[order[i]], i > 0 && rows[order[i]].seq == rows[order[i - 1]].seq,
                       err);
    if (rc == 0)
        rc = run_tasks(e, wanted > 0, n, err);
    size_t vocab = (size_t)e->base.config.vocab_size;
    uint64_t out = (uint64_t)e->tasks[0].program.out_beats * BEAT;
    for (int i = 0, k = 0; rc == 0 && i < n; i++) // the device's rows of logits are in its order
        if (place[order[i]] >= 0)
            rc = mr_device_read(e->dev, e->result_addr + (uint64_t)k++ * out,
                                logits + (size_t)place[order[i]] * vocab, vocab * sizeof *logits,
                                err);
    if (rc < 0)
        return rc;
    e->stats.steps++;
    e->stats.tokens += (uint64_t)n;
    return wanted;
}

// Everything is checked before the first row is appended.
static int check_rows(const struct engine *e, const struct mr_row *rows, int n, const int *length,
                      int *added, struct mr_error *err)
{
    const struct mr_config *c = &e->base.config;
    for (int i = 0; i < n; i++) {
        int s = rows[i].seq;
        if (s < 0 || s >= e->opt.max_seqs || !e->seqs[s].used)
            return mr_fail(err, MR_ERR_USAGE, "row %d: there is no sequence %d", i, s);
        if (rows[i].token < 0 || rows[i].token >= c->vocab_size)
            return mr_fail(err, MR_ERR_USAGE, "row %d: token %d is outside the vocabulary of %d", i,
                           rows[i].token, c->vocab_size);
        if (length[s] + ++added[s] > c->n_positions)
            return mr_fail(err, MR_ERR_FIT, "the sequence is longer than the model's %d positions",
                           c->n_positions);
    }
    return 0;
}

// A step that fails changes nothing: what its runs have put into the KV store lies behind the
// sequences' ends.
static int engine_step(struct mr_backend *b, const struct mr_row *rows, int n, float *logits,
                       struct mr_error *err)
{
    struct engine *e = engine_of(b);
    int seqs = e->opt.max_seqs;
    int *length = calloc(2 * (size_t)seqs, sizeof *length);
    if (!length)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a step");
    for (int s = 0; s < seqs; s++)
        length[s] = e->seqs[s].pos;
    int rc = check_rows(e, rows, n, length, length + seqs, err);
    for (int done = 0; rc == 0 && done < n;) {
        int k = n - done < e->chunk ? n - done : e->chunk;
        int wanted = run_rows(e, rows + done, k, logits, err);
        rc = wanted < 0 ? wanted : 0;
        logits += rc == 0 ? (size_t)wanted * (size_t)b->config.vocab_size : 0;
        done += k;
    }
    for (int s = 0; rc < 0 && s < seqs; s++)
        e->seqs[s].pos = length[s];
    free(length);
    return rc;
}

static int engine_seq_new(struct mr_backend *b, int *seq, struct mr_error *err)
{
    struct engine *e = engine_of(b);
    for (int i = 0; i < e->opt.max_seqs; i++)
        if (!e->seqs[i].used) {
            e->seqs[i] = (struct seq){.used = true};
            *seq = i;
            return 0;
        }
    return mr_fail(err, MR_ERR_FIT, "all %d sequences are in use", e->opt.max_seqs);
}

static void engine_seq_free(struct mr_backend *b, int seq)
{
    engine_of(b)->seqs[seq].used = false;
}

static void engine_stats(struct mr_backend *b, struct mr_backend_stats *s)
{
    const struct engine *e = engine_of(b);
    *s = e->stats;
    if (!e->stages)
        return;
    struct mr_mover_stats m = mr_mover_stats(e->mover);
    s->link_bytes = m.up + m.down;
    memcpy(s->link_waited, m.waited, sizeof s->link_waited);
}

static void engine_close(struct mr_backend *b)
{
    struct engine *e = engine_of(b);
    weights_free(e);
    free(e->seqs);
    free(e->rotary);
    free(e->emb);
    free(e->row);
    free(e);
}

static const struct mr_backend_ops engine_ops = {engine_seq_new, engine_seq_free, engine_step,
                                                 engine_stats, engine_close};

int mr_engine_open(struct mr_backend **backend, const struct mr_packed *packed,
                   struct mr_device *dev, const struct mr_engine_options *opt, struct mr_error *err)
{
    *backend = NULL;
    struct engine *e = calloc(1, sizeof *e);
    if (!e)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the engine");
    const struct mr_geometry *g = &mr_device_info(dev)->g;
    e->base = (struct mr_backend){.ops = &engine_ops, .config = packed->config};
    e->packed = packed;
    e->dev = dev;
    e->opt = *opt;
    e->n = g->n;
    int room = opt->two_pass ? g->t / 2 : g->t;
    room = room < MR_PROGRAM_ROWS ? room : MR_PROGRAM_ROWS;
    e->chunk = opt->chunk > 0 && opt->chunk < room ? opt->chunk : room;
    e->base.chunk = e->chunk;
    struct mr_dims d = mr_dims_of(&packed->config);
    int positions = packed->config.n_positions;
    int rc = opt->max_seqs >= 1 ? 0 : mr_fail(err, MR_ERR_USAGE, "max_seqs must be at least 1");
    if (rc == 0)
        rc = mr_engine_fits(g, mr_device_info(dev)->config, &packed->config, opt->two_pass, err);
    if (rc == 0)
        rc = size_kv(e, err);
    if (rc == 0)
        rc = weights_tasks(e, err);
    if (rc == 0) {
        e->seqs = calloc((size_t)opt->max_seqs, sizeof *e->seqs);
        e->rotary = malloc(((size_t)positions * (size_t)d.rot_floats + 1) * sizeof(float));
        e->emb = calloc((size_t)d.d, sizeof(float));
        e->row = calloc((size_t)d.d, sizeof(float));
        if (!e->seqs || !e->rotary || !e->emb || !e->row)
            rc = mr_fail(err, MR_ERR_MEMORY, "no memory for the engine's tables");
    }
    for (int i = 0; rc == 0 && i < positions; i++)
        mr_rotary_row(i, packed->config.rotary_dim, d.rot_floats,
                      e->rotary + (size_t)i * (size_t)d.rot_floats);
    if (rc == 0)
        rc = weights_upload(e, err);
    if (rc == 0)
        rc = alloc_run(e, err);
    if (rc < 0) {
        engine_close(&e->base);
        return rc;
    }
    *backend = &e->base;
    return 0;
}

int mr_engine_seq_set_length(struct mr_backend *backend, int seq, int length, struct mr_error *err)
{
    struct engine *e = engine_of(backend);
    if (seq < 0 || seq >= e->opt.max_seqs || !e->seqs[seq].used || length < 0 ||
        length > backend->config.n_positions)
        return mr_fail(err, MR_ERR_USAGE, "sequence %d cannot be %d positions long", seq, length);
    e->seqs[seq].pos = length;
    return 0;
}

int mr_engine_seq_length(const struct mr_backend *backend, int seq)
{
    const struct engine *e = (const struct engine *)backend;
    return seq >= 0 && seq < e->opt.max_seqs && e->seqs[seq].used ? e->seqs[seq].pos : -1;
}

bool mr_engine_two_pass(const struct mr_backend *backend)
{
    return ((const struct engine *)backend)->opt.two_pass;
}

const struct mr_program *mr_engine_program(const struct mr_backend *backend, bool head)
{
    const struct engine *e = (const struct engine *)backend;
    return e->stages ? NULL : &e->tasks[head].program;
}
