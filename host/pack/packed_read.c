// SPDX-License-Identifier: Apache-2.0
#include "pack/packed.h"

#include <stdio.h>
#include <string.h>

#include "checkpoint/foreign.h"
#include "pack/hash.h"
#include "pack/packed_check.h"
#include "pack/packed_format.h"

struct reader {
    const struct mr_file *file;
    const char *path;
    struct mr_packed_header header;
    struct mr_packed_layout layout; // what the configuration implies
    struct mr_error *err;
};

static const char *const section_name[MR_S_COUNT] = {"config", "tokenizer", "tensor", "embedding",
                                                     "stream"};

static int damaged(const struct reader *r, const char *what)
{
    return mr_fail(r->err, MR_ERR_FORMAT, "%s: %s; copy or pack the model again", r->path, what);
}

// What belongs to no section is zero: nothing hides in a file that its checksums vouch for.
static int check_zeros(const struct reader *r, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        if (r->file->data[i])
            return mr_fail(r->err, MR_ERR_FORMAT,
                           "%s: the padding at byte %llu is not zero; copy or pack the model again",
                           r->path, (unsigned long long)i);
    return 0;
}

static int check_header(struct reader *r)
{
    const struct mr_file *file = r->file;
    struct mr_packed_header *h = &r->header;
    if (file->size < sizeof mr_packed_magic ||
        memcmp(file->data, mr_packed_magic, sizeof mr_packed_magic) != 0)
        return mr_fail(r->err, MR_ERR_FORMAT,
                       "%s: is not a packed model (no \"MILLRACE\" at its start); make one with "
                       "'millrace pack', or give a Hugging Face directory",
                       r->path);
    if (file->size < MR_PACKED_PAGE)
        return mr_fail(r->err, MR_ERR_FORMAT, "%s: is truncated: %zu bytes, less than a header",
                       r->path, file->size);
    memcpy(h, file->data, sizeof *h);
    if (h->version != MR_PACKED_VERSION)
        return mr_fail(r->err, MR_ERR_UNSUPPORTED,
                       "%s: has version %u of the packed format, this program reads version %d; "
                       "pack the model again",
                       r->path, h->version, MR_PACKED_VERSION);
    if (check_zeros(r, sizeof *h, MR_PACKED_PAGE) < 0)
        return mr_fail_in(r->err, "the header is damaged");
    if (mr_packed_header_hash(h) != h->hash)
        return damaged(r, "the header is damaged (checksum)");
    if (h->file_bytes != file->size)
        return mr_fail(r->err, MR_ERR_FORMAT,
                       "%s: is %s: %zu bytes of %llu; copy or pack the model again", r->path,
                       file->size < h->file_bytes ? "truncated" : "too long", file->size,
                       (unsigned long long)h->file_bytes);
    if (h->header_bytes != MR_PACKED_PAGE || h->n_sections != MR_S_COUNT ||
        h->format > MR_FORMAT_MXFP4 ||
        (h->flags & ~(uint32_t)(MR_PACKED_SMOOTHED | MR_PACKED_CALIBRATED)) || h->zero || h->zeros)
        return mr_fail(r->err, MR_ERR_FORMAT,
                       "%s: the header has values that version %d does not know", r->path,
                       MR_PACKED_VERSION);
    return 0;
}

// Sections follow each other from page to page, with zeros between, up to the end of the file.
static int check_sections(const struct reader *r)
{
    uint64_t end = MR_PACKED_PAGE;
    for (uint32_t i = 0; i < MR_S_COUNT; i++) {
        const struct mr_packed_section *s = &r->header.section[i];
        bool bulk = i == MR_S_EMBEDDING || i == MR_S_STREAM;
        uint64_t start = (end + MR_PACKED_PAGE - 1) / MR_PACKED_PAGE * MR_PACKED_PAGE;
        if (s->id != i + 1 || s->zero[0] || s->zero[1] || s->zero[2] || s->zero[3] ||
            (i == MR_S_EMBEDDING ? MR_PACKED_DTYPE(s->detail) >= MR_PACKED_DTYPES
                                 : s->detail != 0) ||
            (bulk && s->hash))
            return mr_fail(r->err, MR_ERR_FORMAT, "%s: the entry of section %u (%s) is not valid",
                           r->path, i, section_name[i]);
        if (s->offset != start || start > r->file->size || s->size > r->file->size - start)
            return mr_fail(r->err, MR_ERR_FORMAT,
                           "%s: the %s section is not where it has to be: behind the one before, "
                           "inside the file",
                           r->path, section_name[i]);
        int rc = check_zeros(r, end, start);
        if (rc < 0)
            return rc;
        end = start + s->size;
        if (!bulk && XXH3_64bits(r->file->data + start, s->size) != s->hash)
            return mr_fail(r->err, MR_ERR_FORMAT,
                           "%s: the %s section is damaged (checksum); copy or pack the model again",
                           r->path, section_name[i]);
    }
    int rc = check_zeros(r, end, r->file->size);
    return rc < 0 || end == r->file->size ? rc : damaged(r, "bytes follow its last section");
}

