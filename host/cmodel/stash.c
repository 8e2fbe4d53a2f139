// SPDX-License-Identifier: Apache-2.0
// Matrices in memory: those of the weight stream and those of the stash, which the device writes.
#include "cmodel/machine_impl.h"
#include "cmodel/places.h"
#include "cmodel/windows.h"

static const uint32_t *stash_words(const struct mr_machine *m, int c)
{
    return m->desc + 16 * (2 + ((size_t)m->g.n + 1) / 2) + 8 * (size_t)c;
}

// Beats [off, off + beats) of a channel's stash. The smallest window says how far all go.
static uint8_t *stash_window(struct mr_machine *m, int c, uint64_t off, uint64_t beats, bool write)
{
    const uint32_t *w = stash_words(m, c);
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < m->g.n; i++)
        if (stash_words(m, i)[MR_STASH_BEATS] < least)
            least = stash_words(m, i)[MR_STASH_BEATS];
    return window(m, w[MR_STASH_LO] | (uint64_t)w[MR_STASH_HI] << 32, least, off, beats, write);
}

int mr_machine_stash_look(struct mr_machine *m, uint64_t off, int kblocks, int cols, int count,
                          bool write, struct stash_matrix *found)
{
    *found = (struct stash_matrix){.shape = {m->g.n, kblocks}};
    uint64_t beats = (uint64_t)count * mr_tiles_beats(&found->shape, (cols + 63) / 64 * 64);
    for (int c = 0; c < m->g.n; c++)
        if (!(found->at[c] = stash_window(m, c, off, beats, write)))
            return MR_ERR_DEVICE;
    return 0;
}

uint8_t *mr_machine_stash_largest(const struct stash_matrix *s, int col)
{
    struct mr_tile_place at = mr_tile_place(&s->shape, col, 0);
    return s->at[at.channel] + at.largest;
}

// A block of four columns, which lie side by side, and their largest codes.
static void put_group(const struct stash_matrix *s, int col, int kblock,
                      const int8_t q[MR_GROUP_COLUMNS][MR_BLOCK],
                      const uint8_t code[MR_GROUP_COLUMNS])
{
    struct mr_tile_place at = mr_tile_place(&s->shape, col, kblock);
    uint8_t *matrix = s->at[at.channel], *largest = matrix + at.largest;
    memcpy(matrix + at.code, code, MR_GROUP_COLUMNS);
    memcpy(matrix + at.elements, q, MR_GROUP_COLUMNS * MR_BLOCK);
    for (int c = 0; c < MR_GROUP_COLUMNS; c++)
        largest[c] = code[c] > largest[c] ? code[c] : largest[c];
}

void mr_machine_stash_turn(const struct mr_machine *m, const struct stash_matrix *s, int col,
                           int kblock, int begin, const float *y, int rows, int stride)
{
    for (int c = 0; c < MR_BLOCK; c++)
        if (col + c >= begin)
            *mr_machine_stash_largest(s, col + c) = 0;
    for (int first = 0; first < rows; first += MR_BLOCK) {
        int8_t q[MR_BLOCK][MR_BLOCK];
        uint8_t code[MR_BLOCK];
        int n = rows - first < MR_BLOCK ? rows - first : MR_BLOCK;
        m->kernels->back->quantise_turned(y + (size_t)first * (size_t)stride, (size_t)stride, n, q,
                                          code);
        for (int c = 0; c < MR_BLOCK; c += MR_GROUP_COLUMNS)
            put_group(s, col + c, kblock + first / MR_BLOCK, &q[c], code + c);
    }
}

// ---- what is streamed --------------------------------------------------------------------------

static uint64_t group_beats(int kblocks, bool fp4)
{
    return (uint64_t)(kblocks + 15) / 16 + (uint64_t)kblocks * (fp4 ? 1 : 2);
}

int mr_machine_columns_find(struct mr_machine *m, const struct pending *p, struct columns_source *s)
{
    uint64_t header = p->bias ? 5 : 1, beats = group_beats(p->kblocks, p->fp4);
    s->p = p;
    if (p->stash) {
        struct stash_matrix matrix;
        int rc = mr_machine_stash_look(m, p->beat, p->all_kblocks, p->first_col + p->cols, 1, false,
                                       &matrix);
        for (int c = 0; c < m->g.n; c++)
            s->stream[c] = matrix.at[c];
        return rc;
    }
    for (int c = 0; c < m->g.n; c++) { // the command that streams them has found all of them
        uint64_t n = (uint64_t)((p->cols / 4 - c + m->g.n - 1) / m->g.n);
        s->stream[c] = stream_window(m, c, p->beat, (n + 15) / 16 * header + n * beats);
    }
    return 0;
}

