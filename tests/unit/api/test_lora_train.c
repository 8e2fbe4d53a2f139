// SPDX-License-Identifier: Apache-2.0
// Training of a LoRA adapter: its gradients follow from those of the weights, its weights are the
// model's and the pairs', and only an adapter is in its state. With a GPT-J and a GPT-2 of odd
// sizes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "checkpoint/peft.h"
#include "millrace.h"
#include "unit/odd_model.h"

enum { RANK = 3, DEVICES = 2 };

static const char *const uris[DEVICES] = {"model:tinyt", "model:sim,train"};
static const int32_t lengths[] = {9, 5, 7}, tokens[] = {5,  6, 7, 1,  2,  3, 4, 90, 81, 44, 45,
                                                        46, 9, 9, 17, 80, 3, 2, 60, 61, 62};
static const struct mr_micro_batch batch = {.sequences = 3, .lengths = lengths, .tokens = tokens};

static const char *const gptj_targets[] = {"q_proj", "out_proj", "fc_in", "mlp.fc_out", NULL};
static const char *const gpt2_targets[] = {"c_attn", "mlp.c_proj", NULL};

// What one test has at work.
struct subject {
    const char *type;
    struct mr_lora_options lora;
    struct mr_trainer_options options;
    struct mr_checkpoint *base;
    const struct mr_config *config;
    char model[600];
};

static void subject_open(struct subject *s, const char *type)
{
    struct mr_error err = {0};
    bool rotates = strcmp(type, "gptj") == 0;
    odd_model(type, 2, 600);
    *s = (struct subject){.type = type};
    (void)snprintf(s->model, sizeof s->model, "%s", files_path(type));
    check(mr_checkpoint_open(&s->base, s->model, MR_DECODER, NULL, &err), &err);
    s->config = mr_checkpoint_config(s->base);
    s->lora = (struct mr_lora_options){
        .rank = RANK, .alpha = 6, .targets = rotates ? gptj_targets : gpt2_targets, .seed = 7};
    s->options = (struct mr_trainer_options){.tokens = 21, .model = s->model, .lora = &s->lora};
}

static void subject_close(struct subject *s)
{
    mr_checkpoint_close(s->base);
    remove_dir(s->model);
}

static struct mr_trainer *open_state(const struct subject *s, const char *uri)
{
    struct mr_error err = {0};
    struct mr_trainer *t;
    check(mr_trainer_open(&t, files_path("state"), uri, &s->options, &err), &err);
    return t;
}

static struct mr_trainer *open_new(const struct subject *s, const char *uri)
{
    struct mr_error err = {0};
    check(mr_trainer_create_lora(files_path("state"), s->model, 0, &s->lora, &err), &err);
    return open_state(s, uri);
}

static void step(struct mr_trainer *t, double rate, double clip, struct mr_trainer_done *done)
{
    struct mr_error err = {0};
    const struct mr_trainer_update u = {.rate = rate, .clip = clip, .optimizer = MR_OPTIMIZER_SGD};
    check(mr_trainer_apply(t, &u, done, &err), &err);
}

// The adapter that the state has now.
static void read_adapter(const struct subject *s, const struct mr_trainer *t, struct mr_lora *l)
{
    struct mr_error err = {0};
    check(mr_trainer_save_adapter(t, files_path("adapter"), &err), &err);
    check(mr_peft_read(l, s->config, files_path("adapter"), &err), &err);
    remove_dir(files_path("adapter"));
}

static float *tensor(const struct mr_trainer *t, const char *name, size_t n, bool gradient)
{
    struct mr_error err = {0};
    float *x = allocate(n, sizeof *x);
    check((gradient ? mr_trainer_gradient : mr_trainer_weights)(t, name, x, n, &err), &err);
    return x;
}

static const char *weight_name(const struct subject *s, const struct mr_lora_pair *p,
                               char name[MR_NAME + 8])
{
    char module[MR_NAME];
    (void)snprintf(name, MR_NAME + 8, "%s.weight", mr_lora_module(s->config, p, module));
    return name;
}

