// SPDX-License-Identifier: Apache-2.0
// mr_kernel: ap_ctrl_hs as Vitis defines it and as XRT uses it, the engine's registers through the same
// port, weight pages. The engine is millrace_core.sv.
#include "Vdut.h"
#include "bench.h"

#include "build/gen/mr_device.h"

using namespace bench;

namespace
{

enum : uint32_t { CTRL = 0, GIE = 4, IER = 8, ISR = 12 };
enum : uint32_t { START = 1, DONE = 2, IDLE = 4, READY = 8 };
enum : uint64_t { FAILS = 1 << 8, LINGERS = 1 << 9, ENDLESS = 1 << 10 };

struct Host {
    Dut<Vdut> &dut;
    Rng &rng;
    Stall aw, w, b, ar, r;
    bool lost = false; // an access was not answered

    Host(Dut<Vdut> &d, Rng &g)
        : dut(d), rng(g), aw(g, "awvalid"), w(g, "wvalid"), b(g, "bready"), ar(g, "arvalid"),
          r(g, "rready")
    {
        dut->s_axil_awvalid_i = dut->s_axil_wvalid_i = dut->s_axil_bready_i = 0;
        dut->s_axil_arvalid_i = dut->s_axil_rready_i = 0;
    }
    void write(uint32_t addr, uint32_t data, unsigned strobes = 15)
    {
        bool aw_left = true, w_left = true;
        for (int i = 0; i < 2000; i++) {
            dut->s_axil_awvalid_i = aw_left && (dut->s_axil_awvalid_i || aw.want());
            dut->s_axil_awaddr_i = dut->s_axil_awvalid_i ? addr : rng.u32() & 0xFFF;
            dut->s_axil_wvalid_i = w_left && (dut->s_axil_wvalid_i || w.want());
            dut->s_axil_wdata_i = dut->s_axil_wvalid_i ? data : rng.u32();
            dut->s_axil_wstrb_i = dut->s_axil_wvalid_i ? strobes : rng.u32() & 15;
            dut->s_axil_bready_i = b.want();
            dut.settle();
            aw.saw(aw_left && dut->s_axil_awready_o);
            w.saw(w_left && dut->s_axil_wready_o);
            b.saw(dut->s_axil_bvalid_o);
            bool a = dut->s_axil_awvalid_i && dut->s_axil_awready_o, d = dut->s_axil_wvalid_i && dut->s_axil_wready_o;
            bool answered = dut->s_axil_bvalid_o && dut->s_axil_bready_i;
            lost |= answered && (aw_left || w_left || dut->s_axil_bresp_o);
            dut.edge();
            aw_left = aw_left && !a;
            w_left = w_left && !d;
            if (!aw_left)
                dut->s_axil_awvalid_i = 0;
            if (!w_left)
                dut->s_axil_wvalid_i = 0;
            if (answered) {
                dut->s_axil_bready_i = 0;
                return;
            }
        }
        lost = true;
    }
    uint32_t read(uint32_t addr)
    {
        bool left = true;
        for (int i = 0; i < 2000; i++) {
            dut->s_axil_arvalid_i = left && (dut->s_axil_arvalid_i || ar.want());
            dut->s_axil_araddr_i = dut->s_axil_arvalid_i ? addr : rng.u32() & 0xFFF;
            dut->s_axil_rready_i = r.want();
            dut.settle();
            ar.saw(left && dut->s_axil_arready_o);
            r.saw(dut->s_axil_rvalid_o);
            bool a = dut->s_axil_arvalid_i && dut->s_axil_arready_o;
            bool answered = dut->s_axil_rvalid_o && dut->s_axil_rready_i;
            uint32_t data = dut->s_axil_rdata_o;
            lost |= answered && (left || dut->s_axil_rresp_o);
            dut.edge();
            left = left && !a;
            if (!left)
                dut->s_axil_arvalid_i = 0;
            if (answered) {
                dut->s_axil_rready_i = 0;
                return data;
            }
        }
        lost = true;
        return 0;
    }
    void run_address(uint64_t addr)
    {
        write(MR_KARG_RUN, static_cast<uint32_t>(addr));
        write(MR_KARG_RUN + 4, static_cast<uint32_t>(addr >> 32));
    }
    // Looks at the control register until the run has ended; the last value, which has ap_done.
    uint32_t wait(int *polls = nullptr)
    {
        uint32_t v = 0;
        int n = 0;
        for (; n < 2000 && !((v = read(CTRL)) & DONE); n++)
            lost |= !(v & START) || (v & IDLE); // a run that has begun shows until it is done
        if (polls)
            *polls = n;
        lost |= !(v & DONE);
        return v;
    }
    void ticks(int n)
    {
        while (n--)
            dut.tick();
    }
};

} // namespace