// A group's blocks from p->first_kblock on, in sections of their own.
static const uint8_t *part_of(const struct pending *p, const uint8_t *group, uint8_t *part)
{
    int first = p->first_kblock;
    if (first % MR_SECTION_BLOCKS == 0)
        return group + (size_t)(first / MR_SECTION_BLOCKS) * MR_SECTION_BYTES;
    for (int k = 0; k < p->kblocks; k++) {
        size_t from = (size_t)((first + k) / 16) * MR_SECTION_BYTES, i = (size_t)(first + k) % 16;
        size_t to = (size_t)(k / 16) * MR_SECTION_BYTES, j = (size_t)k % 16;
        memcpy(part + to + 4 * j, group + from + 4 * i, 4);
        memcpy(part + to + MR_SECTION_CODES + 128 * j, group + from + MR_SECTION_CODES + 128 * i,
               128);
    }
    return part;
}

void mr_machine_columns(const struct mr_machine *m, const struct columns_source *s, int block,
                        uint8_t *part, struct mr_columns *columns, float bias[MR_BLOCK_COLUMNS])
{
    const struct pending *p = s->p;
    uint64_t beats = group_beats(p->stash ? p->all_kblocks : p->kblocks, p->fp4);
    uint64_t header = p->bias ? 5 : 1;
    size_t sections = (size_t)(p->kblocks + MR_SECTION_BLOCKS - 1) / MR_SECTION_BLOCKS;
    *columns = (struct mr_columns){.kblocks = p->kblocks, .fp4 = p->fp4};
    for (int g = 0; g < 8; g++) {
        // Group i of its channel: 16 share a header.
        unsigned j = (unsigned)(p->first_col / 4 + 8 * block + g), n = (unsigned)m->g.n, i = j / n;
        const uint8_t *from = s->stream[j % n] + (i / 16 * (header + 16 * beats)) * BEAT;
        memcpy(columns->col_max + 4 * g, from + 4 * (i % 16), 4);
        if (p->bias)
            memcpy(bias + 4 * g, from + BEAT + 16 * (i % 16), 16);
        columns->group[g] = from + (header + i % 16 * beats) * BEAT;
        if (p->stash)
            columns->group[g] =
                part_of(p, columns->group[g], part + (size_t)g * sections * MR_SECTION_BYTES);
    }
}

struct pending mr_machine_take_tiles(struct mr_machine *m)
{
    struct pending p = m->pending[0];
    memmove(m->pending, m->pending + 1, (size_t)--m->n_pending * sizeof p);
    return p;
}

int mr_machine_stream_stash(struct mr_machine *m, const uint32_t *cmd)
{
    struct pending p = {
        .beat = mr_field(cmd, MR_F_STREAM_STASH_OFF),
        .kblocks = (int)mr_field(cmd, MR_F_STREAM_STASH_KBLOCKS),
        .cols = (int)mr_field(cmd, MR_F_STREAM_STASH_COLS),
        .stash = true,
        .all_kblocks = (int)mr_field(cmd, MR_F_STREAM_STASH_ALL_KBLOCKS),
        .first_kblock = (int)mr_field(cmd, MR_F_STREAM_STASH_FIRST_KBLOCK),
        .first_col = (int)mr_field(cmd, MR_F_STREAM_STASH_FIRST_COL),
    };
    struct columns_source s;
    int rc = mr_machine_columns_find(m, &p, &s);
    if (rc == 0)
        m->pending[m->n_pending++] = p;
    return rc;
}

int mr_machine_load_act(struct mr_machine *m, const uint32_t *cmd)
{
    int kblocks = (int)mr_field(cmd, MR_F_LOAD_ACT_KBLOCKS),
        base = (int)mr_field(cmd, MR_F_LOAD_ACT_DST_BASE);
    int first = (int)mr_field(cmd, MR_F_LOAD_ACT_FIRST_KBLOCK),
        col = (int)mr_field(cmd, MR_F_LOAD_ACT_FIRST_COL),
        rows = (int)mr_field(cmd, MR_F_LOAD_ACT_ROWS);
    uint8_t *row_max = m->row_max[mr_field(cmd, MR_F_LOAD_ACT_DST_SLOT)];
    struct stash_matrix s;
    int rc = mr_machine_stash_look(m, mr_field(cmd, MR_F_LOAD_ACT_OFF),
                                   (int)mr_field(cmd, MR_F_LOAD_ACT_ALL_KBLOCKS), col + rows, 1,
                                   false, &s);
    for (int i = 0; i < rows && rc == 0; i++) {
        row_max[i] = *mr_machine_stash_largest(&s, col + i);
        for (int k = 0; k < kblocks; k++) {
            struct mr_tile_place at = mr_tile_place(&s.shape, col + i, first + k);
            uint8_t *code;
            int8_t *q = act_at(m, i, base + k, &code);
            *code = s.at[at.channel][at.code];
            memcpy(q, s.at[at.channel] + at.elements, MR_BLOCK);
        }
    }
    return rc;
}
