// SPDX-License-Identifier: Apache-2.0
#include "serve/metrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const double seconds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                 1,     2.5,    5,     10,   25,    50,   100, 250,  0};
static const double sizes[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 0};

const char *mr_serve_path_name(enum mr_serve_path path)
{
    static const char *const names[MR_PATHS] = {
        [MR_PATH_PAGE] = "/",
        [MR_PATH_COMPLETIONS] = "/v1/completions",
        [MR_PATH_CHAT] = "/v1/chat/completions",
        [MR_PATH_EMBEDDINGS] = "/v1/embeddings",
        [MR_PATH_TOKENIZE] = "/v1/tokenize",
        [MR_PATH_DETOKENIZE] = "/v1/detokenize",
        [MR_PATH_MODELS] = "/v1/models",
        [MR_PATH_HEALTH] = "/health",
        [MR_PATH_METRICS] = "/metrics",
        [MR_PATH_OTHER] = "other",
    };
    return names[path];
}

void mr_metrics_open(struct mr_metrics *m)
{
    *m = (struct mr_metrics){0};
    m->request_seconds.bounds = m->first_token_seconds.bounds = seconds;
    m->queue_seconds.bounds = m->token_seconds.bounds = seconds;
    m->batch.bounds = sizes;
}

void mr_metrics_count(struct mr_metrics *m, enum mr_serve_path path, int status)
{
    if (status >= 0 && status < (int)(sizeof m->requests[0] / sizeof m->requests[0][0]))
        m->requests[path][status]++;
}

void mr_histogram_add(struct mr_histogram *h, double value)
{
    int i = 0;
    while (h->bounds[i] > 0 && value > h->bounds[i])
        i++;
    h->count[i]++;
    h->observations++;
    h->sum += value;
}

// Appends lines; the first failure stays in *err.
static void put(struct mr_buf *text, struct mr_error *err, const char *fmt, ...) MR_PRINTF(3, 4);

static void put(struct mr_buf *text, struct mr_error *err, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (err->status == 0 && n > 0 && (size_t)n < sizeof line)
        mr_buf_append(text, line, (size_t)n, err);
}

static void head(struct mr_buf *text, struct mr_error *err, const char *name, const char *type,
                 const char *help)
{
    put(text, err, "# HELP millrace_%s %s\n# TYPE millrace_%s %s\n", name, help, name, type);
}

static void number(struct mr_buf *text, struct mr_error *err, const char *name, const char *type,
                   uint64_t value, const char *help)
{
    head(text, err, name, type, help);
    put(text, err, "millrace_%s %" PRIu64 "\n", name, value);
}

