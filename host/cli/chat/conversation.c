// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"

int conversation_open(struct conversation *c, struct mr_error *err)
{
    return mr_session_seq_new(c->session, &c->seq, err);
}

void conversation_close(struct conversation *c)
{
    free(c->tokens);
    mr_buf_free(&c->waiting);
    *c = (struct conversation){0};
}

int conversation_reset(struct conversation *c, struct mr_error *err)
{
    c->count = 0;
    c->waiting.size = 0;
    return mr_session_seq_set_length(c->session, c->seq, 0, err);
}

int conversation_add(struct conversation *c, const char *text, size_t size, struct mr_error *err)
{
    return mr_buf_append(&c->waiting, text, size, err);
}

// Appends tokens; the KV store does not have them yet.
static int append(struct conversation *c, const int32_t *ids, size_t n, struct mr_error *err)
{
    int32_t *more = realloc(c->tokens, (c->count + n + 1) * sizeof *more);
    if (!more)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu tokens", c->count + n);
    c->tokens = more;
    if (n)
        memcpy(more + c->count, ids, n * sizeof *ids);
    c->count += n;
    return 0;
}

static int encode_waiting(struct conversation *c, struct mr_error *err)
{
    int32_t *ids = NULL;
    size_t n = 0;
    if (c->waiting.size == 0)
        return 0;
    int rc = mr_model_encode(c->model, c->waiting.data, c->waiting.size, true, &ids, &n, err);
    if (rc == 0)
        rc = append(c, ids, n, err);
    if (rc == 0)
        c->waiting.size = 0;
    free(ids);
    return rc;
}

// The KV store forgets what is no part of the text.
static int trim(struct conversation *c, size_t most, struct mr_error *err)
{
    size_t length = (size_t)mr_session_seq_length(c->session, c->seq);
    if (length <= most)
        return 0;
    return mr_session_seq_set_length(c->session, c->seq, (int)most, err);
}

// Where the first stop string begins in `size` bytes; `size` if there is none.
static size_t find_stop(const struct cli_text_options *o, const char *text, size_t size)
{
    size_t first = size;
    for (int i = 0; i < o->n_stop; i++) {
        const char *at = memmem(text, size, o->stop[i], strlen(o->stop[i]));
        if (at && (size_t)(at - text) < first)
            first = (size_t)(at - text);
    }
    return first;
}

// Of the new tokens those in front of the stop string stay; of the one in which it begins, the
// bytes before it wait.
static int keep_reply(struct conversation *c, const struct cli_completion *done,
                      struct mr_error *err)
{
    size_t size, at = 0, kept = 0;
    char *text;
    if (done->finish != MR_FINISH_STOP_STRING)
        return append(c, done->ids, done->count, err);
    int rc = mr_model_decode(c->model, done->ids, done->count, &text, &size, err);
    if (rc < 0)
        return rc;
    size_t stop = find_stop(c->options, text, size);
    for (bool more = true; more && kept < done->count;) {
        char *piece;
        size_t bytes;
        rc = mr_model_decode(c->model, done->ids + kept, 1, &piece, &bytes, err);
        if (rc < 0)
            break;
        free(piece);
        more = at + bytes <= stop;
        at += more ? bytes : 0;
        kept += more;
    }
    if (rc == 0)
        rc = append(c, done->ids, kept, err);
    if (rc == 0 && stop > at)
        rc = conversation_add(c, text + at, stop - at, err);
    free(text);
    return rc;
}

int conversation_continue(struct conversation *c,
                          int (*piece)(void *arg, const char *text, size_t size), void *arg,
                          enum mr_finish *finish, struct mr_error *err)
{
    struct cli_completion done = {0};
    struct mr_stats before, after;
    struct mr_error other;
    const struct cli_text_options *o = c->options;
    size_t resident = (size_t)mr_session_seq_length(c->session, c->seq), old = c->count;
    int rc = encode_waiting(c, err);
    if (rc < 0)
        return rc;
    struct mr_request r = {.prompt = c->tokens,
                           .prompt_count = c->count,
                           .max_tokens = o->max_tokens,
                           .sampling = o->sampling,
                           .ignore_eos = o->ignore_eos,
                           .stop = o->stop,
                           .n_stop = o->n_stop,
                           .own_seq = true,
                           .seq = c->seq,
                           .resident = resident};
    mr_session_get_stats(c->session, &before);
    rc = cli_complete(c->session, &r, piece, arg, c->watch, &done, err);
    mr_session_get_stats(c->session, &after);
    c->run = (size_t)(after.tokens - before.tokens);
    *finish = done.finish;
    if (rc == 0) {
        rc = keep_reply(c, &done, err);
    } else if (rc == MR_ERR_INTERRUPTED && done.count > 0 &&
               append(c, done.ids, done.count, &other) == 0) {
        resident = c->count - 1; // all but the last new token were on the device when it came
    } else {
        c->count = old;
    }
    // What a run that failed has left in the store is not known.
    size_t most = rc < 0 && resident < c->count ? resident : c->count;
    int trimmed = trim(c, most, rc < 0 ? &other : err);
    cli_completion_free(&done);
    return rc < 0 ? rc : trimmed;
}

int conversation_save(struct conversation *c, const char *path, struct mr_error *err)
{
    int rc = encode_waiting(c, err);
    if (rc == 0 && c->count == 0)
        rc = mr_fail(err, MR_ERR_USAGE, "there is nothing to save yet");
    size_t length = (size_t)mr_session_seq_length(c->session, c->seq);
    struct mr_row *rows = rc == 0 ? calloc(c->count, sizeof *rows) : NULL;
    if (rc == 0 && !rows)
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for %zu rows", c->count);
    size_t n = 0;
    for (size_t i = length; rc == 0 && i < c->count; i++)
        rows[n++] = (struct mr_row){c->seq, c->tokens[i], false};
    if (rc == 0 && n > 0)
        rc = mr_session_step(c->session, rows, (int)n, NULL, err);
    free(rows);
    return rc < 0 ? rc : mr_session_seq_save(c->session, c->seq, c->tokens, c->count, path, err);
}

int conversation_load(struct conversation *c, const char *path, struct mr_error *err)
{
    int32_t *ids;
    size_t n;
    int rc = mr_session_seq_load(c->session, c->seq, path, &ids, &n, err);
    if (rc < 0)
        return rc;
    free(c->tokens);
    c->tokens = ids;
    c->count = n;
    c->waiting.size = 0;
    return 0;
}
