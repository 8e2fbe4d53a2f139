// SPDX-License-Identifier: Apache-2.0
#include "engine/synthetic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/error.h"
#include "common/str.h"

enum { HUGE_PAGE = 2 << 20 };

// xorshift64* (Vigna 2016)
static uint64_t next(uint64_t *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * 0x2545F4914F6CDD1Du;
}

static void fill(uint8_t *p, size_t n, uint64_t *s)
{
    for (size_t i = 0; i < n; i += 8) { // n is a multiple of 64
        uint64_t r = next(s);
        memcpy(p + i, &r, 8);
    }
}

// Scale codes around 2^-4 / sqrt(k), so that results keep the size of the inputs.
static uint8_t scale_base(int k)
{
    int e = 0;
    while (1 << (2 * e) < k)
        e++;
    return (uint8_t)(127 - 1 - e);
}

// -128 is legal in foreign streams but never written by the packer: keep to what it writes.
static void clamp_bytes(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = p[i] == 0x80 ? 0x81 : p[i];
}

static uint8_t *matrix(const struct mr_stream_item *item, uint8_t *out, uint64_t *s)
{
    uint8_t base = scale_base(item->k);
    bool fp4 = item->format == MR_FORMAT_MXFP4;
    for (int g = 0; g < item->cols / 64; g++) {
        size_t header = (size_t)mr_header_beats(item) * MR_BEAT;
        memset(out, 0, header);
        memset(out, base + 3, MR_BEAT); // the four codes base .. base + 3 all occur
        out += header;
        for (int j = 0; j < 16; j++)
            for (int k = 0; k < item->k / 32; k += 16) {
                int n = item->k / 32 - k < 16 ? item->k / 32 - k : 16;
                fill(out, MR_BEAT, s);
                for (int i = 0; i < MR_BEAT; i++)
                    out[i] = i < 4 * n ? (uint8_t)(base + (i < 4 && k == 0 ? 3 : out[i] & 3)) : 0;
                out += MR_BEAT;
                size_t bytes = (size_t)n * (fp4 ? 64 : 128);
                fill(out, bytes, s);
                if (!fp4)
                    clamp_bytes(out, bytes);
                out += bytes;
            }
    }
    return out;
}

static uint8_t *vectors(const struct mr_stream_item *item, int n, uint8_t *out)
{
    float one = 1.0f;
    size_t half = (size_t)mr_item_beats(item, 1) / 2 * MR_BEAT;
    memset(out, 0, 2 * half);
    for (int i = 0; i < n; i++)
        memcpy(out + 4 * (size_t)i, &one, 4);
    return out + 2 * half;
}

static int interrupted(struct mr_packed *packed, struct mr_error *err)
{
    mr_packed_close(packed);
    return mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
}

