// SPDX-License-Identifier: Apache-2.0
// mr_hostrd: random requests of three clients against an AXI slave that stalls both channels: every
// client gets its beats in order, bursts keep the rules, read errors and flush.
#include "Vdut.h"
#include "axi_slave.h"

using namespace bench;

int main(int argc, char **argv)
{
    Args args(argc, argv);
    Tap tap;
    Rng rng(args.seed);
    Dut<Vdut> dut(args);
    AxiMem mem;
    AxiRead<Vdut> axi(*dut, mem, rng);
    struct Req {
        uint64_t addr;
        unsigned beats;
    };
    std::deque<Req> reqs[3];
    std::deque<std::pair<uint64_t, bool>> want[3]; // beat address, last of its request
    bool offer[3] = {}, good = true;
    uint64_t got = 0, total = 0;
    std::vector<uint64_t> errs;
    int gap = 30;
    dut->flush_i = 0;
    dut->req_valid_i = 0;
    dut->m_rvalid_i = 0;
    dut.reset();

    auto fill = [&](uint64_t addr, unsigned beats) {
        for (unsigned b = 0; b < beats; b++) {
            Beat &d = mem.beats[addr / 64 + b];
            for (auto &x : d)
                x = static_cast<uint8_t>(rng.u32());
        }
    };
    auto cycle = [&]() {
        axi.drive();
        for (int c = 0; c < 3; c++) {
            if (!offer[c])
                offer[c] = !reqs[c].empty() && rng.chance(gap);
            set(dut->req_valid_i, c, 1, offer[c]);
            set(dut->req_addr_i, c * 64, 64, offer[c] ? reqs[c].front().addr : rng.u64());
            set(dut->req_beats_i, c * 16, 16, offer[c] ? reqs[c].front().beats : rng.u64());
        }
        dut.settle();
        axi.sample();
        for (int c = 0; c < 3; c++) {
            if (offer[c] && get(dut->req_ready_o, c, 1)) {
                Req r = reqs[c].front();
                for (unsigned b = 0; b < r.beats; b++)
                    want[c].push_back({r.addr / 64 + b, b + 1 == r.beats});
                reqs[c].pop_front();
                offer[c] = false;
            }
            if (get(dut->valid_o, c, 1)) {
                got++;
                Beat d;
                take_bytes(dut->data_o, d.data(), 64);
                if (want[c].empty() || d != mem.beats[want[c].front().first] ||
                    dut->last_o != want[c].front().second)
                    good = false;
                if (!want[c].empty())
                    want[c].pop_front();
            }
        }
        if (dut->err_valid_o && dut->err_code_o == 4)
            errs.push_back(dut->err_addr_o);
        dut.edge();
    };
    auto idle = [&]() {
        for (int c = 0; c < 3; c++)
            if (!reqs[c].empty() || !want[c].empty())
                return false;
        return true;
    };
    int n = args.cases_or(100);
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) {
            Req r{0x1000000000ull * static_cast<uint64_t>(c + 1) +
                      64 * static_cast<uint64_t>(rng.range(0, 4000)),
                  static_cast<unsigned>(rng.chance(40) ? rng.range(1, 3) : rng.range(1, 200))};
            fill(r.addr, r.beats);
            reqs[c].push_back(r);
            total += r.beats;
        }
    for (int i = 0; i < 6000 * n && !idle(); i++)
        cycle();
    tap.ok(idle() && got == total && good, "hostrd: beats of three clients in order");
    tap.ok(axi.count == total, "hostrd: every beat read once");

    axi.ar().density(100);
    axi.r().density(100);
    gap = 100;
    fill(0x9000000000ull, 1024);
    axi.error_at = 0x9000000000ull + 4096 + 64 * 5;
    for (unsigned i = 0; i < 16; i++)
        reqs[1].push_back({0x9000000000ull + 4096 * i, 64});
    uint64_t t0 = dut.cycles();
    for (int i = 0; i < 5000 && !idle(); i++)
        cycle();
    tap.note("1024 beats in %llu cycles", static_cast<unsigned long long>(dut.cycles() - t0));
    tap.ok(idle() && good && dut.cycles() - t0 < 1024 + 40, "hostrd: rate");
    tap.ok(errs.size() == 1 && errs[0] == 0x9000000000ull + 4096, "hostrd: RRESP error");

    // Flush: what is outstanding arrives and is dropped; then it works again.
    reqs[0].push_back({0x9000000000ull, 500});
    for (int i = 0; i < 60; i++)
        cycle();
    dut->flush_i = 1;
    want[0].clear();
    cycle();
    uint64_t g = got;
    want[0].clear();
    axi.r().density(30);
    for (int i = 0; i < 3000 && !(dut->idle_o && i > 5); i++)
        cycle();
    bool quiet = dut->idle_o && got == g && axi.empty();
    dut->flush_i = 0;
    good = true;
    reqs[2].push_back({0x9000000000ull, 70});
    for (int i = 0; i < 5000 && !idle(); i++)
        cycle();
    tap.ok(quiet && idle() && good && got == g + 70, "hostrd: flush");
    if (!mem.bad.empty())
        tap.note("%s", mem.bad.c_str());
    tap.ok(mem.bad.empty(), "hostrd: AXI rules");
    tap.ok(axi.ar().covered(tap) & axi.r().covered(tap), "hostrd: every port stalled");
    return tap.done();
}
