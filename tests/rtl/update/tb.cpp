// SPDX-License-Identifier: Apache-2.0
// millrace_update as RTL against hls/millrace_update.cpp: steps of models by host/card/jobs.c's
// lists, on one memory with everything in it, compared as a whole; random stalls on every channel, errors of
// memory and of the host, the registers. Then bytes a cycle on the engine's memory model, beside a
// stream of reads and writes that does nothing else.
#include "Vdut.h"
#include "bench.h"
#include "tests/rtl/update/memories.h"

using namespace bench;

namespace
{

enum : uint32_t { CTRL = 0, GIE = 4, IER = 8, ISR = 12, ARGS = 0x10, STATUS = 0xD4, WHERE = 0xD8 };
enum : uint32_t { START = 1, DONE = 2, IDLE = 4, READY = 8 };
enum : uint32_t { WELL = 0, BAD_READ = 1, BAD_WRITE = 2, BAD_JOB = 3, BAD_CHANNELS = 4 };

// ---- the host -----------------------------------------------------------------------------------

class Host {
  public:
    Host(Args &args, Tap &tap) : rng(args.seed), dut(args), tap_(tap)
    {
        dut->s_axil_awvalid_i = dut->s_axil_wvalid_i = dut->s_axil_bready_i = 0;
        dut->s_axil_arvalid_i = dut->s_axil_rready_i = 0;
        dut->m_arready_i = dut->m_rvalid_i = dut->m_awready_i = dut->m_wready_i = 0;
        dut->m_bvalid_i = 0;
        dut.reset();
    }
    void cycle()
    {
        if (memory)
            memory->drive();
        dut.settle();
        fixed &= dut->fixed_o != 0;
        if (memory)
            memory->sample();
    }
    void write(uint32_t addr, uint32_t data, unsigned strobes = 15)
    {
        bool aw = true, w = true, answered = false;
        for (int i = 0; !answered && i < 1000; i++) {
            dut->s_axil_awvalid_i = aw && (dut->s_axil_awvalid_i || rng.chance(50));
            dut->s_axil_wvalid_i = w && (dut->s_axil_wvalid_i || rng.chance(50));
            dut->s_axil_awaddr_i = dut->s_axil_awvalid_i ? addr : rng.u32() & 0xFFF;
            dut->s_axil_wdata_i = dut->s_axil_wvalid_i ? data : rng.u32();
            dut->s_axil_wstrb_i = dut->s_axil_wvalid_i ? strobes : 15;
            dut->s_axil_bready_i = rng.chance(50);
            cycle();
            answered = dut->s_axil_bvalid_o && dut->s_axil_bready_i;
            aw = aw && !(dut->s_axil_awvalid_i && dut->s_axil_awready_o);
            w = w && !(dut->s_axil_wvalid_i && dut->s_axil_wready_o);
            dut.edge();
            dut->s_axil_awvalid_i = aw && dut->s_axil_awvalid_i;
            dut->s_axil_wvalid_i = w && dut->s_axil_wvalid_i;
        }
        lost |= !answered || aw || w;
        dut->s_axil_bready_i = 0;
    }
    uint32_t read(uint32_t addr)
    {
        bool ar = true, answered = false;
        uint32_t data = 0;
        for (int i = 0; !answered && i < 1000; i++) {
            dut->s_axil_arvalid_i = ar && (dut->s_axil_arvalid_i || rng.chance(50));
            dut->s_axil_araddr_i = dut->s_axil_arvalid_i ? addr : rng.u32() & 0xFFF;
            dut->s_axil_rready_i = rng.chance(50);
            cycle();
            answered = dut->s_axil_rvalid_o && dut->s_axil_rready_i;
            data = dut->s_axil_rdata_o;
            ar = ar && !(dut->s_axil_arvalid_i && dut->s_axil_arready_o);
            dut.edge();
        }
        lost |= !answered || ar;
        dut->s_axil_arvalid_i = dut->s_axil_rready_i = 0;
        return data;
    }
    void arguments(const Step &s)
    {
        const int regions[] = {Step::JOBS, Step::OLD, Step::GRADIENTS, Step::NEW,
                               Step::W,    Step::W,   Step::WT};
        uint32_t at = ARGS;
        for (int k : regions)
            at = wide(at, BASE + s.at[k]);
        at = narrow(at, s.list.count);
        at = narrow(at, s.channels);
        for (int k = 0; k < 2; k++)
            at = wide(at, s.apart[k]);
        for (uint32_t f : s.list.factor)
            at = narrow(at, f);
        lost |= at != STATUS;
    }
    // Starts, and waits for the interrupt; false if none comes. cycles: from one to the other.
    bool run(uint64_t most)
    {
        write(GIE, 1);
        write(IER, 1);
        write(CTRL, START);
        cycles = 0;
        for (; cycles < most && !dut->irq_o; cycles++) {
            cycle();
            dut.edge();
        }
        bool ended = dut->irq_o;
        if (!ended) { // nor would any later one
            tap_.ok(false, "a run ends");
            exit(tap_.done());
        }
        write(ISR, 1);
        bool quiet = !dut->irq_o;
        uint32_t ctrl = read(CTRL);
        for (int k = 0; k < 100; k++) { // nothing may come later
            cycle();
            dut.edge();
        }
        return ended && quiet && ctrl == (DONE | IDLE | READY);
    }

