// SPDX-License-Identifier: Apache-2.0
// A device whose idle units get no clock (mr_clk_gate, the default build) against one without gates
// (the view build): the same results, all counters and the same cycles after every step, in runs
// that follow each other, end in errors and come after a pause.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device/open.h"
#include "device/sim.h"
#include "unit/fixtures.h"

enum { STEPS = 64, WEIGHTS = 640, WATCHDOG = 12, PAUSE = 1000 };

struct moment { // after a step
    int rc;
    uint64_t cycles, logits, counter[MR_ALL_COUNTERS];
    struct mr_mem_counts memory;
};

struct history {
    int steps;
    uint64_t kv;
    struct moment at[STEPS];
};

struct way {
    const char *device;
    int tokens, chunk;
    bool two_pass;
    enum grouping grouping;
    enum mr_format format;
};

struct player {
    const struct fixture *f;
    struct mr_device *dev;
    struct mr_backend *b;
    const struct mr_sim_api *api;
    struct mr_sim *sim;
    struct history *h;
};

// CLK_GATE_CONFIG names another configuration, which is then the only one.
static const char *another;

static void open_device(struct mr_device **dev, const char *uri, bool gates)
{
    struct mr_error err = {0};
    char text[80];
    (void)snprintf(text, sizeof text, "%s%s", uri, gates ? "" : ",view");
    check(mr_device_open(dev, text, &err), &err);
}

static void step(struct player *p, const struct mr_row *rows, int n)
{
    struct mr_error err = {0};
    size_t bytes = (size_t)n * (size_t)p->f->vocab * sizeof(float);
    float *logits = allocate(1, bytes);
    assert_in_range(p->h->steps, 0, STEPS - 1);
    struct moment *m = &p->h->at[p->h->steps++];
    m->rc = mr_backend_step(p->b, rows, n, logits, &err);
    if (m->rc == 0)
        m->logits = fnv(0xCBF29CE484222325u, logits, bytes);
    check(mr_device_counters(p->dev, m->counter, &err), &err);
    m->cycles = p->api->cycles(p->sim);
    p->api->counts(p->sim, 0, &m->memory);
    free(logits);
}

static void step_alone(struct player *p, int want)
{
    struct mr_error err = {0};
    struct mr_row row = {0, (int32_t)p->f->ids[0], true};
    check(mr_backend_seq_new(p->b, &row.seq, &err), &err);
    step(p, &row, 1);
    assert_int_equal(p->h->at[p->h->steps - 1].rc, want);
    mr_backend_seq_free(p->b, row.seq);
}

// The first weights are at the start of channel 0.
static void with_fault(struct player *p, enum mr_mem_fault kind)
{
    struct mr_error err = {0};
    check(p->api->fault(p->sim, kind, WEIGHTS, &err), &err);
    step_alone(p, MR_ERR_DEVICE);
    p->api->clear_faults(p->sim);
    step_alone(p, 0);
}

static void play(const struct fixture *f, const struct way *w, bool gates, struct history *h)
{
    struct mr_error err = {0};
    struct player p = {.f = f, .h = h};
    struct mr_engine_options opt = {f->n_seq + 1, w->chunk, w->two_pass};
    size_t total = (size_t)f->n_seq * (size_t)f->n_tok;
    struct mr_row *rows = allocate(total, sizeof *rows);
    int *at = allocate(total, sizeof *at), *seq = allocate((size_t)f->n_seq, sizeof *seq),
        *done = allocate((size_t)f->n_seq, sizeof *done);
    *h = (struct history){0};
    open_device(&p.dev, w->device, gates);
    p.api = mr_device_sim_of(p.dev, &p.sim);
    assert_int_equal(p.api->view, !gates);
    check(p.api->reg_write(p.sim, MR_REG_WATCHDOG, WATCHDOG, &err), &err);
    check(mr_engine_open(&p.b, &f->packed, p.dev, &opt, &err), &err);
    for (int s = 0; s < f->n_seq; s++)
        check(mr_backend_seq_new(p.b, &seq[s], &err), &err);
    for (int n; (n = next_step(f, w->grouping, seq, done, rows, at)) > 0;)
        step(&p, rows, n);
    for (int s = 0; s < f->n_seq; s++) {
        uint64_t kv;
        check(mr_engine_kv_hash(p.b, seq[s], &kv, &err), &err);
        h->kv = fnv(h->kv, &kv, sizeof kv);
    }
    with_fault(&p, MR_MEM_FAULT_READ);
    with_fault(&p, MR_MEM_FAULT_READ_DROP);
    assert_int_equal(p.api->run(p.sim, PAUSE, NULL, &err), PAUSE);
    step_alone(&p, 0);
    mr_backend_close(p.b);
    mr_device_close(p.dev);
    free(rows);
    free(at);
    free(seq);
    free(done);
}

