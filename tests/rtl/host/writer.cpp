// SPDX-License-Identifier: Apache-2.0
// mr_writer: random jobs of two clients against an AXI slave that stalls every channel. Checks the
// memory byte for byte, that no beat is written twice, the bursts' rules, one done per job and
// not before its last response, write errors, and a flush in the middle of a job.
#include "Vdut.h"
#include "axi_slave.h"
#include <algorithm>

using namespace bench;

struct Job {
    uint64_t addr, strb;
    unsigned beats;
    std::vector<Beat> data;
};

struct Env {
    Args &args;
    Tap &tap;
    Rng rng;
    Dut<Vdut> dut;
    AxiMem mem;
    AxiWrite<Vdut> axi;
    std::vector<std::unique_ptr<Stall>> dv;
    std::deque<Job> jobs[2], open[2];
    std::deque<Job> pending[2]; // taken, not done
    unsigned sent[2] = {0, 0};
    bool offer[2] = {false, false}, job_offer[2] = {false, false};
    uint64_t dones[2] = {0, 0};
    std::vector<uint64_t> errs;
    AxiMem want;

    Env(Args &a, Tap &t) : args(a), tap(t), rng(a.seed), dut(a), axi(*dut, mem, rng)
    {
        dv.push_back(std::make_unique<Stall>(rng, "data_valid 0"));
        dv.push_back(std::make_unique<Stall>(rng, "data_valid 1"));
        dut->flush_i = 0;
        for (int i = 0; i < 2; i++)
            dut->job_valid_i = dut->data_valid_i = 0;
        dut.reset();
    }
    void cycle()
    {
        axi.drive();
        for (int c = 0; c < 2; c++) {
            if (!job_offer[c])
                job_offer[c] = !jobs[c].empty() && rng.chance(30);
            set(dut->job_valid_i, c, 1, job_offer[c]);
            if (job_offer[c]) {
                auto &j = jobs[c].front();
                set(dut->job_addr_i, c * 64, 64, j.addr);
                set(dut->job_beats_i, c * 16, 16, j.beats);
                set(dut->job_strb_i, c * 64, 64, j.strb);
            } else {
                set(dut->job_addr_i, c * 64, 64, rng.u64());
                set(dut->job_beats_i, c * 16, 16, rng.u64());
            }
            bool go = dv[static_cast<size_t>(c)]->want();
            if (!offer[c])
                offer[c] = go && !open[c].empty();
            set(dut->data_valid_i, c, 1, offer[c]);
            for (int i = 0; i < 8; i++) {
                uint64_t x = rng.u64();
                if (offer[c])
                    memcpy(&x, open[c].front().data[sent[c]].data() + 8 * i, 8);
                set(dut->data_i, c * 512 + 64 * i, 64, x);
            }
        }
        dut.settle();
        axi.sample();
        for (int c = 0; c < 2; c++) {
            dv[static_cast<size_t>(c)]->saw(!open[c].empty() && get(dut->data_ready_o, c, 1));
            if (offer[c] && get(dut->data_ready_o, c, 1)) {
                offer[c] = false;
                if (++sent[c] == open[c].front().beats) {
                    sent[c] = 0;
                    open[c].pop_front();
                }
            }
            if (job_offer[c] && get(dut->job_ready_o, c, 1)) {
                job_offer[c] = false;
                open[c].push_back(jobs[c].front());
                pending[c].push_back(jobs[c].front());
                jobs[c].pop_front();
            }
            if (get(dut->done_o, c, 1)) {
                dones[c]++;
                if (pending[c].empty()) {
                    mem.fail("done without a job");
                } else {
                    // All of the job's beats must be in memory by now.
                    auto &j = pending[c].front();
                    for (unsigned b = 0; b < j.beats; b++) {
                        auto it = mem.beats.find(j.addr / 64 + b);
                        uint64_t s = b + 1 == j.beats ? j.strb : ~0ull;
                        for (size_t i = 0; i < 64; i++)
                            if ((s >> i) & 1)
                                if (it == mem.beats.end() || it->second[i] != j.data[b][i]) {
                                    mem.fail("job done, data not in memory");
                                    break;
                                }
                    }
                    pending[c].pop_front();
                }
            }
        }
        if (dut->err_valid_o) {
            if (dut->err_code_o != 5)
                mem.fail("error code");
            errs.push_back(dut->err_addr_o);
        }
        dut.edge();
    }
    Job make(uint64_t addr, unsigned beats)
    {
        Job j{addr, rng.chance(50) ? ~0ull : (1ull << rng.range(1, 63)) - 1, beats, {}};
        for (unsigned b = 0; b < beats; b++) {
            Beat d;
            for (auto &x : d)
                x = static_cast<uint8_t>(rng.u32());
            j.data.push_back(d);
            Beat &w = want.beats[addr / 64 + b];
            uint64_t s = b + 1 == beats ? j.strb : ~0ull;
            for (size_t i = 0; i < 64; i++)
                if ((s >> i) & 1)
                    w[i] = d[i];
        }
        return j;
    }
    bool drained() const
    {
        return jobs[0].empty() && jobs[1].empty() && pending[0].empty() && pending[1].empty();
    }
};

