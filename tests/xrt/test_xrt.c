// SPDX-License-Identifier: Apache-2.0
// xrt: in emulation, inside one process: fixtures and counters as on sim:, opening and closing
// again and again, two compute units at once, runs that fail, and what copying costs beside XRT
// alone, which is printed. Run it with sim/xrt/run. XRT_PARTS=loop: opening and closing alone, for
// valgrind; soak: many times of it; killed: until the simulator is killed.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "device/open.h"
#include "unit/fixtures.h"
#include "unit/simulated.h"

#include "device/xrt_api.h"
#include "pack/packed.h"

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void same_run(const struct fixture *f, const char *device, const struct ran *want)
{
    struct ran got;
    struct run_options o = {.device = device, .grouping = INTERLEAVED};
    assert_int_equal(simulate(f, &o, &got), 0);
    if (got.logits != want->logits || got.kv != want->kv)
        fail_msg("%s on %s: other bits than on sim:tiny", f->name, device);
    for (unsigned i = 0; i < MR_COUNTERS; i++)
        if (got.stats.counter[i] != want->stats.counter[i])
            fail_msg("%s on %s: counter %u is %llu, on sim:tiny %llu", f->name, device, i,
                     (unsigned long long)got.stats.counter[i],
                     (unsigned long long)want->stats.counter[i]);
}

// Also the loop of opening and closing: a device for each, in one process.
static void xrt_fixtures_equal_sim(void **state)
{
    struct dirent **entries;
    int n = fixture_names(&entries), ran = 0;
    (void)state;
    for (int i = 0; i < n; i++) {
        struct fixture f;
        struct ran want;
        struct run_options o = {.device = "sim:tiny", .grouping = INTERLEAVED};
        open_fixture(&f, entries[i]->d_name, i % 2 ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8);
        if (simulate(&f, &o, &want) == 0) {
            same_run(&f, "xrt:", &want);
            ran++;
        }
        close_fixture(&f);
        free(entries[i]);
    }
    free(entries);
    assert_true(ran >= 3);
}

static void xrt_open_and_close(void **state)
{
    struct mr_error err = {0};
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct mr_device *dev;
        uint64_t addr;
        uint8_t data[100], back[100];
        check(mr_device_open(&dev, "xrt:0", &err), &err);
        check(mr_device_alloc(dev, 0, 5000, NULL, &addr, &err), &err);
        memset(data, 17 + i, sizeof data);
        check(mr_device_write(dev, addr + 4321, data, sizeof data, &err), &err);
        check(mr_device_read(dev, addr + 4321, back, sizeof back, &err), &err);
        assert_memory_equal(data, back, sizeof data);
        check(mr_device_read(dev, addr, back, sizeof back, &err), &err);
        memset(data, 0, sizeof data);
        assert_memory_equal(data, back, sizeof data);
        mr_device_close(dev);
    }
}

struct on_unit {
    const struct fixture *f;
    const struct ran *want;
    const char *device;
    struct mr_device *dev;
    struct mr_backend *b;
    struct ran got;
    int rc;
    struct mr_error err;
};

static void *run_unit(void *arg)
{
    struct on_unit *u = arg;
    hash_run(u->f, u->b, ALONE, &u->got);
    return NULL;
}

static void xrt_two_compute_units_at_once(void **state)
{
    int units;
    const char *xclbin = getenv("MILLRACE_XCLBIN_X2"), *set = getenv("MILLRACE_XCLBIN");
    struct fixture f;
    struct ran want;
    struct mr_error err = {0};
    struct on_unit u[2];
    pthread_t thread[2];
    (void)state;
    char first[1024];
    assert_non_null(xclbin);
    assert_non_null(set);
    assert_in_range(snprintf(first, sizeof first, "%s", set), 1, sizeof first - 1);
    assert_int_equal(setenv("MILLRACE_XCLBIN", xclbin, 1), 0);
    open_fixture(&f, "bf16-d32-r6", MR_FORMAT_MXINT8);
    struct run_options o = {.device = "sim:tiny", .grouping = ALONE};
    assert_int_equal(simulate(&f, &o, &want), 0);
    check(mr_device_units("xrt:0", &units, &err), &err);
    assert_int_equal(units, 2);
    for (int i = 0; i < 2; i++) {
        struct mr_engine_options opt = {.max_seqs = f.n_seq};
        char uri[MR_DEVICE_URI];
        u[i] = (struct on_unit){.f = &f};
        check(mr_device_unit("xrt:0", i, uri, &err), &err);
        check(mr_device_open(&u[i].dev, uri, &err), &err);
        check(mr_engine_open(&u[i].b, &f.packed, u[i].dev, &opt, &err), &err);
    }
    // A unit is used by one device.
    struct mr_device *third;
    assert_int_equal(mr_device_open(&third, "xrt:0,unit=1", &err), MR_ERR_DEVICE);
    // And a card by one xclbin; the last test, so the name is not set back.
    assert_int_equal(setenv("MILLRACE_XCLBIN", first, 1), 0);
    assert_int_equal(mr_device_open(&third, "xrt:0,unit=1", &err), MR_ERR_USAGE);
    assert_non_null(strstr(err.text, "this process has it open with"));
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run_unit, &u[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 2; i++) {
        struct mr_backend_stats s;
        mr_backend_stats(u[i].b, &s);
        assert_true(u[i].got.logits == want.logits && u[i].got.kv == want.kv);
        assert_true(s.counter[MR_CNT_CYCLES] == want.stats.counter[MR_CNT_CYCLES]);
        mr_backend_close(u[i].b);
        mr_device_close(u[i].dev);
    }
    close_fixture(&f);
}

