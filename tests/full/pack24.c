// SPDX-License-Identifier: Apache-2.0
// Packs a checkpoint of GPT-J-6B's size, 24.2 GB of fp32 in one pytorch_model.bin, and holds the
// packer to its bound of memory. Prints TAP through cmocka. Needs 32 GB of free disk space.
//
// With few enough layers that the checkpoint stays in the page cache it shows the rate of packing
// too, beside that of a plain read.
//
// usage: pack24 MILLRACE [DIRECTORY [LAYERS]]   (the directory: $TMPDIR or /tmp; layers: 28)
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>

#include "unit/checkpoint/archive.h"

enum { CACHED_LAYERS = 8, TIMES = 4 };
enum { EMBD = 4096, INNER = 16384, VOCAB = 50400, MAX_PARTS = 512, PART_NAME = 64 };

// Own memory of the packer, without what is mapped from files: sampled while it runs. The bound of
// all its memory, files included, is that of the largest tensor and what surrounds it.
#define MOST_OWN_BYTES ((size_t)2 << 30)

static const char *millrace;
static int layers = 28;

struct part {
    char name[PART_NAME];
    int rows, cols;
};

static struct part parts[MAX_PARTS];
static int n_parts;

static void add_part(const char *name, int layer, int rows, int cols)
{
    struct part *p = &parts[n_parts++];
    if (layer < 0)
        (void)snprintf(p->name, sizeof p->name, "%s", name);
    else
        (void)snprintf(p->name, sizeof p->name, "transformer.h.%d.%s", layer, name);
    p->rows = rows;
    p->cols = cols;
}

static void list_parts(void)
{
    add_part("transformer.wte.weight", -1, VOCAB, EMBD);
    for (int l = 0; l < layers; l++) {
        add_part("ln_1.weight", l, EMBD, 0);
        add_part("ln_1.bias", l, EMBD, 0);
        add_part("attn.k_proj.weight", l, EMBD, EMBD);
        add_part("attn.v_proj.weight", l, EMBD, EMBD);
        add_part("attn.q_proj.weight", l, EMBD, EMBD);
        add_part("attn.out_proj.weight", l, EMBD, EMBD);
        add_part("mlp.fc_in.weight", l, INNER, EMBD);
        add_part("mlp.fc_in.bias", l, INNER, 0);
        add_part("mlp.fc_out.weight", l, EMBD, INNER);
        add_part("mlp.fc_out.bias", l, EMBD, 0);
    }
    add_part("transformer.ln_f.weight", -1, EMBD, 0);
    add_part("transformer.ln_f.bias", -1, EMBD, 0);
    add_part("lm_head.weight", -1, VOCAB, EMBD);
    add_part("lm_head.bias", -1, VOCAB, 0);
}

static size_t part_count(const struct part *p)
{
    return (size_t)p->rows * (size_t)(p->cols ? p->cols : 1);
}

// xorshift32 in 16 lanes, which the compiler can put into vectors: numbers in -0.03..0.03.
__attribute__((optimize("O3"))) static void fill(float *out, size_t n, uint32_t lane[16])
{
    for (size_t i = 0; i < n; i += 16)
        for (int k = 0; k < 16; k++) {
            lane[k] ^= lane[k] << 13;
            lane[k] ^= lane[k] >> 17;
            lane[k] ^= lane[k] << 5;
            out[i + (size_t)k] = (float)(int32_t)lane[k] * 0x1p-36F;
        }
}

static void write_all(int fd, const void *data, size_t size)
{
    const char *p = data;
    while (size > 0) {
        ssize_t n = write(fd, p, size);
        if (n <= 0)
            fail_msg("cannot write the checkpoint: %s", strerror(errno));
        p += n;
        size -= (size_t)n;
    }
}

