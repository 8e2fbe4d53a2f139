// SPDX-License-Identifier: Apache-2.0
// What is open when memory runs out stays usable: whichever allocation of a call fails, the next
// call has the result of one that nothing befell. As test_memory.c; MEMORY_EVERY=1 lets each
// allocation fail, without it one in 7 or more; MEMORY_LEAKS=1 says which one leaks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sanitizer/lsan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/api/memory_models.h"
#include "unit/api/nomem.h"

static struct {
    struct mr_model *model;
    struct mr_session *session;
    struct mr_scheduler *scheduler;
    struct mr_trainer *trainer;
    struct mr_encoder *encoder;
    unsigned char result[8192]; // of a call
    size_t size;
    int call; // which one it is: 0, or 1 of the one after an error
} open_;

static void put(const void *data, size_t size)
{
    assert_true(open_.size + size <= sizeof open_.result);
    memcpy(open_.result + open_.size, data, size);
    open_.size += size;
}

static void close_all(void)
{
    mr_scheduler_close(open_.scheduler);
    if (open_.session)
        mr_session_close(open_.session);
    if (open_.model)
        mr_model_close(open_.model);
    if (open_.trainer)
        mr_trainer_close(open_.trainer);
    mr_encoder_close(open_.encoder);
    memset(&open_, 0, sizeof open_);
}

static void open_session(const char *device, const char *path)
{
    struct mr_error err = {0};
    const struct mr_session_options o = {.max_seqs = 2};
    check(mr_model_load(&open_.model, path, NULL, &err), &err);
    check(mr_session_open(&open_.session, open_.model, device, &o, &err), &err);
}

static void open_on_device(void)
{
    open_session("model:tiny", packed);
}

static void open_streamed(void)
{
    open_session("model:tiny,capacity=480K", packed);
}

static void open_on_cpu(void)
{
    open_session("cpu:", model);
}

static const int32_t first_prompt[] = {1, 2, 3}, second_prompt[] = {4, 5};

// Both sequences of the session are free before and after.
static int use_session(struct mr_error *err)
{
    const int32_t *prompts[] = {first_prompt, second_prompt};
    const size_t sizes[] = {3, 2};
    const struct mr_generate_options o = {.max_tokens = 4, .ignore_eos = true};
    struct mr_generated got[2];
    int rc = mr_generate(open_.session, prompts, sizes, 2, &o, got, err);
    for (int i = 0; i < 2 && rc == 0; i++) {
        put(got[i].ids, got[i].count * sizeof *got[i].ids);
        mr_generated_free(&got[i]);
    }
    return rc;
}

static void open_scheduler(void)
{
    struct mr_error err = {0};
    open_on_device();
    check(mr_scheduler_open(&open_.scheduler, open_.session, NULL, &err), &err);
}

// What a request was given. Those that waited when a call ended with an error come to their end in
// the next one.
static struct answer {
    double logprobs[8];
    int32_t ids[8];
    int n;
    struct mr_error err;
} answers[2][2]; // of a call and the next one

static int seen(void *arg, const struct mr_token *token)
{
    struct answer *a = arg;
    a->ids[a->n] = token->id;
    a->logprobs[a->n++] = token->has_logprob ? token->logprob : 0;
    return 0;
}

static void ended(void *arg, const struct mr_result *result)
{
    if (result->finish == MR_FINISH_FAILED)
        ((struct answer *)arg)->err = *result->error;
}

static int use_scheduler(struct mr_error *err)
{
    struct answer *to = answers[open_.call];
    struct mr_request r = {.prompt = first_prompt,
                           .prompt_count = 3,
                           .max_tokens = 3,
                           .sampling = {.temperature = 1, .top_k = 9, .repetition_penalty = 1.5F},
                           .ignore_eos = true,
                           .logprobs = true,
                           .echo_logprobs = true,
                           .top_logprobs = 2,
                           .token = seen,
                           .done = ended};
    int rc = 0, more = 1;
    memset(to, 0, sizeof answers[0]);
    for (int i = 0; i < 2 && rc == 0; i++) {
        r.arg = &to[i];
        rc = mr_scheduler_submit(open_.scheduler, &r, NULL, err);
        r.prompt_count = 1;
    }
    while (rc == 0 && more > 0) {
        more = mr_scheduler_step(open_.scheduler, err);
        rc = more < 0 ? more : 0;
    }
    for (int i = 0; i < 2; i++) {
        put(to[i].logprobs, sizeof to[i].logprobs);
        put(to[i].ids, sizeof to[i].ids);
        if (rc == 0 && to[i].err.status < 0) {
            *err = to[i].err;
            rc = err->status;
        }
    }
    return rc;
}

