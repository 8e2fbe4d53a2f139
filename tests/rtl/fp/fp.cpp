// SPDX-License-Identifier: Apache-2.0
// The fp units against host/cmodel/num.c: the cross product of special values, then random operands
// of several kinds; valid comes and goes at random. No handshake: fixed latency, nothing to stall. num.c itself is held against the host's IEEE
// arithmetic where nothing is flushed.
#include "Vdut.h"
#include "bench.h"

#include <cmath>
#include <deque>
#include <vector>

extern "C" {
#include "cmodel/num.h"
}

namespace {

constexpr int kLanes = 4;

const uint32_t kSpecial[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000,
    0x00800001, 0x00FFFFFF, 0x01000000, 0x01000001, 0x81000000, 0x3F800000, 0xBF800000, 0x3F7FFFFF,
    0x3F800001, 0x3F000000, 0x40000000, 0x3FFFFFFF, 0x3F000001, 0x33800000, 0x33800001, 0x34000000,
    0x33000000, 0xB3800000, 0xB3800001, 0x4B000000, 0x4B7FFFFF, 0x4B800000, 0x4B800001, 0xCB800001,
    0x7F7FFFFF, 0xFF7FFFFF, 0x7F000000, 0x7E800000, 0x7F000001, 0x73000000, 0x73800000, 0x72800000,
    0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x7FFFFFFF, 0x20000000, 0x1F800000,
    0x1FFFFFFF, 0x5F800000, 0x40A00000, 0xC0A00000, 0x409FFFFF, 0xC09FFFFF, 0x41880000, 0x4187FFFF,
};

uint32_t any_float(bench::Rng &r)
{
    return r.u32();
}

// Second operand with an exponent near the first's: cancellation and alignment.
uint32_t close_to(bench::Rng &r, uint32_t a)
{
    uint32_t u = r.u32();
    int e = static_cast<int>((a >> 23) & 255) + static_cast<int>(r.range(-28, 28));
    if (r.chance(30))
        e = static_cast<int>((a >> 23) & 255) + static_cast<int>(r.range(-2, 2));
    e = e < 0 ? 0 : e > 255 ? 255 : e;
    if (r.chance(20))
        u = (a & 0x7FFFFF) + static_cast<uint32_t>(r.range(-4, 4));
    return (u & 0x807FFFFF) | static_cast<uint32_t>(e) << 23;
}

// Few mantissa bits set: ties.
uint32_t sparse(bench::Rng &r)
{
    uint32_t u = r.u32() & 0xFF800000;
    for (int i = 0; i < 3; i++)
        u |= 1u << r.range(0, 22);
    return r.chance(50) ? u : u ^ 0x7FFFFF;
}

// Second operand so that the product lies near the smallest or the largest number.
uint32_t edge_of(bench::Rng &r, uint32_t a)
{
    int ea = static_cast<int>((a >> 23) & 255);
    int e = (r.chance(50) ? 127 : 381) - ea + static_cast<int>(r.range(-2, 1));
    e = e < 0 ? 0 : e > 255 ? 255 : e;
    return (r.u32() & 0x807FFFFF) | static_cast<uint32_t>(e) << 23;
}

// Operands whose 48-bit product ends in a given 24-bit pattern: ties of the multiplier's rounding and
// their neighbours, which random operands practically never give.
void product_tie(bench::Rng &r, uint32_t &a, uint32_t &b)
{
    static const uint32_t kTail[] = {0x800000, 0x800001, 0x7FFFFF, 0x400000, 0x400001,
                                     0x3FFFFF, 0xC00000, 0xC00001, 0x000001};
    uint32_t sa = (r.u32() & 0x7FFFFF) | 0x800001, inv = 1, sb;
    for (int i = 0; i < 5; i++) // Newton, modulo 2^32
        inv *= 2 - sa * inv;
    sb = (kTail[r.range(0, 8)] * inv) & 0xFFFFFF;
    if (!(sb & 0x800000))
        sb = 0x800000 | (sb & 0x7FFFFF); // another tail, still a fair case
    a = (r.u32() & 0x80000000) | static_cast<uint32_t>(r.range(64, 190)) << 23 | (sa & 0x7FFFFF);
    b = (r.u32() & 0x80000000) | static_cast<uint32_t>(r.range(64, 190)) << 23 | (sb & 0x7FFFFF);
}

struct In {
    uint32_t a[kLanes], b[kLanes];
    int64_t acc[kLanes];
    int exp[kLanes];
};

struct Pair {
    uint32_t a, b;
};

bool finite(uint32_t a)
{
    return (a & 0x7F800000) != 0x7F800000;
}

bool is_inf(uint32_t a)
{
    return (a & 0x7FFFFFFF) == 0x7F800000;
}

// One output port: what is expected from it, in order.
struct Port {
    const char *name;
    std::deque<uint32_t> want;
    std::deque<bool> ovf;
    int latency; // as mr_fp_pkg says
    std::deque<uint64_t> at = {}; // cycles in which operands were sent
    long seen = 0, bad = 0;
};

// RSQRT_LAT: one operation at a time.
constexpr int kRsqrt = 18;

class Bench {
  public:
    Bench(bench::Args &args, bench::Tap &tap) : dut_(args), tap_(tap), rng_(args.seed)
    {
        dut_->valid_i = 0;
        dut_->rsqrt_valid_i = 0;
        dut_.reset();
    }

