// SPDX-License-Identifier: Apache-2.0
#include "pack/packed_format.h"

#include <stdlib.h>
#include <string.h>

#include "model/tensors.h"
#include "pack/hash.h"

const char mr_packed_magic[8] = {'M', 'I', 'L', 'L', 'R', 'A', 'C', 'E'};

enum mr_dtype mr_packed_dtype(uint32_t kind, size_t *bytes)
{
    static const enum mr_dtype dtypes[MR_PACKED_DTYPES] = {MR_DTYPE_F32, MR_DTYPE_F16,
                                                           MR_DTYPE_BF16};
    *bytes = kind == 0 ? 4 : 2;
    return dtypes[kind];
}

static bool is_stored(const struct mr_config *c, int head)
{
    const struct mr_head_tensor *t = &mr_arch_of(c)->heads[head];
    return !t->copy_of && c->heads >> t->head & 1U;
}

int mr_packed_tables(const struct mr_config *c)
{
    int count = mr_arch_of(c)->tables.count;
    for (int i = 0; i < mr_arch_of(c)->n_heads; i++)
        count += is_stored(c, i);
    return count;
}

int mr_packed_shape(const struct mr_config *c, int index, int *rows, int *cols)
{
    const struct mr_list *tables = &mr_arch_of(c)->tables;
    if (index < tables->count) {
        int by = (int)tables->items[index].by;
        *rows = by == MR_BY_TOKEN      ? c->vocab_size
                : by == MR_BY_POSITION ? c->n_positions
                                       : c->n_types;
        *cols = c->n_embd;
        return -1;
    }
    int head = 0;
    for (int left = index - tables->count; !is_stored(c, head) || left > 0; head++)
        left -= is_stored(c, head);
    *rows = mr_head_rows(c, head);
    *cols = mr_head_cols(c, head);
    return head;
}

static uint64_t table_bytes(const struct mr_config *c, size_t table, size_t bytes)
{
    int rows, cols;
    (void)mr_packed_shape(c, (int)table, &rows, &cols);
    return (uint64_t)rows * (uint64_t)(cols ? cols : 1) * bytes;
}

static void list_tensors(struct mr_packed_layout *l, const struct mr_config *c,
                         enum mr_format format)
{
    const struct mr_packed_section *s = l->header.section;
    int block = mr_stream_block_items(mr_arch_of(c));
    uint64_t at = s[MR_S_STREAM].offset;
    uint64_t table = s[MR_S_EMBEDDING].offset;
    size_t bytes;
    (void)mr_packed_dtype(MR_PACKED_DTYPE(s[MR_S_EMBEDDING].detail), &bytes);
    for (size_t i = 0; i < l->tables; i++) {
        l->tensors[i] = (struct mr_packed_tensor){
            .layer = (uint32_t)i, .offset = table, .size = table_bytes(c, i, bytes)};
        table += l->tensors[i].size;
    }
    for (size_t i = l->tables; i < l->count; i++) {
        struct mr_stream_item item = mr_stream_item(c, format, (int)(i - l->tables));
        uint64_t size = (uint64_t)mr_item_beats(&item, 1) * MR_BEAT;
        int id = 1 + item.part + (item.layer < c->n_layer ? 0 : block);
        l->tensors[i] = (struct mr_packed_tensor){
            .id = (uint32_t)id, .layer = (uint32_t)item.layer, .offset = at, .size = size};
        at += size;
    }
}

int mr_packed_layout_make(struct mr_packed_layout *l, const struct mr_config *c,
                          enum mr_format format, uint32_t flags, enum mr_dtype embedding,
                          size_t config_bytes, size_t tokenizer_bytes, struct mr_error *err)
{
    size_t tables = (size_t)mr_packed_tables(c);
    *l = (struct mr_packed_layout){.count = (size_t)mr_stream_items(c) + tables, .tables = tables};
    l->tensors = calloc(l->count, sizeof *l->tensors);
    if (!l->tensors)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a list of %zu tensors", l->count);
    uint32_t kind = 0;
    size_t bytes;
    while (kind < MR_PACKED_DTYPES - 1 && mr_packed_dtype(kind, &bytes) != embedding)
        kind++;
    (void)mr_packed_dtype(kind, &bytes);
    uint64_t table = 0;
    for (size_t i = 0; i < tables; i++)
        table += table_bytes(c, i, bytes);
    const uint64_t size[MR_S_COUNT] = {
        config_bytes,
        tokenizer_bytes,
        l->count * sizeof *l->tensors,
        table,
        (uint64_t)mr_stream_beats(c, format, 1) * MR_BEAT,
    };
    struct mr_packed_header *h = &l->header;
    *h = (struct mr_packed_header){.version = MR_PACKED_VERSION,
                                   .header_bytes = MR_PACKED_PAGE,
                                   .format = format,
                                   .flags = flags,
                                   .n_sections = MR_S_COUNT,
                                   .file_bytes = MR_PACKED_PAGE};
    memcpy(h->magic, mr_packed_magic, sizeof h->magic);
    for (uint32_t i = 0; i < MR_S_COUNT; i++) {
        uint64_t at = (h->file_bytes + MR_PACKED_PAGE - 1) / MR_PACKED_PAGE * MR_PACKED_PAGE;
        h->section[i] = (struct mr_packed_section){.id = i + 1, .offset = at, .size = size[i]};
        h->file_bytes = at + size[i];
    }
    h->section[MR_S_EMBEDDING].detail = kind | c->heads << 8;
    list_tensors(l, c, format);
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
