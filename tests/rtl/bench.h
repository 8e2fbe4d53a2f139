// SPDX-License-Identifier: Apache-2.0
// What every RTL bench shares: random numbers, TAP output, a clock, stall generators and access to
// ports of any width. The bench includes "Vdut.h" before this file.
//
//   int main(int argc, char **argv) {
//       bench::Args args(argc, argv);                 // --seed S, --cases K, +verilator+...
//       bench::Tap tap;
//       bench::Dut<Vdut> dut(args);                   // clk_i, rst_ni
//       dut.reset();
//       ...   set inputs; dut.settle(); sample outputs and handshakes; dut.edge(); ...
//       tap.ok(good, "quant: random blocks");
//       return tap.done();
//   }
//
// Cycle discipline: inputs are set while the clock is low, settle() evaluates the combinational
// outputs, edge() is the rising edge. A handshake happens at edge() if valid and ready are both high
// after settle().
#ifndef MILLRACE_TESTS_RTL_COMMON_BENCH_H
#define MILLRACE_TESTS_RTL_COMMON_BENCH_H

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <verilated.h>
#if VM_COVERAGE
#include <verilated_cov.h>
#endif

double sc_time_stamp(); // Verilator wants one in the program

namespace bench {

// splitmix64: small, seedable, good enough for stimuli.
class Rng {
  public:
    explicit Rng(uint64_t seed = 1) : s_(seed) {}