    void send(const In &in)
    {
        while (!rng_.chance(90))
            cycle();
        for (int l = 0; l < kLanes; l++) {
            bench::set(dut_->a_i, 32 * l, 32, in.a[l]);
            bench::set(dut_->b_i, 32 * l, 32, in.b[l]);
            bench::set(dut_->acc_i, 48 * l, 48, static_cast<uint64_t>(in.acc[l]));
            bench::set(dut_->exp_i, 11 * l, 11, static_cast<uint64_t>(in.exp[l]));
        }
        function_ = function_ == MR_FUNCTION_RELU ? MR_FUNCTION_GELU_NEW : function_ + 1;
        dut_->function_i = static_cast<uint8_t>(function_);
        bool oa = false, om = false, oc = false;
        for (int l = 0; l < kLanes; l++) {
            float a = mr_float(in.a[l]), b = mr_float(in.b[l]);
            bool f = finite(in.a[l]) && finite(in.b[l]);
            uint32_t s = mr_bits(mr_fadd(a, b)), p = mr_bits(mr_fmul(a, b));
            uint32_t c = mr_bits(mr_acc_to_f32(in.acc[l], in.exp[l]));
            add_.want.push_back(s);
            mul_.want.push_back(p);
            cvt_.want.push_back(c);
            oa |= f && is_inf(s);
            om |= f && is_inf(p);
            oc |= is_inf(c);
            max_.want.push_back(mr_bits(mr_fmax(a, b)));
            scale_.want.push_back(mr_bits(mr_fscale(a, in.exp[l])));
            gelu_.want.push_back(mr_bits(mr_function(function_, a)));
            gt_.want.push_back(mr_in(a) > mr_in(b));
            nan_.push_back(a != a || b != b);
        }
        float first = mr_float(in.a[0]);
        exp2_.want.push_back(mr_exp2_u16(mr_float(in.a[0] & 0x7FFFFFFF)));
        recip_.want.push_back(mr_bits(mr_recip(first)));
        bool rsqrt = dut_.cycles() - rsqrt_at_ >= kRsqrt;
        if (rsqrt) {
            rsqrt_.want.push_back(mr_bits(mr_rsqrt(mr_fadd(first, mr_float(in.a[0] & 1 ? in.b[0] : 0)))));
            rsqrt_at_ = dut_.cycles();
        }
        add_.ovf.push_back(oa);
        mul_.ovf.push_back(om);
        cvt_.ovf.push_back(oc);
        for (Port *p : {&add_, &mul_, &cvt_, &max_, &scale_, &gelu_, &exp2_, &recip_})
            p->at.push_back(dut_.cycles());
        if (rsqrt)
            rsqrt_.at.push_back(dut_.cycles());
        dut_->valid_i = 1;
        dut_->rsqrt_valid_i = rsqrt;
        cycle();
        dut_->valid_i = 0;
        dut_->rsqrt_valid_i = 0;
        for (int l = 0; l < kLanes; l++) { // the operands go away
            bench::set(dut_->a_i, 32 * l, 32, rng_.u32());
            bench::set(dut_->b_i, 32 * l, 32, rng_.u32());
        }
    }

    void idle() { cycle(); }

    void drain()
    {
        for (int i = 0; i < 20; i++)
            cycle();
    }

    void verdict(const char *what)
    {
        drain();
        for (Port *p : {&add_, &mul_, &cvt_, &max_, &scale_, &gt_, &gelu_, &exp2_, &recip_, &rsqrt_}) {
            tap_.ok(p->bad == 0 && p->want.empty() && p->seen > 0,
                    std::string(p->name) + ": " + what + ", " + std::to_string(p->seen) + " results");
            p->bad = p->seen = 0;
            p->want.clear();
            p->ovf.clear();
            p->at.clear();
        }
    }

