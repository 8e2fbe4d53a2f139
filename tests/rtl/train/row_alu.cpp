// SPDX-License-Identifier: Apache-2.0
// mr_row_alu against the C model's rules 17 and 19: rows of every kind, all lengths, zeros, outliers,
// infinities and NaN. Other readers take the row memories at random; data are garbage in
// every cycle but the promised one. Then cycles without stalls, and the longest rows.
#include "Vdut.h"

#include "bench.h"
#include "rows.h"

#include <vector>

extern "C" {
#include "cmodel/backward.h"
#include "cmodel/command.h"
}

namespace
{

#if defined(VARIANT_n1)
constexpr int N = 1, D = 256, kVecWords = 64;
#elif defined(VARIANT_n4)
constexpr int N = 4, D = 320, kVecWords = 20;
#else
constexpr int N = 8, D = 512, kVecWords = 16;
#endif
constexpr int V = 4 * N, T = 8, ROW = D / V;
enum { GAIN, BACK, SOFTMAX, SOFTMAX_BACK };
const uint32_t kWork[] = {MR_MOVE_NORM_GAIN, MR_MOVE_NORM_BACK, MR_MOVE_SOFTMAX, MR_MOVE_SOFTMAX_BACK};
const char *const kName[] = {"NORM_GAIN", "NORM_BACK", "SOFTMAX", "SOFTMAX_BACK"};

struct Command {
    int work, rows, cols, n, own;
    float eps, scale, grad_scale;
    bool foreign; // columns behind the n that count are not zero
    int pos[T];
};

// dP of a row of `n` equal scores, of which each has p = 65535: the sum of p dP is beyond 2^46, and
// in fp32 a tie but for what lies below the 47 bits that are kept of it.
std::vector<float> near_tie(int n)
{
    uint64_t sum = static_cast<uint64_t>(n) * 0x7FF000;
    const uint64_t half = 1ULL << (63 - 24 - __builtin_clzll(sum * 65535)); // of the last bit in fp32
    while ((sum * 65535) % (4 * half) <= half || (sum * 65535) % (4 * half) >= half + (1 << 17))
        sum--;
    std::vector<float> y;
    for (int i = n; i > 0; i--) {
        y.push_back(static_cast<float>(2 * (sum / static_cast<uint64_t>(i))));
        sum -= sum / static_cast<uint64_t>(i);
    }
    return y;
}

class Bench
{
  public:
    Bench(bench::Args &args, bench::Tap &tap)
        : dut_(args), tap_(tap), rng_(args.seed), rd1_(rng_, "res_grant 1"), rd2_(rng_, "res_grant 2")
    {
        dut_->cmd_valid_i = 0;
        dut_->res_grant_i = 0;
        for (auto &m : rows_)
            m.resize(static_cast<size_t>(T) * D);
        gain_.resize(D);
        dut_.reset();
    }

    Command random_command(int work)
    {
        Command c{};
        c.work = work;
        c.rows = static_cast<int>(rng_.range(1, T));
        c.cols = 64 * static_cast<int>(rng_.range(1, D / 64));
        c.n = c.cols - (rng_.chance(50) ? 0 : static_cast<int>(rng_.range(0, 63)));
        if (rng_.chance(10))
            c.n = static_cast<int>(rng_.range(1, c.cols));
        c.foreign = rng_.chance(20);
        c.own = static_cast<int>(rng_.range(0, c.cols - c.rows));
        c.eps = rng_.chance(10) ? 0.0f : rng_.chance(50) ? 1e-5f : 1e-12f;
        c.scale = static_cast<float>(rng_.unit() * 2);
        c.grad_scale = static_cast<float>(rng_.unit());
        for (int &p : c.pos)
            p = static_cast<int>(rng_.chance(80) ? rng_.range(0, c.cols) : rng_.range(0, 65535));
        return c;
    }

