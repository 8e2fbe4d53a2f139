// SPDX-License-Identifier: Apache-2.0
// mr_stash_jobs against the C model's places in a matrix of tiles: the beats that the jobs of random
// parts name, in their order, are the headers, codes and elements of the columns, and beats of blocks
// before the first one of a group. Commands wait in a queue and get their turn at random; some do not
// end in the window, by one beat.
#include "Vdut.h"

#include "bench.h"

extern "C" {
#include "cmodel/tiles.h"
}

#include <algorithm>
#include <deque>
#include <vector>

namespace
{

#if defined(VARIANT_n1)
constexpr int N = 1;
#elif defined(VARIANT_n4)
constexpr int N = 4;
#else
constexpr int N = 16;
#endif
constexpr int kDepth = 4;

struct Command {
    int kblocks, all, cols, first, col;
    uint32_t off;
    bool waits, bad;
    uint64_t end;
};

// Beats of channel 0, in the order in which they are needed.
std::vector<uint64_t> beats_of(const Command &c)
{
    const struct mr_tiles_shape t = {N, c.all};
    std::vector<uint64_t> beats;
    for (int col = c.col; col < c.col + c.cols; col += 4) {
        struct mr_tile_place at = mr_tile_place(&t, col, c.first);
        if (at.channel != 0)
            continue;
        if (beats.empty() || at.largest % 64 == 0)
            beats.push_back(at.largest / 64);
        for (int k = c.first / 16 * 16; k < c.first + c.kblocks; k++) {
            struct mr_tile_place row = mr_tile_place(&t, col, k);
            if (k % 16 == 0)
                beats.push_back(row.code / 64);
            beats.push_back(row.elements / 64);
            beats.push_back(row.elements / 64 + 1);
        }
    }
    for (auto &b : beats)
        b += c.off;
    return beats;
}

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Rng rng(args.seed);
    bench::Tap tap;
    bench::Dut<Vdut> dut(args);
    bench::Stall job(rng, "job_ready");
    dut->cmd_valid_i = dut->go_i = dut->job_ready_i = 0;
    dut.reset();

    auto random_command = [&] {
        Command c;
        c.all = static_cast<int>(rng.chance(70) ? rng.range(1, 40) : rng.range(1, 600));
        c.kblocks = static_cast<int>(rng.chance(40) ? c.all : rng.range(1, c.all));
        c.first = static_cast<int>(rng.range(0, c.all - c.kblocks));
        c.cols = 64 * static_cast<int>(rng.range(1, N > 1 ? 20 : 6));
        c.col = 64 * static_cast<int>(rng.chance(50) ? 0 : rng.range(0, 80));
        c.off = static_cast<uint32_t>(rng.chance(20) ? 0xFF000000 : rng.range(0, 9999));
        c.waits = rng.chance(50);
        c.bad = rng.chance(15);
        const struct mr_tiles_shape t = {N, c.all};
        c.end = c.off + mr_tiles_beats(&t, c.col + c.cols);
        return c;
    };

    int n = args.cases_or(250), seen_bad = 0, wholes = 0;
    long jobs = 0, total = 0, full = 0;
    bool good = true, running = false;
    std::deque<Command> waiting;
    std::vector<uint64_t> want;
    size_t at = 0;
    Command c = random_command(), now{};
    Command other = random_command();
    bool offered = false, judged = true;
    job.random();
    for (long cycle = 0; good && (n > 0 || !waiting.empty() || running || !judged) && cycle < 4000000; cycle++) {
        // The fields are there in the cycle before, and have changed by then.
        dut->cmd_valid_i = offered && n > 0 && judged && waiting.size() < kDepth;
        offered = judged && !dut->cmd_valid_i && rng.chance(70);
        const Command &f = dut->cmd_valid_i ? other : c;
        full += waiting.size() == kDepth;
        dut->cmd_kblocks_i = static_cast<uint16_t>(f.kblocks);
        dut->cmd_all_kblocks_i = static_cast<uint16_t>(f.all);
        dut->cmd_cols_i = static_cast<uint32_t>(f.cols);
        dut->cmd_first_col_i = static_cast<uint32_t>(f.col);
        dut->cmd_off_i = f.off;
        dut->cmd_first_kblock_i = static_cast<uint16_t>(f.first);
        dut->cmd_waits_i = f.waits;
        dut->limit_i = static_cast<uint32_t>(c.end - c.bad);
        dut->go_i = !running && dut->next_o && rng.chance(20);
        dut->job_ready_i = job.want();
        dut.settle();
        job.saw(dut->job_valid_o);
        if (dut->next_o && (waiting.empty() || dut->waits_o != waiting.front().waits)) {
            tap.note("what waits is not the oldest command");
            good = false;
        }
        if (dut->job_valid_o && !running) {
            tap.note("a job out of turn");
            good = false;
        }
        if (dut->job_valid_o && dut->job_ready_i) {
            jobs++;
            for (uint32_t i = 0; i < dut->job_beats_o && good; i++, at++)
                good = at < want.size() && want[at] == dut->job_off_o + static_cast<uint64_t>(i);
            if (!good || (dut->last_o != 0) != (at == want.size())) {
                tap.note("columns %d to %d, blocks %d to %d of %d: beat %zu of %zu, job of %u from %u%s", now.col,
                         now.col + now.cols - 1, now.first, now.first + now.kblocks - 1, now.all, at,
                         want.size(), dut->job_beats_o, dut->job_off_o, dut->last_o ? ", the last" : "");
                good = false;
            }
            running = !dut->last_o;
            total += dut->job_beats_o;
        }
        if (dut->go_i) {
            now = waiting.front();
            waiting.pop_front();
            want = beats_of(now);
            at = 0;
            running = true;
            wholes += now.kblocks == now.all;
        }
        if (dut->good_o || dut->bad_o) {
            if (judged || (dut->bad_o != 0) != c.bad || dut->off_o != c.off) {
                tap.note("the verdict is wrong");
                good = false;
            }
            if (!c.bad)
                waiting.push_back(c);
            seen_bad += c.bad;
            judged = true;
            other = c;
            c = random_command();
            n--;
        } else if (!judged && !dut->busy_o) {
            tap.note("no verdict");
            good = false;
        }
        if (dut->cmd_valid_i)
            judged = false;
        dut.edge();
    }
    tap.note("%ld jobs of %ld beats, %d of whole blocks, %d outside, %ld cycles with a full queue", jobs, total,
             wholes, seen_bad, full);
    tap.ok(good && n == 0 && waiting.empty(), "stash_jobs: random parts of matrices");
    tap.ok(job.covered(tap) && seen_bad && wholes && full, "stash_jobs: every stall and every kind");
    return tap.done();
}
