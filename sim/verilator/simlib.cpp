// SPDX-License-Identifier: Apache-2.0
// One cycle is: take the transfers that both sides agree on, step the memory model, raise the
// clock, put the model's next answers on the inputs, lower the clock. So inputs change right after
// the rising edge, as they would from another synchronous block, and outputs that depend on inputs
// have settled when they are looked at. This runs some hundred million times for a token: nothing
// here may copy a 512-bit bus that does not carry a new beat.
#include "sim/verilator/simlib.h"

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "verilated.h"
#if VM_TRACE
#include "verilated_fst_c.h"
#endif
#ifdef MILLRACE_VIEW
#include "sim/verilator/observer.h"
#endif
#include "sim/verilator/ports.h"

#ifndef MR_SIM_CONFIG
#define MR_SIM_CONFIG "unnamed"
#endif

namespace
{

constexpr uint64_t reset_cycles = 16;
constexpr uint64_t reg_patience = 100000; // cycles until an unanswered register access is an error

thread_local mr_sim *running; // whose RTL may call $stop or $finish

} // namespace

struct mr_sim {
    std::unique_ptr<VerilatedContext> context;
    std::unique_ptr<Vcore> top;
    mr_mem *memory = nullptr;
    std::string preset;
    MemoryPorts ports;
    uint64_t cycles = 0;
    const volatile sig_atomic_t *abort = nullptr;
    mr_sim_on_done *on_done = nullptr;
    void *on_done_user = nullptr;
    bool done_stop = false;
    bool check = false;                     // AXI payload stability, in runs with stalls
    uint64_t waiting_ar[channels + 2] = {}; // address | length - 1 of a refused AR (AW last), or 0
    std::string failure;                    // of the RTL; the device stays unusable
#ifdef MILLRACE_VIEW
    Observer observer;
    bool observable = false;
#endif
#if VM_TRACE
    std::unique_ptr<VerilatedFstC> waves;
    uint64_t waves_from = 0, waves_to = 0, waves_cycle = 0; // of the run
    bool waves_run = false;                                 // it has begun
#endif

    ~mr_sim()
    {
        running = this;
#if VM_TRACE
        if (waves)
            waves->close();
#endif
        if (top)
            top->final();
        mr_mem_close(memory);
        running = nullptr;
    }

    void fail(const char *fmt, ...) __attribute__((format(printf, 2, 3)))
    {
        if (!failure.empty())
            return;
        char text[300];
        va_list ap;
        va_start(ap, fmt);
        (void)std::vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        failure = text;
    }

    // A refused address must come again unchanged.
    void check_stable(unsigned which, bool valid, bool ready, uint64_t addr, unsigned beats)
    {
        uint64_t now = addr | (beats - 1);
        if (waiting_ar[which] && (!valid || waiting_ar[which] != now + 1))
            fail("%s of port %u changed while it waited", which > channels ? "AW" : "AR",
                 which > channels ? channels : which);
        waiting_ar[which] = valid && !ready ? now + 1 : 0;
    }

    // Addresses that have not been taken, in front of the transfers.
    void check_ports()
    {
        for (unsigned c = 0; c < channels; c++) {
            const ChannelRead ar = channel_read(top.get(), c);
            check_stable(c, ar.valid, ports.port(c)->ar_ready, ar.addr, ar.beats);
        }
        const mr_mem_signals *host = ports.port(channels);
        check_stable(channels, top->m_host_arvalid_o, host->ar_ready, top->m_host_araddr_o,
                     top->m_host_arlen_o + 1U);
        check_stable(channels + 1, top->m_host_awvalid_o, host->aw_ready, top->m_host_awaddr_o,
                     top->m_host_awlen_o + 1U);
    }

    void clock(bool level)
    {
        top->clk_i = level;
        top->eval();
    }

#if VM_TRACE
    // Whether the cycle that begins with this rising edge is one of those to be written.
    bool wave_begins()
    {
        if (!waves)
            return false;
        bool run = observer.in_run();
        waves_cycle = run && waves_run ? waves_cycle + 1 : 0;
        if ((waves_run && !run) || (run && waves_cycle == waves_to)) {
            waves->close();
            waves.reset();
            return false;
        }
        waves_run = run;
        return run && waves_cycle >= waves_from;
    }
#endif

    // Rising edge, new inputs, falling edge.
    void tick()
    {
        clock(true);
        ports.drive(top.get());
#if VM_TRACE
        if (wave_begins()) {
            top->eval();
            waves->dump(waves_cycle * 10);
            clock(false);
            waves->dump(waves_cycle * 10 + 5);
            return;
        }
#endif
        clock(false);
    }

