// SPDX-License-Identifier: Apache-2.0
// `millrace plan --train`: what a step of training takes, as text and JSON.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plan/show.h"
#include "common/error.h"
#include "config/training.h"
#include "plan/train.h"

static const char *const keys[MR_PASS_PARTS] = {
    [MR_PASS_FORWARD] = "forward", [MR_PASS_AGAIN] = "forward_again", [MR_PASS_INPUTS] = "inputs",
    [MR_PASS_WEIGHTS] = "weights", [MR_PASS_ATTENTION] = "attention", [MR_PASS_NORMS] = "norms",
};

struct step {
    const struct plan *p;
    const char *model;
    struct mr_plan_train_job job;
    double capacity; // bytes of device memory; 0: not limited
    struct mr_plan_train t;
    int rows, shortest, longest; // of a micro-batch, and its sequences
    double cycles, seconds;      // of all its micro-batches
};

// ---- what binds ---------------------------------------------------------------------------------

enum { MEMORY, LINK_WHOLE, LINK_TWO, LIMITS };
static const char *const limits[LIMITS] = {"memory", "link_whole", "link_two_layers"};

static double most(const struct mr_plan_link *l)
{
    return fmax(l->up, l->down);
}

// The share of the compute's time that something else takes at the same time.
static void shares(const struct step *s, double share[LIMITS])
{
    double link = s->p->a->link * 1e9 * s->seconds;
    share[MEMORY] = s->t.memory / s->t.sum.cycles;
    share[LINK_WHOLE] = most(&s->t.link_whole) / link;
    share[LINK_TWO] = most(&s->t.link_two) / link;
}

static bool no_link(const struct step *s)
{
    return s->p->board && s->p->board->link <= 0;
}

static const char *binding(const struct step *s)
{
    double share[LIMITS];
    shares(s, share);
    double link = no_link(s) ? 0 : most(&s->t.link) / (s->p->a->link * 1e9 * s->seconds);
    return link > 1 ? "link" : share[MEMORY] > 0.95 ? "memory" : "array";
}

// What a whole run takes, --steps of it.
struct whole_run {
    double tokens, seconds, joules; // joules: at most; 0: not known
    double up, down, memory;        // bytes over the link, and to and from the device's memory
};

static struct whole_run run_of(const struct step *s)
{
    const struct mr_plan_link *l = &s->t.link;
    const struct mr_work *w = &s->t.sum.work;
    double steps = (double)s->p->a->steps, micro_batches = s->job.micro_batches;
    uint64_t beats = w->weights + w->stash_read + w->stash_written + w->kv_written + w->host_read +
                     w->host_written;
    return (struct whole_run){
        .tokens = steps * s->rows * micro_batches,
        .seconds = steps * s->seconds,
        .joules = s->p->board ? s->p->board->watts * steps * s->seconds : 0,
        .up = steps * l->up,
        .down = steps * l->down,
        .memory = steps * micro_batches * MR_BEAT * (double)beats,
    };
}

// ---- text ---------------------------------------------------------------------------------------

static void print_parts(const struct step *s)
{
    const struct mr_plan_train *t = &s->t;
    double pes = 4.0 * s->p->g.n * s->p->g.r;
    printf("  %-10s %16s %16s %9s %9s\n", "part", "block products", "cycles", "MACs", "programs");
    for (int i = 0; i <= MR_PASS_PARTS; i++) {
        const struct mr_plan_train_part *x = i < MR_PASS_PARTS ? &t->part[i] : &t->sum;
        if (x->programs == 0)
            continue;
        printf("  %-10s %16llu %16.0f %7.1f %% %9llu\n",
               i < MR_PASS_PARTS ? mr_pass_part_name(i) : "all",
               (unsigned long long)x->work.mac_blocks, x->cycles,
               100 * (double)x->work.mac_blocks / (x->cycles * pes),
               (unsigned long long)x->programs);
    }
    printf("  estimate   %.3f of the three products at a block a PE and cycle\n",
           t->sum.cycles / t->ideal);
}