int mr_packed_synthetic(struct mr_packed *packed, const struct mr_config *c,
                        const struct mr_pack_options *opt, uint64_t seed, struct mr_error *err)
{
    enum mr_format format = opt->format;
    const struct mr_list *tables = &mr_arch_of(c)->tables;
    const int rows[] = {c->vocab_size, c->n_positions, c->n_types};
    size_t table = 0;
    for (int i = 0; i < tables->count; i++)
        table += (size_t)rows[i] * (size_t)c->n_embd;
    *packed = (struct mr_packed){.config = *c, .format = format};
    int rc = mr_stream_list_make(&packed->list, c, format, err);
    if (rc < 0)
        return rc;
    size_t stream = packed->list.bytes;
    size_t bytes = (stream + table * 2 + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    uint8_t *memory = aligned_alloc(HUGE_PAGE, bytes);
    if (!memory) {
        mr_packed_close(packed);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu bytes of synthetic weights", stream);
    }
    packed->memory = memory;
    packed->stream = memory;
    (void)madvise(memory, bytes, MADV_HUGEPAGE); // faults of six gigabytes page by page take longer
    uint64_t s = seed * 2 + 1;
    uint8_t *out = memory;
    for (int i = 0; i < packed->list.count; i++) {
        const struct mr_stream_item *item = &packed->list.entries[i].item;
        out = item->cols ? matrix(item, out, &s) : vectors(item, c->n_embd, out);
        if (opt->progress && opt->progress(opt->arg, (size_t)(out - memory), stream + table * 2))
            return interrupted(packed, err);
    }
    for (size_t i = 0; i < table; i++) { // bf16 between -2 and 2
        if (i % (1 << 22) == 0 && opt->progress &&
            opt->progress(opt->arg, stream + i * 2, stream + table * 2))
            return interrupted(packed, err);
        uint16_t v = (uint16_t)(0x3F00 | (next(&s) & 0x80FF));
        memcpy(out + 2 * i, &v, 2);
    }
    struct mr_tensor *to[] = {&packed->embedding, &packed->positions, &packed->types};
    for (int i = 0; i < tables->count; i++) {
        size_t count = (size_t)rows[i] * (size_t)c->n_embd;
        *to[i] = (struct mr_tensor){
            .name = "synthetic embedding",
            .dtype = MR_DTYPE_BF16,
            .rank = 2,
            .shape = {rows[i], c->n_embd},
            .count = count,
            .data = out,
            .bytes = 2 * count,
        };
        out += 2 * count;
    }
    return 0;
}

// Preset `index` of all architectures together; NULL beyond the last.
static const struct mr_preset *preset_at(int index)
{
    const struct mr_arch *arch;
    for (int i = 0; (arch = mr_arch_at(i)); index -= arch->n_presets, i++)
        if (index < arch->n_presets)
            return &arch->presets[index];
    return NULL;
}

static const struct mr_config *find_preset(const char *name, size_t size)
{
    const struct mr_preset *p;
    for (int i = 0; (p = preset_at(i)); i++)
        if (strlen(p->name) == size && strncmp(p->name, name, size) == 0)
            return &p->config;
    return NULL;
}

struct names {
    char text[256];
};

// "gptj-6b, gpt2, ..."
static struct names known_presets(void)
{
    struct names list = {0};
    const struct mr_preset *p;
    size_t n = 0;
    for (int i = 0; (p = preset_at(i)) && n < sizeof list.text; i++)
        n += (size_t)snprintf(list.text + n, sizeof list.text - n, "%s%s", i ? ", " : "", p->name);
    return list;
}

static int refuse(const char *text, const struct mr_config *preset, struct mr_error *err)
{
    if (!preset)
        return mr_fail(err, MR_ERR_USAGE, "synthetic:%s: known are %s", mr_show(text).text,
                       known_presets().text);
    return mr_fail(err, MR_ERR_USAGE,
                   "synthetic:%s: expected are layers=1..%d, vocab=1..%d, seed=1..1000000, each at "
                   "most once",
                   mr_show(text).text, preset->n_layer, preset->vocab_size);
}

int mr_synthetic_parse(const char *text, struct mr_config *config, uint64_t *seed_out,
                       struct mr_error *err)
{
    size_t n = strcspn(text, ",");
    const struct mr_config *preset = find_preset(text, n);
    struct mr_config c = preset ? *preset : (struct mr_config){0};
    long layers = c.n_layer, vocab = c.vocab_size, seed = 1;
    const struct {
        const char *key;
        long high;
        long *out;
    } keys[] = {
        {",layers=", layers, &layers}, {",vocab=", vocab, &vocab}, {",seed=", 1000000, &seed}};
    bool given[sizeof keys / sizeof *keys] = {false};
    const char *p = text + n;
    bool ok = preset;
    while (ok && *p) {
        ok = false;
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            size_t length = strlen(keys[i].key);
            if (strncmp(p, keys[i].key, length) != 0)
                continue;
            char *end;
            long v = strtol(p + length, &end, 10);
            ok = end != p + length && v >= 1 && v <= keys[i].high && (*end == ',' || *end == 0) &&
                 !given[i];
            given[i] = true;
            *keys[i].out = v;
            p = end;
            break;
        }
    }
    if (!ok)
        return refuse(text, preset, err);
    c.n_layer = (int)layers;
    c.vocab_size = (int)vocab;
    if (c.vocab_size <= c.eos_token_id) // cut off with the rest
        c.bos_token_id = c.eos_token_id = -1;
    *config = c;
    *seed_out = (uint64_t)seed;
    return 0;
}