    void completions()
    {
        for (unsigned q = 0; q < MR_SIM_QUEUES; q++)
            if (bit(top->done_valid_o, q))
                done_stop |=
                    on_done(on_done_user, q, field(top->done_index_o, 16 * q) & 0xFFFF) != 0;
    }

    void cycle()
    {
        if (check)
            check_ports();
        ports.transfers(top.get());
#ifdef MILLRACE_VIEW
        if (observer.listening())
            observer.cycle();
#endif
        mr_mem_step(memory);
        cycles++;
        tick();
        if (on_done && top->done_valid_o)
            completions();
    }

    int64_t status(mr_error *err)
    {
        if (const char *violation = mr_mem_violation(memory))
            fail("%s", violation);
        if (failure.empty())
            return 0;
        return mr_fail(err, MR_ERR_DEVICE, "simulated device, cycle %llu: %s",
                       static_cast<unsigned long long>(cycles), failure.c_str());
    }
};

// $stop, $finish and $fatal of the RTL end the run and not the process.
static void rtl_stopped(const char *what, const char *file, int line, const char *text)
{
    if (running)
        running->fail("%s:%d: %s%s%s", file ? file : "?", line, what, text && *text ? ": " : "",
                      text ? text : "");
}

void vl_finish(const char *file, int line, const char *)
{
    rtl_stopped("$finish", file, line, nullptr);
}

void vl_stop(const char *file, int line, const char *)
{
    rtl_stopped("$stop or a failed assertion", file, line, nullptr);
}

void vl_fatal(const char *file, int line, const char *, const char *text)
{
    rtl_stopped("fatal", file, line, text);
}

double sc_time_stamp()
{
    return 0;
}

