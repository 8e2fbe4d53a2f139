// SPDX-License-Identifier: Apache-2.0
// The directory of a store: layout, import and export, and what is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "checkpoint/synthetic.h"
#include "checkpoint/tensor.h"
#include "cmodel/num.h"
#include "pack/hash.h"
#include "pack/layout.h"
#include "reference/params.h"
#include "store/header.h"
#include "unit/store_dirs.h"

static const struct mr_store_options one = {.threads = 1};

// ---- layout -------------------------------------------------------------------------------------

// Every weight has one place; the tiles are those of GRAD; patches follow one another.
static void check_layout(const struct mr_config *c)
{
    struct mr_error err = {0};
    struct mr_store_layout l;
    check(mr_store_layout_make(&l, c, &err), &err);
    uint64_t at = 0;
    size_t first = 0;
    for (size_t i = 0; i < l.patches; i++) {
        assert_int_equal(l.patch[i].at, at);
        assert_int_equal(l.patch[i].first, first);
        at += l.patch[i].bytes;
        first += l.patch[i].count;
    }
    assert_int_equal(at, l.bytes);
    assert_int_equal(first, l.elements);
    for (size_t i = 0; i < l.tensors; i++) {
        const struct mr_store_tensor *t = &l.tensor[i];
        size_t n = (size_t)t->outputs * (size_t)t->inputs, found = 0;
        assert_true(t->rows <= t->cols || t->vector);
        uint8_t *seen = allocate(n, 1);
        for (size_t k = t->patch; k < t->patch + t->patches; k++)
            for (size_t e = 0; e < l.patch[k].count; e++) {
                size_t where = mr_store_natural(t, &l.patch[k], e);
                if (where == SIZE_MAX)
                    continue;
                assert_true(where < n && !seen[where]);
                seen[where] = 1;
                found++;
            }
        assert_int_equal(found, n);
        bool table = !t->vector && t->output_head == 0 && t->input_head == 0;
        for (size_t where = 0; table && where < n; where++) {
            struct mr_store_spot spot =
                mr_store_spot(t, (int)where / t->inputs, (int)where % t->inputs);
            size_t e = spot.tile * MR_TILE + spot.element;
            assert_true(spot.patch >= t->patch && spot.patch < t->patch + t->patches);
            assert_int_equal(mr_store_natural(t, &l.patch[spot.patch], e), where);
        }
        for (size_t k = 0; !t->vector && k < mr_store_tiles(t); k++) {
            size_t patch, inner;
            mr_store_tile(t, k, &patch, &inner);
            const struct mr_store_patch *p = &l.patch[t->patch + patch];
            int wide = p->cols / MR_TILE_COLS;
            assert_int_equal(p->tensor, i);
            assert_int_equal(p->row / MR_TILE_ROWS + (int)inner / wide,
                             (int)k / (t->cols / MR_TILE_COLS));
            assert_int_equal(p->col / MR_TILE_COLS + (int)inner % wide,
                             (int)k % (t->cols / MR_TILE_COLS));
        }
        free(seen);
    }
    mr_store_layout_free(&l);
}

static void every_weight_has_one_place(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_config c = {.vocab_size = 700,
                          .n_positions = 8,
                          .n_embd = 576,
                          .n_layer = 1,
                          .n_head = 4,
                          .head_dim = 144,
                          .rotary_dim = 4,
                          .n_inner = 65};
    check_layout(&c);
    check(toy_register(&err), &err);
    c.arch = mr_arch_find("toy");
    c.rotary_dim = 0;
    check_layout(&c);
}

// ---- directories --------------------------------------------------------------------------------

static void same_weights(const struct mr_checkpoint *a, const struct mr_checkpoint *b,
                         enum mr_dtype dtype)
{
    assert_int_equal(mr_checkpoint_count(a), mr_checkpoint_count(b));
    for (size_t i = 0; i < mr_checkpoint_count(a); i++) {
        const struct mr_tensor *x = mr_checkpoint_at(a, i), *y = mr_checkpoint_at(b, i);
        float *u = allocate(x->count, sizeof *u), *v = allocate(x->count, sizeof *v);
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->count, y->count);
        assert_int_equal(y->dtype, dtype);
        read_tensor(x, u);
        read_tensor(y, v);
        assert_memory_equal(u, v, x->count * sizeof *u);
        free(u);
        free(v);
    }
}

