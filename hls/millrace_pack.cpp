// SPDX-License-Identifier: Apache-2.0
// Kernel `millrace_pack` in Vitis HLS C++: a checkpoint's tensors, as they lie in its file, become
// sections of W at the memory's speed. Bursts of runs into a patch of 512 inputs x 64 outputs, the
// quantiser of datapath.h on a block of 32 in each cycle, bursts of sections out.
#include "millrace_pack.h"
#include "streams.h"

using namespace millrace;

namespace
{

const uint32_t INPUTS = MR_PACK_INPUTS, OUTPUTS = MR_PACK_OUTPUTS;

typedef part_of_stream<OUTPUTS / 4> sections;

struct patch {
    fp32 at[OUTPUTS][INPUTS]; // zeros where nothing was loaded
};

// Element `i` of a beat.
fp32 element_of(const mr_beat &beat, uint32_t type, uint32_t i)
{
    uint32_t word = beat.word[type == MR_PACK_F32 ? i : i / 2];
    uint16_t half = (uint16_t)(i % 2 ? word >> 16 : word);
    return type == MR_PACK_F32 ? word : type == MR_PACK_BF16 ? from_bfloat(half) : from_half(half);
}

// A beat of a run, whose element 0 would be element `e` of the run (less than 0 in the first beat).
uint32_t take_beat(const mr_beat &beat, const mr_pack_job &job, uint32_t run, int64_t e, patch &p)
{
    uint32_t found = 0, per = job.type == MR_PACK_F32 ? 16 : 32;
    for (uint32_t i = 0; i < 32; i++) {
#pragma HLS UNROLL
        int64_t at = e + (int64_t)i;
        if (i < per && at >= 0 && at < (int64_t)job.length) {
            fp32 x = element_of(beat, job.type, i);
            uint32_t k = (uint32_t)at;
            found += exponent(x) == 255 ? 1U : 0U;
            if (job.outputs_run)
                p.at[job.output + k][job.input + run] = x;
            else
                p.at[job.output + run][job.input + k] = x;
        }
    }
    return found;
}

uint32_t load(const mr_pack_job &job, const mr_beat *tensors, patch &p)
{
    uint32_t found = 0, size = job.type == MR_PACK_F32 ? 4 : 2;
    for (uint32_t run = 0; run < job.runs; run++) {
        uint64_t from = job.from + run * job.pitch, skip = from % 64 / size;
        uint64_t beats = (skip + job.length + 64 / size - 1) / (64 / size);
        for (uint64_t b = 0; b < beats; b++) {
#pragma HLS PIPELINE II = 1
            found += take_beat(tensors[from / 64 + b], job, run,
                               (int64_t)(b * (64 / size)) - (int64_t)skip, p);
        }
    }
    return found;
}

// A block in each cycle.
void quantise_patch(const patch &p, uint32_t inputs, uint32_t outputs, sections &s)
{
    for (uint32_t col = 0; col < outputs; col++)
        for (uint32_t b = 0; b < inputs / BLOCK; b++) {
#pragma HLS PIPELINE II = 1
            uint8_t top = 0;
            for (uint32_t k = 0; k < BLOCK; k++) {
#pragma HLS UNROLL
                uint8_t e = (uint8_t)exponent(p.at[col][b * BLOCK + k]);
                top = e > top ? e : top;
            }
            code(s, col, b) = top;
            for (uint32_t k = 0; k < BLOCK; k++) {
#pragma HLS UNROLL
                place(s, col, b, k) = quantise(p.at[col][b * BLOCK + k], top);
            }
        }
}

void clear(patch &p)
{
    for (uint32_t k = 0; k < INPUTS; k += 16) {
#pragma HLS PIPELINE II = 1
        for (uint32_t i = 0; i < 16; i++) {
#pragma HLS UNROLL
            for (uint32_t col = 0; col < OUTPUTS; col++) {
#pragma HLS UNROLL
                p.at[col][k + i] = 0;
            }
        }
    }
}

} // namespace

extern "C" void millrace_pack(const mr_pack_job *jobs, const mr_beat *tensors, mr_beat *w,
                              mr_quad *w_vectors, uint32_t *found, uint32_t count,
                              uint32_t channels, uint64_t w_channel)
{
#pragma HLS INTERFACE m_axi port = jobs bundle = jobs offset = slave
#pragma HLS INTERFACE m_axi port = tensors bundle = tensors offset = slave max_read_burst_length = \
    64
#pragma HLS INTERFACE m_axi port = w bundle = w offset = slave max_write_burst_length = 64
#pragma HLS INTERFACE m_axi port = w_vectors bundle = vectors offset = slave
#pragma HLS INTERFACE m_axi port = found bundle = jobs offset = slave
    static patch p; // zeros before the first job and behind each that writes
    static sections s;
    static uint8_t top[MR_STREAM_TOPS]; // zeros between two matrices
#pragma HLS ARRAY_PARTITION variable = p.at cyclic factor = 64 dim = 1
#pragma HLS ARRAY_PARTITION variable = p.at cyclic factor = 32 dim = 2
#pragma HLS ARRAY_PARTITION variable = s.element cyclic factor = 64 dim = 2
#pragma HLS ARRAY_PARTITION variable = s.code complete dim = 2
    uint32_t bad = 0;
    for (uint32_t i = 0; i < count; i++) {
        mr_pack_job job = jobs[i];
        if (job.kind == MR_PACK_LOAD) {
            bad += load(job, tensors, p);
            continue;
        }
        if (job.kind == MR_PACK_PATCH) {
            quantise_patch(p, job.inputs, job.outputs, s);
            put_sections(s, job.to, job.outputs, job.inputs / BLOCK, channels, w_channel, w, top);
        }
        if (job.kind == MR_PACK_VECTOR)
            put_vector(p.at[0], job.inputs, (uint32_t)job.first, job.to, channels, w_channel,
                       w_vectors);
        if (job.kind == MR_PACK_HEADERS)
            put_headers(job.to, job.outputs, channels, w_channel, w, top);
        clear(p);
    }
    *found = bad;
}
