// SPDX-License-Identifier: Apache-2.0
// Programs, legal and nearly so, with their descriptors, rows and streams, on model:tiny and
// sim:tiny: the same error code at the same command, or the same bytes in result window and KV
// store and the same bit for NaN in STICKY. TAP on stdout.
// Beside them programs of training, on model:tinyt and sim:tinyt (training.c).
// usage: fuzz [cases=N] [seed=FIRST] [stalls=PERCENT] [say]
// A case depends on nothing but its seed: `fuzz cases=1 seed=N say` is that one again.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/command.h"
#include "device/model.h"
#include "device/open.h"
#include "device/sim.h"
#include "limits.h"
#include "programs.h"

enum { WATCHDOG = 13, SHOWN = 10 };

struct side {
    struct mr_device *dev;
    uint64_t at[PARTS];
    uint8_t *after[2]; // result, KV
    int rc;
    unsigned code, command;
    bool nan; // STICKY has seen one
    char text[512];
};

struct tally {
    unsigned long cases, ran, computed, layers, nans, wrong;
    unsigned long codes[8];
};

// Of the sanitizers. Each program opens and closes two devices: what is freed is used again soon,
// and the simulator's thread-local storage is not looked at in every cycle.
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=4:malloc_context_size=8:intercept_tls_get_addr=0";
}

static void stop(const struct mr_error *err)
{
    printf("Bail out! %s\n", err->text);
    exit(1);
}

static void check(int rc, const struct mr_error *err)
{
    if (rc < 0)
        stop(err);
}

static void *allocate(size_t n)
{
    void *p = calloc(1, n);
    if (!p) {
        printf("Bail out! no memory\n");
        exit(1);
    }
    return p;
}

static bool is_written(int part)
{
    return part == RESULT || part == KV;
}

// A device as it comes out of reset, memories zero. What programs only read is the case's own.
static void side_open(struct side *s, const char *uri, const struct program_case *c)
{
    struct mr_error err = {0};
    check(mr_device_open(&s->dev, uri, &err), &err);
    for (int i = 0; i < PARTS; i++)
        check(mr_device_alloc(s->dev, 0, part_bytes[i], is_written(i) ? NULL : c->bytes[i],
                              &s->at[i], &err),
              &err);
    if (strncmp(uri, "sim:", 4) == 0) {
        struct mr_sim *sim;
        const struct mr_sim_api *api = mr_device_sim_of(s->dev, &sim);
        check(api->reg_write(sim, MR_REG_WATCHDOG, WATCHDOG, &err), &err);
    }
}

bool saw_nan(struct mr_device *dev)
{
    struct mr_error err = {0};
    struct mr_sim *sim;
    const struct mr_sim_api *api = mr_device_sim_of(dev, &sim);
    uint32_t sticky;
    if (!api)
        return mr_machine_nan(mr_device_model_of(dev));
    check(api->reg_read(sim, MR_REG_STICKY, &sticky, &err), &err);
    return sticky >> 1 & 1;
}

static void side_run(struct side *s, const char *uri, const struct program_case *c)
{
    struct mr_error err = {0};
    side_open(s, uri, c);
    for (int i = RESULT; i < PARTS; i += KV - RESULT)
        check(mr_device_write(s->dev, s->at[i], c->bytes[i], part_bytes[i], &err), &err);
    s->rc = mr_device_run(s->dev, s->at[DESC] + c->run_skew, &err);
    s->code = s->rc < 0 ? s->dev->last_error.code : 0;
    s->command = s->rc < 0 ? s->dev->last_error.command : 0;
    (void)snprintf(s->text, sizeof s->text, "%s", s->rc < 0 ? err.text : "ok");
    s->nan = saw_nan(s->dev);
    check(mr_device_read(s->dev, s->at[RESULT], s->after[0], part_bytes[RESULT], &err), &err);
    check(mr_device_read(s->dev, s->at[KV], s->after[1], part_bytes[KV], &err), &err);
    mr_device_close(s->dev);
}

static bool agree(const struct side *a, const struct side *b)
{
    if (a->rc < 0 || b->rc < 0)
        return a->rc == b->rc && a->code == b->code && a->command == b->command;
    return a->nan == b->nan && memcmp(a->after[0], b->after[0], part_bytes[RESULT]) == 0 &&
           memcmp(a->after[1], b->after[1], part_bytes[KV]) == 0;
}

