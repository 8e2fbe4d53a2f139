// SPDX-License-Identifier: Apache-2.0
#include "pack/decode.h"

#include <math.h>
#include <string.h>

#include "cmodel/num.h"

enum { COLS = 64, GROUPS = 16 }; // outputs and groups of four behind one header

static const uint8_t *header_of(const struct mr_stream_item *item, const uint8_t *at, int o)
{
    size_t beats = (size_t)mr_header_beats(item) + GROUPS * (size_t)mr_group_beats(item);
    return at + (size_t)(o / COLS) * beats * MR_BEAT;
}

void mr_decode_column(const struct mr_stream_item *item, const uint8_t *at, int o, float *col)
{
    bool fp4 = item->format == MR_FORMAT_MXFP4;
    size_t per_block = fp4 ? 64 : 128; // bytes of the four columns of a group
    size_t lane = (size_t)o % 4;
    const uint8_t *group =
        header_of(item, at, o) +
        ((size_t)mr_header_beats(item) + (size_t)(o % COLS / 4) * (size_t)mr_group_beats(item)) *
            MR_BEAT;
    for (size_t b = 0; b < (size_t)item->k / 32; b++, col += 32) {
        const uint8_t *section = group + b / 16 * (MR_BEAT + 16 * per_block);
        const uint8_t *data = section + MR_BEAT + b % 16 * per_block;
        unsigned code = section[4 * (b % 16) + lane];
        float unit = code == MR_CODE_NAN ? mr_qnan() : ldexpf(1, (int)code - 127 - (fp4 ? 1 : 6));
        for (size_t i = 0; i < 32; i++) {
            int q = fp4 ? mr_mxfp4_twice[data[16 * lane + i / 2] >> (i % 2 ? 4 : 0) & 15]
                        : (int8_t)data[32 * lane + i];
            col[i] = (float)q * unit;
        }
    }
}

float mr_decode_bias(const struct mr_stream_item *item, const uint8_t *at, int o)
{
    float v;
    memcpy(&v, header_of(item, at, o) + MR_BEAT + 4 * (size_t)(o % COLS), sizeof v);
    return v;
}

void mr_decode_vector(const struct mr_stream_item *item, const uint8_t *at, int part, float *v)
{
    size_t half = (size_t)mr_item_beats(item, 1) / 2 * MR_BEAT;
    memcpy(v, at + (size_t)part * half, (size_t)item->k * sizeof *v);
}