// What the header says of an encoder: the heads that there are, among them those of its class, and
// how its texts are read. Of other models it says nothing.
static int check_encoder(const struct reader *r, struct mr_config *c)
{
    const struct mr_packed_header *h = &r->header;
    const struct mr_arch *arch = mr_arch_of(c);
    uint32_t heads = MR_PACKED_HEADS(h->section[MR_S_EMBEDDING].detail), known = 0;
    for (int i = 0; i < arch->n_heads; i++)
        known |= 1U << arch->heads[i].head;
    bool fits = arch->encoder ? h->format == MR_FORMAT_MXINT8 && h->pooling >= 1 &&
                                    h->pooling <= MR_POOLING_CLS + 1 && h->max_tokens >= 1 &&
                                    h->max_tokens <= (uint32_t)c->n_positions
                              : h->pooling == 0 && h->max_tokens == 0;
    if (!fits || (heads & ~known) || (c->heads & ~heads))
        return mr_fail(r->err, MR_ERR_FORMAT, "%s: the header has values that no %s has", r->path,
                       arch->title);
    c->heads = heads;
    return 0;
}

// The sizes of all sections, and the list of tensors, follow from the configuration.
static int check_layout(struct reader *r, struct mr_packed *p)
{
    const struct mr_packed_section *have = r->header.section;
    size_t bytes;
    p->embedding.dtype = mr_packed_dtype(MR_PACKED_DTYPE(have[MR_S_EMBEDDING].detail), &bytes);
    int rc = mr_stream_list_make(&p->list, &p->config, p->format, r->err);
    if (rc == 0)
        rc = mr_packed_layout_make(&r->layout, p, have[MR_S_CONFIG].size, have[MR_S_TOKENIZER].size,
                                   r->err);
    const struct mr_packed_section *need = r->layout.header.section;
    for (int i = 0; i < MR_S_COUNT && rc == 0; i++)
        if (have[i].size != need[i].size)
            rc = mr_fail(r->err, MR_ERR_FORMAT,
                         "%s: the %s section has %llu bytes, but the configuration needs %llu",
                         r->path, section_name[i], (unsigned long long)have[i].size,
                         (unsigned long long)need[i].size);
    for (size_t i = 0; i < r->layout.count && rc == 0; i++) {
        struct mr_packed_tensor t, *expected = &r->layout.tensors[i];
        memcpy(&t, r->file->data + have[MR_S_TENSORS].offset + i * sizeof t, sizeof t);
        expected->hash = t.hash;
        if (memcmp(&t, expected, sizeof t) != 0)
            rc = mr_fail(r->err, MR_ERR_FORMAT,
                         "%s: entry %zu of its list of tensors is not what the configuration "
                         "implies",
                         r->path, i);
    }
    return rc;
}

static int check_tensors(const struct reader *r, const struct mr_packed *p,
                         const struct mr_pack_options *opt)
{
    const struct mr_config *config = &p->config;
    struct mr_packed_faults faults;
    int rc = mr_packed_check(&r->layout, p, opt, &faults, r->path, r->err);
    bool damaged = faults.damaged < r->layout.count;
    size_t first = damaged ? faults.damaged : faults.above;
    if (rc < 0 || first == r->layout.count)
        return rc;
    char label[MR_NAME] = "the embedding";
    int rows, cols, head = -1;
    if (first < r->layout.tables)
        head = mr_packed_shape(config, (int)first, &rows, &cols);
    if (head >= 0)
        (void)snprintf(label, sizeof label, "%s", mr_arch_of(config)->heads[head].name);
    if (first >= r->layout.tables) {
        const struct mr_stream_item *item = &p->list.entries[first - r->layout.tables].item;
        mr_item_label(config, item->layer, item->item, label);
    }
    return mr_fail(r->err, MR_ERR_FORMAT,
                   damaged ? "%s: %s is damaged (checksum); copy or pack the model again"
                           : "%s: %s has a scale code above its column's largest, which no packer "
                             "writes; pack the model again",
                   r->path, label);
}

