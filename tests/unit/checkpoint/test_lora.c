// SPDX-License-Identifier: Apache-2.0
// Adapters: which matrices their targets name, what they add to them, and PEFT's directory, good
// and bad.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/peft.h"
#include "unit/odd_model.h"

enum { RANK = 3 };

static const char *const models[] = {"gptj", "gpt2"};

static int make_models(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        odd_model(models[i], 2, 100);
    return 0;
}

static int remove_all(void **state)
{
    static const char *const made[] = {"gptj", "gpt2", "adapter"};
    (void)state;
    for (int i = 0; i < 3; i++)
        if (access(files_path(made[i]), F_OK) == 0)
            remove_dir(files_path(made[i]));
    return 0;
}

static const char *const *all_of(const char *type)
{
    static const char *const gptj[] = {"q_proj", "mlp.fc_out", NULL}, *const gpt2[] = {"all-linear",
                                                                                       NULL};
    return strcmp(type, "gptj") == 0 ? gptj : gpt2;
}

// Both factors drawn, B too.
static void new_adapter(struct mr_lora *l, const struct mr_config *c, const char *const *targets)
{
    struct mr_error err = {0};
    check(mr_lora_new(l, c, RANK, 6, targets, &err), &err);
    mr_lora_draw(l, 5);
    for (size_t k = 0; k < l->count; k++)
        for (size_t i = 0; i < (size_t)RANK * (size_t)l->pair[k].outputs; i++)
            l->pair[k].b[i] = (float)((int)((i * 37 + k * 11) % 41) - 20) / 64;
}

static void save(const struct mr_lora *l, const struct mr_config *c)
{
    struct mr_error err = {0};
    struct mr_directory d;
    check(mr_directory_open(&d, files_path("adapter"), NULL, &err), &err);
    check(mr_peft_write(l, c, "some/model", &d, &err), &err);
    check(mr_directory_end(&d, 0, &err), &err);
}

static struct mr_checkpoint *open_model(const char *type, const char *adapter)
{
    struct mr_error err = {0};
    struct mr_checkpoint *c;
    check(mr_checkpoint_open(&c, files_path(type), MR_DECODER, adapter, &err), &err);
    return c;
}

// ---- which matrices
// ------------------------------------------------------------------------------

static void targets_are_names_of_modules(void **unused)
{
    (void)unused;
    static const struct {
        const char *type, *target;
        size_t count;
        int inputs, outputs, shares; // of the first
    } cases[] = {
        {"gptj", NULL, 4, 40, 40, 1},
        {"gptj", "v_proj", 2, 40, 40, 1},
        {"gptj", "h.1.attn.v_proj", 1, 40, 40, 1},
        {"gptj", "fc_in", 2, 40, 100, 1},
        {"gptj", "mlp.fc_out", 2, 100, 40, 1},
        {"gptj", "lm_head", 1, 40, 96, 1},
        {"gptj", "all-linear", 12, 40, 40, 1},
        {"gpt2", NULL, 2, 40, 120, 3},
        {"gpt2", "c_proj", 4, 40, 40, 1},
        {"gpt2", "mlp.c_proj", 2, 100, 40, 1},
        {"gpt2", "all-linear", 8, 40, 120, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_error err = {0};
        struct mr_lora l;
        struct mr_checkpoint *c = open_model(cases[i].type, NULL);
        const char *const targets[] = {cases[i].target, NULL};
        check(
            mr_lora_new(&l, mr_checkpoint_config(c), 4, 8, cases[i].target ? targets : NULL, &err),
            &err);
        assert_int_equal(l.count, cases[i].count);
        assert_int_equal(l.pair[0].inputs, cases[i].inputs);
        assert_int_equal(l.pair[0].outputs, cases[i].outputs);
        assert_int_equal(l.pair[0].shares, cases[i].shares);
        for (size_t k = 0; k < l.count; k++)
            for (int s = 0, share = -1; s < l.pair[k].shares; s++, share = -1) {
                size_t tensor = l.pair[k].tensor + (size_t)s * l.pair[k].step;
                assert_ptr_equal(mr_lora_of(&l, tensor, &share), &l.pair[k]);
                assert_int_equal(share, s);
            }
        mr_lora_free(&l);
        mr_checkpoint_close(c);
    }
}

static void wrong_settings_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        int rank;
        double alpha;
        const char *target, *says;
    } cases[] = {
        {0, 8, "q_proj", "LoRA's rank is 0; 1 to 512"},
        {513, 8, "q_proj", "LoRA's rank is 513"},
        {8, 0, "q_proj", "LoRA's alpha is 0; above 0"},
        {8, NAN, "q_proj", "LoRA's alpha is nan"},
        {8, 2e6, "q_proj", "LoRA's alpha is 2e+06"},
        {8, 8, "c_attn",
         "LoRA's target 'c_attn': the model has no matrix of that name; its blocks "
         "have q_proj, k_proj, v_proj, out_proj, fc_in, fc_out"},
        {8, 8, "_proj", "LoRA's target '_proj': the model has no"},
        {8, 8, "ln_1", "LoRA's target 'ln_1': the model has no"},
        {8, 8, "wte", "LoRA's target 'wte': the model has no"},
    };
    struct mr_checkpoint *c = open_model("gptj", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_error err = {0};
        struct mr_lora l;
        const char *const targets[] = {"v_proj", cases[i].target, NULL};
        assert_refused(
            mr_lora_new(&l, mr_checkpoint_config(c), cases[i].rank, cases[i].alpha, targets, &err),
            MR_ERR_USAGE, &err, cases[i].says);
        assert_null(l.pair);
    }
    const char *many[MR_LORA_TARGETS + 2] = {NULL};
    for (int i = 0; i <= MR_LORA_TARGETS; i++)
        many[i] = "q_proj";
    struct mr_error err = {0};
    struct mr_lora l;
    assert_refused(mr_lora_new(&l, mr_checkpoint_config(c), 8, 8, many, &err), MR_ERR_USAGE, &err,
                   "LoRA has 16 targets at most");
    mr_checkpoint_close(c);
}

