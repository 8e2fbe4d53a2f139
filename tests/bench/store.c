// SPDX-License-Identifier: Apache-2.0
// How fast is a step of the store? Beside memcpy() by as many threads in memory, and beside direct
// I/O on the same disk; in bytes read plus bytes written. Prints, and asserts nothing about time.
// usage: store [DIRECTORY [PARAMETERS IN MILLIONS IN MEMORY [ON DISK]]]
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint/synthetic.h"
#include "common/file.h"
#include "store/store.h"
#include "store/turned.h"
#include "store/volume.h"

// Of a machine whose memory others use too the rate changes within seconds. So memcpy() and update
// take turns, and the share is the median of the rounds'.
enum { ROUNDS = 9, DISK_ROUNDS = 3 };

// Seconds of the clock, and of all of this process's threads: beside other work the latter tell
// more.
struct seconds {
    double wall, processor;
};

static double clock_of(clockid_t which)
{
    struct timespec t;
    (void)clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct seconds now(void)
{
    return (struct seconds){clock_of(CLOCK_MONOTONIC), clock_of(CLOCK_PROCESS_CPUTIME_ID)};
}

// Those since `begin`, or `best` where it has less.
static struct seconds least_since(struct seconds begin, struct seconds best)
{
    struct seconds end = now();
    return (struct seconds){fmin(end.wall - begin.wall, best.wall),
                            fmin(end.processor - begin.processor, best.processor)};
}

static const struct seconds never = {INFINITY, INFINITY};

static void check(int rc, const struct mr_error *err)
{
    if (rc == 0)
        return;
    fprintf(stderr, "store: %s\n", err->text);
    exit(1);
}

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "store: %s: %s\n", what, strerror(errno));
    exit(1);
}

// ---- memcpy() and direct I/O --------------------------------------------------------------------

struct copying {
    char *to;
    const char *from;
    size_t share;
};

static void copy(void *arg, int i, int worker)
{
    const struct copying *c = arg;
    (void)worker;
    memcpy(c->to + (size_t)i * c->share, c->from + (size_t)i * c->share, c->share);
}

enum { COPIED = 1 << 30 };

static char *copying_memory(void)
{
    char *memory = aligned_alloc(1 << 21, 2 * (size_t)COPIED);
    need(memory != NULL, "2 GB of memory");
    (void)madvise(memory, 2 * (size_t)COPIED, MADV_HUGEPAGE); // advice
    memset(memory, 1, 2 * (size_t)COPIED);
    return memory;
}

// 4 GB, read plus written.
static struct seconds memcpy_seconds(struct mr_pool *pool, char *memory)
{
    int threads = mr_pool_workers(pool);
    struct copying c = {memory + COPIED, memory, COPIED / (size_t)threads};
    struct seconds begin = now();
    for (int k = 0; k < 2; k++)
        mr_pool_run(pool, threads, copy, &c, true);
    return least_since(begin, never);
}

static double timed_io(int fd, char *piece, uint64_t bytes, bool writing)
{
    enum { PIECE = 4 << 20 };
    struct seconds begin = now();
    for (uint64_t at = 0; at < bytes; at += PIECE) {
        ssize_t n =
            writing ? pwrite(fd, piece, PIECE, (off_t)at) : pread(fd, piece, PIECE, (off_t)at);
        need(n == PIECE, writing ? "direct write" : "direct read");
    }
    need(!writing || fdatasync(fd) == 0, "fdatasync");
    return least_since(begin, never).wall;
}

// Seconds that direct I/O needs to write and to read so many bytes in pieces of 4 MiB, as dd does.
static double direct_seconds(const char *dir, uint64_t reads, uint64_t writes)
{
    struct mr_error err = {0};
    char *path = mr_path_join(dir, "direct", &err), *piece = aligned_alloc(4096, 4 << 20);
    int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600) : -1;
    need(fd >= 0 && piece, "a file for direct I/O");
    memset(piece, 7, 4 << 20);
    (void)timed_io(fd, piece, reads > writes ? reads : writes, true); // the room is there then
    double seconds = timed_io(fd, piece, writes, true) + timed_io(fd, piece, reads, false);
    (void)close(fd);
    (void)unlink(path);
    free(path);
    free(piece);
    return seconds;
}

// ---- stores -------------------------------------------------------------------------------------

