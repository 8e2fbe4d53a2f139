// SPDX-License-Identifier: Apache-2.0
#include "serve/job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/grow.h"

static int encode_prompts(struct mr_job *job, struct mr_model *model, struct mr_error *err)
{
    int positions = model->packed.config.n_positions, vocab = model->packed.config.vocab_size;
    for (int i = 0; i < job->spec.n_prompts; i++) {
        struct mr_completion_prompt *p = &job->spec.prompts[i];
        if (p->text && !job->tokenizer)
            return mr_fail(err, MR_ERR_USAGE,
                           "the model has no tokenizer: 'prompt' must be token ids");
        int rc = p->text ? mr_model_encode(model, p->text, p->size, !job->spec.chat, &p->ids,
                                           &p->count, err)
                         : 0;
        if (rc < 0)
            return rc;
        size_t most = (size_t)positions - (job->spec.max_tokens > 0);
        if (p->count == 0)
            return mr_fail(err, MR_ERR_USAGE, "'prompt' is empty; give at least one token");
        if (p->count > most)
            return mr_fail(err, MR_ERR_FIT,
                           "'prompt' has %zu tokens, the model has %d positions; shorten it",
                           p->count, positions);
        for (size_t k = 0; k < p->count; k++)
            if (p->ids[k] >= vocab)
                return mr_fail(err, MR_ERR_USAGE,
                               "'prompt' has token %d, outside the vocabulary of %d", p->ids[k],
                               vocab);
    }
    return 0;
}

// The prompt in front of the text, where its tokens do not come from the scheduler.
static int echo_prompt(struct mr_choice *c, struct mr_error *err)
{
    struct mr_text_stream stream = {0};
    const struct mr_tokenizer *tokenizer = c->job->tokenizer;
    int rc = 0;
    for (size_t i = 0; rc == 0 && tokenizer && i < c->prompt->count; i++)
        rc = mr_text_stream_push(&stream, tokenizer, c->prompt->ids[i], &c->text, err);
    return rc == 0 ? mr_text_stream_end(&stream, &c->text, err) : rc;
}

// "cmpl-" and such, with digits that others do not have. Returns 64 more random bits.
static uint64_t draw_name(struct mr_job *j, const char *kind)
{
    uint64_t random[3] = {0};
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        random[0] = (uint64_t)(uintptr_t)j; // names only have to differ
    (void)snprintf(j->id, sizeof j->id, "%s-%016" PRIx64 "%08x", kind, random[0],
                   (unsigned)random[1]);
    j->created = time(NULL);
    return random[2];
}

int mr_job_open_embedding(struct mr_job **job, struct mr_embedding *embedding, struct mr_error *err)
{
    struct mr_job *j = *job = calloc(1, sizeof *j);
    struct mr_choice *choice = calloc(1, sizeof *choice);
    struct mr_completion_prompt *prompt = calloc(1, sizeof *prompt);
    if (!j || !choice || !prompt) {
        free(j);
        free(choice);
        free(prompt);
        *job = NULL;
        mr_embedding_free(embedding);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the request");
    }
    j->embedding = *embedding;
    *embedding = (struct mr_embedding){0};
    (void)draw_name(j, "embd");
    prompt->count = mr_embedding_tokens(&j->embedding);
    j->spec.prompts = prompt;
    j->spec.n_prompts = j->spec.n = 1;
    choice->job = j;
    choice->prompt = prompt;
    j->choices = choice;
    j->n_choices = j->unfinished = 1;
    return 0;
}