// A checkpoint becomes a state, is exported in each type, and these are imported and exported
// again.
static void round_trip(const char *from, enum mr_dtype dtype)
{
    struct mr_error err = {0};
    struct mr_store *s;
    struct mr_checkpoint *was, *now;
    char first[512], state[512];
    (void)snprintf(first, sizeof first, "%s", files_path("first"));
    (void)snprintf(state, sizeof state, "%s", files_path("state"));
    check(mr_store_create(state, from, &one, &err), &err);
    check(mr_store_open(&s, state, &one, &err), &err);
    check(mr_store_export(s, first, dtype, NULL, &err), &err);
    check(mr_checkpoint_open(&was, from, MR_DECODER, NULL, &err), &err);
    struct mr_params p;
    check(mr_params_new(&p, mr_store_config(s), &err), &err);
    check(mr_params_read(&p, was, &err), &err);
    for (size_t i = 0; i < p.count; i++) { // what was imported, and moments of zero
        float *x = allocate(mr_params_size(&p, i), sizeof *x);
        mr_store_read(s, i, MR_MASTER, x);
        assert_memory_equal(x, mr_params_at(&p, i), mr_params_size(&p, i) * sizeof *x);
        for (int part = MR_MEAN; part <= MR_SQUARE; part++) {
            mr_store_read(s, i, (enum mr_store_part)part, x);
            for (size_t k = 0; k < mr_params_size(&p, i); k++)
                assert_true(mr_bits(x[k]) == 0);
        }
        free(x);
    }
    mr_params_free(&p);
    mr_store_close(s);
    remove_dir(state);
    if (dtype == MR_DTYPE_F32) {
        check(mr_checkpoint_open(&now, first, MR_DECODER, NULL, &err), &err);
        same_weights(was, now, dtype);
        mr_checkpoint_close(now);
    }
    mr_checkpoint_close(was);

    check(mr_store_create(state, first, &one, &err), &err);
    check(mr_store_open(&s, state, &one, &err), &err);
    check(mr_store_export(s, files_path("second"), dtype, NULL, &err), &err);
    mr_store_close(s);
    check(mr_checkpoint_open(&was, first, MR_DECODER, NULL, &err), &err);
    check(mr_checkpoint_open(&now, files_path("second"), MR_DECODER, NULL, &err), &err);
    same_weights(was, now, dtype);
    mr_checkpoint_close(was);
    mr_checkpoint_close(now);
    remove_dir(state);
    remove_dir(first);
    remove_dir(files_path("second"));
}

static void imports_and_exports_give_the_same_weights(void **state)
{
    (void)state;
    static const enum mr_dtype dtypes[] = {MR_DTYPE_F32, MR_DTYPE_BF16, MR_DTYPE_F16};
    struct mr_error err = {0};
    check(toy_register(&err), &err);
    for (size_t i = 0; i < 3; i++) {
        round_trip(TRAIN_FIXTURES "/gptj-d12-r4", dtypes[i]);
        round_trip(TRAIN_FIXTURES "/toy-d10", dtypes[i]);
    }
    round_trip("tests/fixtures/gptj/fp16-d48-r16-buffers", MR_DTYPE_F16);
    round_trip("tests/fixtures/gpt2/bf16-d24", MR_DTYPE_BF16);
    round_trip("tests/fixtures/gpt2/bf16-d24", MR_DTYPE_F32);
}

static void configuration_and_tokenizer_are_carried_along(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store *s;
    size_t was, is;
    check(mr_store_create(files_path("state"), "models/demo", &one, &err), &err);
    check(mr_store_open(&s, files_path("state"), &one, &err), &err);
    check(mr_store_export(s, files_path("out"), MR_DTYPE_BF16, NULL, &err), &err);
    char *a = files_read("models/demo/tokenizer.json", &was);
    char *b = files_read(files_path("out/tokenizer.json"), &is);
    assert_int_equal(was, is);
    assert_memory_equal(a, b, was);
    free(a);
    free(b);
    b = files_read(files_path("out/config.json"), &is);
    assert_non_null(strstr(b, "\"dtype\": \"bfloat16\""));
    assert_null(strstr(b, "torch_dtype"));
    free(b);
    mr_store_close(s);
    remove_dir(files_path("state"));
    remove_dir(files_path("out"));
}