static void print_memory(const struct step *s)
{
    const struct mr_plan_train *t = &s->t;
    const struct mr_plan_board *b = s->p->board;
    double whole = (double)mr_pass_bytes(&t->whole), two = (double)mr_pass_bytes(&t->two);
    char verdict[64];
    printf("  stash      %.0f bytes a layer and token\n", t->stash);
    printf("  device     %.3f GB: W and Wt %.3f, stash %.3f, gradients %.3f, the rest %.3f",
           whole / 1e9, (double)t->whole.weights / 1e9,
           (double)(t->whole.stash + t->whole.rows) / 1e9, (double)t->whole.gradients / 1e9,
           (double)(t->whole.kv + t->whole.windows) / 1e9);
    printf("\n             two layers at a time %.3f GB", two / 1e9);
    if (t->streaming.streamed > 0)
        (void)snprintf(verdict, sizeof verdict, "%d of %d layers stream", t->streaming.streamed,
                       t->streaming.units);
    else
        (void)snprintf(verdict, sizeof verdict, t->fits ? "fits" : "DOES NOT FIT");
    if (b && s->p->a->capacity <= 0)
        plan_print_memory_of(b, verdict);
    else if (s->capacity > 0)
        printf("; of %.3f GB: %s", s->capacity / 1e9, verdict);
    printf("\n  store      %.3f GB: weights and moments %.3f; beside it %.3f GB of host memory\n",
           t->disk / 1e9, t->at_rest / 1e9, t->host / 1e9);
    if (t->streams > 0)
        printf("             of an adapter; while it is open, %.3f GB of streams without a name\n",
               t->streams / 1e9);
}

static void print_link(const struct step *s)
{
    const struct {
        const char *text;
        const struct mr_plan_link *l;
    } ways[] = {{"all layers", &s->t.link_whole}, {"two layers", &s->t.link_two}};
    if (no_link(s))
        printf("  link       none: %s has no link to a host beside it\n", s->p->board->name);
    for (int i = 0; i < 2 && !no_link(s); i++)
        printf("  %-10s %s: %.3f GB up, %.3f down a step; hidden from %s GB/s on\n",
               i ? "" : "link", ways[i].text, ways[i].l->up / 1e9, ways[i].l->down / 1e9,
               plan_figure(most(ways[i].l) / s->seconds / 1e9, 3).text);
}

// What layers that stream add.
static void print_streaming(const struct step *s)
{
    const struct mr_pass_streaming *x = &s->t.streaming;
    if (x->streamed == 0)
        return;
    printf("  streams    %d of %d layers with the head: %.3f GB up, %.3f down a micro-batch\n",
           x->streamed, x->units, (double)x->up / 1e9, (double)x->down / 1e9);
    cli_print_waiting(stdout, "             ", x->waited, s->t.sum.cycles);
}

static void print_run(const struct step *s)
{
    struct whole_run r = run_of(s);
    bool hours = r.seconds >= 3600;
    printf("  a run      %ld step%s, %.0f tokens: %s %s", s->p->a->steps,
           s->p->a->steps == 1 ? "" : "s", r.tokens,
           plan_figure(r.seconds / (hours ? 3600 : 1), 4).text, hours ? "hours" : "s");
    if (r.joules > 0)
        printf(", at most %s kWh", plan_figure(r.joules / 3.6e6, 4).text);
    printf("\n             %s GB of the device's memory", plan_figure(r.memory / 1e9, 4).text);
    if (!no_link(s))
        printf("; over the link %s GB up, %s down", plan_figure(r.up / 1e9, 4).text,
               plan_figure(r.down / 1e9, 4).text);
    printf("\n");
}

static void print_step(const struct step *s)
{
    const struct plan *p = s->p;
    const struct mr_plan_train_job *j = &s->job;
    double share[LIMITS], tokens = (double)s->rows * j->micro_batches;
    shares(s, share);
    printf("training of %s on %s (N %d, R %d, T %d): ", s->model, p->config, p->g.n, p->g.r,
           p->g.t);
    plan_print_memory_kind(p);
    char from[48] = "";
    if (p->a->n_lengths > 1)
        (void)snprintf(from, sizeof from, "%d to ", s->shortest);
    printf("  step       %d micro-batch%s of %d rows, sequences of %s%d: %.0f tokens\n",
           j->micro_batches, j->micro_batches == 1 ? "" : "es", s->rows, from, s->longest, tokens);
    print_parts(s);
    print_memory(s);
    print_link(s);
    print_streaming(s);
    if (p->board)
        plan_print_engine(p, s->t.fits, s->t.streaming.streamed > 0);
    printf("  binds      %s; memory busy %.1f %%", binding(s), 100 * share[MEMORY]);
    if (!no_link(s))
        printf(", a link of %s GB/s %.1f %%, with two layers %.1f %%",
               plan_figure(p->a->link, 3).text, 100 * share[LINK_WHOLE], 100 * share[LINK_TWO]);
    printf("\n");
    printf("  a step     %.0f cycles, %s s, %s tokens/s estimated", s->cycles,
           plan_figure(s->seconds, 4).text, plan_figure(tokens / s->seconds, 4).text);
    if (p->board && p->board->watts > 0)
        printf("\n  energy     at most %s J a step, if the board draws the %.0f W that it may",
               plan_figure(p->board->watts * s->seconds, 4).text, p->board->watts);
    printf("\n");
    if (p->a->steps > 0)
        print_run(s);
}