// ---- weights ------------------------------------------------------------------------------------

// Every weight of the model is the checkpoint's and its pair's part, bit for bit.
static void check_weights(const struct subject *s, const struct mr_trainer *t,
                          const struct mr_lora *l)
{
    for (size_t i = 0; i < mr_tensor_specs(s->config); i++) {
        struct mr_tensor_spec spec = mr_tensor_spec(s->config, i);
        char name[MR_NAME];
        int share;
        if (spec.item->share > 0)
            continue;
        mr_tensor_name(s->config, spec.layer, spec.item, spec.part, name);
        const struct mr_tensor *from = mr_checkpoint_tensor(s->base, name);
        const struct mr_lora_pair *p = mr_lora_of(l, i, &share);
        float *is = tensor(t, name, from->count, false),
              *want = allocate(from->count, sizeof *want);
        read_tensor(from, want);
        for (int o = 0; p && o < p->outputs; o++)
            for (int k = 0; k < p->inputs; k++) {
                size_t at = spec.item->transposed ? (size_t)(k * p->outputs + o)
                                                  : (size_t)(o * p->inputs + k);
                mr_lora_add(l, p, o, k, 1, &want[at]);
            }
        assert_memory_equal(is, want, from->count * sizeof *is);
        free(is);
        free(want);
    }
}

// The model that is saved with its adapter has the loss of the adapter's state.
static void check_merged(const struct mr_trainer *t, const char *uri)
{
    struct mr_error err = {0};
    struct mr_batch_loss here, there;
    struct mr_trainer *merged;
    check(mr_trainer_save(t, files_path("merged"), MR_SAVE_F32, &err), &err);
    check(mr_trainer_create(files_path("plain"), files_path("merged"), 0, &err), &err);
    check(mr_trainer_open(&merged, files_path("plain"), uri,
                          &(struct mr_trainer_options){.tokens = 21}, &err),
          &err);
    check(mr_trainer_evaluate((struct mr_trainer *)(uintptr_t)t, &batch, &here, &err), &err);
    check(mr_trainer_evaluate(merged, &batch, &there, &err), &err);
    assert_true(here.loss == there.loss);
    mr_trainer_close(merged);
    remove_dir(files_path("plain"));
    remove_dir(files_path("merged"));
}

// ---- gradients ----------------------------------------------------------------------------------

// Of the pair, from those of its weights: da[rank][inputs], db[outputs][rank].
static void plain_gradients(const struct subject *s, const struct mr_lora *l,
                            const struct mr_lora_pair *p, const float *dw, double *da, double *db)
{
    bool transposed = mr_tensor_spec(s->config, p->tensor).item->transposed;
    for (int o = 0; o < p->outputs; o++)
        for (int i = 0; i < p->inputs; i++) {
            double g = (double)dw[transposed ? i * p->outputs + o : o * p->inputs + i] *
                       (double)mr_lora_factor(l);
            for (int k = 0; k < l->rank; k++) {
                db[o * l->rank + k] += g * (double)p->a[k * p->inputs + i];
                da[k * p->inputs + i] += g * (double)p->b[o * l->rank + k];
            }
        }
}

// now = was - rate x clipped gradient, to the rounding of fp32.
static void check_moved(const float *was, const float *now, const double *g, size_t n, double rate)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fabs(g[i]) > most ? fabs(g[i]) : most;
    for (size_t i = 0; i < n; i++) {
        double want = (double)was[i] - rate * g[i];
        double off = fabs((double)now[i] - want);
        if (off > 1e-6 * rate * most + 1e-7 * fabs(want))
            fail_msg("element %zu: %.9g, not %.9g", i, (double)now[i], want);
    }
}

