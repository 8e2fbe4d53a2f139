// SPDX-License-Identifier: Apache-2.0
// The Verilated millrace_pcie as a PCI function of a virtual machine (vm.h). It is clocked while it
// has work or an access is under way, and stands still else, so its cycles are a function of what
// it is asked to do and of nothing else. One cycle goes as in sim/verilator/simlib.cpp.
//
// The engine's memory is the timing model of sim/memory. Copies reach the card's memory and the
// guest's a beat a cycle, past that model: like sim:, where the host writes without taking time.
#include <sys/mman.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "mr_device.h"
#include "sim/memory/dram.h"
#include "sim/pci/vm.h"
#include "sim/verilator/ports.h"
#include "verilated.h"

namespace
{

constexpr unsigned mem_log2 = 30; // of each channel, as the model was built
constexpr unsigned reset_cycles = 16, slice = 1024, settle = 8, patience = 100000;

struct Failure {
    std::string what;
};

// One of the copier's two masters: bursts one after the other, a beat a cycle.
struct Port {
    uint64_t read_at = 0, write_at = 0;
    unsigned read_left = 0;
    bool writing = false, respond = false;
    uint8_t write_resp = 0;

    bool busy() const
    {
        return read_left || writing || respond;
    }
};

class Function
{
  public:
    bool open(const char *preset)
    {
        preset_ = preset;
        for (auto &card : card_) {
            void *p = mmap(nullptr, size_t{1} << mem_log2, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (p == MAP_FAILED) {
                perror("vm: card memory");
                return false;
            }
            card = static_cast<uint8_t *>(p);
        }
        context_ = std::make_unique<VerilatedContext>();
        top_ = std::make_unique<Vcore>(context_.get(), "TOP");
        return reset();
    }

    ~Function()
    {
        if (top_)
            top_->final();
        mr_mem_close(memory_);
    }

    // Function level reset: registers, rings and what is on its way; the card's memory stays.
    bool reset()
    {
        mr_error err = {};
        mr_mem_options options = {preset_, channels, 0, 0};
        mr_mem_close(memory_);
        memory_ = mr_mem_open(&options, &err);
        for (unsigned c = 0; memory_ && c < channels; c++)
            if (mr_mem_map(memory_, c, 0, card_[c], uint64_t{1} << mem_log2, true, &err))
                return fprintf(stderr, "vm: %s\n", err.text), false;
        if (!memory_)
            return fprintf(stderr, "vm: %s\n", err.text), false;
        ports_.open(memory_);
        pci_ = Port();
        onboard_ = Port();
        top_->s_bar_awvalid_i = top_->s_bar_wvalid_i = top_->s_bar_arvalid_i = 0;
        top_->s_bar_bready_i = top_->s_bar_rready_i = 0;
        top_->rst_ni = 0;
        ports_.drive(top_.get());
        drive_copies();
        for (unsigned i = 0; i < reset_cycles; i++) {
            clock(true);
            if (i + 1 == reset_cycles)
                top_->rst_ni = 1;
            clock(false);
        }
        return true;
    }

    uint32_t read(uint32_t offset)
    {
        uint32_t value = ~0u;
        top_->s_bar_arvalid_i = top_->s_bar_rready_i = 1;
        top_->s_bar_araddr_i = static_cast<uint16_t>(offset);
        for (unsigned i = 0;; i++) {
            top_->eval();
            bool ar = top_->s_bar_arvalid_i && top_->s_bar_arready_o, r = top_->s_bar_rvalid_o;
            value = top_->s_bar_rdata_o;
            cycle();
            if (ar)
                top_->s_bar_arvalid_i = 0;
            if (r)
                break;
            if (i == patience)
                throw Failure{"no answer to a read of BAR 0"};
        }
        top_->s_bar_rready_i = 0;
        top_->eval();
        return value;
    }

    void write(uint32_t offset, uint32_t value, unsigned strobes)
    {
        top_->s_bar_awvalid_i = top_->s_bar_wvalid_i = top_->s_bar_bready_i = 1;
        top_->s_bar_awaddr_i = static_cast<uint16_t>(offset);
        top_->s_bar_wdata_i = value;
        top_->s_bar_wstrb_i = static_cast<uint8_t>(strobes);
        for (unsigned i = 0;; i++) {
            top_->eval();
            bool aw = top_->s_bar_awvalid_i && top_->s_bar_awready_o;
            bool w = top_->s_bar_wvalid_i && top_->s_bar_wready_o, b = top_->s_bar_bvalid_o;
            cycle();
            if (aw)
                top_->s_bar_awvalid_i = 0;
            if (w)
                top_->s_bar_wvalid_i = 0;
            if (b)
                break;
            if (i == patience)
                throw Failure{"no answer to a write of BAR 0"};
        }
        top_->s_bar_bready_i = 0;
        top_->eval();
        // A doorbell shows in busy_o some cycles later.
        for (unsigned i = 0; i < settle; i++)
            cycle();
    }

    bool step()
    {
        for (unsigned i = 0; i < slice && top_->busy_o; i++) {
            cycle();
            vm_counts.busy_cycles++;
        }
        if (const char *violation = mr_mem_violation(memory_))
            throw Failure{violation};
        return top_->busy_o;
    }

    uint64_t cycles() const
    {
        return cycles_;
    }

  private:
    // Card memory behind the copier; NULL beyond its end.
    uint8_t *card(uint64_t addr)
    {
        uint64_t c = addr >> MR_MEM_CHANNEL_LOG2, at = addr & ((1ull << MR_MEM_CHANNEL_LOG2) - 1);
        return c < channels && at + MR_MEM_BEAT <= uint64_t{1} << mem_log2 ? card_[c] + at
                                                                           : nullptr;
    }

    uint8_t *at(const Port &p, uint64_t addr, bool write)
    {
        return &p == &onboard_ ? card(addr)
                               : static_cast<uint8_t *>(vm_dma(addr, MR_MEM_BEAT, write));
    }

    void read_transfers(Port &p, bool arvalid, uint64_t araddr, unsigned arlen, bool rready)
    {
        if (p.read_left) {
            if (rready) {
                p.read_at += MR_MEM_BEAT;
                p.read_left--;
            }
        } else if (arvalid) {
            p.read_at = araddr;
            p.read_left = arlen + 1;
        }
    }

    template <class Wide>
    void write_transfers(Port &p, bool awvalid, uint64_t awaddr, bool wvalid, const Wide &wdata,
                         uint64_t wstrb, bool wlast)
    {
        p.respond = false;
        if (p.writing && wvalid) {
            if (uint8_t *to = at(p, p.write_at, true)) {
                const auto *from = reinterpret_cast<const uint8_t *>(&wdata[0]);
                if (wstrb == ~0ull)
                    std::memcpy(to, from, MR_MEM_BEAT);
                for (unsigned i = 0; wstrb != ~0ull && i < MR_MEM_BEAT; i++)
                    if (wstrb >> i & 1)
                        to[i] = from[i];
            } else {
                p.write_resp = MR_MEM_DECERR;
            }
            p.write_at += MR_MEM_BEAT;
            if (wlast) {
                p.writing = false;
                p.respond = true;
            }
        } else if (!p.writing && awvalid) {
            // Every run begins with its descriptor's way to the card: as sim: does, the timing
            // model rests before it.
            if (&p == &onboard_)
                mr_mem_rest(memory_);
            p.write_at = awaddr;
            p.write_resp = MR_MEM_OKAY;
            p.writing = true;
        }
    }

    // What the port answers in the next cycle.
    template <class Wide> unsigned drive_read(Port &p, Wide &rdata)
    {
        const uint8_t *from = p.read_left ? at(p, p.read_at, false) : nullptr;
        if (from)
            std::memcpy(&rdata[0], from, MR_MEM_BEAT);
        return p.read_left && !from ? MR_MEM_DECERR : MR_MEM_OKAY;
    }

    void drive_copies()
    {
        Vcore *top = top_.get();
        top->m_pci_arready_i = !pci_.read_left;
        top->m_pci_rvalid_i = pci_.read_left != 0;
        top->m_pci_rresp_i = static_cast<uint8_t>(drive_read(pci_, top->m_pci_rdata_i));
        top->m_pci_awready_i = !pci_.writing;
        top->m_pci_wready_i = pci_.writing;
        top->m_pci_bvalid_i = pci_.respond;
        top->m_pci_bresp_i = pci_.write_resp;
        top->m_card_arready_i = !onboard_.read_left;
        top->m_card_rvalid_i = onboard_.read_left != 0;
        top->m_card_rresp_i = static_cast<uint8_t>(drive_read(onboard_, top->m_card_rdata_i));
        top->m_card_awready_i = !onboard_.writing;
        top->m_card_wready_i = onboard_.writing;
        top->m_card_bvalid_i = onboard_.respond;
        top->m_card_bresp_i = onboard_.write_resp;
        if (vm_mute)
            top->m_pci_rvalid_i = top->m_pci_bvalid_i = 0;
    }

    void copy_transfers()
    {
        Vcore *top = top_.get();
        read_transfers(pci_, top->m_pci_arvalid_o, top->m_pci_araddr_o, top->m_pci_arlen_o,
                       top->m_pci_rready_o);
        write_transfers(pci_, top->m_pci_awvalid_o, top->m_pci_awaddr_o, top->m_pci_wvalid_o,
                        top->m_pci_wdata_o, top->m_pci_wstrb_o, top->m_pci_wlast_o);
        read_transfers(onboard_, top->m_card_arvalid_o, top->m_card_araddr_o, top->m_card_arlen_o,
                       top->m_card_rready_o);
        write_transfers(onboard_, top->m_card_awvalid_o, top->m_card_awaddr_o, top->m_card_wvalid_o,
                        top->m_card_wdata_o, top->m_card_wstrb_o, top->m_card_wlast_o);
    }

    // The copier's ports rest while the engine runs.
    bool copies() const
    {
        return top_->m_pci_arvalid_o || top_->m_pci_awvalid_o || top_->m_card_arvalid_o ||
               top_->m_card_awvalid_o || pci_.busy() || onboard_.busy();
    }

    void cycle()
    {
        const bool copies = this->copies();
        ports_.transfers(top_.get());
        if (copies)
            copy_transfers();
        mr_mem_step(memory_);
        cycles_++;
        clock(true);
        ports_.drive(top_.get());
        if (copies)
            drive_copies();
        clock(false);
        if (top_->irq_o)
            for (unsigned v = 0; v < VM_VECTORS; v++)
                if (bit(top_->irq_o, v))
                    vm_interrupt(v);
    }

    void clock(bool level)
    {
        top_->clk_i = level;
        top_->eval();
    }

    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<Vcore> top_;
    mr_mem *memory_ = nullptr;
    MemoryPorts ports_;
    uint8_t *card_[channels] = {};
    Port pci_, onboard_;
    const char *preset_ = nullptr;
    uint64_t cycles_ = 0;
};

Function *function;

bool step()
{
    return function->step();
}
uint32_t read(uint32_t offset)
{
    return function->read(offset);
}
void write(uint32_t offset, uint32_t value, unsigned strobes)
{
    function->write(offset, value, strobes);
}
void reset()
{
    if (!function->reset())
        throw Failure{"no reset"};
}

int usage()
{
    fputs("usage: millrace-vm-CONFIG [--memory PRESET] [--irq msix|msi|none] [--vectors N] "
          "[--verbose] -- QEMU ARGUMENT...\n",
          stderr);
    return 2;
}

} // namespace

// The RTL's $stop, $finish and $fatal.
void vl_finish(const char *file, int line, const char *)
{
    throw Failure{std::string(file ? file : "?") + ":" + std::to_string(line) + ": $finish"};
}
void vl_stop(const char *file, int line, const char *)
{
    throw Failure{std::string(file ? file : "?") + ":" + std::to_string(line) + ": $stop"};
}
void vl_fatal(const char *file, int line, const char *, const char *text)
{
    throw Failure{std::string(file ? file : "?") + ":" + std::to_string(line) + ": " +
                  (text ? text : "fatal")};
}
double sc_time_stamp()
{
    return 0;
}

int main(int argc, char **argv)
{
    vm_options options = {VM_CAP_MSI | VM_CAP_MSIX | VM_CAP_EXPRESS, VM_VECTORS, false, nullptr};
    const char *preset = MR_DRAM_USUAL;
    int i = 1;
    for (; i < argc && std::strcmp(argv[i], "--") != 0; i++) {
        bool value = i + 1 < argc;
        if (!std::strcmp(argv[i], "--verbose"))
            options.verbose = true;
        else if (!std::strcmp(argv[i], "--memory") && value)
            preset = argv[++i];
        else if (!std::strcmp(argv[i], "--vectors") && value)
            options.vectors = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 0));
        else if (!std::strcmp(argv[i], "--irq") && value) {
            const char *irq = argv[++i];
            options.caps = VM_CAP_EXPRESS;
            if (!std::strcmp(irq, "msix"))
                options.caps |= VM_CAP_MSIX;
            else if (!std::strcmp(irq, "msi"))
                options.caps |= VM_CAP_MSI;
            else if (std::strcmp(irq, "none"))
                return usage();
        } else
            return usage();
    }
    if (i + 1 >= argc || options.vectors < 1 || options.vectors > VM_VECTORS)
        return usage();
    options.qemu = argv + i + 1;

    Function f;
    if (!f.open(preset))
        return 2;
    function = &f;
    const vm_function calls = {reset, read, write, step};
    int status;
    try {
        status = vm_run(&calls, &options);
    } catch (const Failure &failure) {
        fprintf(stderr, "vm: cycle %" PRIu64 ": %s\n", f.cycles(), failure.what.c_str());
        status = 132;
    }
    fprintf(stderr,
            "vm: cycles %" PRIu64 " busy %" PRIu64 ", config %" PRIu64 "/%" PRIu64 ", bar %" PRIu64
            "/%" PRIu64 ", interrupts %" PRIu64 ", resets %" PRIu64 ", dma %" PRIu64 "/%" PRIu64
            " bytes\n",
            f.cycles(), vm_counts.busy_cycles, vm_counts.config_reads, vm_counts.config_writes,
            vm_counts.bar_reads, vm_counts.bar_writes, vm_counts.interrupts, vm_counts.resets,
            vm_counts.dma_read, vm_counts.dma_written);
    return status;
}
