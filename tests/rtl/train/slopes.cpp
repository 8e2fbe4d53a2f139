// SPDX-License-Identifier: Apache-2.0
// mr_slopes against mr_function_slope and mr_slope_times' factor: commands of both kinds one after the
// other, up to eight inside, in one window where they overlap: what one keeps a later one reads. Beats
// are taken when there is room, or slopes, and come and go as many cycles later as in the epilogue;
// the host's port stalls on both sides.
#include "Vdut.h"

#include "bench.h"

extern "C" {
#include "cmodel/backward.h"
#include "cmodel/command.h"
#include "cmodel/num.h"
}

#include <deque>
#include <vector>

namespace
{

#if defined(VARIANT_n1)
constexpr int V = 4;
#else
constexpr int V = 32;
#endif
constexpr size_t kBeats = 300;
constexpr uint64_t kBase = 0x1FFFFF000ull;
constexpr int kEnters = 15, kPops = 5, kFactor = 7; // cycles behind a beat's handshake

struct Command {
    bool keep;
    unsigned function;
    int rows, cols, left;
    uint32_t off;
    std::deque<std::vector<uint32_t>> words; // what enters the function, or the factors
};

class Bench
{
  public:
    Bench(const bench::Args &args, bench::Tap &tap)
        : dut_(args), tap_(tap), rng_(args.seed), take_(rng_, "take"), data_(rng_, "data_ready"),
          memory_(64 * kBeats), expected_(64 * kBeats)
    {
        for (size_t i = 0; i < memory_.size(); i++)
            memory_[i] = expected_[i] = static_cast<uint8_t>(rng_.u32());
        dut_->base_i = kBase;
        dut_.reset();
        take_.random();
        data_.random();
    }

    void queue(int rows, int cols, bool keep)
    {
        Command c{keep, static_cast<unsigned>(rng_.range(MR_FUNCTION_GELU_NEW, MR_FUNCTION_RELU)), rows, cols, rows * cols / V, 0, {}};
        const int beats = rows * cols / 32;
        c.off = static_cast<uint32_t>(rng_.range(0, static_cast<int>(kBeats) - beats));
        for (int i = 0; i < c.left; i++) {
            std::vector<uint32_t> word(V);
            for (int l = 0; l < V; l++) {
                uint8_t *at = &expected_[64 * c.off + 2 * static_cast<size_t>(i * V + l)];
                int16_t e;
                if (keep) {
                    word[static_cast<size_t>(l)] = value();
                    e = mr_function_slope(c.function, mr_float(word[static_cast<size_t>(l)]));
                    memcpy(at, &e, sizeof e);
                } else {
                    memcpy(&e, at, sizeof e);
                    nans += e == MR_SLOPE_NAN;
                    word[static_cast<size_t>(l)] =
                        mr_bits(e == MR_SLOPE_NAN ? mr_qnan() : mr_acc_to_f32(e, -14));
                }
            }
            c.words.push_back(word);
        }
        (keep ? kept : read_back) += beats;
        commands_.push_back(c);
    }

    // Until all is done; the cycles.
    uint64_t run(bool stalls)
    {
        const uint64_t start = dut_.cycles();
        stalls_ = stalls;
        if (!stalls) {
            take_.density(100);
            data_.density(100);
        }
        while (good && !(commands_.empty() && inside_.empty()) && dut_.cycles() - start < 2000000)
            cycle();
        if (!commands_.empty() || !inside_.empty())
            wrong("hangs");
        const uint64_t took = dut_.cycles() - start;
        for (int i = 0; i < 12; i++) // the last factor, and idle
            cycle();
        if (dut_->busy_o || left_ || reads_ != read_back || writes_ != kept)
            wrong("something is left, or beats too many or too few");
        if (memory_ != expected_)
            wrong("the window is not what was kept");
        return took;
    }

    bool covered() { return take_.covered(tap_) & data_.covered(tap_); }
    bool good = true;
    long kept = 0, read_back = 0, nans = 0;