static void one_step(const struct subject *s, struct mr_trainer *t, double rate, double clip)
{
    struct mr_error err = {0};
    struct mr_lora was, now;
    struct mr_trainer_done done;
    double squares = 0, *g[2][32];
    read_adapter(s, t, &was);
    assert_true(was.count <= 32);
    check(mr_trainer_begin(t, 2, &err), &err);
    for (int k = 0; k < 2; k++)
        check(mr_trainer_backward(t, &batch, NULL, &err), &err);
    for (size_t k = 0; k < was.count; k++) {
        const struct mr_lora_pair *p = &was.pair[k];
        size_t na = (size_t)(RANK * p->inputs), nb = (size_t)(RANK * p->outputs);
        char name[MR_NAME + 8];
        float *dw =
            tensor(t, weight_name(s, p, name), (size_t)p->inputs * (size_t)p->outputs, true);
        g[0][k] = allocate(na, sizeof(double));
        g[1][k] = allocate(nb, sizeof(double));
        plain_gradients(s, &was, p, dw, g[0][k], g[1][k]);
        for (size_t i = 0; i < na; i++)
            squares += g[0][k][i] * g[0][k][i];
        for (size_t i = 0; i < nb; i++)
            squares += g[1][k][i] * g[1][k][i];
        free(dw);
    }
    step(t, rate, clip, &done);
    double norm = sqrt(squares) / (double)done.targets;
    assert_true(norm > 0 && fabs(done.norm / norm - 1) < 1e-5);
    read_adapter(s, t, &now);
    double by = rate / (double)done.targets * (clip > 0 && norm > clip ? clip / norm : 1);
    for (size_t k = 0; k < was.count; k++) {
        const struct mr_lora_pair *p = &was.pair[k];
        check_moved(p->a, now.pair[k].a, g[0][k], (size_t)(RANK * p->inputs), by);
        check_moved(p->b, now.pair[k].b, g[1][k], (size_t)(RANK * p->outputs), by);
        free(g[0][k]);
        free(g[1][k]);
    }
    check_weights(s, t, &now);
    mr_lora_free(&was);
    mr_lora_free(&now);
}

static void check_training(const char *type)
{
    struct subject s;
    struct mr_trainer_info info;
    struct mr_lora begin;
    struct mr_error err = {0};
    float one;
    subject_open(&s, type);
    struct mr_trainer *t = open_new(&s, uris[0]);
    read_adapter(&s, t, &begin);
    check_weights(&s, t, &begin); // B is zero
    mr_trainer_get_info(t, &info);
    assert_true(info.adapter && info.trainable == mr_lora_parameters(&begin) &&
                info.parameters == mr_config_parameters(s.config));
    one_step(&s, t, 0.5, 0);
    one_step(&s, t, 0.5, 0.01); // B is not zero any more, so A moves
    check_merged(t, uris[0]);
    mr_trainer_close(t);
    t = open_state(&s, uris[1]); // the same, from the files
    one_step(&s, t, 0.5, 0);
    check(mr_trainer_begin(t, 1, &err), &err);
    check(mr_trainer_backward(t, &batch, NULL, &err), &err);
    assert_refused(mr_trainer_gradient(t, "transformer.ln_f.bias", &one, 1, &err), MR_ERR_USAGE,
                   &err, "has 40 elements, not 1");
    float bias[40];
    assert_refused(mr_trainer_gradient(t, "transformer.ln_f.bias", bias, 40, &err), MR_ERR_USAGE,
                   &err, "transformer.ln_f.bias is frozen: it has no gradient");
    mr_trainer_close(t);
    mr_lora_free(&begin);
    remove_dir(files_path("state"));
    subject_close(&s);
}

static void adapters_learn(void **unused)
{
    (void)unused;
    check_training("gptj");
    check_training("gpt2");
}

// ---- bits ---------------------------------------------------------------------------------------