// All of fp16 and of bf16, what lies between two of them, and the halves.
static void narrowing_is_to_the_nearest_and_ties_to_even(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        enum mr_dtype dtype = k ? MR_DTYPE_BF16 : MR_DTYPE_F16;
        unsigned infinity = k ? 0x7F80 : 0x7C00;
        for (unsigned u = 0; u < infinity; u++) {
            uint16_t pair[2] = {(uint16_t)u, (uint16_t)(u + 1)}, got;
            float value[2];
            struct mr_tensor t = {.dtype = dtype, .rank = 1, .shape = {2}, .count = 2, .bytes = 4};
            t.data = (const unsigned char *)pair;
            read_tensor(&t, value);
            if (u + 1 == infinity)
                value[1] = k ? INFINITY : 65536.0F;
            double half =
                u + 1 == infinity && k ? 0x1.ffp127 : ((double)value[0] + (double)value[1]) / 2;
            float tie = (float)half; // exact
            const struct {
                float in;
                unsigned out;
            } cases[] = {{value[0], u},
                         {tie, u + (u & 1)},
                         {nextafterf(tie, 0), u},
                         {nextafterf(tie, INFINITY), u + 1}};
            for (size_t c = 0; c < 4; c++) {
                size_t done = mr_narrow(dtype, &cases[c].in, 1, &got);
                assert_int_equal(got, cases[c].out);
                assert_int_equal(done, cases[c].out < infinity);
                float minus = -cases[c].in;
                (void)mr_narrow(dtype, &minus, 1, &got);
                assert_int_equal(got, cases[c].out | 0x8000);
            }
        }
    }
}

// ---- what is refused ----------------------------------------------------------------------------

static char small[512];

static void make_state(void)
{
    struct mr_error err = {0};
    (void)snprintf(small, sizeof small, "%s", files_path("state"));
    check(mr_store_create(small, TRAIN_FIXTURES "/gptj-d12-r4", &one, &err), &err);
}

static void refuse_open(int status, const char *words)
{
    struct mr_error err = {0};
    struct mr_store *s;
    assert_refused(mr_store_open(&s, small, &one, &err), status, &err, words);
    assert_null(s);
}

static void still_opens(void)
{
    struct mr_error err = {0};
    struct mr_store *s;
    check(mr_store_open(&s, small, &one, &err), &err);
    mr_store_close(s);
}

static const char *in_state(const char *name)
{
    static char path[600];
    (void)snprintf(path, sizeof path, "%s/%s", small, name);
    return path;
}

static void flip(const char *name, size_t at, int bit)
{
    int fd = open(in_state(name), O_RDWR);
    unsigned char c;
    assert_true(fd >= 0 && pread(fd, &c, 1, (off_t)at) == 1);
    c ^= (unsigned char)(1 << bit);
    assert_int_equal(pwrite(fd, &c, 1, (off_t)at), 1);
    assert_int_equal(close(fd), 0);
}

// A bit of every patch, and of both slots of the header: one of which is enough.
static void refuses_a_flipped_bit(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_config config;
    struct mr_store_layout l;
    make_state();
    check(mr_config_load(&config, in_state("config.json"), MR_DECODER, &err), &err);
    check(mr_store_layout_make(&l, &config, &err), &err);
    for (size_t i = 0; i < l.patches; i++)
        for (int k = 0; k < 4; k++) { // weights, moments, padding, seal
            size_t at[] = {7 * i % l.patch[i].count, 4 * l.patch[i].count + 5,
                           l.patch[i].count * 12 - 1, l.patch[i].bytes - 1 - 5 * (i % 12)};
            flip("state", l.patch[i].at + at[k], (int)(i % 8));
            refuse_open(MR_ERR_FORMAT, "is damaged (checksum)");
            flip("state", l.patch[i].at + at[k], (int)(i % 8));
        }
    size_t slot = mr_store_slot_bytes(&l);
    for (size_t at = 16; at < slot; at += 61) {
        flip("header", at, 3); // the newer one has an older beside it that says the same
        still_opens();
        flip("header", slot + at, 3);
        refuse_open(MR_ERR_FORMAT, "header is damaged (checksum)");
        flip("header", slot + at, 3);
        flip("header", at, 3);
    }
    flip("header", 0, 3); // both slots: any file of that name
    flip("header", slot, 3);
    refuse_open(MR_ERR_FORMAT, "has no header of a training's state");
    flip("header", slot, 3);
    flip("header", 0, 3);
    flip("config.json", 1, 0);
    refuse_open(MR_ERR_FORMAT, "config.json");
    flip("config.json", 1, 1); // a tab for the end of a line: the same configuration
    refuse_open(MR_ERR_FORMAT, "config.json: is not the file that the state was made with");
    flip("config.json", 1, 0);
    flip("config.json", 1, 1);
    size_t n;
    free(files_read(in_state("config.json"), &n));
    FILE *f = fopen(in_state("config.json"), "ab"); // a line more: likewise
    assert_true(f && fputc('\n', f) == '\n' && fclose(f) == 0);
    refuse_open(MR_ERR_FORMAT, "config.json: is not the file that the state was made with");
    assert_int_equal(truncate(in_state("config.json"), (off_t)n), 0);
    still_opens();
    mr_store_layout_free(&l);
    remove_dir(small);
}

