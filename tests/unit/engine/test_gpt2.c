// SPDX-License-Identifier: Apache-2.0
// What only GPT-2 has: q, k and v in one matrix, scores scaled by layer, a head that may be there
// twice. That its logits are those of transformers is in test_cpu.c and test_model.c.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "checkpoint/config.h"
#include "checkpoint/synthetic.h"
#include "engine/synthetic.h"
#include "model/model.h"
#include "pack/identity.h"
#include "pack/packed.h"
#include "unit/files.h"
#include "unit/fixtures.h"
#include "unit/simulated.h"

#define GPT2   "tests/fixtures/gpt2"
#define PREFIX "transformer."
#define HEAD   "lm_head.weight"

static struct mr_config shape_of(int n_embd, int n_head, int vocab)
{
    return (struct mr_config){.arch = &mr_arch_gpt2,
                              .vocab_size = vocab,
                              .n_positions = 24,
                              .n_embd = n_embd,
                              .n_layer = 2,
                              .n_head = n_head,
                              .head_dim = n_embd / n_head,
                              .n_inner = 40,
                              .eos_token_id = -1};
}

// ---- config.json -------------------------------------------------------------------------------

#define SIZES "\"model_type\":\"gpt2\",\"vocab_size\":50,\"n_embd\":96,\"n_layer\":3,\"n_head\":4"

static int parse(struct mr_config *c, const char *more, struct mr_error *err)
{
    char text[512];
    int n = snprintf(text, sizeof text, "{" SIZES "%s}", more);
    return mr_config_parse(c, text, (size_t)n, MR_DECODER, "config.json", err);
}

static void reads_the_settings_that_it_computes(void **state)
{
    (void)state;
    struct mr_config c;
    struct mr_error err = {0};
    check(parse(&c, "", &err), &err);
    assert_ptr_equal(c.arch, &mr_arch_gpt2);
    assert_int_equal(c.n_inner, 384);
    assert_int_equal(c.n_positions, 1024);
    assert_int_equal(c.rotary_dim, 0);
    assert_int_equal(c.eos_token_id, 50256);
    assert_false(c.scale_by_layer);
    check(parse(&c,
                ",\"n_inner\":100,\"scale_attn_by_inverse_layer_idx\":true,"
                "\"reorder_and_upcast_attn\":true,\"scale_attn_weights\":true,"
                "\"tie_word_embeddings\":true,\"activation_function\":\"gelu_new\"",
                &err),
          &err);
    assert_int_equal(c.n_inner, 100);
    assert_true(c.scale_by_layer);
    assert_int_equal(c.function, 0);
    assert_int_equal(mr_function_of(&c), MR_FUNCTION_GELU_NEW);
    check(parse(&c, ",\"activation_function\":\"gelu\"", &err), &err);
    assert_int_equal(mr_function_of(&c), MR_FUNCTION_GELU);
    check(parse(&c, ",\"activation_function\":\"relu\"", &err), &err);
    assert_int_equal(mr_function_of(&c), MR_FUNCTION_RELU);
    c.scale_by_layer = true;
    for (int layer = 0; layer < 3; layer++)
        assert_true(mr_attention_root(&c, layer) == sqrt(24) * (layer + 1));
}

