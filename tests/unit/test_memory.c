// SPDX-License-Identifier: Apache-2.0
// What the library's calls do where memory runs out: whichever allocation fails, a call ends with
// one error or does without, nothing leaks, and no file stays half written. The linker puts
// __wrap_malloc() and its like in the place of what the library calls itself; not what Jansson
// does, which loses characters of a string when it has no memory for them (2.14). MEMORY_EVERY=1
// lets each allocation fail, without it one in 23.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sanitizer/lsan_interface.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "millrace.h"
#include "odd_model.h"
#include "unit/bert_model.h"

// ---- allocations that fail ----------------------------------------------------------------------

static atomic_long allocations;
static atomic_long fails_at = -1; // -1: none

static bool fails(void)
{
    if (atomic_load(&fails_at) < 0 || atomic_fetch_add(&allocations, 1) != atomic_load(&fails_at))
        return false;
    errno = ENOMEM;
    return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
int __real_posix_memalign(void **p, size_t alignment, size_t n);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
int __wrap_posix_memalign(void **p, size_t alignment, size_t n);
char *__wrap_strdup(const char *s);

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, n);
}

int __wrap_posix_memalign(void **p, size_t alignment, size_t n)
{
    return fails() ? ENOMEM : __real_posix_memalign(p, alignment, n);
}

char *__wrap_strdup(const char *s)
{
    return fails() ? NULL : __real_strdup(s);
}

// ---- what is called -----------------------------------------------------------------------------

static const char *model, *packed, *state, *adapter, *out; // paths

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
    return mr_model_pack(model, out, &o, &stats, err);
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

