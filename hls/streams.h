// SPDX-License-Identifier: Apache-2.0
// How kernels write the streams of weights (docs/use/packed-file.md, section 5): whole sections of
// four columns, headers with the columns' largest codes, vectors. For C++ alone; places.h has what
// hosts know, too.
#pragma once

#include "datapath.h"
#include "places.h"

namespace millrace
{

// 16 words a beat, 16 blocks a section.
const uint32_t WORDS = 16, SECTION = 16, BLOCK = 32;
const uint32_t SECTION_BEATS = 1 + 2 * SECTION;

// Sections of `GROUPS` groups of four columns that stand beside each other: codes and elements.
template <uint32_t GROUPS> struct part_of_stream {
    uint8_t code[GROUPS][64], element[GROUPS][SECTION * 4 * BLOCK];
};

// Element `k` of block `block` of column `col`.
template <uint32_t GROUPS>
inline uint8_t &place(part_of_stream<GROUPS> &s, uint32_t col, uint32_t block, uint32_t k)
{
    return s.element[col / 4][(block * 4 + col % 4) * BLOCK + k];
}

template <uint32_t GROUPS>
inline uint8_t &code(part_of_stream<GROUPS> &s, uint32_t col, uint32_t block)
{
    return s.code[col / 4][block * 4 + col % 4];
}

// Beat `b` of a section: its codes, then two columns' elements of a block each.
inline mr_beat section_beat(const uint8_t *code, const uint8_t *element, uint32_t b)
{
    mr_beat beat;
    for (uint32_t i = 0; i < WORDS; i++) {
#pragma HLS UNROLL
        uint32_t word = 0;
        for (uint32_t k = 0; k < 4; k++) {
#pragma HLS UNROLL
            uint32_t byte = b == 0 ? code[4 * i + k] : element[(b - 1) * 64 + 4 * i + k];
            word |= byte << 8 * k;
        }
        beat.word[i] = word;
    }
    return beat;
}

// A burst of up to 33 beats for each group of four columns; what the largest codes are so far.
template <uint32_t GROUPS>
inline void put_sections(const part_of_stream<GROUPS> &s, const mr_stream_side &to, uint32_t cols,
                         uint32_t blocks, uint32_t channels, uint64_t channel, mr_beat *stream,
                         uint8_t *top)
{
    for (uint32_t g = 0; g < cols / 4; g++) {
        uint32_t j = to.first + g, i = j / channels;
        uint64_t at = j % channels * channel + to.at + (uint64_t)(i / 16) * to.piece + to.header +
                      (uint64_t)(i % 16) * to.group + (uint64_t)to.section * SECTION_BEATS;
        uint8_t code[64];
        for (uint32_t k = 0; k < 64; k++) {
#pragma HLS UNROLL
            code[k] = k / 4 < blocks ? s.code[g][k] : 0;
        }
        for (uint32_t b = 0; b < 1 + 2 * blocks; b++) {
#pragma HLS PIPELINE II = 1
            stream[at + b] = section_beat(code, s.element[g], b);
        }
        for (uint32_t c = 0; c < 4; c++) {
#pragma HLS UNROLL
            uint8_t &now = top[to.top + 4 * j + c];
            for (uint32_t b = 0; b < SECTION; b++) {
#pragma HLS UNROLL
                now = code[4 * b + c] > now ? code[4 * b + c] : now;
            }
        }
    }
}

// One beat for every 16 groups of a channel. The codes begin anew for the next matrix.
inline void put_headers(const mr_stream_side &to, uint32_t cols, uint32_t channels,
                        uint64_t channel, mr_beat *stream, uint8_t *top)
{
    uint32_t groups = cols / 4 / channels;
    for (uint32_t n = 0; n < channels; n++)
        for (uint32_t first = 0; first < groups; first += 16) {
            mr_beat beat;
            for (uint32_t g = 0; g < 16; g++) {
#pragma HLS PIPELINE II = 1
                uint32_t word = 0;
                for (uint32_t c = 0; c < 4 && first + g < groups; c++) {
                    uint8_t &code = top[to.top + 4 * ((first + g) * channels + n) + c];
                    word |= (uint32_t)code << 8 * c;
                    code = 0;
                }
                beat.word[g] = word;
            }
            stream[n * channel + to.at + (uint64_t)(first / 16) * to.piece] = beat;
        }
}

// Floats 4j .. 4j + 3 of a vector are the next ones of channel j mod N; `first` of them came
// before.
inline void put_vector(const fp32 *from, uint32_t n, uint32_t first, const mr_stream_side &to,
                       uint32_t channels, uint64_t channel, mr_quad *w)
{
    for (uint32_t q = 0; q < n / 4; q++) {
#pragma HLS PIPELINE II = 1
        uint32_t j = first / 4 + q, i = j / channels;
        uint64_t beat = j % channels * channel + to.at + (uint64_t)(i / 16) * to.piece;
        mr_quad quad;
        for (uint32_t k = 0; k < 4; k++) {
#pragma HLS UNROLL
            quad.word[k] = from[4 * q + k];
        }
        w[4 * beat + i % 16] = quad;
    }
}

} // namespace millrace
