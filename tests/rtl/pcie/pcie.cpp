// SPDX-License-Identifier: Apache-2.0
// millrace_pcie as a driver sees it: capabilities, rings, copies of any alignment against a byte for
// byte reference, runs (of the stand-in engine in ../kernel/millrace_core.sv), every error, and that
// nothing it is told or answered makes it hang. All ports stall at random.
#include "Vdut.h"
#include "bench.h"

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "build/gen/mr_device.h"

using namespace bench;

namespace
{

constexpr unsigned RINGS = 4, CHANNELS = 2, MEM = 1 << 16, SIZE_LOG2 = 3, SIZE = 1 << SIZE_LOG2;
constexpr uint64_t HOST = 0x2FFFF0000ull, HOST_BYTES = 1 << 20; // across a 32-bit border
enum : uint64_t { FAILS = 1 << 8, ENDLESS = 1 << 10 };          // of the stand-in's run address

// A slave behind one of the copier's ports: its memory, stalls, and the rules a master keeps.
struct Slave {
    Rng &rng;
    std::vector<uint8_t> bytes;
    std::string bad;
    Stall ar, r, aw, w, b;
    struct Beat {
        uint64_t addr;
        bool last;
    };
    std::deque<Beat> reads;
    struct Burst {
        uint64_t addr;
        unsigned beats;
    };
    std::deque<Burst> bursts;
    std::deque<unsigned> responses;
    unsigned written = 0, resp = 0;
    uint64_t refuse = ~0ull; // a beat there gets SLVERR
    bool offer_r = false, offer_b = false, hold_ar = false, hold_aw = false;
    uint64_t held_ar = 0, held_aw = 0;
    unsigned w_beats = 0; // W beats of the burst whose AW has not come

    Slave(Rng &g, size_t n, const std::string &name)
        : rng(g), bytes(n), ar(g, name + " arready"), r(g, name + " rvalid"),
          aw(g, name + " awready"), w(g, name + " wready"), b(g, name + " bvalid")
    {
    }
    virtual ~Slave() = default;
    virtual uint8_t *at(uint64_t addr) = 0; // of a beat, NULL: nothing there
    void fail(const char *why)
    {
        if (bad.empty())
            bad = why;
    }
    void check(uint64_t addr, unsigned len)
    {
        if (addr % 64 || len > 63 || addr / 4096 != (addr + 64 * len) / 4096)
            fail("a burst is not aligned, too long or crosses 4 KiB");
    }
    template <class W> unsigned drive_read(W &data)
    {
        bool go = r.want();
        r.saw(!reads.empty());
        offer_r = go && !reads.empty();
        for (size_t i = 0; i < 16; i++)
            data[i] = rng.u32();
        if (!offer_r)
            return 0;
        uint64_t addr = reads.front().addr;
        const uint8_t *p = at(addr);
        if (p)
            memcpy(&data[0], p, 64);
        return !p ? 3 : addr == refuse ? 2 : 0;
    }
    void sample_read(bool valid, bool ready, uint64_t addr, unsigned len, bool rready)
    {
        ar.saw(valid);
        if (hold_ar && (!valid || held_ar != (addr | len)))
            fail("AR changed while it waited");
        hold_ar = valid && !ready;
        held_ar = addr | len;
        if (offer_r && rready)
            reads.pop_front();
        if (valid && ready) {
            check(addr, len);
            for (unsigned i = 0; i <= len; i++)
                reads.push_back({addr + 64 * i, i == len});
        }
    }
    template <class W>
    void sample_write(bool awvalid, bool awready, uint64_t addr, unsigned len, bool wvalid,
                      bool wready, const W &data, uint64_t strobes, bool last, bool bready)
    {
        aw.saw(awvalid);
        w.saw(wvalid);
        b.saw(!responses.empty());
        if (hold_aw && (!awvalid || held_aw != (addr | len)))
            fail("AW changed while it waited");
        hold_aw = awvalid && !awready;
        held_aw = addr | len;
        if (offer_b && bready)
            responses.pop_front();
        if (awvalid && awready) {
            check(addr, len);
            bursts.push_back({addr, len + 1});
        }
        if (wvalid && wready) {
            if (bursts.empty()) {
                fail("W before its AW");
                return;
            }
            uint64_t beat = bursts.front().addr + 64 * written;
            uint8_t *p = at(beat);
            if (!p || beat == refuse)
                resp = 2;
            for (unsigned i = 0; p && beat != refuse && i < 64; i++)
                if (strobes >> i & 1)
                    p[i] = reinterpret_cast<const uint8_t *>(&data[0])[i];
            if (last != (++written == bursts.front().beats))
                fail("WLAST wrong");
            if (written == bursts.front().beats) {
                responses.push_back(resp);
                bursts.pop_front();
                written = resp = 0;
            }
        }
    }
};

struct HostMemory : Slave {
    using Slave::Slave;
    uint8_t *at(uint64_t addr) override
    {
        return addr >= HOST && addr - HOST + 64 <= bytes.size() ? &bytes[addr - HOST] : nullptr;
    }
};

struct CardMemory : Slave {
    using Slave::Slave;
    uint8_t *at(uint64_t addr) override
    {
        uint64_t c = addr >> 36, o = addr & 0xFFFFFFFFFull;
        return c < CHANNELS && o + 64 <= MEM ? &bytes[c * MEM + o] : nullptr;
    }
};

struct Entry {
    uint32_t op = MR_PCIE_OP_NOP, flags = 0, bytes = 0, skip = 0;
    uint64_t host = 0, card = 0;
    uint32_t segments = 0;
};

struct Env {
    Tap &tap;
    Rng rng;
    Dut<Vdut> dut;
    HostMemory host;
    CardMemory card;
    Stall aw, w, b, ar, r;
    uint64_t irqs[RINGS] = {};
    uint32_t tail[RINGS] = {};
    std::vector<uint64_t> runs; // run addresses, where they differ from the one before
    uint64_t longest = 0; // list of segments
    bool lost = false, slept = false; // slept: busy_o was low with an entry to come

