// SPDX-License-Identifier: Apache-2.0
// AXI4 slaves of a bench with 64-byte beats: a byte-exact sparse memory, stalls on every channel, and
// a check of every rule that the device promises (INCR <= 64 beats, 4 KiB, stable payload).
#ifndef MILLRACE_TESTS_RTL_COMMON_AXI_SLAVE_H
#define MILLRACE_TESTS_RTL_COMMON_AXI_SLAVE_H

#include "bench.h"
#include <array>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace bench {

using Beat = std::array<uint8_t, 64>;

struct AxiMem {
    std::map<uint64_t, Beat> beats; // by address / 64
    std::string bad;                // first broken rule
    void fail(const std::string &why)
    {
        if (bad.empty())
            bad = why;
    }
    void check_burst(uint64_t addr, unsigned len, const char *what)
    {
        if (addr % 64)
            fail(std::string(what) + " address not aligned");
        if (len > 63)
            fail(std::string(what) + " burst too long");
        if (addr / 4096 != (addr + 64 * len) / 4096)
            fail(std::string(what) + " burst crosses 4 KiB");
    }
};

// Read side. Call drive() before settle(), sample() after it.
template <class D> class AxiRead {
  public:
    AxiRead(D &d, AxiMem &m, Rng &r) : d_(d), m_(m), rng_(r), ar_(r, "arready"), r_(r, "rvalid") {}
    Stall &ar() { return ar_; }
    Stall &r() { return r_; }
    uint64_t error_at = ~0ull; // burst that holds this beat address gets SLVERR
    uint64_t count = 0;
    void drive()
    {
        d_.m_arready_i = ar_.want();
        bool go = r_.want();
        r_.saw(!q_.empty());
        offered_ = go && !q_.empty();
        d_.m_rvalid_i = offered_;
        if (offered_) {
            auto &b = q_.front();
            auto it = m_.beats.find(b.addr / 64);
            if (it != m_.beats.end())
                put_bytes(d_.m_rdata_i, it->second.data(), 64);
            else
                for (int i = 0; i < 16; i++)
                    d_.m_rdata_i[static_cast<size_t>(i)] = 0xDEADBEEF;
            d_.m_rresp_i = b.addr == error_at ? 2 : 0;
            d_.m_rlast_i = b.last;
        } else {
            for (int i = 0; i < 16; i++)
                d_.m_rdata_i[static_cast<size_t>(i)] = rng_.u32();
            d_.m_rlast_i = rng_.chance(50);
            d_.m_rresp_i = 0;
        }
    }
    void sample()
    {
        ar_.saw(d_.m_arvalid_o);
        if (hold_ && (!d_.m_arvalid_o || d_.m_araddr_o != ha_ || d_.m_arlen_o != hl_))
            m_.fail("AR not stable");
        hold_ = d_.m_arvalid_o && !d_.m_arready_i;
        ha_ = d_.m_araddr_o;
        hl_ = d_.m_arlen_o;
        if (d_.m_arvalid_o && d_.m_arready_i) {
            m_.check_burst(d_.m_araddr_o, d_.m_arlen_o, "AR");
            for (unsigned i = 0; i <= d_.m_arlen_o; i++)
                q_.push_back({d_.m_araddr_o + 64ull * i, i == d_.m_arlen_o});
        }
        if (offered_) {
            q_.pop_front();
            count++;
        }
        offered_ = false;
    }
    bool empty() const { return q_.empty(); }

  private:
    struct B {
        uint64_t addr;
        bool last;
    };
    D &d_;
    AxiMem &m_;
    Rng &rng_;
    Stall ar_, r_;
    std::deque<B> q_;
    bool offered_ = false, hold_ = false;
    uint64_t ha_ = 0;
    unsigned hl_ = 0;
};

