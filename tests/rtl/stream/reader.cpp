// SPDX-License-Identifier: Apache-2.0
// mr_reader against a memory with latency, gaps and a slow address channel: order, credits, 4 KiB and
// window rules, throughput, arbitration, errors and flush.
#include "Vdut.h"
#include "bench.h"

#include <algorithm>
#include <deque>
#include <vector>

namespace {

#ifdef VARIANT_small
constexpr int kDepth[2] = {80, 20}, kQuantum = 128;
constexpr bool kFull = false;
#else
constexpr int kDepth[2] = {256, 128}, kQuantum = 512;
constexpr bool kFull = true; // deep enough for the throughput tests
#endif
constexpr int kBurst[2] = {64, 16};

uint64_t beat_word(uint64_t beat, int i)
{
    bench::Rng r(beat * 8 + static_cast<uint64_t>(i));
    return r.u64();
}

struct Source {
    uint64_t base = 0;      // bytes
    uint32_t limit = 0;     // beats
    std::deque<std::pair<uint32_t, uint32_t>> jobs; // still to offer
    std::deque<uint64_t> expect;                    // beat addresses to arrive
    int held = 0;           // beats in the consumer's FIFO
    std::deque<uint64_t> in_fifo;                   // cycles at which they may leave
    bool offered = false;
    uint64_t arrived = 0, first = 0, last = 0;
};

struct Burst {
    uint64_t beat;
    int len;
    uint64_t due;
};

struct Bench {
    bench::Dut<Vdut> dut;
    bench::Tap &tap;
    bench::Rng rng;
    bench::Stall job_go[2], take_go[2], ar_go, r_go;
    Source src[2];
    std::deque<Burst> mem;
    std::vector<int> order; // source of every accepted burst
    std::vector<int> lens;
    int latency = 20, jitter = 0, drain_delay = 4, bad = 0, err_pulses = 0;
    int r_beat = 0;
    uint64_t next_r = 0, err_beat = ~0ull;
    bool flush = false, expect_drop = false;
    uint8_t err_code = 0;
    uint64_t err_addr = 0;
    uint64_t cnt[6] = {}; // issue nocredit wait idle w kv
    bool ar_held = false;
    uint64_t ar_was = 0;

    Bench(const bench::Args &a, bench::Tap &t)
        : dut(a), tap(t), rng(a.seed), job_go{{rng, "w_job"}, {rng, "kv_job"}},
          take_go{{rng, "w_credit"}, {rng, "kv_credit"}}, ar_go(rng, "m_ar"), r_go(rng, "m_r")
    {
        for (int s = 0; s < 2; s++)
            window(s, 0x100000000ull * static_cast<unsigned>(s + 1), 1u << 20);
        idle_inputs();
        dut.reset();
        dut.tick(); // the cycle strobes are registered
    }
    void idle_inputs()
    {
        dut->w_job_valid_i = dut->kv_job_valid_i = 0;
        dut->w_credit_i = dut->kv_credit_i = 0;
        dut->m_arready_i = dut->m_rvalid_i = dut->m_rlast_i = dut->m_rresp_i = 0;
        dut->flush_i = 0;
    }
    void window(int s, uint64_t base, uint32_t limit)
    {
        src[s].base = base;
        src[s].limit = limit;
        if (s == 0) {
            dut->w_base_i = base;
            dut->w_limit_i = limit;
        } else {
            dut->kv_base_i = base;
            dut->kv_limit_i = limit;
        }
    }
    void fail(const char *what, uint64_t a, uint64_t b)
    {
        if (bad++ < 8)
            tap.note("cycle %llu: %s: %llx %llx", (unsigned long long)dut.cycles(), what,
                     (unsigned long long)a, (unsigned long long)b);
    }
    void all_go(int percent)
    {
        for (bench::Stall *s : {&job_go[0], &job_go[1], &take_go[0], &take_go[1], &ar_go, &r_go})
            percent < 0 ? s->random() : s->density(percent);
    }
    void job(int s, uint32_t off, uint32_t beats)
    {
        src[s].jobs.emplace_back(off, beats);
    }