    Env(Args &a, Tap &t)
        : tap(t), rng(a.seed), dut(a), host(rng, HOST_BYTES, "host"),
          card(rng, CHANNELS * MEM, "card"), aw(rng, "bar awvalid"), w(rng, "bar wvalid"),
          b(rng, "bar bready"), ar(rng, "bar arvalid"), r(rng, "bar rready")
    {
        dut->s_bar_awvalid_i = dut->s_bar_wvalid_i = dut->s_bar_arvalid_i = 0;
        dut->s_bar_bready_i = dut->s_bar_rready_i = 0;
        dut->m_ch_arready_i = dut->m_ch_rvalid_i = dut->m_host_arready_i = 0;
        dut->m_host_rvalid_i = dut->m_host_awready_i = dut->m_host_wready_i = 0;
        dut->m_host_bvalid_i = 0;
        reset();
    }
    void reset()
    {
        dut->m_pci_rvalid_i = dut->m_card_rvalid_i = 0;
        dut->m_pci_bvalid_i = dut->m_card_bvalid_i = 0;
        dut.reset();
    }
    void cycle()
    {
        dut->m_pci_arready_i = host.ar.want();
        dut->m_pci_rresp_i = host.drive_read(dut->m_pci_rdata_i);
        dut->m_pci_rvalid_i = host.offer_r;
        dut->m_pci_awready_i = host.aw.want();
        dut->m_pci_wready_i = !host.bursts.empty() && host.w.want();
        host.offer_b = host.b.want() && !host.responses.empty();
        dut->m_pci_bvalid_i = host.offer_b;
        dut->m_pci_bresp_i = host.offer_b ? host.responses.front() : rng.u32() & 3;
        dut->m_card_arready_i = card.ar.want();
        dut->m_card_rresp_i = card.drive_read(dut->m_card_rdata_i);
        dut->m_card_rvalid_i = card.offer_r;
        dut->m_card_awready_i = card.aw.want();
        dut->m_card_wready_i = !card.bursts.empty() && card.w.want();
        card.offer_b = card.b.want() && !card.responses.empty();
        dut->m_card_bvalid_i = card.offer_b;
        dut->m_card_bresp_i = card.offer_b ? card.responses.front() : rng.u32() & 3;
        dut.settle();
        host.sample_read(dut->m_pci_arvalid_o, dut->m_pci_arready_i, dut->m_pci_araddr_o,
                         dut->m_pci_arlen_o, dut->m_pci_rready_o);
        host.sample_write(dut->m_pci_awvalid_o, dut->m_pci_awready_i, dut->m_pci_awaddr_o,
                          dut->m_pci_awlen_o, dut->m_pci_wvalid_o, dut->m_pci_wready_i,
                          dut->m_pci_wdata_o, dut->m_pci_wstrb_o, dut->m_pci_wlast_o,
                          dut->m_pci_bready_o);
        card.sample_read(dut->m_card_arvalid_o, dut->m_card_arready_i, dut->m_card_araddr_o,
                         dut->m_card_arlen_o, dut->m_card_rready_o);
        card.sample_write(dut->m_card_awvalid_o, dut->m_card_awready_i, dut->m_card_awaddr_o,
                          dut->m_card_awlen_o, dut->m_card_wvalid_o, dut->m_card_wready_i,
                          dut->m_card_wdata_o, dut->m_card_wstrb_o, dut->m_card_wlast_o,
                          dut->m_card_bready_o);
        uint64_t run = dut->m_ch_araddr_o[0] | static_cast<uint64_t>(dut->m_ch_araddr_o[1]) << 32;
        if (runs.empty() || runs.back() != run)
            runs.push_back(run);
        for (unsigned v = 0; v < RINGS; v++)
            irqs[v] += dut->irq_o >> v & 1;
        dut.edge();
    }
    struct Word {
        uint32_t addr, data;
        unsigned strobes;
    };
    // Each word's address and data are offered when the one before has been taken, done or not.
    void write_all(const std::vector<Word> &words)
    {
        size_t a = 0, d = 0, done = 0, n = words.size();
        for (int i = 0; i < 4000 && done < n; i++) {
            dut->s_bar_awvalid_i = a < n && (dut->s_bar_awvalid_i || aw.want());
            dut->s_bar_awaddr_i = dut->s_bar_awvalid_i ? words[a].addr : rng.u32() & 0xFFFF;
            dut->s_bar_wvalid_i = d < n && (dut->s_bar_wvalid_i || w.want());
            dut->s_bar_wdata_i = dut->s_bar_wvalid_i ? words[d].data : rng.u32();
            dut->s_bar_wstrb_i = dut->s_bar_wvalid_i ? words[d].strobes : rng.u32() & 15;
            dut->s_bar_bready_i = b.want();
            dut.settle();
            aw.saw(a < n && dut->s_bar_awready_o);
            w.saw(d < n && dut->s_bar_wready_o);
            b.saw(dut->s_bar_bvalid_o);
            bool ta = dut->s_bar_awvalid_i && dut->s_bar_awready_o;
            bool td = dut->s_bar_wvalid_i && dut->s_bar_wready_o;
            bool answered = dut->s_bar_bvalid_o && dut->s_bar_bready_i;
            lost |= answered && (a <= done || d <= done || dut->s_bar_bresp_o);
            cycle();
            a += ta;
            d += td;
            done += answered;
            if (ta)
                dut->s_bar_awvalid_i = 0;
            if (td)
                dut->s_bar_wvalid_i = 0;
        }
        dut->s_bar_bready_i = 0;
        lost |= done < n;
    }
    void write(uint32_t addr, uint32_t data, unsigned strobes = 15) { write_all({{addr, data, strobes}}); }
    std::vector<uint32_t> read_all(const std::vector<uint32_t> &addrs)
    {
        std::vector<uint32_t> data;
        size_t a = 0, n = addrs.size();
        for (int i = 0; i < 4000 && data.size() < n; i++) {
            dut->s_bar_arvalid_i = a < n && (dut->s_bar_arvalid_i || ar.want());
            dut->s_bar_araddr_i = dut->s_bar_arvalid_i ? addrs[a] : rng.u32() & 0xFFFF;
            dut->s_bar_rready_i = r.want();
            dut.settle();
            ar.saw(a < n && dut->s_bar_arready_o);
            r.saw(dut->s_bar_rvalid_o);
            bool ta = dut->s_bar_arvalid_i && dut->s_bar_arready_o;
            bool answered = dut->s_bar_rvalid_o && dut->s_bar_rready_i;
            lost |= answered && (a <= data.size() || dut->s_bar_rresp_o);
            if (answered)
                data.push_back(dut->s_bar_rdata_o);
            cycle();
            a += ta;
            if (ta)
                dut->s_bar_arvalid_i = 0;
        }
        dut->s_bar_rready_i = 0;
        lost |= data.size() < n;
        data.resize(n);
        return data;
    }
    uint32_t read(uint32_t addr) { return read_all({addr})[0]; }