    uint64_t u64()
    {
        uint64_t z = (s_ += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    uint32_t u32() { return static_cast<uint32_t>(u64() >> 32); }
    // Uniform in lo..hi, both included.
    int64_t range(int64_t lo, int64_t hi)
    {
        return lo + static_cast<int64_t>(u64() % static_cast<uint64_t>(hi - lo + 1));
    }
    bool chance(int percent) { return range(0, 99) < percent; }
    double unit() { return static_cast<double>(u64() >> 11) * 0x1p-53; }

  private:
    uint64_t s_;
};

// --seed S and --cases K; everything is handed to Verilator too (+verilator+rand+reset+2 ..).
struct Args {
    uint64_t seed = 1;
    int cases = 0; // 0: the bench's own default
    int argc;
    char **argv;

    Args(int c, char **v) : argc(c), argv(v)
    {
        for (int i = 1; i < c; i++) {
            if (!strcmp(v[i], "--seed") && i + 1 < c)
                seed = strtoull(v[++i], nullptr, 0);
            else if (!strcmp(v[i], "--cases") && i + 1 < c)
                cases = atoi(v[++i]);
        }
    }
    int cases_or(int dflt) const { return cases > 0 ? cases : dflt; }
};

class Tap {
  public:
    // One test point; returns `good`.
    bool ok(bool good, const std::string &name)
    {
        printf("%sok %d - %s\n", good ? "" : "not ", ++n_, name.c_str());
        fflush(stdout);
        bad_ += !good;
        return good;
    }
    // A comment line. Call it for the first few mismatches of a test, not for all.
    __attribute__((format(printf, 2, 3))) void note(const char *fmt, ...)
    {
        va_list ap;
        va_start(ap, fmt);
        fputs("# ", stdout);
        vprintf(fmt, ap);
        fputc('\n', stdout);
        va_end(ap);
    }
    // The plan; the result is main's exit status.
    int done()
    {
        printf("1..%d\n", n_);
        return bad_ ? 1 : 0;
    }

  private:
    int n_ = 0, bad_ = 0;
};

// One handshake port driven by the bench. want() says whether the bench offers (valid) or accepts
// (ready) in this cycle, in random runs of go and stop with changing density. Drivers of `valid` must
// not withdraw: once offered, keep valid up until the handshake, and ask again only after it.
// saw(other) after settle(): counts the cycles in which this side held up the other one.
class Stall {
  public:
    Stall(Rng &rng, std::string name) : rng_(rng), name_(std::move(name)) {}

    // percent of cycles that go; 100 switches stalls off. random() picks a new density now and then.
    void density(int percent) { fixed_ = percent; }
    void random() { fixed_ = -1; }

    bool want()
    {
        if (fixed_ >= 0) {
            go_ = fixed_ >= 100 || rng_.chance(fixed_);
            return go_;
        }
        if (left_-- <= 0) {
            static const int kDensity[] = {100, 100, 90, 50, 20, 3, 0};
            left_ = static_cast<int>(rng_.range(1, 60));
            now_ = kDensity[rng_.range(0, 6)];
        }
        go_ = now_ == 100 || rng_.chance(now_);
        return go_;
    }
    void saw(bool other)
    {
        if (other && !go_)
            stalls_++;
    }
    uint64_t stalls() const { return stalls_; }
    bool stopped() const { return fixed_ == 0; }
    // Prints the coverage line; false if this port never stalled the other side.
    bool covered(Tap &tap) const
    {
        tap.note("stalls %s %llu", name_.c_str(), static_cast<unsigned long long>(stalls_));
        return stalls_ != 0;
    }

  private:
    Rng &rng_;
    std::string name_;
    int fixed_ = -1, left_ = 0, now_ = 100;
    bool go_ = false;
    uint64_t stalls_ = 0;
};

// The model with its context and clock.
template <class V> class Dut {
  public:
    explicit Dut(const Args &args) : program_(args.argv[0])
    {
        ctx_ = std::make_unique<VerilatedContext>();
        ctx_->commandArgs(args.argc, args.argv);
        v_ = std::make_unique<V>(ctx_.get());
        v_->clk_i = 0;
        v_->rst_ni = 0;
        v_->eval();
    }
    ~Dut()
    {
        v_->final();
#if VM_COVERAGE // make coverage: the lines that were executed, a file beside the program for each model
        static int n = 0;
        ctx_->coveragep()->write((program_ + "." + std::to_string(n++) + ".dat").c_str());
#endif
    }

    V *operator->() { return v_.get(); }
    V &operator*() { return *v_; }

    void settle() { v_->eval(); }
    void edge()
    {
        v_->clk_i = 1;
        v_->eval();
        v_->clk_i = 0;
        cycles_++;
    }
    void tick()
    {
        settle();
        edge();
    }
    void reset(int n = 3)
    {
        v_->rst_ni = 0;
        for (int i = 0; i < n; i++)
            tick();
        v_->rst_ni = 1;
    }
    uint64_t cycles() const { return cycles_; }

  private:
    std::string program_;
    std::unique_ptr<VerilatedContext> ctx_;
    std::unique_ptr<V> v_;
    uint64_t cycles_ = 0;
};

// Ports: CData/SData/IData/QData or VlWide<N>, bits [lsb +: width], width <= 64.
template <class P> inline uint64_t get(const P &p, int lsb = 0, int width = 64)
{
    uint64_t m = width >= 64 ? ~0ull : (1ull << width) - 1;
    return (static_cast<uint64_t>(p) >> lsb) & m;
}
template <std::size_t N>
inline uint64_t get(const VlWide<N> &p, int lsb = 0, int width = 64)
{
    uint64_t r = 0;
    for (int i = 0; i < width;) {
        std::size_t w = static_cast<std::size_t>((lsb + i) / 32);
        int b = (lsb + i) % 32, n = 32 - b < width - i ? 32 - b : width - i;
        uint64_t part = (p[w] >> b) & ((n == 32) ? 0xFFFFFFFFull : (1ull << n) - 1);
        r |= part << i;
        i += n;
    }
    return r;
}
template <class P> inline void set(P &p, int lsb, int width, uint64_t x)
{
    uint64_t m = width >= 64 ? ~0ull : (1ull << width) - 1;
    p = static_cast<P>((static_cast<uint64_t>(p) & ~(m << lsb)) | ((x & m) << lsb));
}
template <std::size_t N> inline void set(VlWide<N> &p, int lsb, int width, uint64_t x)
{
    for (int i = 0; i < width;) {
        std::size_t w = static_cast<std::size_t>((lsb + i) / 32);
        int b = (lsb + i) % 32, n = 32 - b < width - i ? 32 - b : width - i;
        uint32_t m = n == 32 ? ~0u : ((1u << n) - 1);
        p[w] = (p[w] & ~(m << b)) | ((static_cast<uint32_t>(x >> i) & m) << b);
        i += n;
    }
}
// Whole port from or to little-endian bytes.
template <std::size_t N> inline void put_bytes(VlWide<N> &p, const void *src, std::size_t bytes)
{
    memcpy(&p[0], src, bytes);
}
template <std::size_t N> inline void take_bytes(const VlWide<N> &p, void *dst, std::size_t bytes)
{
    memcpy(dst, &p[0], bytes);
}

} // namespace bench

// Each bench is one translation unit with its main().
double sc_time_stamp()
{
    return 0;
}

#endif
