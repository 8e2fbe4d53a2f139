// SPDX-License-Identifier: Apache-2.0
// PyTorch files: what torch wrote, against the same tensors as safetensors; and hostile ones.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/weights.h"
#include "unit/checkpoint/archive.h"

#define FIXTURES "tests/fixtures/torch/"

// ---- what torch wrote ----

static void same_tensor(const struct mr_tensor *a, const struct mr_tensor *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->rank, b->rank);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->bytes, b->bytes);
    for (int i = 0; i < a->rank; i++)
        assert_int_equal(a->shape[i], b->shape[i]);
    unsigned char *x = malloc(a->bytes + 1);
    float *f = malloc((a->count + 1) * sizeof *f), *g = malloc((a->count + 1) * sizeof *g);
    assert_true(x && f && g);
    assert_int_equal(mr_tensor_copy(a, 0, a->count, x), 0);
    if (memcmp(x, b->data, b->bytes) != 0)
        fail_msg("%s differs", a->name);
    // every range, as floats
    assert_int_equal(mr_tensor_read_f32(b, 0, b->count, g), 0);
    for (size_t first = 0; first <= a->count; first += 5)
        for (size_t n = 0; first + n <= a->count; n += 1 + n / 2) {
            assert_int_equal(mr_tensor_read_f32(a, first, n, f), 0);
            assert_memory_equal(f, g + first, n * sizeof *f);
        }
    assert_int_equal(mr_tensor_read_f32(a, a->count, 1, f), MR_ERR_USAGE);
    assert_int_equal(mr_tensor_copy(a, 1, a->count, x), MR_ERR_USAGE);
    free(x);
    free(f);
    free(g);
}

// Compares all tensors of the checkpoint and returns how many are strided views.
static int compare_with_twin(const char *name)
{
    struct mr_error err = {0};
    struct mr_checkpoint *c;
    struct mr_weights twin;
    char path[128];
    int strided = 0;
    (void)snprintf(path, sizeof path, FIXTURES "%s", name);
    if (mr_checkpoint_open(&c, path, MR_DECODER, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(mr_checkpoint_kind(c), MR_CHECKPOINT_TORCH);
    (void)snprintf(path, sizeof path, FIXTURES "%s/twin.safetensors", name);
    if (mr_weights_open(&twin, false, path, &err))
        fail_msg("%s", err.text);
    assert_int_equal(twin.tensors.count, 5 + 2 * 10);
    for (size_t i = 0; i < twin.tensors.count; i++) {
        const struct mr_tensor *b = &twin.tensors.at[i];
        const struct mr_tensor *a = mr_checkpoint_tensor(c, b->name);
        assert_non_null(a);
        strided += a->strided;
        same_tensor(a, b);
    }
    mr_weights_close(&twin);
    mr_checkpoint_close(c);
    return strided;
}

static void reads_what_torch_writes(void **state)
{
    (void)state;
    assert_int_equal(compare_with_twin("fp32"), 0);
    assert_int_equal(compare_with_twin("fp16-buffers"), 0);
    assert_int_equal(compare_with_twin("bf16-sharded"), 0);
    assert_int_equal(compare_with_twin("protocol4"), 0);
}

static void reads_views_and_strides(void **state)
{
    (void)state;
    assert_int_equal(compare_with_twin("views"), 4); // fc_in, k, v of layer 0, a gain of layer 1
    assert_int_equal(compare_with_twin("bf16-transposed"), 2 + 2 * 6);
}

// ---- what torch wrote and we do not take ----

static void refuse_file(const char *path, int status, const char *words)
{
    struct mr_weights t;
    struct mr_error err = {0};
    assert_refused(mr_weights_open(&t, true, path, &err), status, &err, words);
    assert_null(t.tensors.at); // there is nothing to close
    if (!strstr(err.text, path))
        fail_msg("\"%s\" does not name the file", err.text);
}

static void refuses_legacy_torch_file(void **state)
{
    (void)state;
    refuse_file(FIXTURES "refused/legacy.bin", MR_ERR_UNSUPPORTED, "before 1.6");
}

static void refuses_what_is_no_state_dict(void **state)
{
    (void)state;
    refuse_file(FIXTURES "refused/training-run.bin", MR_ERR_UNSUPPORTED, "training run");
    refuse_file(FIXTURES "refused/tensor.bin", MR_ERR_UNSUPPORTED, "a state_dict is expected");
    refuse_file(FIXTURES "refused/script.bin", MR_ERR_UNSUPPORTED, "TorchScript");
}

static void refuses_unknown_pickle_globals(void **state)
{
    (void)state;
    refuse_file(FIXTURES "refused/module.bin", MR_ERR_UNSUPPORTED,
                "needs torch.nn.modules.linear.Linear");
    refuse_file(FIXTURES "refused/quantised.bin", MR_ERR_UNSUPPORTED, "_rebuild_qtensor");
}

static void refuses_compressed_members(void **state)
{
    (void)state;
    refuse_file(FIXTURES "refused/compressed.bin", MR_ERR_UNSUPPORTED, "zip -0");
}

static void refuses_foreign_files_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"GGUF\3\0\0\0", "GGUF file"},
        {"lmgg....", "GGML file"},
        {"tjgg....", "GGJT file"},
        {"\x89HDF\r\n\x1a\n", "HDF5"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"},
        {"something else", "no PyTorch file"},
        {"", "no PyTorch file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse_file(files_write_text("f.bin", cases[i].text),
                    strstr(cases[i].words, "no P") ? MR_ERR_FORMAT : MR_ERR_UNSUPPORTED,
                    cases[i].words);
    refuse_file(files_path("none.bin"), MR_ERR_IO, "No such file");
}

static void refuse_directory(const char *words)
{
    struct mr_checkpoint *c;
    struct mr_error err = {0};
    assert_refused(mr_checkpoint_open(&c, files_dir, MR_DECODER, NULL, &err), MR_ERR_UNSUPPORTED,
                   &err, words);
}

static void refuses_foreign_directories_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *file, *words;
    } cases[] = {
        {"adapter_config.json", "LoRA"},
        {"adapter_model.safetensors", "this directory by --adapter"},
        {"adapter_model.bin", "this directory by --adapter"},
        {"model-q8_0.gguf", "llama.cpp"},
        {"tf_model.h5", "TensorFlow"},
        {"flax_model.msgpack", "Flax"},
        {"model.ckpt.index", "TensorFlow"},
    };
    size_t size;
    char *config = files_read(FIXTURES "fp32/config.json", &size);
    for (int with_config = 0; with_config < 2; with_config++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const char *path = files_write_text(cases[i].file, "{}");
            refuse_directory(cases[i].words);
            (void)remove(path);
        }
        (void)files_write("config.json", config, size);
    }
    free(config);
    (void)remove(files_path("config.json"));
}

