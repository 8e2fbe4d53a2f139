// SPDX-License-Identifier: Apache-2.0
// KV stores of sequences to and from files.
#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
#include "engine/engine.h"
#include "engine/kv_file.h"
#include "pack/identity.h"

static int shape_of(const struct mr_session *s, struct mr_kv_shape *shape, struct mr_error *err)
{
    const struct mr_config *c = &s->backend->config;
    if (!s->dev)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "cpu: has its KV store in fp32 and does not save or load it; use model: or "
                       "another device");
    *shape = (struct mr_kv_shape){.two_pass = mr_engine_two_pass(s->backend),
                                  .n_layer = c->n_layer,
                                  .record_bytes = mr_engine_kv_record(s->backend),
                                  .vocab_size = c->vocab_size,
                                  .n_positions = c->n_positions};
    return mr_packed_identity(&s->model->packed, &shape->model, err);
}

struct source {
    struct mr_session *s;
    int seq, count;
};

static int read_layer(void *arg, int l, uint8_t *buffer, struct mr_error *err)
{
    const struct source *from = arg;
    return mr_engine_kv_read(from->s->backend, from->seq, l, from->count, buffer, err);
}

int mr_session_seq_save(struct mr_session *session, int seq, const int32_t *tokens, size_t count,
                        const char *path, struct mr_error *err)
{
    struct mr_kv_shape shape;
    int rc = shape_of(session, &shape, err);
    if (rc < 0)
        return rc;
    int length = mr_engine_seq_length(session->backend, seq);
    if (count < 1 || length < 0 || count > (size_t)length)
        return mr_fail(err, MR_ERR_USAGE, "sequence %d has %d positions; %zu cannot be saved", seq,
                       length, count);
    struct source from = {session, seq, (int)count};
    return mr_kv_write(path, &shape, tokens, (int)count, read_layer, &from, err);
}

int mr_session_seq_load(struct mr_session *session, int seq, const char *path, int32_t **tokens,
                        size_t *count, struct mr_error *err)
{
    struct mr_kv_shape shape;
    struct mr_kv_file file;
    *tokens = NULL;
    *count = 0;
    int rc = shape_of(session, &shape, err);
    if (rc == 0 && mr_engine_seq_length(session->backend, seq) < 0)
        rc = mr_fail(err, MR_ERR_USAGE, "there is no sequence %d", seq);
    if (rc == 0)
        rc = mr_kv_open(&file, path, &shape, err);
    if (rc < 0)
        return rc;
    size_t layer = 2 * (size_t)file.count * (size_t)shape.record_bytes;
    int32_t *ids = malloc((size_t)file.count * sizeof *ids);
    if (!ids)
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for %d tokens", file.count);
    // Half a store is no sequence: it stays empty until all of it is there.
    if (rc == 0)
        rc = mr_engine_seq_set_length(session->backend, seq, 0, err);
    for (int l = 0; rc == 0 && l < shape.n_layer; l++)
        rc = mr_engine_kv_write(session->backend, seq, l, file.count,
                                file.records + (size_t)l * layer, err);
    if (rc == 0)
        rc = mr_engine_seq_set_length(session->backend, seq, file.count, err);
    if (rc == 0) {
        memcpy(ids, file.tokens, (size_t)file.count * sizeof *ids);
        *tokens = ids;
        *count = (size_t)file.count;
        ids = NULL;
    }
    free(ids);
    mr_kv_close(&file);
    return rc;
}