static atomic_int at_work; // units

static void *run_until_it_fails(void *arg)
{
    struct on_unit *u = arg;
    bool first = true;
    float *logits = allocate((size_t)u->f->vocab, sizeof *logits);
    struct mr_row row = {.want_logits = true};
    while (u->rc == 0) {
        u->rc = mr_backend_seq_new(u->b, &row.seq, &u->err);
        for (int i = 0; u->rc == 0 && i < u->f->n_tok; i++)
            u->rc = mr_backend_step(u->b, &row, 1, logits, &u->err);
        if (u->rc == 0 && first && ++at_work == 2) {
            printf("# both units are at work\n");
            (void)fflush(stdout);
        }
        first = false;
        mr_backend_seq_free(u->b, row.seq);
    }
    free(logits);
    return NULL;
}

// Both units hear of it when their simulator is killed, which tests/xrt/errors.sh does.
static void xrt_two_units_whose_simulator_dies(void **state)
{
    struct fixture f;
    struct mr_error err = {0};
    struct on_unit u[2];
    pthread_t thread[2];
    (void)state;
    open_fixture(&f, "bf16-d32-r6", MR_FORMAT_MXINT8);
    for (int i = 0; i < 2; i++) {
        struct mr_engine_options opt = {.max_seqs = 1};
        char uri[MR_DEVICE_URI];
        u[i] = (struct on_unit){.f = &f};
        check(mr_device_unit("xrt:", i, uri, &err), &err);
        check(mr_device_open(&u[i].dev, uri, &err), &err);
        check(mr_engine_open(&u[i].b, &f.packed, u[i].dev, &opt, &err), &err);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run_until_it_fails, &u[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(u[i].rc, MR_ERR_DEVICE);
        assert_non_null(strstr(u[i].err.text, "the simulator behind XRT's hw_emu has ended"));
        mr_backend_close(u[i].b);
        mr_device_close(u[i].dev);
    }
    close_fixture(&f);
}

static void xrt_run_that_fails_is_reported(void **state)
{
    struct mr_error err = {0};
    struct mr_device *dev;
    uint64_t addr;
    uint32_t desc[48] = {0};
    (void)state;
    check(mr_device_open(&dev, "xrt:0", &err), &err);
    assert_string_equal(mr_device_info(dev)->config, "tiny");
    check(mr_device_alloc(dev, 0, sizeof desc, NULL, &addr, &err), &err);
    check(mr_device_write(dev, addr, desc, sizeof desc, &err), &err);
    for (int i = 0; i < 2; i++) { // the first leaves nothing behind that the second would see
        assert_int_equal(mr_device_run(dev, addr, &err), MR_ERR_DEVICE);
        assert_non_null(strstr(err.text, "bad run descriptor (code 1)"));
    }
    // Nothing there: the memory's answer is an error.
    assert_int_equal(mr_device_run(dev, addr + ((uint64_t)1 << 33), &err), MR_ERR_DEVICE);
    assert_non_null(strstr(err.text, "AXI read error (code 4)"));
    assert_int_equal(mr_device_write(dev, addr + 4096, desc, 4096, &err), MR_ERR_USAGE);
    mr_device_close(dev);
}

static void xrt_weights_too_large_for_their_buffers(void **state)
{
    enum { SIZE = 5 << 20 };
    struct mr_error err = {0};
    struct mr_device *dev;
    uint64_t addr;
    uint8_t *data = allocate(SIZE, 1), *back = allocate(SIZE, 1);
    (void)state;
    check(mr_device_open(&dev, "xrt:0,bo=1", &err), &err);
    assert_int_equal(mr_device_alloc(dev, 0, SIZE, data, &addr, &err), MR_ERR_FIT);
    assert_non_null(strstr(err.text, "do not fit 4 buffers"));
    for (int i = 0; i < SIZE; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 24);
    check(mr_device_alloc(dev, 0, 3500000, data, &addr, &err), &err);
    check(mr_device_read(dev, addr, back, 3500000, &err), &err);
    assert_memory_equal(data, back, 3500000);
    mr_device_close(dev);
    free(data);
    free(back);
}

static int stop_halfway(void *arg, size_t done, size_t total)
{
    *(size_t *)arg = total;
    return done * 2 > total;
}

static void xrt_upload_can_be_stopped(void **state)
{
    enum { SIZE = 40 << 20 };
    struct mr_error err = {0};
    struct mr_device *dev;
    uint64_t addr;
    size_t total = 0;
    uint8_t *data = allocate(SIZE, 1);
    (void)state;
    check(mr_device_open(&dev, "xrt:0", &err), &err);
    dev->upload = (struct mr_upload){.progress = stop_halfway, .arg = &total, .total = SIZE};
    assert_int_equal(mr_device_alloc(dev, 0, SIZE, data, &addr, &err), MR_ERR_INTERRUPTED);
    assert_int_equal(total, SIZE);
    assert_true(dev->upload.done > SIZE / 2 && dev->upload.done < SIZE);
    mr_device_close(dev);
    free(data);
}

// Bytes a second of the device's alloc and read, and of a bare program's: allocate, fill and sync a
// buffer, sync it back and copy it out. They are printed; what comes back is compared.
static void xrt_copies_beside_xrt_alone(void **state)
{
    enum { SIZE = 16 << 20, TIMES = 3 };
    struct mr_error err = {0};
    struct mr_device *dev;
    struct mr_xrt_card *card;
    struct mr_xrt_buffer bare;
    double best[4] = {1e9, 1e9, 1e9, 1e9}; // seconds: up, down; bare up, down
    uint8_t *data = allocate(SIZE, 1), *back = allocate(SIZE, 1);
    (void)state;
    check(mr_device_open(&dev, "xrt:0", &err), &err);
    check(mr_xrt_open(&card, 0, getenv("MILLRACE_XCLBIN"), &err), &err);
    for (int i = 0; i < TIMES; i++) {
        uint64_t addr;
        double t[5];
        for (int k = 0; k < SIZE; k++)
            data[k] = (uint8_t)((k + i) * 2654435761u >> 24);
        t[0] = now();
        check(mr_device_alloc(dev, 0, SIZE, data, &addr, &err), &err);
        t[1] = now();
        check(mr_device_read(dev, addr, back, SIZE, &err), &err);
        t[2] = now();
        assert_memory_equal(data, back, SIZE);
        check(mr_xrt_alloc(&bare, card, 0, SIZE, &err), &err);
        memcpy(bare.data, data, SIZE);
        check(mr_xrt_sync(&bare, true, 0, SIZE, &err), &err);
        t[3] = now();
        check(mr_xrt_sync(&bare, false, 0, SIZE, &err), &err);
        memcpy(back, bare.data, SIZE);
        t[4] = now();
        mr_xrt_free(&bare);
        assert_memory_equal(data, back, SIZE);
        for (int k = 0; k < 4; k++)
            best[k] = t[k + 1] - t[k] < best[k] ? t[k + 1] - t[k] : best[k];
    }
    print_message("# MB/s to the card %.0f, from it %.0f; XRT alone %.0f, %.0f\n",
                  SIZE / best[0] / 1e6, SIZE / best[1] / 1e6, SIZE / best[2] / 1e6,
                  SIZE / best[3] / 1e6);
    mr_xrt_close(card);
    mr_device_close(dev);
    free(data);
    free(back);
}

// Bytes that a session on `device` copies to the card for the packed file's weights.
static size_t copied_for(const struct fixture *f, const char *path, const char *device)
{
    struct mr_error err = {0};
    struct mr_pack_options none = {0};
    struct mr_engine_options opt = {.max_seqs = f->n_seq};
    struct run_options sim = {.device = "sim:tiny", .grouping = ALONE};
    struct fixture packed = *f;
    struct mr_device *dev;
    struct mr_backend *b;
    struct ran want, got = {0};
    check(mr_packed_open(&packed.packed, path, &none, &err), &err);
    assert_int_equal(simulate(&packed, &sim, &want), 0);
    check(mr_device_open(&dev, device, &err), &err);
    check(mr_engine_open(&b, &packed.packed, dev, &opt, &err), &err);
    size_t copied = dev->upload.done, total = dev->upload.total;
    hash_run(&packed, b, ALONE, &got);
    assert_true(got.logits == want.logits && got.kv == want.kv);
    mr_backend_close(b);
    mr_device_close(dev);
    mr_packed_close(&packed.packed);
    assert_true(copied == 0 || copied == total);
    return copied;
}

// A second session in the process finds the weights of the same packed file on the card; those of
// a file that has changed, or with other buffers, are copied, and give way when memory runs out.
static void xrt_weights_stay_on_the_card(void **state)
{
    enum { MOST = 200 };
    struct mr_error err = {0};
    struct mr_device *dev;
    struct fixture f;
    char path[] = "/tmp/xrt-kept-XXXXXX";
    struct mr_xrt_buffer full[MOST];
    struct mr_xrt_card *card;
    int fd = mkstemp(path), n = 0;
    uint64_t addr;
    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    open_fixture(&f, "bf16-d32-r6", MR_FORMAT_MXINT8);
    for (int i = 0; i < 3; i++) { // the second is of the same size, the third is the first again
        struct mr_pack_options opt = {.format = MR_FORMAT_MXINT8, .smooth = i != 1};
        struct mr_packed packed;
        check(mr_pack_directory(&packed, f.path, &opt, &err), &err);
        check(mr_packed_save(&packed, f.path, path, NULL, &err), &err);
        mr_packed_close(&packed);
        size_t copied = copied_for(&f, path, "xrt:0");
        assert_true(i < 2 ? copied > 0 : copied == 0);
        assert_int_equal(copied_for(&f, path, "xrt:0"), 0);
    }
    assert_true(copied_for(&f, path, "xrt:0,bo=1") > 0);
    // Nothing is left of the bank; then a buffer is needed.
    check(mr_device_open(&dev, "xrt:0", &err), &err);
    check(mr_xrt_open(&card, 0, getenv("MILLRACE_XCLBIN"), &err), &err);
    for (size_t size = (size_t)1 << 32; size >= 4096; size /= 2)
        while (n < MOST && mr_xrt_alloc(&full[n], card, 0, size, NULL) == 0)
            n++;
    assert_in_range(n, 1, MOST - 1);
    check(mr_device_alloc(dev, 0, 4096, NULL, &addr, &err), &err);
    while (n)
        mr_xrt_free(&full[--n]);
    mr_xrt_close(card);
    mr_device_close(dev);
    assert_true(copied_for(&f, path, "xrt:0") > 0);
    close_fixture(&f);
    (void)unlink(path);
}

static int entries(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

static long resident_pages(void)
{
    long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &size, &resident), 2);
    (void)fclose(f);
    return resident;
}