// Write side. Responses come in order, late.
template <class D> class AxiWrite {
  public:
    AxiWrite(D &d, AxiMem &m, Rng &r)
        : d_(d), m_(m), aw_(r, "awready"), w_(r, "wready"), b_(r, "bvalid")
    {
    }
    Stall &aw() { return aw_; }
    Stall &w() { return w_; }
    Stall &b() { return b_; }
    uint64_t error_at = ~0ull; // burst that starts here gets SLVERR
    uint64_t count = 0, bursts = 0, longest = 0;
    std::map<uint64_t, int> writes; // how often each beat was written
    void drive()
    {
        d_.m_awready_i = aw_.want();
        d_.m_wready_i = w_.want();
        bool go = b_.want();
        b_.saw(!resp_.empty());
        offer_ = go && !resp_.empty();
        d_.m_bvalid_i = offer_;
        d_.m_bresp_i = offer_ && resp_.front() == error_at ? 2 : 0;
    }
    void sample()
    {
        aw_.saw(d_.m_awvalid_o);
        w_.saw(d_.m_wvalid_o);
        if (aw_hold_ && (!d_.m_awvalid_o || d_.m_awaddr_o != ha_ || d_.m_awlen_o != hl_))
            m_.fail("AW not stable");
        aw_hold_ = d_.m_awvalid_o && !d_.m_awready_i;
        ha_ = d_.m_awaddr_o;
        hl_ = d_.m_awlen_o;
        Beat now;
        take_bytes(d_.m_wdata_o, now.data(), 64);
        if (w_hold_ && (!d_.m_wvalid_o || now != hd_ || d_.m_wstrb_o != hs_ || d_.m_wlast_o != hlast_))
            m_.fail("W not stable");
        // Once a burst has begun, W may not pause: its data is complete.
        if (mid_ && !d_.m_wvalid_o)
            m_.fail("W pauses inside a burst");
        w_hold_ = d_.m_wvalid_o && !d_.m_wready_i;
        hd_ = now;
        hs_ = d_.m_wstrb_o;
        hlast_ = d_.m_wlast_o;
        if (offer_) {
            if (!d_.m_bready_o)
                m_.fail("BREADY low");
            resp_.pop_front();
        }
        if (d_.m_awvalid_o && d_.m_awready_i) {
            m_.check_burst(d_.m_awaddr_o, d_.m_awlen_o, "AW");
            awq_.push_back({d_.m_awaddr_o, d_.m_awlen_o + 1u});
            bursts++;
            longest = std::max<uint64_t>(longest, d_.m_awlen_o + 1u);
        }
        if (d_.m_wvalid_o && d_.m_wready_i) {
            wq_.push_back({now, d_.m_wstrb_o, static_cast<bool>(d_.m_wlast_o)});
            mid_ = !d_.m_wlast_o;
            count++;
        }
        while (!awq_.empty() && !wq_.empty()) {
            auto &a = awq_.front();
            auto &b = wq_.front();
            Beat &t = m_.beats[a.addr / 64 + done_];
            writes[a.addr / 64 + done_]++;
            for (size_t i = 0; i < 64; i++)
                if ((b.strb >> i) & 1)
                    t[i] = b.data[i];
            done_++;
            if (b.last != (done_ == a.beats))
                m_.fail("WLAST wrong");
            wq_.pop_front();
            if (done_ == a.beats) {
                resp_.push_back(a.addr);
                awq_.pop_front();
                done_ = 0;
            }
        }
    }
    bool empty() const { return awq_.empty() && wq_.empty() && resp_.empty(); }

  private:
    struct A {
        uint64_t addr;
        unsigned beats;
    };
    struct W {
        Beat data;
        uint64_t strb;
        bool last;
    };
    D &d_;
    AxiMem &m_;
    Stall aw_, w_, b_;
    std::deque<A> awq_;
    std::deque<W> wq_;
    std::deque<uint64_t> resp_;
    unsigned done_ = 0;
    bool offer_ = false, aw_hold_ = false, w_hold_ = false, mid_ = false, hlast_ = false;
    uint64_t ha_ = 0, hs_ = 0;
    unsigned hl_ = 0;
    Beat hd_{};
};

} // namespace bench
#endif
