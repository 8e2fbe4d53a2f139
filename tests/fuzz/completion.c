// SPDX-License-Identifier: Apache-2.0
// The body of a request to the server.
#include "serve/completion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "fuzz.h"
#include "serve/embedding.h"

static void check_prompts(const struct mr_completion *c)
{
    fuzz_check(c->n_prompts >= 1 && c->n_prompts * c->n <= MR_COMPLETION_CHOICES, "prompts");
    for (int i = 0; i < c->n_prompts; i++) {
        const struct mr_completion_prompt *p = &c->prompts[i];
        fuzz_check(!p->text != !p->ids, "a prompt is text or tokens");
        fuzz_check(!p->text || (strlen(p->text) <= p->size && p->text[p->size] == 0),
                   "the size of a prompt"); // which may have a NUL in it
        for (size_t k = 0; k < p->count; k++)
            fuzz_check(p->ids[k] >= 0, "token ids");
    }
}

static void read_one(const struct mr_turns *turns, const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    struct mr_shown param;
    // In memory of its own, so that AddressSanitizer sees what is written behind it.
    struct mr_completion *c = malloc(sizeof *c);
    fuzz_check(c != NULL, "memory");
    int rc = turns ? mr_chat_parse(c, turns, data, size, &param, &err)
                   : mr_completion_parse(c, data, size, &param, &err);
    fuzz_check_outcome(rc, &err);
    fuzz_check(rc == 0 || memchr(param.text, 0, sizeof param.text), "param");
    if (rc == 0) {
        const struct mr_sampling *s = &c->sampling;
        fuzz_check(!c->model || strlen(c->model) <= size, "model");
        check_prompts(c);
        fuzz_check(c->n >= 1 && c->n <= 128, "n");
        fuzz_check(c->max_tokens >= !c->echo && c->max_tokens <= 1000000, "max_tokens");
        fuzz_check(s->temperature >= 0 && isfinite(s->temperature), "temperature");
        fuzz_check(s->top_p >= 0 && s->top_p <= 1 && s->top_k >= 0, "top_p, top_k");
        fuzz_check(s->repetition_penalty >= 0 && isfinite(s->repetition_penalty), "penalty");
        fuzz_check(c->logprobs >= -1 && c->logprobs <= MR_TOP_LOGPROBS_MAX, "logprobs");
        fuzz_check(c->n_stop >= 0 && c->n_stop <= MR_COMPLETION_STOPS + c->chat, "stop");
        fuzz_check(c->chat == (turns != NULL) && (!c->chat || c->n_prompts == 1), "chat");
        for (int i = 0; i < c->n_stop; i++)
            fuzz_check(c->stop[i] && *c->stop[i], "a stop string");
        mr_completion_free(c);
    }
    free(c);
}

// An encoder without weights: what the inputs of a request are framed by.
static const struct mr_encoder *encoder(void)
{
    static struct mr_config config = {.vocab_size = 425, .n_embd = 3, .n_types = 2};
    static struct mr_encoder e = {.config = &config, .packed.max_tokens = 12};
    struct mr_error err = {0};
    if (e.packed.tokenizer)
        return &e;
    int rc = mr_tokenizer_open(&e.packed.tokenizer, "tests/fixtures/wordpiece", &err);
    fuzz_check(rc == 0, "the tokenizer of the fixtures: run from the root");
    e.frame = mr_tokenizer_frame(e.packed.tokenizer);
    return &e;
}

static void check_answer(const struct mr_embedding *e)
{
    static const float row[] = {0.5F, -1e-30F, 3e30F};
    struct mr_error err = {0};
    struct mr_buf out = {0};
    json_t *answer = NULL;
    int rc = mr_embedding_begin(&out, &err);
    for (int i = 0; rc == 0 && i < e->count; i++)
        rc = mr_embedding_row(&out, e, i, row, 3, &err);
    fuzz_check(rc == 0 && mr_embedding_end(&out, e, "a \"name\"", &err) == 0, "memory");
    fuzz_check(mr_json_parse(&answer, out.data, out.size, "the answer", &err) == 0 &&
                   json_array_size(json_object_get(answer, "data")) == (size_t)e->count,
               "the answer is JSON with a row for each input");
    json_decref(answer);
    mr_buf_free(&out);
}

static void read_embedding(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    struct mr_shown param;
    struct mr_embedding *e = malloc(sizeof *e);
    fuzz_check(e != NULL, "memory");
    int rc = mr_embedding_parse(e, encoder(), data, size, &param, &err);
    fuzz_check_outcome(rc, &err);
    fuzz_check(rc == 0 || memchr(param.text, 0, sizeof param.text), "param");
    if (rc == 0) {
        fuzz_check(!e->model || strlen(e->model) <= size, "model");
        fuzz_check(e->count >= 1 && e->count <= MR_EMBEDDING_INPUTS, "inputs");
        for (int i = 0; i < e->count; i++) {
            const struct mr_tokens *t = &e->framed[i].tokens;
            fuzz_check(t->count >= 2 && t->count <= 12, "an input's length");
            for (size_t k = 0; k < t->count; k++)
                fuzz_check(t->ids[k] >= 0 && t->ids[k] < 425, "token ids");
        }
        check_answer(e);
        mr_embedding_free(e);
    }
    free(e);
}

// As the body of a completion, of a conversation, and of embeddings.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mr_turns turns;
    struct mr_error err = {0};
    fuzz_check(turns.before || mr_turns_open(&turns, MR_TURNS_DEFAULT, &err) == 0, "template");
    read_one(NULL, data, size);
    read_one(&turns, data, size);
    read_embedding(data, size);
    return 0;
}
