// SPDX-License-Identifier: Apache-2.0
// The files of a training's state. The input is the used part of a slot of the header, then bytes
// that are put over a state that was whole: u16 place in units of 16 bytes, u8 file, u8 length, the
// bytes. Checksums are made right, or nothing behind them would be reached.
#include "store/header.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "fuzz.h"
#include "store/store.h"
#include "store/turned.h"

enum { HASH = 16, MOST = 300000 };

static const struct mr_config config = {.vocab_size = 40,
                                        .n_positions = 8,
                                        .n_embd = 8,
                                        .n_layer = 1,
                                        .n_head = 2,
                                        .head_dim = 4,
                                        .rotary_dim = 2,
                                        .n_inner = 12,
                                        .layer_norm_epsilon = 1e-5F,
                                        .bos_token_id = -1,
                                        .eos_token_id = -1};

// Patches of a step and a lineage on a side, as far as the file goes.
static void seal_all(struct mr_volume *v, const struct mr_store_layout *l, uint64_t begin,
                     uint64_t step, uint64_t lineage)
{
    for (size_t i = 0; i < l->patches; i++) {
        const struct mr_store_patch *p = &l->patch[i];
        struct mr_store_seal seal = {mr_store_model(&config), step, i, lineage, {0}, 0};
        if (begin > v->size[MR_V_STATE] || begin + p->at + p->bytes > v->size[MR_V_STATE])
            continue;
        unsigned char *data = v->data[MR_V_STATE] + begin + p->at;
        memcpy(data + p->bytes - sizeof seal, &seal, sizeof seal);
        seal.hash = XXH3_64bits(data, p->bytes - sizeof seal.hash);
        memcpy(data + p->bytes - sizeof seal, &seal, sizeof seal);
    }
}

// A model of 0 stands for that of the state; a hash of gradients of 0 for theirs.
static void complete(struct mr_volume *v, const struct mr_store_layout *l,
                     struct mr_store_header *h)
{
    uint64_t hash = l->patches;
    for (size_t i = 0; i < l->patches; i++) {
        const struct mr_store_patch *p = &l->patch[i];
        const uint64_t pair[2] = {
            hash, XXH3_64bits(v->data[MR_V_GRADIENTS] + 4 * p->first, 4 * p->count)};
        hash = XXH3_64bits(pair, sizeof pair);
    }
    h->model = h->model ? h->model : mr_store_model(&config);
    h->gradients = h->gradients || !h->updating ? h->gradients : hash;
}

static void put_header(struct mr_volume *v, const struct mr_store_layout *l, const uint8_t *data,
                       size_t size)
{
    uint64_t slot = v->size[MR_V_HEADER] / 2, zero = 0;
    unsigned char *to = v->data[MR_V_HEADER] + slot;
    memcpy(to, data, size < slot ? size : slot);
    memcpy(to + HASH, &zero, sizeof zero);
    complete(v, l, (struct mr_store_header *)(void *)to);
    uint64_t hash = XXH3_64bits(to, slot);
    memcpy(to + HASH, &hash, sizeof hash);
}

static void put_bytes(struct mr_volume *v, const uint8_t *data, size_t size)
{
    while (size >= 4) {
        size_t at = 16 * ((size_t)data[0] + 256 * (size_t)data[1]), n = data[3];
        enum mr_volume_file f = data[2] % 2 ? MR_V_STATE : MR_V_GRADIENTS;
        data += 4;
        size -= 4;
        n = n < size ? n : size;
        if (at + n <= v->size[f])
            memcpy(v->data[f] + at, data, n);
        data += n;
        size -= n;
    }
}

// What an accepted state promises: a step, tensors that can be read, streams of the right size.
static void use(struct mr_store *s, const struct mr_store_layout *l)
{
    uint64_t bytes;
    fuzz_check(mr_store_step(s) <= INT32_MAX, "the step");
    for (size_t i = 0; i < l->tensors; i++) {
        size_t n = (size_t)l->tensor[i].outputs * (size_t)l->tensor[i].inputs;
        float *out = malloc(n * sizeof *out);
        fuzz_check(out != NULL, "memory");
        mr_store_read(s, i, MR_SQUARE, out);
        free(out);
        fuzz_check(abs(mr_store_unit(s, i)) <= MR_UNIT_LIMIT, "the units");
    }
    fuzz_check(mr_store_stream(s, &bytes) && bytes == mr_store_stream_bytes(&config), "W");
    fuzz_check(mr_store_turned(s, &bytes) && bytes == mr_store_turned_bytes(&config), "Wt");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    struct mr_store_layout l;
    struct mr_volume *v;
    struct mr_store *s;
    uint64_t sizes[MR_V_FILES], gap, step, lineage;
    uint32_t side, version;
    struct mr_store_options options = {.threads = 1, .gap = 1};
    fuzz_check(mr_store_layout_make(&l, &config, &err) == 0, "the layout");
    size_t header = sizeof(struct mr_store_header) + l.tensors * sizeof(struct mr_store_unit);
    if (size < header) {
        mr_store_layout_free(&l);
        return 0;
    }
    memcpy(&gap, data + offsetof(struct mr_store_header, gap), sizeof gap);
    memcpy(&step, data + offsetof(struct mr_store_header, step), sizeof step);
    memcpy(&lineage, data + offsetof(struct mr_store_header, lineage), sizeof lineage);
    memcpy(&version, data + offsetof(struct mr_store_header, version), sizeof version);
    memcpy(&side, data + offsetof(struct mr_store_header, side), sizeof side);
    fuzz_check(mr_store_sizes(&config, options.gap, sizes, &err) == 0, "the sizes");
    if (gap < MOST) // the file that such a header wants
        sizes[MR_V_STATE] = l.bytes + gap;
    fuzz_check(mr_volume_memory(&v, sizes, &err) == 0, "memory");
    put_bytes(v, data + header, size - header);
    seal_all(v, &l, side ? gap : 0, step, version < MR_STORE_LINEAGE ? 0 : lineage);
    put_header(v, &l, data, header);
    int rc = mr_store_open_volume(&s, v, &config, NULL, &options, &err);
    fuzz_check_outcome(rc, &err);
    if (rc == 0)
        use(s, &l);
    mr_store_close(s);
    mr_store_layout_free(&l);
    return 0;
}