static void show_program(const struct program_case *c)
{
    printf("# %s, %d commands, %s; descriptor", c->what, c->count,
           c->chained ? "chained" : "with the engine's semaphores");
    for (int i = 0; i < 24; i++)
        printf(" %x", c->desc[i]);
    printf("\n");
    for (int i = 0; i < c->count; i++) {
        printf("# %2d %-12s", i, mr_opcode_name(c->cmds[i].word[0] & 255));
        for (int w = 1; w < 9; w++)
            printf(" %x", c->cmds[i].word[w]);
        printf("\n");
    }
    const uint32_t *t = (const void *)(c->bytes[INPUT] + ROOM + 64);
    for (int i = 0; i < 8; i++, t += 4)
        printf("# row %d: kv_off %u pos %u flags %x, %x\n", i, t[0], t[1], t[2], t[3]);
}

static void show_difference(const struct side *m, const struct side *s)
{
    printf("# model: %s\n# sim:   %s\n", m->text, s->text);
    if (m->rc == 0 && s->rc == 0 && m->nan != s->nan)
        printf("# NaN in STICKY: model %d, sim %d\n", m->nan, s->nan);
    for (int k = 0; k < 2 && m->rc == 0 && s->rc == 0; k++)
        for (uint32_t i = 0, n = 0; i < part_bytes[k ? KV : RESULT] && n < 4; i += 4)
            if (memcmp(m->after[k] + i, s->after[k] + i, 4) != 0) {
                uint32_t a, b;
                memcpy(&a, m->after[k] + i, 4);
                memcpy(&b, s->after[k] + i, 4);
                printf("# %s byte %d: model %08x, sim %08x\n", k ? "KV" : "result", (int)i - ROOM,
                       a, b);
                n++;
            }
}

// The C model in each instruction set, by turns; the seed says in which.
static void choose_kernels(uint64_t seed)
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    check(setenv("MILLRACE_SIMD", names[seed % 3], 1), &(struct mr_error){.text = "setenv"});
}

static void one(struct side *m, struct side *s, const char *sim, struct program_case *c,
                uint64_t seed, struct tally *t, bool say)
{
    make_case(c, seed, m->at);
    choose_kernels(seed);
    side_run(m, "model:tiny", c);
    side_run(s, sim, c);
    bool changed = m->rc == 0 && (memcmp(m->after[0], c->bytes[RESULT], part_bytes[RESULT]) != 0 ||
                                  memcmp(m->after[1], c->bytes[KV], part_bytes[KV]) != 0);
    t->cases++;
    t->ran += m->rc == 0;
    t->computed += changed;
    t->layers += m->rc == 0 && strcmp(c->what, "layer") == 0;
    t->nans += m->rc == 0 && m->nan;
    t->codes[m->code & 7]++;
    bool same = agree(m, s);
    if (same && !say)
        return;
    t->wrong += !same;
    if (t->wrong <= SHOWN) {
        printf("# seed %llu: %s\n", (unsigned long long)seed, same ? "the same" : "they differ");
        show_difference(m, s);
        if (say)
            show_program(c);
    }
}

// Faults that were found: what the model says is known too, in each instruction set.
static bool known(struct side *m, struct side *s, const char *sim, struct program_case *c)
{
    unsigned code, command;
    bool good = true;
    for (int i = 0; make_known(c, i, m->at, &code, &command); i++) {
        side_run(s, sim, c);
        for (uint64_t k = 0; k < 3; k++) {
            choose_kernels(k);
            side_run(m, "model:tiny", c);
            if (agree(m, s) && m->code == code && (!code || m->command == command))
                continue;
            printf("# known fault %d: expected code %u at command %u\n", i, code, command);
            show_difference(m, s);
            show_program(c);
            good = false;
            break;
        }
    }
    return good;
}

struct both {
    struct side *m, *s;
    const char *sim;
    unsigned long wrong;
};

static void run_limit(void *arg, struct program_case *c, unsigned code, unsigned command)
{
    struct both *b = arg;
    choose_kernels(command);
    side_run(b->m, "model:tiny", c);
    side_run(b->s, b->sim, c);
    bool right = agree(b->m, b->s) && (!code || (b->m->code == code && b->m->command == command));
    if (right)
        return;
    if (b->wrong++ < SHOWN) {
        printf("# %s\n", c->what);
        show_difference(b->m, b->s);
    }
}