int main(int argc, char **argv)
{
    Args args(argc, argv);
    Tap tap;
    Rng rng(args.seed);
    Dut<Vdut> dut(args);
    Host h(dut, rng);
    dut.reset();
    bool good = true;
    int polls;

    tap.ok(h.read(CTRL) == IDLE && h.read(CTRL) == IDLE, "kernel: idle after reset");
    tap.ok(h.read(MR_REG_MAGIC) == MR_MAGIC_REG && (h.read(MR_REG_GEOMETRY) & 255) == 2 &&
               h.read(MR_REG_COUNTERS + 8 * 3) == 3,
           "kernel: the engine's registers through the control port");

    // What XRT writes before a start: the whole map from 0x00 on, zeros between the arguments.
    uint32_t last = MR_KARG_CHANNEL + 2 * MR_KARG_CHANNEL_STRIDE;
    for (uint32_t a = 0; a < last; a += 4)
        h.write(a, a == MR_KARG_RUN ? 20 : a == MR_KARG_WATCHDOG ? 24 : 0);
    h.ticks(30);
    tap.ok(h.read(CTRL) == IDLE && h.read(MR_REG_STATUS) == 0 && dut->idle_o,
           "kernel: a block of zeros starts nothing");
    tap.ok(h.read(MR_REG_WATCHDOG) == 24 && h.read(MR_REG_RUN_LO) == 20,
           "kernel: arguments arrive in the engine's registers");

    h.write(CTRL, START);
    uint32_t first = h.read(CTRL);
    tap.ok(first == START && !dut->idle_o, "kernel: started: ap_start reads 1, ap_idle 0");
    uint32_t end = h.wait(&polls);
    uint32_t after = h.read(CTRL);
    tap.ok(end == (DONE | IDLE | READY) && after == IDLE && polls > 0,
           "kernel: ap_done and ap_ready once, cleared by reading");
    tap.ok(h.read(MR_REG_STATUS) == 2 && h.read(MR_REG_ERROR) == 0, "kernel: a good run's status");
    h.ticks(300);
    tap.ok(h.read(CTRL) == IDLE, "kernel: no second run by itself");

    // The engine's own status of its interrupt, which the kernel's does not need: one clears it.
    good = h.read(MR_REG_IRQ_STATUS) == 1;
    h.write(MR_REG_IRQ_STATUS, ~1u);
    good &= h.read(MR_REG_IRQ_STATUS) == 1;
    h.write(MR_REG_IRQ_STATUS, 1);
    good &= h.read(MR_REG_IRQ_STATUS) == 0;

    h.write(CTRL, START | 0x80);
    h.wait();
    tap.ok(good && h.read(MR_REG_IRQ_STATUS) == 1, "kernel: the engine's interrupt status");
    h.ticks(300);
    tap.ok(h.read(CTRL) == IDLE, "kernel: auto-restart is not there");

    h.write(MR_REG_CTRL, 1);
    h.ticks(50);
    tap.ok(h.read(CTRL) == IDLE && !(h.read(MR_REG_STATUS) & 1),
           "kernel: the engine's own start bit starts nothing");

    h.run_address(200);
    h.write(CTRL, START);
    h.write(CTRL, 0);
    h.write(CTRL, START); // while it runs: taken as done already
    h.wait();
    h.ticks(300);
    tap.ok(h.read(CTRL) == IDLE, "kernel: zeros and starts during a run change nothing");

    h.run_address(5 | FAILS);
    h.write(CTRL, START);
    h.wait();
    tap.ok((h.read(MR_REG_STATUS) & 6) == 4 && h.read(MR_REG_ERROR) == (4 | 1 << 8 | 7 << 16) &&
               h.read(MR_REG_ERROR_LO) == 0x56789ABC && h.read(MR_REG_ERROR_HI) == 0x1234,
           "kernel: a run that fails ends with ap_done, its error can be read");

    // The next start waits until the engine can take it.
    h.run_address(5 | FAILS | LINGERS);
    h.write(CTRL, START);
    h.wait();
    good = h.read(MR_REG_STATUS) == 5;
    h.run_address(9);
    h.write(CTRL, START);
    good &= !(h.wait() & START) && h.read(MR_REG_STATUS) == 2;
    tap.ok(good, "kernel: a start behind an engine that is still busy is kept");

    h.run_address(ENDLESS);
    h.write(CTRL, START);
    h.ticks(500);
    good = h.read(CTRL) == START;
    h.write(MR_REG_CTRL, 2);
    good &= h.wait() == (DONE | IDLE | READY) && h.read(MR_REG_STATUS) == 0;
    tap.ok(good, "kernel: a soft reset ends a run with ap_done");
    h.run_address(5 | FAILS | LINGERS);
    h.write(CTRL, START);
    h.wait();
    h.write(CTRL, START);
    h.write(MR_REG_CTRL, 2);
    good = (h.read(CTRL) & (DONE | IDLE)) == (DONE | IDLE);
    h.ticks(400);
    tap.ok(good && h.read(CTRL) == IDLE, "kernel: a soft reset takes back a start that waits");

    // Interrupt: done and ready by IER, together by GIE; ISR toggles.
    h.run_address(3);
    auto run = [&]() {
        h.write(CTRL, START);
        h.wait();
    };
    run();
    good = h.read(ISR) == 0 && !dut->irq_o;
    h.write(IER, 1);
    run();
    good &= h.read(ISR) == 1 && !dut->irq_o;
    h.write(GIE, 1);
    dut.settle();
    good &= dut->irq_o && h.read(GIE) == 1 && h.read(IER) == 1;
    h.write(ISR, 1);
    dut.settle();
    good &= !dut->irq_o && h.read(ISR) == 0;
    h.write(IER, 3);
    run();
    good &= h.read(ISR) == 3 && dut->irq_o;
    h.write(ISR, 2);
    good &= h.read(ISR) == 1 && dut->irq_o;
    h.write(ISR, 3);
    good &= h.read(ISR) == 2 && dut->irq_o;
    h.write(ISR, 2);
    h.write(ISR, 0);
    dut.settle();
    good &= h.read(ISR) == 0 && !dut->irq_o;
    tap.ok(good, "kernel: GIE, IER, ISR and the interrupt");
    h.write(IER, 1); // GIE is set
    h.run_address(100);
    h.write(CTRL, START);
    good = !dut->irq_o && !dut->idle_o;
    h.ticks(400); // nobody looks meanwhile
    good &= dut->irq_o && dut->idle_o;
    h.write(ISR, 1);
    h.write(IER, 3);
    h.wait();
    tap.ok(good && h.read(ISR) == 0, "kernel: a run ends and interrupts while nobody looks");

    h.run_address(77);
    h.write(MR_KARG_RUN, 1, 7);
    h.write(GIE, 0, 14);
    tap.ok(h.read(MR_REG_RUN_LO) == 77 && h.read(GIE) == 1, "kernel: partial strobes write nothing");

    // Weight pages: addresses with bit 63 set move, others do not.
    good = true;
    // Pages take turns, or one follows another.
    for (int n = 0; n < args.cases_or(60); n++) {
        unsigned log2 = static_cast<unsigned>(rng.range(12, 38));
        bool turns = rng.chance(50);
        uint64_t page[2][4];
        h.write(MR_KARG_PAGE_LOG2, log2 | (turns ? MR_PAGES_IN_TURN : 0));
        for (unsigned c = 0; c < 2; c++)
            for (unsigned i = 0; i < 4; i++) {
                page[c][i] = (rng.u64() & 0xFFFFFFFFFFF) * 64;
                uint32_t at = MR_KARG_CHANNEL + c * MR_KARG_CHANNEL_STRIDE + MR_KARG_WEIGHTS + 8 * i;
                h.write(at, static_cast<uint32_t>(page[c][i]));
                h.write(at + 4, static_cast<uint32_t>(page[c][i] >> 32));
                h.write(at, rng.u32(), 7); // a partial strobe
            }
        h.write(MR_KARG_PAGE_LOG2, log2 ^ 1, 14);
        uint64_t off = rng.u64() % (4ull << log2) & ~63ull;
        bool virt = rng.chance(80);
        h.run_address(off | static_cast<uint64_t>(virt) << 63);
        dut.settle();
        for (unsigned c = 0; c < 2; c++) {
            uint64_t at = off + 16 * c;
            uint64_t want = !virt   ? at
                            : turns ? page[c][at / 4096 % 4] + at / 16384 * 4096 + at % 4096
                                    : page[c][at >> log2] + (at & ((1ull << log2) - 1));
            if (get(dut->m_ch_araddr_o, static_cast<int>(64 * c), 64) != want && good) {
                tap.note("channel %u, page 2^%u%s, 0x%llx", c, log2, turns ? " in turn" : "",
                         static_cast<unsigned long long>(off));
                good = false;
            }
        }
    }
    tap.ok(good, "kernel: weight pages");

    // Runs and register reads at random, with every handshake stalled now and then.
    h.aw.random();
    h.w.random();
    h.b.random();
    h.ar.random();
    h.r.random();
    good = true;
    for (int n = 0; n < args.cases_or(60) && !h.lost; n++) {
        bool fails = rng.chance(30);
        h.run_address(static_cast<uint64_t>(rng.range(0, 255)) | (fails ? FAILS : 0) |
                      (rng.chance(30) ? LINGERS : 0));
        h.write(CTRL, START);
        if (rng.chance(50))
            good &= h.read(MR_REG_VERSION) ==
                    (static_cast<uint32_t>(MR_VERSION_MAJOR) << 16 | MR_VERSION_MINOR);
        good &= h.wait() == (DONE | IDLE | READY);
        good &= (h.read(MR_REG_STATUS) & 6) == (fails ? 4u : 2u) && h.read(CTRL) == IDLE;
    }
    tap.ok(good, "kernel: runs under stalls");
    tap.ok(!h.lost, "kernel: every access answered, in order, with OKAY");
    tap.ok(h.aw.covered(tap) & h.w.covered(tap) & h.b.covered(tap) & h.ar.covered(tap) &
               h.r.covered(tap),
           "kernel: every port stalled");
    return tap.done();
}
