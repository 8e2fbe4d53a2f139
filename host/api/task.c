// SPDX-License-Identifier: Apache-2.0
#include "api/task.h"

#include <stdlib.h>
#include <string.h>

#include "api/logprob.h"

int mr_task_tools_open(struct mr_task_tools *tools, const struct mr_session *session,
                       struct mr_error *err)
{
    size_t vocab = (size_t)session->backend->config.vocab_size;
    *tools = (struct mr_task_tools){.model = session->model, .config = &session->backend->config};
    tools->candidates = malloc(vocab * sizeof *tools->candidates);
    tools->penalised = malloc(vocab * sizeof *tools->penalised);
    tools->seen = malloc(vocab / 8 + 1);
    tools->times = calloc(vocab, sizeof *tools->times);
    if (!tools->candidates || !tools->penalised || !tools->seen || !tools->times) {
        mr_task_tools_close(tools);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for sampling from %zu tokens", vocab);
    }
    return 0;
}

void mr_task_tools_close(struct mr_task_tools *tools)
{
    free(tools->candidates);
    free(tools->penalised);
    free(tools->seen);
    free(tools->times);
    mr_buf_free(&tools->piece);
    mr_buf_free(&tools->text);
    *tools = (struct mr_task_tools){0};
}

// ---- from the request ----

static int check_prompt(const struct mr_request *r, const struct mr_config *c, struct mr_error *err)
{
    // A new token behind the last position could be sampled, but not one after it.
    size_t most = (size_t)c->n_positions - (r->max_tokens > 0);
    if (r->prompt_count == 0)
        return mr_fail(err, MR_ERR_USAGE, "the prompt is empty; give at least one token");
    if (r->prompt_count > most)
        return mr_fail(err, MR_ERR_FIT,
                       "the prompt has %zu tokens, the model has %d positions; shorten it",
                       r->prompt_count, c->n_positions);
    for (size_t i = 0; i < r->prompt_count; i++)
        if (r->prompt[i] < 0 || r->prompt[i] >= c->vocab_size)
            return mr_fail(err, MR_ERR_USAGE,
                           "prompt: token %d is outside the vocabulary of %d (number %zu)",
                           r->prompt[i], c->vocab_size, i);
    return 0;
}

static int check(const struct mr_request *r, const struct mr_task_tools *tools,
                 struct mr_error *err)
{
    if (r->max_tokens < 0 || (r->max_tokens == 0 && !r->echo_logprobs) ||
        !mr_sampling_valid(&r->sampling))
        return mr_fail(err, MR_ERR_USAGE,
                       "generation needs max_tokens >= 1 (0 with echo_logprobs), temperature >= 0, "
                       "top_k >= 0, top_p in 0..1, repetition_penalty >= 0 and the other penalties "
                       "in -2..2");
    if (r->top_logprobs < 0 || r->top_logprobs > MR_TOP_LOGPROBS_MAX)
        return mr_fail(err, MR_ERR_USAGE, "top_logprobs is %d, not in 0..%d", r->top_logprobs,
                       MR_TOP_LOGPROBS_MAX);
    if (r->n_stop > 0 && !tools->model->packed.tokenizer)
        return mr_fail(err, MR_ERR_USAGE, "stop strings need a model with a tokenizer");
    if (r->own_seq && r->resident > 0 && r->echo_logprobs)
        return mr_fail(
            err, MR_ERR_USAGE,
            "log-probabilities of the prompt are asked for, but its first %zu tokens are "
            "not run again",
            r->resident);
    return check_prompt(r, tools->config, err);
}

int mr_task_open(struct mr_task **task, const struct mr_task_tools *tools,
                 const struct mr_request *request, struct mr_error *err)
{
    *task = NULL;
    int rc = check(request, tools, err);
    if (rc < 0)
        return rc;
    struct mr_task *t = calloc(1, sizeof *t);
    if (!t)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a request");
    t->request = *request;
    t->request.prompt = NULL;
    t->request.stop = NULL;
    t->seq = -1;
    t->n_prompt = request->prompt_count;
    t->fed = request->own_seq ? request->resident : 0;
    // The last new token needs no position.
    size_t most = (size_t)tools->config->n_positions - t->n_prompt + 1;
    if ((size_t)request->max_tokens < most)
        most = (size_t)request->max_tokens;
    t->tokens = malloc((t->n_prompt + most) * sizeof *t->tokens);
    rc = t->tokens ? mr_stop_open(&t->stop, request->stop, request->n_stop, err)
                   : mr_fail(err, MR_ERR_MEMORY, "no memory for %zu tokens", t->n_prompt + most);
    if (rc < 0) {
        mr_task_close(t);
        return rc;
    }
    memcpy(t->tokens, request->prompt, t->n_prompt * sizeof *t->tokens);
    *task = t;
    return 0;
}

void mr_task_close(struct mr_task *task)
{
    if (!task)
        return;
    mr_stop_close(&task->stop);
    free(task->tokens);
    free(task);
}

// ---- ends ----

void mr_task_end(struct mr_task *task, enum mr_finish why)
{
    if (!task->ended)
        task->finish = why;
    task->ended = true;
}

void mr_task_fail(struct mr_task *task, const struct mr_error *err)
{
    if (!task->ended)
        task->error = *err;
    mr_task_end(task, MR_FINISH_FAILED);
}

void mr_task_report(const struct mr_task *task)
{
    const struct mr_result r = {.finish = task->finish,
                                .error = task->finish == MR_FINISH_FAILED ? &task->error : NULL,
                                .ids = task->tokens + task->n_prompt,
                                .count = task->count,
                                .prompt_count = task->n_prompt};
    if (task->request.done)
        task->request.done(task->request.arg, &r);
}

// ---- rows ----