    // Sums beyond 2^46, of either sign; see near_tie.
    void fill_wide(const Command &c, bool tie)
    {
        fill(c, 1);
        const std::vector<float> y = near_tie(c.own + 1);
        for (int i = 0; i < c.rows; i++)
            for (int j = 0; j < c.cols; j++) {
                const float sign = (c.work == BACK && j % 2) || (c.work != BACK && i % 2) ? -1.0f : 1.0f;
                rows_[0][static_cast<size_t>(i * D + j)] = c.work == BACK ? sign : 1.0f;
                rows_[1][static_cast<size_t>(i * D + j)] =
                    sign * (!tie ? 0x1.fffffep0f : j < static_cast<int>(y.size()) ? y[static_cast<size_t>(j)] : 0.0f);
            }
        for (float &g : gain_)
            g = 0x1.fffffep0f;
    }

    // Rows of one number, whose mean is off by a unit in its last place: with an epsilon of 1e-12 that is a value of 976
    // after LayerNorm, and 512 is no number any more (rule 19).
    void fill_constant(const Command &c)
    {
        fill(c, 1);
        for (int i = 0; i < c.rows; i++) {
            const float x = 0x1p13f * static_cast<float>(1 + rng_.unit());
            for (int j = 0; j < c.cols; j++)
                rows_[0][static_cast<size_t>(i) * D + static_cast<size_t>(j)] = j < c.n ? x : 0.0f;
        }
    }

    // kind -1: any; so for both memories.
    void fill(const Command &c, int kind = -1)
    {
        for (auto &m : rows_)
            for (auto &x : m)
                x = mr_float(rng_.u32());
        bool soft = c.work >= SOFTMAX;
        for (int second = 0; second < 2; second++)
            for (int i = 0; i < c.rows; i++) {
                int k = kind >= 0 ? kind : static_cast<int>(rng_.range(0, 9));
                int base = static_cast<int>(rng_.chance(60)   ? soft && !second ? rng_.range(120, 132) : rng_.range(110, 140)
                                            : rng_.chance(50) ? rng_.range(1, 254)
                                            : rng_.chance(50) ? rng_.range(1, 30)
                                                              : rng_.range(230, 254));
                float *x = &rows_[second][static_cast<size_t>(i) * D];
                int live = soft || c.foreign ? c.cols : c.n;
                for (int j = 0; j < c.cols; j++)
                    x[j] = j < live ? bench::random_value(rng_, k, base) : 0.0f;
                if (k == 9) {
                    static const uint32_t kBad[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0xFF800001};
                    x[rng_.range(0, c.cols - 1)] = mr_float(kBad[rng_.range(0, 3)]);
                }
            }
        int base = static_cast<int>(rng_.chance(80) ? 127 : rng_.range(1, 250));
        for (int j = 0; j < D; j++)
            gain_[j] = j < c.n || c.foreign ? bench::random_value(rng_, 6, base) : 0.0f;
        if (rng_.chance(5))
            gain_[rng_.range(0, c.n - 1)] = mr_qnan();
    }