// ---- JSON ---------------------------------------------------------------------------------------

static json_t *part_json(const struct mr_plan_train_part *x)
{
    const struct mr_work *w = &x->work;
    return json_pack("{s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "mac_blocks",
                     (json_int_t)w->mac_blocks, "estimated_cycles", round(x->cycles),
                     "array_cycles", round(x->array), "programs", (json_int_t)x->programs,
                     "commands", (json_int_t)x->commands, "weight_beats", (json_int_t)w->weights,
                     "stash_beats_read", (json_int_t)w->stash_read, "stash_beats_written",
                     (json_int_t)w->stash_written, "kv_beats_written", (json_int_t)w->kv_written,
                     "host_beats_read", (json_int_t)w->host_read, "host_beats_written",
                     (json_int_t)w->host_written);
}

static json_t *memory_json(const struct step *s, const struct mr_pass_memory *m, bool fits)
{
    json_t *o = json_pack("{s:f, s:I, s:I, s:I, s:I, s:I, s:I}", "bytes", (double)mr_pass_bytes(m),
                          "weights", (json_int_t)m->weights, "stash", (json_int_t)m->stash, "rows",
                          (json_int_t)m->rows, "gradients", (json_int_t)m->gradients, "kv",
                          (json_int_t)m->kv, "windows", (json_int_t)m->windows);
    if (s->p->board)
        json_object_set_new(o, "fits", json_boolean(fits));
    return o;
}

static json_t *link_json(const struct step *s, const struct mr_plan_link *l)
{
    return json_pack("{s:f, s:f, s:f}", "bytes_up", l->up, "bytes_down", l->down,
                     "hidden_from_bytes_per_second", most(l) / s->seconds);
}

static json_t *run_json(const struct step *s)
{
    struct whole_run r = run_of(s);
    json_t *o = json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "steps", (json_int_t)s->p->a->steps,
                          "tokens", r.tokens, "seconds", r.seconds, "device_memory_bytes", r.memory,
                          "link_bytes_up", r.up, "link_bytes_down", r.down);
    if (r.joules > 0)
        json_object_set_new(o, "joules_at_most", json_real(r.joules));
    return o;
}

static json_t *step_json(const struct step *s)
{
    const struct plan *p = s->p;
    const struct mr_plan_train *t = &s->t;
    double share[LIMITS], tokens = (double)s->rows * s->job.micro_batches;
    json_t *part = json_object(), *busy = json_object();
    for (int i = 0; i < MR_PASS_PARTS; i++)
        json_object_set_new(part, keys[i], part_json(&t->part[i]));
    json_object_set_new(part, "all", part_json(&t->sum));
    shares(s, share);
    for (int i = 0; i < LIMITS; i++)
        json_object_set_new(busy, limits[i], json_real(share[i]));
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:f, s:i, s:i, s:i, s:i, s:o, s:f, s:f, s:s, s:o, s:f}", "model",
                  s->model, "config", p->config, "memory", p->memory.name, "clock_mhz",
                  p->clock_mhz, "length", s->longest, "sequences", s->job.n_sequences, "rows",
                  s->rows, "micro_batches", s->job.micro_batches, "micro_batch", part,
                  "ideal_cycles", t->ideal, "estimate_over_ideal", t->sum.cycles / t->ideal,
                  "binds", binding(s), "busy", busy, "stash_bytes_a_layer_and_token", t->stash);
    json_object_set_new(o, "device_memory",
                        memory_json(s, &t->whole, t->fits && t->streaming.streamed == 0));
    json_object_set_new(o, "device_memory_two_layers", memory_json(s, &t->two, t->fits));
    if (p->board)
        json_object_set_new(o, "board",
                            plan_board_json(p, t->fits && t->streaming.streamed == 0, t->fits));
    json_object_set_new(o, "store",
                        json_pack("{s:f, s:f, s:f, s:f}", "weights_and_moments_bytes", t->at_rest,
                                  "disk_bytes", t->disk, "unnamed_stream_bytes", t->streams,
                                  "host_memory_bytes", t->host));
    json_object_set_new(o, "link", link_json(s, &t->link_whole));
    json_object_set_new(o, "link_two_layers", link_json(s, &t->link_two));
    json_object_set_new(o, "step",
                        json_pack("{s:f, s:f, s:f}", "estimated_cycles", round(s->cycles),
                                  "seconds", s->seconds, "tokens_per_second", tokens / s->seconds));
    if (t->streaming.streamed > 0)
        json_object_set_new(
            o, "streams",
            json_pack("{s:i, s:i, s:f, s:f, s:f, s:f}", "units", t->streaming.units, "streamed",
                      t->streaming.streamed, "bytes_up", (double)t->streaming.up, "bytes_down",
                      (double)t->streaming.down, "cycles_waited_12_gb_s", t->streaming.waited[0],
                      "cycles_waited_24_gb_s", t->streaming.waited[1]));
    if (p->a->steps > 0)
        json_object_set_new(o, "run", run_json(s));
    return o;
}