  private:
    template <class W> void take(Port &p, bool valid, const W &y, int ovf = -1, int lanes = kLanes)
    {
        if (!valid) {
            p.bad += ovf > 0;
            return;
        }
        if (p.at.empty() || dut_.cycles() - p.at.front() != static_cast<uint64_t>(p.latency)) {
            if (p.bad++ < 5)
                tap_.note("%s: valid at the wrong time", p.name);
        }
        if (!p.at.empty())
            p.at.pop_front();
        for (int l = 0; l < lanes; l++) {
            uint32_t got = static_cast<uint32_t>(bench::get(y, 32 * l, 32));
            uint32_t want = p.want.empty() ? ~got : p.want.front();
            if (!p.want.empty())
                p.want.pop_front();
            p.seen++;
            if (got != want && p.bad++ < 5)
                tap_.note("%s: got %08x, want %08x", p.name, got, want);
        }
        if (ovf >= 0 && !p.ovf.empty()) {
            if (p.ovf.front() != (ovf != 0) && p.bad++ < 5)
                tap_.note("%s: overflow flag is %d", p.name, ovf);
            p.ovf.pop_front();
        }
    }

    void cycle()
    {
        dut_.settle();
        take(add_, dut_->add_valid_o, dut_->add_o, dut_->add_ovf_o);
        take(mul_, dut_->mul_valid_o, dut_->mul_o, dut_->mul_ovf_o);
        take(cvt_, dut_->cvt_valid_o, dut_->cvt_o, dut_->cvt_ovf_o);
        take(max_, dut_->fn_valid_o, dut_->max_o);
        take(scale_, dut_->fn_valid_o, dut_->scale_o);
        take(gelu_, dut_->gelu_valid_o, dut_->gelu_o);
        take(exp2_, dut_->exp2_valid_o, dut_->exp2_o, -1, 1);
        take(recip_, dut_->recip_valid_o, dut_->recip_o, -1, 1);
        take(rsqrt_, dut_->rsqrt_valid_o, dut_->rsqrt_o, -1, 1);
        if (dut_->fn_valid_o) {
            for (int l = 0; l < kLanes && !gt_.want.empty(); l++) {
                bool got = (dut_->gt_o >> l) & 1;
                gt_.bad += !nan_.front() && got != (gt_.want.front() != 0);
                gt_.want.pop_front();
                nan_.pop_front();
                gt_.seen++;
            }
        }
        dut_.edge();
    }

    bench::Dut<Vdut> dut_;
    bench::Tap &tap_;
    bench::Rng rng_;
    Port add_{"add", {}, {}, 3}, mul_{"mul", {}, {}, 3}, cvt_{"acc2f", {}, {}, 3}, max_{"max", {}, {}, 1},
        scale_{"scale", {}, {}, 1}, gt_{"greater", {}, {}, 1}, gelu_{"gelu", {}, {}, 10}, exp2_{"exp2", {}, {}, 6},
        recip_{"recip", {}, {}, 11}, rsqrt_{"rsqrt", {}, {}, kRsqrt};
    uint64_t rsqrt_at_ = 0;
    unsigned function_ = MR_FUNCTION_GELU_NEW; // a beat each in turn
    std::deque<bool> nan_;
};

int64_t random_acc(bench::Rng &r)
{
    int bits = static_cast<int>(r.range(0, 47));
    int64_t v = static_cast<int64_t>(r.u64() & ((1ull << bits) - 1));
    if (r.chance(30) && bits > 26) // ties and near ties
        v = (v & ~((1ll << (bits - 24)) - 1)) + (1ll << (bits - 25)) + r.range(-1, 1);
    if (r.chance(10)) // only the last bit tells it from a tie
        v = (1ll << 46) | (r.range(0, 1 << 23) << 23) | (1ll << 22) | r.range(0, 1);
    return r.chance(50) ? -v : v;
}

void model_against_host(bench::Tap &tap, bench::Rng &r, int n)
{
    long bad = 0, used = 0;
    for (int i = 0; i < n; i++) {
        uint32_t ua = any_float(r), ub = i % 2 ? any_float(r) : close_to(r, ua);
        volatile float a = mr_float(ua), b = mr_float(ub);
        if (!std::isnormal(a) || !std::isnormal(b))
            continue;
        volatile float s = a + b, p = a * b;
        if (s == 0 || std::fpclassify(s) != FP_SUBNORMAL) {
            bad += mr_bits(mr_fadd(a, b)) != mr_bits(s);
            used++;
        }
        if (std::fabs(p) > 0x1p-126f) {
            bad += mr_bits(mr_fmul(a, b)) != mr_bits(p);
            used++;
        }
    }
    tap.ok(bad == 0 && used > n / 2, "num.c: add and multiply as the host's IEEE, " +
                                         std::to_string(used) + " results");
}

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    bench::Rng r(args.seed);
    Bench b(args, tap);
    int cases = args.cases_or(1000000);

