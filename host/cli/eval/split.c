// SPDX-License-Identifier: Apache-2.0
#include "cli/eval/split.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "text/utf8.h"

static bool is_space(unsigned c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

size_t eval_rstrip(const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    while (size > 0) {
        size_t at = size - 1, n;
        while (at > 0 && size - at < 4 && (p[at] & 0xC0) == 0x80)
            at--;
        if (mr_utf8_scan(p + at, size - at, &n) != MR_UTF8_CHAR || n != size - at ||
            !is_space(mr_utf8_code_point(p + at, n)))
            break;
        size = at;
    }
    return size;
}

static int check(const struct mr_model_info *info, const struct eval_pair *p, struct mr_error *err)
{
    if (p->count <= p->first)
        return mr_fail(err, MR_ERR_USAGE,
                       "the continuation has no tokens of its own behind the context");
    size_t continuation = p->count - p->first;
    if (continuation > (size_t)info->n_positions)
        return mr_fail(err, MR_ERR_FIT,
                       "the continuation has %zu tokens, the model has %d positions", continuation,
                       info->n_positions);
    return 0;
}

// tokens[] becomes context_ids and what `whole` has behind as many.
static int join(struct eval_pair *p, const int32_t *context, size_t n, const int32_t *whole,
                size_t n_whole, struct mr_error *err)
{
    size_t rest = n_whole > n ? n_whole - n : 0;
    p->tokens = malloc((n + rest + 1) * sizeof *p->tokens);
    if (!p->tokens)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu tokens", n + rest);
    memcpy(p->tokens, context, n * sizeof *context);
    if (rest)
        memcpy(p->tokens + n, whole + n, rest * sizeof *whole);
    p->count = n + rest;
    p->first = n;
    return 0;
}

static int with_prefix(const struct mr_model_info *info, struct eval_pair *p, const int32_t *whole,
                       size_t n, struct mr_error *err)
{
    int32_t *ids = malloc((n + 1) * sizeof *ids);
    if (!ids)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu tokens", n);
    if (info->eos_token_id < 0 || info->eos_token_id >= info->vocab_size) {
        free(ids);
        return mr_fail(err, MR_ERR_USAGE,
                       "the context is empty, and the model has no end-of-text token to stand for "
                       "it");
    }
    ids[0] = info->eos_token_id;
    if (n)
        memcpy(ids + 1, whole, n * sizeof *ids);
    *p = (struct eval_pair){ids, n + 1, 1};
    return 0;
}

// The oldest tokens go first where there are more than the model can see.
static void cut_left(struct eval_pair *p, size_t most)
{
    if (p->count <= most)
        return;
    size_t cut = p->count - most;
    memmove(p->tokens, p->tokens + cut, most * sizeof *p->tokens);
    p->count = most;
    p->first -= cut;
}

int eval_split(struct mr_model *model, const char *context, size_t context_size,
               const char *continuation, size_t continuation_size, struct eval_pair *pair,
               struct mr_error *err)
{
    struct mr_model_info info;
    size_t stripped = eval_rstrip(context, context_size), n = 0, n_whole = 0;
    size_t size = context_size + continuation_size;
    int32_t *ids = NULL, *whole = NULL;
    char *text = malloc(size + 1);
    *pair = (struct eval_pair){0};
    mr_model_get_info(model, &info);
    if (!text)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a text of %zu bytes", size);
    memcpy(text, context, context_size);
    memcpy(text + context_size, continuation, continuation_size);
    int rc = mr_model_encode(model, text, size, true, &whole, &n_whole, err);
    if (rc == 0 && stripped > 0)
        rc = mr_model_encode(model, context, stripped, true, &ids, &n, err);
    if (rc == 0)
        rc = stripped > 0 ? join(pair, ids, n, whole, n_whole, err)
                          : with_prefix(&info, pair, whole, n_whole, err);
    if (rc == 0)
        rc = check(&info, pair, err);
    if (rc == 0)
        cut_left(pair, (size_t)info.n_positions + 1);
    if (rc < 0) {
        free(pair->tokens);
        *pair = (struct eval_pair){0};
    }
    free(text);
    free(ids);
    free(whole);
    return rc;
}