  private:
    uint32_t value()
    {
        static const uint32_t kOdd[] = {0,          0x80000000, 0x00000001, 0x807FFFFF, 0x40A00000, 0xC0A00000,
                                        0x409FFFFF, 0xC09FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFF800001};
        if (rng_.chance(10))
            return kOdd[rng_.range(0, 11)];
        return (rng_.u32() & 0x807FFFFF) | static_cast<uint32_t>(rng_.range(rng_.chance(20) ? 90 : 122, 130)) << 23;
    }

    void wrong(const char *what)
    {
        if (good)
            tap_.note("%s", what);
        good = false;
    }

    void cycle()
    {
        // A command comes when mr_epi_cmds has an entry for it.
        const bool push = !commands_.empty() && inside_.size() < 8 && (!stalls_ || rng_.chance(20));
        struct mr_command m = {};
        if (push) {
            const Command &c = commands_.front();
            mr_command_set(&m, MR_F_MATMUL_KEEP_SLOPE, c.keep);
            mr_command_set(&m, MR_F_MATMUL_SLOPE, !c.keep);
            mr_command_set(&m, MR_F_MATMUL_SLOPE_OFF, c.off);
            mr_command_set(&m, MR_F_MATMUL_COLS, static_cast<uint32_t>(c.cols));
            dut_->cmd_rows_i = static_cast<uint16_t>(c.rows);
        }
        dut_->cmd_valid_i = push;
        bench::put_bytes(dut_->cmd_i, &m, 64);
        // The oldest command with beats gives one; room_o and has_o come from registers.
        Command *now = nullptr;
        for (auto &c : inside_)
            if (c.left && !now)
                now = &c;
        const bool want = take_.want(), can = now && (now->keep ? dut_->room_o : dut_->has_o);
        take_.saw(can);
        dut_->take_i = want && can && now->keep;
        dut_->use_i = want && can && !now->keep;
        if (want && can) {
            enter_.push_back({dut_.cycles(), now->keep, now->function, now->words.front()});
            now->words.pop_front();
            now->left--;
        }
        dut_->x_valid_i = dut_->pop_i = 0;
        bool factor = false;
        std::vector<uint32_t> f;
        dut_->x_fn_i = static_cast<uint8_t>(rng_.range(0, 3));
        for (int l = 0; l < V; l++)
            bench::set(dut_->x_i, 32 * l, 32, rng_.u32());
        for (const auto &b : enter_) {
            const uint64_t age = dut_.cycles() - b.at;
            if (b.keep && age == kEnters) {
                dut_->x_valid_i = 1;
                dut_->x_fn_i = static_cast<uint8_t>(b.function);
                for (int l = 0; l < V; l++)
                    bench::set(dut_->x_i, 32 * l, 32, b.word[static_cast<size_t>(l)]);
            }
            if (!b.keep && age == kPops)
                dut_->pop_i = 1;
            if (!b.keep && age == kFactor) {
                factor = true;
                f = b.word;
            }
        }
        while (!enter_.empty() && dut_.cycles() - enter_.front().at >= kEnters)
            enter_.pop_front();
        host_before();
        dut_.settle();
        for (int l = 0; factor && l < V; l++)
            if (bench::get(dut_->f_o, 32 * l, 32) != f[static_cast<size_t>(l)])
                wrong("a factor is not its slope");
        host_after();
        if (push) {
            inside_.push_back(commands_.front());
            commands_.pop_front();
        }
        // The oldest one is done: all of its beats, and what it keeps.
        if (dut_->done_o)
            told_++;
        while (!inside_.empty() && !inside_.front().left && (!inside_.front().keep || told_)) {
            if (inside_.front().keep) {
                told_--;
                const Command &c = inside_.front();
                if (acked_ < (acks_wanted_ += c.rows * c.cols / 32))
                    wrong("done before it is written");
            }
            inside_.pop_front();
        }
        dut_.edge();
    }

    void host_before()
    {
        dut_->rd_ready_i = ask_ == 0 && (!stalls_ || rng_.chance(50));
        const bool beat = ask_ && wait_-- <= 0 && (!stalls_ || rng_.chance(70));
        dut_->rd_data_valid_i = beat;
        for (int i = 0; i < 16; i++) {
            uint32_t w = rng_.u32();
            if (beat)
                memcpy(&w, &memory_[read_at_ + 4 * static_cast<size_t>(i)], 4);
            bench::set(dut_->rd_data_i, 32 * i, 32, w);
        }
        dut_->job_ready_i = left_ == 0 && (!stalls_ || rng_.chance(50));
        dut_->data_ready_i = left_ != 0 && data_.want();
        dut_->job_done_i = ack_ == 0;
    }

