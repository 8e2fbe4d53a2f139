// SPDX-License-Identifier: Apache-2.0
// Packed files back into Hugging Face directories: the same numbers, and never half a directory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "checkpoint/synthetic.h"
#include "pack/decode.h"
#include "pack/packed.h"
#include "unit/files.h"
#include "unit/fixtures.h"

#define MODEL FIXTURES "/fp32-d16-r2"

static const char *const names[] = {"config.json", "tokenizer.json", "model.safetensors"};

static void remove_unpacked(const char *dir)
{
    char path[600];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)remove(path);
    }
    assert_int_equal(rmdir(dir), 0);
}

static int entries(void)
{
    int n = 0;
    DIR *dir = opendir(files_dir);
    while (dir && readdir(dir))
        n++;
    if (dir)
        (void)closedir(dir);
    return n;
}

// `from` packed into a file and opened again.
static void open_packed(struct mr_packed *p, const char *from, enum mr_format format, bool smooth)
{
    struct mr_error err = {0};
    struct mr_pack_options opt = {.format = format, .smooth = smooth};
    const char *path = files_path("m.mill");
    check(mr_pack_directory(p, from, &opt, &err), &err);
    check(mr_packed_save(p, from, path, NULL, &err), &err);
    mr_packed_close(p);
    check(mr_packed_open(p, path, &(struct mr_pack_options){0}, &err), &err);
}

// ---- the numbers -------------------------------------------------------------------------------

static void same_after_unpacking(const char *from, enum mr_format format, bool smooth)
{
    struct mr_error err = {0};
    struct mr_packed p, again;
    const char *dir = files_path("dir");
    open_packed(&p, from, format, smooth);
    check(mr_export(&p, dir, NULL, &err), &err);
    struct mr_pack_options opt = {.format = format, .smooth = false};
    check(mr_pack_directory(&again, dir, &opt, &err), &err);
    assert_memory_equal(&p.config, &again.config, sizeof p.config);
    assert_int_equal(p.list.bytes, again.list.bytes);
    assert_memory_equal(p.stream, again.stream, p.list.bytes);
    assert_int_equal(p.embedding.dtype, again.embedding.dtype);
    assert_int_equal(p.embedding.bytes, again.embedding.bytes);
    assert_memory_equal(p.embedding.data, again.embedding.data, p.embedding.bytes);
    assert_int_equal(p.tokenizer != NULL, again.tokenizer != NULL);
    mr_packed_close(&again);
    mr_packed_close(&p);
    remove_unpacked(dir);
}

static void packing_again_gives_the_same_stream(void **state)
{
    (void)state;
    struct dirent **fixtures;
    int n = fixture_names(&fixtures);
    for (int i = 0; i < n; i++) {
        char from[512];
        const char *name = fixtures[i]->d_name;
        (void)snprintf(from, sizeof from, "%s/%s", fixture_folder(name), name);
        for (int k = 0; k < 4; k++)
            same_after_unpacking(from, k % 2 ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8, k / 2 == 1);
        free(fixtures[i]);
    }
    free(fixtures);
    same_after_unpacking("models/demo", MR_FORMAT_MXINT8, true);
}

// The largest numbers there are, in each matrix of a synthetic checkpoint, which is bf16.
static void put_large(const char *file)
{
    static const char *const matrices[] = {"q_proj", "out_proj", "fc_in", "fc_out", "lm_head"};
    static const uint16_t large[] = {0x7F60, 0xFF61, 0x7F62, 0xFF70, 0x7F7F, 0xFF7F, 0x7F40};
    size_t size, put = 0;
    char *data = files_read(file, &size);
    uint64_t header;
    memcpy(&header, data, sizeof header);
    char *text = allocate((size_t)header + 1, 1);
    memcpy(text, data + 8, (size_t)header);
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        char key[64];
        (void)snprintf(key, sizeof key, "%s.weight", matrices[i]);
        const char *at = strstr(text, key);
        assert_non_null(at);
        at = strstr(at, "data_offsets");
        assert_non_null(at);
        size_t from = strtoull(strchr(at, '[') + 1, NULL, 10);
        for (size_t k = 0; k < sizeof large / sizeof *large; k++, put++)
            memcpy(data + 8 + header + from + 2 * (32 * k + 5 * k), &large[k], 2);
    }
    (void)files_write("big/model.safetensors", data, size);
    assert_true(put > 0);
    free(text);
    free(data);
}