namespace
{

// Verilator's context belongs to the thread; callers may move a simulator between threads.
void enter(mr_sim *sim)
{
    Verilated::threadContextp(sim->context.get());
    running = sim;
}

mr_sim *sim_open(const mr_sim_options *options, mr_error *err)
{
    std::unique_ptr<mr_sim> sim(new (std::nothrow) mr_sim);
    if (!sim) {
        (void)mr_fail(err, MR_ERR_MEMORY, "out of memory for a simulated device");
        return nullptr;
    }
    mr_mem_options memory = {options->preset, channels, options->stalls, options->seed};
    sim->memory = mr_mem_open(&memory, err);
    if (!sim->memory)
        return nullptr;
    sim->ports.open(sim->memory);
    sim->preset = options->preset;
    sim->abort = options->abort;
    sim->check = options->stalls != 0;

    sim->context = std::make_unique<VerilatedContext>();
    enter(sim.get());
    sim->context->threads(1); // or it would start a thread for each processor
    sim->context->traceEverOn(VM_TRACE);
    sim->context->randReset(options->seed ? 2 : 0);
    sim->context->randSeed(static_cast<int>(options->seed % 0x7FFFFFFF) + 1);
    sim->top = std::make_unique<Vcore>(sim->context.get(), "TOP");
#ifdef MILLRACE_VIEW
    sim->observable =
        sim->observer.bind(sim->context.get(), std::string("TOP.") + MR_SIM_TOP, channels);
#endif
    Vcore *top = sim->top.get();
    top->s_axil_awvalid_i = top->s_axil_wvalid_i = top->s_axil_arvalid_i = 0;
    top->s_axil_bready_i = top->s_axil_rready_i = 0;
    top->s_axil_wstrb_i = 0xF;
    top->rst_ni = 0;
    sim->ports.drive(sim->top.get());
    // In reset no output is listened to.
    for (uint64_t i = 0; i < reset_cycles; i++) {
        sim->clock(true);
        if (i + 1 == reset_cycles)
            top->rst_ni = 1;
        sim->clock(false);
    }
    if (sim->status(err))
        return nullptr;
    return sim.release();
}

void sim_close(mr_sim *sim)
{
    if (sim)
        enter(sim);
    delete sim;
}

int sim_map(mr_sim *sim, unsigned channel, uint64_t offset, void *data, uint64_t bytes,
            bool writable, mr_error *err)
{
    return mr_mem_map(sim->memory, channel, offset, data, bytes, writable, err);
}

int sim_unmap(mr_sim *sim, unsigned channel, uint64_t offset, mr_error *err)
{
    return mr_mem_unmap(sim->memory, channel, offset, err);
}

int no_answer(mr_sim *sim, const char *what, uint32_t addr, mr_error *err)
{
    if (int64_t status = sim->status(err))
        return static_cast<int>(status);
    return mr_fail(err, MR_ERR_DEVICE, "simulated device: no answer to a register %s at 0x%03x",
                   what, addr);
}

// The inputs of a register access change between cycles: outputs that follow them settle by eval().
int sim_reg_write(mr_sim *sim, uint32_t addr, uint32_t value, mr_error *err)
{
    enter(sim);
    Vcore *top = sim->top.get();
    top->s_axil_awvalid_i = top->s_axil_wvalid_i = top->s_axil_bready_i = 1;
    top->s_axil_awaddr_i = addr & 0xFFF;
    top->s_axil_wdata_i = value;
    top->eval();
    for (uint64_t i = 0; i < reg_patience && sim->failure.empty(); i++) {
        bool aw = top->s_axil_awvalid_i && top->s_axil_awready_o;
        bool w = top->s_axil_wvalid_i && top->s_axil_wready_o;
        bool b = top->s_axil_bvalid_o;
        unsigned resp = top->s_axil_bresp_o;
        sim->cycle();
        if (aw)
            top->s_axil_awvalid_i = 0;
        if (w)
            top->s_axil_wvalid_i = 0;
        if (aw || w)
            top->eval();
        if (!b)
            continue;
        top->s_axil_bready_i = 0;
        top->eval();
        if (resp)
            return mr_fail(err, MR_ERR_DEVICE, "register write at 0x%03x: response %u", addr, resp);
        return static_cast<int>(sim->status(err));
    }
    top->s_axil_awvalid_i = top->s_axil_wvalid_i = top->s_axil_bready_i = 0;
    top->eval();
    return no_answer(sim, "write", addr, err);
}

int sim_reg_read(mr_sim *sim, uint32_t addr, uint32_t *value, mr_error *err)
{
    enter(sim);
    Vcore *top = sim->top.get();
    top->s_axil_arvalid_i = top->s_axil_rready_i = 1;
    top->s_axil_araddr_i = addr & 0xFFF;
    top->eval();
    for (uint64_t i = 0; i < reg_patience && sim->failure.empty(); i++) {
        bool ar = top->s_axil_arvalid_i && top->s_axil_arready_o;
        bool r = top->s_axil_rvalid_o;
        unsigned resp = top->s_axil_rresp_o;
        *value = top->s_axil_rdata_o;
        sim->cycle();
        if (ar) {
            top->s_axil_arvalid_i = 0;
            top->eval();
        }
        if (!r)
            continue;
        top->s_axil_rready_i = 0;
        top->eval();
        if (resp)
            return mr_fail(err, MR_ERR_DEVICE, "register read at 0x%03x: response %u", addr, resp);
        return static_cast<int>(sim->status(err));
    }
    top->s_axil_arvalid_i = top->s_axil_rready_i = 0;
    top->eval();
    return no_answer(sim, "read", addr, err);
}

int64_t sim_run(mr_sim *sim, int64_t max_cycles, mr_sim_stop *stop, mr_error *err)
{
    enter(sim);
    Vcore *top = sim->top.get();
    mr_sim_stop why = MR_SIM_STOP_LIMIT;
    int64_t ran = 0;
    sim->done_stop = false;
    for (; ran < max_cycles; ran++) {
        if (top->irq_o) {
            why = MR_SIM_STOP_IRQ;
            break;
        }
        // Looked at now and then: none of these is worth a load in every cycle.
        if (ran % 256 == 0 && sim->abort && *sim->abort) {
            why = MR_SIM_STOP_ABORT;
            break;
        }
        if (sim->done_stop) {
            why = MR_SIM_STOP_DONE;
            break;
        }
        if ((ran % 256 == 0 && mr_mem_violation(sim->memory)) || !sim->failure.empty())
            break;
        sim->cycle();
    }
    if (why == MR_SIM_STOP_LIMIT && top->irq_o)
        why = MR_SIM_STOP_IRQ;
    if (stop)
        *stop = why;
    int64_t status = sim->status(err);
    return status ? status : ran;
}

void sim_rest(mr_sim *sim)
{
    mr_mem_rest(sim->memory);
}

uint64_t sim_cycles(const mr_sim *sim)
{
    return sim->cycles;
}

void sim_on_done(mr_sim *sim, mr_sim_on_done *call, void *user)
{
    sim->on_done = call;
    sim->on_done_user = user;
}

#ifdef MILLRACE_VIEW
std::size_t element_size(const VerilatedVar *var)
{
    switch (var->vltype()) {
    case VLVT_UINT8:
        return 1;
    case VLVT_UINT16:
        return 2;
    case VLVT_UINT32:
        return 4;
    case VLVT_UINT64:
        return 8;
    default:
        return static_cast<std::size_t>(var->packed().elements() + 31) / 32 * 4;
    }
}

int sim_peek(mr_sim *sim, const char *name, uint32_t index, void *buf, std::size_t bytes,
             mr_error *err)
{
    enter(sim);
    std::string path = std::string("TOP.") + MR_SIM_TOP + "." + name;
    std::size_t dot = path.rfind('.');
    const VerilatedScope *scope = sim->context->scopeFind(path.substr(0, dot).c_str());
    VerilatedVar *var = scope ? scope->varFind(path.c_str() + dot + 1) : nullptr;
    if (!var || var->udims() != 1)
        return mr_fail(err, MR_ERR_USAGE, "no memory array \"%s\" in this view build", name);
    if (index >= static_cast<uint32_t>(var->unpacked().elements()))
        return mr_fail(err, MR_ERR_USAGE, "%s has %d elements: no element %u", name,
                       var->unpacked().elements(), index);
    std::size_t size = element_size(var);
    std::memcpy(buf, static_cast<const char *>(var->datap()) + index * size,
                size < bytes ? size : bytes);
    return static_cast<int>(size);
}
#else
int sim_peek(mr_sim *, const char *name, uint32_t, void *, std::size_t, mr_error *err)
{
    return mr_fail(err, MR_ERR_UNSUPPORTED, "cannot look at %s: this is not a view build", name);
}
#endif

int sim_timeline(mr_sim *sim, const mr_sim_timeline *to, mr_error *err)
{
#ifdef MILLRACE_VIEW
    if (sim->observable) {
        sim->observer.listen(to);
        return 0;
    }
#endif
    (void)sim;
    (void)to;
    return mr_fail(err, MR_ERR_UNSUPPORTED, "no timeline: this is not a view build of the device");
}

int sim_waves(mr_sim *sim, const char *path, uint64_t from, uint64_t to, mr_error *err)
{
#if VM_TRACE
    if (sim->observable) {
        enter(sim);
        sim->waves = std::make_unique<VerilatedFstC>();
        sim->top->trace(sim->waves.get(), 99);
        sim->waves->open(path);
        sim->waves_from = from;
        sim->waves_to = to;
        sim->waves_run = false;
        if (sim->waves->isOpen())
            return 0;
        sim->waves.reset();
        return mr_fail(err, MR_ERR_IO, "%.200s: cannot write the waveform", path);
    }
#endif
    (void)sim;
    (void)path;
    (void)from;
    (void)to;
    return mr_fail(err, MR_ERR_UNSUPPORTED, "no waveforms: this is not a tracing build");
}

void sim_counts(const mr_sim *sim, unsigned channel, mr_mem_counts *counts)
{
    mr_mem_count(sim->memory, channel, counts);
}

bool sim_memory_idle(const mr_sim *sim)
{
    return mr_mem_idle(sim->memory);
}

double sim_pin_rate(const mr_sim *sim)
{
    return mr_mem_pin_rate(sim->preset.c_str());
}

// The rate is measured, which takes longer than a small program: once for a preset and process.
double sim_sequential_rate(const mr_sim *sim)
{
    static std::mutex lock;
    static std::map<std::string, double> known;
    std::lock_guard<std::mutex> hold(lock);
    auto found = known.find(sim->preset);
    if (found == known.end())
        found = known.emplace(sim->preset, mr_mem_sequential_rate(sim->preset.c_str())).first;
    return found->second;
}

int sim_fault(mr_sim *sim, mr_mem_fault fault, uint64_t addr, mr_error *err)
{
    return mr_mem_inject(sim->memory, fault, addr, err);
}

void sim_clear_faults(mr_sim *sim)
{
    mr_mem_clear_faults(sim->memory);
}

#ifdef MILLRACE_VIEW
constexpr bool view = true;
#else
constexpr bool view = false;
#endif

constexpr bool tracing = view && VM_TRACE;

constexpr mr_sim_api api = {
    MR_SIM_ABI,    channels,
    view,          tracing,
    MR_SIM_CONFIG, sim_open,
    sim_close,     sim_map,
    sim_unmap,     sim_reg_write,
    sim_reg_read,  sim_run,
    sim_rest,      sim_cycles,
    sim_on_done,   sim_peek,
    sim_timeline,  sim_waves,
    sim_counts,    sim_memory_idle,
    sim_pin_rate,  sim_sequential_rate,
    sim_fault,     sim_clear_faults,
};

} // namespace

const mr_sim_api *mr_sim_get_api(void)
{
    return &api;
}
