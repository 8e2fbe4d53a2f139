// SPDX-License-Identifier: Apache-2.0
// The KV store of an engine, from the host's side.
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "engine/engine_impl.h"

int mr_engine_kv_record(const struct mr_backend *backend)
{
    return (int)((const struct engine *)backend)->kv_rec * BEAT;
}

// Part 0: K, 1: V, 2: prefix maxima of a sequence's layer: where channel c has them, one behind the
// other. Position p is on channel p mod N.
static uint64_t kv_part(const struct engine *e, int seq, int layer, int part, int c)
{
    uint64_t beat = (uint64_t)seq * e->kv_seq + (uint64_t)layer * e->kv_layer +
                    (uint64_t)part * e->kv_positions * e->kv_rec;
    return e->kv_addr[c] + beat * BEAT;
}

// Bytes of a record of K (part 0) or V (1), or of a position's prefix maxima (2).
static size_t kv_bytes(const struct engine *e, int part)
{
    return (size_t)(part == 2 ? e->kv_scale : e->kv_rec) * BEAT;
}

// Between records[count] of a part and the channels.
static int kv_move(struct engine *e, int seq, int layer, int part, int count, uint8_t *records,
                   bool write, struct mr_error *err)
{
    size_t bytes = kv_bytes(e, part);
    uint8_t *piece = malloc(((size_t)count / (size_t)e->n + 1) * bytes);
    int rc = piece ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for KV records");
    for (int c = 0; rc == 0 && c < e->n && c < count; c++) {
        size_t mine = (size_t)(count - c + e->n - 1) / (size_t)e->n;
        uint64_t at = kv_part(e, seq, layer, part, c);
        if (!write)
            rc = mr_device_read(e->dev, at, piece, mine * bytes, err);
        for (size_t i = 0; rc == 0 && i < mine; i++) {
            uint8_t *record = records + (i * (size_t)e->n + (size_t)c) * bytes;
            memcpy(write ? piece + i * bytes : record, write ? record : piece + i * bytes, bytes);
        }
        if (write)
            rc = mr_device_write(e->dev, at, piece, mine * bytes, err);
    }
    free(piece);
    return rc;
}

int mr_engine_kv_read(struct mr_backend *backend, int seq, int layer, int count, uint8_t *records,
                      struct mr_error *err)
{
    struct engine *e = engine_of(backend);
    int rc = kv_move(e, seq, layer, 0, count, records, false, err);
    if (rc == 0)
        rc = kv_move(e, seq, layer, 1, count, records + (size_t)count * kv_bytes(e, 0), false, err);
    return rc;
}

int mr_engine_kv_write(struct mr_backend *backend, int seq, int layer, int count,
                       const uint8_t *records, struct mr_error *err)
{
    struct engine *e = engine_of(backend);
    size_t bytes = kv_bytes(e, 0), scales = kv_bytes(e, 2);
    const uint8_t *v = records + (size_t)count * bytes;
    uint8_t *maxima = calloc((size_t)count, scales);
    if (!maxima)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the prefix maxima of %d positions",
                       count);
    for (int p = 0; p < count; p++)
        for (size_t b = 0; b < scales; b++) {
            uint8_t code = v[(size_t)p * bytes + b];
            uint8_t before = p ? maxima[(size_t)(p - 1) * scales + b] : 0;
            maxima[(size_t)p * scales + b] = code > before ? code : before;
        }
    int rc = kv_move(e, seq, layer, 0, count, (uint8_t *)(uintptr_t)records, true, err);
    if (rc == 0)
        rc = kv_move(e, seq, layer, 1, count, (uint8_t *)(uintptr_t)v, true, err);
    if (rc == 0)
        rc = kv_move(e, seq, layer, 2, count, maxima, true, err);
    free(maxima);
    return rc;
}

int mr_engine_kv_hash(struct mr_backend *backend, int seq, uint64_t *hash, struct mr_error *err)
{
    struct engine *e = engine_of(backend);
    uint64_t h = 0xCBF29CE484222325u;
    uint8_t *rec = malloc(kv_bytes(e, 0));
    int rc = rec ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for a KV record");
    for (int l = 0; rc == 0 && l < backend->config.n_layer; l++)
        for (int pos = 0; rc == 0 && pos < e->seqs[seq].pos; pos++)
            for (int part = 0; rc == 0 && part < 3; part++) { // K, V, prefix maxima
                size_t bytes = kv_bytes(e, part);
                uint64_t at = kv_part(e, seq, l, part, pos % e->n);
                rc = mr_device_read(e->dev, at + (uint64_t)(pos / e->n) * bytes, rec, bytes, err);
                for (size_t i = 0; rc == 0 && i < bytes; i++)
                    h = (h ^ rec[i]) * 0x100000001B3u;
            }
    free(rec);
    *hash = h;
    return rc;
}