// Three steps, the state opened anew before each or not.
static void train(const struct subject *s, const char *uri, bool reopen, struct mr_lora *l)
{
    struct mr_error err = {0};
    struct mr_trainer_done done;
    struct mr_trainer *t = open_new(s, uri);
    const struct mr_trainer_update adamw = {
        .rate = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .decay = 0.1, .clip = 1};
    for (int k = 0; k < 3; k++) {
        if (reopen) {
            mr_trainer_close(t);
            t = open_state(s, uris[k % DEVICES]);
        }
        check(mr_trainer_begin(t, 2, &err), &err);
        for (int b = 0; b < 2; b++)
            check(mr_trainer_backward(t, &batch, NULL, &err), &err);
        check(mr_trainer_apply(t, &adamw, &done, &err), &err);
        assert_int_equal(done.step, k + 1);
    }
    read_adapter(s, t, l);
    mr_trainer_close(t);
    remove_dir(files_path("state"));
}

static void devices_threads_and_resuming_change_no_bit(void **unused)
{
    (void)unused;
    for (int type = 0; type < 2; type++) {
        struct subject s;
        struct mr_lora first, other;
        subject_open(&s, type ? "gpt2" : "gptj");
        assert_int_equal(setenv("MILLRACE_THREADS", "1", 1), 0);
        train(&s, uris[0], false, &first);
        assert_int_equal(setenv("MILLRACE_THREADS", "3", 1), 0);
        for (int k = 0; k < 2; k++) {
            train(&s, uris[k], k == 0, &other);
            for (size_t p = 0; p < first.count; p++) {
                assert_memory_equal(first.pair[p].a, other.pair[p].a,
                                    (size_t)(RANK * first.pair[p].inputs) * sizeof(float));
                assert_memory_equal(first.pair[p].b, other.pair[p].b,
                                    (size_t)(RANK * first.pair[p].outputs) * sizeof(float));
            }
            mr_lora_free(&other);
        }
        mr_lora_free(&first);
        assert_int_equal(unsetenv("MILLRACE_THREADS"), 0);
        subject_close(&s);
    }
}

// ---- what is refused ----------------------------------------------------------------------------

static void refuse(const struct subject *s, const struct mr_trainer_options *o, int status,
                   const char *says)
{
    struct mr_error err = {0};
    struct mr_trainer *t;
    (void)s;
    assert_refused(mr_trainer_open(&t, files_path("state"), "model:tinyt", o, &err), status, &err,
                   says);
}

static void other_adapters_are_refused(void **unused)
{
    (void)unused;
    static const char *const other[] = {"q_proj", NULL}, *const all[] = {"*", NULL};
    struct mr_error err = {0};
    struct subject s;
    subject_open(&s, "gptj");
    mr_trainer_close(open_new(&s, uris[0]));
    struct mr_lora_options lora = s.lora;
    struct mr_trainer_options o = s.options;
    o.lora = &lora;
    lora.rank = 4;
    refuse(&s, &o, MR_ERR_USAGE, "began with a LoRA adapter of r 3, factor 2, 8 matrices");
    lora = s.lora;
    lora.alpha = 7;
    refuse(&s, &o, MR_ERR_USAGE, "not r 3, factor 2.33333, 8 matrices");
    lora = s.lora;
    lora.targets = other;
    refuse(&s, &o, MR_ERR_USAGE, "not r 3, factor 2, 2 matrices");
    o.lora = NULL;
    refuse(&s, &o, MR_ERR_USAGE, "is the state of a LoRA adapter (r 3, factor 2, 8 matrices");
    o = s.options;
    o.freeze = all;
    refuse(&s, &o, MR_ERR_USAGE, "an adapter learns alone: patterns");
    o.freeze = NULL;
    o.no_decay = all;
    refuse(&s, &o, MR_ERR_USAGE, "an adapter learns alone: patterns");
    assert_refused(mr_trainer_check(s.model, "model:tinyt", &o, &err), MR_ERR_USAGE, &err,
                   "an adapter learns alone: patterns");
    remove_dir(files_path("state"));
    check(mr_trainer_create(files_path("state"), s.model, 0, &err), &err);
    refuse(&s, &s.options, MR_ERR_USAGE, "is the state of a whole model, not of a LoRA adapter");
    remove_dir(files_path("state"));
    subject_close(&s);
}