    // ---- rings: ring q has its entries at HOST + q * 0x4000, completions 0x1000 behind them -------
    static uint64_t ring(unsigned q) { return HOST + q * 0x4000; }
    static uint32_t reg(unsigned q, uint32_t at) { return MR_PCIE_QUEUES + q * MR_PCIE_Q_STRIDE + at; }
    void put32(uint64_t addr, uint32_t v) { memcpy(&host.bytes[addr - HOST], &v, 4); }
    void put64(uint64_t addr, uint64_t v) { memcpy(&host.bytes[addr - HOST], &v, 8); }
    uint32_t get32(uint64_t addr)
    {
        uint32_t v;
        memcpy(&v, &host.bytes[addr - HOST], 4);
        return v;
    }
    void enable(unsigned q)
    {
        memset(&host.bytes[ring(q) - HOST], 0, 0x4000);
        write(reg(q, MR_PCIE_Q_RING_LO), static_cast<uint32_t>(ring(q)));
        write(reg(q, MR_PCIE_Q_RING_HI), static_cast<uint32_t>(ring(q) >> 32));
        write(reg(q, MR_PCIE_Q_CPL_LO), static_cast<uint32_t>(ring(q) + 0x1000));
        write(reg(q, MR_PCIE_Q_CPL_HI), static_cast<uint32_t>((ring(q) + 0x1000) >> 32));
        write(reg(q, MR_PCIE_Q_SIZE), SIZE_LOG2);
        write(reg(q, MR_PCIE_Q_VECTOR), RINGS - 1 - q);
        write(reg(q, MR_PCIE_Q_CTRL), 1);
        tail[q] = 0;
    }
    void disable(unsigned q)
    {
        write(reg(q, MR_PCIE_Q_CTRL), 0);
        int n = 0;
        while (read(reg(q, MR_PCIE_Q_STATUS)) & (MR_PCIE_Q_BUSY | MR_PCIE_Q_ENABLED) && n++ < 2000)
            ;
        lost |= n >= 2000;
    }
    void put(unsigned q, const Entry &e)
    {
        uint64_t at = ring(q) + tail[q] % SIZE * MR_PCIE_ENTRY_BYTES;
        for (unsigned i = 0; i < 64; i += 4)
            put32(at + i, rng.u32()); // words for later are ignored
        put32(at, e.op | e.flags);
        put32(at + 4 * MR_PCIE_W_TAG, tail[q] ^ 0xABCD0000);
        put64(at + 4 * MR_PCIE_W_HOST_LO, e.host);
        put64(at + 4 * MR_PCIE_W_CARD_LO, e.card);
        put32(at + 4 * MR_PCIE_W_BYTES, e.bytes);
        put32(at + 4 * MR_PCIE_W_SEGMENTS, e.segments);
        put32(at + 4 * MR_PCIE_W_SKIP, e.skip);
        tail[q]++;
    }
    void bell(unsigned q) { write(reg(q, MR_PCIE_Q_DOORBELL), tail[q] & 0xFFFF); }
    uint64_t completion(unsigned q, uint32_t index)
    {
        return ring(q) + 0x1000 + index % SIZE * MR_PCIE_CPL_BYTES;
    }
    uint32_t status_word(unsigned q, uint32_t index, unsigned word)
    {
        return get32(completion(q, index) + MR_PCIE_CPL_STATUS + 4 * word);
    }
    // Clocks until the entry has completed; its status, or -1.
    int wait(unsigned q, uint32_t index, int patience = 200000)
    {
        for (int i = 0; i < patience; i++) {
            if (status_word(q, index, MR_PCIE_C_SEQ) == index + 1)
                return status_word(q, index, MR_PCIE_C_TAG) == (index ^ 0xABCD0000)
                           ? static_cast<int>(status_word(q, index, MR_PCIE_C_STATUS))
                           : -2;
            slept |= !dut->busy_o;
            cycle();
        }
        return -1;
    }
    int run_one(unsigned q, const Entry &e)
    {
        put(q, e);
        bell(q);
        return wait(q, tail[q] - 1);
    }
    // A list of segments at `list`, in [area, area + bytes); returns the sum of their lengths.
    uint32_t make_list(uint64_t list, uint64_t area, uint32_t bytes, unsigned n,
                       std::vector<std::pair<uint64_t, uint32_t>> &out)
    {
        uint32_t sum = 0;
        out.clear();
        for (unsigned i = 0; i < n; i++) {
            uint32_t len = static_cast<uint32_t>(
                rng.chance(30) ? rng.range(1, 3) : rng.range(1, std::min(bytes / n * 2, bytes - 1)));
            if (rng.chance(10))
                len = std::min(bytes - 1, 4096u);
            uint64_t addr = area + static_cast<uint64_t>(rng.range(0, bytes - len));
            put64(list + 16 * i, addr);
            put32(list + 16 * i + 8, len);
            put32(list + 16 * i + 12, rng.u32());
            out.push_back({addr, len});
            sum += len;
        }
        return sum;
    }
};

// ---- tests ------------------------------------------------------------------------------------------

bool identity(Env &e)
{
    bool good = e.read(MR_PCIE_REG_MAGIC) == MR_PCIE_MAGIC &&
                e.read(MR_PCIE_REG_VERSION) ==
                    (MR_PCIE_VERSION_MAJOR << 16 | MR_PCIE_VERSION_MINOR);
    unsigned seen = 0;
    uint32_t at = e.read(MR_PCIE_REG_CAPS);
    for (int i = 0; at && i < 8; i++) {
        uint32_t head = e.read(at), where = e.read(at + 4), a = e.read(at + 8), b = e.read(at + 12);
        switch (head & 0xFFFF) {
        case MR_PCIE_CAP_ENGINE:
            good &= where == MR_PCIE_ENGINE && a == 0x1000;
            break;
        case MR_PCIE_CAP_QUEUES:
            good &= where == MR_PCIE_QUEUES && a == RINGS && b == 12;
            break;
        case MR_PCIE_CAP_MEMORY:
            good &= a == CHANNELS && b == 16;
            break;
        case MR_PCIE_CAP_COPY:
            good &= a == 31;
            break;
        case MR_PCIE_CAP_SCRUB:
            good &= where == MR_PCIE_REG_SCRUB_LO;
            break;
        default:
            good = false;
        }
        seen |= 1u << (head & 0xFFFF);
        at = head >> 16;
    }
    good &= seen == 0x3E && !at;
    good &= e.read(MR_PCIE_ENGINE + MR_REG_MAGIC) == MR_MAGIC_REG;
    e.write(MR_PCIE_REG_SCRATCH, 0x12345678);
    e.write(MR_PCIE_REG_SCRATCH, 0xFFFFFFFF, 7);
    good &= e.read(MR_PCIE_REG_SCRATCH) == 0x12345678;
    e.write(0x7FFC, 1);
    good &= e.read(0x7FFC) == 0 && e.read(MR_PCIE_REG_MAGIC) == MR_PCIE_MAGIC;
    return good && e.read(MR_PCIE_REG_STATUS) == 0;
}

// The next access is offered before the one before is done: each has its own answer, in order.
bool several(Env &e)
{
    const uint32_t at[] = {MR_PCIE_REG_SCRATCH, MR_PCIE_ENGINE + MR_REG_RUN_LO, MR_PCIE_ENGINE + MR_REG_RUN_HI};
    bool good = true;
    for (int i = 0; i < 20; i++) {
        std::vector<Env::Word> words;
        std::vector<uint32_t> addrs, data;
        for (uint32_t addr : at) {
            words.push_back({addr, e.rng.u32(), 15});
            addrs.push_back(addr);
            data.push_back(words.back().data);
        }
        e.write_all(words);
        good &= e.read_all(addrs) == data;
    }
    return good;
}

// The engine's geometry, that of rtl/spec/core_ports.def, and registers that keep what is written.
bool engine(Env &e)
{
    static const struct {
        uint32_t at, is;
    } geometry[] = {
        {MR_REG_VERSION, MR_VERSION_MAJOR << 16 | MR_VERSION_MINOR},
        {MR_REG_GEOMETRY, 128 << 16 | 4 << 8 | CHANNELS},
        {MR_REG_WORDS, 256 << 16 | 1024},
        {MR_REG_ROWS, 256 << 16 | 4096},
        {MR_REG_SCORES, 32768},
        {MR_REG_RING, 4096 << 16 | 1024},
        {MR_REG_FORMATS, 7},
        {MR_REG_CLOCK_KHZ, 300000},
        {MR_REG_ATTENTION, 4 << 24 | 64 << 16 | 4096},
        {MR_REG_STATUS, 0},
        {MR_REG_IRQ_STATUS, 0},
        {MR_REG_STICKY, 0},
    };
    static const struct {
        uint32_t at, mask;
    } kept[] = {{MR_REG_RUN_LO, ~0u}, {MR_REG_RUN_HI, ~0u}, {MR_REG_IRQ_ENABLE, 1}, {MR_REG_WATCHDOG, 63}};
    bool good = true;
    for (auto &r : geometry)
        good &= e.read(MR_PCIE_ENGINE + r.at) == r.is;
    for (uint32_t x : {0xA5A5A5A5u, 0x5A5A5A5Au, 0u}) { // something else into each
        for (auto &r : kept)
            e.write(MR_PCIE_ENGINE + r.at, x ^ (x ? r.at : 0));
        for (auto &r : kept)
            good &= e.read(MR_PCIE_ENGINE + r.at) == ((x ^ (x ? r.at : 0)) & r.mask);
    }
    return good;
}

// Rings of work, each in its own part of host and card memory; the reference does the same in order.
bool work(Env &e, int rounds)
{
    for (auto &x : e.host.bytes)
        x = static_cast<uint8_t>(e.rng.u32());
    for (unsigned q = 0; q < RINGS; q++)
        e.enable(q);
    std::vector<uint8_t> host = e.host.bytes, card = e.card.bytes;
    uint64_t want_irq[RINGS], done = 0;
    std::copy(e.irqs, e.irqs + RINGS, want_irq);
    bool good = true;
    for (int round = 0; good && round < rounds; round++) {
        uint32_t first[RINGS];
        std::vector<Entry> entries[RINGS];
        std::vector<int> status[RINGS];
        for (unsigned q = 0; q < RINGS; q++) {
            uint64_t area = HOST + 0x20000 + q * 0x20000, lists = HOST + 0xB0000 + q * 0x8000;
            uint64_t cards = static_cast<uint64_t>(q / 2) << 36 | q % 2 * (MEM / 2);
            first[q] = e.tail[q];
            bool cancelled = false, chain = false;
            unsigned n = static_cast<unsigned>(e.rng.range(0, SIZE - 1));
            for (unsigned i = 0; i < n; i++) {
                Entry x;
                int expect = MR_PCIE_OK;
                x.op = static_cast<uint32_t>(e.rng.range(0, 5));
                x.flags = (e.rng.chance(50) ? MR_PCIE_FLAG_IRQ : 0) |
                          (e.rng.chance(40) ? MR_PCIE_FLAG_LINK : 0);
                x.bytes = static_cast<uint32_t>(e.rng.chance(40) ? e.rng.range(1, 200)
                                                                 : e.rng.range(1, MEM / 2));
                x.card = cards + static_cast<uint64_t>(e.rng.range(0, MEM / 2 - x.bytes));
                std::vector<std::pair<uint64_t, uint32_t>> list;
                unsigned segs = static_cast<unsigned>(e.rng.chance(15) ? e.rng.range(100, 140)
                                                                       : e.rng.range(1, 12));
                if (x.op == MR_PCIE_OP_COPY_IN || x.op == MR_PCIE_OP_COPY_OUT) {
                    x.host = lists + 0x1000 * i + 16 * static_cast<uint64_t>(e.rng.range(0, 3));
                    // What a copy writes must not be what it or another still reads.
                    uint64_t part = area + (x.op == MR_PCIE_OP_COPY_OUT ? 0x10000 : 0);
                    uint32_t sum = e.make_list(x.host, part, 0x10000, segs, list);
                    memcpy(&host[x.host - HOST], &e.host.bytes[x.host - HOST], 16 * segs);
                    x.segments = segs;
                    x.skip = static_cast<uint32_t>(e.rng.range(0, list[0].second - 1));
                    if (x.bytes > sum - x.skip) {
                        x.bytes = sum - x.skip;
                        x.card = cards;
                        if (x.bytes > MEM / 2)
                            x.bytes = MEM / 2;
                    }
                    e.longest = std::max<uint64_t>(e.longest, segs);
                } else if (x.op == MR_PCIE_OP_RUN) {
                    x.bytes = 128;
                    x.host = area + static_cast<uint64_t>(e.rng.range(0, 1000));
                    bool fails = e.rng.chance(30);
                    x.card = cards + 64 * static_cast<uint64_t>(e.rng.range(0, 3)) +
                             (fails ? FAILS : 0);
                    expect = fails ? MR_PCIE_E_ENGINE : MR_PCIE_OK;
                } else if (x.op == 5) {
                    expect = MR_PCIE_E_ENTRY;
                }
                if (e.rng.chance(5) && x.op != MR_PCIE_OP_NOP && x.op != 5) {
                    x.card += static_cast<uint64_t>(CHANNELS) << 36;
                    expect = MR_PCIE_E_WINDOW;
                }
                if (chain && cancelled)
                    expect = MR_PCIE_E_CANCELLED;
                // The reference. A run's descriptor gets to the card also when the run fails.
                bool moves = expect == MR_PCIE_OK || expect == MR_PCIE_E_ENGINE;
                uint8_t *c = moves && x.op ? &card[(x.card >> 36) * MEM + (x.card & 0xFFFF)]
                                           : nullptr;
                if (moves && x.op == MR_PCIE_OP_CLEAR)
                    memset(c, 0, x.bytes);
                if (moves && x.op == MR_PCIE_OP_RUN)
                    memcpy(c, &host[x.host - HOST], x.bytes);
                uint32_t left = x.bytes, skip = x.skip;
                for (size_t s = 0; moves && !list.empty() && left; s++) {
                    uint32_t k = std::min(left, list[s].second - skip);
                    uint8_t *h = &host[list[s].first + skip - HOST];
                    if (x.op == MR_PCIE_OP_COPY_IN)
                        memcpy(c, h, k);
                    else
                        memcpy(h, c, k);
                    c += k;
                    left -= k;
                    skip = 0;
                }
                want_irq[RINGS - 1 - q] += (x.flags & MR_PCIE_FLAG_IRQ) || expect != MR_PCIE_OK;
                cancelled = expect != MR_PCIE_OK;
                chain = x.flags & MR_PCIE_FLAG_LINK;
                if (!chain)
                    cancelled = false;
                entries[q].push_back(x);
                status[q].push_back(expect);
                e.put(q, x);
            }
            // A chain that the next round would continue ends here.
            e.put(q, Entry());
            status[q].push_back(chain && cancelled ? MR_PCIE_E_CANCELLED : MR_PCIE_OK);
            want_irq[RINGS - 1 - q] += chain && cancelled;
        }
        for (unsigned q = 0; q < RINGS; q++)
            e.bell(q);
        for (unsigned q = 0; good && q < RINGS; q++)
            for (size_t i = 0; good && i < status[q].size(); i++) {
                uint32_t index = first[q] + static_cast<uint32_t>(i);
                int got = e.wait(q, index);
                done++;
                if (got != status[q][i]) {
                    e.tap.note("round %d ring %u entry %zu op %u: status %d, expected %d", round, q,
                               i, i < entries[q].size() ? entries[q][i].op : 0, got, status[q][i]);
                    e.tap.note("device 0x%08x, ring 0x%08x, head %u, tail %u of %u",
                               e.read(MR_PCIE_REG_STATUS), e.read(Env::reg(q, MR_PCIE_Q_STATUS)),
                               e.read(Env::reg(q, MR_PCIE_Q_HEAD)),
                               e.read(Env::reg(q, MR_PCIE_Q_DOORBELL)), e.tail[q]);
                    good = false;
                }
                if (i < entries[q].size() && entries[q][i].op == MR_PCIE_OP_RUN &&
                    (got == MR_PCIE_OK || got == MR_PCIE_E_ENGINE)) {
                    for (uint32_t k = 0; k < MR_COUNTERS; k++)
                        good &= e.get32(e.completion(q, index) + 8 * k) == k &&
                                e.get32(e.completion(q, index) + 8 * k + 4) == 0;
                    good &= e.status_word(q, index, MR_PCIE_C_ERROR) ==
                            (got ? 0x00070104u : 0u);
                    if (!good)
                        e.tap.note("counters or error of a run");
                }
            }
        for (size_t i = 0x20000; good && i < 0xB0000; i++)
            if (host[i] != e.host.bytes[i]) {
                e.tap.note("round %d: host memory differs at 0x%zx", round, i);
                good = false;
            }
        for (size_t i = 0; good && i < card.size(); i++)
            if (card[i] != e.card.bytes[i]) {
                e.tap.note("round %d: card memory differs at 0x%zx", round, i);
                good = false;
            }
    }
    // An interrupt comes behind its completion's response, which may be held back.
    for (int i = 0; i < 2000 && e.dut->busy_o; i++)
        e.cycle();
    e.cycle();
    for (unsigned v = 0; v < RINGS; v++)
        if (e.irqs[v] != want_irq[v]) {
            e.tap.note("vector %u: %llu interrupts, expected %llu", v,
                       static_cast<unsigned long long>(e.irqs[v]),
                       static_cast<unsigned long long>(want_irq[v]));
            good = false;
        }
    e.tap.note("entries %llu, longest list %llu", static_cast<unsigned long long>(done),
               static_cast<unsigned long long>(e.longest));
    for (unsigned q = 0; q < RINGS; q++)
        e.disable(q);
    return good && e.longest > 128; // more than one batch
}

void errors(Env &e)
{
    Tap &tap = e.tap;
    const uint64_t list = HOST + 0xB0000, area = HOST + 0x20000;
    Entry in;
    in.op = MR_PCIE_OP_COPY_IN;
    in.host = list;
    in.bytes = 100;
    in.segments = 1;
    auto segment = [&](unsigned i, uint64_t addr, uint32_t len) {
        e.put64(list + 16 * i, addr);
        e.put32(list + 16 * i + 8, len);
    };
    e.enable(1);
    segment(0, area, 100);
    tap.ok(e.run_one(1, in) == MR_PCIE_OK, "a copy");
    Entry x = in;
    x.segments = 0;
    tap.ok(e.run_one(1, x) == MR_PCIE_E_SEGMENTS, "no segments");
    x = in;
    x.bytes = 101;
    tap.ok(e.run_one(1, x) == MR_PCIE_E_SEGMENTS, "segments shorter than the copy");
    x = in;
    x.skip = 100;
    tap.ok(e.run_one(1, x) == MR_PCIE_E_SEGMENTS, "nothing left of the first segment");
    segment(0, area, 0);
    tap.ok(e.run_one(1, in) == MR_PCIE_E_SEGMENTS, "an empty segment");
    segment(0, area, 100);
    x = in;
    x.bytes = 0;
    tap.ok(e.run_one(1, x) == MR_PCIE_E_WINDOW, "no bytes");
    x = in;
    x.card = MEM - 99;
    tap.ok(e.run_one(1, x) == MR_PCIE_E_WINDOW, "beyond a channel's end");
    x.card = MEM - 100;
    tap.ok(e.run_one(1, x) == MR_PCIE_OK, "up to a channel's end");
    x.card = ~0ull - 50;
    tap.ok(e.run_one(1, x) == MR_PCIE_E_WINDOW, "a card address that wraps");
    segment(0, 0x1000, 100);
    tap.ok(e.run_one(1, in) == MR_PCIE_E_READ, "host memory that is not there");
    x = in;
    x.op = MR_PCIE_OP_COPY_OUT;
    tap.ok(e.run_one(1, x) == MR_PCIE_E_WRITE, "the same, written");
    segment(0, area, 100);
    x = in;
    x.host = 0x4000;
    tap.ok(e.run_one(1, x) == MR_PCIE_E_READ, "a segment list that is not there");
    e.card.refuse = 64;
    tap.ok(e.run_one(1, in) == MR_PCIE_E_WRITE, "a write that the card refuses");
    uint64_t addr = e.status_word(1, e.tail[1] - 1, MR_PCIE_C_ADDR_LO);
    tap.ok(addr == 0, "its burst's address is reported");
    x = in;
    x.op = MR_PCIE_OP_COPY_OUT;
    tap.ok(e.run_one(1, x) == MR_PCIE_E_READ, "a read that the card refuses");
    e.card.refuse = ~0ull;
    Entry run;
    run.op = MR_PCIE_OP_RUN;
    run.host = area;
    run.bytes = 128;
    tap.ok(e.run_one(1, run) == MR_PCIE_OK, "a run");
    x = run;
    x.bytes = 100;
    tap.ok(e.run_one(1, x) == MR_PCIE_E_ENTRY, "a descriptor of no whole beats");
    x.bytes = MR_PCIE_RUN_BYTES;
    tap.ok(e.run_one(1, x) == MR_PCIE_OK &&
               std::equal(&e.card.bytes[0], &e.card.bytes[x.bytes], &e.host.bytes[area - HOST]),
           "the longest descriptor");
    x.bytes += 64;
    tap.ok(e.run_one(1, x) == MR_PCIE_E_ENTRY, "a descriptor that is too long");
    x = run;
    x.card = 32;
    tap.ok(e.run_one(1, x) == MR_PCIE_E_ENTRY, "a run address that is not aligned");
    x = run;
    x.host = 0x4000;
    tap.ok(e.run_one(1, x) == MR_PCIE_E_READ, "a descriptor that is not there");

    // A ring that is disabled in the middle of a run that does not end.
    x = run;
    x.card = ENDLESS;
    e.put(1, x);
    e.put(1, in);
    e.bell(1);
    for (int i = 0; i < 3000; i++)
        e.cycle();
    tap.ok(e.read(Env::reg(1, MR_PCIE_Q_STATUS)) == (MR_PCIE_Q_ENABLED | MR_PCIE_Q_BUSY),
           "a run that does not end is busy");
    e.enable(2);
    // Each setting is as it was after something else is written into it, and enabling does not begin anew.
    auto locked = [&](unsigned q) {
        static const uint32_t settings[] = {MR_PCIE_Q_RING_LO, MR_PCIE_Q_RING_HI, MR_PCIE_Q_CPL_LO,
                                            MR_PCIE_Q_CPL_HI,  MR_PCIE_Q_SIZE,    MR_PCIE_Q_VECTOR};
        static const uint32_t state[] = {MR_PCIE_Q_HEAD, MR_PCIE_Q_DOORBELL, MR_PCIE_Q_STATUS};
        bool same = true;
        for (uint32_t r : settings) {
            uint32_t was = e.read(Env::reg(q, r));
            e.write(Env::reg(q, r), ~was);
            same &= e.read(Env::reg(q, r)) == was;
        }
        uint32_t before[3];
        for (unsigned i = 0; i < 3; i++)
            before[i] = e.read(Env::reg(q, state[i]));
        e.write(Env::reg(q, MR_PCIE_Q_CTRL), MR_PCIE_Q_ENABLED);
        for (unsigned i = 0; i < 3; i++)
            same &= e.read(Env::reg(q, state[i])) == before[i];
        return same;
    };
    tap.ok(locked(1), "a busy ring cannot be set up");
    tap.ok(locked(2), "nor one that is enabled and has nothing to do");
    uint32_t last = e.tail[1] - 2;
    e.host.w.density(0);
    e.write(Env::reg(1, MR_PCIE_Q_CTRL), 0);
    for (int i = 0; i < 1000; i++)
        e.cycle();
    tap.ok(e.read(Env::reg(1, MR_PCIE_Q_STATUS)) == MR_PCIE_Q_BUSY && locked(1),
           "nor one that is disabled, before its last entry has completed");
    e.host.w.random();
    e.disable(1);
    tap.ok(e.wait(1, last, 100) == MR_PCIE_E_CANCELLED, "disabling its ring cancels it");
    uint32_t bell = e.read(Env::reg(1, MR_PCIE_Q_DOORBELL));
    for (uint32_t ahead : {1u, SIZE + 2u}) {
        e.write(Env::reg(1, MR_PCIE_Q_DOORBELL), bell + ahead);
        for (int i = 0; i < 20; i++)
            e.cycle();
    }
    tap.ok(e.read(Env::reg(1, MR_PCIE_Q_DOORBELL)) == bell && e.read(Env::reg(1, MR_PCIE_Q_STATUS)) == 0 &&
               !e.dut->busy_o,
           "a doorbell of a disabled ring is not heard");
    tap.ok(e.run_one(2, run) == MR_PCIE_OK, "another ring goes on");
    e.enable(1);
    tap.ok(e.run_one(1, in) == MR_PCIE_OK && e.run_one(1, run) == MR_PCIE_OK,
           "and so does this one, enabled again");

    // The engine runs for somebody who writes its registers when an entry's run is to begin.
    auto engine = [&](uint32_t reg, uint32_t x) { e.write(MR_PCIE_ENGINE + reg, x); };
    auto taken = [&] {
        engine(MR_REG_RUN_LO, ENDLESS);
        engine(MR_REG_RUN_HI, 0);
        engine(MR_REG_CTRL, 1);
        e.put(1, run);
        e.bell(1);
        return e.wait(1, e.tail[1] - 1, 3000) == -1 && e.read(MR_PCIE_ENGINE + MR_REG_RUN_LO) == ENDLESS;
    };
    bool waits = taken();
    engine(MR_REG_CTRL, 2);
    tap.ok(waits && e.wait(1, e.tail[1] - 1) == MR_PCIE_OK && e.read(MR_PCIE_ENGINE + MR_REG_RUN_LO) == run.card,
           "a run waits until the engine is free");
    waits = taken();
    last = e.tail[1] - 1;
    e.disable(1);
    tap.ok(waits && e.wait(1, last, 100) == MR_PCIE_E_CANCELLED && e.status_word(1, last, MR_PCIE_C_ERROR) == 0 &&
               e.read(MR_PCIE_ENGINE + MR_REG_STATUS) & 1,
           "disabling its ring cancels it before it has begun, and leaves the engine alone");
    engine(MR_REG_CTRL, 2);
    e.enable(1);
    tap.ok(e.run_one(1, run) == MR_PCIE_OK, "and the next one runs");

    while (e.read(Env::reg(1, MR_PCIE_Q_STATUS)) & MR_PCIE_Q_BUSY)
        ; // its last completion is there, and it has not counted it yet
    e.write(Env::reg(1, MR_PCIE_Q_DOORBELL), e.tail[1] + SIZE + 2);
    tap.ok(e.read(Env::reg(1, MR_PCIE_Q_STATUS)) == MR_PCIE_E_DOORBELL << MR_PCIE_Q_FAULT,
           "a doorbell beyond the ring stops it");
    e.enable(1);
    e.host.refuse = Env::ring(1);
    e.put(1, in);
    e.bell(1);
    for (int i = 0; i < 2000; i++)
        e.cycle();
    tap.ok(e.read(Env::reg(1, MR_PCIE_Q_STATUS)) == MR_PCIE_E_READ << MR_PCIE_Q_FAULT,
           "an entry that cannot be read stops its ring");
    e.host.refuse = ~0ull;
    e.enable(1);
    e.host.refuse = e.completion(1, 0) + MR_PCIE_CPL_STATUS;
    e.put(1, in);
    e.bell(1);
    for (int i = 0; i < 4000; i++)
        e.cycle();
    tap.ok(e.read(Env::reg(1, MR_PCIE_Q_STATUS)) == MR_PCIE_E_WRITE << MR_PCIE_Q_FAULT,
           "a completion that cannot be written stops its ring");
    e.host.refuse = ~0ull;
    e.disable(2);
}

// Which runs there are when rings take turns: SCRUB's comes before that of a ring that is not the last
// one that ran, or was enabled since.
void scrub(Env &e)
{
    Tap &tap = e.tap;
    const uint64_t s = 0x3000;
    auto run = [](uint64_t card) {
        Entry x;
        x.op = MR_PCIE_OP_RUN;
        x.host = HOST + 0x20000;
        x.bytes = 128;
        x.card = card;
        return x;
    };
    auto set = [&](uint64_t addr) {
        e.write(MR_PCIE_REG_SCRUB_HI, static_cast<uint32_t>(addr >> 32));
        e.write(MR_PCIE_REG_SCRUB_LO, static_cast<uint32_t>(addr) | MR_PCIE_SCRUB_ENABLE);
    };
    auto is = [&](const std::vector<uint64_t> &want) {
        // RUN_LO is written before RUN_HI, which is the same for all of these.
        bool same = std::vector<uint64_t>(e.runs.end() - std::min(want.size(), e.runs.size()),
                                          e.runs.end()) == want;
        if (!same)
            for (uint64_t r : e.runs)
                tap.note("run at 0x%llx", static_cast<unsigned long long>(r));
        e.runs.clear();
        return same;
    };
    e.enable(1);
    e.enable(2);
    set(s);
    tap.ok(e.read(MR_PCIE_REG_SCRUB_LO) == (s | MR_PCIE_SCRUB_ENABLE) && e.read(MR_PCIE_REG_SCRUB_HI) == s >> 32,
           "SCRUB is set");
    e.runs.clear();
    tap.ok(e.run_one(1, run(0x1040)) == MR_PCIE_OK && is({s, 0x1040}), "the first run is scrubbed for");
    tap.ok(e.run_one(1, run(0x1080)) == MR_PCIE_OK && is({0x1040, 0x1080}), "the second of its ring is not");
    tap.ok(e.run_one(2, run(0x1040)) == MR_PCIE_OK && is({0x1080, s, 0x1040}), "another ring's is");
    Entry clear;
    clear.op = MR_PCIE_OP_CLEAR;
    clear.bytes = 64;
    tap.ok(e.run_one(1, clear) == MR_PCIE_OK && e.run_one(2, run(0x1080)) == MR_PCIE_OK &&
               is({0x1040, 0x1080}),
           "copies do not change whose the engine is");
    e.disable(2);
    e.enable(2);
    tap.ok(e.run_one(2, run(0x1040)) == MR_PCIE_OK && is({0x1080, s, 0x1040}),
           "a ring that is enabled again may be somebody else's");
    set(s | FAILS);
    tap.ok(e.run_one(1, run(0x1080)) == MR_PCIE_E_ENGINE && is({0x1040, s | FAILS}),
           "a scrub that fails is the run's error");
    tap.ok(e.status_word(1, e.tail[1] - 1, MR_PCIE_C_ERROR) == 0x00070104, "with the engine's error");
    tap.ok(e.run_one(2, run(0x1080)) == MR_PCIE_OK && is({s | FAILS, 0x1080}),
           "the last to run keeps the engine's memories");
    set(s | ENDLESS);
    e.put(1, run(0x1040));
    e.bell(1);
    for (int i = 0; i < 2000; i++)
        e.cycle();
    e.disable(1);
    tap.ok(e.wait(1, e.tail[1] - 1, 100) == MR_PCIE_E_CANCELLED && is({0x1080, s | ENDLESS}),
           "a scrub that does not end is cancelled with its ring");
    set(s);
    e.enable(1);
    tap.ok(e.run_one(1, run(0x1040)) == MR_PCIE_OK && is({s | ENDLESS, s, 0x1040}),
           "and comes again before the next run");
    e.disable(1);
    e.disable(2);
}

} // namespace