static void refuses_settings_that_it_does_not_compute(void **state)
{
    (void)state;
    static const struct {
        const char *more, *words;
        int status;
    } cases[] = {
        {",\"activation_function\":\"silu\"",
         "function \"silu\" is not supported; \"gelu_new\", \"gelu\" and \"relu\" are",
         MR_ERR_UNSUPPORTED},
        {",\"scale_attn_weights\":false", "scale_attn_weights", MR_ERR_UNSUPPORTED},
        {",\"add_cross_attention\":true", "add_cross_attention", MR_ERR_UNSUPPORTED},
        {",\"tie_word_embeddings\":false", "tie_word_embeddings", MR_ERR_UNSUPPORTED},
        {",\"scale_attn_by_inverse_layer_idx\":1", "true or false is expected", MR_ERR_FORMAT},
        {",\"n_head\":5", "duplicate", MR_ERR_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_config c;
        struct mr_error err = {0};
        assert_refused(parse(&c, cases[i].more, &err), cases[i].status, &err, cases[i].words);
    }
}

// ---- tensors -----------------------------------------------------------------------------------

// Each item's matrix and bias are its part of the file's c_attn.
static void q_k_and_v_are_parts_of_one_tensor(void **state)
{
    (void)state;
    enum { D = 72, LAYERS = 3 };
    struct mr_checkpoint *ck;
    struct mr_error err = {0};
    static float w[D * 3 * D], b[3 * D], part[D * D], bias[D];
    check(mr_checkpoint_open(&ck, GPT2 "/bf16-d24", MR_DECODER, NULL, &err), &err);
    assert_int_equal(mr_checkpoint_count(ck), 4 + 12 * LAYERS);
    for (int l = 0; l < LAYERS; l++) {
        const struct mr_tensor *t = layer_tensor(ck, l, "attn.c_attn.weight");
        assert_int_equal(t->shape[1], 3 * D);
        assert_int_equal(mr_tensor_read_f32(t, 0, t->count, w), 0);
        t = layer_tensor(ck, l, "attn.c_attn.bias");
        assert_int_equal(mr_tensor_read_f32(t, 0, t->count, b), 0);
        for (int i = 1; i <= 3; i++) {
            const struct mr_item *item = &mr_arch_gpt2.block.items[i];
            const struct mr_tensor *m = mr_checkpoint_item(ck, l, item, MR_WEIGHT),
                                   *v = mr_checkpoint_item(ck, l, item, MR_BIAS);
            assert_int_equal(m->shape[0], D);
            assert_int_equal(v->count, D);
            assert_int_equal(mr_tensor_read_f32(m, 0, m->count, part), 0);
            assert_int_equal(mr_tensor_read_f32(v, 0, v->count, bias), 0);
            for (int k = 0; k < D * D; k++)
                assert_true(part[k] == w[k % D * 3 * D + (i - 1) * D + k / D]);
            assert_memory_equal(bias, b + (size_t)(i - 1) * D, sizeof bias);
        }
    }
    mr_checkpoint_close(ck);
}

// The exported tensor is the one that was packed, in its place and to within the format.
static void exported_tensors_are_where_they_were(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed p;
    struct mr_pack_result result;
    struct mr_checkpoint *was, *now;
    const struct mr_pack_options opt = {0};
    static const char *const files[] = {"out/config.json", "out/model.safetensors", "out"};
    check(mr_pack_file(GPT2 "/bf16-d24", files_path("a.mill"), &opt, &result, &err), &err);
    check(mr_packed_open(&p, files_path("a.mill"), &opt, &err), &err);
    check(mr_export(&p, files_path("out"), NULL, &err), &err);
    check(mr_checkpoint_open(&was, GPT2 "/bf16-d24", MR_DECODER, NULL, &err), &err);
    check(mr_checkpoint_open(&now, files_path("out"), MR_DECODER, NULL, &err), &err);
    for (size_t i = 0; i < mr_checkpoint_count(was); i++) {
        const struct mr_tensor *a = mr_checkpoint_at(was, i), *b = mr_checkpoint_at(now, i);
        float *x = allocate(a->count, sizeof *x), *y = allocate(b->count, sizeof *y), top = 0;
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->rank, b->rank);
        assert_int_equal(a->shape[0], b->shape[0]);
        assert_int_equal(a->count, b->count);
        assert_int_equal(mr_tensor_read_f32(a, 0, a->count, x), 0);
        assert_int_equal(mr_tensor_read_f32(b, 0, b->count, y), 0);
        for (size_t k = 0; k < a->count; k++)
            top = fmaxf(top, fabsf(x[k]));
        for (size_t k = 0; k < a->count; k++)
            if (!(fabsf(x[k] - y[k]) <= (a->rank == 2 ? top / 64 : 0)))
                fail_msg("%s: element %zu was %g, is %g", a->name, k, (double)x[k], (double)y[k]);
        free(x);
        free(y);
    }
    mr_checkpoint_close(was);
    mr_checkpoint_close(now);
    mr_packed_close(&p);
    for (int i = 0; i < 3; i++)
        assert_int_equal(remove(files_path(files[i])), 0);
}

