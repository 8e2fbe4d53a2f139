// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/num.h"
#include "model/arch.h"
#include "common/clock.h"
#include "device/configs.h"
#include "engine/deal.h"
#include "engine/program.h"
#include "engine/rotary.h"
#include "pack/identity.h"

enum { BEAT = MR_BEAT_BYTES, DESC_WORDS = 16 * 9 };

struct seq {
    bool used;
    int pos;
};

struct engine {
    struct mr_backend base;
    const struct mr_packed *packed;
    struct mr_device *dev;
    struct mr_engine_options opt;
    int n, chunk;              // channels, rows a step
    struct mr_program prog[2]; // without and with the head
    uint64_t prog_addr[2];
    uint64_t weight_addr[64], kv_addr[64];
    uint64_t input_addr, result_addr, desc_addr;
    uint32_t input_beats, result_beats, weight_beats, kv_beats; // kv: of one channel
    uint32_t kv_rec, kv_scale; // beats of a record, and of its scales
    uint32_t kv_positions;     // per channel
    uint32_t kv_layer, kv_seq; // beats per channel
    struct seq *seqs;
    float *rotary; // [n_positions][rot_floats]
    float *emb;    // [d], zero beyond n_embd
    float *row;    // [n_embd]: of a table
    struct mr_backend_stats stats;
    uint8_t *dealt[64];      // host copies where the device maps them
    struct place *places[2]; // [commands + 1] of each program; made when somebody watches
};

// What lies in front of a command of a program.
struct place {
    int layer;      // of the command
    uint64_t beats; // of weights, of one channel
};

// A run that is watched.
struct watched {
    struct engine *e;
    int head, rows;
    double start;
};

static struct engine *self(struct mr_backend *b)
{
    return (struct engine *)b;
}

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
    struct mr_engine_limit l[MR_ENGINE_LIMITS];
    int rc = mr_config_on_engine(model, err);
    if (rc < 0)
        return rc;
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
    struct mr_error err = {0};
    size_t used = 0;
    if (mr_config_on_engine(model, &err) < 0) {
        (void)snprintf(text, size, "%s", err.text);
        return;
    }
    mr_engine_limits(&nearest->g, model, false, l);
    for (int k = 0; fewest > 0 && k < MR_ENGINE_LIMITS; k++)
        if (l[k].need > l[k].have && used < size) {
            int n = snprintf(text + used, size - used, "%s%s is %d, '%s' has %d", used ? ", " : "",
                             l[k].what, l[k].need, nearest->name, l[k].have);
            used += n > 0 ? (size_t)n : 0;
        }
}