    void host_after()
    {
        if (dut_->rd_data_valid_i) {
            ask_--;
            reads_++;
            read_at_ += 64;
        }
        if (dut_->rd_valid_o && dut_->rd_ready_i) {
            ask_ = dut_->rd_beats_o;
            wait_ = stalls_ ? static_cast<int>(rng_.range(0, 60)) : 2;
            read_at_ = place(dut_->rd_addr_o, ask_);
        }
        if (ack_ >= 0 && ack_-- == 0)
            acked_ += job_;
        if (left_ && dut_->data_valid_o) {
            data_.saw(true);
            if (dut_->data_ready_i) {
                bench::take_bytes(dut_->data_o, &memory_[at_], 64);
                at_ += 64;
                writes_++;
                if (--left_ == 0)
                    ack_ = stalls_ ? static_cast<int>(rng_.range(0, 60)) : 2;
            }
        }
        if (dut_->job_valid_o && dut_->job_ready_i) {
            if (dut_->job_strb_o != ~0ull)
                wrong("a part of a beat");
            job_ = left_ = dut_->job_beats_o;
            at_ = place(dut_->job_addr_o, left_);
        }
        // A job's data is there: it would hold up the others.
        if (left_ && !dut_->data_valid_o && ++starved_ > 3)
            wrong("a job waits for its data");
        if (!left_ || dut_->data_valid_o)
            starved_ = 0;
    }

    size_t place(uint64_t addr, int beats)
    {
        if (addr < kBase || addr % 64 || beats < 1 || addr - kBase + 64 * static_cast<uint64_t>(beats) > 64 * kBeats) {
            wrong("outside the window");
            return 0;
        }
        return addr - kBase;
    }

    struct Inside {
        uint64_t at;
        bool keep;
        unsigned function;
        std::vector<uint32_t> word;
    };
    bench::Dut<Vdut> dut_;
    bench::Tap &tap_;
    bench::Rng rng_;
    bench::Stall take_, data_;
    std::vector<uint8_t> memory_, expected_;
    std::deque<Command> commands_, inside_;
    std::deque<Inside> enter_;
    bool stalls_ = true;
    int ask_ = 0, wait_ = 0, left_ = 0, ack_ = -1, job_ = 0, told_ = 0, starved_ = 0;
    size_t read_at_ = 0, at_ = 0;
    long reads_ = 0, writes_ = 0, acked_ = 0, acks_wanted_ = 0;
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    bench::Rng rng(args.seed + 1);
    Bench b(args, tap);
    int n = args.cases_or(60);
    for (int k = 0; k < n && b.good; k++) {
        for (int i = static_cast<int>(rng.range(1, 12)); i > 0; i--)
            b.queue(static_cast<int>(rng.range(1, rng.chance(30) ? 32 : 6)), 64 * static_cast<int>(rng.range(1, 4)),
                    rng.chance(50));
        b.run(true);
    }
    tap.note("%ld beats kept, %ld read, %ld slopes of NaN", b.kept, b.read_back, b.nans);
    tap.ok(b.good && b.kept && b.read_back && b.nans, "slopes: what is kept, and what is read of it, in order");
    tap.ok(b.covered(), "slopes: beats and the host's port stalled");
    // A beat a cycle, while a word of slopes is a part of a beat of the host's.
    for (bool keep : {true, false}) {
        b.queue(32, 256, keep);
        const uint64_t took = b.run(false), beats = 32 * 256 / V;
        tap.note("%s: %llu beats in %llu cycles", keep ? "kept" : "read", static_cast<unsigned long long>(beats),
                 static_cast<unsigned long long>(took));
        tap.ok(b.good && took <= beats * (V > 16 ? 2 : 1) + 120, "slopes: rate");
    }
    return tap.done();
}
