// SPDX-License-Identifier: Apache-2.0
// What decoding at given positions and prefill cost on a device, from its own counters.
#include <stdlib.h>
#include <string.h>

#include "cli/bench/train.h"
#include "cli/base/status_line.h"
#include "cli/base/forecast.h"
#include "cli/bench/measure.h"
#include "cli/base/shared_options.h"
#include "cli/base/watch.h"
#include "common/clock.h"

enum { MAX_POINTS = 64, MAX_BATCH = 128 };

struct args {
    struct cli_common c;
    long decode[MAX_POINTS];
    int n_decode;
    long prefill;
    long at;                       // position where the prefill starts
    long batch;                    // sequences
    long lengths[BENCH_SEQUENCES]; // of --train
    int n_lengths;
    bool no_head, recompute;
    const char *part;
    double start; // of the command
};

static json_t *point_json(const struct point *p)
{
    json_t *o = cli_stats_json(&p->s);
    json_object_set_new(o, "kind", json_string(p->kind));
    json_object_set_new(o, strcmp(p->kind, "decode") == 0 ? "position" : "size",
                        json_integer(p->at));
    json_object_set_new(o, "seconds", json_real(p->seconds));
    if (p->s.counts && point_count(p, "cycles") > 0) { // a card may say 0
        json_object_set_new(o, "bandwidth_utilisation", json_real(point_bandwidth(p)));
        if (p->s.sequential_rate > 0)
            json_object_set_new(o, "bandwidth_of_sequential",
                                json_real(point_bandwidth(p) / p->s.sequential_rate));
        json_object_set_new(o, "mac_utilisation", json_real(point_mac_share(p)));
        json_object_set_new(
            o, "tokens_per_second",
            json_real(1e3 * p->s.clock_khz * (double)p->s.tokens / point_count(p, "cycles")));
        json_object_set_new(o, "ns_per_cycle",
                            json_real(1e9 * p->seconds / point_count(p, "cycles")));
    }
    return o;
}

static void print_units(const struct point *p)
{
    static const struct {
        const char *unit, *part[4];
    } units[] = {
        {"array", {"array_busy", "array_weights", "array_drain", "array_idle"}},
        {"vector", {"vector_busy", "vector_idle"}},
        {"attention", {"attention_busy", "attention_kv", "attention_idle"}},
        {"writer", {"writer_busy", "writer_idle"}},
        {"reader 0", {"reader_issue", "reader_memory", "reader_credit", "reader_idle"}},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        printf("  %-10s", units[i].unit);
        for (int k = 0; k < 4 && units[i].part[k]; k++)
            printf(" %s %.2f %%", strchr(units[i].part[k], '_') + 1,
                   100 * point_count(p, units[i].part[k]) / point_count(p, "cycles"));
        printf("\n");
    }
}

static void print_point(const struct point *p)
{
    bool decode = strcmp(p->kind, "decode") == 0;
    printf("%s %s %ld: %.3f s wall", p->kind, decode ? "at position" : "of", p->at, p->seconds);
    if (!p->s.counts || point_count(p, "cycles") == 0) {
        printf(", %.1f tokens/s (this device does not count cycles)\n",
               (double)p->s.tokens / p->seconds);
        return;
    }
    double cycles = point_count(p, "cycles");
    printf(", %.0f ns a cycle\n", 1e9 * p->seconds / cycles);
    printf("  cycles     %.0f, %.0f a token: %.2f tokens/s at %u MHz (an assumed clock)\n", cycles,
           cycles / (double)p->s.tokens, 1e3 * p->s.clock_khz * (double)p->s.tokens / cycles,
           p->s.clock_khz / 1000);
    printf("  bytes      weights %.0f, KV %.0f, host port %.0f, written %.0f\n",
           64 * point_count(p, "weight_beats"), 64 * point_count(p, "kv_beats"),
           64 * point_count(p, "host_beats"), 64 * point_count(p, "write_beats"));
    printf("  bandwidth  %.2f %% of %d x 64 bytes a cycle", 100 * point_bandwidth(p),
           p->s.channels);
    if (p->s.sequential_rate > 0)
        printf(", %.2f %% of a plain sequential reader's",
               100 * point_bandwidth(p) / p->s.sequential_rate);
    printf("\n");
    printf("  MACs       %.2f %% of the %d x %d array\n", 100 * point_mac_share(p), p->s.rows,
           p->s.columns);
    print_units(p);
}

static int check_sizes(const struct args *a, int positions)
{
    for (int i = 0; i < a->n_decode; i++)
        if (a->decode[i] >= positions)
            return cli_usage(&cmd_bench, "--decode %ld: the model has positions 0..%d",
                             a->decode[i], positions - 1);
    if (a->prefill + a->at > positions)
        return cli_usage(&cmd_bench, "--prefill %ld: the model has %d positions", a->prefill,
                         positions);
    return EXIT_OK;
}

static int run_points(struct bench *b, const struct args *a, json_t *list, struct mr_error *err)
{
    int rc = 0;
    struct cli_watch watch;
    cli_watch_open(&watch, &a->c, false);
    for (int i = 0; rc == 0 && i < a->n_decode + (a->prefill > 0); i++) {
        bool decode = i < a->n_decode;
        struct point p = {.kind = decode ? "decode" : "prefill",
                          .at = decode ? a->decode[i] : a->prefill};
        long before = decode ? p.at : a->at, n = decode ? 1 : p.at;
        cli_watch_total(&watch, b->session, (size_t)(b->batch * (n + (b->skip ? 0 : before))));
        rc = measure(b, &p, before, n, err);
        cli_watch_end(&watch);
        if (rc == 0 && a->c.json) {
            json_array_append_new(list, point_json(&p));
        } else if (rc == 0) {
            print_point(&p);
            (void)cli_flush(); // main() looks at the result
        }
    }
    return rc;
}

