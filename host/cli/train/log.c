// SPDX-License-Identifier: Apache-2.0
#include "cli/train/log.h"

#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"
#include "common/file.h"

// ---- event files: records of a length, its checksum, a protocol buffer and its checksum ---------

enum { RECORD = 512 };

struct buffer {
    unsigned char data[RECORD];
    size_t size;
};

// CRC-32C (Castagnoli), turned and moved on as such files want it.
static uint32_t checksum(const unsigned char *data, size_t size)
{
    uint32_t crc = ~0U;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78U : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

static void put(struct buffer *b, const void *data, size_t size)
{
    memcpy(b->data + b->size, data, size); // of a few short fields
    b->size += size;
}

static void put_number(struct buffer *b, uint64_t x)
{
    for (; x >= 128; x >>= 7)
        b->data[b->size++] = (unsigned char)(x | 128);
    b->data[b->size++] = (unsigned char)x;
}

// A field: its number and kind (0: a number, 1: 8 bytes, 2: text or a message, 5: 4 bytes).
static void put_field(struct buffer *b, int number, int kind)
{
    put_number(b, (uint64_t)(number << 3 | kind));
}

static void put_text(struct buffer *b, int number, const void *data, size_t size)
{
    put_field(b, number, 2);
    put_number(b, size);
    put(b, data, size);
}

// message Value { string tag = 1; float simple_value = 2; }, as value 1 of a summary
static void put_value(struct buffer *summary, const char *tag, double x)
{
    struct buffer value = {.size = 0};
    float f = (float)x;
    put_text(&value, 1, tag, strlen(tag));
    put_field(&value, 2, 5);
    put(&value, &f, sizeof f);
    put_text(summary, 1, value.data, value.size);
}

// message Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary =
// 5; }
static struct buffer event_at(double now, uint64_t step)
{
    struct buffer e = {.size = 0};
    put_field(&e, 1, 1);
    put(&e, &now, sizeof now);
    put_field(&e, 2, 0);
    put_number(&e, step);
    return e;
}

// At once, as the stream has no buffer.
static bool write_record(FILE *f, const struct buffer *b)
{
    struct buffer record = {.size = 0};
    uint64_t size = b->size;
    uint32_t of_size = checksum((const unsigned char *)&size, sizeof size),
             of_data = checksum(b->data, b->size);
    put(&record, &size, sizeof size);
    put(&record, &of_size, sizeof of_size);
    put(&record, b->data, b->size);
    put(&record, &of_data, sizeof of_data);
    return fwrite(record.data, record.size, 1, f) == 1;
}

// ---- both ---------------------------------------------------------------------------------------

static int failed(const char *path, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_IO, "%s: %s", path, strerror(errno));
}

// 0 or an errno: whether `path`, a directory or a file, can be written or made.
static int may_be_made(const char *path, bool directory, const char *state)
{
    struct stat st;
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode) != directory)
            return directory ? ENOTDIR : EISDIR;
        return access(path, directory ? W_OK | X_OK : W_OK) == 0 ? 0 : errno;
    }
    char *copy = strdup(path);
    if (!copy)
        return ENOMEM;
    const char *above = dirname(copy);
    bool later = mr_path_same(above, state);
    int rc = later || access(above, W_OK | X_OK) == 0 ? 0 : errno;
    if (rc == 0 && !later && stat(above, &st) == 0 && !S_ISDIR(st.st_mode))
        rc = ENOTDIR;
    free(copy);
    return rc;
}

int train_log_check(const char *events, const char *csv, const char *svg, const char *state,
                    struct mr_error *err)
{
    int why = events ? may_be_made(events, true, state) : 0;
    if (why)
        return mr_fail(err, MR_ERR_IO,
                       "--events %s: %s; name a directory, or a new one in a directory that is "
                       "there and may be written",
                       events, strerror(why));
    const struct {
        const char *option, *path;
    } files[] = {{"--csv", csv}, {"--svg", svg}};
    for (int i = 0; i < 2; i++) {
        why = files[i].path ? may_be_made(files[i].path, false, state) : 0;
        if (why)
            return mr_fail(err, MR_ERR_IO,
                           "%s %s: %s; name a file in a directory that is there and may be written",
                           files[i].option, files[i].path, strerror(why));
    }
    return 0;
}