    // The cycles, or 0.
    uint64_t run(const Command &c, bool stalls)
    {
        std::vector<float> want[2] = {rows_[0], rows_[1]};
        bool nan = expect(c, want), saw_nan = false;
        for (bench::Stall *s : {&rd1_, &rd2_})
            stalls ? s->random() : s->density(100);
        const struct mr_command m = command(c);
        bool started = false, done = false;
        uint64_t start = dut_.cycles();
        while (!done && dut_.cycles() - start < 1000000) {
            bench::put_bytes(dut_->cmd_i, &m, 64);
            dut_->cmd_rows_i = static_cast<uint16_t>(c.rows);
            dut_->cmd_valid_i = !started;
            dut_->res_grant_i = static_cast<uint8_t>(rd1_.want() | rd2_.want() << 1);
            drive(c);
            dut_.settle();
            rd1_.saw(dut_->res_ren_o & 1);
            rd2_.saw(dut_->res_ren_o & 2);
            started |= dut_->cmd_ready_o;
            done = dut_->done_o;
            if (done && dut_->wr_en_o)
                return fail("done before all is written");
            saw_nan |= dut_->nan_o;
            look(c);
            dut_.edge();
        }
        dut_->cmd_valid_i = 0;
        if (!done || dut_->busy_o)
            return fail("hangs");
        uint64_t took = dut_.cycles() - start;
        if (nan != saw_nan)
            return fail("a NaN that is not told, or none that is");
        nans_ += nan;
        for (int second = 0; second < 2; second++)
            for (int i = 0; i < T * D; i++)
                if (mr_bits(rows_[second][i]) != mr_bits(want[second][i])) {
                    tap_.note("%s: memory %d, row %d of %d, column %d of %d (n %d): got %08x, want %08x", kName[c.work],
                              second + 1, i / D, c.rows, i % D, c.cols, c.n, mr_bits(rows_[second][i]), mr_bits(want[second][i]));
                    return 0;
                }
        words_[c.work] += static_cast<uint64_t>(c.rows * c.cols / V);
        return took;
    }

    bool covered() { return rd1_.covered(tap_) & rd2_.covered(tap_); }
    uint64_t words_[4] = {};
    int nans_ = 0;

  private:
    uint64_t fail(const char *what)
    {
        tap_.note("%s", what);
        return 0;
    }

    static struct mr_command command(const Command &c)
    {
        struct mr_command m = {};
        mr_command_set(&m, MR_F_MOVE_ROWS_WORK, kWork[c.work]);
        mr_command_set(&m, MR_F_MOVE_ROWS_COLS, static_cast<uint32_t>(c.cols));
        mr_command_set(&m, MR_F_MOVE_ROWS_OWN_COL, static_cast<uint32_t>(c.own));
        mr_command_set(&m, MR_F_MOVE_ROWS_SCALE, mr_bits(c.scale));
        mr_command_set(&m, MR_F_MOVE_ROWS_GRAD_SCALE, mr_bits(c.grad_scale));
        const struct mr_ln_const ln = mr_ln_consts(c.n, c.eps);
        mr_command_set(&m, MR_F_MOVE_ROWS_N, static_cast<uint32_t>(c.n));
        mr_command_set(&m, MR_F_MOVE_ROWS_INV_N, mr_bits(ln.inv_n));
        mr_command_set(&m, MR_F_MOVE_ROWS_INV_N2, mr_bits(ln.inv_n2));
        mr_command_set(&m, MR_F_MOVE_ROWS_EPS, mr_bits(ln.eps));
        return m;
    }

    // Whether a result is NaN.
    bool expect(const Command &c, std::vector<float> want[2])
    {
        const struct mr_ln_const ln = mr_ln_consts(c.n, c.eps);
        std::vector<float> scaled(D);
        std::vector<int32_t> p(D);
        bool nan = false;
        for (int i = 0; i < c.rows; i++) {
            const float *x = &rows_[0][static_cast<size_t>(i) * D], *y = &rows_[1][static_cast<size_t>(i) * D];
            float *out = &want[c.work == BACK || c.work == SOFTMAX_BACK][static_cast<size_t>(i) * D];
            const int own = c.own + i;
            const struct mr_softmax_row row = {x, c.pos[i] > own ? 0 : own - c.pos[i], own, c.scale, scaled.data(), p.data()};
            if (c.work == GAIN)
                mr_norm_gain(&ln, x, y, c.cols, out);
            else if (c.work == BACK)
                mr_norm_back(&ln, x, y, gain_.data(), c.cols, out);
            else if (c.work == SOFTMAX)
                mr_softmax(&row, c.cols, out);
            else
                mr_softmax_back(&row, y, c.grad_scale, c.cols, out);
            for (int j = 0; j < c.cols; j++)
                nan |= out[j] != out[j];
        }
        return nan;
    }

