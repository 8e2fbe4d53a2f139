// SPDX-License-Identifier: Apache-2.0
// What the library's calls do where memory runs out (memory_calls.h).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/api/memory_calls.h"

static int load(struct mr_error *err)
{
    struct mr_model *m;
    int rc = mr_model_load(&m, model, NULL, err);
    if (rc == 0)
        rc = mr_model_save(m, out, err);
    if (m)
        mr_model_close(m);
    return rc;
}

static int pack(struct mr_error *err)
{
    struct mr_pack_stats stats;
    const struct mr_load_options o = {.format = MR_WEIGHTS_MXFP4};
    int rc = mr_model_plain_read(model, err);
    return rc == 0 ? mr_model_pack(model, out, &o, &stats, err) : rc;
}

static int unpack(struct mr_error *err)
{
    struct mr_model *m;
    struct mr_quality *list = NULL;
    size_t count;
    int rc = mr_model_load(&m, packed, NULL, err);
    if (rc == 0)
        rc = mr_model_unpack(m, out, err);
    if (rc == 0)
        rc = mr_model_compare_weights(m, model, &list, &count, err);
    free(list);
    if (m)
        mr_model_close(m);
    return rc;
}

static int load_only(const char *path, const struct mr_load_options *o, struct mr_error *err)
{
    struct mr_model *m;
    int rc = mr_model_load(&m, path, o, err);
    if (m)
        mr_model_close(m);
    return rc;
}

static int load_torch(struct mr_error *err)
{
    return load_only("tests/fixtures/torch/bf16-sharded", NULL, err);
}

static int load_calibrated(struct mr_error *err)
{
    const struct mr_load_options o = {.format = MR_WEIGHTS_MXFP4, .calibrate = "self"};
    return load_only(small, &o, err);
}

// The second copy of a tied matrix is compared.
static int load_copied(struct mr_error *err)
{
    return load_only("tests/fixtures/gpt2/fp16-d68-scaled-by-layer", NULL, err);
}

// What is no model has its own error, unless memory ran out.
static int refuse_a_state(struct mr_error *err)
{
    int rc = load_only(state, NULL, err);
    return rc == MR_ERR_FORMAT && strstr(err->text, "is a training's state") ? 0 : rc;
}

static int text(struct mr_error *err)
{
    static const char said[] =
        "And the king said unto themthemthemthemthemthemthemthemthemthemthemthemthemthemthemthem"
        "themthemthemthemthemthemthemthemthemthemthemthemthemthemthemthemthemthemthemthemthemthem";
    struct mr_model *m;
    const struct mr_load_options o = {.describe = true, .text = true};
    int32_t *ids = NULL;
    char *back = NULL;
    size_t count, size;
    int rc = mr_model_load(&m, "models/demo", &o, err);
    if (rc == 0)
        rc = mr_model_encode(m, said, strlen(said), true, &ids, &count, err);
    if (rc == 0)
        rc = mr_model_decode(m, ids, count, &back, &size, err);
    if (rc == 0)
        assert_string_equal(back, said);
    free(back);
    free(ids);
    if (m)
        mr_model_close(m);
    return rc;
}

static int in_session(struct mr_session *s, bool saves, bool text, struct mr_error *err)
{
    static const char *const stop[] = {"the king", "a mill"};
    static const int32_t first[] = {1, 2, 3}, second[] = {4, 5};
    const int32_t *prompts[] = {first, second};
    const size_t sizes[] = {3, 2};
    const struct mr_generate_options o = {
        .max_tokens = 4, .ignore_eos = true, .stop = stop, .n_stop = text ? 2 : 0};
    struct mr_generated got[2];
    float logits[MR_SYNTHETIC_BYTES];
    const struct mr_row row = {0, 7, true};
    int32_t *tokens = NULL;
    size_t count;
    int seq, rc = mr_generate(s, prompts, sizes, 2, &o, got, err);
    for (int i = 0; i < 2 && rc == 0; i++)
        mr_generated_free(&got[i]);
    if (rc == 0)
        rc = mr_session_seq_new(s, &seq, err);
    if (rc < 0)
        return rc;
    assert_int_equal(seq, 0);
    rc = mr_session_step(s, &row, 1, logits, err);
    if (rc == 0 && saves)
        rc = mr_session_seq_save(s, seq, &row.token, 1, out, err);
    if (rc == 0 && saves)
        rc = mr_session_seq_load(s, seq, out, &tokens, &count, err);
    free(tokens);
    mr_session_seq_free(s, seq);
    return rc;
}