static void a_new_adapter_changes_nothing(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_lora l, other;
    struct mr_checkpoint *c = open_model("gptj", NULL);
    check(mr_lora_new(&l, mr_checkpoint_config(c), 8, 8, NULL, &err), &err);
    check(mr_lora_new(&other, mr_checkpoint_config(c), 8, 8, NULL, &err), &err);
    mr_lora_draw(&l, 1);
    mr_lora_draw(&other, 2);
    double sum = 0, squares = 0, most = 1 / sqrt(40.0);
    size_t n = 0;
    for (size_t k = 0; k < l.count; k++) {
        for (size_t i = 0; i < 8 * 40; i++, n++) {
            assert_true(fabs((double)l.pair[k].a[i]) <= most);
            sum += (double)l.pair[k].a[i];
            squares += (double)l.pair[k].a[i] * (double)l.pair[k].a[i];
        }
        for (size_t i = 0; i < 8 * 40; i++)
            assert_true(l.pair[k].b[i] == 0.0F);
        assert_memory_not_equal(l.pair[k].a, other.pair[k].a, 8 * 40 * sizeof(float));
    }
    assert_true(fabs(sum / (double)n) < 0.05 * most); // even: mean 0, variance most^2 / 3
    assert_true(fabs(squares / (double)n * 3 / (most * most) - 1) < 0.1);
    mr_lora_free(&l);
    mr_lora_free(&other);
    mr_checkpoint_close(c);
}

// ---- what they add
// -------------------------------------------------------------------------------

