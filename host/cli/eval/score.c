// SPDX-License-Identifier: Apache-2.0
#include "cli/eval/score.h"

#include <math.h>
#include <stdlib.h>

#include "api/logprob.h"
#include "common/error.h"

enum { ROWS = 256 }; // a step: what logits are in memory for

struct place {
    struct eval_item *item;
    size_t next; // the token that the row's logits predict
};

struct scorer {
    struct mr_session *session;
    int vocab, *seqs;
    struct mr_row rows[ROWS];
    struct place places[ROWS];
    int n;
    float *logits; // [ROWS][vocab]
};

static int most_probable(const float *logits, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

static int flush(struct scorer *s, struct mr_error *err)
{
    if (s->n == 0)
        return 0;
    int rc = mr_session_step(s->session, s->rows, s->n, s->logits, err);
    const float *logits = s->logits;
    for (int i = 0; rc == 0 && i < s->n; i++) {
        if (!s->rows[i].want_logits)
            continue;
        struct eval_item *item = s->places[i].item;
        int32_t token = item->tokens[s->places[i].next];
        double p = mr_logprob(logits, s->vocab, token);
        if (isnan(p))
            rc = mr_fail(err, MR_ERR_DEVICE,
                         "a logit is NaN: the weights or the device are damaged");
        item->loglik += p;
        item->greedy &= most_probable(logits, s->vocab) == token;
        logits += s->vocab;
    }
    s->n = 0;
    return rc;
}

// Rows of items[count], each in a sequence of its own, in steps of ROWS.
static int score_group(struct scorer *s, struct eval_item *items, size_t count,
                       struct mr_error *err)
{
    int rc = 0;
    size_t opened = 0;
    for (; rc == 0 && opened < count; opened += rc == 0)
        rc = mr_session_seq_new(s->session, &s->seqs[opened], err);
    for (size_t k = 0; rc == 0 && k < count; k++) {
        struct eval_item *item = &items[k];
        item->loglik = 0;
        item->greedy = true;
        for (size_t i = 0; rc == 0 && i + 1 < item->count; i++) {
            s->rows[s->n] = (struct mr_row){s->seqs[k], item->tokens[i], i + 1 >= item->first};
            s->places[s->n++] = (struct place){item, i + 1};
            if (s->n == ROWS)
                rc = flush(s, err);
        }
    }
    if (rc == 0)
        rc = flush(s, err);
    for (size_t k = 0; k < opened; k++)
        mr_session_seq_free(s->session, s->seqs[k]);
    return rc;
}

int eval_score(struct mr_session *session, int vocab, int sequences, struct eval_item *items,
               size_t n, struct mr_error *err)
{
    struct scorer *s = calloc(1, sizeof *s);
    int *seqs = calloc((size_t)sequences, sizeof *seqs);
    float *logits = malloc((size_t)ROWS * (size_t)vocab * sizeof *logits);
    int rc = s && seqs && logits ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for logits");
    if (rc == 0)
        *s = (struct scorer){.session = session, .vocab = vocab, .seqs = seqs, .logits = logits};
    for (size_t at = 0, group; rc == 0 && at < n; at += group) {
        group = n - at < (size_t)sequences ? n - at : (size_t)sequences;
        rc = score_group(s, items + at, group, err);
    }
    free(s);
    free(seqs);
    free(logits);
    return rc;
}

size_t eval_windows(const int32_t *ids, size_t count, size_t window, size_t stride,
                    struct eval_item *items)
{
    size_t n = 0, scored = 1;
    for (size_t at = 0; scored < count; at += stride) {
        size_t end = count - at < window ? count : at + window;
        if (items)
            items[n] =
                (struct eval_item){.tokens = ids + at, .count = end - at, .first = scored - at};
        scored = end;
        n++;
    }
    return n;
}