// 4 and 6 at the largest scale would be more than any fp32 number: what is packed is finite.
static void largest_weights_pack_and_unpack(void **state)
{
    (void)state;
    const struct mr_config c = one_layer(32, 1, 4, 64);
    struct mr_error err = {0};
    char big[512]; // files_path() keeps only the last few
    (void)snprintf(big, sizeof big, "%s", files_path("big"));
    assert_int_equal(mkdir(big, 0700), 0);
    check(mr_synthetic_write(big, &c, 1, &err), &err);
    put_large(files_path("big/model.safetensors"));
    for (int k = 0; k < 2; k++)
        same_after_unpacking(big, k ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8, false);
    remove_unpacked(big);
}

// Without smoothing each value is within half a step of the checkpoint's, which is X / 128 and at
// the top, where elements are clamped, X / 64. Found by name, so a tensor under another's name, a
// transposed one or a shifted column shows.
static void values_are_those_of_the_checkpoint_rounded(void **state)
{
    (void)state;
    static const char *const tensors[] = {
        "attn.q_proj.weight", "attn.k_proj.weight", "attn.v_proj.weight", "attn.out_proj.weight",
        "mlp.fc_in.weight",   "mlp.fc_out.weight",  "mlp.fc_in.bias",     "mlp.fc_out.bias",
        "ln_1.weight",        "ln_1.bias"};
    struct mr_error err = {0};
    struct mr_packed p;
    struct mr_checkpoint *was, *now;
    const char *from = FIXTURES "/fp16-d48-r16-buffers", *dir = files_path("dir");
    open_packed(&p, from, MR_FORMAT_MXINT8, false);
    check(mr_export(&p, dir, NULL, &err), &err);
    check(mr_checkpoint_open(&was, from, MR_DECODER, NULL, &err), &err);
    check(mr_checkpoint_open(&now, dir, MR_DECODER, NULL, &err), &err);
    for (int layer = 0; layer < p.config.n_layer; layer++)
        for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
            const struct mr_tensor *a = layer_tensor(was, layer, tensors[i]);
            const struct mr_tensor *b = layer_tensor(now, layer, tensors[i]);
            bool matrix = a->rank == 2;
            assert_int_equal(b->dtype, matrix ? MR_DTYPE_BF16 : MR_DTYPE_F32);
            float *x = allocate(a->count, sizeof *x), *y = allocate(a->count, sizeof *y), top = 0;
            check(mr_tensor_read_f32(a, 0, a->count, x), &err);
            check(mr_tensor_read_f32(b, 0, b->count, y), &err);
            for (size_t k = 0; k < a->count; k++)
                top = fmaxf(top, fabsf(x[k]));
            for (size_t k = 0; k < a->count; k++)
                assert_true(fabsf(x[k] - y[k]) <= (matrix ? top / 64 : 0));
            free(x);
            free(y);
        }
    mr_checkpoint_close(was);
    mr_checkpoint_close(now);
    mr_packed_close(&p);
    remove_unpacked(dir);
}

// ---- refusals ----------------------------------------------------------------------------------