    void cycle()
    {
        uint64_t now = dut.cycles();
        for (int s = 0; s < 2; s++) {
            Source &c = src[s];
            bool want = job_go[s].want();
            if (!c.offered)
                c.offered = want && !c.jobs.empty();
            uint32_t off = c.offered ? c.jobs.front().first : rng.u32();
            uint32_t beats = c.offered ? c.jobs.front().second : rng.u32();
            bool leave = take_go[s].want() && !c.in_fifo.empty() && c.in_fifo.front() <= now;
            take_go[s].saw(!c.in_fifo.empty());
            if (leave) {
                c.in_fifo.pop_front();
                c.held--;
            }
            if (s == 0) {
                dut->w_job_valid_i = c.offered;
                dut->w_job_off_i = off;
                dut->w_job_beats_i = beats;
                dut->w_credit_i = leave;
            } else {
                dut->kv_job_valid_i = c.offered;
                dut->kv_job_off_i = off;
                dut->kv_job_beats_i = beats;
                dut->kv_credit_i = leave;
            }
        }
        dut->m_arready_i = ar_go.want();
        bool r = r_go.want() && !mem.empty() && mem.front().due <= now;
        r_go.saw(!mem.empty() && mem.front().due <= now);
        dut->m_rvalid_i = r;
        if (r) {
            Burst &b = mem.front();
            for (int i = 0; i < 8; i++)
                bench::set(dut->m_rdata_i, 64 * i, 64, beat_word(b.beat, i));
            dut->m_rlast_i = b.len == 1;
            dut->m_rresp_i = b.beat == err_beat ? 2 : 0;
            b.beat++;
            if (--b.len == 0)
                mem.pop_front();
        } else {
            for (int i = 0; i < 8; i++)
                bench::set(dut->m_rdata_i, 64 * i, 64, rng.u64());
            dut->m_rlast_i = rng.u32() & 1;
            dut->m_rresp_i = rng.u32() & 3;
        }
        dut->flush_i = flush;
        dut.settle();

        // jobs
        for (int s = 0; s < 2; s++) {
            Source &c = src[s];
            bool ready = s ? dut->kv_job_ready_o : dut->w_job_ready_o;
            job_go[s].saw(ready);
            if (c.offered && ready) {
                auto [off, beats] = c.jobs.front();
                c.jobs.pop_front();
                c.offered = false;
                if (static_cast<uint64_t>(off) + beats <= c.limit)
                    for (uint32_t i = 0; i < beats; i++)
                        c.expect.push_back(c.base / 64 + off + i);
            }
        }
        // addresses
        ar_go.saw(dut->m_arvalid_o);
        if (ar_held && (!dut->m_arvalid_o || ar_was != (dut->m_araddr_o ^ dut->m_arlen_o)))
            fail("AR not stable", ar_was, dut->m_araddr_o);
        ar_held = dut->m_arvalid_o && !dut->m_arready_i;
        ar_was = dut->m_araddr_o ^ dut->m_arlen_o;
        if (dut->m_arvalid_o && dut->m_arready_i) {
            uint64_t a = dut->m_araddr_o;
            int len = dut->m_arlen_o + 1;
            int s = a >= src[1].base;
            if (a % 64 || a / 4096 != (a + 64u * static_cast<unsigned>(len) - 1) / 4096)
                fail("burst crosses 4 KiB", a, static_cast<unsigned>(len));
            if (len > kBurst[s])
                fail("burst too long", a, static_cast<unsigned>(len));
            if (a < src[s].base || a + 64u * static_cast<unsigned>(len) > src[s].base + 64ull * src[s].limit)
                fail("outside the window", a, static_cast<unsigned>(len));
            order.push_back(s);
            lens.push_back(len);
            uint64_t due = now + static_cast<uint64_t>(latency + (jitter ? rng.range(0, jitter) : 0));
            mem.push_back({a / 64, len, due});
        }
        // data
        for (int s = 0; s < 2; s++) {
            Source &c = src[s];
            if (!(s ? dut->kv_valid_o : dut->w_valid_o))
                continue;
            if (c.expect.empty()) {
                fail("beat that nobody asked for", static_cast<unsigned>(s), 0);
                continue;
            }
            for (int i = 0; i < 8; i++)
                if (bench::get(dut->data_o, 64 * i, 64) != beat_word(c.expect.front(), i)) {
                    fail("wrong beat", static_cast<unsigned>(s), c.expect.front());
                    break;
                }
            c.expect.pop_front();
            if (++c.held > kDepth[s])
                fail("consumer's FIFO overrun", static_cast<unsigned>(s), static_cast<unsigned>(c.held));
            c.in_fifo.push_back(now + static_cast<uint64_t>(drain_delay));
            if (c.arrived++ == 0)
                c.first = now;
            c.last = now;
        }
        if (dut->w_valid_o && dut->kv_valid_o)
            fail("both valid", 0, 0);
        int n = dut->cnt_issue_o + dut->cnt_nocredit_o + dut->cnt_wait_o + dut->cnt_idle_o;
        if (n != 1)
            fail("cycle strobes", static_cast<unsigned>(n), 0);
        cnt[0] += dut->cnt_issue_o;
        cnt[1] += dut->cnt_nocredit_o;
        cnt[2] += dut->cnt_wait_o;
        cnt[3] += dut->cnt_idle_o;
        cnt[4] += dut->cnt_w_beat_o;
        cnt[5] += dut->cnt_kv_beat_o;
        if (dut->err_valid_o) {
            err_pulses++;
            err_code = dut->err_code_o;
            err_addr = dut->err_addr_o;
        }
        dut.edge();
    }
    bool busy() const
    {
        for (const Source &c : src)
            if (!c.jobs.empty() || c.offered || !c.expect.empty() || c.held)
                return true;
        return !mem.empty();
    }
    // Runs until everything has arrived and left; false if it does not.
    bool run(int limit)
    {
        for (int i = 0; i < limit; i++) {
            if (!busy())
                return true;
            cycle();
        }
        tap.note("no end after %d cycles: expect %zu %zu jobs %zu %zu", limit, src[0].expect.size(),
                 src[1].expect.size(), src[0].jobs.size(), src[1].jobs.size());
        return false;
    }
    void fresh()
    {
        for (Source &c : src)
            c.arrived = 0;
        order.clear();
        lens.clear();
        std::fill(cnt, cnt + 6, 0);
        bad = 0;
        err_pulses = 0;
    }
    // Until nothing is outstanding and some cycles more, in which the consumers return credits.
    void do_flush()
    {
        flush = true;
        cycle();
        for (Source &c : src) {
            c.expect.clear();
            c.jobs.clear();
            c.offered = false;
        }
        int64_t more = rng.range(0, 40);
        for (int i = 0; i < 2000 && more >= 0; i++) {
            dut.settle();
            if (dut->idle_o && more-- == 0)
                break;
            cycle();
        }
        if (more >= 0)
            fail("flush does not end", 0, 0);
        for (Source &c : src) {
            c.in_fifo.clear();
            c.held = 0;
        }
        flush = false;
    }
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    Bench b(args, tap);