int main(int argc, char **argv)
{
    Args args(argc, argv);
    Tap tap;
    Env e(args, tap);
    int n = args.cases_or(120);
    uint64_t next[2] = {0x100000000ull, 0xFFFFFFFF00000ull};
    uint64_t total[2] = {0, 0};
    for (int i = 0; i < n; i++) {
        for (int c = 0; c < 2; c++) {
            unsigned beats = static_cast<unsigned>(e.rng.chance(30) ? e.rng.range(1, 3)
                                                                    : e.rng.range(1, 200));
            e.jobs[c].push_back(e.make(next[c], beats));
            next[c] += 64 * (beats + static_cast<uint64_t>(e.rng.range(0, 70)));
            total[c]++;
        }
    }
    long guard = 0, limit = 4000L * n;
    while (!e.drained() && guard++ < limit)
        e.cycle();
    tap.ok(e.drained(), "writer: all jobs done");
    tap.ok(e.dones[0] == total[0] && e.dones[1] == total[1], "writer: one done per job");
    tap.ok(e.mem.beats == e.want.beats, "writer: memory byte for byte");
    bool once = true;
    for (auto &w : e.axi.writes)
        once &= w.second == 1;
    tap.ok(once, "writer: every beat once");
    tap.ok(e.axi.longest == 64, "writer: bursts of 64 beats");

    // A write error: reported with the burst's address, and the job ends.
    e.axi.error_at = 0x200000000ull + 4096;
    e.jobs[1].push_back(e.make(0x200000000ull, 150));
    for (guard = 0; guard < 20000 && !e.drained(); guard++)
        e.cycle();
    tap.ok(e.drained() && e.errs.size() == 1 && e.errs[0] == e.axi.error_at, "writer: BRESP error");

    // Rate: without stalls a long job takes little more than a cycle a beat.
    e.axi.aw().density(100);
    e.axi.w().density(100);
    e.axi.b().density(100);
    e.dv[0]->density(100);
    e.jobs[0].push_back(e.make(0x300000000ull, 1024));
    uint64_t t0 = e.dut.cycles();
    for (guard = 0; guard < 20000 && !e.drained(); guard++)
        e.cycle();
    uint64_t took = e.dut.cycles() - t0;
    tap.note("1024 beats in %llu cycles", static_cast<unsigned long long>(took));
    tap.ok(e.drained() && took < 1024 + 64 + 60, "writer: rate");

    // Flush in the middle of a job: complete bursts go out, the rest is dropped, then it works again.
    e.dv[0]->density(50);
    Job cut = e.make(0x400000000ull, 100);
    e.jobs[0].push_back(cut);
    while (e.sent[0] < 80)
        e.cycle();
    e.dut->flush_i = 1;
    e.jobs[0].clear();
    e.open[0].clear();
    e.pending[0].clear();
    e.offer[0] = e.job_offer[0] = false;
    e.sent[0] = 0;
    uint64_t d0 = e.dones[0];
    for (guard = 0; guard < 500; guard++)
        e.cycle();
    bool idle = e.dut->idle_o;
    e.dut->flush_i = 0;
    for (unsigned b = 64; b < 100; b++)
        e.want.beats.erase(0x400000000ull / 64 + b);
    e.jobs[0].push_back(e.make(0x500000000ull, 70));
    for (guard = 0; guard < 20000 && !e.drained(); guard++)
        e.cycle();
    tap.ok(idle && e.dones[0] == d0 + 1 && e.drained() && e.mem.beats == e.want.beats,
           "writer: flush");
    if (!e.mem.bad.empty())
        tap.note("%s", e.mem.bad.c_str());
    tap.ok(e.mem.bad.empty(), "writer: AXI rules");
    bool cov = e.axi.aw().covered(tap) & e.axi.w().covered(tap) & e.axi.b().covered(tap) &
               e.dv[0]->covered(tap) & e.dv[1]->covered(tap);
    tap.ok(cov, "writer: every port stalled");
    return tap.done();
}
