// SPDX-License-Identifier: Apache-2.0
// mr_stash_put: random parts of matrices, written into windows of random bytes. Where a block lies is
// the C model's mr_tile_place; some lanes are left out, and maxima begin anew or grow. Sets come group by
// group or block by block, and a header is written where the next set is under another one. Nothing
// else in the windows changes, and done comes after the last acknowledgement. A matrix that does not end
// inside is an error and changes nothing. Reader and writer are those of windows.h.
#include "Vdut.h"

#include "bench.h"
#include "windows.h"

extern "C" {
#include "cmodel/tiles.h"
}

#include <algorithm>
#include <vector>

namespace
{

#if defined(VARIANT_n1)
constexpr int N = 1;
#else
constexpr int N = 4;
#endif
constexpr int V = 4 * N;
constexpr int kBeats = 6000; // of a window

struct Set {
    int group, kblock;
    uint8_t code[V];
    uint8_t q[V][32];
    bool mask[V], fresh[V];
    bool more, flush, last;

    bool whole() const
    {
        return std::all_of(mask, mask + V, [](bool m) { return m; });
    }
};

struct Command {
    int off, kblocks, groups; // groups a channel
    std::vector<Set> sets;
};

class Bench
{
  public:
    Bench(bench::Dut<Vdut> &dut, bench::Rng &rng, bench::Tap &tap)
        : windows(dut, rng, N, kBeats), dut_(dut), rng_(rng), tap_(tap), in_(rng, "in_valid")
    {
        dut_->in_valid_i = dut_->cmd_valid_i = 0;
    }

    // Groups first.. of a matrix, from a k-block on, as many as a chunk of rows has.
    Command random_command()
    {
        Command c{};
        c.kblocks = static_cast<int>(rng_.range(1, 40));
        int groups = 16 * static_cast<int>(rng_.range(1, 3)); // of the matrix, a channel
        const struct mr_tiles_shape t = {N, c.kblocks};
        c.groups = groups;
        beats_ = static_cast<int64_t>(mr_tiles_beats(&t, V * groups));
        c.off = static_cast<int>(rng_.range(0, kBeats - beats_));
        int first = static_cast<int>(rng_.range(0, groups - 1));
        int count = static_cast<int>(rng_.range(1, groups - first));
        const bool alternate = groups > 16 && rng_.chance(50); // a group under each of two headers
        if (alternate) {
            first = 15;
            count = 2;
        }
        int k = static_cast<int>(rng_.range(0, c.kblocks - 1));
        int blocks = std::min<int>(c.kblocks - k, static_cast<int>(rng_.range(1, 9)));
        const bool by_block = alternate || rng_.chance(50), all = rng_.chance(50), anew = rng_.chance(50);
        const int outer = by_block ? blocks : count, inner = by_block ? count : blocks;
        for (int o = 0; o < outer; o++)
            for (int i = 0; i < inner; i++) {
                Set s{};
                s.group = first + (by_block ? i : o);
                s.kblock = k + (by_block ? o : i);
                for (int l = 0; l < V; l++) {
                    s.code[l] = static_cast<uint8_t>(rng_.u32());
                    s.mask[l] = all || rng_.chance(80);
                    s.fresh[l] = anew ? s.kblock == k : rng_.chance(30);
                    for (auto &e : s.q[l])
                        e = static_cast<uint8_t>(rng_.u32());
                }
                c.sets.push_back(s);
            }
        for (size_t i = 0; i < c.sets.size(); i++) {
            c.sets[i].last = i + 1 == c.sets.size();
            c.sets[i].flush = c.sets[i].last || c.sets[i + 1].group / 16 != c.sets[i].group / 16;
        }
        for (size_t i = 0; i + 1 < c.sets.size(); i++) {
            const Set &s = c.sets[i], &next = c.sets[i + 1];
            c.sets[i].more = next.group == s.group && next.kblock == s.kblock + 1 && s.whole() && next.whole() &&
                             rng_.chance(90);
        }
        return c;
    }