static int upload_weights(struct engine *e, struct mr_error *err)
{
    const struct mr_packed *p = e->packed;
    int64_t beats = mr_stream_beats(&p->config, p->format, e->n);
    if (beats > UINT32_MAX)
        return mr_fail(err, MR_ERR_FIT, "the weight stream has more than 2^32 beats a channel");
    e->weight_beats = (uint32_t)beats;
    e->dev->upload.total = (size_t)e->n * (size_t)beats * BEAT;
    if (p->map.data) { // of a packed file it costs nothing
        int rc = mr_packed_identity(p, &e->dev->upload.identity, err);
        if (rc < 0)
            return rc;
    }
    for (int c = 0; c < e->n; c++) {
        const void *stream = p->stream;
        if (e->n > 1) {
            e->dealt[c] = aligned_alloc(4096, ((size_t)beats * BEAT + 4095) / 4096 * 4096);
            if (!e->dealt[c])
                return mr_fail(err, MR_ERR_MEMORY, "no memory for the weights of channel %d", c);
            mr_deal_channel(p, e->n, c, e->dealt[c]);
            stream = e->dealt[c];
        }
        int rc = mr_device_alloc(e->dev, c, (size_t)beats * BEAT, stream, &e->weight_addr[c], err);
        if (mr_device_info(e->dev)->copies) {
            free(e->dealt[c]);
            e->dealt[c] = NULL;
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int alloc_kv(struct engine *e, struct mr_error *err)
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
    for (int i = 0; i < e->n; i++) {
        int rc = mr_device_alloc(e->dev, i, (size_t)all * BEAT, NULL, &e->kv_addr[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int alloc_run(struct engine *e, struct mr_error *err)
{
    const struct mr_program *p = &e->prog[1];
    e->input_beats = (uint32_t)(p->res_off + e->chunk * p->res_beats);
    e->result_beats = (uint32_t)(p->out_beats * e->chunk);
    int rc = mr_device_alloc(e->dev, 0, (size_t)e->input_beats * BEAT, NULL, &e->input_addr, err);
    if (rc == 0)
        rc = mr_device_alloc(e->dev, 0, (size_t)e->result_beats * BEAT, NULL, &e->result_addr, err);
    if (rc == 0)
        rc = mr_device_alloc(e->dev, 0, DESC_WORDS * 4, NULL, &e->desc_addr, err);
    for (int i = 0; rc == 0 && i < 2; i++) {
        size_t bytes = (size_t)e->prog[i].count * BEAT;
        rc = mr_device_alloc(e->dev, 0, bytes, NULL, &e->prog_addr[i], err);
        if (rc == 0)
            rc = mr_device_write(e->dev, e->prog_addr[i], e->prog[i].cmds, bytes, err);
    }
    return rc;
}

static void put_u64(uint32_t *w, uint64_t v)
{
    w[0] = (uint32_t)v;
    w[1] = (uint32_t)(v >> 32);
}

static int write_descriptor(struct engine *e, int n_rows, int head, struct mr_error *err)
{
    uint32_t w[DESC_WORDS] = {0};
    w[MR_RUN_MAGIC] = MR_MAGIC_RUN;
    w[MR_RUN_N_CMDS] = (uint32_t)e->prog[head].count;
    w[MR_RUN_N_ROWS] = (uint32_t)n_rows;
    w[MR_RUN_FLAGS] = e->opt.two_pass;
    put_u64(w + MR_RUN_PROG_LO, e->prog_addr[head]);
    put_u64(w + MR_RUN_INPUT_LO, e->input_addr);
    put_u64(w + MR_RUN_RESULT_LO, e->result_addr);
    w[MR_RUN_PROG_BEATS] = (uint32_t)e->prog[head].count;
    w[MR_RUN_INPUT_BEATS] = e->input_beats;
    w[MR_RUN_RESULT_BEATS] = e->result_beats;
    w[MR_RUN_KV_LAYER_BEATS] = e->kv_layer;
    w[MR_RUN_KV_V_BEATS] = e->kv_positions * e->kv_rec;
    w[MR_RUN_KV_PM_BEATS] = 2 * e->kv_positions * e->kv_rec;
    for (int c = 0; c < e->n; c++) {
        uint32_t *ch = w + 16 + 8 * c;
        put_u64(ch, e->weight_addr[c]);
        ch[2] = e->weight_beats;
        put_u64(ch + 4, e->kv_addr[c]);
        ch[6] = e->kv_beats;
    }
    return mr_device_write(e->dev, e->desc_addr, w, sizeof w, err);
}

// e->emb = the sum of the tables' rows, in fp32.
static int look_up(struct engine *e, int token, int position, struct mr_error *err)
{
    const struct mr_list *tables = &mr_arch_of(&e->base.config)->tables;
    size_t n = (size_t)e->base.config.n_embd;
    for (int t = 0; t < tables->count; t++) {
        const struct mr_tensor *table = mr_packed_table(e->packed, t);
        int row = tables->items[t].by == MR_BY_TOKEN ? token : position;
        float *to = t == 0 ? e->emb : e->row;
        if (mr_tensor_read_f32(table, (size_t)row * n, n, to) < 0)
            return mr_fail(err, MR_ERR_FORMAT, "%s: row %d cannot be read", table->name, row);
        for (size_t i = 0; t > 0 && i < n; i++)
            e->emb[i] = mr_fadd(e->emb[i], to[i]);
    }
    return 0;
}

static int write_row(struct engine *e, int i, const struct mr_row *row, bool continues,
                     struct mr_error *err)
{
    const struct mr_program *p = &e->prog[1];
    struct seq *s = &e->seqs[row->seq];
    uint32_t table[4] = {(uint32_t)row->seq * e->kv_seq, (uint32_t)s->pos,
                         (uint32_t)row->want_logits | (uint32_t)continues << 1, 0};
    int rc = look_up(e, row->token, s->pos, err);
    if (rc < 0)
        return rc;
    size_t rot = (size_t)p->rot_beats * BEAT, res = (size_t)p->res_beats * BEAT;
    rc = mr_device_write(e->dev, e->input_addr + 16 * (uint64_t)i, table, sizeof table, err);
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

static bool find_places(struct engine *e, int head)
{
    const struct mr_program *p = &e->prog[head];
    struct place *at = e->places[head] ? NULL : calloc((size_t)p->count + 1, sizeof *at);
    int items = 0;
    if (!at)
        return e->places[head] != NULL;
    for (int i = 0; i < p->count; i++) {
        unsigned op = mr_command_get(&p->cmds[i], MR_F_CMD_OPCODE);
        at[i + 1] = at[i];
        if (op != MR_OP_STREAM_VEC && op != MR_OP_STREAM_TILES)
            continue;
        struct mr_stream_item item = mr_stream_item(&e->base.config, e->packed->format, items++);
        at[i].layer = at[i + 1].layer = item.layer;
        at[i + 1].beats += (uint64_t)mr_item_beats(&item, e->n);
    }
    e->places[head] = at;
    return true;
}

// Readers are ahead of the array, by the ring: a device that counts beats says where it reads.
static int tell(void *arg, const struct mr_device_moment *m)
{
    const struct watched *w = arg;
    struct engine *e = w->e;
    const struct place *at = e->places[w->head];
    int count = e->prog[w->head].count;
    int done = m->commands < (unsigned)count ? (int)m->commands : count;
    double all = (double)at[count].beats, read = (double)at[done].beats;
    struct mr_progress p = {.tokens = e->stats.tokens,
                            .rows = w->rows,
                            .commands = m->commands ? count : 0,
                            .done = done,
                            .layer = at[done].layer,
                            .layers = e->base.config.n_layer,
                            .cycles = m->cycles,
                            .seconds = mr_seconds() - w->start};
    if (m->weight_beats)
        read = (double)m->weight_beats / e->n;
    p.share = read < all ? read / all : 1;
    return e->base.watch(e->base.watch_arg, &p);
}

static int run_watched(struct engine *e, int head, int rows, struct mr_error *err)
{
    struct watched w = {e, head, rows, mr_seconds()};
    if (e->base.watch && find_places(e, head)) {
        e->dev->watch.call = tell;
        e->dev->watch.arg = &w;
    }
    int rc = mr_device_run(e->dev, e->desc_addr, err);
    e->dev->watch.call = NULL;
    return rc;
}

// A device error names a command; say which one it is.
static int run_device(struct engine *e, int head, int rows, struct mr_error *err)
{
    e->dev->last_error.code = 0;
    int rc = run_watched(e, head, rows, err);
    unsigned at = e->dev->last_error.command;
    if (rc == MR_ERR_DEVICE && e->dev->last_error.code && at < (unsigned)e->prog[head].count)
        return mr_fail_in(err, "%s",
                          mr_opcode_name(mr_command_get(&e->prog[head].cmds[at], MR_F_CMD_OPCODE)));
    return rc;
}

// One run of the device: at most e->chunk rows.
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
        rc = write_descriptor(e, n, wanted > 0, err);
    if (rc == 0)
        rc = run_device(e, wanted > 0, n, err);
    size_t vocab = (size_t)e->base.config.vocab_size;
    for (int i = 0, k = 0; rc == 0 && i < n; i++) // the device's rows of logits are in its order
        if (place[order[i]] >= 0)
            rc = mr_device_read(
                e->dev, e->result_addr + (uint64_t)k++ * (uint64_t)e->prog[1].out_beats * BEAT,
                logits + (size_t)place[order[i]] * vocab, vocab * sizeof *logits, err);
    uint64_t counter[MR_COUNTERS];
    if (rc == 0)
        rc = mr_device_counters(e->dev, counter, err);
    if (rc < 0)
        return rc;
    e->stats.steps++;
    e->stats.tokens += (uint64_t)n;
    for (int i = 0; i < (int)MR_COUNTERS; i++)
        e->stats.counter[i] += counter[i];
    return wanted;
}

static int engine_step(struct mr_backend *b, const struct mr_row *rows, int n, float *logits,
                       struct mr_error *err)
{
    struct engine *e = self(b);
    // Everything is checked before the first row is appended, so that an error changes nothing.
    int *len = calloc((size_t)e->opt.max_seqs, sizeof *len);
    if (!len)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a step");
    int rc = n >= 1 ? 0 : mr_fail(err, MR_ERR_USAGE, "a step needs at least one row");
    for (int i = 0; rc == 0 && i < n; i++) {
        int s = rows[i].seq;
        if (s < 0 || s >= e->opt.max_seqs || !e->seqs[s].used)
            rc = mr_fail(err, MR_ERR_USAGE, "row %d: there is no sequence %d", i, s);
        else if (rows[i].token < 0 || rows[i].token >= b->config.vocab_size)
            rc = mr_fail(err, MR_ERR_USAGE, "row %d: token %d is outside the vocabulary of %d", i,
                         rows[i].token, b->config.vocab_size);
        else if (e->seqs[s].pos + ++len[s] > b->config.n_positions)
            rc = mr_fail(err, MR_ERR_FIT, "the sequence is longer than the model's %d positions",
                         b->config.n_positions);
    }
    free(len);
    for (int done = 0; rc == 0 && done < n;) {
        int k = n - done < e->chunk ? n - done : e->chunk;
        int wanted = run_rows(e, rows + done, k, logits, err);
        if (wanted < 0)
            return wanted;
        logits += (size_t)wanted * (size_t)b->config.vocab_size;
        done += k;
    }
    return rc;
}

static int engine_seq_new(struct mr_backend *b, int *seq, struct mr_error *err)
{
    struct engine *e = self(b);
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
    self(b)->seqs[seq].used = false;
}

static void engine_stats(struct mr_backend *b, struct mr_backend_stats *s)
{
    *s = self(b)->stats;
}

static void engine_close(struct mr_backend *b)
{
    struct engine *e = self(b);
    for (int i = 0; i < 2; i++) {
        mr_program_free(&e->prog[i]);
        free(e->places[i]);
    }
    for (int c = 0; c < 64; c++)
        free(e->dealt[c]);
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
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = mr_program_build(&e->prog[i], &packed->config, packed->format, i == 1, err);
    if (rc == 0)
        rc = mr_engine_fits(g, mr_device_info(dev)->config, &packed->config, opt->two_pass, err);
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
        rc = upload_weights(e, err);
    if (rc == 0)
        rc = alloc_kv(e, err);
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
    struct engine *e = self(backend);
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

int mr_engine_kv_record(const struct mr_backend *backend)
{
    return (int)((const struct engine *)backend)->kv_rec * BEAT;
}

// Part 0: K, 1: V, 2: prefix maxima of a sequence's layer: where channel c has them, one behind the
// other. Position p is on channel p mod N.
static uint64_t kv_part(const struct engine *e, int seq, int layer, int part, int c)
{
    uint64_t beat = (uint64_t)seq * e->kv_seq + (uint64_t)layer * e->kv_layer +
                    (uint64_t)part * e->kv_positions * e->kv_rec;
    return e->kv_addr[c] + beat * BEAT;
}

// Between records[count][bytes] and the channels.
static int kv_move(struct engine *e, int seq, int layer, int part, int count, size_t bytes,
                   uint8_t *records, bool write, struct mr_error *err)
{
    uint8_t *piece = malloc(((size_t)count / (size_t)e->n + 1) * bytes);
    int rc = piece ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for KV records");
    for (int c = 0; rc == 0 && c < e->n && c < count; c++) {
        size_t mine = (size_t)(count - c + e->n - 1) / (size_t)e->n;
        uint64_t at = kv_part(e, seq, layer, part, c);
        if (!write)
            rc = mr_device_read(e->dev, at, piece, mine * bytes, err);
        for (size_t i = 0; rc == 0 && i < mine; i++) {
            uint8_t *record = records + (i * (size_t)e->n + (size_t)c) * bytes;
            memcpy(write ? piece + i * bytes : record, write ? record : piece + i * bytes, bytes);
        }
        if (write)
            rc = mr_device_write(e->dev, at, piece, mine * bytes, err);
    }
    free(piece);
    return rc;
}

int mr_engine_kv_read(struct mr_backend *backend, int seq, int layer, int count, uint8_t *records,
                      struct mr_error *err)
{
    struct engine *e = self(backend);
    size_t bytes = (size_t)e->kv_rec * BEAT;
    int rc = kv_move(e, seq, layer, 0, count, bytes, records, false, err);
    if (rc == 0)
        rc = kv_move(e, seq, layer, 1, count, bytes, records + (size_t)count * bytes, false, err);
    return rc;
}

int mr_engine_kv_write(struct mr_backend *backend, int seq, int layer, int count,
                       const uint8_t *records, struct mr_error *err)
{
    struct engine *e = self(backend);
    size_t bytes = (size_t)e->kv_rec * BEAT, scales = (size_t)e->kv_scale * BEAT;
    const uint8_t *v = records + (size_t)count * bytes;
    uint8_t *maxima = calloc((size_t)count, scales);
    if (!maxima)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the prefix maxima of %d positions",
                       count);
    for (int p = 0; p < count; p++)
        for (size_t b = 0; b < scales; b++) {
            uint8_t code = v[(size_t)p * bytes + b];
            uint8_t before = p ? maxima[(size_t)(p - 1) * scales + b] : 0;
            maxima[(size_t)p * scales + b] = code > before ? code : before;
        }
    int rc = kv_move(e, seq, layer, 0, count, bytes, (uint8_t *)(uintptr_t)records, true, err);
    if (rc == 0)
        rc = kv_move(e, seq, layer, 1, count, bytes, (uint8_t *)(uintptr_t)v, true, err);
    if (rc == 0)
        rc = kv_move(e, seq, layer, 2, count, scales, maxima, true, err);
    free(maxima);
    return rc;
}

const struct mr_program *mr_engine_program(const struct mr_backend *backend, bool head)
{
    return &((const struct engine *)backend)->prog[head];
}

int mr_engine_kv_hash(struct mr_backend *backend, int seq, uint64_t *hash, struct mr_error *err)
{
    struct engine *e = self(backend);
    uint64_t h = 0xCBF29CE484222325u;
    uint8_t *rec = malloc((size_t)e->kv_rec * BEAT);
    int rc = rec ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for a KV record");
    for (int l = 0; rc == 0 && l < backend->config.n_layer; l++)
        for (int pos = 0; rc == 0 && pos < e->seqs[seq].pos; pos++)
            for (int part = 0; rc == 0 && part < 3; part++) { // K, V, prefix maxima
                uint32_t beats = part == 2 ? e->kv_scale : e->kv_rec;
                uint64_t at = kv_part(e, seq, l, part, pos % e->n);
                rc = mr_device_read(e->dev, at + (uint64_t)(pos / e->n) * beats * BEAT, rec,
                                    (size_t)beats * BEAT, err);
                for (size_t i = 0; rc == 0 && i < (size_t)beats * BEAT; i++)
                    h = (h ^ rec[i]) * 0x100000001B3u;
            }
    free(rec);
    *hash = h;
    return rc;
}