static int on_device(const char *device, const char *path, struct mr_error *err)
{
    struct mr_model *m;
    struct mr_session *s = NULL;
    const struct mr_session_options o = {.max_seqs = 2};
    struct mr_model_info info = {0};
    int units, rc = mr_model_load(&m, path, NULL, err);
    if (rc == 0)
        mr_model_get_info(m, &info);
    if (rc == 0)
        rc = mr_device_units(device, &units, err);
    if (rc == 0)
        rc = mr_session_open(&s, m, device, &o, err);
    if (rc == 0)
        rc = in_session(s, strcmp(device, "cpu:") != 0, info.has_tokenizer, err);
    if (s)
        mr_session_close(s);
    if (m)
        mr_model_close(m);
    return rc;
}

static int generate(struct mr_error *err)
{
    return on_device("model:tiny", packed, err);
}

// A directory, whose packed weights have their checksums made for the files of sequences.
static int generate_on_channels(struct mr_error *err)
{
    return on_device("model:sim2", model, err);
}

static int generate_on_cpu(struct mr_error *err)
{
    return on_device("cpu:", small, err);
}

// The values of a stream, in fp32.
static int generate_synthetic(struct mr_error *err)
{
    return on_device("cpu:", "synthetic:gpt2,layers=1,vocab=64", err);
}

static int generate_simulated(struct mr_error *err)
{
    return on_device("sim:tiny", packed, err);
}

static int generate_streamed(struct mr_error *err)
{
    return on_device("model:tiny,capacity=480K", packed, err);
}

static int create(struct mr_error *err)
{
    return mr_trainer_create(out, model, 0, err);
}

static int create_labels(struct mr_error *err)
{
    return mr_trainer_create_labels(out, files_path("bert"), label_names, 3, 1, NULL, err);
}

static int create_lora(struct mr_error *err)
{
    static const char *const targets[] = {"q_proj", "fc_in", NULL};
    const struct mr_lora_options o = {.rank = 4, .alpha = 8, .targets = targets};
    return mr_trainer_create_lora(out, model, 0, &o, err);
}

static int check_training(struct mr_error *err)
{
    const struct mr_trainer_options o = {.tokens = 32};
    return mr_trainer_check(model, "model:tinyt", &o, err);
}

static int trained(struct mr_trainer *t, const int32_t *labels, struct mr_error *err)
{
    static const int32_t lengths[] = {9, 5}, tokens[14] = {1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4},
                         types[14] = {0};
    const struct mr_micro_batch batch = {.sequences = 2,
                                         .lengths = lengths,
                                         .tokens = tokens,
                                         .types = labels ? types : NULL,
                                         .labels = labels};
    const struct mr_trainer_update u = {.rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8};
    struct mr_trainer_done done;
    struct mr_batch_loss loss;
    int rc = mr_trainer_begin(t, 1, err);
    if (rc == 0)
        rc = mr_trainer_backward(t, &batch, NULL, err);
    if (rc == 0)
        rc = mr_trainer_apply(t, &u, &done, err);
    return rc == 0 ? mr_trainer_evaluate(t, &batch, &loss, err) : rc;
}

static int learn_in(const char *dir, const char *device, const int32_t *labels,
                    struct mr_error *err)
{
    const struct mr_trainer_options o = {.tokens = 32};
    struct mr_trainer *t;
    int rc = mr_trainer_open(&t, dir, device, &o, err);
    if (rc == 0)
        rc = trained(t, labels, err);
    if (rc == 0)
        rc = mr_trainer_save(t, out, MR_SAVE_BF16, err);
    if (t)
        mr_trainer_close(t);
    return rc;
}