// XRT itself keeps about 9 KB each time.
static void xrt_opened_again_and_again(void **state)
{
    enum { WARM = 20, TIMES = 120, PAGES_EACH = 8 };
    struct mr_error err = {0};
    long pages = 0;
    int files = 0, threads = 0;
    (void)state;
    for (int i = 0; i < TIMES; i++) {
        struct mr_device *dev;
        uint64_t addr;
        check(mr_device_open(&dev, "xrt:0", &err), &err);
        check(mr_device_alloc(dev, 0, 1 << 20, NULL, &addr, &err), &err);
        mr_device_close(dev);
        if (i == WARM) {
            pages = resident_pages();
            files = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
        }
    }
    pages = resident_pages() - pages;
    print_message("# %ld KB for %d times opened\n", pages * 4, TIMES - WARM);
    assert_true(pages < PAGES_EACH * (TIMES - WARM));
    assert_int_equal(entries("/proc/self/fd"), files);
    // A thread that has been joined may be listed for a moment more.
    for (int i = 0; i < 1000 && entries("/proc/self/task") != threads; i++)
        (void)usleep(100000);
    assert_int_equal(entries("/proc/self/task"), threads);
}

int main(void)
{
    const struct CMUnitTest killed[] = {cmocka_unit_test(xrt_two_units_whose_simulator_dies)};
    const struct CMUnitTest soak[] = {cmocka_unit_test(xrt_opened_again_and_again)};
    const struct CMUnitTest loop[] = {cmocka_unit_test(xrt_open_and_close)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xrt_open_and_close),
        cmocka_unit_test(xrt_fixtures_equal_sim),
        cmocka_unit_test(xrt_run_that_fails_is_reported),
        cmocka_unit_test(xrt_weights_too_large_for_their_buffers),
        cmocka_unit_test(xrt_upload_can_be_stopped),
        cmocka_unit_test(xrt_weights_stay_on_the_card),
        cmocka_unit_test(xrt_copies_beside_xrt_alone),
        cmocka_unit_test(xrt_two_compute_units_at_once),
    };
    const char *parts = getenv("XRT_PARTS");
    if (parts && strcmp(parts, "loop") == 0)
        return cmocka_run_group_tests(loop, NULL, NULL);
    if (parts && strcmp(parts, "killed") == 0)
        return cmocka_run_group_tests(killed, NULL, NULL);
    if (parts && strcmp(parts, "soak") == 0)
        return cmocka_run_group_tests(soak, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