// A checkpoint in files_dir with one thing changed: in `name`'s entry of the header `from` becomes
// `to`, as long; or there is one tensor more, whose data begin where those of `name` do.
struct change {
    const char *name, *from, *to;
    const char *added, *entry;
};

static int opened_with(const struct change *x, struct mr_error *err)
{
    const struct mr_config c = shape_of(16, 2, 11);
    struct mr_checkpoint *ck;
    size_t size;
    uint64_t length;
    check(mr_synthetic_write(files_dir, &c, 7, err), err);
    char *file = files_read(files_path("model.safetensors"), &size);
    memcpy(&length, file, sizeof length);
    char *text = allocate((size_t)length + 256, 1);
    memcpy(text, file + 8, (size_t)length);
    char *at = x->name ? strstr(text, x->name) : NULL;
    at = at && x->from ? strstr(at, x->from) : at;
    if (at && x->from)
        memcpy(at, x->to, strlen(x->to));
    size_t header = strlen(text), data = size - 8 - (size_t)length;
    if (x->added) // behind the others: a copy of the first bytes of the table
        header += (size_t)sprintf(text + header - 1, ",\"%s\":{%s,\"data_offsets\":[%zu,%zu]}}",
                                  x->added, x->entry, data, data + 352) -
                  1;
    char *out = allocate(8 + header + data + 352, 1);
    length = header;
    memcpy(out, &length, 8);
    memcpy(out + 8, text, header);
    memcpy(out + 8 + header, file + size - data, data);
    at = strstr(text, "\"transformer.wte.weight\"");
    size_t table = at ? strtoull(strchr(strstr(at, "data_offsets"), '[') + 1, NULL, 10) : 0;
    memcpy(out + 8 + header + data, file + size - data + table, 352);
    (void)files_write("model.safetensors", out, 8 + header + data + (x->added ? 352 : 0));
    free(out);
    free(text);
    free(file);
    int rc = mr_checkpoint_open(&ck, files_dir, MR_DECODER, NULL, err);
    if (rc == 0)
        mr_checkpoint_close(ck);
    return rc;
}