static void same(const struct fixture *f, const struct way *w)
{
    struct history *a = allocate(1, sizeof *a), *b = allocate(1, sizeof *b);
    play(f, w, true, a);
    play(f, w, false, b);
    assert_int_equal(a->steps, b->steps);
    for (int i = 0; i < a->steps; i++) {
        const struct moment *x = &a->at[i], *y = &b->at[i];
        if (x->rc != y->rc || x->logits != y->logits)
            fail_msg("%s on %s, step %d: other %s with gates", f->name, w->device, i,
                     x->rc != y->rc ? "status" : "logits");
        for (int c = 0; c < (int)MR_ALL_COUNTERS; c++)
            if (x->counter[c] != y->counter[c])
                fail_msg("%s on %s, step %d: counter %d is %llu with gates, %llu without", f->name,
                         w->device, i, c, (unsigned long long)x->counter[c],
                         (unsigned long long)y->counter[c]);
        if (x->cycles != y->cycles)
            fail_msg("%s on %s, step %d: ends in cycle %llu with gates, %llu without", f->name,
                     w->device, i, (unsigned long long)x->cycles, (unsigned long long)y->cycles);
        assert_memory_equal(&x->memory, &y->memory, sizeof x->memory);
    }
    assert_int_equal(a->kv, b->kv);
    free(a);
    free(b);
}

static void on(const char *fixture, const struct way *ways, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct fixture f;
        open_fixture(&f, fixture, ways[i].format);
        f.n_tok = ways[i].tokens < f.n_tok ? ways[i].tokens : f.n_tok;
        same(&f, &ways[i]);
        close_fixture(&f);
    }
}

#define ON(fixture, ways) on(fixture, ways, sizeof(ways) / sizeof *(ways))

static void gates_change_nothing_on_tiny(void **state)
{
    static const struct way ways[] = {
        {"sim:tiny,memory=ideal", 4, 1, false, DECODE, MR_FORMAT_MXINT8},
        {"sim:tiny,seed=31", 11, 3, false, ALONE, MR_FORMAT_MXFP4},
        {"sim:tiny,seed=32,stalls=40,memory=hbm2", 6, 0, false, UNEVEN, MR_FORMAT_MXINT8},
        {"sim:tiny,seed=33,stalls=85", 5, 3, true, INTERLEAVED, MR_FORMAT_MXINT8},
    };
    (void)state;
    ON("bf16-d32-r6", ways);
    ON("mixed-d96-r16", ways);
}

static void gates_change_nothing_on_sim(void **state)
{
    static const struct way ways[] = {
        {"sim:sim", 4, 1, false, DECODE, MR_FORMAT_MXINT8},
        {"sim:sim,seed=41,memory=ideal", 32, 0, false, ALONE, MR_FORMAT_MXINT8},
        {"sim:sim,seed=42,stalls=60,memory=hbm2", 6, 0, false, UNEVEN, MR_FORMAT_MXFP4},
        {"sim:sim,seed=43,stalls=20", 7, 3, true, INTERLEAVED, MR_FORMAT_MXINT8},
    };
    (void)state;
    ON("bf16-d32-r6", ways);
    ON("bf16-d256-r64", ways);
}

static void gates_change_nothing_on_another(void **state)
{
    char decode[64], ideal[64], stalls[64];
    (void)snprintf(decode, sizeof decode, "sim:%s", another);
    (void)snprintf(ideal, sizeof ideal, "sim:%s,seed=51,memory=ideal", another);
    (void)snprintf(stalls, sizeof stalls, "sim:%s,seed=52,stalls=60,memory=hbm2", another);
    const struct way ways[] = {
        {decode, 4, 1, false, DECODE, MR_FORMAT_MXINT8},
        {ideal, 32, 0, false, ALONE, MR_FORMAT_MXINT8},
        {stalls, 6, 0, false, UNEVEN, MR_FORMAT_MXFP4},
    };
    (void)state;
    ON("bf16-d256-r64", ways);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gates_change_nothing_on_tiny),
        cmocka_unit_test(gates_change_nothing_on_sim),
    };
    const struct CMUnitTest other[] = {cmocka_unit_test(gates_change_nothing_on_another)};
    another = getenv("CLK_GATE_CONFIG");
    return another ? cmocka_run_group_tests_name("clk_gate", other, NULL, NULL)
                   : cmocka_run_group_tests_name("clk_gate", tests, NULL, NULL);
}