    // What was asked for in the cycle before, the gains in the one before that.
    void drive(const Command &c)
    {
        dut_->row_rdata_i = static_cast<uint16_t>(pos_ >= 0 ? c.pos[pos_ % T] : static_cast<int>(rng_.u32()));
        for (int l = 0; l < V; l++) {
            auto word = [&](int at, const std::vector<float> &m) {
                return at < 0 ? rng_.u32() : mr_bits(m[static_cast<size_t>(at * V + l) % m.size()]);
            };
            bench::set(dut_->res1_rdata_i, 32 * l, 32, word(read_[0], rows_[0]));
            bench::set(dut_->res2_rdata_i, 32 * l, 32, word(read_[1], rows_[1]));
            bench::set(dut_->vec_rdata_i, 32 * l, 32, word(vec_[1], gain_));
        }
    }

    void look(const Command &c)
    {
        pos_ = dut_->row_ren_o ? static_cast<int>(dut_->row_raddr_o) : -1;
        for (int m = 0; m < 2; m++)
            read_[m] = dut_->res_ren_o & dut_->res_grant_i & 1 << m ? static_cast<int>(dut_->res_raddr_o) : -1;
        vec_[1] = vec_[0];
        vec_[0] = dut_->vec_ren_o ? static_cast<int>(dut_->vec_raddr_o) : -1;
        for (int m = 0; m < 2; m++)
            if (dut_->wr_en_o & 1 << m)
                for (int l = 0; l < V; l++)
                    rows_[m][static_cast<size_t>(dut_->wr_addr_o) * V + static_cast<size_t>(l)] =
                        mr_float(static_cast<uint32_t>(bench::get(dut_->wr_data_o, 32 * l, 32)));
    }

    bench::Dut<Vdut> dut_;
    bench::Tap &tap_;
    bench::Rng rng_;
    bench::Stall rd1_, rd2_;
    std::vector<float> rows_[2], gain_;
    int pos_ = -1, read_[2] = {-1, -1}, vec_[2] = {-1, -1};
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    Bench b(args, tap);
    const int cases = args.cases_or(400);
    for (int work = 0; work < 4; work++) {
        bool good = true;
        for (int k = 0; k < cases && good; k++) {
            Command c = b.random_command(work);
            b.fill(c, k == 0 ? 0 : k == 1 ? 9 : -1);
            good = b.run(c, k % 4 != 3) != 0;
        }
        tap.ok(good, std::string(kName[work]) + ": " + std::to_string(b.words_[work]) + " words as the C model");
    }
    tap.ok(b.nans_ != 0 && b.covered(), "row_alu: NaN told, ports taken by others");
    for (int work = 0; work < 4; work++) {
        Command c = b.random_command(work);
        c.cols = c.n = D;
        c.rows = T;
        c.own = D - T;
        for (int &p : c.pos)
            p = 65535;
        bool good = true;
        for (int kind : {5, 1, 6}) {
            b.fill(c, kind);
            good &= b.run(c, true) != 0;
        }
        for (bool tie : {false, true}) {
            Command wide = c;
            wide.rows = tie ? 2 : T;
            wide.own = D - wide.rows;
            b.fill_wide(wide, tie);
            good &= b.run(wide, true) != 0;
        }
        Command constant = c;
        constant.n = D - 1;
        constant.eps = 1e-12f;
        b.fill_constant(constant);
        good &= b.run(constant, true) != 0;
        b.fill(c, 6);
        const uint64_t took = b.run(c, false);
        // All words are seen but for the last ones of a row.
        const uint64_t words = work == GAIN ? 4 : work == BACK ? 8 : work == SOFTMAX ? 4 : 6;
        const uint64_t each = took / T, most = words * ROW + 110 + 2 * static_cast<uint64_t>(__builtin_ctz(V));
        tap.note("%s: %llu cycles a row of %d words", kName[work], static_cast<unsigned long long>(each), ROW);
        tap.ok(good && took != 0 && each <= most && each >= (words - 1) * ROW, std::string(kName[work]) + ": longest rows, cycles");
    }
    return tap.done();
}