// ---- by hand ----

enum { FLOATS = 12 };
static const float values[FLOATS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const struct spec plain = {"x", "FloatStorage", "0", FLOATS, 0, 2, {3, 4}, {4, 1}};

static const char *write_archive(struct archive *a)
{
    const char *path = files_write("h.bin", a->file.data, a->file.size);
    mr_buf_free(&a->file);
    return path;
}

// An archive around a pickle, with storage 0 of 12 floats.
static const char *write_pickle(struct mr_buf *pickle)
{
    struct archive a = {0};
    (void)add_member(&a, "m/data.pkl", pickle->data, pickle->size);
    (void)add_member(&a, "m/data/0", values, sizeof values);
    (void)add_member(&a, "m/version", "3\n", 2);
    finish(&a);
    mr_buf_free(pickle);
    return write_archive(&a);
}

static const char *write_specs(const struct spec *specs, int n)
{
    struct mr_buf pickle = {0};
    put_pickle(&pickle, specs, n);
    return write_pickle(&pickle);
}

static struct mr_weights open_file(const char *path)
{
    struct mr_error err = {0};
    struct mr_weights t;
    if (mr_weights_open(&t, true, path, &err))
        fail_msg("%s", err.text);
    return t;
}

static void close_file(struct mr_weights t)
{
    mr_weights_close(&t);
}

static void expect_values(const struct mr_tensor *t, const float *expected, size_t n)
{
    float got[FLOATS];
    assert_non_null(t);
    assert_int_equal(t->count, n);
    assert_int_equal(mr_tensor_read_f32(t, 0, n, got), 0);
    assert_memory_equal(got, expected, n * sizeof *got);
}

static void reads_handmade_archives(void **state)
{
    (void)state;
    static const struct spec specs[] = {
        {"b", "FloatStorage", "0", FLOATS, 1, 2, {2, 3}, {1, 4}},
        {"a", "FloatStorage", "0", FLOATS, 0, 2, {3, 4}, {4, 1}},
        {"last", "FloatStorage", "0", FLOATS, 11, 1, {1}, {1000}},
        {"scalar", "FloatStorage", "0", FLOATS, 7, 0, {0}, {0}},
        {"none", "FloatStorage", "0", FLOATS, 99, 2, {0, INT64_MAX}, {INT64_MAX, 1}},
    };
    static const float b[] = {1, 5, 9, 2, 6, 10};
    struct mr_weights t = open_file(write_specs(specs, 5));
    assert_int_equal(t.tensors.count, 5);
    assert_string_equal(t.tensors.at[0].name, "a");
    expect_values(mr_tensors_find(&t.tensors, "a"), values, FLOATS);
    expect_values(mr_tensors_find(&t.tensors, "b"), b, 6);
    expect_values(mr_tensors_find(&t.tensors, "last"), values + 11, 1);
    expect_values(mr_tensors_find(&t.tensors, "scalar"), values + 7, 1);
    expect_values(mr_tensors_find(&t.tensors, "none"), values, 0);
    assert_null(mr_tensors_find(&t.tensors, "c"));
    mr_weights_close(&t);
}

// A sparse file: the storage lies behind 4.5 GiB of zeros, as in a real 24 GB checkpoint.
static void reads_zip64_beyond_4_gib(void **state)
{
    (void)state;
    const uint64_t gap = ((uint64_t)9 << 29) + 512;
    struct mr_buf pickle = {0};
    put_pickle(&pickle, &plain, 1);
    struct archive a = {.zip64 = true, .shift = gap};
    (void)add_member(&a, "m/data/0", values, sizeof values);
    (void)add_member(&a, "m/data.pkl", pickle.data, pickle.size);
    (void)add_member(&a, "m/byteorder", "little", 6);
    (void)add_member(&a, "m/version", "3\n", 2);
    finish(&a);
    const char *path = files_write("large.bin", "PK\3\4", 4);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, a.file.data, a.file.size, (off_t)gap), a.file.size);
    assert_int_equal(close(fd), 0);
    struct mr_weights t = open_file(path);
    expect_values(mr_tensors_find(&t.tensors, "x"), values, FLOATS);
    mr_weights_close(&t);
    (void)remove(path);
    mr_buf_free(&a.file);
    mr_buf_free(&pickle);
}

