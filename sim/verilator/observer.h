// SPDX-License-Identifier: Apache-2.0
// Reads the view signals of millrace_core in every cycle of a run and hands its timeline out
// (struct mr_sim_timeline): intervals run-length encoded, commands, sums over steps. A cycle in
// which nothing changes costs a few comparisons. View builds only.
//
// view_units    0 the counters count | 1 array busy, weights, drain, idle | 5 vector busy, idle |
//               7 attention busy, idle, kv | 10 writer busy, idle | 12 host read beat, idle |
//               14 host write beat, idle | 16..31 block products
// view_readers  16 bits, one a channel, for each of: credit, memory, idle, issue
// view_beats    the same for beats of weights, of KV
// view_train    0..5 cycles of GRAD_ALONE and the counters behind it | 6..17 block products of GRAD
// |
//               18 the read job is the stash's | 19..34 channels that take it | 35..63 its beats
// view (queue)  0..15 semaphores that the head still needs | 16 head valid | 17 room in the unit |
//               18 issue | 19 done | 32..47 index of the head | 48..63 of what is done
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>

#include "sim/verilator/timeline.h"
#include "verilated.h"
#include "verilated_sym_props.h"
#include "verilated_syms.h"

class Observer
{
  public:
    // False when the design has no such signals.
    bool bind(const VerilatedContext *context, const std::string &top, unsigned channels)
    {
        channels_ = channels;
        units_ = find(context, top, "view_units");
        readers_ = find(context, top, "view_readers");
        beats_ = find(context, top, "view_beats");
        train_ = find(context, top, "view_train");
        bool all = units_ && readers_ && beats_ && train_;
        for (unsigned q = 0; q < MR_SIM_QUEUES; q++) {
            queue_[q] =
                find(context, top + ".u_control.u_seq.gen_queue[" + std::to_string(q) + "].u_queue",
                     "view");
            all = all && queue_[q];
        }
        return all;
    }

    // NULL: nobody listens. What the last listener has not got yet is given out before.
    void listen(const mr_sim_timeline *to)
    {
        if (running_)
            finish();
        sink_ = to ? *to : mr_sim_timeline{};
        listening_ = to != nullptr;
    }

    bool listening() const
    {
        return listening_;
    }

    // The device's counters count in the cycle whose signals stand now.
    bool in_run() const
    {
        return *units_ & 1;
    }

    // Once a cycle, before the clock's edge: what the counters take at that edge.
    void cycle()
    {
        if (!in_run()) {
            if (running_)
                finish();
            return;
        }
        if (!running_)
            begin();
        queues();
        units();
        training();
        readers();
        if (++now_ == sample_.from + step)
            give_sample();
    }

  private:
    static constexpr unsigned step = 100, batch = 1024;

    struct Lane {
        uint64_t from;
        uint16_t detail;
        uint8_t state;
    };

    static const uint64_t *find(const VerilatedContext *context, const std::string &scope,
                                const char *name)
    {
        const VerilatedScope *s = context->scopeFind(scope.c_str());
        const VerilatedVar *v = s ? s->varFind(name) : nullptr;
        return v && v->vltype() == VLVT_UINT64 ? static_cast<const uint64_t *>(v->datap())
                                               : nullptr;
    }

    // Which of the counters of a group counts; there may be none around start and end of a run.
    static uint8_t which(uint64_t group)
    {
        return group ? static_cast<uint8_t>(__builtin_ctzll(group)) : MR_SIM_STATE_NONE;
    }

    static uint8_t port(uint64_t beat_idle)
    {
        return beat_idle & 1 ? MR_PORT_BEAT : beat_idle & 2 ? MR_PORT_IDLE : MR_PORT_WAITS;
    }

    void begin()
    {
        running_ = true;
        now_ = 0;
        for (unsigned l = 0; l < MR_LANE_READER + channels_; l++)
            lane_[l] = {0, 0, MR_SIM_STATE_NONE};
        last_units_ = ~*units_;
        last_train_ = ~*train_;
        missing_ = last_missing_ = 0;
        for (auto &jobs : jobs_)
            jobs.clear();
        last_readers_ = ~*readers_;
        for (unsigned q = 0; q < MR_SIM_QUEUES; q++)
            last_queue_[q] = ~*queue_[q];
        sample_ = {};
    }

    void finish()
    {
        for (unsigned l = 0; l < MR_LANE_READER + channels_; l++)
            end_span(l);
        if (now_ > sample_.from)
            give_sample();
        give_spans();
        running_ = false;
        if (sink_.end)
            sink_.end(sink_.user, now_);
    }

    void end_span(unsigned lane)
    {
        Lane &l = lane_[lane];
        if (l.from == now_)
            return;
        span_[spans_++] = {l.from, now_ - l.from, l.detail, static_cast<uint8_t>(lane), l.state};
        if (spans_ == batch)
            give_spans();
    }

    void set(unsigned lane, uint8_t state, uint16_t detail = 0)
    {
        Lane &l = lane_[lane];
        if (l.state == state && l.detail == detail)
            return;
        end_span(lane);
        l = {now_, detail, state};
    }