// Every weight of the model beside W + alpha / r B A in double, and the bits of the order in fp32.
static void check_merged(const struct mr_lora *l, const struct mr_checkpoint *base,
                         const struct mr_checkpoint *merged)
{
    const struct mr_config *c = mr_checkpoint_config(base);
    for (size_t i = 0; i < mr_tensor_specs(c); i++) {
        struct mr_tensor_spec t = mr_tensor_spec(c, i);
        int layer = t.layer < 0 ? c->n_layer : t.layer, share = 0;
        const struct mr_tensor *from = mr_checkpoint_item(base, layer, t.item, t.part);
        const struct mr_tensor *to = mr_checkpoint_item(merged, layer, t.item, t.part);
        const struct mr_lora_pair *p = mr_lora_of(l, i, &share);
        float *was = allocate(from->count, sizeof *was), *is = allocate(from->count, sizeof *is);
        assert_int_equal(mr_tensor_read_f32(from, 0, from->count, was), 0);
        assert_int_equal(mr_tensor_read_f32(to, 0, from->count, is), 0);
        for (size_t e = 0; e < from->count; e++) {
            float sum = 0;
            double exact = 0;
            size_t inputs = p ? (size_t)p->inputs : 1;
            size_t o = e / inputs + (p ? (size_t)(share * p->outputs / p->shares) : 0);
            for (size_t k = 0; p && k < RANK; k++) {
                sum += p->b[o * RANK + k] * p->a[k * inputs + e % inputs];
                exact += (double)p->b[o * RANK + k] * (double)p->a[k * inputs + e % inputs];
            }
            assert_true(is[e] == (p ? was[e] + 2.0F * sum : was[e]));
            assert_true(fabs((double)is[e] - (double)was[e] - 2 * exact) < 1e-6);
        }
        free(was);
        free(is);
    }
}

static void merged_weights_are_those_of_the_formula(void **unused)
{
    (void)unused;
    for (int i = 0; i < 2; i++) {
        struct mr_error err = {0};
        struct mr_lora l, back;
        struct mr_checkpoint *base = open_model(models[i], NULL);
        const struct mr_config *c = mr_checkpoint_config(base);
        new_adapter(&l, c, all_of(models[i]));
        save(&l, c);
        struct mr_checkpoint *merged = open_model(models[i], files_path("adapter"));
        check_merged(&l, base, merged);
        check(mr_peft_read(&back, c, files_path("adapter"), &err), &err);
        assert_int_equal(back.count, l.count);
        assert_true(mr_lora_factor(&back) == 2.0F && !back.root && back.dropout == 0);
        back.root = true; // "use_rslora"
        assert_true(mr_lora_factor(&back) == (float)(6 / sqrt(RANK)));
        for (size_t k = 0; k < l.count; k++) {
            assert_memory_equal(back.pair[k].a, l.pair[k].a,
                                (size_t)(RANK * l.pair[k].inputs) * sizeof(float));
            assert_memory_equal(back.pair[k].b, l.pair[k].b,
                                (size_t)(RANK * l.pair[k].outputs) * sizeof(float));
        }
        mr_lora_free(&l);
        mr_lora_free(&back);
        mr_checkpoint_close(base);
        mr_checkpoint_close(merged);
        remove_dir(files_path("adapter"));
    }
}

// ---- PEFT's directory
// ----------------------------------------------------------------------------

// Changes a file of the adapter that was saved.
static void change(const char *name, const char *from, const char *to)
{
    char path[600];
    size_t size, n = strlen(from);
    (void)snprintf(path, sizeof path, "%s/%s", files_path("adapter"), name);
    char *text = files_read(path, &size), *at = memmem(text, size, from, n);
    if (!at)
        fail_msg("%s has no %s:\n%s", name, from, text);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fwrite(text, 1, (size_t)(at - text), f);
    (void)fputs(to, f);
    (void)fwrite(at + n, 1, size - (size_t)(at - text) - n, f);
    assert_int_equal(fclose(f), 0);
    free(text);
}

// Writes an adapter whose adapter_config.json has `from` replaced by `to`, and expects this.
static void refuse_changed(const struct mr_config *c, const char *from, const char *to, int status,
                           const char *says)
{
    struct mr_error err = {0};
    struct mr_lora l, back;
    new_adapter(&l, c, all_of("gptj"));
    save(&l, c);
    change("adapter_config.json", from, to);
    int rc = mr_peft_read(&back, c, files_path("adapter"), &err);
    if (status == 0)
        check(rc, &err);
    else
        assert_refused(rc, status, &err, says);
    mr_lora_free(&back);
    mr_lora_free(&l);
    remove_dir(files_path("adapter"));
}