static void histogram(struct mr_buf *text, struct mr_error *err, const char *name,
                      const struct mr_histogram *h, const char *help)
{
    uint64_t below = 0;
    head(text, err, name, "histogram", help);
    for (int i = 0; h->bounds[i] > 0; i++) {
        below += h->count[i];
        put(text, err, "millrace_%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, h->bounds[i], below);
    }
    put(text, err,
        "millrace_%s_bucket{le=\"+Inf\"} %" PRIu64 "\nmillrace_%s_sum %.9g\nmillrace_%s_count "
        "%" PRIu64 "\n",
        name, h->observations, name, h->sum, name, h->observations);
}

static void print_requests(const struct mr_metrics *m, struct mr_buf *text, struct mr_error *err)
{
    static const char *const reasons[] = {"length",      "eos",       "stopped", "context",
                                          "stop_string", "cancelled", "failed"};
    head(text, err, "http_requests_total", "counter", "Responses by path and status.");
    for (int p = 0; p < MR_PATHS; p++)
        for (int s = 0; s < 600; s++)
            if (m->requests[p][s])
                put(text, err,
                    "millrace_http_requests_total{path=\"%s\",code=\"%d\"} %" PRIu64 "\n",
                    mr_serve_path_name((enum mr_serve_path)p), s, m->requests[p][s]);
    head(text, err, "sequences_finished_total", "counter", "Texts by what ended them.");
    for (int i = 0; i <= MR_FINISH_FAILED; i++)
        put(text, err, "millrace_sequences_finished_total{reason=\"%s\"} %" PRIu64 "\n", reasons[i],
            m->finished[i]);
}

static uint64_t resident_bytes(void)
{
    unsigned long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f)
        return 0;
    if (fscanf(f, "%lu %lu", &size, &resident) != 2)
        resident = 0;
    (void)fclose(f); // only read
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int layer_of(const struct mr_progress *p)
{
    int layer = p->layer < p->layers ? p->layer + 1 : p->layers;
    return p->seconds > 0 && p->commands > 0 ? layer : 0;
}

// Of all units together, and what each of them did with its cycles (docs/inside/counters.md).
static void print_device(const struct mr_metrics *m, struct mr_buf *text, struct mr_error *err)
{
    uint64_t steps = 0, tokens = 0, cycles = 0;
    bool counts = m->units > 0 && m->device[0].counts;
    for (int u = 0; u < m->units; u++) {
        steps += m->device[u].steps;
        tokens += m->device[u].tokens;
        for (int i = 0; mr_stats_name(i); i++)
            cycles += strcmp(mr_stats_name(i), "cycles") == 0 ? m->device[u].counter[i] : 0;
    }
    number(text, err, "device_steps_total", "counter", steps, "Runs of the device.");
    number(text, err, "device_tokens_total", "counter", tokens, "Tokens that went through it.");
    number(text, err, "device_units", "gauge", (uint64_t)m->units, "Engines of the device.");
    head(text, err, "device_step_seconds", "gauge", "How long a unit's present step has taken.");
    for (int u = 0; u < m->units; u++)
        put(text, err, "millrace_device_step_seconds{unit=\"%d\"} %.3f\n", u, m->step[u].seconds);
    head(text, err, "device_step_layer", "gauge", "The layer that it is in, from 1; 0: none.");
    for (int u = 0; u < m->units; u++)
        put(text, err, "millrace_device_step_layer{unit=\"%d\"} %d\n", u, layer_of(&m->step[u]));
    head(text, err, "device_step_share", "gauge", "Of the weights that it has to read.");
    for (int u = 0; u < m->units; u++)
        put(text, err, "millrace_device_step_share{unit=\"%d\"} %.4f\n", u, m->step[u].share);
    if (!counts)
        return;
    number(text, err, "device_cycles_total", "counter", cycles, "Cycles of the device.");
    number(text, err, "device_clock_hertz", "gauge", 1000 * (uint64_t)m->device[0].clock_khz,
           "Its clock, an assumption until placed and routed.");
    head(text, err, "device_counter_total", "counter",
         "What the device's counters have counted, by unit and name.");
    for (int u = 0; u < m->units; u++)
        for (int i = 0; mr_stats_name(i); i++)
            put(text, err,
                "millrace_device_counter_total{unit=\"%d\",counter=\"%s\"} %" PRIu64 "\n", u,
                mr_stats_name(i), m->device[u].counter[i]);
}

int mr_metrics_print(const struct mr_metrics *m, struct mr_buf *text, struct mr_error *err)
{
    struct mr_error e = {0};
    print_requests(m, text, &e);
    number(text, &e, "prompt_tokens_total", "counter", m->prompt_tokens,
           "Tokens of prompts of finished texts.");
    number(text, &e, "generated_tokens_total", "counter", m->generated_tokens, "New tokens.");
    number(text, &e, "embedded_texts_total", "counter", m->embedded_texts,
           "Texts that an encoder has embedded.");
    number(text, &e, "sequences_waiting", "gauge", (uint64_t)m->waiting,
           "Texts that wait for a place on the device.");
    number(text, &e, "sequences_running", "gauge", (uint64_t)m->running, "Texts on the device.");
    number(text, &e, "connections", "gauge", (uint64_t)m->connections, "Open connections.");
    histogram(text, &e, "batch_size", &m->batch, "Texts that share a step.");
    histogram(text, &e, "request_seconds", &m->request_seconds,
              "From a whole request to the end of its texts.");
    histogram(text, &e, "queue_seconds", &m->queue_seconds,
              "From a whole request to its first step.");
    histogram(text, &e, "time_to_first_token_seconds", &m->first_token_seconds,
              "From a whole request to the first new token.");
    histogram(text, &e, "time_per_output_token_seconds", &m->token_seconds,
              "Mean between a text's new tokens.");
    print_device(m, text, &e);
    number(text, &e, "resident_memory_bytes", "gauge", resident_bytes(), "Of this process.");
    if (e.status < 0 && err)
        *err = e;
    return e.status;
}
