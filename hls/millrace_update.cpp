// SPDX-License-Identifier: Apache-2.0
// Kernel `millrace_update` in Vitis HLS C++: bursts of whole tiles in and out, the functions of
// datapath.h on MILLRACE_LANES elements in each cycle, whole sections of both streams out
// (hls/README.md). It is C++ without any vendor's header: pragmas are for Vitis, others skip them.
#include "millrace_update.h"
#include "streams.h"

#ifndef MILLRACE_LANES
#define MILLRACE_LANES 2
#endif
static_assert(16 % MILLRACE_LANES == 0, "lanes are 1, 2, 4, 8 or 16");

using namespace millrace;

namespace
{

// As in host/store/layout.h, where the layout is defined.
const uint32_t LANES = MILLRACE_LANES;
const uint32_t TILE_ROWS = 32, TILE_COLS = 64, TILE = TILE_ROWS * TILE_COLS;
const uint32_t TILE_BEATS = 3 * TILE / WORDS;

struct old_tile {
    fp32 w[TILE], m[TILE], v[TILE];
    int32_t g[TILE];
};

struct new_tile {
    fp32 w[TILE], m[TILE], v[TILE];
    uint8_t down[TILE_COLS], along[TILE / BLOCK]; // largest exponents: the blocks' scale codes
};

// A patch's part of one stream.
typedef part_of_stream<512 / 4> sections;

// ---- tiles --------------------------------------------------------------------------------------

void read_words(const mr_beat *from, uint32_t beats, fp32 *to)
{
    for (uint32_t b = 0; b < beats; b++) {
#pragma HLS PIPELINE II = 1
        mr_beat beat = from[b];
        for (uint32_t i = 0; i < WORDS; i++) {
#pragma HLS UNROLL
            to[b * WORDS + i] = beat.word[i];
        }
    }
}

void write_words(const fp32 *from, uint32_t beats, mr_beat *to)
{
    for (uint32_t b = 0; b < beats; b++) {
#pragma HLS PIPELINE II = 1
        mr_beat beat;
        for (uint32_t i = 0; i < WORDS; i++) {
#pragma HLS UNROLL
            beat.word[i] = from[b * WORDS + i];
        }
        to[b] = beat;
    }
}

void load(const mr_beat *state, const mr_beat *gradients, uint32_t n, old_tile &tile)
{
    uint32_t beats = n / WORDS;
    fp32 g[TILE];
#pragma HLS ARRAY_PARTITION variable = g cyclic factor = 16
    read_words(state, beats, tile.w);
    read_words(state + beats, beats, tile.m);
    read_words(state + 2 * beats, beats, tile.v);
    read_words(gradients, beats, g);
    for (uint32_t i = 0; i < n; i += WORDS) {
#pragma HLS PIPELINE II = 1
        for (uint32_t k = 0; k < WORDS; k++) {
#pragma HLS UNROLL
            tile.g[i + k] = (int32_t)g[i + k];
        }
    }
}

void compute(const factors &f, int unit, uint32_t n, const old_tile &in, new_tile &out)
{
    for (uint32_t i = 0; i < TILE_COLS; i++) {
#pragma HLS UNROLL
        out.down[i] = 0;
        out.along[i] = 0;
    }
    for (uint32_t i = 0; i < n; i += LANES) {
#pragma HLS PIPELINE II = 1
        for (uint32_t lane = 0; lane < LANES; lane++) {
#pragma HLS UNROLL
            uint32_t e = i + lane;
            element old = {in.w[e], in.m[e], in.v[e]};
            element now = update(f, old, in.g[e], unit);
            uint8_t top = (uint8_t)exponent(now.w);
            uint8_t &down = out.down[e % TILE_COLS], &along = out.along[e / BLOCK];
            out.w[e] = now.w;
            out.m[e] = now.m;
            out.v[e] = now.v;
            down = top > down ? top : down;
            along = top > along ? top : along;
        }
    }
}

void store(const new_tile &tile, uint32_t n, mr_beat *state)
{
    uint32_t beats = n / WORDS;
    write_words(tile.w, beats, state);
    write_words(tile.m, beats, state + beats);
    write_words(tile.v, beats, state + 2 * beats);
}

// ---- blocks -------------------------------------------------------------------------------------

// A tile whose first element stands at row `row` and column `col` of its patch, both ways.
void quantise_tile(const new_tile &tile, uint32_t row, uint32_t col, sections &down,
                   sections &along)
{
    for (uint32_t i = 0; i < TILE; i += LANES) {
#pragma HLS PIPELINE II = 1
        for (uint32_t lane = 0; lane < LANES; lane++) {
#pragma HLS UNROLL
            uint32_t e = i + lane, r = e / TILE_COLS, c = e % TILE_COLS;
            place(down, col + c, row / BLOCK, r) = quantise(tile.w[e], tile.down[c]);
            place(along, row + r, (col + c) / BLOCK, c % BLOCK) =
                quantise(tile.w[e], tile.along[e / BLOCK]);
        }
    }
    for (uint32_t c = 0; c < TILE_COLS; c++) {
#pragma HLS PIPELINE II = 1
        uint32_t r = row + c / 2, b = col / BLOCK + c % 2;
        code(down, col + c, row / BLOCK) = tile.down[c];
        code(along, r, b) = tile.along[c];
    }
}

// ---- a job --------------------------------------------------------------------------------------

// What is done to a patch, and over how many channels the streams are dealt, so far apart. Numbers
// alone: Vitis wants pointers to memory as parameters.
struct work {
    mr_update_job job;
    factors f;
    uint32_t channels;
    uint64_t w_channel, wt_channel;
};

void update_patch(const work &of, const mr_beat *old_state, const mr_beat *gradients,
                  mr_beat *new_state, mr_quad *w_vectors, sections &down, sections &along)
{
    const mr_update_job &job = of.job;
    uint32_t count = job.kind == MR_UPDATE_HEADERS ? 0 : job.rows * job.cols;
    uint32_t wide = job.cols < TILE_COLS ? 1 : job.cols / TILE_COLS;
    for (uint32_t k = 0; k * TILE < count; k++) {
#pragma HLS DATAFLOW
        old_tile in;
        new_tile out;
#pragma HLS ARRAY_PARTITION variable = in.w cyclic factor = 16
#pragma HLS ARRAY_PARTITION variable = in.m cyclic factor = 16
#pragma HLS ARRAY_PARTITION variable = in.v cyclic factor = 16
#pragma HLS ARRAY_PARTITION variable = in.g cyclic factor = 16
#pragma HLS ARRAY_PARTITION variable = out.w cyclic factor = 16
#pragma HLS ARRAY_PARTITION variable = out.m cyclic factor = 16
#pragma HLS ARRAY_PARTITION variable = out.v cyclic factor = 16
#pragma HLS ARRAY_PARTITION variable = out.down complete
#pragma HLS ARRAY_PARTITION variable = out.along complete
        uint32_t left = count - k * TILE, n = left < TILE ? left : TILE;
        load(old_state + job.from + k * TILE_BEATS, gradients + job.gradients + k * TILE / WORDS, n,
             in);
        compute(of.f, job.unit, n, in, out);
        store(out, n, new_state + job.to + k * TILE_BEATS);
        if (job.kind == MR_UPDATE_PATCH)
            quantise_tile(out, k / wide * TILE_ROWS, k % wide * TILE_COLS, down, along);
        if (job.kind == MR_UPDATE_VECTOR)
            put_vector(out.w, n, k * TILE, job.down, of.channels, of.w_channel, w_vectors);
    }
}

// What a job puts into one of the streams.
void put_side(const work &of, bool is_down, const sections &s, mr_beat *w, mr_beat *wt,
              uint8_t (*top)[MR_STREAM_TOPS])
{
    const mr_update_job &job = of.job;
    const mr_stream_side &to = is_down ? job.down : job.along;
    mr_beat *stream = to.turned ? wt : w;
    uint64_t channel = to.turned ? of.wt_channel : of.w_channel;
    uint32_t turned = to.turned ? 1 : 0, cols = is_down ? job.cols : job.rows;
    if (job.kind == MR_UPDATE_PATCH)
        put_sections(s, to, cols, (is_down ? job.rows : job.cols) / BLOCK, of.channels, channel,
                     stream, top[turned]);
    if (job.kind == MR_UPDATE_HEADERS && is_down)
        put_headers(to, cols, of.channels, channel, stream, top[turned]);
}

} // namespace