static void refuses_what_it_does_not_do(void **unused)
{
    (void)unused;
    static const struct {
        const char *from, *to;
        int status;
        const char *says;
    } cases[] = {
        {"\"LORA\"", "\"LOHA\"", MR_ERR_UNSUPPORTED, "\"peft_type\" is not \"LORA\""},
        {"\"LORA\"", "7", MR_ERR_UNSUPPORTED, "\"peft_type\" is not \"LORA\""},
        {"\"use_dora\": false", "\"use_dora\": 1", MR_ERR_UNSUPPORTED, "\"use_dora\" is set: DoRA"},
        {"\"use_dora\": false", "\"use_dora\": 0", 0, NULL},
        {"\"bias\": \"none\"", "\"bias\": \"\"", 0, NULL},
        {"\"r\": 3,", "", MR_ERR_FORMAT, "is not [8, 40], as the model and the adapter's rank"},
        {"\"use_dora\": false", "\"use_dora\": true", MR_ERR_UNSUPPORTED,
         "\"use_dora\" is set: DoRA"},
        {"\"bias\": \"none\"", "\"bias\": \"all\"", MR_ERR_UNSUPPORTED, "\"bias\" is not \"none\""},
        {"\"modules_to_save\": null", "\"modules_to_save\": [\"lm_head\"]", MR_ERR_UNSUPPORTED,
         "\"modules_to_save\" names modules"},
        {"\"rank_pattern\": {}", "\"rank_pattern\": {\"q_proj\": 4}", MR_ERR_UNSUPPORTED,
         "\"rank_pattern\" gives single modules another rank"},
        {"\"alpha_pattern\": {}", "\"alpha_pattern\": {\"q_proj\": 4}", MR_ERR_UNSUPPORTED,
         "\"alpha_pattern\" gives"},
        {"\"lora_alpha\": 6", "\"lora_alpha\": \"6\"", MR_ERR_FORMAT,
         "\"lora_alpha\" is no number"},
        {"\"lora_alpha\": 6", "\"lora_alpha\": 0", MR_ERR_FORMAT, "\"lora_alpha\" is no number"},
        {"\"r\": 3", "\"r\": 2.5", MR_ERR_FORMAT, "\"r\" is 2.5, no whole number"},
        {"\"r\": 3", "\"r\": -1", MR_ERR_FORMAT, "\"r\" is no number of 1 to 512"},
        {"\"r\": 3", "\"r\": 4", MR_ERR_FORMAT,
         "is not [4, 40], as the model and the adapter's rank"},
        {"[\n    \"q_proj\",\n    \"mlp.fc_out\"\n  ]", "\".*q_proj\"", MR_ERR_UNSUPPORTED,
         "\"target_modules\" is a regular expression"},
        {"[\n    \"q_proj\",\n    \"mlp.fc_out\"\n  ]", "[]", MR_ERR_FORMAT,
         "\"target_modules\" is no list of 1 to 16 names"},
        {"\"mlp.fc_out\"", "7", MR_ERR_FORMAT, "\"target_modules\" has an integer where a name"},
        {"\"mlp.fc_out\"", "\"c_fc\"", MR_ERR_USAGE, "LoRA's target 'c_fc': the model has no"},
        {"\"mlp.fc_out\"", "\"k_proj\"", MR_ERR_FORMAT, "fc_out.lora_A.weight is of no matrix"},
        {"\"q_proj\"", "\"h.0.attn.q_proj\"", MR_ERR_FORMAT,
         "h.1.attn.q_proj.lora_A.weight is of no"},
        {"\"mlp.fc_out\"", "\"mlp.fc_out\", \"v_proj\"", MR_ERR_FORMAT,
         "has no transformer.h.0.attn.v_proj.lora_A.weight"},
        {"\"use_rslora\": false", "\"use_rslora\": true", 0, NULL},
        {"\"lora_dropout\": 0.0", "\"lora_dropout\": 0.1", 0, NULL},
        {"\"lora_dropout\": 0.0", "\"lora_dropout\": 2", MR_ERR_FORMAT,
         "\"lora_dropout\" is no number"},
    };
    struct mr_checkpoint *c = open_model("gptj", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse_changed(mr_checkpoint_config(c), cases[i].from, cases[i].to, cases[i].status,
                       cases[i].says);
    mr_checkpoint_close(c);
}

// PEFT takes "all-linear" as a string, and where it stands in a list as the name of a module, which
// no model has.
static void all_linear_is_a_word_of_the_user_and_no_name(void **unused)
{
    (void)unused;
    static const char names[] = "[\n    \"attn.c_attn\",\n    \"attn.c_proj\",\n    "
                                "\"mlp.c_fc\",\n    \"mlp.c_proj\"\n  ]";
    struct mr_error err = {0};
    struct mr_lora l, back;
    struct mr_checkpoint *m = open_model("gpt2", NULL);
    const struct mr_config *c = mr_checkpoint_config(m);
    new_adapter(&l, c, all_of("gpt2"));
    save(&l, c);
    change("adapter_config.json", names, "\"all-linear\"");
    check(mr_peft_read(&back, c, files_path("adapter"), &err), &err);
    assert_int_equal(back.count, 8);
    assert_string_equal(back.target[3], "mlp.c_proj");
    assert_null(back.target[4]);
    mr_lora_free(&l);
    mr_lora_free(&back);
    mr_checkpoint_close(m);
    remove_dir(files_path("adapter"));
}

// In a file that is else whole: the other texts are as long.
static void refuses_tensors_that_do_not_belong(void **unused)
{
    (void)unused;
    static const struct {
        const char *from, *to;
        int status;
        const char *says;
    } cases[] = {
        // with and without the prefix of a model that writes
        {"\"base_model.model.transformer.h.1.attn.q_proj.lora_B.weight\":",
         "\"base_model.model.h.0.attn.q_proj.lora_B.weight\"            :", MR_ERR_FORMAT,
         "h.0.attn.q_proj.lora_B.weight occurs twice"},
        {"\"F32\",\"shape\":[100,3]", "\"I32\",\"shape\":[100,3]", MR_ERR_UNSUPPORTED,
         "lora_B.weight has type I32; F32, F16 or BF16"},
        {"\"base_model.model.transformer.h.1.attn.q_proj.lora_B.weight\":",
         "\"base_modem.model.transformer.h.1.attn.q_proj.lora_B.weight\":", MR_ERR_FORMAT,
         "lora_B.weight is of no matrix that the model has"},
        {"\"base_model.model.transformer.h.1.attn.q_proj.lora_B.weight\":",
         "\"lora_B.weight\"                                             :", MR_ERR_FORMAT,
         "lora_B.weight is of no matrix that the model has"},
        {"\"F32\",\"shape\":[3,100]", "\"F32\",\"shape\":[  300]", MR_ERR_FORMAT,
         "fc_out.lora_A.weight is not [3, 100], as the model and the adapter's rank want it"},
        {"\"F32\",\"shape\":[3,100]", "\"F32\",\"shape\":[100,3]", MR_ERR_FORMAT,
         "fc_out.lora_A.weight is not [3, 100], as the model and the adapter's rank want it"},
        {"\"F32\",\"shape\":[3,100]", "\"F16\",\"shape\":[3,200]", MR_ERR_FORMAT,
         "fc_out.lora_A.weight is not [3, 100], as the model and the adapter's rank want it"},
    };
    static const char *const targets[] = {"q_proj", "mlp.fc_out", "mlp.fc_in", NULL};
    struct mr_checkpoint *m = open_model("gptj", NULL);
    const struct mr_config *c = mr_checkpoint_config(m);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_error err = {0};
        struct mr_lora l, back;
        new_adapter(&l, c, targets);
        save(&l, c);
        change("adapter_model.safetensors", cases[i].from, cases[i].to);
        assert_refused(mr_peft_read(&back, c, files_path("adapter"), &err), cases[i].status, &err,
                       cases[i].says);
        mr_lora_free(&l);
        remove_dir(files_path("adapter"));
    }
    mr_checkpoint_close(m);
}

