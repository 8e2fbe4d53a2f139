// SPDX-License-Identifier: Apache-2.0
// Generation from a list of prompts: all go to a scheduler, which runs until it is idle.
#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
#include "common/buf.h"

struct batch;

struct job {
    struct batch *b;
    int prompt; // index in the batch
    bool begun; // has its first token, or has ended without
    struct mr_buf text;
};

struct batch {
    const struct mr_generate_options *opt;
    struct mr_generated *out;
    struct job *jobs;
    int first, begun; // prompts that the first step takes; how many have begun
    struct mr_error error;
};

void mr_generated_free(struct mr_generated *g)
{
    free(g->ids);
    free(g->text);
    *g = (struct mr_generated){0};
}

static void count_begun(struct job *j)
{
    j->b->begun += !j->begun && j->prompt < j->b->first;
    j->begun = true;
}

static int take_token(void *arg, const struct mr_token *token)
{
    (void)token;
    count_begun(arg);
    return 0;
}

static int take_text(void *arg, const char *piece, size_t size)
{
    struct job *j = arg;
    const struct mr_generate_options *opt = j->b->opt;
    if (mr_buf_append(&j->text, piece, size, &j->b->error) < 0)
        return 1;
    return opt->text ? opt->text(opt->arg, j->prompt, piece, size) : 0;
}

static void take_result(void *arg, const struct mr_result *r)
{
    struct job *j = arg;
    struct mr_generated *g = &j->b->out[j->prompt];
    count_begun(j);
    g->finish = r->finish;
    g->count = r->count;
    g->prompt_count = r->prompt_count;
    if (r->finish == MR_FINISH_FAILED && j->b->error.status == 0)
        j->b->error = *r->error;
    g->ids = malloc((r->count ? r->count : 1) * sizeof *g->ids);
    if (g->ids && mr_buf_append(&j->text, "", 1, &j->b->error) == 0) {
        memcpy(g->ids, r->ids, r->count * sizeof *g->ids);
        g->text = j->text.data;
        g->text_size = j->text.size - 1;
        j->text = (struct mr_buf){0};
    } else if (j->b->error.status == 0) {
        mr_fail(&j->b->error, MR_ERR_MEMORY, "no memory for %zu tokens", r->count);
    }
}

static int submit(struct mr_scheduler *s, struct batch *b, int i, const int32_t *prompt,
                  size_t size, int n, struct mr_error *err)
{
    const struct mr_generate_options *opt = b->opt;
    b->jobs[i] = (struct job){.b = b, .prompt = i};
    const struct mr_request r = {.prompt = prompt,
                                 .prompt_count = size,
                                 .max_tokens = opt->max_tokens,
                                 .sampling = opt->sampling,
                                 .ignore_eos = opt->ignore_eos,
                                 .stop = opt->stop,
                                 .n_stop = opt->n_stop,
                                 .token = take_token,
                                 .text = take_text,
                                 .done = take_result,
                                 .arg = &b->jobs[i]};
    struct mr_error e = {0};
    int rc = mr_scheduler_submit(s, &r, NULL, &e);
    if (rc < 0 && n > 1)
        mr_fail_in(&e, "number %d of the batch", i);
    if (rc < 0 && err)
        *err = e;
    return rc;
}

int mr_generate(struct mr_session *session, const int32_t *const *prompts, const size_t *sizes,
                int n, const struct mr_generate_options *opt, struct mr_generated *out,
                struct mr_error *err)
{
    for (int i = 0; i < n; i++)
        out[i] = (struct mr_generated){0};
    if (n < 1)
        return mr_fail(err, MR_ERR_USAGE, "generation needs a prompt");
    struct batch b = {.opt = opt, .out = out};
    struct mr_scheduler *s = NULL;
    b.first = n < session->max_seqs ? n : session->max_seqs;
    b.jobs = calloc((size_t)n, sizeof *b.jobs);
    int rc = b.jobs ? mr_scheduler_open(&s, session, NULL, err)
                    : mr_fail(err, MR_ERR_MEMORY, "no memory for %d prompts", n);
    for (int i = 0; rc == 0 && i < n; i++)
        rc = submit(s, &b, i, prompts[i], sizes[i], n, err);
    bool reading = opt->after_prefill != NULL;
    for (int more = 1; rc == 0 && more;) {
        more = mr_scheduler_step(s, err);
        rc = more < 0 ? more : 0;
        if (rc == 0 && b.error.status < 0) {
            rc = b.error.status;
            if (err)
                *err = b.error;
        }
        if (rc == 0 && reading && b.begun == b.first) {
            mr_session_get_stats(session, opt->after_prefill);
            reading = false;
        }
    }
    mr_scheduler_close(s);
    for (int i = 0; b.jobs && i < n; i++)
        mr_buf_free(&b.jobs[i].text);
    for (int i = 0; rc < 0 && i < n; i++)
        mr_generated_free(&out[i]);
    free(b.jobs);
    return rc;
}
