// SPDX-License-Identifier: Apache-2.0
// The packed format, version 1: a file that was written when it was frozen is read, written again
// bit for bit, and no byte of it can be wrong unnoticed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "checkpoint/synthetic.h"
#include "pack/packed.h"
#include "unit/check.h"
#include "unit/files.h"

// mr_synthetic_write() of `golden` with seed 1, packed as MXINT8 with smoothing. To be made again
// with a new version of the format only: UPDATE_GOLDEN=1 writes it.
#define GOLDEN "tests/fixtures/packed/v1.mill"

static const struct mr_config golden = {.vocab_size = 260,
                                        .n_positions = 16,
                                        .n_embd = 16,
                                        .n_layer = 1,
                                        .n_head = 1,
                                        .rotary_dim = 4,
                                        .n_inner = 24,
                                        .eos_token_id = 256};

static const struct mr_pack_options all, few = {.describe = true},
                                         described = {.describe = true, .verify = true};

static void remove_checkpoint(void)
{
    static const char *const names[] = {"config.json", "tokenizer.json", "model.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)remove(files_path(names[i]));
}

static void pack(const struct mr_config *c, enum mr_format format, const char *name)
{
    struct mr_error err = {0};
    struct mr_pack_result result;
    const struct mr_pack_options opt = {.format = format, .smooth = true};
    check(mr_synthetic_write(files_dir, c, 1, &err), &err);
    check(mr_pack_file(files_dir, files_path(name), &opt, &result, &err), &err);
    remove_checkpoint();
}

static void golden_file_is_written_again(void **state)
{
    (void)state;
    size_t size, expected_size;
    pack(&golden, MR_FORMAT_MXINT8, "g.mill");
    char *made = files_read(files_path("g.mill"), &size);
    if (getenv("UPDATE_GOLDEN")) {
        FILE *f = fopen(GOLDEN, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(made, 1, size, f), size);
        assert_int_equal(fclose(f), 0);
    }
    char *expected = files_read(GOLDEN, &expected_size);
    assert_int_equal(size, expected_size);
    assert_memory_equal(made, expected, size);
    free(made);
    free(expected);
}

static uint64_t number(const char *data, size_t at, size_t bytes)
{
    uint64_t v = 0;
    memcpy(&v, data + at, bytes);
    return v;
}

// The numbers of docs/use/packed-file.md, looked up in the file by hand.
static void golden_file_is_what_the_document_says(void **state)
{
    (void)state;
    size_t size;
    char *d = files_read(GOLDEN, &size);
    assert_memory_equal(d, "MILLRACE", 8);
    assert_int_equal(number(d, 8, 4), 1);
    assert_int_equal(number(d, 12, 4), 4096);
    assert_int_equal(number(d, 16, 4), 0);
    assert_int_equal(number(d, 20, 4), 1);
    assert_int_equal(number(d, 24, 4), 5);
    assert_int_equal(number(d, 32, 8), size);
    uint64_t end = 4096, hash = number(d, 40, 8);
    memset(d + 40, 0, 8);
    assert_true(XXH3_64bits(d, 4096) == hash);
    for (size_t i = 0; i < 5; i++) {
        size_t entry = 64 + 64 * i;
        uint64_t offset = number(d, entry + 8, 8), bytes = number(d, entry + 16, 8);
        assert_int_equal(number(d, entry, 4), i + 1);
        assert_int_equal(offset, (end + 4095) / 4096 * 4096);
        hash = number(d, entry + 24, 8);
        assert_true(hash == (i < 3 ? XXH3_64bits(d + offset, bytes) : 0));
        end = offset + bytes;
    }
    assert_int_equal(end, size);
    // embedding, then LN, q, k, v, fc_in, fc_out, out, ln_f, head
    static const uint32_t ids[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                          layers[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1};
    uint64_t table = number(d, 64 + 128 + 8, 8), at = number(d, 64 + 256 + 8, 8);
    assert_int_equal(number(d, 64 + 128 + 16, 8), 10 * 32);
    assert_int_equal(number(d, 64 + 192 + 4, 4), 2); // bf16
    assert_int_equal(number(d, 64 + 192 + 16, 8), 260 * 16 * 2);
    for (size_t i = 0; i < 10; i++) {
        size_t entry = (size_t)table + 32 * i;
        uint64_t offset = number(d, entry + 8, 8), bytes = number(d, entry + 16, 8);
        assert_int_equal(number(d, entry, 4), ids[i]);
        assert_int_equal(number(d, entry + 4, 4), layers[i]);
        assert_int_equal(offset, i ? at : number(d, 64 + 192 + 8, 8));
        assert_true(XXH3_64bits(d + offset, bytes) == number(d, entry + 24, 8));
        at += i ? bytes : 0;
    }
    assert_int_equal(at, size);
    free(d);
}

static void golden_file_opens(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed p;
    struct mr_tokens tokens = {0};
    check(mr_packed_open(&p, GOLDEN, &all, &err), &err);
    assert_int_equal(p.config.n_embd, 16);
    assert_true(p.smooth && !p.calibrated);
    assert_non_null(p.tokenizer);
    check(mr_tokenizer_encode(p.tokenizer, "Ab", 2, MR_SPECIAL_AS_TEXT, &tokens, &err), &err);
    assert_int_equal(tokens.count, 2);
    assert_int_equal(tokens.ids[0], 'A');
    mr_tokens_free(&tokens);
    mr_packed_close(&p);
}

static void flip(int fd, off_t at, int bit)
{
    unsigned char byte;
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= (unsigned char)(1 << bit);
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

// Each byte in turn, in place: header, texts, list, padding, weights.
static void refuses_a_flipped_bit_anywhere(void **state)
{
    (void)state;
    size_t size;
    char *data = files_read(GOLDEN, &size);
    const char *path = files_write("f.mill", data, size);
    free(data);
    (void)setenv("MILLRACE_THREADS", "1", 1);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    for (size_t at = 0; at < size; at++) {
        struct mr_error err = {0};
        struct mr_packed p;
        int bit = (int)(at * 5 % 8);
        flip(fd, (off_t)at, bit);
        int rc = mr_packed_open(&p, path, &all, &err);
        if (rc == 0)
            fail_msg("bit %d of byte %zu flipped is accepted", bit, at);
        assert_refused(rc, err.status, &err, path);
        flip(fd, (off_t)at, bit);
    }
    assert_int_equal(close(fd), 0);
    (void)unsetenv("MILLRACE_THREADS");
}

static const struct mr_config large = {.vocab_size = 64,
                                       .n_positions = 16,
                                       .n_embd = 1088,
                                       .n_layer = 1,
                                       .n_head = 17,
                                       .rotary_dim = 4,
                                       .n_inner = 4352,
                                       .eos_token_id = -1};

// Tensors beyond 1 MiB are read unless the model is only to be described without `verify`.
static void finds_a_flipped_bit_in_bulk_weights(void **state)
{
    (void)state;
    static const struct {
        size_t item;
        const char *words;
    } cases[] = {{2, "attn.q_proj is damaged"},
                 {4, "attn.v_proj is damaged"},
                 {5, "mlp.fc_in is damaged"}, // more than 4 MiB, checked in steps
                 {7, "attn.out_proj is damaged"}};
    pack(&large, MR_FORMAT_MXINT8, "l.mill");
    size_t size;
    char *d = files_read(files_path("l.mill"), &size);
    uint64_t table = number(d, 64 + 128 + 8, 8);
    int fd = open(files_path("l.mill"), O_RDWR);
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t offset = number(d, table + 32 * cases[i].item + 8, 8);
        uint64_t bytes = number(d, table + 32 * cases[i].item + 16, 8);
        assert_true(bytes > 1 << 20);
        for (size_t k = 0; k < 5; k++) {
            off_t at = (off_t)(offset + (bytes - 1) * k / 4);
            struct mr_error err = {0};
            struct mr_packed p;
            flip(fd, at, 3);
            check(mr_packed_open(&p, files_path("l.mill"), &few, &err), &err);
            mr_packed_close(&p);
            assert_refused(mr_packed_open(&p, files_path("l.mill"), &all, &err), MR_ERR_FORMAT,
                           &err, cases[i].words);
            assert_refused(mr_packed_open(&p, files_path("l.mill"), &described, &err),
                           MR_ERR_FORMAT, &err, cases[i].words);
            flip(fd, at, 3);
        }
    }
    struct mr_error err = {0};
    struct mr_packed p;
    check(mr_packed_open(&p, files_path("l.mill"), &all, &err), &err);
    mr_packed_close(&p);
    assert_int_equal(close(fd), 0);
    free(d);
}

struct watch {
    int calls, stop_at;
    size_t done, total;
};

static int watch(void *arg, size_t done, size_t total)
{
    struct watch *w = arg;
    assert_true(done <= total);
    w->done = done;
    w->total = total;
    return ++w->calls == w->stop_at;
}

// A large file on a slow disk takes its time: it is shown, and can be interrupted at every step.
static void checking_shows_progress_and_can_be_interrupted(void **state)
{
    (void)state;
    struct watch w = {0};
    struct mr_error err = {0};
    struct mr_packed p;
    const struct mr_pack_options opt = {.progress = watch, .arg = &w};
    (void)setenv("MILLRACE_THREADS", "1", 1);
    check(mr_packed_open(&p, files_path("l.mill"), &opt, &err), &err);
    assert_int_equal(w.total, p.list.bytes + p.embedding.bytes);
    assert_int_equal(w.done, w.total);
    assert_true(w.calls > 10);
    mr_packed_close(&p);
    for (int last = w.calls, at = 1; at <= last; at++) {
        w = (struct watch){.stop_at = at};
        assert_refused(mr_packed_open(&p, files_path("l.mill"), &opt, &err), MR_ERR_INTERRUPTED,
                       &err, "interrupted");
        assert_int_equal(w.calls, at);
    }
    (void)unsetenv("MILLRACE_THREADS");
}

static int cut(void *arg, size_t done, size_t total)
{
    (void)done;
    (void)total;
    assert_int_equal(truncate(arg, 8192), 0);
    return 0;
}

// Where a fault on a page of the mapping would be SIGBUS: here the file is cut under the check, on
// a broken disk it is the same.
static void file_that_cannot_be_read_to_its_end_is_refused(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed p;
    char *path = strdup(files_path("l.mill"));
    const struct mr_pack_options opt = {.progress = cut, .arg = path};
    unsigned char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    bool known = madvise(page, 4096, MADV_POPULATE_READ) == 0; // since Linux 5.14
    (void)munmap(page, 4096);
    (void)setenv("MILLRACE_THREADS", "1", 1);
    if (known)
        assert_refused(mr_packed_open(&p, path, &opt, &err), MR_ERR_IO, &err, "cannot be read");
    (void)unsetenv("MILLRACE_THREADS");
    free(path);
    if (!known)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_file_is_written_again),
        cmocka_unit_test(golden_file_is_what_the_document_says),
        cmocka_unit_test(golden_file_opens),
        cmocka_unit_test(refuses_a_flipped_bit_anywhere),
        cmocka_unit_test(finds_a_flipped_bit_in_bulk_weights),
        cmocka_unit_test(checking_shows_progress_and_can_be_interrupted),
        cmocka_unit_test(file_that_cannot_be_read_to_its_end_is_refused), // the last: cuts the file
    };
    return cmocka_run_group_tests_name("packed_file", tests, files_setup, files_teardown);
}
