// SPDX-License-Identifier: Apache-2.0
// The stash windows of N channels as a unit that reads headers and writes blocks sees them: ports rd_,
// job_, data_ of mr_stash_put. Random bytes in the beginning; both sides stall at random, reads of a
// beat are answered some cycles later. Each write is acknowledged later still, and in memory not before.
#pragma once

#include "bench.h"

#include <deque>
#include <vector>

namespace bench
{

template <class Top> class Windows
{
  public:
    Windows(Dut<Top> &dut, Rng &rng, int channels, int beats)
        : memory(static_cast<size_t>(channels), std::vector<uint8_t>(64 * static_cast<size_t>(beats))), dut_(dut),
          rng_(rng), data_(rng, "data_ready"), bytes_(64 * static_cast<size_t>(beats))
    {
        for (auto &w : memory)
            for (auto &b : w)
                b = static_cast<uint8_t>(rng.u32());
        for (int c = 0; c < channels; c++)
            set(dut_->s_base_i, 64 * c, 64, base_of(c));
        dut_->job_done_i = dut_->rd_data_valid_i = 0;
        data_.random();
    }

    static uint64_t base_of(int c) { return 0x1FFFFF000ull + 0x100000000ull * static_cast<uint64_t>(c); }

    // Before dut.settle() of each cycle, and behind it.
    void drive()
    {
        dut_->rd_ready_i = rng_.chance(50);
        dut_->rd_data_valid_i = answer_ == 0;
        for (int i = 0; i < 16; i++) {
            uint32_t w = rng_.u32();
            if (answer_ == 0)
                memcpy(&w, &memory[static_cast<size_t>(read_channel_)][read_at_ + 4 * static_cast<size_t>(i)], 4);
            set(dut_->rd_data_i, 32 * i, 32, w);
        }
        dut_->job_ready_i = left_ == 0 && rng_.chance(50);
        dut_->data_ready_i = left_ != 0 && data_.want();
        dut_->job_done_i = !acks_.empty() && acks_.front().cycles <= 0;
    }
    // What is wrong, or NULL.
    const char *see()
    {
        if (answer_ >= 0)
            answer_--;
        if (dut_->rd_valid_o && dut_->rd_ready_i) {
            if (!place(dut_->rd_addr_o, &read_channel_, &read_at_) || dut_->rd_beats_o != 1 || answer_ >= 0)
                return "a wrong read";
            reads++;
            answer_ = static_cast<int>(rng_.range(0, 20));
        }
        for (auto &a : acks_)
            a.cycles--;
        if (dut_->job_done_i) {
            for (const Byte &b : acks_.front().bytes)
                memory[static_cast<size_t>(b.channel)][b.at] = b.value;
            acks_.pop_front();
        }
        if (left_ && dut_->data_valid_o)
            data_.saw(true);
        if (left_ && dut_->data_valid_o && dut_->data_ready_i) {
            write(left_ == 1 ? strb_ : ~0ull);
            at_ += 64;
            if (--left_ == 0) {
                acks_.push_back({static_cast<int>(rng_.range(0, 400)), std::move(job_)});
                job_.clear();
            }
        }
        if (dut_->job_valid_o && dut_->job_ready_i) {
            if (!place(dut_->job_addr_o, &channel_, &at_))
                return "a write outside";
            left_ = dut_->job_beats_o;
            strb_ = dut_->job_strb_o;
        }
        return nullptr;
    }
    bool idle() const { return acks_.empty() && left_ == 0; }
    // Whether they hold what is wanted; the first byte that is not is said.
    bool compare(Tap &tap, const std::vector<std::vector<uint8_t>> &want) const
    {
        for (size_t c = 0; c < memory.size(); c++)
            for (size_t i = 0; i < bytes_; i++)
                if (memory[c][i] != want[c][i]) {
                    tap.note("channel %zu beat %zu byte %zu: %02x, want %02x", c, i / 64, i % 64, memory[c][i],
                             want[c][i]);
                    return false;
                }
        return true;
    }
    bool covered(Tap &tap) const { return data_.covered(tap) && reads != 0; }

    std::vector<std::vector<uint8_t>> memory;
    long reads = 0;

  private:
    // The window and the byte in it of an address.
    bool place(uint64_t addr, int *channel, size_t *at) const
    {
        for (int c = 0; c < static_cast<int>(memory.size()); c++)
            if (addr >= base_of(c) && addr < base_of(c) + bytes_ && addr % 64 == 0) {
                *channel = c;
                *at = addr - base_of(c);
                return true;
            }
        return false;
    }
    void write(uint64_t strb)
    {
        for (int b = 0; b < 64 && at_ < bytes_; b++)
            if (strb >> b & 1)
                job_.push_back(
                    {channel_, at_ + static_cast<size_t>(b), static_cast<uint8_t>(get(dut_->data_o, 8 * b, 8))});
    }

    struct Byte {
        int channel;
        size_t at;
        uint8_t value;
    };
    struct Job {
        int cycles; // until it is acknowledged
        std::vector<Byte> bytes;
    };

    Dut<Top> &dut_;
    Rng &rng_;
    Stall data_;
    size_t bytes_;
    int answer_ = -1, left_ = 0, channel_ = 0, read_channel_ = 0;
    size_t at_ = 0, read_at_ = 0;
    uint64_t strb_ = 0;
    std::vector<Byte> job_;
    std::deque<Job> acks_;
};

} // namespace bench