// One layer with an eighth or so of its parameters in each of the small matrices, as GPT-J has it.
static struct mr_config config_of(double millions)
{
    int embd = (int)(sqrt(millions * 1e6 / 12) / 64) * 64;
    embd = embd < 64 ? 64 : embd;
    return (struct mr_config){.vocab_size = 512,
                              .n_positions = 64,
                              .n_embd = embd,
                              .n_layer = 1,
                              .n_head = embd / 64,
                              .head_dim = 64,
                              .rotary_dim = 32,
                              .n_inner = 4 * embd,
                              .layer_norm_epsilon = 1e-5F};
}

static struct seconds add_gradients(struct mr_store *s, int micro_batches, double *bytes)
{
    struct mr_error err = {0};
    size_t tensors = mr_tensor_specs(mr_store_config(s)), largest = 0;
    for (size_t i = 0; i < tensors; i++)
        largest = mr_store_region(s, i) > largest ? mr_store_region(s, i) : largest;
    int32_t *region = aligned_alloc(4096, (largest + 4095) / 4096 * 4096);
    need(region != NULL, "memory");
    uint32_t x = 1;
    for (size_t k = 0; k < largest / sizeof *region; k++)
        region[k] = (int32_t)(x = x * 1664525U + 1013904223U) >> 12;
    struct seconds last = never;
    check(mr_store_begin(s, micro_batches, &err), &err);
    for (int b = 0; b < micro_batches; b++) {
        struct seconds begin = now();
        *bytes = 0;
        for (size_t i = 0; i < tensors; i++) {
            size_t n = mr_store_region(s, i);
            int32_t record[16], zeros[16] = {0};
            memcpy(record, region + n / 4 - 16, sizeof record);
            memcpy(region + n / 4 - 16, zeros, sizeof zeros);
            check(mr_store_add(s, i, region, &err), &err);
            memcpy(region + n / 4 - 16, record, sizeof record);
            *bytes += (b ? 3.0 : 2.0) * (double)n;
        }
        last = least_since(begin, never);
        check(mr_store_end(s, &err), &err);
    }
    free(region);
    return last;
}

static struct seconds apply(struct mr_store *s, struct seconds best)
{
    struct mr_error err = {0};
    struct mr_store_done done;
    struct mr_store_update u = {
        .adamw = {0.9, 0.95, 1e-8, 0.1, false, MR_ADAMW}, .rate = 1e-4, .clip = 1, .targets = 1000};
    struct seconds begin = now();
    check(mr_store_apply(s, &u, &done, &err), &err);
    return least_since(begin, best);
}

// What a step reads and writes: gradients twice, for their squares and for the update; the state;
// both streams are written.
static void count(const uint64_t *size, const struct mr_config *c, double *reads, double *writes)
{
    double elements = (double)size[MR_V_GRADIENTS] / 4;
    *reads = elements * (4 + 4 + 12);
    *writes = elements * 12 + (double)mr_store_stream_bytes(c) + (double)mr_store_turned_bytes(c);
}

static void open_on(struct mr_store **s, struct mr_volume *v, const struct mr_config *c,
                    const char *dir, int threads)
{
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    struct mr_store_options options = {.threads = threads};
    check(mr_synthetic_write(dir, c, 1, &err), &err);
    check(mr_checkpoint_open(&checkpoint, dir, MR_DECODER, NULL, &err), &err);
    check(mr_store_open_volume(s, v, c, checkpoint, &options, &err), &err);
    mr_checkpoint_close(checkpoint);
    for (size_t i = 0; i < mr_tensor_specs(c); i++)
        check(mr_store_set_unit(*s, i, -30, &err), &err);
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double x[ROUNDS])
{
    double sorted[ROUNDS];
    memcpy(sorted, x, sizeof sorted);
    qsort(sorted, ROUNDS, sizeof *sorted, rising);
    return sorted[ROUNDS / 2];
}

// What one kind of work did in each round: bytes read and written a second, by the clock and in
// processor time.
struct rates {
    double wall[ROUNDS], processor[ROUNDS];
};

static void note(struct rates *r, int round, double bytes, struct seconds s)
{
    r->wall[round] = bytes / s.wall / 1e9;
    r->processor[round] = bytes / s.processor / 1e9;
}

static void print_beside(const char *what, const struct rates *r, const struct rates *copying)
{
    struct rates share;
    for (int i = 0; i < ROUNDS; i++) {
        share.wall[i] = r->wall[i] / copying->wall[i];
        share.processor[i] = r->processor[i] / copying->processor[i];
    }
    printf("%-27s %12.1f %12.2f %20.2f\n", what, median(r->wall), median(share.wall),
           median(share.processor));
}