static void open_trainer(void)
{
    struct mr_error err = {0};
    const struct mr_trainer_options o = {.tokens = 32};
    check(mr_trainer_open(&open_.trainer, state, "model:tinyt,capacity=2M", &o, &err), &err);
}

static int use_trainer(struct mr_error *err)
{
    static const int32_t lengths[] = {9, 5}, tokens[14] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    const struct mr_micro_batch batch = {.sequences = 2, .lengths = lengths, .tokens = tokens};
    struct mr_batch_loss loss = {0};
    float norm[40];
    int rc = mr_trainer_evaluate(open_.trainer, &batch, &loss, err);
    put(&loss.loss, sizeof loss.loss);
    if (rc == 0)
        rc = mr_trainer_begin(open_.trainer, 1, err);
    if (rc == 0)
        rc = mr_trainer_backward(open_.trainer, &batch, NULL, err);
    if (rc == 0)
        rc = mr_trainer_gradient(open_.trainer, "transformer.ln_f.weight", norm, 40, err);
    put(norm, sizeof norm);
    if (rc == 0)
        rc = mr_trainer_weights(open_.trainer, "transformer.ln_f.weight", norm, 40, err);
    put(norm, sizeof norm);
    return rc;
}

static void open_encoder(const char *device)
{
    struct mr_error err = {0};
    check(mr_encoder_open(&open_.encoder, files_path("bert"), device, NULL, &err), &err);
}

// All that its memory has is needed: what a call had taken when it failed is not taken twice.
static void open_full(void)
{
    open_encoder("model:tiny,capacity=960K");
}

// The simulator's memory and the C model's remain alike.
static void open_checked(void)
{
    open_encoder("sim:tiny,check");
}

// A text that a run holds, and one that it does not.
static int use_encoder(struct mr_error *err)
{
    static const int32_t ids[] = {5, 6, 7, 5, 4, 6, 7, 7, 5, 6, 5};
    const struct mr_encoder_text texts[] = {{.ids = ids, .count = 4}, {.ids = ids, .count = 11}};
    float rows[2 * 16];
    int rc = mr_encoder_embed(open_.encoder, texts, 2, NULL, rows, NULL, err);
    put(rows, sizeof rows);
    return rc;
}

struct object {
    const char *name;
    void (*open)(void);
    int (*use)(struct mr_error *err);
    int step; // every so many allocations
};

static void goes_on(void **test)
{
    const struct object *o = *test;
    static unsigned char want[sizeof open_.result];
    const char *name = o->name, *every = getenv("MEMORY_EVERY");
    long step = every ? 1 : o->step, failed = 0, at;
    struct mr_error err = {0};
    o->open();
    check(o->use(&err), &err);
    size_t size = open_.size;
    memcpy(want, open_.result, size);
    close_all();
    for (at = 0;; at += step) {
        o->open();
        nomem_begin(at);
        int rc = o->use(&err);
        bool struck = nomem_end();
        nomem_told(name, at, rc, struck, &err);
        if (rc < 0) {
            failed++;
            open_.size = 0;
            open_.call++;
            err = (struct mr_error){0};
            if (o->use(&err) < 0)
                fail_msg("%s, after allocation %ld: %s", name, at, err.text);
        }
        if (open_.size != size || memcmp(open_.result, want, size) != 0)
            fail_msg("%s, after allocation %ld: another result", name, at);
        close_all();
        if (getenv("MEMORY_LEAKS") && __lsan_do_recoverable_leak_check())
            fail_msg("%s, allocation %ld: a leak", name, at);
        if (!struck)
            break;
    }
    printf("# %s: up to %ld allocations, %ld calls failed\n", name, at, failed);
    assert_true(failed > 0);
    if (__lsan_do_recoverable_leak_check())
        fail_msg("%s: a leak; MEMORY_LEAKS=1 says where", name);
}

static struct object objects[] = {
    {"a_session_goes_on", open_on_device, use_session, 7},
    {"a_streamed_session_goes_on", open_streamed, use_session, 7},
    {"a_session_on_the_cpu_goes_on", open_on_cpu, use_session, 7},
    {"a_scheduler_goes_on", open_scheduler, use_scheduler, 7},
    {"a_trainer_goes_on", open_trainer, use_trainer, 199},
    {"an_encoder_goes_on", open_full, use_encoder, 7},
    {"a_checked_encoder_goes_on", open_checked, use_encoder, 31},
};

int main(void)
{
    struct CMUnitTest tests[sizeof objects / sizeof *objects] = {0};
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        tests[i] = (struct CMUnitTest){objects[i].name, goes_on, NULL, NULL, &objects[i]};
    return cmocka_run_group_tests_name("memory_open", tests, memory_setup, files_teardown);
}