static void write_member(int fd, struct archive *a, const struct part *p, int number, float *buffer,
                         size_t buffer_floats, uint32_t lane[16])
{
    char name[32];
    size_t bytes = part_count(p) * sizeof(float);
    (void)snprintf(name, sizeof name, "model/data/%d", number);
    // A member as add_member() writes it, with its data not in memory. Where the reader looks at
    // checksums it must be right.
    bool small = part_count(p) <= buffer_floats && bytes <= 1 << 20;
    if (small)
        fill(buffer, (part_count(p) + 15) / 16 * 16, lane);
    struct member *m = add_member(a, name, buffer, small ? bytes : 0);
    write_all(fd, a->file.data, a->file.size);
    a->shift += a->file.size;
    a->file.size = 0;
    m->size = bytes;
    for (size_t left = small ? 0 : part_count(p), n; left > 0; left -= n) {
        n = left < buffer_floats ? left : buffer_floats;
        fill(buffer, (n + 15) / 16 * 16, lane);
        write_all(fd, buffer, n * sizeof *buffer);
        a->shift += n * sizeof *buffer;
    }
}

static void write_checkpoint(void)
{
    enum { FLOATS = 1 << 20 };
    static struct spec specs[MAX_PARTS];
    static struct archive a = {.zip64 = true};
    static char keys[MAX_PARTS][8];
    uint32_t lane[16];
    struct mr_buf pickle = {0};
    float *buffer = malloc(FLOATS * sizeof *buffer);
    assert_non_null(buffer);
    for (uint32_t i = 0; i < 16; i++)
        lane[i] = 2463534242U + i * 362437U;
    for (int i = 0; i < n_parts; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "%d", i);
        specs[i] = (struct spec){parts[i].name,
                                 "FloatStorage",
                                 keys[i],
                                 (int64_t)part_count(&parts[i]),
                                 0,
                                 parts[i].cols ? 2 : 1,
                                 {parts[i].rows, parts[i].cols},
                                 {parts[i].cols ? parts[i].cols : 1, 1}};
    }
    put_pickle(&pickle, specs, n_parts);
    int fd = open(files_path("pytorch_model.bin"), O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    (void)add_member(&a, "model/data.pkl", pickle.data, pickle.size);
    for (int i = 0; i < n_parts; i++)
        write_member(fd, &a, &parts[i], i, buffer, FLOATS, lane);
    (void)add_member(&a, "model/version", "3\n", 2);
    finish(&a);
    write_all(fd, a.file.data, a.file.size);
    assert_int_equal(close(fd), 0);
    free(buffer);
    mr_buf_free(&pickle);
    mr_buf_free(&a.file);
    char config[400];
    (void)snprintf(config, sizeof config,
                   "{\"model_type\":\"gptj\",\"vocab_size\":%d,\"n_positions\":2048,\"n_embd\":%d,"
                   "\"n_layer\":%d,\"n_head\":16,\"rotary_dim\":64,\"n_inner\":%d,"
                   "\"eos_token_id\":50256,\"bos_token_id\":50256}",
                   VOCAB, EMBD, layers, INNER);
    (void)files_write_text("config.json", config);
}

static int setup(void **state)
{
    list_parts();
    if (files_setup(state) != 0)
        return -1;
    uint64_t need = (uint64_t)2 << 30;
    for (int i = 0; i < n_parts; i++)
        need += (uint64_t)part_count(&parts[i]) * 4 * 13 / 10;
    struct statvfs fs;
    if (statvfs(files_dir, &fs) != 0)
        return -1;
    uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (room < need) {
        print_error(
            "# %s has room for %.1f GB, but this test needs %.1f GB; set TMPDIR to a larger "
            "disk\n",
            files_dir, (double)room / 1e9, (double)need / 1e9);
        return -1;
    }
    return 0;
}

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// A line of /proc/PID/status in bytes; 0 when it is gone.
static size_t memory_of(pid_t pid, const char *key)
{
    char path[64], line[256];
    size_t kb = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            kb = strtoul(line + strlen(key), NULL, 10);
    if (f)
        (void)fclose(f);
    return kb * 1024;
}

struct peak {
    size_t own, mapped; // bytes
    double seconds;
    int status;
};