static void refuses_missing_and_short_files(void **state)
{
    (void)state;
    static const char *const names[] = {"header", "state", "gradients"};
    make_state();
    for (size_t i = 0; i < 3; i++) {
        char away[600];
        struct stat st;
        (void)snprintf(away, sizeof away, "%s", in_state("away"));
        assert_int_equal(rename(in_state(names[i]), away), 0);
        refuse_open(MR_ERR_IO, names[i]);
        assert_int_equal(rename(away, in_state(names[i])), 0);
        assert_int_equal(stat(in_state(names[i]), &st), 0);
        if (i != 1) // cut and filled up again: zeros, in the header a slot is lost
            assert_int_equal(truncate(in_state(names[i]), st.st_size - 1), 0);
        else
            assert_int_equal(truncate(in_state(names[i]), st.st_size + 1), 0);
        refuse_open(MR_ERR_FORMAT, i ? "bytes, its header says" : "another size");
        assert_int_equal(truncate(in_state(names[i]), st.st_size), 0);
    }
    still_opens();
    assert_int_equal(truncate(in_state("state"), 0), 0);
    refuse_open(MR_ERR_FORMAT, "is empty");
    remove_dir(small);
}

static void limit_files(rlim_t size, struct rlimit *was)
{
    assert_int_equal(getrlimit(RLIMIT_FSIZE, was), 0);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    const struct rlimit limit = {size, was->rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

// Missing, empty, too short, too long: what stood there does not matter, and the bytes are those of
// a new state.
static void streams_are_made_anew(void **state)
{
    (void)state;
    static const char *const names[] = {"w.stream", "wt.stream"};
    struct rlimit was;
    make_state();
    still_opens();
    for (size_t i = 0; i < 2; i++) {
        char path[600];
        size_t n, now;
        (void)snprintf(path, sizeof path, "%s", in_state(names[i]));
        char *want = files_read(path, &n), *junk = allocate(1, n + 64);
        memset(junk, 0x5A, n + 64);
        const size_t sizes[] = {0, n - 64, n + 64, 0};
        for (size_t k = 0; k < 4; k++) {
            assert_int_equal(unlink(path), 0);
            if (k < 3) {
                FILE *f = fopen(path, "wb");
                assert_true(f && fwrite(junk, 1, sizes[k], f) == sizes[k] && fclose(f) == 0);
            }
            limit_files(n / 2, &was);
            refuse_open(MR_ERR_IO, names[i]);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
            still_opens();
            char *got = files_read(path, &now);
            assert_int_equal(now, n);
            assert_memory_equal(got, want, n);
            free(got);
        }
        assert_true(unlink(path) == 0 && mkdir(path, 0700) == 0);
        refuse_open(MR_ERR_IO, "Is a directory");
        assert_int_equal(rmdir(path), 0);
        still_opens();
        free(want);
        free(junk);
    }
    remove_dir(small);
}

// A file with holes (a sparse copy) gets its room when it is opened: what is written through a map
// finds no other way to say that the disk is full than a signal.
static void holes_are_filled(void **state)
{
    (void)state;
    static const char *const names[] = {"gradients", "w.stream", "wt.stream"};
    make_state();
    still_opens();
    for (size_t i = 0; i < 3; i++) {
        struct stat was, now;
        assert_int_equal(stat(in_state(names[i]), &was), 0);
        assert_int_equal(truncate(in_state(names[i]), 0), 0);
        assert_int_equal(truncate(in_state(names[i]), was.st_size), 0);
        still_opens();
        assert_int_equal(stat(in_state(names[i]), &now), 0);
        assert_true(now.st_blocks >= was.st_blocks);
    }
    remove_dir(small);
}

static void refuses_the_state_of_another_model_or_version(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store *s;
    struct mr_config other;
    char copy[600];
    size_t n;
    make_state();
    check(mr_config_load(&other, TRAIN_FIXTURES "/gptj-d6-r6-long/config.json", MR_DECODER, &err),
          &err);
    struct mr_store_options options = {.threads = 1, .expected = &other};
    assert_refused(mr_store_open(&s, small, &options, &err), MR_ERR_FIT, &err, "of another model");
    // The configuration of another model, with as many tensors of other sizes.
    (void)snprintf(copy, sizeof copy, "%s", in_state("config.json"));
    char *was = files_read(copy, &n), *size = strstr(was, "\"n_positions\"");
    assert_non_null(size);
    size[16]++; // a digit
    FILE *f = fopen(copy, "wb");
    assert_true(f && fwrite(was, 1, n, f) == n && fclose(f) == 0);
    refuse_open(MR_ERR_FIT, "is the state of another model");
    size[16]--;
    f = fopen(copy, "wb");
    assert_true(f && fwrite(was, 1, n, f) == n && fclose(f) == 0);
    still_opens();
    free(was);
    flip("header", 8, 2); // both slots
    struct stat st;
    assert_int_equal(stat(in_state("header"), &st), 0);
    flip("header", (size_t)st.st_size / 2 + 8, 2);
    refuse_open(MR_ERR_UNSUPPORTED, "has version 7 of the format, this program reads 1 to 5");
    remove_dir(small);
}

// A patch of another place, or of the same place in the state of another model.
static void refuses_patches_of_another_place(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_config config;
    struct mr_store_layout l;
    unsigned char *patch;
    make_state();
    check(mr_config_load(&config, in_state("config.json"), MR_DECODER, &err), &err);
    check(mr_store_layout_make(&l, &config, &err), &err);
    size_t a = 0, b = 1;
    while (l.patch[a].bytes != l.patch[b].bytes)
        b++;
    size_t size = l.patch[a].bytes;
    patch = allocate(1, size);
    int fd = open(in_state("state"), O_RDWR);
    assert_true(fd >= 0);
    ssize_t bytes = (ssize_t)size;
    assert_int_equal(pread(fd, patch, size, (off_t)l.patch[b].at), bytes);
    struct mr_store_seal seal;
    memcpy(&seal, patch + size - sizeof seal, sizeof seal);
    seal.model++;
    memcpy(patch + size - sizeof seal, &seal, sizeof seal);
    seal.hash = XXH3_64bits(patch, size - sizeof seal.hash);
    memcpy(patch + size - sizeof seal.hash, &seal.hash, sizeof seal.hash);
    assert_int_equal(pwrite(fd, patch, size, (off_t)l.patch[b].at), bytes);
    refuse_open(MR_ERR_FORMAT, "is of another state");
    assert_int_equal(pread(fd, patch, size, (off_t)l.patch[a].at), bytes);
    assert_int_equal(pwrite(fd, patch, size, (off_t)l.patch[b].at), bytes);
    assert_int_equal(close(fd), 0);
    refuse_open(MR_ERR_FORMAT, "is of another state");
    free(patch);
    mr_store_layout_free(&l);
    remove_dir(small);
}

static void refuses_a_second_process(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store *s;
    make_state();
    check(mr_store_open(&s, small, &one, &err), &err);
    refuse_open(MR_ERR_IO, "is in use by another process");
    mr_store_close(s);
    still_opens();
    remove_dir(small);
}

static void refuses_what_is_no_state(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store *s;
    (void)snprintf(small, sizeof small, "%s", TRAIN_FIXTURES "/gptj-d12-r4");
    refuse_open(MR_ERR_IO, "is this the directory of a training's state");
    (void)snprintf(small, sizeof small, "%s", files_path("none"));
    refuse_open(MR_ERR_IO, "No such file");
    make_state();
    assert_refused(mr_store_create(small, TRAIN_FIXTURES "/gptj-d12-r4", &one, &err), MR_ERR_IO,
                   &err, "is not empty");
    check(mr_store_open(&s, small, &one, &err), &err);
    assert_refused(mr_store_export(s, small, MR_DTYPE_F32, NULL, &err), MR_ERR_IO, &err,
                   "is not empty");
    assert_refused(mr_store_export(s, files_path("x"), MR_DTYPE_I32, NULL, &err), MR_ERR_USAGE,
                   &err, "as fp32, bf16 or fp16");
    mr_store_close(s);
    remove_dir(small);
}

// A disk that is full at any size, while a state is made and while it is exported.
static void a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store *s;
    struct rlimit was;
    int before = entries();
    volatile sig_atomic_t stop = 1;
    struct mr_store_options options = {.threads = 1, .stop = &stop};
    assert_refused(
        mr_store_create(files_path("state"), TRAIN_FIXTURES "/gptj-d12-r4", &options, &err),
        MR_ERR_INTERRUPTED, &err, "interrupted");
    assert_int_equal(entries(), before);
    for (rlim_t size = 0; size < 400000; size += 40009) {
        limit_files(size, &was);
        int rc = mr_store_create(files_path("state"), TRAIN_FIXTURES "/gptj-d12-r4", &one, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
        assert_refused(rc, MR_ERR_IO, &err, "File too large");
        assert_int_equal(entries(), before);
    }
    make_state();
    check(mr_store_open(&s, small, &one, &err), &err);
    for (rlim_t size = 0; size < 16000; size += 1009) {
        limit_files(size, &was);
        int rc = mr_store_export(s, files_path("out"), MR_DTYPE_F32, NULL, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
        assert_refused(rc, MR_ERR_IO, &err, "cannot write");
        assert_int_equal(entries(), before + 1);
    }
    mr_store_close(s);
    remove_dir(small);
}

// A copy of a checkpoint with one weight changed.
static void poison(const char *to, float value)
{
    static const char *const names[] = {"config.json", "model.safetensors"};
    assert_int_equal(mkdir(to, 0700), 0);
    for (int i = 0; i < 2; i++) {
        char path[600];
        size_t n;
        (void)snprintf(path, sizeof path, TRAIN_FIXTURES "/gptj-d12-r4/%s", names[i]);
        char *data = files_read(path, &n);
        if (i == 1)
            memcpy(data + n - 4, &value, sizeof value); // the last of the last tensor
        (void)snprintf(path, sizeof path, "%s/%s", to, names[i]);
        FILE *f = fopen(path, "wb");
        assert_true(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
        free(data);
    }
}

static void refuses_weights_that_are_not_finite_or_do_not_fit(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store *s;
    static const float bad[] = {NAN, INFINITY, 1e6F};
    for (int i = 0; i < 3; i++) {
        char from[512];
        (void)snprintf(from, sizeof from, "%s", files_path("bad"));
        poison(from, bad[i]);
        int rc = mr_store_create(files_path("state"), from, &one, &err);
        if (i < 2) {
            assert_refused(rc, MR_ERR_FORMAT, &err, "is infinite or NaN");
        } else {
            check(rc, &err);
            check(mr_store_open(&s, files_path("state"), &one, &err), &err);
            assert_refused(mr_store_export(s, files_path("out"), MR_DTYPE_F16, NULL, &err),
                           MR_ERR_FIT, &err, "has a weight beyond F16");
            check(mr_store_export(s, files_path("out"), MR_DTYPE_BF16, NULL, &err), &err);
            mr_store_close(s);
            remove_dir(files_path("out"));
            remove_dir(files_path("state"));
        }
        remove_dir(from);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_weight_has_one_place),
        cmocka_unit_test(imports_and_exports_give_the_same_weights),
        cmocka_unit_test(configuration_and_tokenizer_are_carried_along),
        cmocka_unit_test(narrowing_is_to_the_nearest_and_ties_to_even),
        cmocka_unit_test(refuses_a_flipped_bit),
        cmocka_unit_test(refuses_missing_and_short_files),
        cmocka_unit_test(streams_are_made_anew),
        cmocka_unit_test(holes_are_filled),
        cmocka_unit_test(refuses_the_state_of_another_model_or_version),
        cmocka_unit_test(refuses_patches_of_another_place),
        cmocka_unit_test(refuses_a_second_process),
        cmocka_unit_test(refuses_what_is_no_state),
        cmocka_unit_test(a_full_disk_leaves_nothing),
        cmocka_unit_test(refuses_weights_that_are_not_finite_or_do_not_fit),
    };
    return cmocka_run_group_tests_name("store", tests, files_setup, files_teardown);
}