// Numbers that are none, files that end early or are not there.
static void refuses_damaged_files(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_lora l, back;
    char path[600];
    size_t size;
    struct mr_checkpoint *m = open_model("gptj", NULL);
    const struct mr_config *c = mr_checkpoint_config(m);
    assert_refused(mr_peft_read(&back, c, files_path("gptj"), &err), MR_ERR_IO, &err,
                   "has no adapter_config.json; give the directory of a PEFT adapter");
    new_adapter(&l, c, all_of("gptj"));
    l.pair[1].b[5] = NAN;
    save(&l, c);
    assert_refused(mr_peft_read(&back, c, files_path("adapter"), &err), MR_ERR_FORMAT, &err,
                   "element 5 of base_model.model.transformer.h.0.mlp.fc_out.lora_B.weight is "
                   "infinite or NaN");
    (void)snprintf(path, sizeof path, "%s/adapter_model.safetensors", files_path("adapter"));
    char *data = files_read(path, &size);
    assert_int_equal(truncate(path, (off_t)size - 4), 0);
    assert_refused(mr_peft_read(&back, c, files_path("adapter"), &err), MR_ERR_FORMAT, &err, path);
    char header[300]; // of a tensor whose name is longer than any of a model
    (void)snprintf(header, sizeof header,
                   "{\"base_model.model.%0120d.lora_A.weight\":{\"dtype\":\"F32\",\"shape\":[0],"
                   "\"data_offsets\":[0,0]}}",
                   0);
    (void)files_write_safetensors("adapter/adapter_model.safetensors", header, 0);
    assert_refused(mr_peft_read(&back, c, files_path("adapter"), &err), MR_ERR_FORMAT, &err,
                   "000... is of no matrix that the model has");
    assert_int_equal(unlink(path), 0);
    assert_refused(mr_peft_read(&back, c, files_path("adapter"), &err), MR_ERR_IO, &err,
                   "there is neither adapter_model.safetensors nor adapter_model.bin beside it");
    free(data);
    mr_lora_free(&l);
    mr_checkpoint_close(m);
    remove_dir(files_path("adapter"));
}

