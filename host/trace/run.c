// SPDX-License-Identifier: Apache-2.0
#include "trace/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
#include "device/open.h"
#include "device/sim.h"
#include "engine/encode.h"
#include "engine/engine.h"
#include "trace/commands.h"

struct run {
    const struct mr_trace_options *o;
    struct mr_trace *t;
    struct mr_session *session; // NULL: an encoder's
    struct mr_encode *encode;   // of an encoder
    struct mr_device *dev;
    const struct mr_sim_api *api;
    struct mr_sim *sim;
    int vocab, seq;
    struct mr_row *rows;
    int32_t *tokens; // of an encoder
    float *logits;   // or an encoder's rows
};

static int tell(void *arg, const struct mr_progress *p)
{
    const struct mr_trace_options *o = ((const struct run *)arg)->o;
    return o->progress(o->arg, p, o->tokens + (o->skip ? 0 : o->at));
}

static int open_text(struct run *r, struct mr_model *model, const char *uri, struct mr_error *err)
{
    int rc = mr_device_open(&r->dev, uri, err);
    return rc < 0 ? rc
                  : mr_encode_open(&r->encode, &model->packed, r->dev, r->o->session.two_pass, err);
}

static int open_session(struct run *r, struct mr_model *model, const char *uri,
                        struct mr_error *err)
{
    int rc = mr_session_open(&r->session, model, uri, &r->o->session, err);
    if (rc < 0)
        return rc;
    r->dev = r->session->dev;
    if (r->o->progress)
        mr_session_watch(r->session, tell, r);
    return 0;
}

static int open_device(struct run *r, struct mr_model *model, struct mr_error *err)
{
    char uri[512];
    const char *device = r->o->device;
    if (strncmp(device, "sim:", 4) != 0)
        return mr_fail(
            err, MR_ERR_USAGE,
            "device '%s' has no timeline: its cycles are not simulated; use a sim: device", device);
    int n = snprintf(uri, sizeof uri, "%s%s%s", device, device[4] ? "," : "",
                     r->o->waves ? "waves" : "view");
    if (n < 0 || (size_t)n >= sizeof uri)
        return mr_fail(err, MR_ERR_USAGE, "%.64s...: too long", device);
    bool encoder = mr_arch_of(&model->packed.config)->encoder;
    int rc = (encoder ? open_text : open_session)(r, model, uri, err);
    if (rc < 0)
        return rc;
    r->api = mr_device_sim_of(r->dev, &r->sim);
    const struct mr_device_info *info = mr_device_info(r->dev);
    r->t->channels = (unsigned)info->g.n;
    r->t->rows = (unsigned)info->g.r;
    r->t->columns = 4 * r->t->channels;
    r->t->clock_khz = info->clock_khz;
    r->t->sequential_rate = r->api->sequential_rate(r->sim);
    return 0;
}

static int check(const struct run *r, const struct mr_config *c, struct mr_error *err)
{
    const struct mr_trace_options *o = r->o;
    long most = mr_device_info(r->dev)->g.t / (o->session.two_pass ? 2 : 1);
    if (o->session.chunk > 0 && o->session.chunk < most)
        most = o->session.chunk;
    if (o->tokens > most)
        return mr_fail(err, MR_ERR_USAGE,
                       "a timeline is of one device run, and %ld tokens are more than the %ld that "
                       "this device takes in one",
                       o->tokens, most);
    if (o->at + o->tokens > c->n_positions)
        return mr_fail(err, MR_ERR_USAGE,
                       "%ld tokens from position %ld: the model has %d positions", o->tokens, o->at,
                       c->n_positions);
    if (o->layer >= c->n_layer)
        return mr_fail(err, MR_ERR_USAGE, "there is no layer %d: the model has layers 0..%d",
                       o->layer, c->n_layer - 1);
    return 0;
}

