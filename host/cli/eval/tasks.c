// SPDX-License-Identifier: Apache-2.0
#include "cli/eval/tasks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/lines.h"
#include "common/error.h"
#include "common/grow.h"
#include "common/json.h"

// ---- reading -----------------------------------------------------------------------------------

struct reader {
    struct eval_tasks *tasks;
    struct mr_model *model;
    char where[320]; // "file: line 3"
    struct mr_error *err;
};

static int reserve_item(struct eval_tasks *t, struct mr_error *err)
{
    int rc = mr_grow(&t->items, t->n_items, 1, sizeof *t->items, err);
    return rc == 0 ? mr_grow(&t->sources, t->n_items, 1, sizeof *t->sources, err) : rc;
}

static int add_question(struct eval_tasks *t, const struct eval_question *q, struct mr_error *err)
{
    int rc = mr_grow(&t->questions, t->count, 1, sizeof *t->questions, err);
    if (rc == 0)
        t->questions[t->count++] = *q;
    return rc;
}

static size_t count_characters(const char *text)
{
    size_t n = 0; // JSON strings are valid UTF-8
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

// text: the continuation with its delimiter; choice: without.
static int add_item(struct reader *r, const json_t *context, const char *text, const char *choice)
{
    struct eval_tasks *t = r->tasks;
    struct eval_pair pair;
    int rc = reserve_item(t, r->err);
    if (rc == 0)
        rc = eval_split(r->model, json_string_value(context), json_string_length(context), text,
                        strlen(text), &pair, r->err);
    if (rc < 0)
        return rc == MR_ERR_MEMORY ? rc : mr_fail_in(r->err, "%s", r->where);
    t->items[t->n_items] =
        (struct eval_item){.tokens = pair.tokens, .count = pair.count, .first = pair.first};
    t->sources[t->n_items++] = (struct eval_source){pair, count_characters(choice), strlen(choice)};
    return 0;
}

static int refuse(const struct reader *r, const char *what)
{
    return mr_fail(r->err, MR_ERR_FORMAT, "%s: %s; docs/use/eval.md shows the form", r->where,
                   what);
}

static int read_choices(struct reader *r, struct eval_question *q, const json_t *o,
                        const json_t *choices)
{
    const json_t *gold = json_object_get(o, "gold"), *between = json_object_get(o, "delimiter");
    if (!json_is_array(choices) || json_array_size(choices) < 1)
        return refuse(r, "\"choices\" is no list of texts");
    if (!json_is_integer(gold) || json_integer_value(gold) < 0 ||
        (size_t)json_integer_value(gold) >= json_array_size(choices))
        return refuse(r, "\"gold\" is not the number of a choice, from 0");
    if (between && !json_is_string(between))
        return refuse(r, "\"delimiter\" is no text");
    const char *delimiter = between ? json_string_value(between) : " ";
    q->gold = (size_t)json_integer_value(gold);
    q->count = json_array_size(choices);
    for (size_t i = 0; i < q->count; i++) {
        const char *choice = json_string_value(json_array_get(choices, i));
        if (!choice || !*choice)
            return refuse(r, "a choice is empty or no text");
        char *text;
        if (asprintf(&text, "%s%s", delimiter, choice) < 0)
            return mr_fail(r->err, MR_ERR_MEMORY, "no memory for a choice");
        int rc = add_item(r, json_object_get(o, "context"), text, choice);
        free(text);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_question(struct reader *r, struct eval_question *q, const json_t *o)
{
    const json_t *choices = json_object_get(o, "choices"),
                 *continuation = json_object_get(o, "continuation");
    if (!json_is_string(json_object_get(o, "context")))
        return refuse(r, "\"context\" is missing or no text");
    if (!choices == !continuation)
        return refuse(r, "there is to be either \"choices\" or \"continuation\"");
    q->first = r->tasks->n_items;
    if (choices)
        return read_choices(r, q, o, choices);
    const char *text = json_string_value(continuation);
    if (!text || !*text)
        return refuse(r, "\"continuation\" is empty or no text");
    q->cloze = true;
    q->count = 1;
    return add_item(r, json_object_get(o, "context"), text, text);
}

static int read_line(struct reader *r, size_t number, const char *line, size_t size)
{
    struct eval_tasks *t = r->tasks;
    struct eval_question q = {.line = number};
    json_t *o = NULL;
    int rc = mr_json_parse(&o, line, size, r->where, r->err);
    if (rc == 0)
        rc = read_question(r, &q, o);
    json_decref(o);
    return rc < 0 ? rc : add_question(t, &q, r->err);
}

int eval_tasks_read(struct eval_tasks *tasks, struct mr_model *model, const char *path,
                    struct mr_error *err)
{
    struct reader r = {.tasks = tasks, .model = model, .err = err};
    struct cli_lines lines;
    const char *line;
    size_t size, number = 0;
    int rc = cli_lines_open(&lines, path, err), more = rc == 0;
    while (rc == 0 && (more = cli_lines_next(&lines, &line, &size, err)) > 0) {
        (void)snprintf(r.where, sizeof r.where, "%.256s: line %zu", path, ++number);
        if (strspn(line, " \t") < size) // empty lines may be there
            rc = read_line(&r, number, line, size);
    }
    if (rc == 0)
        rc = more;
    if (rc == 0 && tasks->count == 0)
        rc = mr_fail(err, MR_ERR_FORMAT, "%.256s: has no questions; one JSON object a line", path);
    cli_lines_close(&lines);
    return rc;
}

void eval_tasks_free(struct eval_tasks *tasks)
{
    for (size_t i = 0; i < tasks->n_items; i++)
        free(tasks->sources[i].pair.tokens);
    free(tasks->questions);
    free(tasks->items);
    free(tasks->sources);
    *tasks = (struct eval_tasks){0};
}

// ---- counting ----------------------------------------------------------------------------------

struct eval_choice eval_choose(const struct eval_tasks *t, const struct eval_question *q)
{
    struct eval_choice best = {0};
    double top[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (size_t i = 0; i < q->count; i++) {
        const struct eval_source *s = &t->sources[q->first + i];
        double ll = t->items[q->first + i].loglik;
        const double by[3] = {ll, ll / (double)s->characters, ll / (double)s->bytes};
        size_t *const chosen[3] = {&best.plain, &best.per_character, &best.per_byte};
        for (int k = 0; k < 3; k++)
            if (by[k] > top[k]) {
                top[k] = by[k];
                *chosen[k] = i;
            }
    }
    return best;
}

static void count(struct eval_mean *m, bool right)
{
    m->sum += right;
    m->n++;
}

double eval_mean(const struct eval_mean *m)
{
    return m->sum / (double)m->n;
}

double eval_stderr(const struct eval_mean *m)
{
    double p = eval_mean(m), n = (double)m->n;
    return m->n > 1 ? sqrt(p * (1 - p) / (n - 1)) : 0;
}

struct eval_summary eval_summarise(const struct eval_tasks *t)
{
    struct eval_summary s = {0};
    for (size_t i = 0; i < t->count; i++) {
        const struct eval_question *q = &t->questions[i];
        const struct eval_item *item = &t->items[q->first];
        if (q->cloze) {
            count(&s.cloze_acc, item->greedy);
            s.cloze_loglik += item->loglik;
            continue;
        }
        struct eval_choice best = eval_choose(t, q);
        count(&s.acc, best.plain == q->gold);
        count(&s.acc_norm, best.per_character == q->gold);
        count(&s.acc_bytes, best.per_byte == q->gold);
    }
    return s;
}

json_t *eval_question_json(const struct eval_tasks *t, const struct eval_question *q)
{
    json_t *logliks = json_array(), *greedy = json_array(), *tokens = json_array();
    for (size_t i = q->first; i < q->first + q->count; i++) {
        const struct eval_item *item = &t->items[i];
        json_array_append_new(logliks, json_real(item->loglik));
        json_array_append_new(greedy, json_boolean(item->greedy));
        json_array_append_new(tokens, json_integer((json_int_t)(item->count - item->first)));
    }
    json_t *o = json_pack("{s:I, s:o, s:o, s:o}", "line", (json_int_t)q->line, "loglikelihood",
                          logliks, "greedy", greedy, "tokens", tokens);
    if (!q->cloze) {
        struct eval_choice best = eval_choose(t, q);
        json_object_set_new(o, "gold", json_integer((json_int_t)q->gold));
        json_object_set_new(o, "chosen", json_integer((json_int_t)best.plain));
        json_object_set_new(o, "chosen_norm", json_integer((json_int_t)best.per_character));
        json_object_set_new(o, "chosen_bytes", json_integer((json_int_t)best.per_byte));
    }
    return o;
}
