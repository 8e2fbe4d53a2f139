// SPDX-License-Identifier: Apache-2.0
// A tiny model with random weights on a device, bit for bit against the C model.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/objects.h"
#include "checkpoint/synthetic.h"
#include "cli/base/status_line.h"
#include "cli/base/shared_options.h"
#include "common/clock.h"
#include "device/open.h"
#include "engine/engine.h"

enum { TOKENS = 20, VOCAB = 83 };

// What a step runs: sequences, tokens a device run, passes, weight format.
static const struct plan {
    const char *name;
    int seqs, chunk;
    bool two_pass;
    enum mr_weight_format format;
} plans[] = {
    {"decode token by token", 1, 1, false, MR_WEIGHTS_MXINT8},
    {"prefill", 1, 0, false, MR_WEIGHTS_MXINT8},
    {"three sequences in one pass", 3, 7, false, MR_WEIGHTS_MXINT8},
    {"two-pass activations", 2, 3, true, MR_WEIGHTS_MXINT8},
    {"MXFP4 weights", 1, 0, false, MR_WEIGHTS_MXFP4},
};
enum { N_PLANS = sizeof plans / sizeof *plans, MAX_SEQS = 3 };

struct outcome {
    float logits[TOKENS * VOCAB]; // of all rows, in order
    uint64_t kv[MAX_SEQS];
};

// Sequence i is i tokens shorter than the first, so that lengths differ.
static int run_plan(const struct plan *p, struct mr_model *model, const char *device,
                    struct outcome *out, struct mr_error *err)
{
    struct mr_session *s;
    struct mr_session_options opt = {
        .max_seqs = p->seqs, .chunk = p->chunk, .two_pass = p->two_pass};
    struct mr_row rows[TOKENS];
    int n = 0, seq[MAX_SEQS];
    memset(out, 0, sizeof *out);
    int rc = mr_session_open(&s, model, device, &opt, err);
    for (int i = 0; rc == 0 && i < p->seqs; i++) {
        rc = mr_session_seq_new(s, &seq[i], err);
        for (int k = i; k < TOKENS / p->seqs; k++, n++)
            rows[n] = (struct mr_row){seq[i], (7 * k + 31 * i) % VOCAB, true};
    }
    // The first rows in one step, the others one by one: prefill, then decode on top of it.
    int first = n - 2;
    if (rc == 0)
        rc = mr_session_step(s, rows, first, out->logits, err);
    for (int i = first; rc == 0 && i < n; i++)
        rc = mr_session_step(s, &rows[i], 1, out->logits + (size_t)i * VOCAB, err);
    for (int i = 0; rc == 0 && i < p->seqs; i++)
        rc = mr_engine_kv_hash(s->backend, seq[i], &out->kv[i], err);
    mr_session_close(s);
    return rc;
}

static int compare(const struct outcome *want, const struct outcome *got, struct mr_error *err)
{
    for (int i = 0; i < TOKENS * VOCAB; i++)
        if (memcmp(&want->logits[i], &got->logits[i], 4) != 0)
            return mr_fail(err, MR_ERR_DIFF, "row %d: logit %d is %.9g; model: has %.9g", i / VOCAB,
                           i % VOCAB, (double)got->logits[i], (double)want->logits[i]);
    for (int i = 0; i < MAX_SEQS; i++)
        if (want->kv[i] != got->kv[i])
            return mr_fail(err, MR_ERR_DIFF, "the KV store of sequence %d differs from model:", i);
    return 0;
}

static int run_step(const struct plan *p, const char *dir, const char *device, struct mr_error *err)
{
    static struct outcome want, got;
    struct mr_load_options load = {.format = p->format};
    struct mr_model *model;
    int rc = mr_model_load(&model, dir, &load, err);
    if (rc == 0)
        rc = run_plan(p, model, "model:", &want, err);
    if (rc == 0)
        rc = run_plan(p, model, device, &got, err);
    if (rc == 0)
        rc = compare(&want, &got, err);
    mr_model_close(model);
    return rc;
}