    void units()
    {
        uint64_t u = *units_;
        if ((u ^ last_units_) & 0xFFFF || missing_ != last_missing_) {
            last_units_ = u;
            last_missing_ = missing_;
            uint8_t array = which(u >> 1 & 15);
            set(MR_LANE_ARRAY, array, array == MR_ARRAY_IDLE ? missing_ : 0);
            set(MR_LANE_VECTOR, which(u >> 5 & 3));
            set(MR_LANE_ATTENTION, which(u >> 7 & 7));
            set(MR_LANE_WRITER, which(u >> 10 & 3));
            set(MR_LANE_HOST_READ, port(u >> 12 & 3));
            set(MR_LANE_HOST_WRITE, port(u >> 14 & 3));
        }
        sample_.mac_blocks += u >> 16 & 0xFFFF;
        sample_.host_read += u >> 12 & 1;
        sample_.host_write += u >> 14 & 1;
    }

    void training()
    {
        uint64_t t = *train_;
        if (t == last_train_ && !(t >> 6 & 0x1FFFEFFF))
            return;
        if ((t ^ last_train_) & 63)
            for (unsigned i = 0; i < MR_TRAIN_LANES; i++)
                set(MR_LANE_TRAIN + i, t >> i & 1 ? 0 : MR_SIM_STATE_NONE);
        last_train_ = t;
        sample_.grad_blocks += t >> 6 & 0xFFF;
        for (unsigned c = 0; t >> 19 & 0xFFFF && c < channels_; c++)
            if (t >> (19 + c) & 1)
                jobs_[c].push_back({t >> 35, bool(t >> 18 & 1)});
    }

    // Whether a beat of weights is one of the stash: a channel's come in the order of its jobs.
    bool stash_beat(unsigned c)
    {
        if (jobs_[c].empty())
            return false;
        bool stash = jobs_[c].front().stash;
        if (--jobs_[c].front().beats == 0)
            jobs_[c].pop_front();
        return stash;
    }

    void readers()
    {
        uint64_t r = *readers_, b = *beats_;
        for (unsigned c = 0; b && c < channels_; c++) {
            if (b >> c & 1)
                (stash_beat(c) ? sample_.stash : sample_.weights)[c]++;
            sample_.kv[c] += b >> (16 + c) & 1;
        }
        if (r == last_readers_)
            return;
        last_readers_ = r;
        for (unsigned c = 0; c < channels_; c++)
            set(MR_LANE_READER + c, which((r >> c & 1) | (r >> (15 + c) & 2) | (r >> (30 + c) & 4) |
                                          (r >> (45 + c) & 8)));
    }

    void queues()
    {
        for (unsigned q = 0; q < MR_SIM_QUEUES; q++) {
            uint64_t v = *queue_[q];
            if (v >> 18 & 3) {
                if (v >> 19 & 1)
                    give_command(q, v >> 48 & 0xFFFF, true);
                if (v >> 18 & 1)
                    give_command(q, v >> 32 & 0xFFFF, false);
            }
            if (v == last_queue_[q])
                continue;
            last_queue_[q] = v;
            bool head = v >> 16 & 1, room = v >> 17 & 1;
            uint16_t missing = head && room ? v & 0xFFFF : 0;
            if (q == MR_SIM_ARRAY_QUEUE)
                missing_ = missing;
            set(MR_LANE_QUEUE + q,
                !head     ? MR_HEAD_EMPTY
                : missing ? MR_HEAD_SEMAPHORE
                          : MR_HEAD_UNIT,
                missing);
        }
    }

    void give_spans()
    {
        if (spans_ && sink_.spans)
            sink_.spans(sink_.user, span_, spans_);
        spans_ = 0;
    }

    void give_sample()
    {
        sample_.cycles = static_cast<uint32_t>(now_ - sample_.from);
        if (sink_.sample)
            sink_.sample(sink_.user, &sample_);
        sample_ = {};
        sample_.from = now_;
    }

    void give_command(unsigned queue, uint64_t index, bool done)
    {
        mr_sim_event e = {now_, static_cast<uint16_t>(index), static_cast<uint8_t>(queue), done};
        if (sink_.command)
            sink_.command(sink_.user, &e);
    }

    unsigned channels_ = 0;
    const uint64_t *units_ = nullptr, *readers_ = nullptr, *beats_ = nullptr, *train_ = nullptr;
    const uint64_t *queue_[MR_SIM_QUEUES] = {};
    uint64_t last_units_ = 0, last_readers_ = 0, last_train_ = 0, last_queue_[MR_SIM_QUEUES] = {};
    uint16_t missing_ = 0, last_missing_ = 0; // by the head of the array's queue
    struct Job {
        uint64_t beats;
        bool stash;
    };
    std::deque<Job> jobs_[MR_MEM_MAX_CHANNELS]; // read jobs of weights whose beats are to come
    mr_sim_timeline sink_ = {};
    bool listening_ = false, running_ = false;
    uint64_t now_ = 0; // cycles of the run
    Lane lane_[MR_LANE_READER + MR_MEM_MAX_CHANNELS] = {};
    mr_sim_sample sample_ = {};
    mr_sim_span span_[batch];
    unsigned spans_ = 0;
};
