// SPDX-License-Identifier: Apache-2.0
// What the kernel's memory port is connected to.
#ifndef MILLRACE_TESTS_RTL_UPDATE_MEMORIES_H
#define MILLRACE_TESTS_RTL_UPDATE_MEMORIES_H

#include "axi_slave.h"
#include "sim/memory/memory.h"
#include "tests/rtl/update/step.h"

namespace bench
{

class Memory {
  public:
    virtual ~Memory() = default;
    virtual void drive() = 0;  // before settle()
    virtual void sample() = 0; // after it
    virtual const char *broken() = 0;
};

// Random stalls, and a check of every rule of the bus.
class Stalling final : public Memory {
  public:
    Stalling(Vdut &d, Rng &r, Step &step) : step_(step), read_(d, mem_, r), write_(d, mem_, r)
    {
        for (uint64_t k = 0; k < step.memory.size(); k += 64)
            memcpy(mem_.beats[(BASE + k) / 64].data(), &step.memory[k],
                   std::min<uint64_t>(64, step.memory.size() - k));
    }
    void drive() override
    {
        read_.drive();
        write_.drive();
    }
    void sample() override
    {
        read_.sample();
        write_.sample();
    }
    const char *broken() override
    {
        for (uint64_t k = 0; k < step_.memory.size(); k += 64)
            memcpy(&step_.memory[k], mem_.beats[(BASE + k) / 64].data(),
                   std::min<uint64_t>(64, step_.memory.size() - k));
        if (mem_.beats.size() != (step_.memory.size() + 63) / 64)
            mem_.fail("a write beside the memory");
        return mem_.bad.empty() ? nullptr : mem_.bad.c_str();
    }
    bool covered(Tap &tap)
    {
        bool all = true;
        for (Stall *s : {&read_.ar(), &read_.r(), &write_.aw(), &write_.w(), &write_.b()})
            all = s->covered(tap) && all;
        return all;
    }

  private:
    Step &step_;
    AxiMem mem_;
    AxiRead<Vdut> read_;
    AxiWrite<Vdut> write_;
};

// The engine's memory, one channel, with its port for reads and writes.
class Timed final : public Memory {
  public:
    Timed(Vdut &d, Step &step, const char *preset, unsigned stalls, uint64_t seed) : d_(d)
    {
        mr_mem_options o = {preset, 1, stalls, seed};
        m_ = mr_mem_open(&o, nullptr);
        mr_mem_map(m_, 0, BASE, step.memory.data(), step.memory.size(), true, nullptr);
        s_ = mr_mem_port(m_, 1);
    }
    ~Timed() override { mr_mem_close(m_); }
    Timed(const Timed &) = delete;
    Timed &operator=(const Timed &) = delete;
    mr_mem *model() { return m_; }
    void drive() override
    {
        d_.m_arready_i = s_->ar_ready;
        d_.m_rvalid_i = s_->r_valid;
        if (s_->r_valid)
            put_bytes(d_.m_rdata_i, s_->r_data, 64);
        d_.m_rlast_i = s_->r_last;
        d_.m_rresp_i = s_->r_resp;
        d_.m_awready_i = s_->aw_ready;
        d_.m_wready_i = s_->w_ready;
        d_.m_bvalid_i = s_->b_valid;
        d_.m_bresp_i = s_->b_resp;
    }
    void sample() override
    {
        if (d_.m_arvalid_o && d_.m_arready_i)
            mr_mem_ar(m_, 1, d_.m_araddr_o, d_.m_arlen_o + 1U);
        if (d_.m_rvalid_i && d_.m_rready_o) {
            mr_mem_r(m_, 1);
            reads++;
        }
        if (d_.m_awvalid_o && d_.m_awready_i)
            mr_mem_aw(m_, d_.m_awaddr_o, d_.m_awlen_o + 1U);
        if (d_.m_wvalid_o && d_.m_wready_i) {
            mr_mem_w(m_, &d_.m_wdata_o[0], d_.m_wstrb_o, d_.m_wlast_o);
            writes++;
        }
        if (d_.m_bvalid_i && d_.m_bready_o)
            mr_mem_b(m_);
        mr_mem_step(m_);
    }
    const char *broken() override { return mr_mem_violation(m_); }
    uint64_t reads = 0, writes = 0;

  private:
    Vdut &d_;
    mr_mem *m_;
    const mr_mem_signals *s_;
};

} // namespace bench

#endif