int mr_job_open(struct mr_job **job, struct mr_completion *spec, struct mr_model *model,
                struct mr_error *err)
{
    *job = NULL;
    struct mr_job *j = calloc(1, sizeof *j);
    if (!j) {
        mr_completion_free(spec);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the request");
    }
    j->spec = *spec;
    *spec = (struct mr_completion){0};
    j->tokenizer = model->packed.tokenizer;
    uint64_t seed = draw_name(j, j->spec.chat ? "chatcmpl" : "cmpl");
    if (!j->spec.has_seed)
        j->spec.sampling.seed = seed;
    int rc = j->spec.n_stop > 0 && !j->tokenizer
                 ? mr_fail(err, MR_ERR_USAGE, "'stop' needs a model with a tokenizer")
                 : encode_prompts(j, model, err);
    int n = j->spec.n_prompts * j->spec.n;
    if (rc == 0 && !(j->choices = calloc((size_t)n, sizeof *j->choices)))
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for %d texts", n);
    for (; rc == 0 && j->n_choices < n; j->n_choices++) {
        struct mr_choice *c = &j->choices[j->n_choices];
        c->job = j;
        c->index = j->n_choices;
        c->prompt = &j->spec.prompts[j->n_choices / j->spec.n];
        if (j->spec.echo && j->spec.logprobs < 0)
            rc = echo_prompt(c, err);
    }
    j->unfinished = n;
    if (rc < 0) {
        mr_job_close(j);
        return rc;
    }
    *job = j;
    return 0;
}

void mr_job_close(struct mr_job *job)
{
    for (int i = 0; i < job->n_choices; i++) {
        mr_buf_free(&job->choices[i].text);
        free(job->choices[i].tokens);
        free(job->choices[i].tops);
    }
    free(job->choices);
    mr_completion_free(&job->spec);
    mr_embedding_free(&job->embedding);
    mr_buf_free(&job->response);
    free(job);
}

struct mr_request mr_choice_request(const struct mr_choice *choice)
{
    const struct mr_completion *s = &choice->job->spec;
    struct mr_request r = {.prompt = choice->prompt->ids,
                           .prompt_count = choice->prompt->count,
                           .max_tokens = s->max_tokens,
                           .sampling = s->sampling,
                           .ignore_eos = s->ignore_eos,
                           .stop = (const char *const *)s->stop,
                           .n_stop = s->n_stop,
                           .logprobs = s->logprobs >= 0,
                           .echo_logprobs = s->max_tokens == 0 || (s->echo && s->logprobs >= 0),
                           .top_logprobs = s->logprobs > 0 ? s->logprobs : 0};
    r.sampling.seed += (uint64_t)(choice->index % s->n); // n texts differ
    return r;
}

// Where the token stands in the text: after it as many bytes are decoded as whole characters have.
static int decode(struct mr_choice *c, const struct mr_token *t, struct mr_job_token *record,
                  struct mr_buf *text, struct mr_error *err)
{
    int rc = 0;
    bool first_new = !t->prompt && t->index == c->prompt->count;
    if (first_new) // text of new tokens starts afresh behind the prompt
        rc = mr_text_stream_end(&c->decoder, text, err);
    c->decoded += text->size;
    record->begin = c->decoded;
    size_t before = text->size;
    if (rc == 0 && c->job->tokenizer)
        rc = mr_text_stream_push(&c->decoder, c->job->tokenizer, t->id, text, err);
    c->decoded += text->size - before;
    record->end = c->decoded;
    return rc;
}

int mr_choice_add_token(struct mr_choice *c, const struct mr_token *t, struct mr_error *err)
{
    struct mr_buf text = {0};
    struct mr_job_token record = {.id = t->id, .has_logprob = t->has_logprob};
    if (c->job->spec.logprobs < 0)
        return 0;
    int rc = decode(c, t, &record, &text, err);
    if (rc == 0 && c->job->spec.echo && (t->prompt || t->index == c->prompt->count)) {
        // Echoed text is the prompt's, and what its last token has left open.
        size_t size = t->prompt ? text.size : text.size - (record.end - record.begin);
        rc = mr_buf_append(&c->text, text.data, size, err);
    }
    mr_buf_free(&text);
    if (rc == 0)
        rc = mr_grow(&c->tokens, c->n_tokens, 1, sizeof *c->tokens, err);
    if (rc == 0)
        rc = mr_grow(&c->tops, c->n_tops, (size_t)t->n_top, sizeof *c->tops, err);
    if (rc < 0)
        return rc;
    record.logprob = t->logprob;
    record.top = (int)c->n_tops;
    record.n_top = t->n_top;
    for (int i = 0; i < t->n_top; i++)
        c->tops[c->n_tops++] = t->top[i];
    c->tokens[c->n_tokens++] = record;
    return 0;
}