int main(int argc, char **argv)
{
    Args args(argc, argv);
    Tap tap;
    Env e(args, tap);
    tap.ok(identity(e), "identity and capabilities");
    tap.ok(engine(e), "the engine's geometry, and registers that keep what is written");
    tap.ok(several(e), "accesses behind one another");
    tap.ok(work(e, args.cases_or(40)), "rings of random work, byte for byte");
    errors(e);
    scrub(e);
    tap.ok(work(e, args.cases_or(40) / 4), "random work after all of this, with scrubbing");
    if (!e.host.bad.empty() || !e.card.bad.empty())
        tap.note("%s%s", e.host.bad.c_str(), e.card.bad.c_str());
    tap.ok(e.host.bad.empty() && e.card.bad.empty(), "the rules of AXI");
    tap.ok(!e.slept, "busy_o stays high while an entry is to come");
    tap.ok(!e.lost, "every access to BAR 0 is answered");
    bool covered = true;
    for (Slave *s : {static_cast<Slave *>(&e.host), static_cast<Slave *>(&e.card)})
        for (Stall *p : {&s->ar, &s->r, &s->aw, &s->w, &s->b})
            covered &= p->covered(tap);
    for (Stall *p : {&e.aw, &e.w, &e.b, &e.ar, &e.r})
        covered &= p->covered(tap);
    tap.ok(covered, "every handshake was stalled");
    tap.note("%llu cycles", static_cast<unsigned long long>(e.dut.cycles()));
    return tap.done();
}