    // short_by: beats that the windows lack.
    bool run(const Command &c, int short_by)
    {
        std::vector<std::vector<uint8_t>> want = short_by > 0 ? windows.memory : expect(c);
        dut_->s_limit_i = static_cast<uint32_t>(c.off + beats_ - short_by);
        in_.random();
        size_t next = 0;
        bool offered = false, started = false, done = false;
        for (long cycle = 0; !done && cycle < 1000000; cycle++) {
            dut_->cmd_valid_i = !started;
            dut_->cmd_off_i = static_cast<uint32_t>(c.off);
            dut_->cmd_kblocks_i = static_cast<uint16_t>(c.kblocks);
            dut_->cmd_groups_i = static_cast<uint32_t>(c.groups);
            if (!offered && next < c.sets.size())
                offered = started && in_.want();
            offer(offered ? &c.sets[next] : nullptr);
            windows.drive();
            dut_.settle();
            in_.saw(started && dut_->in_ready_o);
            if (const char *wrong = windows.see())
                return fail(wrong);
            if (dut_->cmd_valid_i && dut_->cmd_ready_o)
                started = true;
            if (offered && dut_->in_ready_o) {
                offered = false;
                next++;
            }
            if (dut_->done_o) {
                done = true;
                if (!windows.idle() || next != c.sets.size())
                    return fail("done before the acknowledgements");
                if (dut_->err_valid_o != (short_by > 0) ||
                    (short_by > 0 && dut_->err_addr_o != windows.base_of(0) + 64ull * static_cast<uint64_t>(c.off)))
                    return fail("an error too many or too few, or another address");
            }
            dut_.edge();
        }
        return done ? windows.compare(tap_, want) : fail("hangs");
    }

    bool covered() { return in_.covered(tap_) & windows.covered(tap_); }
    bench::Windows<Vdut> windows;
    int64_t beats_ = 0; // of the last command's matrix

  private:
    bool fail(const char *what)
    {
        tap_.note("%s", what);
        return false;
    }

    void offer(const Set *s)
    {
        dut_->in_valid_i = s != nullptr;
        dut_->in_group_i = s ? static_cast<uint32_t>(s->group) : rng_.u32() & 0xFFFFF;
        dut_->in_kblock_i = s ? static_cast<uint16_t>(s->kblock) : static_cast<uint16_t>(rng_.u32());
        dut_->in_more_i = s ? s->more : rng_.chance(50);
        dut_->in_flush_i = s ? s->flush : rng_.chance(50);
        dut_->in_last_i = s ? s->last : rng_.chance(50);
        for (int l = 0; l < V; l++) {
            bench::set(dut_->in_code_i, 8 * l, 8, s ? s->code[l] : rng_.u32() & 255);
            bench::set(dut_->in_mask_i, l, 1, s ? s->mask[l] : rng_.u32() & 1);
            bench::set(dut_->in_new_i, l, 1, s ? s->fresh[l] : rng_.u32() & 1);
            for (int e = 0; e < 32; e++)
                bench::set(dut_->in_data_i, 256 * l + 8 * e, 8, s ? s->q[l][e] : rng_.u32() & 255);
        }
    }

    std::vector<std::vector<uint8_t>> expect(const Command &c)
    {
        std::vector<std::vector<uint8_t>> m = windows.memory;
        const struct mr_tiles_shape t = {N, c.kblocks};
        auto byte = [&](const struct mr_tile_place &p, size_t in) -> uint8_t & {
            return m[static_cast<size_t>(p.channel)][64 * static_cast<size_t>(c.off) + in];
        };
        std::vector<bool> had(static_cast<size_t>(V * c.groups)); // since its header was written
        for (const Set &s : c.sets) {
            for (int l = 0; l < V; l++) {
                if (!s.mask[l])
                    continue;
                const size_t col = static_cast<size_t>(V * s.group + l);
                struct mr_tile_place p = mr_tile_place(&t, V * s.group + l, s.kblock);
                const uint8_t before = !had[col] && s.fresh[l] ? 0 : byte(p, p.largest);
                byte(p, p.largest) = std::max(before, s.code[l]);
                had[col] = true;
                byte(p, p.code) = s.code[l];
                for (size_t e = 0; e < 32; e++)
                    byte(p, p.elements + e) = s.q[l][e];
            }
            if (s.flush)
                had.assign(had.size(), false);
        }
        return m;
    }

    bench::Dut<Vdut> &dut_;
    bench::Rng &rng_;
    bench::Tap &tap_;
    bench::Stall in_;
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    bench::Rng rng(args.seed);
    bench::Dut<Vdut> dut(args);
    Bench b(dut, rng, tap);
    dut.reset();
    bool good = true;
    int n = args.cases_or(60);
    for (int i = 0; i < n && good; i++) {
        Command c = b.random_command();
        good = b.run(c, i % 5 == 4 ? 1 : -static_cast<int>(rng.range(0, 1)));
    }
    tap.ok(good, "stash_put: blocks, codes and maxima, and nothing else; a beat too few is an error");
    tap.note("%d commands, %ld headers read", n, b.windows.reads);
    tap.ok(b.covered(), "stash_put: ports stalled, headers read");
    return tap.done();
}