static void use_sections(struct mr_packed *p, const struct mr_packed_header *h)
{
    const unsigned char *base = p->map.data;
    const struct mr_packed_section *s = h->section;
    p->format = h->format == MR_FORMAT_MXFP4 ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8;
    p->smooth = h->flags & MR_PACKED_SMOOTHED;
    p->calibrated = h->flags & MR_PACKED_CALIBRATED;
    p->config_text = (const char *)base + s[MR_S_CONFIG].offset;
    p->config_bytes = (size_t)s[MR_S_CONFIG].size;
    p->tokenizer_text = (const char *)base + s[MR_S_TOKENIZER].offset;
    p->tokenizer_bytes = (size_t)s[MR_S_TOKENIZER].size;
    p->stream = base + s[MR_S_STREAM].offset;
    p->pooling = h->pooling == MR_POOLING_CLS + 1 ? MR_POOLING_CLS : MR_POOLING_MEAN;
    p->max_tokens = (int)h->max_tokens;
}

static void use_tables(struct mr_packed *p, const struct mr_packed_layout *l)
{
    static const char *const names[] = {"the embedding", "the positions", "the types"};
    struct mr_tensor *tables[] = {&p->embedding, &p->positions, &p->types};
    size_t bytes;
    enum mr_dtype dtype =
        mr_packed_dtype(MR_PACKED_DTYPE(l->header.section[MR_S_EMBEDDING].detail), &bytes);
    for (int i = 0; i < (int)l->tables; i++) {
        int rows, cols, head = mr_packed_shape(&p->config, i, &rows, &cols);
        struct mr_tensor *t = head < 0 ? tables[i] : &p->heads[head];
        *t = (struct mr_tensor){.name =
                                    head < 0 ? names[i] : mr_arch_of(&p->config)->heads[head].name,
                                .dtype = dtype,
                                .rank = cols ? 2 : 1,
                                .shape = {rows, cols},
                                .count = l->tensors[i].size / bytes,
                                .data = p->map.data + l->tensors[i].offset,
                                .bytes = l->tensors[i].size};
    }
}

int mr_packed_open(struct mr_packed *packed, const char *path, const struct mr_pack_options *opt,
                   struct mr_error *err)
{
    *packed = (struct mr_packed){0};
    struct reader r = {.file = &packed->map, .path = path, .err = err};
    int rc = mr_file_map(&packed->map, path, err);
    if (rc == 0)
        rc = mr_refuse_foreign_file(&packed->map, path, err);
    if (rc == 0)
        rc = check_header(&r);
    if (rc == 0)
        rc = check_sections(&r);
    if (rc == 0) {
        use_sections(packed, &r.header);
        rc = mr_config_parse(&packed->config, packed->config_text, packed->config_bytes,
                             opt->wanted, path, err);
    }
    if (rc == 0)
        rc = check_encoder(&r, &packed->config);
    if (rc == 0)
        rc = check_layout(&r, packed);
    bool mute = rc == 0 && opt->text && packed->tokenizer_bytes == 0;
    if (mute)
        rc = mr_packed_need_tokenizer(packed, err);
    if (rc == 0)
        rc = check_tensors(&r, packed, opt);
    if (rc == 0 && packed->tokenizer_bytes > 0)
        rc = mr_tokenizer_parse(&packed->tokenizer, packed->tokenizer_text, packed->tokenizer_bytes,
                                path, err);
    if (rc == 0)
        use_tables(packed, &r.layout);
    mr_packed_layout_free(&r.layout);
    if (rc < 0)
        mr_packed_close(packed);
    if ((rc == MR_ERR_FORMAT && !mute) || rc == MR_ERR_IO)
        (void)mr_advise(err, "copy the file again, or make it anew with 'millrace pack'");
    return rc;
}
