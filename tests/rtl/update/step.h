// SPDX-License-Identifier: Apache-2.0
// A list of jobs in its memory, and that memory after the C++ kernel, which is the specification.
#ifndef MILLRACE_TESTS_RTL_UPDATE_STEP_H
#define MILLRACE_TESTS_RTL_UPDATE_STEP_H

#include "bench.h"

#include <vector>

#include "hls/millrace_update.cpp"
#include "tests/rtl/update/lists.h"

namespace bench
{

enum : uint64_t { BASE = 0x3'4000'0000, GUARD = 4096 + 64 };

// Jobs, old state, gradients, new state, W, Wt, with guards between.
struct Step {
    enum { JOBS, OLD, GRADIENTS, NEW, W, WT, REGIONS };
    update_list list = {};
    uint32_t channels;
    uint64_t at[REGIONS], apart[2];
    std::vector<uint8_t> memory, want;

    Step(const update_shape &shape, uint32_t n, uint64_t seed, bool in_place = false,
         uint32_t first = 0, uint32_t count = 0)
        : channels(n)
    {
        const char *wrong = update_list_make(&list, &shape, static_cast<int>(n));
        if (wrong) {
            printf("Bail out! %s\n", wrong);
            exit(1);
        }
        if (count) {
            memmove(list.job, list.job + first, count * sizeof *list.job);
            list.count = count;
        }
        for (int k = 0; k < 2; k++)
            apart[k] = list.beats[k] + 3;
        const uint64_t again = in_place ? 0 : list.state_bytes;
        const uint64_t bytes[REGIONS] = {list.count * sizeof *list.job, list.state_bytes,
                                         list.gradient_bytes,           again,
                                         apart[0] * n * 64,             apart[1] * n * 64};
        uint64_t end = 0;
        for (int k = 0; k < REGIONS; k++) {
            bool page = k == OLD || k == NEW; // as the store aligns them
            at[k] = page ? (end + 4095) / 4096 * 4096 : end;
            end = at[k] + bytes[k] + GUARD;
        }
        if (in_place)
            at[NEW] = at[OLD];
        memory.resize(end);
        fill(seed);
        want = memory;
        specification();
    }
    ~Step() { update_list_free(&list); }
    Step(const Step &) = delete;
    Step &operator=(const Step &) = delete;

    void put_jobs() { memcpy(&memory[at[JOBS]], list.job, list.count * sizeof *list.job); }

    // Beats that the whole list reads.
    uint64_t reads() const
    {
        uint64_t beats = 2 * list.count;
        for (uint32_t i = 0; i < list.count; i++)
            if (list.job[i].kind != MR_UPDATE_HEADERS)
                beats += uint64_t{list.job[i].rows} * list.job[i].cols / 4;
        return beats;
    }

  private:
    // Weights and moments as they are, with a few of any bits between them; any gradients.
    void fill(uint64_t seed)
    {
        Rng r(seed);
        uint32_t *word = reinterpret_cast<uint32_t *>(memory.data());
        for (size_t k = 0; k < memory.size() / 4; k++) {
            uint64_t u = r.u64();
            uint32_t low = static_cast<uint32_t>(u), exponent = 118U - (u >> 40 & 15);
            word[k] = u >> 52 == 0 ? low : (low & 0x807FFFFF) | exponent << 23;
        }
        for (uint32_t i = 0; i < list.count; i++) { // second moments are not below zero
            const mr_update_job &job = list.job[i];
            uint64_t left = job.kind == MR_UPDATE_HEADERS ? 0 : uint64_t{job.rows} * job.cols;
            for (uint64_t v = (at[OLD] + job.from * 64) / 4, n; left; left -= n, v += 3 * n) {
                n = left < 2048 ? left : 2048;
                for (uint64_t k = 0; k < n; k++)
                    word[v + 2 * n + k] &= 0x7FFFFFFF;
            }
        }
        for (uint64_t k = at[GRADIENTS] / 4; k < (at[GRADIENTS] + list.gradient_bytes) / 4; k++)
            word[k] = static_cast<uint32_t>(static_cast<int32_t>(r.u32()) >> r.range(0, 24));
        put_jobs();
    }
    void specification()
    {
        auto beats = [this](int k) { return reinterpret_cast<mr_beat *>(&want[at[k]]); };
        const uint32_t *f = list.factor;
        auto quads = reinterpret_cast<mr_quad *>(beats(W));
        millrace_update(reinterpret_cast<mr_update_job *>(beats(JOBS)), beats(OLD),
                        beats(GRADIENTS), beats(NEW), beats(W), quads, beats(WT), list.count, channels, apart[0], apart[1], f[0], f[1], f[2], f[3],
                        f[4], f[5], f[6], f[7], f[8]);
    }
};

} // namespace bench

#endif