static void unpacking_needs_a_packed_file_and_a_new_directory(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed p;
    struct mr_pack_options opt = {.format = MR_FORMAT_MXINT8};
    check(mr_pack_directory(&p, MODEL, &opt, &err), &err);
    assert_refused(mr_export(&p, files_path("dir"), NULL, &err), MR_ERR_USAGE, &err,
                   "only a packed file");
    mr_packed_close(&p);

    open_packed(&p, MODEL, MR_FORMAT_MXINT8, true);
    int before = entries();
    assert_refused(mr_export(&p, files_dir, NULL, &err), MR_ERR_IO, &err, "is not empty");
    assert_refused(mr_export(&p, files_path("m.mill"), NULL, &err), MR_ERR_IO, &err,
                   "Not a directory");
    assert_refused(mr_export(&p, files_path("none/dir"), NULL, &err), MR_ERR_IO, &err,
                   "No such file");
    assert_int_equal(entries(), before);

    // An empty one is taken, with or without slashes behind it.
    assert_int_equal(mkdir(files_path("dir"), 0700), 0);
    check(mr_export(&p, files_path("dir//"), NULL, &err), &err);
    assert_int_equal(entries(), before + 1);
    remove_unpacked(files_path("dir"));

    // So is one behind a link, but not the one where we are.
    assert_int_equal(mkdir(files_path("dir"), 0700), 0);
    assert_int_equal(symlink("dir", files_path("link")), 0);
    check(mr_export(&p, files_path("link"), NULL, &err), &err);
    assert_int_equal(remove(files_path("link")), 0);
    remove_unpacked(files_path("dir"));
    int here = open(".", O_RDONLY | O_DIRECTORY);
    assert_true(here >= 0);
    assert_int_equal(mkdir(files_path("dir"), 0700), 0);
    assert_int_equal(chdir(files_path("dir")), 0);
    int rc = mr_export(&p, ".", NULL, &err);
    assert_int_equal(fchdir(here), 0);
    assert_int_equal(close(here), 0);
    assert_refused(rc, MR_ERR_IO, &err, "is the working directory");
    assert_int_equal(rmdir(files_path("dir")), 0);
    assert_int_equal(entries(), before);
    mr_packed_close(&p);
}

// Stopped at once, and with files limited to every size that ends in another write.
static void failed_unpacking_leaves_nothing(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed p;
    volatile sig_atomic_t stop = 1;
    open_packed(&p, MODEL, MR_FORMAT_MXINT8, true);
    int before = entries();
    assert_refused(mr_export(&p, files_path("dir"), &stop, &err), MR_ERR_INTERRUPTED, &err,
                   "interrupted");
    assert_int_equal(entries(), before);

    struct rlimit was, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    for (rlim_t size = 0; size < 60000; size += 4099) {
        limit = (struct rlimit){size, was.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        int rc = mr_export(&p, files_path("dir"), NULL, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
        assert_refused(rc, MR_ERR_IO, &err, "cannot write");
        assert_int_equal(entries(), before);
    }
    mr_packed_close(&p);
}

static void refuses_to_unpack_nan_and_infinity(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed p;
    for (int i = 0; i < 2; i++) {
        open_packed(&p, MODEL, i ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8, true);
        struct mr_stream_item ln = mr_stream_item(&p.config, p.format, 0),
                              q = mr_stream_item(&p.config, p.format, 1);
        uint8_t *copy = allocate(p.list.bytes, 1);
        memcpy(copy, p.stream, p.list.bytes);
        // the scale of the first block of the first column: behind LayerNorm and q's header
        size_t at = (size_t)(mr_item_beats(&ln, 1) + mr_header_beats(&q)) * MR_BEAT;
        copy[at] = i ? 254 : 255;
        if (i)
            copy[at + MR_BEAT] = 7; // 6 x 2^127
        p.stream = copy;
        assert_refused(mr_export(&p, files_path("dir"), NULL, &err), MR_ERR_FORMAT, &err,
                       "transformer.h.0.attn.q_proj");
        free(copy);
        mr_packed_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing_again_gives_the_same_stream),
        cmocka_unit_test(largest_weights_pack_and_unpack),
        cmocka_unit_test(values_are_those_of_the_checkpoint_rounded),
        cmocka_unit_test(unpacking_needs_a_packed_file_and_a_new_directory),
        cmocka_unit_test(failed_unpacking_leaves_nothing),
        cmocka_unit_test(refuses_to_unpack_nan_and_infinity),
    };
    return cmocka_run_group_tests_name("export", tests, files_setup, files_teardown);
}