static int run_steps(const struct cli_common *c, const char *dir)
{
    json_t *list = json_array();
    int status = EXIT_OK, ran = 0, passed = 0;
    for (int i = 0; i < N_PLANS && status != EXIT_INTERRUPTED; i++) {
        struct mr_error err = {0};
        double start = mr_seconds();
        int rc = run_step(&plans[i], dir, c->device, &err);
        double seconds = mr_seconds() - start;
        if (c->json)
            json_array_append_new(list,
                                  json_pack("{s:s, s:b, s:f, s:s}", "step", plans[i].name, "ok",
                                            rc == 0, "seconds", seconds, "error", err.text));
        else
            printf("%-30s %s  %.2f s\n", plans[i].name, rc == 0 ? "ok" : "failed", seconds);
        (void)cli_flush(); // main() looks at the result
        if (rc < 0)
            status = cli_fail(&err);
        ran++;
        passed += rc == 0;
        if (rc < 0 && rc != MR_ERR_DIFF)
            break; // the device cannot be used: the other steps would say the same
    }
    if (c->json) {
        int printed = cli_print_json(json_pack("{s:s, s:b, s:O}", "device", c->device, "ok",
                                               status == EXIT_OK, "steps", list));
        status = status == EXIT_OK ? printed : status;
    } else if (ran == N_PLANS) {
        // "sim:" alone is the configuration sim.
        bool plain = strcmp(c->device, "sim:") == 0 || strcmp(c->device, "model:") == 0;
        printf("%s%s passed %d of %d steps\n", c->device, plain ? "sim" : "", passed, N_PLANS);
    }
    json_decref(list);
    return status;
}

static void remove_model(const char *dir)
{
    static const char *const files[] = {"config.json", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        char *path = mr_path_join(dir, files[i], NULL);
        if (path)
            (void)unlink(path); // may not have been written
        free(path);
    }
    (void)rmdir(dir);
}

// A device that is not there has no steps: no "failed" stands before the reason.
static int absent(const struct cli_common *c, const struct mr_error *err)
{
    int status = cli_fail(err);
    if (!c->json)
        return status;
    (void)cli_print_json(json_pack("{s:s, s:b, s:[], s:s}", "device", c->device, "ok", 0, "steps",
                                   "error", err->text));
    return status;
}

static int selftest(const struct cli_common *c)
{
    static const struct mr_config config = {
        .vocab_size = VOCAB,
        .n_positions = 32,
        .n_embd = 72, // not a multiple of 64, as the other sizes: padding is tested too
        .n_layer = 2,
        .n_head = 2,
        .head_dim = 36,
        .rotary_dim = 10,
        .n_inner = 136,
        .layer_norm_epsilon = 1e-5F,
        .eos_token_id = -1,
    };
    struct mr_error err = {0};
    const char *tmp = getenv("TMPDIR");
    char *dir = mr_path_join(tmp && *tmp ? tmp : "/tmp", "millrace-selftest-XXXXXX", &err);
    int status = EXIT_OK;
    if (dir && mr_device_probe(c->device, &err) < 0) {
        free(dir);
        return absent(c, &err);
    }
    if (!dir)
        return cli_fail(&err);
    if (!mkdtemp(dir)) {
        mr_fail(&err, MR_ERR_IO, "%s: cannot make a directory: %s; set TMPDIR to one that exists",
                dir, strerror(errno));
        free(dir);
        return cli_fail(&err);
    }
    if (mr_synthetic_write(dir, &config, 1, &err) < 0)
        status = cli_fail(&err);
    else
        status = run_steps(c, dir);
    remove_model(dir);
    free(dir);
    return status;
}

struct args {
    struct cli_common c;
};

static int run(void *args)
{
    struct args *a = args;
    if (strcmp(a->c.device, "cpu:") == 0)
        return cli_usage(&cmd_selftest, "cpu: is fp32 and has other bits; give sim: or model:");
    return selftest(&a->c);
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_ON_DEVICE(CLI_ENGINES, "sim:"),
    CLI_JSON,
    {0},
};

const struct cli_command cmd_selftest = {
    .name = "selftest",
    .summary = "does a device compute the right bits?",
    .synopsis = "[OPTIONS]",
    .about = "Runs a tiny model with random weights on the device and on the C model and compares "
             "logits and KV store bit for bit. Exit status 5 when they differ.",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace selftest\n"
                "millrace selftest -d sim:tiny,stalls=30,seed=7",
    .run = run,
};
