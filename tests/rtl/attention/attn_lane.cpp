// SPDX-License-Identifier: Apache-2.0
// The parts of an attention lane whose contracts the whole-unit bench (attn.cpp) cannot pin down:
// the read jobs of every kind of pass (variants jobs*), and the multipliers with both kinds of steps
// in any order, the accumulator's hazard window and the drain's order (variants mac, macdsp: the
// portable form and the one in DSP48E2).
#include "Vdut.h"

#include "bench.h"

#include <deque>
#include <vector>

using bench::Rng;

#if defined VARIANT_mac || defined VARIANT_macdsp

static constexpr int V = 8, WORDS = 16;

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    Rng r(args.seed);
    bench::Tap tap;
    bench::Dut<Vdut> dut(args);
    dut.reset();
    bool good = true;
    uint64_t close = 0, products = 0;
    for (int k = 0; k < args.cases_or(20) && good; k++) {
        std::vector<std::vector<int64_t>> acc(WORDS, std::vector<int64_t>(64, 0));
        std::vector<bool> begun(WORDS, false);
        int words = static_cast<int>(r.range(1, 4)), last = -1, before = -1;
        // Elements, maxima and codes come one cycle before the step that they belong to: of PV with
        // a word, of QK, or none.
        struct {
            int word = -1;
            bool qk = false;
            uint8_t pm[2] = {}, ev[2] = {};
            int kv[64] = {}, q[64] = {};
        } next;
        std::deque<std::pair<int64_t, int64_t>> dots{{0, 0}, {0, 0}, {0, 0}};
        std::deque<bool> dot_valid{false, false, false};
        for (int n = 0; n < 304; n++) {
            auto step = next;
            // never the same word in consecutive cycles, often two cycles apart
            next.word = static_cast<int>(r.range(0, words - 1));
            if (next.word == step.word || r.chance(20) || n >= 300)
                next.word = -1;
            next.qk = next.word < 0 && n < 300 && r.chance(70);
            dut->pre_valid_i = next.word >= 0 || next.qk;
            for (int i = 0; i < 64; i++) {
                next.kv[i] = static_cast<int>(r.chance(10) ? -128 : r.range(-128, 127));
                next.q[i] = static_cast<int>(r.chance(10) ? 127 : r.range(-127, 127));
                if (k == 1) { // the largest sums of either sign
                    next.kv[i] = -128;
                    next.q[i] = n & 1 ? 127 : -127;
                }
                bench::set(dut->kv_i, 8 * i, 8, static_cast<uint64_t>(next.kv[i]));
                bench::set(dut->q_i, 8 * (i + i / 32), 8, static_cast<uint64_t>(next.q[i])); // a code between
            }
            for (int b = 0; b < 2; b++) {
                next.pm[b] = static_cast<uint8_t>(r.range(0, 255));
                int s = static_cast<int>(r.chance(50) ? r.range(0, 40) : r.range(0, 255));
                next.ev[b] = static_cast<uint8_t>(next.pm[b] - s < 0 ? 0 : next.pm[b] - s);
            }
            dut->pm_i = static_cast<uint16_t>(next.pm[0] | next.pm[1] << 8);
            dut->vcode_i = static_cast<uint16_t>(next.ev[0] | next.ev[1] << 8);
            int w = step.word;
            dut->st_pv_i = w >= 0;
            dut->st_qk_i = step.qk;
            dut->st_p_i = static_cast<uint16_t>(r.chance(10) ? 65535 : r.u32());
            std::pair<int64_t, int64_t> dot{0, 0};
            for (int i = 0; i < 64; i++)
                (i < 32 ? dot.first : dot.second) += step.kv[i] * step.q[i];
            dots.push_back(dot);
            dot_valid.push_back(step.qk);
            if (w >= 0) {
                dut->st_first_i = !begun[static_cast<size_t>(w)];
                dut->st_addr_i = static_cast<uint8_t>(w);
                for (int i = 0; i < 64; i++) {
                    int s = step.pm[i / 32] - step.ev[i / 32];
                    acc[static_cast<size_t>(w)][static_cast<size_t>(i)] +=
                        (static_cast<int64_t>(dut->st_p_i) * step.kv[i] * 4096) >> (s > 38 ? 38 : s);
                }
                begun[static_cast<size_t>(w)] = true;
                close += w == before;
            }
            before = last;
            last = w;
            dut.settle();
            if (dot_valid.front()) {
                products++;
                good &= (dut->d0_o & 0x1FFFFF) == (static_cast<uint64_t>(dots.front().first) & 0x1FFFFF) &&
                        (dut->d1_o & 0x1FFFFF) == (static_cast<uint64_t>(dots.front().second) & 0x1FFFFF);
            }
            dots.pop_front();
            dot_valid.pop_front();
            dut.edge();
        }
        dut->st_pv_i = 0;
        for (int n = 0; n < 5; n++)
            dut.tick();
        // drain with gaps: a step's values are out two cycles later
        std::deque<std::pair<int, int>> steps;
        std::vector<std::pair<int, int>> due;
        for (int w = 0; w < words; w++)
            if (begun[static_cast<size_t>(w)])
                for (int s = 0; s < 64 / V; s++)
                    steps.push_back({w, s});
        std::pair<int, int> none{-1, 0}, d1 = none, d2 = none;
        while (!steps.empty() || d1 != none || d2 != none) {
            bool go = !steps.empty() && !r.chance(30);
            std::pair<int, int> now = none;
            dut->dr_step_i = go;
            if (go) {
                now = steps.front();
                steps.pop_front();
                dut->dr_load_i = now.second == 0;
                dut->dr_addr_i = static_cast<uint8_t>(now.first);
            }
            dut.settle();
            if (d2 != none) {
                for (int i = 0; i < V; i++) {
                    int64_t want = acc[static_cast<size_t>(d2.first)][static_cast<size_t>(d2.second * V + i)];
                    good &= bench::get(dut->dr_o, 48 * i, 48) == (static_cast<uint64_t>(want) & 0xFFFFFFFFFFFFu);
                }
            }
            dut.edge();
            d2 = d1;
            d1 = now;
        }
    }
    tap.note("%llu sums two cycles apart, %llu pairs of dot products", static_cast<unsigned long long>(close),
             static_cast<unsigned long long>(products));
    tap.ok(good && close > 100 && products > 100, "attn_lane: products of both passes, hazards and drain");
    return tap.done();
}