static unsigned probe_limit(void *arg, struct program_case *c)
{
    struct both *b = arg;
    side_run(b->m, "model:tiny", c);
    return b->m->code;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, cases = 20000, stalls = 0, training = UINT64_MAX;
    bool say = false, view = false;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "cases=", 6) == 0)
            cases = strtoull(argv[i] + 6, NULL, 0);
        else if (strncmp(argv[i], "seed=", 5) == 0)
            seed = strtoull(argv[i] + 5, NULL, 0);
        else if (strncmp(argv[i], "stalls=", 7) == 0)
            stalls = strtoull(argv[i] + 7, NULL, 0);
        else if (strncmp(argv[i], "training=", 9) == 0)
            training = strtoull(argv[i] + 9, NULL, 0);
        else if (strcmp(argv[i], "say") == 0)
            say = true;
        else if (strcmp(argv[i], "view") == 0)
            view = true; // simulators that have the RTL's assertions
        else {
            fprintf(stderr, "usage: fuzz [cases=N] [training=N] [seed=FIRST] [stalls=PERCENT] "
                            "[view] [say]\n");
            return 2;
        }
    }
    struct side m = {0}, s = {0};
    struct program_case c = {0};
    struct tally t = {0};
    char options[64], sim[96];
    (void)snprintf(options, sizeof options, "%smemory=ideal,stalls=%llu", view ? "view," : "",
                   (unsigned long long)stalls);
    (void)snprintf(sim, sizeof sim, "sim:tiny,%s", options);
    for (int i = 0; i < PARTS; i++)
        c.bytes[i] = allocate(part_bytes[i]);
    for (int k = 0; k < 2; k++) {
        m.after[k] = allocate(part_bytes[k ? KV : RESULT]);
        s.after[k] = allocate(part_bytes[k ? KV : RESULT]);
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    side_open(&m, "model:tiny", &c); // for its addresses, which are those of every device
    mr_device_close(m.dev);
    printf("TAP version 13\n1..5\n");
    bool as_known = known(&m, &s, sim, &c);
    printf("%sok 1 - known faults are refused, by both, or give the same bytes\n",
           as_known ? "" : "not ");
    struct both both = {&m, &s, sim, 0};
    unsigned long limits;
    bool every = each_limit(&c, m.at, run_limit, probe_limit, &both, &limits);
    bool at_limits = every && !both.wrong;
    printf("%sok 2 - both sides of every rule of device.def: %lu programs, %lu wrong\n",
           at_limits ? "" : "not ", limits, both.wrong);
    for (uint64_t i = 0; i < cases; i++)
        one(&m, &s, sim, &c, seed + i, &t, say);
    printf(
        "# %lu programs from seed %llu on: %lu ran (%lu of them layers, %lu with NaN), %lu changed "
        "results or KV store\n",
        t.cases, (unsigned long long)seed, t.ran, t.layers, t.nans, t.computed);
    printf("# refused: %lu descriptors, %lu commands, %lu windows, %lu waits; others %lu\n",
           t.codes[1], t.codes[2], t.codes[3], t.codes[6], t.codes[4] + t.codes[5] + t.codes[7]);
    printf("%sok 3 - %s and model:tiny agree on %lu programs\n", t.wrong ? "not " : "", sim,
           t.cases);
    if (t.wrong)
        printf("# %lu differ; again one by one: fuzz cases=1 seed=N say\n", t.wrong);
    // Of few programs no share is asked for.
    bool worth = cases < 1000 ||
                 (3 * t.computed > t.cases && t.codes[1] && t.codes[2] && t.codes[3] && t.codes[6]);
    printf("%sok 4 - a third of them computes something, and all kinds of refusal came\n",
           worth ? "" : "not ");
    training = training == UINT64_MAX ? (cases + 19) / 20 : training;
    bool trained = training_programs(training, seed, options);
    printf("%sok 5 - model:tinyt, with any kernels and threads, and sim:tinyt agree on training\n",
           trained ? "" : "not ");
    for (int i = 0; i < PARTS; i++)
        free(c.bytes[i]);
    for (int k = 0; k < 2; k++) {
        free(m.after[k]);
        free(s.after[k]);
    }
    return t.wrong || !worth || !as_known || !at_limits || !trained;
}