    model_against_host(tap, r, cases);

    std::vector<Pair> pairs;
    for (uint32_t x : kSpecial)
        for (uint32_t y : kSpecial)
            pairs.push_back({x, y});
    const int64_t top = (1ll << 47) - 1;
    const int64_t accs[] = {0, 1, -1, top, -top, 1ll << 24, (1ll << 24) + 1, (1ll << 25) - 1,
                            (1ll << 46), -(1ll << 46), 0x1000001, -0x1000003, 0xFFFFFF, 0x1FFFFFF};
    const int exps[] = {-1024, -1023, -200, -173, -172, -171, -150, -149, -148, -127, -126, -125,
                        -30,   0,     1,    79,   80,   81,   103,  104,  105,  127,  128,  1023};
    std::size_t i = 0, ia = 0, ie = 0;
    while (i < pairs.size() || ia < 14 * 24 * 4) {
        In in;
        for (int l = 0; l < kLanes; l++) {
            in.a[l] = pairs[i % pairs.size()].a;
            in.b[l] = pairs[i % pairs.size()].b;
            in.acc[l] = accs[ia++ % 14];
            in.exp[l] = exps[ie / 14 % 24];
            i++;
            ie++;
        }
        b.send(in);
    }
    // The flag is that of all lanes: products and sums that overflow by their rounding alone, or just do not, each by
    // itself.
    const uint32_t edges[][2] = {{0x7F7FFFFE, 0x3F800001}, {0x7F7FFFFD, 0x3F800001},
                                 {0x7F7FFFFF, 0x73000000}, {0x7F7FFFFF, 0x72FFFFFF}};
    for (const auto &e : edges)
        for (int l = 0; l < kLanes; l++) {
            In in = {};
            in.a[l] = e[0];
            in.b[l] = e[1];
            b.send(in);
        }
    b.verdict("special values");

    // The functions' own ranges: every segment of gelu and exp2 with both its ends, all seeds.
    for (int k = 0; k < 320 * 8; k++) {
        In in = {};
        for (int l = 0; l < kLanes; l++)
            in.a[l] = mr_bits((static_cast<float>(k / 8) + static_cast<float>(r.unit())) / 64.0f) |
                      r.u32() << 31;
        b.send(in);
        in.a[0] = mr_bits(static_cast<float>(k) / 512.0f) + static_cast<uint32_t>(r.range(-1, 1));
        b.send(in);
        in.a[0] = (r.chance(20) ? 0u : static_cast<uint32_t>(r.range(1, 254)) << 23) |
                  static_cast<uint32_t>(k & 127) << 16 | (r.u32() & 0xFFFF);
        b.send(in);
        for (int i = 0; i <= kRsqrt; i++) // lets rsqrt take part
            b.idle();
        in.a[0] = static_cast<uint32_t>(r.range(1, 254)) << 23 |
                  static_cast<uint32_t>(k & 127) << 16 | (r.u32() & 0xFFFF);
        b.send(in);
        for (int l = 0; l < kLanes; l++)
            in.a[l] = mr_bits(static_cast<float>(r.unit() * (l == 0 ? 18.0 : 5.5)));
        b.send(in);
    }
    b.verdict("table ranges");

    for (int k = 0; k < cases; k += kLanes) {
        In in;
        for (int l = 0; l < kLanes; l++) {
            switch (r.range(0, 5)) {
            case 0:
                in.a[l] = any_float(r);
                in.b[l] = any_float(r);
                break;
            case 1:
                in.a[l] = sparse(r);
                in.b[l] = sparse(r);
                break;
            case 2:
                in.a[l] = any_float(r);
                in.b[l] = edge_of(r, in.a[l]);
                break;
            case 3:
                product_tie(r, in.a[l], in.b[l]);
                break;
            default:
                in.a[l] = r.chance(30) ? sparse(r) : any_float(r);
                in.b[l] = close_to(r, in.a[l]);
            }
            in.acc[l] = random_acc(r);
            in.exp[l] = static_cast<int>(r.chance(60) ? r.range(-200, 120) : r.range(-1024, 1023));
        }
        b.send(in);
    }
    b.verdict("random operands");
    tap.note("stalls: no handshake, fixed latency");
    return tap.done();
}