// The model that lies below an adapter has to be there, and the one that it began with.
static void other_models_are_refused(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct subject s;
    struct mr_config c;
    char away[600];
    subject_open(&s, "gptj");
    (void)snprintf(away, sizeof away, "%s", files_path("away"));
    mr_trainer_close(open_new(&s, uris[0]));
    struct mr_trainer *t;
    check(mr_trainer_open(&t, files_path("state"), uris[0], NULL, &err), &err); // where it was
    mr_trainer_close(t);
    assert_int_equal(rename(s.model, away), 0);
    refuse(&s, NULL, MR_ERR_IO, "the model of the adapter's state: ");
    struct mr_trainer_options o = s.options;
    o.model = away;
    check(mr_trainer_open(&t, files_path("state"), uris[0], &o, &err), &err);
    mr_trainer_close(t);
    c = *s.config;
    assert_int_equal(mkdir(s.model, 0700), 0);
    check(mr_synthetic_write(s.model, &c, 4, &err), &err);
    refuse(&s, NULL, MR_ERR_FIT, "has other weights than the model that the adapter's state began");
    remove_dir(s.model);
    assert_int_equal(rename(away, s.model), 0);
    remove_dir(files_path("state"));
    subject_close(&s);
}

// adapter_config.json cannot have the name, of the state and of what is exported.
static void a_model_whose_name_is_no_utf8_has_to_be_named(void **unused)
{
    (void)unused;
    struct subject s;
    struct mr_trainer *t;
    struct mr_lora lora;
    subject_open(&s, "gptj");
    char *plain = strdup(s.model);
    (void)snprintf(s.model, sizeof s.model, "%s", files_path("g\xff"));
    assert_int_equal(rename(plain, s.model), 0);
    mr_trainer_close(open_new(&s, uris[0]));
    refuse(&s, NULL, MR_ERR_USAGE, "state: does not say where the adapter's model is, as");
    t = open_state(&s, uris[0]);
    read_adapter(&s, t, &lora);
    assert_int_equal(lora.rank, RANK);
    mr_lora_free(&lora);
    mr_trainer_close(t);
    remove_dir(files_path("state"));
    subject_close(&s);
    free(plain);
}

// The file that says which adapter it is belongs to the state.
static void changed_settings_are_refused(void **unused)
{
    (void)unused;
    struct subject s;
    char path[600];
    size_t size;
    subject_open(&s, "gptj");
    mr_trainer_close(open_new(&s, uris[0]));
    (void)snprintf(path, sizeof path, "%s/adapter_config.json", files_path("state"));
    char *text = files_read(path, &size), *at = strstr(text, "\"lora_alpha\": 6");
    assert_non_null(at);
    at[14] = '7';
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
    refuse(&s, NULL, MR_ERR_FORMAT, "is not the file that the state was made with (checksum)");
    at = strstr(text, "\"r\": 3");
    assert_non_null(at);
    at[5] = '5';
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
    refuse(&s, NULL, MR_ERR_FORMAT, "its header");
    assert_int_equal(unlink(path), 0);
    refuse(&s, NULL, MR_ERR_FORMAT,
           "is the state of an adapter, and its adapter_config.json is missing");
    free(text);
    remove_dir(files_path("state"));
    subject_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapters_learn),
        cmocka_unit_test(devices_threads_and_resuming_change_no_bit),
        cmocka_unit_test(other_adapters_are_refused),
        cmocka_unit_test(other_models_are_refused),
        cmocka_unit_test(a_model_whose_name_is_no_utf8_has_to_be_named),
        cmocka_unit_test(changed_settings_are_refused),
    };
    return cmocka_run_group_tests_name("lora_train", tests, files_setup, files_teardown);
}
