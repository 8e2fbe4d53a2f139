// SPDX-License-Identifier: Apache-2.0
// Event files, read back by the format's description: lengths, checksums, fields. And CSV.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "cli/base/status_line.h"
#include "cli/train/log.h"
#include "common/error.h"
#include "unit/check.h"
#include "unit/files.h"

// CRC-32C as a division of polynomials, highest power first; no step of the program's way.
static uint32_t remainder_of(const unsigned char *data, size_t size)
{
    uint64_t rest = 0;
    for (size_t i = 0; i < (size + 4) * 8; i++) {
        unsigned bit = i < size * 8 ? data[i / 8] >> i % 8 & 1 : 0;
        bit ^= i < 32; // begins with ones
        rest = rest << 1 | bit;
        if (rest >> 32)
            rest ^= 0x11EDC6F41U;
    }
    uint32_t crc = 0;
    for (int i = 0; i < 32; i++)
        crc |= (uint32_t)(rest >> i & 1) << (31 - i);
    return ~crc;
}

static uint32_t masked(const unsigned char *data, size_t size)
{
    uint32_t crc = remainder_of(data, size);
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

struct value {
    char tag[32];
    float x;
};
struct event {
    double now;
    uint64_t step;
    char version[32];
    int values;
    struct value value[8];
};

static uint64_t number(const unsigned char **p)
{
    uint64_t x = 0;
    int shift = 0;
    do
        x |= (uint64_t)(**p & 127) << shift, shift += 7;
    while (*(*p)++ >= 128);
    return x;
}

static void read_value(struct value *v, const unsigned char *p, const unsigned char *end)
{
    while (p < end) {
        uint64_t key = number(&p);
        assert_true(key == (1 << 3 | 2) || key == (2 << 3 | 5));
        if (key == (2 << 3 | 5)) {
            memcpy(&v->x, p, 4);
            p += 4;
            continue;
        }
        size_t n = (size_t)number(&p);
        assert_true(n < sizeof v->tag);
        memcpy(v->tag, p, n);
        p += n;
    }
    assert_ptr_equal(p, end);
}

static void read_event(struct event *e, const unsigned char *p, const unsigned char *end)
{
    *e = (struct event){.values = 0};
    while (p < end) {
        uint64_t key = number(&p), n;
        switch (key) {
        case 1 << 3 | 1:
            memcpy(&e->now, p, 8);
            p += 8;
            continue;
        case 2 << 3 | 0:
            e->step = number(&p);
            continue;
        case 3 << 3 | 2:
            n = number(&p);
            memcpy(e->version, p, n);
            break;
        default:
            assert_int_equal(key, 5 << 3 | 2);
            n = number(&p);
            for (const unsigned char *v = p; v < p + n;) {
                assert_int_equal(number(&v), 1 << 3 | 2);
                size_t size = (size_t)number(&v);
                read_value(&e->value[e->values++], v, v + size);
                v += size;
            }
        }
        p += n;
    }
    assert_ptr_equal(p, end);
}

// The records of a file; their checksums are right.
static int read_events(const char *path, struct event *e)
{
    size_t size;
    int count = 0;
    char *text = files_read(path, &size);
    const unsigned char *data = (unsigned char *)text;
    for (size_t at = 0; at < size; count++) {
        uint64_t n;
        uint32_t crc;
        memcpy(&n, data + at, 8);
        memcpy(&crc, data + at + 8, 4);
        assert_int_equal(crc, masked(data + at, 8));
        assert_true(at + 16 + n <= size);
        memcpy(&crc, data + at + 12 + n, 4);
        assert_int_equal(crc, masked(data + at + 12, n));
        read_event(&e[count], data + at + 12, data + at + 12 + n);
        at += 16 + n;
    }
    free(text);
    return count;
}

static void write_run(const char *dir, const char *csv, double now)
{
    struct mr_error err = {0};
    struct train_log log;
    check(train_log_open(&log, files_path(dir), csv, 41, &err), &err);
    check(train_log_held(&log, now, 41, 3.5, 0.75, &err), &err);
    static const struct mr_trainer_done
        small = {.step = 42, .loss = 2.25, .targets = 7, .norm = 0.125, .repeated = 2},
        large = {.step = 1ULL << 40, .loss = 1e-9, .targets = 7, .norm = 1e9};
    check(train_log_step(&log, now + 1, &small, 1e-3, 0.5, &err), &err);
    check(train_log_step(&log, now + 2, &large, 0, 0, &err), &err);
    train_log_close(&log);
}

static void events_are_read_back(void **unused)
{
    (void)unused;
    static const struct value want[] = {
        {"loss", 2.25F}, {"gradient_norm", 0.125F}, {"learning_rate", 1e-3F}, {"repeated", 2}};
    struct event e[8];
    assert_int_equal(remainder_of((const unsigned char *)"123456789", 9), 0xE3069283);
    write_run("events", NULL, 100.5);
    const char *path = files_path("events/events.out.tfevents.0000000041.millrace");
    assert_int_equal(read_events(path, e), 4);
    assert_string_equal(e[0].version, "brain.Event:2");
    assert_true(e[0].step == 41 && e[0].values == 0 && e[1].step == 41 && e[1].now == 100.5);
    assert_true(e[1].values == 2 && e[1].value[0].x == 3.5F && e[1].value[1].x == 0.75F);
    assert_string_equal(e[1].value[1].tag, "accuracy");
    assert_string_equal(e[1].value[0].tag, "heldout_loss");
    assert_true(e[2].step == 42 && e[2].now == 101.5 && e[2].values == 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(e[2].value[i].tag, want[i].tag);
        assert_true(e[2].value[i].x == want[i].x);
    }
    assert_true(e[3].step == 1ULL << 40 && e[3].value[0].x == 1e-9F && e[3].value[2].x == 0);
    remove(path);
    assert_int_equal(rmdir(files_path("events")), 0);
}

static void rows_are_added(void **unused)
{
    (void)unused;
    static const char rows[] =
        "41,,,,3.5,,,,0.75\n42,2.25,0.125,0.001,,2,0.5,14,\n1099511627776,1e-09,1e+09,0,,0,0,0,\n";
    char want[400];
    size_t n;
    const char *path = files_path("rows.csv");
    write_run("events", path, 1);
    write_run("events", path, 2);
    (void)snprintf(want, sizeof want,
                   "step,loss,norm,rate,heldout_loss,repeated,seconds,tokens_per_second,accuracy\n%s%s",
                   rows, rows);
    char *is = files_read(path, &n);
    assert_string_equal(is, want);
    free(is);
    struct mr_error err = {0};
    struct train_log log;
    files_write("rows.csv", "step,loss,norm,rate,heldout_loss\n", 33);
    assert_int_equal(train_log_open(&log, NULL, path, 0, &err), MR_ERR_FORMAT);
    assert_non_null(strstr(err.text, "its first row is not 'step,loss,norm,rate,heldout_loss,rep"));
    train_log_close(&log);
    remove(path);
    remove(files_path("events/events.out.tfevents.0000000041.millrace"));
    assert_int_equal(rmdir(files_path("events")), 0);
}

static void places_that_are_not_there_are_refused(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct train_log log;
    assert_int_equal(train_log_open(&log, files_path("no/events"), NULL, 0, &err), MR_ERR_IO);
    assert_non_null(strstr(err.text, "No such file"));
    train_log_close(&log);
    assert_int_equal(train_log_open(&log, NULL, files_path("no/rows"), 0, &err), MR_ERR_IO);
    train_log_close(&log);
    assert_int_equal(train_log_open(&log, NULL, "/dev/full", 0, &err), MR_ERR_IO);
    assert_non_null(strstr(err.text, "No space"));
    train_log_close(&log);
}

// Without a terminal: a line for each time that nothing was printed for so long.
static void long_work_is_no_silence(void **unused)
{
    (void)unused;
    char got[200] = "";
    const char *name = files_path("stderr");
    int kept = dup(STDERR_FILENO);
    assert_true(kept >= 0 && freopen(name, "wb", stderr));
    struct cli_line l;
    cli_line_open(&l, false, false);
    cli_line_show(&l, "never");
    assert_true(l.every == 30);
    l.every = 1000;
    cli_line_show(&l, "not yet");
    l.last -= 1001;
    cli_line_show(&l, "window 7 of 9");
    cli_line_show(&l, "said just now");
    l.last -= 1001;
    cli_line_wipe(&l); // something else is printed
    cli_line_show(&l, "nor now");
    cli_line_open(&l, false, false); // two pieces of work that follow each other, both too short
    l.every = 1000;
    l.last -= 600;
    cli_line_end(&l);
    cli_line_open(&l, false, false);
    l.every = 1000;
    l.last -= 600;
    cli_line_show(&l, "uploading 7 %");
    (void)fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0 && close(kept) == 0);
    FILE *f = fopen(name, "rb");
    assert_true(f && fread(got, 1, sizeof got - 1, f) > 0 && fclose(f) == 0);
    assert_string_equal(got, "millrace: window 7 of 9\nmillrace: uploading 7 %\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_read_back),
        cmocka_unit_test(rows_are_added),
        cmocka_unit_test(places_that_are_not_there_are_refused),
        cmocka_unit_test(long_work_is_no_silence),
    };
    return cmocka_run_group_tests_name("train_log", tests, files_setup, files_teardown);
}
