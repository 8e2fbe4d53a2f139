// SPDX-License-Identifier: Apache-2.0
#include "data/documents.h"

#include <stdlib.h>
#include <string.h>

#include "common/grow.h"

enum { FULL = 4 << 20, MOST = 1 << 14 }; // bytes, records of a batch

// A record whose text begins at `at`: a prompt, if any, and what is learnt.
struct mr_waiting {
    size_t at, prompt, size;
    bool pair, whole;
    int rc;
    struct mr_error err;
};

int mr_documents_open(struct mr_documents *d, const char *path, struct mr_error *err)
{
    const struct mr_load_options how = {.text = true, .describe = true};
    struct mr_model_info info;
    int workers = mr_pool_default(), rc = 0;
    *d = (struct mr_documents){0};
    d->pool = mr_pool_new(workers);
    d->models = calloc((size_t)workers, sizeof(struct mr_model *));
    if (!d->pool || !d->models)
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for %d tokenizers", workers);
    for (int i = 0; i < workers && rc == 0; i++)
        rc = mr_model_load(&d->models[i], path, &how, err);
    if (rc < 0) {
        mr_documents_close(d);
        return rc;
    }
    mr_model_get_info(d->models[0], &info);
    d->end = info.eos_token_id;
    return 0;
}

void mr_documents_clear(struct mr_documents *d)
{
    for (size_t i = 0; i < d->count; i++)
        free(d->documents[i].ids);
    d->count = 0;
    d->text.size = 0;
}

void mr_documents_close(struct mr_documents *d)
{
    mr_documents_clear(d);
    for (int i = 0; d->pool && d->models && i < mr_pool_workers(d->pool); i++)
        mr_model_close(d->models[i]); // NULL is allowed
    mr_pool_free(d->pool);
    mr_buf_free(&d->text);
    free(d->models);
    free(d->waiting);
    free(d->documents);
    *d = (struct mr_documents){0};
}

static int reserve(struct mr_documents *d, struct mr_error *err)
{
    int rc = mr_grow(&d->waiting, d->count, 1, sizeof *d->waiting, err);
    return rc == 0 ? mr_grow(&d->documents, d->count, 1, sizeof *d->documents, err) : rc;
}

int mr_documents_add(struct mr_documents *d, const struct mr_record *r, struct mr_error *err)
{
    size_t at = d->text.size;
    int rc = reserve(d, err);
    if (rc == 0 && r->prompt)
        rc = mr_buf_append(&d->text, r->prompt, r->prompt_size, err);
    if (rc == 0)
        rc = mr_buf_append(&d->text, r->text, r->size, err);
    if (rc < 0)
        return rc;
    d->waiting[d->count] = (struct mr_waiting){
        .at = at, .prompt = r->prompt_size, .size = r->size, .pair = r->prompt, .whole = r->whole};
    d->documents[d->count++] = (struct mr_document){0};
    return 0;
}

bool mr_documents_full(const struct mr_documents *d)
{
    return d->text.size >= FULL || d->count >= MOST;
}

// Appends the tokens of a text.
static int encode(struct mr_model *model, const char *text, size_t size, struct mr_document *to,
                  struct mr_error *err)
{
    int32_t *ids = NULL;
    size_t count = 0;
    int rc = mr_model_encode(model, text, size, true, &ids, &count, err);
    if (rc == 0 && count > 0) {
        rc = mr_grow(&to->ids, to->count, count + 1, sizeof *to->ids, err); // and the end
        if (rc == 0) {
            memcpy(to->ids + to->count, ids, count * sizeof *ids);
            to->count += count;
        }
    }
    free(ids);
    return rc;
}

static void task(void *arg, int i, int worker)
{
    struct mr_documents *d = arg;
    struct mr_waiting *w = &d->waiting[i];
    struct mr_document *to = &d->documents[i];
    const char *text = d->text.data ? d->text.data + w->at : "";
    struct mr_model *model = d->models[worker];
    w->rc = w->pair ? encode(model, text, w->prompt, to, &w->err) : 0;
    to->learnt = to->count > 1 ? to->count : 1;
    size_t before = to->count;
    if (w->rc == 0)
        w->rc = encode(model, text + w->prompt, w->size, to, &w->err);
    bool nothing = to->count == before; // nothing is learnt of an empty text, not even its end
    if (w->rc == 0 && w->whole && d->end >= 0 && !nothing && to->ids[to->count - 1] != d->end)
        to->ids[to->count++] = d->end;
}

int mr_documents_encode(struct mr_documents *d, struct mr_error *err)
{
    mr_pool_run(d->pool, (int)d->count, task, d, true);
    for (size_t i = 0; i < d->count; i++)
        if (d->waiting[i].rc < 0)
            return mr_fail(err, d->waiting[i].rc, "%s", d->waiting[i].err.text);
    return 0;
}
