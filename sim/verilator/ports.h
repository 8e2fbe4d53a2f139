// SPDX-License-Identifier: Apache-2.0
// The engine's memory ports: what a Verilated top and the model of the memory (sim/memory) tell
// each other in a cycle.
#pragma once

#include <cstring>

#include "Vcore.h"
#include "sim/memory/memory.h"

namespace
{

constexpr unsigned channels = sizeof(decltype(Vcore::m_ch_rdata_i)) / MR_MEM_BEAT;

// Bits [low, low + 64) of a port of any width, where `low` is a multiple of the field's width.
template <class T> inline uint64_t field(const T &port, unsigned low)
{
    return static_cast<uint64_t>(port) >> low;
}

template <std::size_t W> inline uint64_t field(const VlWide<W> &port, unsigned low)
{
    uint64_t value = port[low / 32] >> (low % 32);
    if (low / 32 + 1 < W && low % 32 == 0)
        value |= static_cast<uint64_t>(port[low / 32 + 1]) << 32;
    return value;
}

inline bool bit(uint64_t port, unsigned index)
{
    return port >> index & 1;
}

// An address that a channel offers.
struct ChannelRead {
    bool valid;
    uint64_t addr;
    unsigned beats;
};

inline ChannelRead channel_read(const Vcore *top, unsigned c)
{
    return {bit(field(top->m_ch_arvalid_o, 0), c), field(top->m_ch_araddr_o, 64 * c),
            static_cast<unsigned>(field(top->m_ch_arlen_o, 8 * c) & 0xFF) + 1};
}

// port[channels + 1]: the signals of the memory's ports, the host port last.
class MemoryPorts
{
  public:
    void open(mr_mem *memory)
    {
        memory_ = memory;
        for (unsigned p = 0; p <= channels; p++)
            port_[p] = mr_mem_port(memory, p);
    }

    const mr_mem_signals *port(unsigned p) const
    {
        return port_[p];
    }

    // The transfers of this cycle: outputs have settled, inputs are what the model said before.
    void transfers(const Vcore *top)
    {
        for (unsigned c = 0; c < channels; c++) {
            if (port_[c]->r_valid && bit(field(top->m_ch_rready_o, 0), c))
                mr_mem_r(memory_, c);
            if (bit(field(top->m_ch_arvalid_o, 0), c) && port_[c]->ar_ready) {
                const ChannelRead ar = channel_read(top, c);
                mr_mem_ar(memory_, c, ar.addr, ar.beats);
            }
        }
        const mr_mem_signals *host = port_[channels];
        if (host->r_valid && top->m_host_rready_o)
            mr_mem_r(memory_, channels);
        if (host->b_valid && top->m_host_bready_o)
            mr_mem_b(memory_);
        if (top->m_host_arvalid_o && host->ar_ready)
            mr_mem_ar(memory_, channels, top->m_host_araddr_o, top->m_host_arlen_o + 1U);
        if (top->m_host_wvalid_o && host->w_ready)
            mr_mem_w(memory_, &top->m_host_wdata_o[0], top->m_host_wstrb_o, top->m_host_wlast_o);
        if (top->m_host_awvalid_o && host->aw_ready)
            mr_mem_aw(memory_, top->m_host_awaddr_o, top->m_host_awlen_o + 1U);
    }

    // The model's answers for the next cycle.
    void drive(Vcore *top) const
    {
        unsigned arready = 0, rvalid = 0, rlast = 0, rresp = 0;
        for (unsigned c = 0; c < channels; c++) {
            const mr_mem_signals *p = port_[c];
            arready |= static_cast<unsigned>(p->ar_ready) << c;
            if (p->r_valid) {
                rvalid |= 1U << c;
                rlast |= static_cast<unsigned>(p->r_last) << c;
                rresp |= static_cast<unsigned>(p->r_resp) << (2 * c);
                std::memcpy(&top->m_ch_rdata_i[16 * c], p->r_data, MR_MEM_BEAT);
            }
        }
        top->m_ch_arready_i = arready;
        top->m_ch_rvalid_i = rvalid;
        top->m_ch_rlast_i = rlast;
        top->m_ch_rresp_i = rresp;
        const mr_mem_signals *host = port_[channels];
        top->m_host_arready_i = host->ar_ready;
        top->m_host_rvalid_i = host->r_valid;
        if (host->r_valid) {
            top->m_host_rlast_i = host->r_last;
            top->m_host_rresp_i = host->r_resp;
            std::memcpy(&top->m_host_rdata_i[0], host->r_data, MR_MEM_BEAT);
        }
        top->m_host_awready_i = host->aw_ready;
        top->m_host_wready_i = host->w_ready;
        top->m_host_bvalid_i = host->b_valid;
        top->m_host_bresp_i = host->b_resp;
    }

  private:
    mr_mem *memory_ = nullptr;
    const mr_mem_signals *port_[channels + 1] = {};
};

} // namespace