// What has come into the directory since it was looked at stays, and is all that is there.
static void a_directory_that_is_filled_meanwhile_is_left_alone(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_directory d;
    check(mr_directory_open(&d, files_path("adapter"), NULL, &err), &err);
    char *tmp = strdup(d.tmp);
    assert_int_equal(mkdir(files_path("adapter"), 0700), 0);
    const char *other = files_write_text("adapter/other", "theirs");
    assert_refused(mr_directory_end(&d, 0, &err), MR_ERR_IO, &err,
                   "adapter: exists and is not empty");
    assert_int_equal(access(other, F_OK), 0);
    assert_int_equal(access(tmp, F_OK), -1);
    free(tmp);
    remove_dir(files_path("adapter"));
}

// What is written into, or put in the place of, may change meanwhile as well.
static void a_directory_that_cannot_be_written_is_refused(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_directory d;
    struct mr_lora l;
    struct mr_checkpoint *m = open_model("gptj", NULL);
    assert_refused(mr_directory_check("", &err), MR_ERR_USAGE, &err, "without a name");
    new_adapter(&l, mr_checkpoint_config(m), all_of("gptj"));
    check(mr_directory_open(&d, files_path("adapter"), NULL, &err), &err);
    assert_int_equal(rmdir(d.tmp), 0);
    int rc = mr_peft_write(&l, mr_checkpoint_config(m), "some/model", &d, &err);
    assert_refused(rc, MR_ERR_IO, &err,
                   "adapter: cannot create adapter_config.json: No such file or directory");
    assert_int_equal(mr_directory_end(&d, rc, &err), MR_ERR_IO);
    check(mr_directory_open(&d, files_path("adapter"), NULL, &err), &err);
    const char *file = files_write_text("adapter", "");
    assert_refused(mr_directory_end(&d, 0, &err), MR_ERR_IO, &err,
                   "adapter: cannot put the directory there: Not a directory");
    assert_int_equal(unlink(file), 0);
    mr_lora_free(&l);
    mr_checkpoint_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_names_of_modules),
        cmocka_unit_test(wrong_settings_are_refused),
        cmocka_unit_test(a_new_adapter_changes_nothing),
        cmocka_unit_test(merged_weights_are_those_of_the_formula),
        cmocka_unit_test(refuses_what_it_does_not_do),
        cmocka_unit_test(all_linear_is_a_word_of_the_user_and_no_name),
        cmocka_unit_test(refuses_tensors_that_do_not_belong),
        cmocka_unit_test(refuses_damaged_files),
        cmocka_unit_test(a_directory_that_is_filled_meanwhile_is_left_alone),
        cmocka_unit_test(a_directory_that_cannot_be_written_is_refused),
    };
    if (files_setup(NULL) != 0)
        return 1;
    int rc = cmocka_run_group_tests(tests, make_models, remove_all);
    return files_teardown(NULL) != 0 ? 1 : rc;
}