static void refuses_tensors_that_gpt2_does_not_have(void **state)
{
    (void)state;
    static const struct {
        struct change x;
        const char *words;
        int status;
    } cases[] = {
        {{PREFIX "h.1.attn.c_attn.weight", "[16,48]", "[48,16]", NULL, NULL},
         "h.1.attn.c_attn.weight has shape [48, 16], but config.json implies [16, 48]",
         MR_ERR_FORMAT},
        {{PREFIX "h.0.attn.c_attn.bias", "c_attn", "c_attx", NULL, NULL},
         "h.0.attn.c_attx.bias is not part of a GPT-2 model with 2 layers",
         MR_ERR_FORMAT},
        {{PREFIX "h.0.attn.c_attn.bias", "h.0.attn.c_attn.bias", "h.0.attn.masked_bias", NULL,
          NULL},
         "h.0.attn.c_attn.bias is missing",
         MR_ERR_FORMAT},
        {{NULL, NULL, NULL, PREFIX "h.0.attn.q_proj.weight",
          "\"dtype\":\"BF16\",\"shape\":[11,16]"},
         "h.0.attn.q_proj.weight is not part of a GPT-2 model",
         MR_ERR_FORMAT},
        {{NULL, NULL, NULL, HEAD, "\"dtype\":\"F16\",\"shape\":[11,16]"},
         HEAD " differs from transformer.wte.weight",
         MR_ERR_UNSUPPORTED},
        {{NULL, NULL, NULL, HEAD, "\"dtype\":\"BF16\",\"shape\":[16,11]"},
         HEAD " has shape [16, 11], but config.json implies [11, 16]",
         MR_ERR_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_error err = {0};
        assert_refused(opened_with(&cases[i].x, &err), cases[i].status, &err, cases[i].words);
    }
}

// The head once more is the table, or the model is another one.
static void head_may_be_there_twice(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct change x = {.added = HEAD, .entry = "\"dtype\":\"BF16\",\"shape\":[11,16]"};
    check(opened_with(&(struct change){0}, &err), &err);
    check(opened_with(&x, &err), &err);
    size_t size;
    char *file = files_read(files_path("model.safetensors"), &size);
    file[size - 1] ^= 1; // of its last row
    (void)files_write("model.safetensors", file, size);
    struct mr_checkpoint *ck;
    assert_refused(mr_checkpoint_open(&ck, files_dir, MR_DECODER, NULL, &err), MR_ERR_UNSUPPORTED,
                   &err, "a head of its own is not supported");
    free(file);
}

static void refuses_parts_that_do_not_make_a_tensor(void **state)
{
    (void)state;
    struct mr_item items[9];
    struct mr_arch a = mr_arch_gpt2;
    a.type = "other";
    a.block.items = items;
    for (int i = 0; i < 5; i++) {
        struct mr_error err = {0};
        memcpy(items, mr_arch_gpt2.block.items, sizeof items);
        if (i == 0)
            items[2].share = 2;
        else if (i == 1)
            items[3].name = "attn.v";
        else if (i == 2)
            items[3].shares = 0;
        else if (i == 3)
            items[2].bias = false;
        else
            items[6].shares = 1, items[6].share = 1;
        assert_refused(mr_arch_register(&a, &err), MR_ERR_USAGE, &err,
                       "is no part of a tensor whose parts stand one behind the other");
    }
}

// ---- devices -----------------------------------------------------------------------------------

static void rtl_is_the_c_model(void **state)
{
    (void)state;
    static const struct {
        const char *name, *device;
        enum mr_format format;
        int tokens, chunk;
        bool two_pass;
    } runs[] = {
        {"bf16-d24", "sim:tiny,check,stalls=30,seed=5", MR_FORMAT_MXINT8, 5, 3, false},
        {"bf16-d24", "sim:sim,check", MR_FORMAT_MXFP4, 4, 0, true},
        {"fp16-d68-scaled-by-layer", "sim:tiny,check", MR_FORMAT_MXINT8, 5, 0, false},
        {"fp32-d16-bare-buffers", "sim:tiny,check,seed=9", MR_FORMAT_MXFP4, 7, 1, false},
        {"fp16-d68-scaled-by-layer", "sim:tiny,check,stalls=20", MR_FORMAT_MXINT8, 3, 1, true},
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct fixture f;
        struct ran want, got;
        char model[64];
        struct run_options o = {model, runs[i].chunk, runs[i].two_pass, INTERLEAVED};
        model_of(runs[i].device, model, sizeof model);
        open_fixture(&f, runs[i].name, runs[i].format);
        f.n_tok = runs[i].tokens;
        assert_int_equal(simulate(&f, &o, &want), 0);
        o.device = runs[i].device;
        assert_int_equal(simulate(&f, &o, &got), 0);
        if (got.logits != want.logits || got.kv != want.kv)
            fail_msg("%s on %s: %s are not the C model's", f.name, o.device,
                     got.logits != want.logits ? "logits" : "keys and values");
        close_fixture(&f);
    }
}

// A synthetic checkpoint with a tokenizer through the public API: the same text on every device.
static void generates_the_same_text_everywhere(void **state)
{
    (void)state;
    static const char *const devices[] = {"model:tiny", "model:sim", "sim:tiny"};
    enum { TOKENS = 6 };
    const struct mr_config c = shape_of(64, 2, 257);
    struct mr_error err = {0};
    struct mr_model *model;
    struct mr_model_info info;
    int32_t want[TOKENS], *prompt;
    check(mr_synthetic_write(files_dir, &c, 7, &err), &err);
    check(mr_model_load(&model, files_dir, NULL, &err), &err);
    mr_model_get_info(model, &info);
    assert_string_equal(info.architecture, "GPT-2");
    // Tables 257 and 24 of 64, norms, and twice: 4 d^2 + 2 d f weights, 5 d + f biases, norms.
    assert_int_equal(info.parameters, (257 + 24) * 64 + 128 +
                                          2 * (4 * 64 * 64 + 2 * 64 * 40 + 5 * 64 + 40 + 4 * 64));
    size_t count;
    check(mr_model_encode(model, "In the", 6, false, &prompt, &count, &err), &err);
    for (int i = 0; i < 3; i++) {
        struct mr_session *s;
        struct mr_generated out;
        const struct mr_session_options one = {.max_seqs = 1};
        const struct mr_generate_options greedy = {.max_tokens = TOKENS};
        const int32_t *prompts[] = {prompt};
        check(mr_session_open(&s, model, devices[i], &one, &err), &err);
        check(mr_generate(s, prompts, &count, 1, &greedy, &out, &err), &err);
        assert_int_equal(out.count, TOKENS);
        if (i == 0)
            memcpy(want, out.ids, sizeof want);
        assert_memory_equal(out.ids, want, sizeof want);
        mr_generated_free(&out);
        mr_session_close(s);
    }
    free(prompt);
    mr_model_close(model);
}

static void presets_are_shapes_of_the_papers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int layers, embd, heads, head, positions;
    } shapes[] = {
        {"gpt2", 12, 768, 12, 64, 1024},           {"gpt2-xl", 48, 1600, 25, 64, 1024},
        {"gpt3-xl", 24, 2048, 16, 128, 2048},      {"gpt3-175b", 96, 12288, 96, 128, 2048},
        {"cerebras-2.7b", 32, 2560, 32, 80, 2048}, {"cerebras-6.7b", 32, 4096, 32, 128, 2048},
        {"cerebras-13b", 40, 5120, 40, 128, 2048}};
    struct mr_config c;
    struct mr_error err = {0};
    uint64_t seed;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check(mr_synthetic_parse(shapes[i].name, &c, &seed, &err), &err);
        assert_ptr_equal(c.arch, &mr_arch_gpt2);
        assert_int_equal(c.n_layer, shapes[i].layers);
        assert_int_equal(c.n_embd, shapes[i].embd);
        assert_int_equal(c.n_head, shapes[i].heads);
        assert_int_equal(c.head_dim, shapes[i].head);
        assert_int_equal(c.n_inner, 4 * shapes[i].embd);
        assert_int_equal(c.n_positions, shapes[i].positions);
    }
    assert_refused(
        mr_synthetic_parse("gpt2-xxl", &c, &seed, &err), MR_ERR_USAGE, &err,
        "known are gptj-6b, gpt2, gpt2-xl, gpt3-xl, gpt3-175b, serial-6b, cerebras-2.7b, "
        "cerebras-6.7b, cerebras-13b, bert-base, minilm-l6");
    static const char *const wrong[] = {"gpt2,layers=13",   "gpt2,layers=0",
                                        "gpt2,layers=",     "gpt2,layers=1x",
                                        "gpt2,vocab=50258", "gpt2,seed=1000001",
                                        "gpt2,seed=-1",     "gpt2,layers=1,layers=1",
                                        "gpt2,other=1",     "gpt2,",
                                        "gpt2,layers=1,"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refused(mr_synthetic_parse(wrong[i], &c, &seed, &err), MR_ERR_USAGE, &err,
                       "expected are layers=1..12, vocab=1..50257, seed=1..1000000, each at most");
}