static int learn(struct mr_error *err)
{
    return learn_in(state, "model:tinyt,capacity=2M", NULL, err);
}

static int learn_labels(struct mr_error *err)
{
    static const int32_t labels[] = {2, 0};
    return learn_in(with_labels, "model:tinyt", labels, err);
}

// An adapter's state, which learns and is written as PEFT has it; a session with that.
static int adapt(struct mr_error *err)
{
    const struct mr_lora_options lora = {.rank = 2, .alpha = 4};
    const struct mr_trainer_options o = {.tokens = 32, .model = model, .lora = &lora};
    const struct mr_load_options with = {.adapter = out};
    struct mr_trainer *t;
    struct mr_model *m = NULL;
    int rc = mr_trainer_open(&t, adapter, "model:tinyt", &o, err);
    if (rc == 0)
        rc = trained(t, NULL, err);
    if (rc == 0)
        rc = mr_trainer_save_adapter(t, out, err);
    if (t)
        mr_trainer_close(t);
    if (rc == 0)
        rc = mr_model_load(&m, model, &with, err);
    if (m)
        mr_model_close(m);
    return rc;
}

static const char words[] = "the [MASK] of the king";
static const struct mr_encoder_text one = {.text = words, .size = sizeof words - 1};

static int fill(struct mr_error *err)
{
    struct mr_encoder *e;
    struct mr_encoder_tokens tokens = {.ids = NULL};
    struct mr_filled *list = NULL;
    float rows[16];
    size_t count;
    int rc = mr_encoder_open(&e, files_path("bert"), "cpu:", NULL, err);
    if (rc < 0)
        return rc;
    rc = mr_encoder_encode(e, &one, &tokens, err);
    if (rc == 0)
        rc = mr_encoder_embed(e, &one, 1, NULL, rows, NULL, err);
    if (rc == 0)
        rc = mr_encoder_fill(e, &one, 3, &list, &count, err);
    free(list);
    free(tokens.ids);
    free(tokens.types);
    mr_encoder_close(e);
    return rc;
}

// On an engine, whose weights are rounded with a text.
static int embed_simulated(struct mr_error *err)
{
    const struct mr_encoder_options o = {.calibrate = lines};
    struct mr_encoder *e;
    float rows[16];
    int rc = mr_encoder_open(&e, files_path("bert"), "sim:tiny,check", &o, err);
    if (rc < 0)
        return rc;
    rc = mr_encoder_embed(e, &one, 1, NULL, rows, NULL, err);
    mr_encoder_close(e);
    return rc;
}

static int classify(struct mr_error *err)
{
    struct mr_encoder *e;
    float *labels = NULL;
    int32_t *ids = NULL;
    int rows, rc = mr_encoder_open(&e, files_path("labels"), "cpu:", NULL, err);
    if (rc < 0)
        return rc;
    rc = mr_encoder_classify(e, &one, &labels, &ids, &rows, err);
    free(labels);
    free(ids);
    mr_encoder_close(e);
    return rc;
}

static struct memory_call calls[] = {
    CALL(load, 23),
    CALL(pack, 23),
    CALL(unpack, 23),
    CALL(text, 23),
    CALL(generate, 23),
    CALL(generate_streamed, 23),
    CALL(generate_on_channels, 23),
    CALL(create, 23),
    CALL(create_lora, 23),
    CALL(learn, 23),
    CALL(learn_labels, 23),
    CALL(adapt, 23),
    CALL(load_torch, 23),
    CALL(load_copied, 23),
    CALL(load_calibrated, 23),
    CALL(generate_on_cpu, 23),
    CALL(generate_synthetic, 23),
    CALL(generate_simulated, 23),
    CALL(refuse_a_state, 1),
    CALL(create_labels, 23),
    CALL(check_training, 23),
    CALL(fill, 23),
    CALL(classify, 23),
    CALL(embed_simulated, 23),
};

int main(void)
{
    return memory_run("memory", memory_setup, calls, sizeof calls / sizeof *calls);
}