static void in_memory(const char *dir, double millions, int threads)
{
    struct mr_error err = {0};
    struct mr_config c = config_of(millions);
    struct mr_volume *v;
    struct mr_store *s;
    uint64_t size[MR_V_FILES];
    double reads, writes, added;
    struct rates copying, adding, updating;
    struct mr_pool *pool = mr_pool_new(threads);
    char *memory = copying_memory();
    need(pool != NULL, "memory");
    check(mr_store_sizes(&c, 0, size, &err), &err);
    check(mr_volume_memory(&v, size, &err), &err);
    open_on(&s, v, &c, dir, threads);
    count(size, &c, &reads, &writes);
    for (int round = 0; round < ROUNDS; round++) {
        struct seconds add = add_gradients(s, 2, &added);
        note(&copying, round, 4 * (double)COPIED, memcpy_seconds(pool, memory));
        note(&updating, round, reads + writes, apply(s, never));
        note(&adding, round, added, add);
    }
    mr_store_close(s);
    mr_pool_free(pool);
    free(memory);
    printf("%-27s %12s %12s %20s\n", "", "GB/s", "of memcpy", "in processor time");
    print_beside("memcpy, 4 GB", &copying, &copying);
    print_beside("adding a micro-batch", &adding, &copying);
    print_beside("update in memory (goal 0.6)", &updating, &copying);
}

// Nothing of a file stays in memory.
static void forget(const struct mr_volume *v, const char *dir, enum mr_volume_file f)
{
    struct mr_error err = {0};
    char *path = mr_path_join(dir, mr_volume_name(f), &err);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    need(fd >= 0 && fdatasync(fd) == 0 && madvise(v->data[f], v->size[f], MADV_DONTNEED) == 0 &&
             posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0,
         "giving back a file's pages");
    (void)close(fd);
    free(path);
}

static void on_disk(const char *dir, double millions, int threads)
{
    struct mr_error err = {0};
    struct mr_config c = config_of(millions);
    struct mr_volume *v;
    struct mr_store *s;
    uint64_t size[MR_V_FILES];
    double reads, writes, direct = INFINITY, added;
    struct seconds best = never;
    check(mr_store_sizes(&c, 0, size, &err), &err);
    check(mr_volume_create(&v, dir, size, &err), &err);
    open_on(&s, v, &c, dir, threads);
    count(size, &c, &reads, &writes);
    reads -= (double)size[MR_V_GRADIENTS]; // the second time they are in memory
    writes += (double)size[MR_V_GRADIENTS] - (double)size[MR_V_STREAM] - (double)size[MR_V_TURNED];
    for (int round = 0; round < DISK_ROUNDS; round++) {
        (void)add_gradients(s, 1, &added);
        forget(v, dir, MR_V_STATE);
        best = apply(s, best);
        direct = fmin(direct, direct_seconds(dir, (uint64_t)reads, (uint64_t)writes));
    }
    mr_store_close(s);
    printf("direct I/O                  %12.2f\n", (reads + writes) / direct / 1e9);
    printf("step from disk (goal 0.8)   %12.2f %12.2f of direct I/O\n",
           (reads + writes) / best.wall / 1e9, direct / best.wall);
}

// ---- the machine --------------------------------------------------------------------------------

static void print_machine(int threads)
{
    char line[256] = "", name[200] = "unknown processor";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "model name : %199[^\n]", name) == 1)
            break;
    if (f)
        (void)fclose(f);
    printf("%s, %d threads\n", name, threads);
}

static void remove_files(const char *dir)
{
    static const char *const names[] = {"config.json", "tokenizer.json", "model.safetensors",
                                        "header",      "state",          "gradients",
                                        "w.stream",    "wt.stream",      "direct"};
    struct mr_error err = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = mr_path_join(dir, names[i], &err);
        if (path)
            (void)unlink(path);
        free(path);
    }
    (void)rmdir(dir);
}

int main(int argc, char **argv)
{
    char dir[512];
    int threads = mr_pool_default();
    double memory = argc > 2 ? atof(argv[2]) : 150, disk = argc > 3 ? atof(argv[3]) : 40;
    (void)snprintf(dir, sizeof dir, "%s/millrace-store-XXXXXX", argc > 1 ? argv[1] : "/tmp");
    need(mkdtemp(dir) != NULL, dir);
    print_machine(threads);
    if (memory > 0)
        in_memory(dir, memory, threads);
    if (disk > 0)
        on_disk(dir, disk, threads);
    remove_files(dir);
    return 0;
}