static int bench(const struct args *a, struct mr_model *model)
{
    struct mr_error err = {0};
    struct mr_model_info info;
    struct bench b;
    mr_model_get_info(model, &info);
    int status = check_sizes(a, info.n_positions);
    if (status != EXIT_OK)
        return status;
    json_t *list = json_array();
    int rc = measure_open(&b, model, a->c.model, a->c.device, &a->c.session, (int)a->batch,
                          !a->no_head, &err);
    double opened = mr_seconds() - a->start;
    if (rc == 0 && !a->c.json)
        printf("opened in %.2f s\n", opened);
    if (rc == 0)
        rc = run_points(&b, a, list, &err);
    if (rc < 0)
        status = cli_fail(&err);
    else if (a->c.json)
        status = cli_print_json(json_pack(
            "{s:s, s:s, s:I, s:f, s:O}", "model", a->c.model, "device", a->c.device, "stream_bytes",
            (json_int_t)info.stream_bytes, "open_seconds", opened, "points", list));
    json_decref(list);
    measure_close(&b);
    return status;
}

static void say_forecast(const struct args *a)
{
    struct mr_plan_point points[MAX_POINTS + 1];
    int n = 0;
    for (; n < a->n_decode; n++)
        points[n] = (struct mr_plan_point){(int)a->batch, (int)a->decode[n], 1};
    if (a->prefill > 0)
        points[n++] = (struct mr_plan_point){(int)a->batch, (int)a->at, (int)a->prefill};
    cli_say_points(&a->c, &(struct cli_points){points, n, !a->no_head, 0});
}

static int run(void *args)
{
    struct args *a = args;
    struct mr_model *model = NULL;
    a->start = mr_seconds();
    if (a->n_lengths > 0)
        return bench_training(
            &(struct bench_train){&a->c, a->lengths, a->n_lengths, a->part, a->recompute});
    if (a->n_decode == 0 && a->prefill == 0)
        a->n_decode = 1; // position 0
    say_forecast(a);
    int status = cli_load(&a->c, &model);
    if (status == EXIT_OK)
        status = bench(a, model);
    mr_model_close(model);
    return status;
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_MODEL("Hugging Face directory, packed file or synthetic:gptj-6b[,...]; the same as the "
              "argument"),
    CLI_ON_DEVICE(CLI_DEVICES, "sim:"),
    CLI_ROW_LIST(CLI_LIST, "decode", "LIST", decode, n_decode,
                 "positions, with commas between (default 0, without --prefill)", .low = 0,
                 .high = CLI_POSITION_MOST),
    CLI_PREFILL,
    CLI_NO_HEAD,
    CLI_ROW_NUMBER(CLI_INT, "batch", "N", batch, 1, MAX_BATCH, "sequences that go together",
                   .def = "1"),
    CLI_ROW_LIST(CLI_LIST, "train", "LIST", lengths, n_lengths,
                 "a micro-batch of training instead, of sequences of these lengths, with weights "
                 "of zeros: its parts beside what plan says; -d sim:sim,train",
                 .low = 1, .high = CLI_POSITION_MOST,
                 .excludes = "decode prefill batch no-head two-pass check format no-smoothing "
                             "calibrate adapter verbose chunk"),
    CLI_ROW(CLI_WORD, "part", "NAME", part,
            "forward, dX, dW, attention, LayerNorm or again: the programs of this part alone, with "
            "what they have of dW",
            .choices = "forward|dX|dW|attention|LayerNorm|again", .needs = "train"),
    CLI_ROW_FLAG("recompute", recompute, "layers keep no stash: the backward pass makes it again",
                 .needs = "train"),
    CLI_RUNS,
    CLI_PACKING,
    CLI_JSON,
    CLI_VERBOSE,
    CLI_QUIET("no progress"),
    {0},
};

const struct cli_command cmd_bench = {
    .name = "bench",
    .summary = "cycles, bytes and utilisation of a device",
    .synopsis = "MODEL [OPTIONS]",
    .about = "Decodes one token at each position of --decode (the positions before it are filled "
             "first and not counted) and prefills --prefill tokens. All figures but wall time come "
             "from the device's counters; model: and cpu: have none. \"opened in\" is the time to "
             "the first device command.",
    .arguments = "model",
    .options = options,
    .size = sizeof(ARGS),
    .notes = "MODEL may be synthetic:gptj-6b[,layers=N][,vocab=N][,seed=N]: GPT-J-6B's shape (or "
             "that of gpt2, gpt2-xl, gpt3-xl, gpt3-175b, serial-6b, cerebras-2.7b, cerebras-6.7b, "
             "cerebras-13b) with weights from a seed; "
             "positions before the measured ones are then taken as they are.",
    .examples =
        "millrace bench synthetic:gptj-6b,layers=1,vocab=64 --no-head --decode 0,1023,2047\n"
        "millrace bench models/demo -d sim: --decode 0,127 --prefill 128\n"
        "millrace bench models/demo -d sim:wide,memory=hbm2 --decode 0 --json",
    .run = run,
};
