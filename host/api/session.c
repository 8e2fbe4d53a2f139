// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
#include "device/open.h"
#include "engine/cpu_backend.h"
#include "engine/engine.h"

_Static_assert(MR_COUNTERS <= 64, "mr_stats.counter holds all counters");

// check adds the option of that name to a simulated device.
static int open_device(struct mr_device **dev, const char *device, bool check, struct mr_error *err)
{
    char uri[512];
    if (!check)
        return mr_device_open(dev, device, err);
    if (strncmp(device, "sim:", 4) != 0)
        return mr_fail(err, MR_ERR_USAGE,
                       "device '%s' cannot be checked against the C model, only a sim: device",
                       device);
    int n = snprintf(uri, sizeof uri, "%s%scheck", device, device[4] ? "," : "");
    if ((size_t)n >= sizeof uri)
        return mr_fail(err, MR_ERR_USAGE, "%.64s...: too long", device);
    return mr_device_open(dev, uri, err);
}

int mr_session_open(struct mr_session **session, struct mr_model *model, const char *device,
                    const struct mr_session_options *opt, struct mr_error *err)
{
    static const struct mr_session_options defaults;
    *session = NULL;
    if (!opt)
        opt = &defaults;
    if (opt->max_seqs < 0 || opt->chunk < 0)
        return mr_fail(err, MR_ERR_USAGE, "max_seqs and chunk must not be negative");
    if (!model->packed.stream)
        return mr_fail(err, MR_ERR_USAGE, "the model was loaded to be described only");
    struct mr_session *s = calloc(1, sizeof *s);
    if (!s)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a session");
    s->model = model;
    s->max_seqs = opt->max_seqs ? opt->max_seqs : 1;
    int rc;
    if (strcmp(device, "cpu:") == 0) {
        rc =
            model->packed.checkpoint || model->synthetic
                ? mr_cpu_backend_open(&s->backend, &model->packed, err)
                : mr_fail(err, MR_ERR_UNSUPPORTED,
                          "cpu: computes from the fp32 checkpoint; give the Hugging Face directory "
                          "instead of a packed file");
    } else {
        struct mr_engine_options e = {s->max_seqs, opt->chunk, opt->two_pass};
        rc = open_device(&s->dev, device, opt->check, err);
        if (rc == 0) {
            s->dev->upload.progress = opt->progress;
            s->dev->upload.arg = opt->arg;
            rc = mr_engine_open(&s->backend, &model->packed, s->dev, &e, err);
        }
    }
    if (rc < 0) {
        mr_session_close(s);
        return rc;
    }
    *session = s;
    return 0;
}

void mr_session_close(struct mr_session *session)
{
    if (!session)
        return;
    mr_backend_close(session->backend);
    mr_device_close(session->dev);
    free(session);
}

int mr_session_seq_new(struct mr_session *session, int *seq, struct mr_error *err)
{
    return mr_backend_seq_new(session->backend, seq, err);
}

void mr_session_seq_free(struct mr_session *session, int seq)
{
    mr_backend_seq_free(session->backend, seq);
}

int mr_session_seq_set_length(struct mr_session *session, int seq, int length, struct mr_error *err)
{
    if (!session->dev)
        return mr_cpu_backend_seq_set_length(session->backend, seq, length, err);
    return mr_engine_seq_set_length(session->backend, seq, length, err);
}

int mr_session_seq_length(const struct mr_session *session, int seq)
{
    return session->dev ? mr_engine_seq_length(session->backend, seq)
                        : mr_cpu_backend_seq_length(session->backend, seq);
}

int mr_session_step(struct mr_session *session, const struct mr_row *rows, int count, float *logits,
                    struct mr_error *err)
{
    if (count < 1)
        return mr_fail(err, MR_ERR_USAGE, "a step needs at least one row");
    return mr_backend_step(session->backend, rows, count, logits, err);
}

void mr_session_watch(struct mr_session *session,
                      int (*progress)(void *arg, const struct mr_progress *p), void *arg)
{
    session->backend->watch = progress;
    session->backend->watch_arg = arg;
}

void mr_session_get_stats(const struct mr_session *session, struct mr_stats *stats)
{
    struct mr_backend_stats b;
    mr_backend_stats(session->backend, &b);
    *stats = (struct mr_stats){.steps = b.steps, .tokens = b.tokens};
    if (!session->dev)
        return;
    const struct mr_device_info *info = mr_device_info(session->dev);
    stats->counts = info->counts_cycles;
    stats->clock_khz = info->clock_khz;
    stats->channels = info->g.n;
    stats->rows = info->g.r;
    stats->columns = 4 * info->g.n;
    stats->pin_rate = info->pin_rate;
    stats->sequential_rate = info->sequential_rate;
    memcpy(stats->counter, b.counter, sizeof b.counter);
    stats->units = b.units;
    stats->streamed = b.streamed;
    stats->link_bytes = b.link_bytes;
    memcpy(stats->link_waited, b.link_waited, sizeof b.link_waited);
}

const char *mr_stats_name(int index)
{
#define X(i, name) name,
    static const char *const names[] = {MR_COUNTER_LIST(X)};
#undef X
    return index >= 0 && index < (int)MR_COUNTERS ? names[index] : NULL;
}

const char *mr_version(void)
{
    return MR_VERSION_STRING;
}

void mr_interrupt(void)
{
    mr_device_stop = 1;
}

void mr_interrupt_clear(void)
{
    mr_device_stop = 0;
}