static int open_events(struct train_log *log, const char *dir, uint64_t step, struct mr_error *err)
{
    char name[64];
    (void)snprintf(name, sizeof name, "events.out.tfevents.%010llu.millrace",
                   (unsigned long long)step);
    log->events_dir = dir;
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return failed(dir, err);
    char *path = mr_path_join(dir, name, err);
    if (!path)
        return MR_ERR_MEMORY;
    log->events = fopen(path, "wb");
    if (log->events)
        setbuf(log->events, NULL);
    struct buffer e = event_at(0, step);
    put_text(&e, 3, "brain.Event:2", 13);
    int rc = log->events && write_record(log->events, &e) ? 0 : failed(path, err);
    free(path);
    return rc;
}

// A row is written when it ends, as the stream has a buffer for a line.
static int open_csv(struct train_log *log, const char *path, struct mr_error *err)
{
    static const char names[] =
        "step,loss,norm,rate,heldout_loss,repeated,seconds,tokens_per_second,accuracy\n";
    char first[sizeof names - 1];
    log->csv_path = path;
    log->csv = fopen(path, "a+");
    if (log->csv)
        setlinebuf(log->csv);
    if (!log->csv || fseek(log->csv, 0, SEEK_END) != 0)
        return failed(path, err);
    if (ftell(log->csv) == 0)
        return fputs(names, log->csv) < 0 ? failed(path, err) : 0;
    rewind(log->csv);
    bool known = fread(first, 1, sizeof first, log->csv) == sizeof first &&
                 memcmp(first, names, sizeof first) == 0;
    rewind(log->csv); // from reading to writing, which is at the end
    return known ? 0
                 : mr_fail(err, MR_ERR_FORMAT,
                           "%s: its first row is not '%.*s'; name another file for the rows", path,
                           (int)sizeof first - 1, names);
}

int train_log_open(struct train_log *log, const char *events, const char *csv, uint64_t step,
                   struct mr_error *err)
{
    *log = (struct train_log){0};
    int rc = events ? open_events(log, events, step, err) : 0;
    return rc == 0 && csv ? open_csv(log, csv, err) : rc;
}

int train_log_step(struct train_log *log, double now, const struct mr_trainer_done *step,
                   double rate, double seconds, struct mr_error *err)
{
    if (log->events) {
        struct buffer e = event_at(now, step->step), summary = {.size = 0};
        put_value(&summary, "loss", step->loss);
        put_value(&summary, "gradient_norm", step->norm);
        put_value(&summary, "learning_rate", rate);
        put_value(&summary, "repeated", step->repeated);
        put_text(&e, 5, summary.data, summary.size);
        if (!write_record(log->events, &e))
            return failed(log->events_dir, err);
    }
    return log->csv && fprintf(log->csv, "%llu,%.9g,%.9g,%.9g,,%d,%.6g,%.6g,\n",
                               (unsigned long long)step->step, step->loss, step->norm, rate,
                               step->repeated, seconds, train_log_pace(step, seconds)) < 0
               ? failed(log->csv_path, err)
               : 0;
}

int train_log_held(struct train_log *log, double now, uint64_t step, double loss, double accuracy,
                   struct mr_error *err)
{
    char shown[32] = "";
    if (accuracy >= 0)
        (void)snprintf(shown, sizeof shown, "%.9g", accuracy);
    if (log->events) {
        struct buffer e = event_at(now, step), summary = {.size = 0};
        put_value(&summary, "heldout_loss", loss);
        if (accuracy >= 0)
            put_value(&summary, "accuracy", accuracy);
        put_text(&e, 5, summary.data, summary.size);
        if (!write_record(log->events, &e))
            return failed(log->events_dir, err);
    }
    return log->csv && fprintf(log->csv, "%llu,,,,%.9g,,,,%s\n", (unsigned long long)step, loss,
                               shown) < 0
               ? failed(log->csv_path, err)
               : 0;
}

double train_log_pace(const struct mr_trainer_done *step, double seconds)
{
    return seconds > 0 ? (double)step->targets / seconds : 0;
}

double train_log_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void train_log_close(struct train_log *log)
{
    if (log->events)
        (void)fclose(log->events); // each record is written already
    if (log->csv)
        (void)fclose(log->csv);
    *log = (struct train_log){0};
}