// Runs a command and samples its memory every 5 ms: RssAnon (heap, stacks) and RssFile (mapped).
static struct peak run(const char *const argv[])
{
    struct peak p = {0};
    double start = seconds();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    while (waitpid(pid, &p.status, WNOHANG) == 0) {
        size_t own = memory_of(pid, "RssAnon:"), mapped = memory_of(pid, "RssFile:");
        p.own = own > p.own ? own : p.own;
        p.mapped = mapped > p.mapped ? mapped : p.mapped;
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    p.seconds = seconds() - start;
    return p;
}

static void packs_24_gb_in_bounded_memory(void **state)
{
    (void)state;
    double start = seconds();
    write_checkpoint();
    struct stat st;
    assert_int_equal(stat(files_path("pytorch_model.bin"), &st), 0);
    print_message("# checkpoint of %.2f GB written in %.0f s\n", (double)st.st_size / 1e9,
                  seconds() - start);
    const char *packed = files_path("packed.mill");
    const char *const pack[] = {millrace, "pack", files_dir, packed, NULL};
    struct peak p = run(pack);
    assert_int_equal(p.status, 0);
    print_message("# packed in %.1f s, %.2f GB/s; peak of own memory %.1f MB, mapped %.1f MB\n",
                  p.seconds, (double)st.st_size / p.seconds / 1e9, (double)p.own / 1e6,
                  (double)p.mapped / 1e6);
    assert_true(p.own > 0);
    assert_true(p.own < MOST_OWN_BYTES);
    assert_true(p.own + p.mapped < MOST_OWN_BYTES);
}

// Into the page cache.
static void read_whole(const char *path)
{
    static char buffer[1 << 20];
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    while (read(fd, buffer, sizeof buffer) > 0)
        ;
    assert_int_equal(close(fd), 0);
}

// For the best of several runs. Not asserted: a rate says as much about the machine.
static void shows_the_rate_from_the_page_cache(void **state)
{
    (void)state;
    const char *again = files_path("again.mill"), *checkpoint = files_path("pytorch_model.bin");
    const char *const pack[] = {millrace, "pack", files_dir, again, "--stats", NULL};
    for (int i = 0; i < TIMES; i++) {
        read_whole(checkpoint);
        assert_int_equal(run(pack).status, 0);
    }
}

// "opened in": the time to the first command of the device, all checksums compared.
static void shows_the_time_to_open_it(void **state)
{
    (void)state;
    const char *packed = files_path("packed.mill");
    const char *const bench[] = {millrace, "bench", packed, "-d", "model:", NULL};
    for (int i = 0; i < TIMES; i++) {
        read_whole(packed);
        assert_int_equal(run(bench).status, 0);
    }
}

static void opens_and_verifies_it(void **state)
{
    (void)state;
    const char *packed = files_path("packed.mill");
    const char *const info[] = {millrace, "info", packed, NULL};
    const char *const verify[] = {millrace, "info", packed, "--verify", NULL};
    struct peak a = run(info), b = run(verify);
    assert_int_equal(a.status, 0);
    assert_int_equal(b.status, 0);
    print_message("# opened in %.2f s, with --verify in %.2f s\n", a.seconds, b.seconds);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest whole[] = {
        cmocka_unit_test(packs_24_gb_in_bounded_memory),
        cmocka_unit_test(opens_and_verifies_it),
        cmocka_unit_test(shows_the_time_to_open_it),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_24_gb_in_bounded_memory),
        cmocka_unit_test(opens_and_verifies_it),
        cmocka_unit_test(shows_the_time_to_open_it),
        cmocka_unit_test(shows_the_rate_from_the_page_cache),
    };
    if (argc < 2)
        return 2;
    millrace = argv[1];
    if (argc > 2)
        (void)setenv("TMPDIR", argv[2], 1);
    if (argc > 3)
        layers = atoi(argv[3]);
    if (layers > CACHED_LAYERS) // the page cache does not hold it
        return cmocka_run_group_tests_name("pack24", whole, setup, files_teardown);
    return cmocka_run_group_tests_name("pack24", tests, setup, files_teardown);
}