#else

#if defined VARIANT_jobs1
static constexpr uint32_t N = 1, CH = 0;
#else
static constexpr uint32_t N = 4, CH = 2;
#endif

struct Job {
    uint32_t off, beats;
    bool operator==(const Job &) const = default;
};

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    Rng r(args.seed);
    bench::Tap tap;
    bench::Dut<Vdut> dut(args);
    bench::Stall pass(r, "jd_valid"), ready(r, "job_ready");
    dut.reset();
    std::deque<Job> want;
    bool good = true, offered = false, held = false;
    Job held_job{};
    std::vector<Job> next;
    uint64_t checked = 0, empty = 0;
    int left = args.cases_or(400);
    for (uint64_t n = 0; n < 2000000 && good && (left > 0 || offered || !want.empty()); n++) {
        if (!offered && left > 0 && pass.want()) {
            offered = true;
            left--;
            uint32_t base = r.u32() >> 4, pos = static_cast<uint32_t>(r.range(1, r.chance(50) ? 6 : 60));
            uint32_t rec = static_cast<uint32_t>(r.range(2, 66));
            uint32_t so = static_cast<uint32_t>(r.range(0, 1)), sb = static_cast<uint32_t>(r.range(1, 2));
            uint32_t dof = static_cast<uint32_t>(r.range(1, 60)), db = static_cast<uint32_t>(r.range(1, 32));
            bool one = r.chance(20), whole = r.chance(50);
            dut->jd_one_i = one;
            dut->jd_whole_i = whole;
            dut->jd_base_i = base;
            dut->jd_positions_i = static_cast<uint16_t>(pos);
            dut->jd_rec_i = static_cast<uint16_t>(rec);
            dut->jd_sc_off_i = static_cast<uint8_t>(so);
            dut->jd_sc_beats_i = static_cast<uint8_t>(sb);
            dut->jd_dat_off_i = static_cast<uint16_t>(dof);
            dut->jd_dat_beats_i = static_cast<uint16_t>(db);
            next.clear();
            uint32_t local = 0;
            for (uint32_t p = 0; p < pos; p++)
                local += p % N == CH;
            if (one) {
                next.push_back({base, rec});
            } else if (whole) {
                if (local)
                    next.push_back({base, local * rec});
            } else {
                for (uint32_t l = 0; l < local; l++) {
                    next.push_back({base + l * rec + so, sb});
                    next.push_back({base + l * rec + dof, db});
                }
            }
            empty += next.empty();
        }
        dut->jd_valid_i = offered;
        dut->job_ready_i = ready.want();
        dut.settle();
        pass.saw(dut->jd_ready_o && !offered);
        ready.saw(dut->job_valid_o);
        Job j{dut->job_off_o, dut->job_beats_o};
        if (held && (!dut->job_valid_o || !(j == held_job)))
            good = false;
        held = dut->job_valid_o && !dut->job_ready_i;
        held_job = j;
        if (offered && dut->jd_ready_o) {
            want.insert(want.end(), next.begin(), next.end());
            offered = false;
        }
        if (dut->job_valid_o && dut->job_ready_i) {
            good = good && !want.empty() && want.front() == j;
            if (!want.empty())
                want.pop_front();
            checked++;
        }
        dut.edge();
    }
    for (int n = 0; n < 20; n++) {
        dut->jd_valid_i = 0;
        dut.tick();
        good &= !dut->job_valid_o;
    }
    tap.note("%llu jobs, %llu passes without positions", static_cast<unsigned long long>(checked),
             static_cast<unsigned long long>(empty));
    tap.ok(good && checked > 100 && want.empty() && (N == 1 || empty), "attn_lane: read jobs");
    bool a = pass.covered(tap), b = ready.covered(tap);
    tap.ok(a && b, "attn_lane: stalls covered");
    return tap.done();
}

#endif