    // Random jobs, lengths and stalls; windows that touch, unaligned bases.
    bool good = true;
    int cases = args.cases_or(30);
    for (int k = 0; k < cases && good; k++) {
        b.fresh();
        b.all_go(-1);
        b.latency = static_cast<int>(b.rng.range(1, 120));
        b.jitter = static_cast<int>(b.rng.range(0, 30));
        uint64_t sum[2] = {0, 0};
        uint64_t base = 0x7FFF00000000ull + 64ull * b.rng.range(0, 200);
        b.window(0, base, 5000);
        b.window(1, base + 64 * 5000, 3000);
        for (int s = 0; s < 2; s++)
            for (int64_t n = b.rng.range(0, 25); n > 0; n--) {
                int64_t beats = b.rng.chance(50) ? b.rng.range(1, 8) : b.rng.range(1, 200);
                int64_t off = b.rng.chance(10) ? b.src[s].limit - beats
                                               : b.rng.range(0, b.src[s].limit - beats);
                b.job(s, static_cast<uint32_t>(off), static_cast<uint32_t>(beats));
                sum[s] += static_cast<uint64_t>(beats);
            }
        good = b.run(400000) && b.bad == 0 && b.err_pulses == 0;
        for (int i = 0; i < 3; i++)
            b.cycle(); // the beat counters are registered
        if (b.cnt[4] != sum[0] || b.cnt[5] != sum[1]) {
            tap.note("beat counters %llu %llu", (unsigned long long)b.cnt[4], (unsigned long long)b.cnt[5]);
            good = false;
        }
    }
    tap.ok(good, "reader: random jobs and stalls: order, credits, 4 KiB, window");
    bool cover = true;
    for (const bench::Stall *s :
         {&b.job_go[0], &b.job_go[1], &b.take_go[0], &b.take_go[1], &b.ar_go, &b.r_go})
        cover = s->covered(tap) && cover;
    tap.ok(cover, "reader: every handshake was stalled");

    // One beat a cycle, many jobs of uneven length, read latency 100.
    b.jitter = 0;
    b.latency = 100;
    b.window(0, 0x10000, 1 << 20);
    b.window(1, 0x80000000, 1 << 20);
    if (kFull) {
        for (int s = 0; s < 2; s++) {
            b.fresh();
            b.all_go(100);
            uint32_t off = 7;
            for (int i = 0; i < 40; i++) {
                uint32_t n = i % 4 == 3 ? 5 : 130;
                b.job(s, off, n);
                off += n;
            }
            good = b.run(20000) && !b.bad;
            uint64_t lost = b.src[s].last - b.src[s].first + 1 - b.src[s].arrived;
            tap.note("%s: %llu beats, %llu bubbles", s ? "kv" : "w",
                     (unsigned long long)b.src[s].arrived, (unsigned long long)lost);
            tap.ok(good && lost == 0, s ? "reader: KV: one beat a cycle at latency 100"
                                        : "reader: weights: one beat a cycle at latency 100");
        }
        b.fresh();
        b.job(0, 0, 20000);
        b.job(1, 0, 6000);
        good = b.run(40000) && !b.bad;
        uint64_t last = std::max(b.src[0].last, b.src[1].last);
        uint64_t lost = last - std::min(b.src[0].first, b.src[1].first) + 1 - 26000;
        tap.note("both: %llu bubbles, KV ends at beat %llu", (unsigned long long)lost,
                 (unsigned long long)b.src[1].last - b.src[0].first);
        tap.ok(good && lost == 0 && b.src[1].last - b.src[0].first < 6 * 6000,
               "reader: both sources: no bubble, KV is not starved");
    }