extern "C" void millrace_update(const mr_update_job *jobs, const mr_beat *old_state,
                                const mr_beat *gradients, mr_beat *new_state, mr_beat *w,
                                mr_quad *w_vectors, mr_beat *wt, uint32_t count, uint32_t channels,
                                uint64_t w_channel, uint64_t wt_channel, uint32_t scale,
                                uint32_t keep1, uint32_t add1, uint32_t keep2, uint32_t add2,
                                uint32_t root, uint32_t epsilon, uint32_t rate, uint32_t decay)
{
#pragma HLS INTERFACE m_axi port = jobs bundle = jobs offset = slave
#pragma HLS INTERFACE m_axi port = old_state bundle = old offset = slave max_read_burst_length = 64
#pragma HLS INTERFACE m_axi port = gradients bundle = gradients offset =                           \
    slave max_read_burst_length = 64
#pragma HLS INTERFACE m_axi port = new_state bundle = new offset = slave max_write_burst_length = 64
#pragma HLS INTERFACE m_axi port = w bundle = w offset = slave max_write_burst_length = 64
#pragma HLS INTERFACE m_axi port = w_vectors bundle = vectors offset = slave
#pragma HLS INTERFACE m_axi port = wt bundle = wt offset = slave max_write_burst_length = 64
    static sections down, along;
    static uint8_t top[2][MR_STREAM_TOPS]; // zeros between two matrices
#pragma HLS ARRAY_PARTITION variable = down.element cyclic factor = 64 dim = 2
#pragma HLS ARRAY_PARTITION variable = along.element cyclic factor = 64 dim = 2
#pragma HLS ARRAY_PARTITION variable = down.code complete dim = 2
#pragma HLS ARRAY_PARTITION variable = along.code complete dim = 2
    for (uint32_t i = 0; i < count; i++) {
        mr_update_job job = jobs[i];
        factors f = {scale, keep1, add1, keep2, add2, root, epsilon, rate, job.decays ? decay : 0U};
        work of = {job, f, channels, w_channel, wt_channel};
        update_patch(of, old_state, gradients, new_state, w_vectors, down, along);
        put_side(of, true, down, w, wt, top);
        put_side(of, false, along, w, wt, top);
    }
}