    Rng rng;
    Dut<Vdut> dut;
    Memory *memory = nullptr;
    uint64_t cycles = 0;
    bool lost = false, fixed = true;

  private:
    uint32_t wide(uint32_t at, uint64_t x)
    {
        write(at, static_cast<uint32_t>(x));
        write(at + 4, static_cast<uint32_t>(x >> 32));
        return at + 12;
    }
    uint32_t narrow(uint32_t at, uint32_t x)
    {
        write(at, x);
        return at + 8;
    }
    Tap &tap_;
};

uint64_t patience(const Step &s)
{
    return 50000 + s.list.state_bytes;
}

bool same(Tap &tap, const Step &s)
{
    if (s.memory == s.want)
        return true;
    static const char *const names[] = {"jobs", "old state", "gradients", "new state", "W", "Wt"};
    int shown = 0;
    for (uint64_t k = 0; k < s.memory.size() && shown < 5; k++) {
        if (s.memory[k] == s.want[k])
            continue;
        int region = 0;
        for (int i = 0; i < Step::REGIONS; i++)
            if (k >= s.at[i] && (s.at[i] >= s.at[region] || i == 0))
                region = i;
        tap.note("byte %llu of %s is %02x, want %02x",
                 static_cast<unsigned long long>(k - s.at[region]), names[region], s.memory[k],
                 s.want[k]);
        shown++;
        k |= 63;
    }
    return false;
}

bool step_is_right(Host &host, Tap &tap, Step &s, Memory &memory)
{
    host.memory = &memory;
    host.arguments(s);
    bool ended = host.run(patience(s));
    uint32_t status = host.read(STATUS);
    const char *broken = memory.broken();
    host.memory = nullptr;
    if (!ended || status != WELL || broken)
        tap.note("%s, status %u, %s", ended ? "ended" : "did not end", status, broken ? broken : "");
    bool right = same(tap, s);
    return ended && status == WELL && !broken && right && !host.lost && host.fixed;
}

// ---- whole lists --------------------------------------------------------------------------------

const update_shape kGptj = {"gptj", 70, 16, 2, 80, 1}, kGpt2 = {"gpt2", 70, 24, 3, 96, 1};

std::string name_of(const update_shape &shape, uint32_t channels)
{
    return std::string(shape.type) + ", " + std::to_string(shape.n_embd) + " wide, " +
           std::to_string(channels) + " channels";
}

void lists_with_stalls(Host &host, Tap &tap, const uint32_t channels[2])
{
    const update_shape *shapes[] = {&kGptj, &kGpt2};
    for (int k = 0; k < 2; k++) {
        Step s(*shapes[k], channels[k], 7 + static_cast<uint64_t>(k));
        Stalling memory(*host.dut, host.rng, s);
        tap.ok(step_is_right(host, tap, s, memory),
               name_of(*shapes[k], channels[k]) + ", random stalls");
        tap.ok(memory.covered(tap), "every channel of the bus was stalled");
    }
}

void list_in_memory(Host &host, Tap &tap, const update_shape &shape, uint32_t channels,
                    const char *preset, unsigned stalls, bool in_place)
{
    Step s(shape, channels, 5, in_place);
    Timed memory(*host.dut, s, preset, stalls, 3);
    tap.ok(step_is_right(host, tap, s, memory), name_of(shape, channels) + ", " + preset + ", " +
                                                    std::to_string(stalls) + " % stalls" +
                                                    (in_place ? ", in place" : ""));
}

// ---- errors -------------------------------------------------------------------------------------

// The run ends with `status` and an address within 4 KiB below `fault`; every byte is as it was or as
// it would have become, and the rest is not read. Then the same memory, whole again, gets its step.
void ends_with(Host &host, Tap &tap, Step &s, uint32_t status, uint64_t fault,
               const std::string &name, mr_mem_fault kind = MR_MEM_FAULT_READ)
{
    const std::vector<uint8_t> before = s.memory;
    bool right = false;
    {
        Timed memory(*host.dut, s, "ddr4-2400", 10, 11);
        if (status == BAD_READ || status == BAD_WRITE)
            mr_mem_inject(memory.model(), kind, fault, nullptr);
        host.memory = &memory;
        host.arguments(s);
        bool ended = host.run(patience(s));
        uint32_t is = host.read(STATUS);
        uint64_t where = host.read(WHERE) | uint64_t{host.read(WHERE + 4)} << 32;
        right = ended && is == status && where <= fault && fault - where < 4096 && where % 64 == 0 &&
                !memory.broken() && mr_mem_idle(memory.model()) && memory.reads < s.reads();
        if (!right)
            tap.note("%s, status %u at %llx, not %llx", ended ? "ended" : "did not end", is,
                     static_cast<unsigned long long>(where), static_cast<unsigned long long>(fault));
        host.memory = nullptr;
    }
    uint64_t strange = 0;
    for (size_t k = 0; k < s.memory.size(); k++)
        strange += s.memory[k] != before[k] && s.memory[k] != s.want[k];
    tap.ok(right && strange == 0, name);
    s.memory = before;
}

void errors_of_memory(Host &host, Tap &tap)
{
    Step s(kGptj, 2, 21);
    struct {
        int region;
        uint64_t offset;
        mr_mem_fault kind;
        const char *name;
    } const cases[] = {{Step::JOBS, 0, MR_MEM_FAULT_READ, "the first job is not readable"},
                       {Step::JOBS, 640, MR_MEM_FAULT_READ, "a later job is not readable"},
                       {Step::OLD, 8192, MR_MEM_FAULT_READ, "weights are not readable"},
                       {Step::GRADIENTS, 4096, MR_MEM_FAULT_READ, "gradients are not readable"},
                       {Step::NEW, 8192, MR_MEM_FAULT_WRITE, "weights are not writable"},
                       {Step::W, 64 * 7, MR_MEM_FAULT_WRITE, "W is not writable"}};
    for (const auto &c : cases)
        ends_with(host, tap, s, c.kind == MR_MEM_FAULT_READ ? BAD_READ : BAD_WRITE,
                  BASE + s.at[c.region] + c.offset, c.name, c.kind);
    Timed memory(*host.dut, s, "ideal", 0, 1);
    tap.ok(step_is_right(host, tap, s, memory), "after errors of memory a step is right");
}

void jobs_without_sense(Host &host, Tap &tap)
{
    Step s(kGpt2, 1, 22);
    uint32_t patch = 0, vector = 0, headers = 0, table = 0;
    for (uint32_t i = s.list.count; i-- > 0;)
        (s.list.job[i].kind == MR_UPDATE_PATCH    ? patch
         : s.list.job[i].kind == MR_UPDATE_VECTOR ? vector
         : s.list.job[i].kind == MR_UPDATE_TABLE  ? table
                                                  : headers) = i;
    struct {
        uint32_t job;
        uint32_t mr_update_job::*field;
        uint32_t value;
        const char *name;
    } const cases[] = {{patch, &mr_update_job::kind, 4, "a job of no kind"},
                       {patch, &mr_update_job::rows, 48, "a patch of 48 rows"},
                       {patch, &mr_update_job::rows, 544, "a patch of 544 rows"},
                       {patch, &mr_update_job::cols, 96, "a patch of 96 columns"},
                       {patch, &mr_update_job::cols, 0, "a patch of no columns"},
                       {table, &mr_update_job::cols, 24, "a table of 24 columns"},
                       {table, &mr_update_job::rows, 0, "a table of no rows"},
                       {vector, &mr_update_job::rows, 2, "a vector of two rows"},
                       {vector, &mr_update_job::cols, 1U << 20, "a vector that is too long"},
                       {headers, &mr_update_job::cols, 32, "headers of 32 columns"}};
    for (const auto &c : cases) {
        const mr_update_job good = s.list.job[c.job];
        s.list.job[c.job].*c.field = c.value;
        s.put_jobs();
        ends_with(host, tap, s, BAD_JOB, BASE + s.at[Step::JOBS] + c.job * sizeof good, c.name);
        s.list.job[c.job] = good;
        s.put_jobs();
    }
    for (uint32_t n : {0U, 3U, 32U, 0x10001U}) {
        s.channels = n;
        ends_with(host, tap, s, BAD_CHANNELS, 0, std::to_string(n) + " channels");
    }
    s.channels = 1;
    Timed memory(*host.dut, s, "ideal", 0, 1);
    tap.ok(step_is_right(host, tap, s, memory), "after bad jobs a step is right");
}

// ---- registers ----------------------------------------------------------------------------------

void registers(Host &host, Tap &tap)
{
    Step s(kGptj, 1, 31);
    bool right = host.read(CTRL) == IDLE && host.read(STATUS + 0x20) == 0;
    host.arguments(s);
    right &= host.read(ARGS) == static_cast<uint32_t>(BASE) && host.read(ARGS + 4) == BASE >> 32;
    right &= host.read(0x64) == s.list.count && host.read(0xCC) == s.list.factor[8];
    host.write(0x64, 0xAABBCCDD, 5);
    right &= host.read(0x64) == ((s.list.count & 0xFF00FF00) | 0x00BB00DD);
    tap.ok(right, "arguments are read as they are written, byte by byte");

    // No job at all: a run of some cycles, without the interrupt.
    host.write(0x64, 0);
    host.write(GIE, 0);
    host.write(IER, 3);
    host.write(CTRL, START);
    bool ended = false;
    for (int k = 0; k < 100 && !ended; k++)
        ended = (host.read(CTRL) & IDLE) != 0;
    right = ended && !host.dut->irq_o && host.read(ISR) == 3 && host.read(CTRL) == IDLE;
    host.write(GIE, 1);
    right &= host.dut->irq_o;
    host.write(ISR, 1);
    right &= host.dut->irq_o && host.read(ISR) == 2;
    host.write(ISR, 2);
    right &= !host.dut->irq_o && host.read(ISR) == 0;
    tap.ok(right, "a run of no jobs ends; ISR, IER and GIE are Vitis'");

    Timed memory(*host.dut, s, "ideal", 0, 1);
    host.memory = &memory;
    host.arguments(s);
    host.write(IER, 0);
    host.write(CTRL, START);
    bool busy = (host.read(CTRL) & (START | IDLE)) == START;
    host.write(CTRL, START); // while it runs: nothing
    for (uint64_t k = 0; k < patience(s) / 100 && !(host.read(CTRL) & DONE); k++)
        for (int i = 0; i < 100; i++) {
            host.cycle();
            host.dut.edge();
        }
    host.memory = nullptr;
    tap.ok(busy && host.read(CTRL) == IDLE && same(tap, s) && !host.lost,
           "a second start while a step runs does nothing");
}

// ---- bandwidth ----------------------------------------------------------------------------------

// Cycles of a memory that does nothing but sequential reads and writes, so many beats of both in even
// proportion, with as many bursts waiting as it takes.
uint64_t plain_cycles(const char *preset, uint64_t reads, uint64_t writes)
{
    mr_mem_options o = {preset, 1, 0, 1};
    mr_mem *m = mr_mem_open(&o, nullptr);
    std::vector<uint8_t> from(reads * 64 + 4096), to(writes * 64 + 4096);
    const uint64_t to_at = (from.size() + 0xFFFFF) & ~0xFFFFFULL;
    mr_mem_map(m, 0, 0, from.data(), from.size(), true, nullptr);
    mr_mem_map(m, 0, to_at, to.data(), to.size(), true, nullptr);
    const mr_mem_signals *s = mr_mem_port(m, 1);
    uint64_t asked = 0, come = 0, offered = 0, sent = 0, done = 0, cycles = 0;
    const uint8_t beat[64] = {};
    for (; come < reads || done < (writes + 63) / 64; cycles++) {
        // Neither is more than 16 bursts ahead of the other.
        bool read = asked < reads && asked * writes <= (offered + 1024) * reads;
        bool write = offered < writes && offered * reads <= (asked + 1024) * writes;
        if (s->r_valid) {
            mr_mem_r(m, 1);
            come++;
        }
        if (s->b_valid) {
            mr_mem_b(m);
            done++;
        }
        if (s->w_ready && sent < offered) {
            sent++;
            mr_mem_w(m, beat, ~0ULL, sent % 64 == 0 || sent == writes);
        }
        if (s->ar_ready && read) {
            unsigned n = static_cast<unsigned>(std::min<uint64_t>(64, reads - asked));
            mr_mem_ar(m, 1, asked * 64, n);
            asked += n;
        }
        if (s->aw_ready && write) {
            unsigned n = static_cast<unsigned>(std::min<uint64_t>(64, writes - offered));
            mr_mem_aw(m, to_at + offered * 64, n);
            offered += n;
        }
        mr_mem_step(m);
    }
    mr_mem_close(m);
    return cycles;
}

// A matrix of two patches, with its headers.
void bandwidth(Host &host, Tap &tap, const char *preset, double least)
{
    const update_shape shape = {"gptj", 64, 512, 4, 1024, 1};
    Step all(shape, 1, 1);
    uint32_t first = 0, count = 0;
    auto next = [&] { return all.list.job[first + count]; };
    auto is_patch = [](const mr_update_job &a) { return a.kind == MR_UPDATE_PATCH; };
    while (!(is_patch(all.list.job[first]) && is_patch(all.list.job[first + 1])))
        first++;
    while (is_patch(next()) || next().kind == MR_UPDATE_HEADERS)
        count++;
    Step s(shape, 1, 2, false, first, count);
    Timed memory(*host.dut, s, preset, 0, 1);
    bool right = step_is_right(host, tap, s, memory);
    uint64_t beats = memory.reads + memory.writes;
    uint64_t plain = plain_cycles(preset, memory.reads, memory.writes);
    double rate = static_cast<double>(beats) / static_cast<double>(host.cycles);
    double most = static_cast<double>(beats) / static_cast<double>(plain);
    tap.note("%s: %llu beats read, %llu written; %.4f a cycle, a plain stream %.4f",
             preset, static_cast<unsigned long long>(memory.reads),
             static_cast<unsigned long long>(memory.writes), rate, most);
    char name[160];
    snprintf(name, sizeof name, "%s: %.3f of what a plain stream of reads and writes moves, %.3f at least",
             preset, rate / most, least);
    tap.ok(right && rate >= least * most, name);
}

} // namespace

int main(int argc, char **argv)
{
    Args args(argc, argv);
    Tap tap;
    Host host(args, tap);
    host.dut.settle();
    const uint32_t lanes = host.dut->lanes_o;
    if (lanes == 1) {
        const uint32_t channels[] = {1, 4};
        lists_with_stalls(host, tap, channels);
    }
    if (lanes == 2) {
        const uint32_t channels[] = {2, 1};
        registers(host, tap);
        lists_with_stalls(host, tap, channels);
        list_in_memory(host, tap, kGptj, 16, "hbm2", 40, true);
        errors_of_memory(host, tap);
        jobs_without_sense(host, tap);
        bandwidth(host, tap, "ddr4-2400", 0.90);
        bandwidth(host, tap, "hbm2", 0.90);
        bandwidth(host, tap, "ideal", 0.90);
    }
    if (lanes == 4) {
        const uint32_t channels[] = {4, 16};
        lists_with_stalls(host, tap, channels);
        list_in_memory(host, tap, {"gptj", 70, 514, 2, 64, 1}, 8, "ddr4-2400", 0, false);
        bandwidth(host, tap, "ideal", 0.90);
    }
    return tap.done();
}