// ---- the step -----------------------------------------------------------------------------------

// The list that --length gives, or --rows in sequences of one length, of which the last one has
// what is left. The caller frees *lengths.
static int sequences(const struct plan *p, int **lengths, int *n, struct mr_error *err)
{
    const struct plan_args *a = p->a;
    int length = a->n_lengths > 0 ? (int)a->lengths[0] : p->model.n_positions;
    int rows = a->rows ? (int)a->rows : length;
    *n = a->n_lengths > 1 ? a->n_lengths : (rows + length - 1) / length;
    *lengths = calloc((size_t)*n, sizeof **lengths);
    if (!*lengths)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a plan");
    for (int i = 0; i < *n; i++, rows -= length)
        (*lengths)[i] = a->n_lengths > 1 ? (int)a->lengths[i] : rows < length ? rows : length;
    return 0;
}

int plan_training(const struct plan *p, const char *model)
{
    struct mr_error err = {0};
    const struct plan_args *a = p->a;
    struct mr_training t = {0};
    int *lengths, n_sequences;
    int rc = sequences(p, &lengths, &n_sequences, &err);
    if (rc == 0 && a->lora)
        rc = mr_training_lora(&t, a->lora, &err);
    const struct mr_lora_options lora = {.rank = t.lora.rank,
                                         .alpha = t.lora.alpha,
                                         .targets = t.lora.targets[0] ? t.lora.targets : NULL};
    struct step s = {.p = p,
                     .capacity = a->capacity > 0 ? 0x1p30 * a->capacity
                                 : p->board      ? mr_plan_board_free(p->board)
                                                 : 0,
                     .model = model,
                     .job = {.model = &p->model,
                             .g = &p->g,
                             .config = p->config,
                             .memory = &p->memory,
                             .lengths = lengths,
                             .n_sequences = n_sequences,
                             .micro_batches = (int)a->micro_batches,
                             .clock_mhz = p->clock_mhz,
                             .recompute = a->recompute,
                             .lora = a->lora ? &lora : NULL}};
    s.job.capacity = (uint64_t)s.capacity;
    s.job.no_link = no_link(&s);
    if (rc == 0)
        rc = mr_plan_train(&s.t, &s.job, &err);
    mr_training_free(&t);
    s.rows = rc == 0 ? mr_plan_train_rows(&s.job) : 0;
    s.shortest = s.longest = rc == 0 ? lengths[0] : 0;
    for (int i = 1; rc == 0 && i < n_sequences; i++) {
        s.shortest = lengths[i] < s.shortest ? lengths[i] : s.shortest;
        s.longest = lengths[i] > s.longest ? lengths[i] : s.longest;
    }
    free(lengths);
    if (rc < 0)
        return cli_fail(&err);
    s.cycles = s.t.sum.cycles * s.job.micro_batches;
    s.seconds = s.cycles / (1e6 * p->clock_mhz);
    if (a->c.json)
        return cli_print_json(step_json(&s));
    print_step(&s);
    return EXIT_OK;
}
