// SPDX-License-Identifier: Apache-2.0
#include "cli/base/complete.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cli/base/shared_options.h"
#include "common/buf.h"
#include "common/error.h"

struct run {
    struct mr_session *session;
    struct cli_completion *c;
    struct cli_watch *watch;
    int (*piece)(void *arg, const char *text, size_t size);
    void *arg;
    bool begun;
    struct mr_buf text;
    struct mr_error error;
};

static int take_token(void *arg, const struct mr_token *token)
{
    struct run *r = arg;
    (void)token;
    if (!r->begun)
        mr_session_get_stats(r->session, &r->c->prefill);
    r->begun = true;
    cli_watch_token(r->watch);
    return 0;
}

static int take_text(void *arg, const char *text, size_t size)
{
    struct run *r = arg;
    if (mr_buf_append(&r->text, text, size, &r->error) < 0)
        return 1;
    return r->piece ? r->piece(r->arg, text, size) : 0;
}

static void take_result(void *arg, const struct mr_result *result)
{
    struct run *r = arg;
    struct cli_completion *c = r->c;
    if (!r->begun)
        mr_session_get_stats(r->session, &c->prefill);
    c->finish = result->finish;
    c->prompt_count = result->prompt_count;
    if (result->finish == MR_FINISH_FAILED && r->error.status == 0)
        r->error = *result->error;
    c->ids = malloc((result->count + 1) * sizeof *c->ids);
    if (!c->ids) {
        mr_fail(&r->error, MR_ERR_MEMORY, "no memory for %zu tokens", result->count);
        return;
    }
    memcpy(c->ids, result->ids, result->count * sizeof *c->ids);
    c->count = result->count;
}

int cli_complete(struct mr_session *session, struct mr_request *request,
                 int (*piece)(void *arg, const char *text, size_t size), void *arg,
                 struct cli_watch *watch, struct cli_completion *c, struct mr_error *err)
{
    struct run r = {.session = session, .c = c, .watch = watch, .piece = piece, .arg = arg};
    struct mr_scheduler *scheduler = NULL;
    *c = (struct cli_completion){0};
    request->token = take_token;
    request->text = take_text;
    request->done = take_result;
    request->arg = &r;
    int rc = mr_scheduler_open(&scheduler, session, NULL, err);
    if (rc == 0)
        rc = mr_scheduler_submit(scheduler, request, NULL, err);
    if (rc == 0 && piece)
        (void)piece(arg, "", 0); // output that has gone ends the text with its first token
    cli_watch_text(watch, session, request->prompt_count - request->resident,
                   (size_t)request->max_tokens);
    for (int more = 1; rc == 0 && more > 0;)
        rc = (more = mr_scheduler_step(scheduler, err)) < 0 ? more : 0;
    cli_watch_end(watch);
    mr_scheduler_close(scheduler);
    if (rc == 0 && r.error.status == 0)
        (void)mr_buf_append(&r.text, "", 1, &r.error);
    if (rc == 0 && r.error.status < 0) {
        *err = r.error;
        rc = err->status;
    }
    if (rc == 0) {
        c->text = r.text.data;
        c->text_size = r.text.size - 1;
        r.text = (struct mr_buf){0};
    }
    mr_buf_free(&r.text);
    return rc;
}

void cli_completion_free(struct cli_completion *c)
{
    free(c->ids);
    free(c->text);
    *c = (struct cli_completion){0};
}

int cli_draw_seed(struct cli_text_options *text, const struct cli_common *c)
{
    uint32_t seed; // short enough to be typed
    if (text->sampling.temperature <= 0 || text->seed_given)
        return EXIT_OK;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
        struct mr_error err = {0};
        (void)mr_fail(&err, MR_ERR_IO, "no random seed: %s; give one with --seed", strerror(errno));
        return cli_fail(&err);
    }
    text->sampling.seed = seed;
    if (!c->quiet)
        fprintf(stderr, "millrace: sampled with --seed %u, which gives the same text again\n",
                seed);
    return EXIT_OK;
}