static void refuses_tensors_outside_their_storage(void **state)
{
    (void)state;
    const struct {
        struct spec spec;
        const char *words;
    } cases[] = {
        {{"x", "FloatStorage", "0", FLOATS, 1, 2, {3, 4}, {4, 1}}, "beyond its storage"},
        {{"x", "FloatStorage", "0", FLOATS, 0, 2, {3, 5}, {4, 1}}, "beyond its storage"},
        {{"x", "FloatStorage", "0", FLOATS, 0, 1, {13}, {1}}, "beyond its storage"},
        {{"x", "FloatStorage", "0", FLOATS, 12, 0, {0}, {0}}, "beyond its storage"},
        {{"x", "FloatStorage", "0", FLOATS, INT64_MAX, 1, {1}, {1}}, "beyond its storage"},
        {{"x", "FloatStorage", "0", FLOATS, 0, 1, {2}, {INT64_MAX}}, "beyond its storage"},
        {{"x", "FloatStorage", "0", FLOATS, 0, 1, {4}, {INT64_MAX}}, "beyond its storage"},
        {{"x", "FloatStorage", "0", FLOATS, 0, 2, {3, 3}, {INT64_MAX, INT64_MAX}}, "beyond"},
        {{"x", "FloatStorage", "0", FLOATS, 0, 2, {INT64_MAX, INT64_MAX}, {0, 0}}, "beyond"},
        {{"x", "FloatStorage", "0", FLOATS, 0, 1, {INT64_MAX}, {0}}, "beyond"},
        {{"x", "FloatStorage", "0", FLOATS, -1, 1, {1}, {1}}, "no negative"},
        {{"x", "FloatStorage", "0", FLOATS, 0, 1, {-1}, {1}}, "no negative"},
        {{"x", "FloatStorage", "0", FLOATS, 4, 1, {2}, {-1}}, "no negative"},
        {{"x", "FloatStorage", "0", -1, 0, 1, {1}, {1}}, "persistent id"},
        {{"x", "FloatStorage", "0", INT64_MAX, 0, 1, {1}, {1}}, "overflows"},
        {{"x", "FloatStorage", "0", FLOATS + 1, 0, 1, {1}, {1}}, "has 48 bytes where 52"},
        {{"x", "DoubleStorage", "0", FLOATS, 0, 1, {1}, {1}}, "has 48 bytes where 96"},
        {{"x", "FloatStorage", "1", FLOATS, 0, 1, {1}, {1}}, "no member data/1"},
        {{"x", "FloatStorage", "../0", FLOATS, 0, 1, {1}, {1}}, "persistent id"},
        {{"x", "FloatStorage", "", FLOATS, 0, 1, {1}, {1}}, "persistent id"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse_file(write_specs(&cases[i].spec, 1), MR_ERR_FORMAT, cases[i].words);
}

// ---- a model of GPT-2's kind, whose tensors are all of one storage ----

static const char tied_name[] = "lm_head.weight";

// `head`: where the tied matrix is once more, and `words`: its strides as the table of tokens.
static int open_gpt2(struct mr_checkpoint **c, const struct spec *head, const int64_t *words,
                     struct mr_error *err)
{
#define OF_GPT2(name, rank, ...) {name, "FloatStorage", "0", FLOATS, 0, rank, __VA_ARGS__}
    struct spec specs[] = {
        OF_GPT2("wte.weight", 2, {3, 2}, {words[0], words[1]}),
        OF_GPT2("wpe.weight", 2, {2, 2}, {2, 1}),
        OF_GPT2("h.0.ln_1.weight", 1, {2}, {1}),
        OF_GPT2("h.0.ln_1.bias", 1, {2}, {1}),
        OF_GPT2("h.0.attn.c_attn.weight", 2, {2, 6}, {6, 1}),
        OF_GPT2("h.0.attn.c_attn.bias", 1, {6}, {1}),
        OF_GPT2("h.0.attn.c_proj.weight", 2, {2, 2}, {2, 1}),
        OF_GPT2("h.0.attn.c_proj.bias", 1, {2}, {1}),
        OF_GPT2("h.0.ln_2.weight", 1, {2}, {1}),
        OF_GPT2("h.0.ln_2.bias", 1, {2}, {1}),
        OF_GPT2("h.0.mlp.c_fc.weight", 2, {2, 2}, {1, 2}),
        OF_GPT2("h.0.mlp.c_fc.bias", 1, {2}, {1}),
        OF_GPT2("h.0.mlp.c_proj.weight", 2, {2, 2}, {2, 1}),
        OF_GPT2("h.0.mlp.c_proj.bias", 1, {2}, {1}),
        OF_GPT2("ln_f.weight", 1, {2}, {1}),
        OF_GPT2("ln_f.bias", 1, {2}, {1}),
        *head,
    };
    const char *path = write_specs(specs, sizeof specs / sizeof *specs);
    assert_int_equal(rename(path, files_path("pytorch_model.bin")), 0);
    (void)files_write_text("config.json",
                           "{\"model_type\":\"gpt2\",\"vocab_size\":3,\"n_positions\":2,"
                           "\"n_embd\":2,\"n_layer\":1,\"n_head\":1,\"n_inner\":2,"
                           "\"bos_token_id\":0,\"eos_token_id\":0}");
    int rc = mr_checkpoint_open(c, files_dir, MR_DECODER, NULL, err);
    (void)remove(files_path("pytorch_model.bin"));
    (void)remove(files_path("config.json"));
    return rc;
}

// torch.save writes a matrix that is tied twice over the same bytes.
static void a_tied_matrix_may_be_there_twice(void **state)
{
    (void)state;
    static const struct {
        struct spec head;
        int64_t words[2];
        bool same;
    } cases[] = {
        {{tied_name, "FloatStorage", "0", FLOATS, 0, 2, {3, 2}, {2, 1}}, {2, 1}, true},
        {{tied_name, "FloatStorage", "0", FLOATS, 0, 2, {3, 2}, {1, 3}}, {1, 3}, true},
        {{tied_name, "FloatStorage", "0", FLOATS, 2, 2, {3, 2}, {2, 1}}, {2, 1}, false},
        {{tied_name, "FloatStorage", "0", FLOATS, 0, 2, {3, 2}, {1, 3}}, {2, 1}, false},
        {{tied_name, "FloatStorage", "0", FLOATS, 0, 2, {3, 2}, {2, 1}}, {1, 3}, false},
        {{tied_name, "HalfStorage", "0", 2 * FLOATS, 0, 2, {3, 2}, {2, 1}}, {2, 1}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_error err = {0};
        struct mr_checkpoint *c;
        int rc = open_gpt2(&c, &cases[i].head, cases[i].words, &err);
        if (!cases[i].same)
            assert_refused(rc, MR_ERR_UNSUPPORTED, &err, "lm_head.weight differs from wte.weight");
        else if (rc)
            fail_msg("case %zu: %s", i, err.text);
        mr_checkpoint_close(c);
    }
}

// Of matrices that GPT-2's files have as [inputs][outputs]: also of one that torch has turned.
static void turns_a_matrix_that_is_turned_already(void **state)
{
    (void)state;
    static const float fc[] = {0, 1, 2, 3}, proj[] = {0, 2, 1, 3};
    const struct spec head = {tied_name, "FloatStorage", "0", FLOATS, 0, 2, {3, 2}, {2, 1}};
    struct mr_error err = {0};
    struct mr_checkpoint *c;
    if (open_gpt2(&c, &head, head.stride, &err))
        fail_msg("%s", err.text);
    const struct mr_list *block = &mr_checkpoint_config(c)->arch->block;
    int seen = 0;
    for (int i = 0; i < block->count; i++) {
        const struct mr_item *item = &block->items[i];
        const float *expected = !item->name                             ? NULL
                                : strcmp(item->name, "mlp.c_fc") == 0   ? fc
                                : strcmp(item->name, "mlp.c_proj") == 0 ? proj
                                                                        : NULL;
        if (expected)
            expect_values(mr_checkpoint_item(c, 0, item, MR_WEIGHT), expected, 4);
        seen += expected != NULL;
    }
    assert_int_equal(seen, 2);
    mr_checkpoint_close(c);
}

static void refuses_duplicate_torch_tensor(void **state)
{
    (void)state;
    const struct spec twice[] = {plain, plain};
    refuse_file(write_specs(twice, 2), MR_ERR_FORMAT, "tensor x occurs twice");
}

#define BYTES(text) text, sizeof text - 1

static void refuses_hostile_pickles(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        int status;
        const char *words;
    } cases[] = {
        {BYTES(""), MR_ERR_FORMAT, "ends inside"},
        {BYTES("\x80"), MR_ERR_FORMAT, "ends inside"},
        {BYTES("\x80\x02}"), MR_ERR_FORMAT, "ends inside"},
        {BYTES("\x80\x01}."), MR_ERR_UNSUPPORTED, "protocol 1"},
        {BYTES("\x80\x06}."), MR_ERR_UNSUPPORTED, "protocol 6"},
        {BYTES("\x80\x02."), MR_ERR_FORMAT, "more or less than one value"},
        {BYTES("\x80\x02}}."), MR_ERR_FORMAT, "more or less than one value"},
        {BYTES("\x80\x02}(."), MR_ERR_FORMAT, "more or less than one value"},
        {BYTES("\x80\x02}.}"), MR_ERR_FORMAT, "more bytes follow"},
        {BYTES("\x80\x02]."), MR_ERR_UNSUPPORTED, "holds a list"},
        {BYTES("\x80\x02N."), MR_ERR_UNSUPPORTED, "holds None"},
        {BYTES("\x80\x02}K\1K\2s."), MR_ERR_FORMAT, "name is no string"},
        {BYTES("\x80\x02}X\1\0\0\0aK\2s."), MR_ERR_UNSUPPORTED, "\"a\" is a number"},
        {BYTES("\x80\x02}X\1\0\0\0\xffNs."), MR_ERR_FORMAT, "no UTF-8"},
        {BYTES("\x80\x02}X\1\0\0\0\0Ns."), MR_ERR_FORMAT, "NUL"},
        {BYTES("\x80\x02}X\xff\xff\xff\xff"
               "a"),
         MR_ERR_FORMAT, "ends inside a string"},
        {BYTES("\x80\x02}(K\1u."), MR_ERR_FORMAT, "key without a value"},
        {BYTES("\x80\x02(u."), MR_ERR_FORMAT, "takes none"},
        {BYTES("\x80\x02N(NNu."), MR_ERR_FORMAT, "takes none"},
        {BYTES("\x80\x02}Na."), MR_ERR_FORMAT, "takes none"},
        {BYTES("\x80\x02u."), MR_ERR_FORMAT, "mark is missing"},
        {BYTES("\x80\x02s."), MR_ERR_FORMAT, "value is missing"},
        {BYTES("\x80\x02}(s."), MR_ERR_FORMAT, "value is missing"},
        {BYTES("\x80\x02\x87."), MR_ERR_FORMAT, "value is missing"},
        {BYTES("\x80\x02}(\x85t."), MR_ERR_FORMAT, "value is missing"}, // below a mark
        {BYTES("\x80\x02h\0."), MR_ERR_FORMAT, "memo number"},
        {BYTES("\x80\x02Nq\5h\4."), MR_ERR_FORMAT, "memo number"},
        {BYTES("\x80\x02Nr\xff\xff\xff\xff."), MR_ERR_FORMAT, "memo number"},
        {BYTES("\x80\x02Nr\x2c\1\0\0j\x2d\1\0\0."), MR_ERR_FORMAT, "memo number"},
        {BYTES("\x80\x02Nr\x2c\1\0\0j\x2c\1\0\0\x86."), MR_ERR_UNSUPPORTED, "holds a tuple"},
        {BYTES("\x80\x02q\0."), MR_ERR_FORMAT, "value is missing"},
        {BYTES("\x80\x02Nq"), MR_ERR_FORMAT, "ends inside an operand"},
        {BYTES("\x80\x02K"), MR_ERR_FORMAT, "ends inside an operand"},
        {BYTES("\x80\x02G1234567"), MR_ERR_FORMAT, "ends inside an operand"},
        {BYTES("\x80\x02}X\1\0\0\0aG12345678s."), MR_ERR_UNSUPPORTED, "\"a\" is a number"},
        {BYTES("\x80\x02\x8a\xff"
               "aaaa"),
         MR_ERR_FORMAT, "more than 64 bits"},
        {BYTES("\x80\x02Q."), MR_ERR_FORMAT, "value is missing"},
        {BYTES("\x80\x02)Q."), MR_ERR_FORMAT, "persistent id"},
        {BYTES("\x80\x02NQ."), MR_ERR_FORMAT, "persistent id"},
        {BYTES("\x80\x02)NR."), MR_ERR_FORMAT, "no function"},
        {BYTES("\x80\x02"
               "ccollections\nOrderedDict\nNR."),
         MR_ERR_FORMAT, "no function"},
        {BYTES("\x80\x02"
               "ctorch._utils\n_rebuild_parameter\nN\x85R."),
         MR_ERR_FORMAT, "without a tensor"},
        {BYTES("\x80\x02Nq\0h\0\x86."), MR_ERR_UNSUPPORTED, "holds a tuple"},
        {BYTES("\x80\x02](NNe."), MR_ERR_UNSUPPORTED, "holds a list"},
        {BYTES("\x80\x04\x8c\2osN\x93."), MR_ERR_FORMAT, "name that is no string"},
        {BYTES("\x80\x02"
               "ctorch\nFloatStorage\n)R."),
         MR_ERR_FORMAT, "no function"},
        {BYTES("\x80\x02"
               "ctorch._utils\n_rebuild_tensor_v2\n)R."),
         MR_ERR_FORMAT, "not described"},
        {BYTES("\x80\x02"
               "ctorch._utils\n_rebuild_parameter\n)R."),
         MR_ERR_FORMAT, "without a tensor"},
        {BYTES("\x80\x02"
               "ccollections\nOrderedDict\nN\x85R."),
         MR_ERR_FORMAT, "with arguments"},
        {BYTES("\x80\x02}Nb."), MR_ERR_FORMAT, "attributes"},
        {BYTES("\x80\x02"
               "ctorch\nfloat32\n)R."),
         MR_ERR_FORMAT, "no function"},
        {BYTES("\x80\x02"
               "cos"),
         MR_ERR_FORMAT, "ends inside a name"},
        {BYTES("\x80\x02"
               "cos\nsystem"),
         MR_ERR_FORMAT, "ends inside a name"},
        // what an attack looks like
        {BYTES("\x80\x02"
               "cos\nsystem\nX\2\0\0\0id\x85R."),
         MR_ERR_UNSUPPORTED, "needs os.system"},
        {BYTES("\x80\x02"
               "cbuiltins\neval\nX\1\0\0\0"
               "1\x85R."),
         MR_ERR_UNSUPPORTED, "builtins.eval"},
        {BYTES("\x80\x04\x8c\2os\x8c\6system\x93."), MR_ERR_UNSUPPORTED, "needs os.system"},
        {BYTES("\x80\x04NN\x93."), MR_ERR_FORMAT, "name that is no string"},
        {BYTES("\x80\x02(ios\nsystem\n."), MR_ERR_UNSUPPORTED, "opcode 0x69"}, // INST
        {BYTES("\x80\x02(NNo."), MR_ERR_UNSUPPORTED, "opcode 0x6f"},           // OBJ
        {BYTES("\x80\x02N)\x81."), MR_ERR_UNSUPPORTED, "opcode 0x81"},         // NEWOBJ
        {BYTES("\x80\x02\x82\1."), MR_ERR_UNSUPPORTED, "opcode 0x82"},         // EXT1
        {BYTES("\x80\x02P0\n."), MR_ERR_UNSUPPORTED, "opcode 0x50"},           // PERSID
        {BYTES("\x80\x02"
               "cos.\x1b[2J\nsystem\n."),
         MR_ERR_UNSUPPORTED, "os.?[2J"}, // one line
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_buf pickle = {0};
        put(&pickle, cases[i].bytes, cases[i].size);
        refuse_file(write_pickle(&pickle), cases[i].status, cases[i].words);
    }
}

// x.conj().imag and the like: torch keeps the sign beside the bytes. An empty dictionary says
// nothing.
static void refuses_negated_views(void **state)
{
    (void)state;
#define VIEW(metadata)                                                                             \
    BYTES("\x80\x02}X\1\0\0\0xctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storage"               \
          "ctorch\nFloatStorage\nX\1\0\0\0"                                                        \
          "0X\3\0\0\0cpuK\x0ctQK\0K\x0c\x85K\1\x85\x89}" metadata "tRs.")
    static const struct {
        const char *bytes;
        size_t size;
    } negated[] = {{VIEW("}X\3\0\0\0neg\x88s")}, {VIEW("}X\4\0\0\0conj\x88s")}},
      harmless = {VIEW("}")};
    struct mr_buf pickle = {0};
    for (size_t i = 0; i < sizeof negated / sizeof *negated; i++) {
        put(&pickle, negated[i].bytes, negated[i].size);
        refuse_file(write_pickle(&pickle), MR_ERR_UNSUPPORTED, "resolve_neg()");
    }
    put(&pickle, harmless.bytes, harmless.size);
    struct mr_weights t = open_file(write_pickle(&pickle));
    expect_values(mr_tensors_find(&t.tensors, "x"), values, FLOATS);
    mr_weights_close(&t);
}

// How torch.save describes a tensor, and each part of that in another way.
static void reads_tensors_as_torch_writes_them(void **state)
{
    (void)state;
#define WORD        "X\7\0\0\0storage"
#define FLOATS_TYPE "ctorch\nFloatStorage\n"
#define KEY                                                                                        \
    "X\1\0\0\0"                                                                                    \
    "0"
#define CPU                       "X\3\0\0\0cpu"
#define ID(word, type, key, more) "(" word type key more "tQ"
#define STORAGE                   ID(WORD, FLOATS_TYPE, KEY, CPU "K\x0c")
#define OF(version, arguments)                                                                     \
    BYTES("\x80\x02}X\1\0\0\0xctorch._utils\n_rebuild_tensor" version "\n(" arguments "tRs.")
#define DESCRIBED(storage, layout) OF("_v2", storage layout "\x89}")
#define LAYOUT                     "K\0K\x0c\x85K\1\x85"
    static const struct {
        const char *bytes;
        size_t size;
        const char *words; // NULL: that is fine
    } cases[] = {
        {DESCRIBED(STORAGE, LAYOUT), NULL},
        {OF("", STORAGE LAYOUT), NULL},
        {DESCRIBED(ID(WORD, FLOATS_TYPE, KEY, CPU "J\x0c\0\0\0"), LAYOUT), NULL},
        {DESCRIBED(ID(WORD, FLOATS_TYPE, KEY, CPU "K\x0cN"), LAYOUT), NULL},
        {OF("_v3",
            ID(WORD, "ctorch\nUntypedStorage\n", KEY, CPU "K\x30") LAYOUT "\x89}ctorch\nfloat32\n"),
         NULL},
        {OF("_v2", STORAGE LAYOUT "\x89}" FLOATS_TYPE), NULL}, // a type that is none of elements
        {DESCRIBED(ID(WORD, FLOATS_TYPE, KEY, CPU), LAYOUT), "persistent id"},
        {DESCRIBED(ID(WORD, FLOATS_TYPE, KEY, CPU "K\x0cNN"), LAYOUT), "persistent id"},
        {DESCRIBED(ID(WORD, FLOATS_TYPE, KEY, CPU "K\x0cK\1"), LAYOUT), "persistent id"},
        {DESCRIBED(ID("K\1", FLOATS_TYPE, KEY, CPU "K\x0c"), LAYOUT), "persistent id"},
        {DESCRIBED(ID("X\7\0\0\0storagf", FLOATS_TYPE, KEY, CPU "K\x0c"), LAYOUT), "persistent id"},
        {DESCRIBED(ID(WORD, CPU, KEY, CPU "K\x0c"), LAYOUT), "persistent id"},
        {DESCRIBED(ID(WORD, "ctorch\nfloat32\n", KEY, CPU "K\x0c"), LAYOUT), "persistent id"},
        {DESCRIBED(ID(WORD, FLOATS_TYPE, "K\0", CPU "K\x0c"), LAYOUT), "persistent id"},
        {DESCRIBED(ID(WORD, FLOATS_TYPE,
                      "X\x15\0\0\0"
                      "000000000000000000000",
                      CPU "K\x0c"),
                   LAYOUT),
         "persistent id"},
        {DESCRIBED(ID(WORD, FLOATS_TYPE, KEY, "K\0K\x0c"), LAYOUT), "persistent id"},
        {DESCRIBED(ID(WORD, FLOATS_TYPE, KEY, CPU CPU), LAYOUT), "persistent id"},
        {DESCRIBED(ID(WORD, FLOATS_TYPE, KEY, CPU "J\xff\xff\xff\xff"), LAYOUT), "persistent id"},
        {OF("_v2", STORAGE "K\0K\x0c\x85"), "not described"},
        {DESCRIBED("N", LAYOUT), "not described"},
        {DESCRIBED(STORAGE, CPU "K\x0c\x85K\1\x85"), "not described"},
        {DESCRIBED(STORAGE, "K\0]K\1\x85"), "not described"},
        {DESCRIBED(STORAGE, "K\0" CPU "\x85K\1\x85"), "not described"},
        {DESCRIBED(STORAGE, "K\0K\x0c\x85K\1K\1\x86"), "not described"},
        {DESCRIBED(STORAGE, "K\0(K\1K\1K\1K\1K\1K\1K\1K\1K\1tK\1\x85"), "not described"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_buf pickle = {0};
        put(&pickle, cases[i].bytes, cases[i].size);
        const char *path = write_pickle(&pickle);
        if (cases[i].words) {
            refuse_file(path, MR_ERR_FORMAT, cases[i].words);
            continue;
        }
        struct mr_weights t = open_file(path);
        expect_values(mr_tensors_find(&t.tensors, "x"), values, FLOATS);
        mr_weights_close(&t);
    }
}

static void refuse_repeated(const char *begin, const char *unit, size_t unit_size, size_t times,
                            const char *words)
{
    struct mr_buf pickle = {0};
    put(&pickle, "\x80\x02", 2);
    put(&pickle, begin, strlen(begin));
    for (size_t i = 0; i < times; i++)
        put(&pickle, unit, unit_size);
    put(&pickle, ".", 1);
    refuse_file(write_pickle(&pickle), MR_ERR_FORMAT, words);
}

static void refuses_pickles_that_grow(void **state)
{
    (void)state;
    refuse_repeated("", BYTES("("), 65, "nesting");
    refuse_repeated("", BYTES(")"), (1 << 18) + 1, "more objects");
    refuse_repeated("", BYTES("N"), (1 << 20) + 1, "more values");
    refuse_repeated("}", BYTES("NNs"), (1 << 16) + 1, "more tensors");
    refuse_repeated("", BYTES("N000"), (2 << 20) + 1, "8388608"); // larger than any pickle
}

static void refuses_hostile_archives(void **state)
{
    (void)state;
    enum {
        GOOD,
        NO_PICKLE,
        TWICE,
        OVERLAP,
        BEYOND,
        ENCRYPTED,
        TWO_ROOTS,
        NO_ROOT,
        BIG_ORDER,
        NO_ORDER,
        VERSION,
        VERSION_0,
        VERSION_OF_WORDS,
        NO_VERSION,
        CHECKSUM,
        DEFLATED_BOMB,
        EMPTY,
        NO_DIRECTORY,
        NOT_A_HEADER,
        CASES
    };
    static const char *const words[CASES] = {
        [NO_PICKLE] = "no member data.pkl",
        [TWICE] = "occurs twice",
        [OVERLAP] = "overlaps",
        [BEYOND] = "not inside the file",
        [ENCRYPTED] = "encrypted",
        [TWO_ROOTS] = "another directory",
        [NO_ROOT] = "in no directory",
        [BIG_ORDER] = "byte order is \"big\"",
        [NO_ORDER] = "byte order is \"\"",
        [VERSION] = "version \"11\"",
        [VERSION_0] = "version \"0\"",
        [VERSION_OF_WORDS] = "version \"x\"",
        [NO_VERSION] = "no member version",
        [CHECKSUM] = "checksum",
        [DEFLATED_BOMB] = "compressed",
        [EMPTY] = "",
        [NO_DIRECTORY] = "zip directory cannot be read",
        [NOT_A_HEADER] = "",
    };
    for (int i = 0; i < CASES; i++) {
        const char *version = i == VERSION            ? "11\n"
                              : i == VERSION_0        ? "0\n"
                              : i == VERSION_OF_WORDS ? "x\n"
                                                      : "3\n";
        struct archive a = {0};
        struct mr_buf pickle = {0};
        put_pickle(&pickle, &plain, 1);
        if (i != NO_PICKLE)
            (void)add_member(&a, "m/data.pkl", pickle.data, pickle.size);
        (void)add_member(&a,
                         i == NO_ROOT     ? "version"
                         : i == TWO_ROOTS ? "n/version"
                                          : "m/version",
                         version, strlen(version));
        if (i == NO_VERSION)
            (void)strcpy(a.members[1].name, "m/versiom");
        if (i == BIG_ORDER || i == NO_ORDER)
            (void)add_member(&a, "m/byteorder", "big", i == NO_ORDER ? 0 : 3);
        struct member *m = add_member(&a, "m/data/0", values, sizeof values);
        if (i == TWICE)
            (void)add_member(&a, "m/data/0", values, sizeof values);
        if (i == OVERLAP)
            a.members[a.count++] = *m, a.members[a.count - 1].name[7]++;
        if (i == BEYOND)
            m->size = 1 << 20;
        if (i == ENCRYPTED)
            m->flags = 1;
        if (i == CHECKSUM)
            m->crc ^= 1;
        if (i == DEFLATED_BOMB) {
            m->method = 8;
            m->size = UINT32_MAX - 1;
        }
        if (i == NOT_A_HEADER)
            m->at += 4;
        if (i == EMPTY)
            a.count = 0;
        if (i != NO_DIRECTORY)
            finish(&a);
        const char *path = write_archive(&a);
        if (i == GOOD)
            close_file(open_file(path));
        else
            refuse_file(path,
                        i == ENCRYPTED || i == BIG_ORDER || i == NO_ORDER ||
                                (i >= VERSION && i <= VERSION_OF_WORDS) || i == DEFLATED_BOMB
                            ? MR_ERR_UNSUPPORTED
                            : MR_ERR_FORMAT,
                        words[i]);
        mr_buf_free(&pickle);
    }
}

// What follows the directory is a comment, and may be a member: then the place of its lengths has
// less behind it than a header.
static void a_member_may_lie_in_the_comment(void **state)
{
    (void)state;
    enum { DIRECTORY_ENTRY = 46, END = 22 };
    struct archive a = {0}, comment = {0};
    struct mr_buf pickle = {0};
    put_pickle(&pickle, &plain, 1);
    (void)add_member(&a, "m/data.pkl", pickle.data, pickle.size);
    (void)add_member(&a, "m/data/0", values, sizeof values);
    a.members[a.count++] = *add_member(&comment, "m/version", "3\n", 2);
    uint64_t at = a.file.size + END;
    for (int i = 0; i < a.count; i++)
        at += DIRECTORY_ENTRY + strlen(a.members[i].name);
    a.members[2].at = at;
    finish(&a);
    assert_int_equal(a.file.size, at);
    a.file.data[a.file.size - 2] = (char)comment.file.size; // the length of the comment
    put(&a.file, comment.file.data, comment.file.size);
    struct mr_weights t = open_file(write_archive(&a));
    expect_values(mr_tensors_find(&t.tensors, "x"), values, FLOATS);
    mr_weights_close(&t);
    mr_buf_free(&comment.file);
    mr_buf_free(&pickle);
}

// Refused, or read without touching anything outside: the sanitizers watch.
static void survives_damaged_torch_files(void **state)
{
    (void)state;
    size_t size;
    char *data = files_read(FIXTURES "bf16-sharded/pytorch_model-00003-of-00003.bin", &size);
    for (size_t i = 0; i < 2 * size; i += i < size ? 7 : 1) {
        struct mr_error err = {0};
        struct mr_weights t;
        size_t n = i < size ? i : size, at = i < size ? 0 : i - size;
        data[at] ^= i < size ? 0 : (char)(1 << (at % 8));
        int rc = mr_weights_open(&t, true, files_write("d.bin", data, n), &err);
        if (rc == 0) {
            for (size_t k = 0; k < t.tensors.count; k++) {
                const struct mr_tensor *x = &t.tensors.at[k];
                void *copy = malloc(x->bytes + 1);
                assert_non_null(copy);
                assert_int_equal(mr_tensor_copy(x, 0, x->count, copy), 0);
                free(copy);
            }
            mr_weights_close(&t);
        } else {
            assert_refused(rc, err.status, &err, "");
        }
        if (i < size)
            assert_int_not_equal(rc, 0); // truncated
        data[at] ^= i < size ? 0 : (char)(1 << (at % 8));
    }
    free(data);
}

static void refuses_quantised_checkpoints(void **state)
{
    (void)state;
    static const char head[] =
        "{\"model_type\":\"gptj\",\"vocab_size\":5,\"n_embd\":8,\"n_layer\":1,"
        "\"n_head\":2,\"rotary_dim\":2,\"n_inner\":16";
    char text[512];
    (void)snprintf(text, sizeof text, "%s,\"quantization_config\":{\"quant_method\":\"gptq\"}}",
                   head);
    (void)files_write_text("config.json", text);
    refuse_directory("quantised already (gptq)");
    (void)snprintf(text, sizeof text, "%s}", head);
    (void)files_write_text("config.json", text);
    static const struct {
        const char *header, *words;
    } cases[] = {
        {"{\"transformer.h.0.attn.q_proj.qweight\":{\"dtype\":\"I32\",\"shape\":[1],"
         "\"data_offsets\":[0,4]}}",
         "GPTQ"},
        {"{\"transformer.h.0.attn.q_proj.weight\":{\"dtype\":\"I8\",\"shape\":[8,8],"
         "\"data_offsets\":[0,64]}}",
         "8-bit"},
        {"{\"base_model.model.transformer.h.0.attn.q_proj.lora_A.weight\":{\"dtype\":\"F32\","
         "\"shape\":[1],\"data_offsets\":[0,4]}}",
         "LoRA"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)files_write_safetensors("model.safetensors", cases[i].header, i == 1 ? 64 : 4);
        refuse_directory(cases[i].words);
    }
    (void)remove(files_path("model.safetensors"));
    (void)remove(files_path("config.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_torch_writes),
        cmocka_unit_test(reads_views_and_strides),
        cmocka_unit_test(reads_handmade_archives),
        cmocka_unit_test(reads_zip64_beyond_4_gib),
        cmocka_unit_test(a_tied_matrix_may_be_there_twice),
        cmocka_unit_test(turns_a_matrix_that_is_turned_already),
        cmocka_unit_test(refuses_legacy_torch_file),
        cmocka_unit_test(refuses_what_is_no_state_dict),
        cmocka_unit_test(refuses_unknown_pickle_globals),
        cmocka_unit_test(refuses_compressed_members),
        cmocka_unit_test(refuses_foreign_files_by_name),
        cmocka_unit_test(refuses_foreign_directories_by_name),
        cmocka_unit_test(refuses_quantised_checkpoints),
        cmocka_unit_test(refuses_tensors_outside_their_storage),
        cmocka_unit_test(refuses_duplicate_torch_tensor),
        cmocka_unit_test(refuses_hostile_pickles),
        cmocka_unit_test(refuses_negated_views),
        cmocka_unit_test(reads_tensors_as_torch_writes_them),
        cmocka_unit_test(refuses_pickles_that_grow),
        cmocka_unit_test(refuses_hostile_archives),
        cmocka_unit_test(a_member_may_lie_in_the_comment),
        cmocka_unit_test(survives_damaged_torch_files),
    };
    return cmocka_run_group_tests_name("torch", tests, files_setup, files_teardown);
}