// Tokens whose values do not matter, the same in every run.
static int append(struct run *r, long from, long n, bool logits, struct mr_error *err)
{
    for (long i = 0; i < n; i++) {
        uint64_t mixed = (uint64_t)(from + i + 1) * 2654435761u;
        r->tokens[i] = (int32_t)(mixed % (uint64_t)r->vocab);
        r->rows[i] = (struct mr_row){r->seq, r->tokens[i], logits && i == n - 1};
    }
    if (r->encode)
        return mr_encode_rows(r->encode, 1, &(struct mr_cpu_text){r->tokens, NULL, (int)n},
                              r->logits, err);
    return n > 0 ? mr_session_step(r->session, r->rows, (int)n, r->logits, err) : 0;
}

static int prepare(struct run *r, const struct mr_packed *p, struct mr_error *err)
{
    const struct mr_trace_options *o = r->o;
    r->vocab = p->config.vocab_size;
    r->rows = malloc((size_t)p->config.n_positions * sizeof *r->rows);
    r->tokens = malloc((size_t)p->config.n_positions * sizeof *r->tokens);
    size_t width = r->encode ? (size_t)o->tokens * (size_t)p->config.n_embd : (size_t)r->vocab;
    r->logits = malloc(width * sizeof *r->logits);
    if (!r->rows || !r->tokens || !r->logits)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a step");
    int rc = r->encode ? 0 : mr_session_seq_new(r->session, &r->seq, err);
    if (rc == 0 && !r->encode)
        rc = o->skip ? mr_session_seq_set_length(r->session, r->seq, (int)o->at, err)
                     : append(r, 0, o->at, false, err);
    if (rc < 0)
        return rc;
    struct mr_trace *t = r->t;
    t->layer = o->layer;
    t->from = o->layer >= 0 ? UINT64_MAX : o->from;
    t->to = o->layer >= 0 ? UINT64_MAX : o->to;
    t->max_slices = o->max_slices;
    const struct mr_program *program =
        r->encode ? mr_encode_program(r->encode) : mr_engine_program(r->session->backend, o->head);
    if (!program)
        return mr_fail(err, MR_ERR_USAGE,
                       "%s: a timeline is of one device run, and this memory holds the model in "
                       "stages; leave capacity= out or make it larger",
                       mr_device_info(r->dev)->uri);
    return mr_trace_commands(t, program, &p->config, p->format, err);
}

static int measure(struct run *r, struct mr_error *err)
{
    struct mr_sim_timeline to = mr_trace_listener(r->t);
    int rc = r->api->timeline(r->sim, &to, err);
    if (rc == 0 && r->o->waves)
        rc = r->api->waves(r->sim, r->o->waves, r->o->from, r->o->to, err);
    if (rc == 0)
        rc = append(r, r->o->at, r->o->tokens, r->o->head, err);
    struct mr_error off = {0};
    (void)r->api->timeline(r->sim, NULL, &off); // it could be turned on
    if (rc == 0 && r->t->status < 0)
        rc = mr_fail(err, r->t->status, "no memory for the timeline");
    return rc == 0 ? mr_device_counters(r->dev, r->t->counters, err) : rc;
}

int mr_trace_run(struct mr_trace *t, struct mr_model *model, const struct mr_trace_options *o,
                 struct mr_error *err)
{
    struct run r = {.o = o, .t = t};
    *t = (struct mr_trace){.layer = -1};
    int rc = open_device(&r, model, err);
    if (rc == 0)
        rc = check(&r, &model->packed.config, err);
    if (rc == 0)
        rc = prepare(&r, &model->packed, err);
    if (rc == 0)
        rc = measure(&r, err);
    mr_trace_end(t);
    if (rc == 0 && t->from >= t->to)
        rc =
            mr_fail(err, MR_ERR_USAGE, "the window begins at cycle %llu, but the run has only %llu",
                    (unsigned long long)o->from, (unsigned long long)t->cycles);
    if (rc == 0)
        rc = mr_trace_compare(t, err);
    mr_encode_close(r.encode);
    if (!r.session)
        mr_device_close(r.dev);
    mr_session_close(r.session);
    free(r.tokens);
    free(r.rows);
    free(r.logits);
    return rc;
}
