// SPDX-License-Identifier: Apache-2.0
// The body of a request to the server.
#include "serve/completion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

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

// As the body of a completion, and as that of a conversation.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mr_turns turns;
    struct mr_error err = {0};
    fuzz_check(turns.before || mr_turns_open(&turns, MR_TURNS_DEFAULT, &err) == 0, "template");
    read_one(NULL, data, size);
    read_one(&turns, data, size);
    return 0;
}
