// SPDX-License-Identifier: Apache-2.0
// Threads: every task once, and the C model's bits whatever their number.
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/pool.h"
#include "device/open.h"
#include "pack/packed.h"
#include "unit/fixtures.h"

enum { TASKS = 1000, WORKERS = 4 };

struct count {
    atomic_int done[TASKS], inside[WORKERS];
    atomic_int wrong;
};

static void one(void *arg, int i, int worker)
{
    struct count *c = arg;
    if (worker < 0 || worker >= WORKERS || atomic_fetch_add(&c->inside[worker], 1) != 0)
        atomic_store(&c->wrong, 1);
    atomic_fetch_add(&c->done[i], 1);
    if (worker >= 0 && worker < WORKERS)
        atomic_fetch_sub(&c->inside[worker], 1);
}

static void every_task_runs_once(void **state)
{
    (void)state;
    struct mr_pool *pool = mr_pool_new(WORKERS);
    assert_non_null(pool);
    assert_int_equal(mr_pool_workers(pool), WORKERS);
    for (int round = 1; round <= 50; round++) {
        static struct count c;
        memset(&c, 0, sizeof c);
        int tasks = round % 3 == 0 ? round % 5 : TASKS;
        mr_pool_run(pool, tasks, one, &c, round % 7 != 0);
        assert_int_equal(atomic_load(&c.wrong), 0);
        for (int i = 0; i < TASKS; i++)
            assert_int_equal(atomic_load(&c.done[i]), i < tasks);
    }
    mr_pool_free(pool);
    mr_pool_free(NULL);
}

static void workers_by_environment(void **state)
{
    (void)state;
    assert_int_equal(setenv("MILLRACE_THREADS", "3", 1), 0);
    assert_int_equal(mr_pool_default(), 3);
    assert_int_equal(setenv("MILLRACE_THREADS", "1000", 1), 0);
    assert_int_equal(mr_pool_default(), 64);
    assert_int_equal(setenv("MILLRACE_THREADS", "nonsense", 1), 0);
    assert_true(mr_pool_default() >= 1);
    assert_int_equal(unsetenv("MILLRACE_THREADS"), 0);
    assert_true(mr_pool_default() >= 1);
}

// A prompt of the demo model: long enough that its matrices and its attention are shared.
static uint64_t hash_of(const struct mr_packed *packed, const char *threads, bool two_pass)
{
    enum { ROWS = 32 };
    struct mr_device *dev;
    struct mr_backend *b;
    struct mr_error err = {0};
    struct mr_engine_options opt = {.max_seqs = 1, .two_pass = two_pass};
    struct mr_row rows[ROWS];
    int seq;
    uint64_t kv;
    assert_int_equal(setenv("MILLRACE_THREADS", threads, 1), 0);
    check(mr_device_open(&dev, "model:sim", &err), &err);
    check(mr_engine_open(&b, packed, dev, &opt, &err), &err);
    check(mr_backend_seq_new(b, &seq, &err), &err);
    for (int i = 0; i < ROWS; i++)
        rows[i] = (struct mr_row){seq, 7 * i + 1, true};
    size_t n = (size_t)ROWS * (size_t)packed->config.vocab_size;
    float *logits = allocate(n, sizeof *logits);
    check(mr_backend_step(b, rows, ROWS, logits, &err), &err);
    check(mr_engine_kv_hash(b, seq, &kv, &err), &err);
    uint64_t h = fnv(kv, logits, n * sizeof *logits);
    free(logits);
    mr_backend_close(b);
    mr_device_close(dev);
    assert_int_equal(unsetenv("MILLRACE_THREADS"), 0);
    return h;
}

static void bits_do_not_depend_on_threads(void **state)
{
    static const enum mr_format formats[] = {MR_FORMAT_MXINT8, MR_FORMAT_MXFP4};
    (void)state;
    for (int f = 0; f < 2; f++) {
        struct mr_packed packed;
        struct mr_error err = {0};
        struct mr_pack_options pack = {.format = formats[f]};
        check(mr_pack_directory(&packed, "models/demo", &pack, &err), &err);
        uint64_t alone = hash_of(&packed, "1", f == 1);
        assert_true(hash_of(&packed, "2", f == 1) == alone);
        assert_true(hash_of(&packed, "5", f == 1) == alone);
        mr_packed_close(&packed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once),
        cmocka_unit_test(workers_by_environment),
        cmocka_unit_test(bits_do_not_depend_on_threads),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
