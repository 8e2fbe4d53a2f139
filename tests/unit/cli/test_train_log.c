// SPDX-License-Identifier: Apache-2.0
// Event files, read back by the format's description: lengths, checksums, fields. CSV and curves.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/status_line.h"
#include "cli/train/curve.h"
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
    (void)snprintf(
        want, sizeof want,
        "step,loss,norm,rate,heldout_loss,repeated,seconds,tokens_per_second,accuracy\n%s%s", rows,
        rows);
    char *is = files_read(path, &n);
    assert_string_equal(is, want);
    free(is);
    struct mr_error err = {0};
    struct train_log log;
    files_write("rows.csv", "step,loss,norm,rate,heldout_loss\n", 33);
    assert_int_equal(train_log_open(&log, NULL, path, 0, &err), MR_ERR_FORMAT);
    assert_non_null(strstr(err.text, "its first row is not 'step,loss,norm,rate,heldout_loss,rep"));
    train_log_close(&log);
    char other[100];
    memset(other, 'x', sizeof other);
    files_write("rows.csv", other, sizeof other);
    assert_int_equal(train_log_open(&log, NULL, path, 0, &err), MR_ERR_FORMAT);
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
    const char *pipe = files_path("pipe"); // rows are added behind others
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(train_log_open(&log, NULL, pipe, 0, &err), MR_ERR_IO);
    assert_non_null(strstr(err.text, "Illegal seek"));
    train_log_close(&log);
    remove(pipe);
    char dir[] = "events", name[] = "events/events.out.tfevents.0000000041.millrace";
    assert_int_equal(mkdir(files_path(dir), 0700) | mkdir(files_path(name), 0700), 0);
    assert_int_equal(train_log_open(&log, files_path(dir), NULL, 41, &err), MR_ERR_IO);
    assert_non_null(strstr(err.text, ".millrace: Is a directory"));
    train_log_close(&log);
    assert_int_equal(rmdir(files_path(name)), 0);
    assert_int_equal(symlink("/dev/full", files_path(name)), 0);
    assert_int_equal(train_log_open(&log, files_path(dir), NULL, 41, &err), MR_ERR_IO);
    assert_non_null(strstr(err.text, ".millrace: No space"));
    train_log_close(&log);
    remove(files_path(name));
    assert_int_equal(rmdir(files_path(dir)), 0);
}

// Each event and row is on the disk, or said not to be, before the next step.
static void a_disk_that_fills_up_is_said(void **unused)
{
    (void)unused;
    static const struct mr_trainer_done step = {.step = 1};
    for (int rows = 0; rows < 2; rows++) {
        struct mr_error err = {0};
        struct train_log log;
        char name[] = "rows.csv";
        int full = open("/dev/full", O_WRONLY);
        check(train_log_open(&log, rows ? NULL : files_path("events"),
                             rows ? files_path(name) : NULL, 0, &err),
              &err);
        assert_true(full >= 0 && dup2(full, fileno(rows ? log.csv : log.events)) >= 0);
        assert_int_equal(train_log_step(&log, 1, &step, 0, 0, &err), MR_ERR_IO);
        assert_non_null(strstr(err.text, rows ? "rows.csv: No space" : "events: No space"));
        assert_int_equal(train_log_held(&log, 1, 1, 2, -1, &err), MR_ERR_IO);
        train_log_close(&log);
        (void)close(full);
    }
    remove(files_path("rows.csv"));
    remove(files_path("events/events.out.tfevents.0000000000.millrace"));
    assert_int_equal(rmdir(files_path("events")), 0);
}

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

// `held` dots of held-out losses; the file's text, which the caller frees.
static char *drawn(int held, int steps)
{
    struct mr_error err = {0};
    struct train_curve curve;
    char name[] = "curve.svg";
    size_t n;
    check(train_curve_open(&curve, files_path(name), "title", 1, 0, &err), &err);
    curve.written = 1e30; // at the end alone
    for (int i = 1; i <= steps; i++)
        check(train_curve_step(&curve, (uint64_t)i, 3, 1e-3, &err), &err);
    for (int i = 1; i <= held; i++)
        check(train_curve_held(&curve, (uint64_t)i, 3, &err), &err);
    check(train_curve_held(&curve, (uint64_t)held, 3, &err), &err); // looked at again
    check(train_curve_write(&curve, &err), &err);
    train_curve_close(&curve);
    char *text = files_read(files_path(name), &n);
    remove(files_path(name));
    return text;
}

static void curves_are_drawn(void **unused)
{
    (void)unused;
    static const struct {
        int steps, held, dots;
        const char *tick, *none;                        // of the steps
    } table[] = {{8, 2, 2, ">3</text>", ">0.5</text>"}, // one a step
                 {80, 100, 100, ">20</text>", ">10</text>"},
                 {20, 101, 0, ">20</text>", ">10</text>"}, // too many for dots
                 {0, 1, 1, ">1</text>", ">2</text>"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char *text = drawn(table[i].held, table[i].steps);
        assert_int_equal(count_of(text, "<circle"), table[i].dots);
        assert_int_equal(count_of(text, "\nheld "), table[i].held);
        assert_non_null(strstr(text, table[i].tick));
        assert_null(strstr(text, table[i].none));
        assert_null(strstr(text, "nan"));
        free(text);
    }
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
        cmocka_unit_test(a_disk_that_fills_up_is_said),
        cmocka_unit_test(curves_are_drawn),
        cmocka_unit_test(long_work_is_no_silence),
    };
    return cmocka_run_group_tests_name("train_log", tests, files_setup, files_teardown);
}