    // A slow address channel leaves credits aside: the quantum decides.
    b.fresh();
    b.all_go(100);
    b.latency = 3;
    b.drain_delay = 1;
    if (kFull) {
        b.job(0, 0, 16384);
        b.job(1, 0, 16384);
        good = true;
        uint64_t n = 0;
        b.ar_go.density(0);
        while (b.busy() && n < 200000) {
            b.ar_go.density(n++ % 70 == 69 ? 100 : 0);
            b.cycle();
        }
        std::vector<std::pair<int, int>> runs; // source, beats
        int acc = 0;
        std::size_t stop = b.order.size();
        while (stop > 0 && b.order[stop - 1] == b.order[b.order.size() - 1])
            stop--; // the tail has no competitor
        for (std::size_t i = 0; i < stop; i++) {
            acc += b.lens[i];
            if (i + 1 == stop || b.order[i + 1] != b.order[i]) {
                runs.emplace_back(b.order[i], acc);
                acc = 0;
            }
        }
        for (std::size_t i = 1; i < runs.size(); i++) // the first run began alone
            good = good && runs[i].second == (runs[i].first ? kQuantum : kBurst[0]);
        tap.ok(good && runs.size() > 8 && !b.bad, "reader: quantum");
    }

    // Errors: the first one is reported, nothing is issued after it, flush makes all well again.
    b.latency = 30;
    good = true;
    for (int k = 0; k < 12; k++) {
        b.fresh();
        b.all_go(-1);
        b.window(0, 0x40000, 600);
        b.window(1, 0x80000, 600);
        int s = k & 1, kind = (k / 2) % 3;
        uint64_t want_addr;
        int want_code;
        b.job(s, 10, 50);
        b.job(!s, 0, 40);
        if (kind < 2) { // just beyond the end; wraps around 2^32
            uint32_t off = kind ? 0xFFFFFFF0u : 590u, n = kind ? 0x20u : 11u;
            b.job(s, off, n);
            want_code = 3;
            want_addr = b.src[s].base + 64ull * off;
        } else {
            b.err_beat = b.src[s].base / 64 + 37;
            want_code = 4;
            want_addr = b.err_beat * 64;
        }
        for (int i = 0; i < 20; i++)
            b.job(s, 100, 64);
        for (int i = 0; i < 6000 && !b.err_pulses; i++)
            b.cycle();
        std::size_t issued = b.order.size();
        for (int i = 0; i < 600; i++)
            b.cycle();
        if (b.err_pulses != 1 || b.err_code != want_code || b.err_addr != want_addr) {
            b.fail("error report", b.err_code, b.err_addr);
            tap.note("case %d: %d pulses, want %d %llx", k, b.err_pulses, want_code,
                     (unsigned long long)want_addr);
        }
        // The AR that was waiting, and the one decided in the cycle of the error.
        if (b.order.size() > issued + 2)
            b.fail("issued after the error", issued, b.order.size());
        b.err_beat = ~0ull;
        b.do_flush();
        good = good && b.bad == 0;
        // All credits are back: more than a FIFO full passes.
        b.fresh();
        b.job(0, 0, 500);
        b.job(1, 3, 500);
        good = b.run(20000) && b.bad == 0 && b.err_pulses == 0 && good;
    }
    tap.ok(good, "reader: window and read errors stop it, flush restores it");

    // Flush in full flight.
    good = true;
    for (int k = 0; k < 40; k++) {
        b.fresh();
        b.all_go(-1);
        b.job(0, 0, 300);
        b.job(1, 5, 300);
        b.job(0, 9, 33);
        for (int64_t i = b.rng.range(0, 300); i > 0; i--)
            b.cycle();
        b.do_flush();
        b.job(0, 1, 90);
        b.job(1, 2, 90);
        good = b.run(20000) && b.bad == 0 && good;
    }
    tap.ok(good, "reader: flush in flight");
    return tap.done();
}