size_t mr_task_pending(const struct mr_task *task)
{
    // Nobody asks what follows the last token if there are to be no new ones.
    return task->n_prompt + task->count - task->fed - (task->request.max_tokens == 0);
}

bool mr_task_wants(const struct mr_task *task, size_t i)
{
    return task->request.echo_logprobs || task->fed + i + 1 >= task->n_prompt;
}

// ---- tokens and text to the caller ----

// logits: those that predict the token, NULL for the first.
static void give_token(struct mr_task *t, struct mr_task_tools *tools, size_t index,
                       const float *logits)
{
    const struct mr_request *r = &t->request;
    bool prompt = index < t->n_prompt;
    struct mr_token token = {.index = index, .prompt = prompt, .id = t->tokens[index]};
    if (!r->token)
        return;
    if (tools->model->packed.tokenizer)
        token.bytes = mr_tokenizer_bytes(tools->model->packed.tokenizer, token.id, &token.size);
    token.has_logprob = logits && (prompt || r->logprobs); // of the prompt: only where asked for
    if (token.has_logprob) {
        int vocab = tools->config->vocab_size;
        token.logprob = mr_logprob(logits, vocab, token.id);
        token.top = tools->top;
        if (r->top_logprobs > 0)
            token.n_top = mr_top_logprobs(logits, vocab, r->top_logprobs, tools->top);
    }
    if (r->token(r->arg, &token))
        mr_task_end(t, MR_FINISH_STOPPED);
}

// The text that the newest token completes, or what is left of it.
static void give_text(struct mr_task *t, struct mr_task_tools *tools, bool last)
{
    const struct mr_request *r = &t->request;
    const struct mr_tokenizer *tokenizer = tools->model->packed.tokenizer;
    struct mr_error err = {0};
    bool stopped = false;
    if (!tokenizer || (!r->text && t->stop.count == 0))
        return;
    tools->piece.size = tools->text.size = 0;
    int rc = last ? mr_text_stream_end(&t->stream, &tools->piece, &err)
                  : mr_text_stream_push(&t->stream, tokenizer,
                                        t->tokens[t->n_prompt + t->count - 1], &tools->piece, &err);
    if (rc == 0)
        rc = mr_stop_push(&t->stop, tools->piece.data, tools->piece.size, last, &tools->text,
                          &stopped, &err);
    size_t size = tools->text.size;
    if (rc == 0)
        rc = mr_buf_append(&tools->text, "", 1, &err);
    if (rc < 0) {
        mr_task_fail(t, &err);
        return;
    }
    if (size > 0 && r->text && r->text(r->arg, tools->text.data, size))
        mr_task_end(t, MR_FINISH_STOPPED);
    if (stopped)
        mr_task_end(t, MR_FINISH_STOP_STRING);
}

static void finish(struct mr_task *t, struct mr_task_tools *tools, enum mr_finish why)
{
    give_text(t, tools, true);
    mr_task_end(t, why);
}

void mr_task_begin(struct mr_task *task, struct mr_task_tools *tools)
{
    if (task->request.started)
        task->request.started(task->request.arg);
    if (task->request.echo_logprobs)
        give_token(task, tools, 0, NULL);
    if (mr_task_pending(task) == 0)
        mr_task_end(task, MR_FINISH_LENGTH);
}

// The token that follows.
static void next_token(struct mr_task *t, struct mr_task_tools *tools, float *logits)
{
    const struct mr_config *c = tools->config;
    const struct mr_sampling *s = &t->request.sampling;
    size_t all = t->n_prompt + t->count;
    float *choice = logits;
    bool repetition = s->repetition_penalty > 0 && s->repetition_penalty != 1;
    bool others = s->frequency_penalty != 0 || s->presence_penalty != 0;
    if (repetition || others) { // not in place: log-probabilities are the model's
        choice = tools->penalised;
        memcpy(choice, logits, (size_t)c->vocab_size * sizeof *choice);
    }
    if (repetition)
        mr_penalise(choice, c->vocab_size, s->repetition_penalty, t->tokens, all, tools->seen);
    if (others)
        mr_penalise_new(choice, s, t->tokens + t->n_prompt, t->count, tools->times);
    int id = mr_sample(s, choice, c->vocab_size, t->count, tools->candidates);
    if (id < 0) {
        struct mr_error err = {0};
        mr_fail(&err, MR_ERR_DEVICE,
                "all logits are NaN after %zu tokens: the weights or the device are damaged", all);
        mr_task_fail(t, &err);
        return;
    }
    if (!t->request.ignore_eos && mr_config_is_eos(c, id)) {
        finish(t, tools, MR_FINISH_EOS);
        return;
    }
    t->tokens[all++] = id;
    t->count++;
    give_token(t, tools, all - 1, logits);
    if (!t->ended)
        give_text(t, tools, false);
    if (t->ended)
        return;
    if (t->count == (size_t)t->request.max_tokens)
        finish(t, tools, MR_FINISH_LENGTH);
    else if (all > (size_t)c->n_positions)
        finish(t, tools, MR_FINISH_CONTEXT);
}

float *mr_task_advance(struct mr_task *task, struct mr_task_tools *tools, float *logits)
{
    int rows = task->rows;
    size_t first = task->fed;
    for (int i = 0; i < rows; i++) {
        size_t next = first + (size_t)i + 1;
        if (!mr_task_wants(task, (size_t)i))
            continue;
        if (!task->ended && next < task->n_prompt)
            give_token(task, tools, next, logits);
        else if (!task->ended)
            next_token(task, tools, logits);
        logits += tools->config->vocab_size;
    }
    task->fed += (size_t)rows;
    if (!task->ended && mr_task_pending(task) == 0)
        mr_task_end(task, MR_FINISH_LENGTH); // max_tokens is 0
    return logits;
}
