// SPDX-License-Identifier: Apache-2.0
// mr_queue beside mr_sems as its header has it: commands leave in order, once their semaphores are there and the unit has
// room, in the cycle that is promised; what they signal and who is named when one is done.
#include "Vdut.h"
#include "bench.h"

#include <deque>

namespace {

#if defined(VARIANT_reader)
constexpr int kDepth = 32, kLimit = 1;
#else
constexpr int kDepth = 16, kLimit = 8;
#endif
constexpr int kWaitLsb = 32, kSignalLsb = 48; // of a command (host/cmodel/device.def)

struct Command {
    uint64_t words[8];
    uint64_t index, wait, signal;
    uint64_t out; // the first cycle in which it can be at the output
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    bench::Dut<Vdut> dut(args);
    bench::Rng rng(args.seed);
    bench::Stall in(rng, "in"), issue(rng, "issue"), unit(rng, "unit"), sems(rng, "semaphores");
    std::deque<Command> waiting, running;
    Command next = {};
    bool offered = false, fired = false; // fired: in the cycle before
    int count[16] = {};                  // of the semaphores
    uint64_t taken = 0;                  // in the cycle before, not seen yet
    uint64_t signal = 0, done_index = 0; // promised for this cycle
    bool done = false;
    uint64_t bad = 0, commands = 0, queue_full = 0, unit_full = 0, held = 0, several = 0, both = 0;
    dut->in_valid_i = dut->issue_ready_i = dut->done_i = 0;
    dut->sem_i = 0;
    dut.reset();
    for (int i = 0; i < args.cases_or(100000); i++) {
        if (!offered && in.want()) {
            offered = true;
            for (uint64_t &w : next.words)
                w = rng.u64();
            // Most wait for a few semaphores, some for none, few for all.
            next.wait = rng.chance(30) ? 0 : rng.u64() & rng.u64() & rng.u64() & 0xffff;
            if (rng.chance(3))
                next.wait = 0xffff;
            next.signal = rng.u64() & 0xffff;
            next.index = rng.u64() & 0xffff;
            next.words[0] = (next.words[0] & 0xffffffff) | next.wait << kWaitLsb | next.signal << kSignalLsb;
        }
        uint64_t sem = taken;
        for (int s = 0; s < 16; s++)
            sem |= static_cast<uint64_t>(count[s] > 0) << s;
        dut->in_valid_i = offered;
        for (int w = 0; w < 8; w++)
            bench::set(dut->in_cmd_i, 64 * w, 64, next.words[w]);
        dut->in_index_i = static_cast<uint16_t>(next.index);
        dut->sem_i = static_cast<uint16_t>(sem);
        bool ready = issue.want() && !fired;
        dut->issue_ready_i = ready;
        bool finish = unit.want() && !running.empty();
        dut->done_i = finish;
        dut.settle();

        bool put = offered && waiting.size() < kDepth;
        const Command *head = waiting.empty() || waiting.front().out > dut.cycles() ? nullptr : &waiting.front();
        bool room = running.size() < kLimit;
        bool valid = head && room && (head->wait & ~sem) == 0;
        bool fire = valid && ready;
        bad += dut->in_ready_o != (waiting.size() < kDepth) || dut->waiting_o != !waiting.empty();
        bad += dut->issue_valid_o != valid || dut->take_o != (fire ? head->wait : 0);
        bad += dut->busy_o != !running.empty() || (!running.empty() && dut->oldest_o != running.front().index);
        bad += dut->signal_o != signal || dut->done_valid_o != done || (done && dut->done_index_o != done_index);
        if (head) {
            bad += dut->index_o != head->index || (running.empty() && dut->oldest_o != head->index);
            for (int w = 0; w < 8; w++)
                bad += bench::get(dut->cmd_o, 64 * w, 64) != head->words[w];
        }
        issue.saw(valid && !fired);
        unit.saw(!running.empty());
        queue_full += offered && !put;
        unit_full += head && !room;
        held += head && room && !valid;
        several += running.size() > 1;
        both += fire && finish;

        done = finish;
        signal = finish ? running.front().signal : 0;
        if (finish) {
            done_index = running.front().index;
            running.pop_front();
        }
        taken = 0;
        if (fire) {
            taken = head->wait;
            for (int s = 0; s < 16; s++)
                count[s] -= taken >> s & 1;
            running.push_back(*head);
            waiting.pop_front();
            if (!waiting.empty())
                waiting.front().out = std::max(waiting.front().out, dut.cycles() + 1);
            commands++;
        }
        if (put) {
            next.out = dut.cycles() + 2;
            waiting.push_back(next);
            offered = false;
        }
        fired = fire;
        bool adds = sems.want();
        sems.saw(head && !valid);
        for (int &c : count)
            c += adds && c < 15 && rng.chance(20);
        dut.edge();
    }
    tap.ok(!bad, "queue: commands, semaphores and reports, when they are promised");
    tap.ok(commands > 1000 && queue_full && unit_full && held && (kLimit == 1 || (several && both)),
           "queue: full, with a full unit and with semaphores that are missing came up");
    tap.note("%llu commands", static_cast<unsigned long long>(commands));
    bool covered = issue.covered(tap) && sems.covered(tap);
    tap.ok(unit.covered(tap) && covered, "queue: every side was late");
    return tap.done();
}