static int text(struct mr_error *err)
{
    static const char said[] = "And the king said unto them";
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

static int in_session(struct mr_session *s, struct mr_error *err)
{
    static const int32_t first[] = {1, 2, 3}, second[] = {4, 5};
    const int32_t *prompts[] = {first, second};
    const size_t sizes[] = {3, 2};
    const struct mr_generate_options o = {.max_tokens = 4, .ignore_eos = true};
    struct mr_generated got[2];
    float logits[96];
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
    if (rc == 0)
        rc = mr_session_seq_save(s, seq, &row.token, 1, out, err);
    if (rc == 0)
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
    int rc = mr_model_load(&m, path, NULL, err);
    if (rc == 0)
        rc = mr_session_open(&s, m, device, &o, err);
    if (rc == 0)
        rc = in_session(s, err);
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

static int generate_streamed(struct mr_error *err)
{
    return on_device("model:tiny,capacity=480K", packed, err);
}

static int create(struct mr_error *err)
{
    return mr_trainer_create(out, model, 0, err);
}

static int create_lora(struct mr_error *err)
{
    static const char *const targets[] = {"q_proj", "fc_in", NULL};
    const struct mr_lora_options o = {.rank = 4, .alpha = 8, .targets = targets};
    return mr_trainer_create_lora(out, model, 0, &o, err);
}

static int learn(struct mr_error *err)
{
    static const int32_t lengths[] = {9, 5}, tokens[14] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    const struct mr_micro_batch batch = {.sequences = 2, .lengths = lengths, .tokens = tokens};
    const struct mr_trainer_update u = {.rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8};
    const struct mr_trainer_options o = {.tokens = 32};
    struct mr_trainer *t;
    struct mr_trainer_done done;
    struct mr_batch_loss loss;
    int rc = mr_trainer_open(&t, state, "model:tinyt,capacity=2M", &o, err);
    if (rc == 0)
        rc = mr_trainer_begin(t, 1, err);
    if (rc == 0)
        rc = mr_trainer_backward(t, &batch, NULL, err);
    if (rc == 0)
        rc = mr_trainer_apply(t, &u, &done, err);
    if (rc == 0)
        rc = mr_trainer_evaluate(t, &batch, &loss, err);
    if (rc == 0)
        rc = mr_trainer_save(t, out, MR_SAVE_BF16, err);
    if (t)
        mr_trainer_close(t);
    return rc;
}

// An adapter's state, opened, and written as PEFT has it; a session with that.
static int adapt(struct mr_error *err)
{
    const struct mr_lora_options lora = {.rank = 2, .alpha = 4};
    const struct mr_trainer_options o = {.tokens = 32, .model = model, .lora = &lora};
    const struct mr_load_options with = {.adapter = out};
    struct mr_trainer *t;
    struct mr_model *m = NULL;
    int rc = mr_trainer_open(&t, adapter, "model:tinyt", &o, err);
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
    struct mr_filled *list = NULL;
    float rows[16];
    size_t count;
    int rc = mr_encoder_open(&e, files_path("bert"), "cpu:", NULL, err);
    if (rc < 0)
        return rc;
    rc = mr_encoder_embed(e, &one, 1, NULL, rows, NULL, err);
    if (rc == 0)
        rc = mr_encoder_fill(e, &one, 3, &list, &count, err);
    free(list);
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

// ---- all of it ----------------------------------------------------------------------------------

// What stands in files_dir beside what setup() made, and what a call may have finished before the
// one that failed.
static int strangers(void)
{
    static const char *const known[] = {"gptj",   "packed.mill", "state", "adapter", "bert",
                                        "labels", "out",         ".",     ".."};
    int n = 0;
    DIR *dir = opendir(files_dir);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(known[i], e->d_name) != 0)
            i++;
        n += i == sizeof known / sizeof *known;
    }
    (void)closedir(dir);
    return n;
}

static void remove_out(void)
{
    if (remove(out) != 0 && errno != ENOENT)
        remove_dir(out);
}

static void each_allocation_may_fail(const char *name, int (*call)(struct mr_error *err))
{
    const char *every = getenv("MEMORY_EVERY");
    long step = every ? 1 : 23, failed = 0, without = 0, at;
    for (at = 0;; at += step) {
        struct mr_error err = {0};
        atomic_store(&allocations, 0);
        atomic_store(&fails_at, at);
        int rc = call(&err);
        atomic_store(&fails_at, -1);
        bool struck = atomic_load(&allocations) > at;
        if (rc != 0 && (rc != MR_ERR_MEMORY || !struck))
            fail_msg("%s, allocation %ld: %d '%s'", name, at, rc, err.text);
        if (rc < 0 && strangers() > 0)
            fail_msg("%s, allocation %ld: a file stays", name, at);
        remove_out();
        if (every && __lsan_do_recoverable_leak_check())
            fail_msg("%s, allocation %ld: a leak", name, at);
        failed += rc < 0;
        without += rc == 0 && struck;
        if (!struck)
            break;
    }
    printf("# %s: up to %ld allocations, %ld calls failed, %ld did without\n", name, at, failed,
           without);
    assert_true(failed > 0);
    if (__lsan_do_recoverable_leak_check())
        fail_msg("%s: a leak; MEMORY_EVERY=1 says where", name);
}

#define ONE(call)                                                                                  \
    static void call##_without_memory(void **unused)                                               \
    {                                                                                              \
        (void)unused;                                                                              \
        each_allocation_may_fail(#call, call);                                                     \
    }
ONE(load)
ONE(pack)
ONE(unpack)
ONE(text)
ONE(generate)
ONE(generate_streamed)
ONE(create)
ONE(create_lora)
ONE(learn)
ONE(adapt)
ONE(fill)
ONE(classify)

static char paths[5][300];

static int encoder(const char *name, const char *kind)
{
    static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nking\nof\n";
    static const char sizes[] =
        "\"model_type\": \"bert\", \"vocab_size\": 8, \"hidden_size\": 16, "
        "\"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"intermediate_size\": 32, "
        "\"max_position_embeddings\": 16, \"type_vocab_size\": 2, \"hidden_act\": \"gelu\", "
        "\"layer_norm_eps\": 1e-12";
    char config[512];
    (void)snprintf(config, sizeof config, "{\"architectures\": [\"%s\"], %s}", kind, sizes);
    struct bert_file w = {0};
    char dir[300];
    (void)snprintf(dir, sizeof dir, "%s", files_path(name));
    return mkdir(dir, 0700) | bert_write(&w, dir, config) |
           bert_file(dir, "vocab.txt", vocabulary, sizeof vocabulary - 1);
}

static int setup(void **unused)
{
    struct mr_error err = {0};
    static const char *const names[] = {"gptj", "packed.mill", "state", "adapter", "out"};
    if (files_setup(unused) != 0)
        return -1;
    for (int i = 0; i < 5; i++)
        (void)snprintf(paths[i], sizeof paths[i], "%s/%s", files_dir, names[i]);
    model = paths[0];
    packed = paths[1];
    state = paths[2];
    adapter = paths[3];
    out = paths[4];
    odd_model("gptj", 4, 70);
    if (encoder("bert", "BertForMaskedLM") || encoder("labels", "BertForSequenceClassification"))
        return -1;
    struct mr_pack_stats stats;
    const struct mr_lora_options lora = {.rank = 2, .alpha = 4};
    return mr_model_pack(model, packed, NULL, &stats, &err) |
           mr_trainer_create(state, model, 0, &err) |
           mr_trainer_create_lora(adapter, model, 0, &lora, &err);
}

static int teardown(void **unused)
{
    remove_dir(model);
    remove_dir(files_path("bert"));
    remove_dir(files_path("labels"));
    remove_dir(state);
    remove_dir(adapter);
    return files_teardown(unused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_without_memory),
        cmocka_unit_test(pack_without_memory),
        cmocka_unit_test(unpack_without_memory),
        cmocka_unit_test(text_without_memory),
        cmocka_unit_test(generate_without_memory),
        cmocka_unit_test(generate_streamed_without_memory),
        cmocka_unit_test(create_without_memory),
        cmocka_unit_test(create_lora_without_memory),
        cmocka_unit_test(learn_without_memory),
        cmocka_unit_test(adapt_without_memory),
        cmocka_unit_test(fill_without_memory),
        cmocka_unit_test(classify_without_memory),
    };
    return cmocka_run_group_tests_name("memory", tests, setup, teardown);
}