// What was saved with one scale of scores is not taken for the other's.
static void scale_of_scores_is_part_of_the_identity(void **state)
{
    (void)state;
    uint64_t identity[2];
    for (int i = 0; i < 2; i++) {
        struct mr_config c = shape_of(16, 2, 11);
        struct mr_error err = {0};
        struct mr_packed p;
        const struct mr_pack_options opt = {0};
        c.scale_by_layer = i;
        check(mr_packed_synthetic(&p, &c, &opt, 1, &err), &err);
        check(mr_packed_identity(&p, &identity[i], &err), &err);
        mr_packed_close(&p);
    }
    assert_true(identity[0] != identity[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_settings_that_it_computes),
        cmocka_unit_test(refuses_settings_that_it_does_not_compute),
        cmocka_unit_test(q_k_and_v_are_parts_of_one_tensor),
        cmocka_unit_test(exported_tensors_are_where_they_were),
        cmocka_unit_test(refuses_tensors_that_gpt2_does_not_have),
        cmocka_unit_test(head_may_be_there_twice),
        cmocka_unit_test(refuses_parts_that_do_not_make_a_tensor),
        cmocka_unit_test(rtl_is_the_c_model),
        cmocka_unit_test(generates_the_same_text_everywhere),
        cmocka_unit_test(presets_are_shapes_of_the_papers),
        cmocka_unit_test(scale_of_scores_is_part_of_the_identity),
    };
    return cmocka_run_group_tests_name("gpt2", tests, files_setup, files_teardown);
}
