// SPDX-License-Identifier: Apache-2.0
#include "pack/packed_format.h"

#include <stdlib.h>
#include <string.h>

#include "pack/hash.h"

const char mr_packed_magic[8] = {'M', 'I', 'L', 'L', 'R', 'A', 'C', 'E'};

enum mr_dtype mr_packed_dtype(uint32_t kind, size_t *bytes)
{
    static const enum mr_dtype dtypes[MR_PACKED_DTYPES] = {MR_DTYPE_F32, MR_DTYPE_F16,
                                                           MR_DTYPE_BF16};
    *bytes = kind == 0 ? 4 : 2;
    return dtypes[kind];
}

static uint64_t table_bytes(const struct mr_config *c, size_t table, size_t bytes)
{
    int rows, cols;
    (void)mr_packed_shape(c, (int)table, &rows, &cols);
    return (uint64_t)rows * (uint64_t)(cols ? cols : 1) * bytes;
}

static void list_tensors(struct mr_packed_layout *l, const struct mr_packed *packed)
{
    const struct mr_config *c = &packed->config;
    const struct mr_packed_section *s = l->header.section;
    int block = mr_stream_block_items(mr_arch_of(c));
    uint64_t table = s[MR_S_EMBEDDING].offset;
    size_t bytes;
    (void)mr_packed_dtype(MR_PACKED_DTYPE(s[MR_S_EMBEDDING].detail), &bytes);
    for (size_t i = 0; i < l->tables; i++) {
        l->tensors[i] = (struct mr_packed_tensor){
            .layer = (uint32_t)i, .offset = table, .size = table_bytes(c, i, bytes)};
        table += l->tensors[i].size;
    }
    for (int i = 0; i < packed->list.count; i++) {
        const struct mr_stream_entry *p = &packed->list.entries[i];
        int id = 1 + p->item.part + (p->item.layer < c->n_layer ? 0 : block);
        l->tensors[l->tables + (size_t)i] =
            (struct mr_packed_tensor){.id = (uint32_t)id,
                                      .layer = (uint32_t)p->item.layer,
                                      .offset = s[MR_S_STREAM].offset + p->at,
                                      .size = p->bytes};
    }
}

int mr_packed_layout_make(struct mr_packed_layout *l, const struct mr_packed *packed,
                          size_t config_bytes, size_t tokenizer_bytes, struct mr_error *err)
{
    const struct mr_config *c = &packed->config;
    size_t tables = (size_t)mr_packed_tables(c);
    *l = (struct mr_packed_layout){.count = (size_t)packed->list.count + tables, .tables = tables};
    l->tensors = calloc(l->count, sizeof *l->tensors);
    if (!l->tensors)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a list of %zu tensors", l->count);
    uint32_t kind = 0;
    size_t bytes;
    while (kind < MR_PACKED_DTYPES - 1 && mr_packed_dtype(kind, &bytes) != packed->embedding.dtype)
        kind++;
    (void)mr_packed_dtype(kind, &bytes);
    uint64_t table = 0;
    for (size_t i = 0; i < tables; i++)
        table += table_bytes(c, i, bytes);
    const uint64_t size[MR_S_COUNT] = {
        config_bytes, tokenizer_bytes, l->count * sizeof *l->tensors, table, packed->list.bytes,
    };
    struct mr_packed_header *h = &l->header;
    *h = (struct mr_packed_header){.version = MR_PACKED_VERSION,
                                   .header_bytes = MR_PACKED_PAGE,
                                   .format = packed->format,
                                   .flags = (packed->smooth ? MR_PACKED_SMOOTHED : 0U) |
                                            (packed->calibrated ? MR_PACKED_CALIBRATED : 0U),
                                   .n_sections = MR_S_COUNT,
                                   .file_bytes = MR_PACKED_PAGE};
    memcpy(h->magic, mr_packed_magic, sizeof h->magic);
    for (uint32_t i = 0; i < MR_S_COUNT; i++) {
        uint64_t at = (h->file_bytes + MR_PACKED_PAGE - 1) / MR_PACKED_PAGE * MR_PACKED_PAGE;
        h->section[i] = (struct mr_packed_section){.id = i + 1, .offset = at, .size = size[i]};
        h->file_bytes = at + size[i];
    }
    h->section[MR_S_EMBEDDING].detail = kind | c->heads << 8;
    if (mr_arch_of(c)->encoder) {
        h->pooling = (uint32_t)packed->pooling + 1;
        h->max_tokens = (uint32_t)packed->max_tokens;
    }
    list_tensors(l, packed);
    return 0;
}

void mr_packed_layout_free(struct mr_packed_layout *l)
{
    free(l->tensors);
    *l = (struct mr_packed_layout){0};
}

uint64_t mr_packed_header_hash(const struct mr_packed_header *h)
{
    unsigned char page[MR_PACKED_PAGE] = {0};
    struct mr_packed_header copy = *h;
    copy.hash = 0;
    memcpy(page, &copy, sizeof copy);
    return XXH3_64bits(page, sizeof page);
}
