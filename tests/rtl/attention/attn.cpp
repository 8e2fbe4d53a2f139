// SPDX-License-Identifier: Apache-2.0
// mr_attn against the arithmetic specification (host/cmodel/num.h): a KV store, q, prefix maxima and row
// table are made up, served with random latency and stalls, and every block that the unit writes must
// be the reference's, bit for bit, exactly once. PM_LOAD likewise. Decode cycles are held to a formula.
#include "Vdut.h"

#include "bench.h"

extern "C" {
#include "cmodel/num.h"
}

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <vector>

#if defined VARIANT_n1 || defined VARIANT_n1dsp || defined VARIANT_n1fold
struct P { static constexpr int N = 1, T = 32, SCORES = 2048, W_MAX = 1024, HEADS = 16, HP = 256; };
#elif defined VARIANT_n2 || defined VARIANT_n2train
struct P { static constexpr int N = 2, T = 32, SCORES = 4096, W_MAX = 1024, HEADS = 16, HP = 256; };
#elif defined VARIANT_n8 || defined VARIANT_n8train
struct P { static constexpr int N = 8, T = 32, SCORES = 8192, W_MAX = 512, HEADS = 8, HP = 128; };
#elif defined VARIANT_n16
struct P { static constexpr int N = 16, T = 32, SCORES = 4096, W_MAX = 256, HEADS = 4, HP = 128; };
#elif defined VARIANT_wide
struct P { static constexpr int N = 1, T = 8, SCORES = 2048, W_MAX = 4096, HEADS = 16, HP = 256; };
#elif defined VARIANT_small
struct P { static constexpr int N = 1, T = 32, SCORES = 2048, W_MAX = 64, HEADS = 1, HP = 64; };
#else
#error "no variant"
#endif
// Floats of a row of the memory that what is kept goes to; 0: without TRAIN.
#if defined VARIANT_n2train
static constexpr int ROW = 1088;
#elif defined VARIANT_n8train
static constexpr int ROW = 576;
#else
static constexpr int ROW = 0;
#endif
static constexpr int N = P::N, T = P::T, QKV_WORDS = 128, PM_WORDS = P::W_MAX / 64, KV_DEPTH = 128;

using bench::Rng;

// A block of 32: code and elements.
struct Blk {
    uint8_t code = 0;
    int8_t q[32] = {};
    bool operator==(const Blk &) const = default;
};

struct Seq {
    uint32_t kv_off = 0;
    int len = 0;
    std::vector<std::vector<Blk>> k, v; // [position][block]
};

struct Row {
    int seq = 0, pos = 0;
    bool cont = false;
    int end = 0; // 0: none, it sees its own position and those before
    int last() const { return end ? end - 1 : pos; }
};

struct Case {
    int heads = 1, hp = 64, layer = 0;
    bool two = false, keep = false, to_end = false;
    float scale = 0.1f;
    int q_base = 0, dst_base = 0, dst_slot = 0;
    uint32_t layer_beats = 0, v_beats = 0, pm_beats = 0;
    std::vector<Seq> seqs;
    std::vector<Row> rows;
    std::vector<std::vector<Blk>> q[2]; // [half][row][block]
    // Position whose prefix maxima PM_LOAD takes for a row; -1: zeros, -2: it leaves the row alone.
    int loaded(const Row &row) const { return to_end ? row.last() : row.cont ? -2 : row.pos - 1; }
    int blocks() const { return heads * hp / 32; }
    int words() const { return heads * hp / 64; }
    int sbw() const { return (blocks() + 63) / 64; }
    int rec() const { return sbw() + words(); }
};

// ---- stimuli --------------------------------------------------------------------------------------

struct Style {
    int lo = 119, hi = 130;    // codes
    int zero = 3, nan = 0;     // percent of blocks
    bool extreme = false;      // elements at the limits
};

static Blk random_block(Rng &r, const Style &s, bool kv)
{
    Blk b;
    if (static_cast<int>(r.range(0, 9999)) < s.nan) {
        b.code = 255;
        return b;
    }
    if (r.chance(s.zero))
        return b;
    b.code = static_cast<uint8_t>(r.range(s.lo, s.hi));
    if (b.code == 0)
        return b;
    for (int i = 0; i < 32; i++) {
        b.q[i] = static_cast<int8_t>(r.range(-127, 127));
        if (s.extreme)
            b.q[i] = r.chance(50) ? 127 : (kv && r.chance(50)) ? -128 : -127;
    }
    return b;
}

static void fill(Rng &r, Case &c, const Style &sq, const Style &sk, const Style &sv)
{
    for (Seq &s : c.seqs) {
        s.k.assign(static_cast<size_t>(s.len), {});
        s.v.assign(static_cast<size_t>(s.len), {});
        for (int p = 0; p < s.len; p++) {
            for (int b = 0; b < c.blocks(); b++) {
                s.k[static_cast<size_t>(p)].push_back(random_block(r, sk, true));
                s.v[static_cast<size_t>(p)].push_back(random_block(r, sv, true));
            }
        }
    }
    for (int h = 0; h < 2; h++)
        c.q[h].assign(c.rows.size(), std::vector<Blk>(static_cast<size_t>(c.blocks())));
    for (size_t i = 0; i < c.rows.size(); i++) {
        for (int b = 0; b < c.blocks(); b++) {
            Blk hi = random_block(r, sq, false);
            c.q[0][i][static_cast<size_t>(b)] = hi;
            Blk lo;
            if (hi.code == 255) {
                lo.code = 255;
            } else if (hi.code > 8 && !r.chance(10)) {
                Style sl = sq;
                sl.nan = 0;
                lo = random_block(r, sl, false);
                if (lo.code)
                    lo.code = static_cast<uint8_t>(r.range(1, hi.code - 7));
            }
            c.q[1][i][static_cast<size_t>(b)] = lo;
        }
    }
}

// ---- reference ------------------------------------------------------------------------------------

struct Out {
    Blk blk;
    bool first, lo;
};
using OutMap = std::map<std::pair<int, int>, Out>; // (row slot, word)

static int64_t dot(const Blk &a, const Blk &b)
{
    int64_t d = 0;
    for (int i = 0; i < 32; i++)
        d += a.q[i] * b.q[i];
    return d;
}

static uint8_t prefix_max(const Seq &s, int pos, int b)
{
    uint8_t m = 0;
    for (int p = 0; p <= pos; p++)
        m = std::max(m, s.v[static_cast<size_t>(p)][static_cast<size_t>(b)].code);
    return m;
}

// What is kept, by place in floats.
using KeptMap = std::map<int, uint32_t>;

static OutMap reference(const Case &c, KeptMap &kept)
{
    OutMap out;
    int per_head = c.hp / 32;
    for (size_t i = 0; i < c.rows.size(); i++) {
        const Row &row = c.rows[i];
        const Seq &s = c.seqs[static_cast<size_t>(row.seq)];
        std::vector<float> y(static_cast<size_t>(c.blocks()) * 32);
        for (int h = 0; h < c.heads; h++) {
            size_t b0 = static_cast<size_t>(h * per_head), b1 = b0 + static_cast<size_t>(per_head);
            int qmax = 0;
            for (size_t b = b0; b < b1; b++)
                qmax = std::max<int>(qmax, c.q[0][i][b].code);
            std::vector<float> t;
            float m = 0;
            for (int p = 0; p <= row.last(); p++) {
                const auto &k = s.k[static_cast<size_t>(p)];
                int kmax = 0;
                for (size_t b = b0; b < b1; b++)
                    kmax = std::max<int>(kmax, k[b].code);
                float x = mr_qnan();
                if (qmax != 255 && kmax != 255) {
                    int base = qmax + kmax;
                    int64_t acc = 0;
                    for (int half = 0; half < (c.two ? 2 : 1); half++)
                        for (size_t b = b0; b < b1; b++)
                            acc += mr_align(dot(c.q[half][i][b], k[b]),
                                            base - (c.q[half][i][b].code + k[b].code));
                    x = mr_fmul(mr_acc_to_f32(acc, MR_ACC_EXP_INT8(base)), c.scale);
                }
                t.push_back(x);
                m = p == 0 ? x : mr_fmax(m, x);
            }
            bool nan = false;
            uint64_t sum = 0;
            std::vector<uint32_t> prob;
            for (float x : t) {
                float d = mr_fsub(m, x);
                nan |= d != d;
                prob.push_back(mr_exp2_u16(d));
                sum += prob.back();
            }
            float recip = mr_recip(mr_u128_to_f32(false, sum, 0));
            for (size_t b = b0; b < b1; b++) {
                int pm = prefix_max(s, row.last(), static_cast<int>(b));
                for (int e = 0; e < 32; e++) {
                    int64_t acc = 0;
                    for (int p = 0; p <= row.last(); p++) {
                        const Blk &v = s.v[static_cast<size_t>(p)][b];
                        int64_t term = static_cast<int64_t>(prob[static_cast<size_t>(p)]) * v.q[e];
                        acc += (term * 4096) >> std::min(38, pm - v.code);
                    }
                    float f = mr_fmul(mr_acc_to_f32(acc, pm - 127 - 6 - 12), recip);
                    y[b * 32 + static_cast<size_t>(e)] = pm == 255 || nan ? mr_qnan() : f;
                }
            }
        }
        for (size_t e = 0; c.keep && ROW && e < y.size(); e++)
            kept[static_cast<int>(i) * ROW + static_cast<int>(e)] = mr_bits(y[e]);
        for (int b = 0; b < c.blocks(); b++) {
            int slot = static_cast<int>(i) * (c.two ? 2 : 1);
            Out o{{}, b == 0, false};
            o.blk.code = mr_mxint8_quantise(&y[static_cast<size_t>(b) * 32], o.blk.q);
            out[{slot, c.dst_base + b}] = o;
            if (c.two) {
                float lo[32];
                mr_mxint8_residue(&y[static_cast<size_t>(b) * 32], o.blk.code, o.blk.q, lo);
                Out r{{}, b == 0, true};
                r.blk.code = mr_mxint8_quantise(lo, r.blk.q);
                out[{slot + 1, c.dst_base + b}] = r;
            }
        }
    }
    return out;
}

// ---- the world around the unit --------------------------------------------------------------------

struct Beat {
    uint8_t b[64];
};

struct Job {
    uint32_t off, beats;
};

struct Channel {
    std::vector<Beat> mem;
    std::deque<Job> jobs;
    std::deque<uint64_t> due; // cycle from which each of the requested beats may arrive
    int credit = KV_DEPTH;
    uint64_t last_due = 0;
    uint32_t next = 0;
    uint64_t beats = 0;
    bool held = false;
    Job held_job{};
};

class World {
  public:
    World(const bench::Args &args, Rng &rng)
        : rng_(rng), dut_(args), b_ready_(rng, "b_ready"), job_ready_(rng, "kv_job_ready"),
          kv_(rng, "kv_valid")
    {
        dut_.reset();
        q_mem_.resize(static_cast<size_t>(T * QKV_WORDS));
        pm_mem_.resize(static_cast<size_t>(T * PM_WORDS));
    }

    bool good = true;
    std::string why;
    uint64_t busy = 0, idle = 0, wait = 0;
    KeptMap kept;
    uint64_t first_block = 0; // cycle of the last command's first block, like run()'s result
    bool saw_nan = false, saw_ovf = false;

    void stalls(bool on)
    {
        stalls_on_ = on;
        if (on) {
            b_ready_.random();
            job_ready_.random();
            kv_.random();
        } else {
            b_ready_.density(100);
            job_ready_.density(100);
            kv_.density(100);
        }
    }
    bool covered(bench::Tap &tap) const
    {
        bool a = b_ready_.covered(tap), b = job_ready_.covered(tap), c = kv_.covered(tap);
        return a && b && c;
    }

    void load(const Case &c)
    {
        case_ = &c;
        size_t size = 1;
        for (const Seq &s : c.seqs)
            size = std::max<size_t>(size, s.kv_off + (static_cast<size_t>(c.layer) + 1) * c.layer_beats);
        for (int ch = 0; ch < N; ch++) {
            Channel &m = ch_[ch];
            m.mem.resize(size);
            for (Beat &b : m.mem)
                for (uint8_t &x : b.b)
                    x = static_cast<uint8_t>(rng_.u32());
        }
        for (const Seq &s : c.seqs) {
            std::vector<uint8_t> pm(static_cast<size_t>(c.blocks()), 0);
            for (int p = 0; p < s.len; p++) {
                Channel &m = ch_[p % N];
                size_t local = static_cast<size_t>(p / N);
                size_t base = s.kv_off + static_cast<size_t>(c.layer) * c.layer_beats;
                for (int kv = 0; kv < 2; kv++) {
                    const auto &rec = (kv ? s.v : s.k)[static_cast<size_t>(p)];
                    size_t at = base + (kv ? c.v_beats : 0) + local * static_cast<size_t>(c.rec());
                    for (size_t b = 0; b < rec.size(); b++) {
                        m.mem[at + b / 64].b[b % 64] = rec[b].code;
                        memcpy(&m.mem[at + static_cast<size_t>(c.sbw()) + b / 2].b[32 * (b % 2)], rec[b].q, 32);
                    }
                }
                size_t at = base + c.pm_beats + local * static_cast<size_t>(c.sbw());
                for (size_t b = 0; b < pm.size(); b++) {
                    pm[b] = std::max(pm[b], s.v[static_cast<size_t>(p)][b].code);
                    m.mem[at + b / 64].b[b % 64] = pm[b];
                }
            }
        }
        for (auto &w : q_mem_)
            for (uint32_t &x : w)
                x = rng_.u32();
        for (uint16_t &x : pm_mem_)
            x = static_cast<uint16_t>(rng_.u32());
        uint32_t cont = 0;
        for (size_t i = 0; i < c.rows.size(); i++) {
            cont |= static_cast<uint32_t>(c.rows[i].cont) << i;
            for (int half = 0; half < (c.two ? 2 : 1); half++) {
                size_t slot = c.two ? 2 * i + static_cast<size_t>(half) : i;
                for (int w = 0; w < c.words(); w++) {
                    uint8_t bytes[68] = {};
                    for (int k = 0; k < 2; k++) {
                        const Blk &b = c.q[half][i][static_cast<size_t>(2 * w + k)];
                        memcpy(bytes + 33 * k, b.q, 32);
                        bytes[33 * k + 32] = b.code;
                    }
                    memcpy(q_mem_[slot * QKV_WORDS + static_cast<size_t>(c.q_base + w)].data(), bytes, 68);
                }
            }
            const Seq &s = c.seqs[static_cast<size_t>(c.rows[i].seq)];
            for (int w = 0; w < c.words(); w++)
                pm_mem_[i * PM_WORDS + static_cast<size_t>(w)] =
                    static_cast<uint16_t>(prefix_max(s, c.rows[i].last(), 2 * w) |
                                          prefix_max(s, c.rows[i].last(), 2 * w + 1) << 8);
        }
        // rows beyond n_rows must not matter
        for (size_t i = c.rows.size(); i < static_cast<size_t>(T); i++)
            cont |= static_cast<uint32_t>(rng_.u32() & 1) << i;
        bench::set(dut_->row_continues_i, 0, T, cont);
        dut_->n_rows_i = static_cast<uint16_t>(c.rows.size());
        dut_->two_pass_i = c.two;
        dut_->kv_layer_beats_i = c.layer_beats;
        dut_->kv_v_beats_i = c.v_beats;
        dut_->kv_pm_beats_i = c.pm_beats;
        errs = 0;
    }
    void window(uint64_t beats) { dut_->kv_limit_i = static_cast<uint32_t>(beats); }
    unsigned errs = 0;

    // Runs one command to done; cycles from the one in which it was taken.
    uint64_t run(bool pm, OutMap *out, std::map<int, uint16_t> *pm_out, uint64_t limit)
    {
        const Case &c = *case_;
        dut_->cmd_pm_i = pm;
        dut_->cmd_to_end_i = pm ? c.to_end : rng_.chance(50);
        dut_->cmd_layer_i = static_cast<uint16_t>(c.layer);
        dut_->cmd_pm_words_i = static_cast<uint16_t>(c.words());
        dut_->cmd_heads_i = static_cast<uint8_t>(c.heads);
        dut_->cmd_hpw_i = static_cast<uint8_t>(c.hp / 64);
        dut_->cmd_scale_i = mr_bits(c.scale);
        dut_->cmd_q_base_i = static_cast<uint16_t>(c.q_base);
        dut_->cmd_dst_base_i = static_cast<uint16_t>(c.dst_base);
        dut_->cmd_dst_slot_i = static_cast<uint8_t>(c.dst_slot);
        dut_->cmd_keep_i = c.keep;
        kept.clear();
        dut_->cmd_valid_i = 1;
        uint64_t start = 0;
        first_block = 0;
        bool taken = false, done = false;
        for (uint64_t n = 0; n < limit && !done && good; n++) {
            drive();
            dut_.settle();
            if (taken && dut_->done_o) {
                done = true;
                limit = dut_.cycles() - start;
            }
            if (taken && !first_block && dut_->b_valid_o)
                first_block = dut_.cycles() - start;
            bool take = dut_->cmd_valid_i && dut_->cmd_ready_o;
            observe(out, pm_out);
            dut_.edge();
            if (take) {
                start = dut_.cycles();
                taken = true;
                dut_->cmd_valid_i = 0;
                dut_->cmd_keep_i = !c.keep;
            }
        }
        size_t before = kept.size();
        if (!done)
            fail("no done");
        for (int ch = 0; ch < N; ch++) {
            if (!ch_[ch].jobs.empty() || !ch_[ch].due.empty())
                fail("KV beats left over");
        }
        // all credits come back
        for (int i = 0; i < 4; i++) {
            drive();
            dut_.settle();
            observe(out, pm_out);
            dut_.edge();
        }
        for (int ch = 0; ch < N; ch++)
            if (ch_[ch].credit != KV_DEPTH)
                fail("credits lost");
        if (kept.size() != before)
            fail("something kept behind done");
        return limit;
    }
    uint64_t kv_beats(int ch) const { return ch_[ch].beats; }

  private:
    Rng &rng_;
    bench::Dut<Vdut> dut_;
    bench::Stall b_ready_, job_ready_, kv_;
    bool stalls_on_ = true;
    const Case *case_ = nullptr;
    Channel ch_[N];
    std::vector<std::array<uint32_t, 17>> q_mem_;
    std::vector<uint16_t> pm_mem_;
    int row_addr_ = -1, q_addr_ = -1, pm_addr_ = -1;
    bool b_held_ = false;
    std::vector<uint8_t> b_prev_;

    void fail(const char *what)
    {
        if (good)
            why = what;
        good = false;
    }

    void drive()
    {
        dut_->b_ready_i = b_ready_.want();
        uint32_t ready = 0, valid = 0;
        bool job_go = job_ready_.want(), kv_go = kv_.want();
        for (int ch = 0; ch < N; ch++) {
            Channel &m = ch_[ch];
            if (job_go && (!stalls_on_ || m.jobs.size() < 3))
                ready |= 1u << ch;
            bool avail = !m.due.empty() && m.due.front() <= dut_.cycles() && m.credit > 0;
            bool go = kv_go && (!stalls_on_ || N == 1 || rng_.chance(80));
            if (avail && go) {
                const Job &j = m.jobs.front();
                if (j.off + m.next >= m.mem.size()) {
                    fail("KV read beyond the store");
                    continue;
                }
                valid |= 1u << ch;
                memcpy(&dut_->kv_data_i[static_cast<size_t>(16 * ch)], m.mem[j.off + m.next].b, 64);
            }
            if (ch == 0)
                kv_.saw(avail);
        }
        bench::set(dut_->kv_job_ready_i, 0, N, ready);
        bench::set(dut_->kv_valid_i, 0, N, valid);
        // RAM ports: an address of the last edge gives data now
        if (row_addr_ >= 0) {
            size_t a = static_cast<size_t>(row_addr_);
            for (int i = 0; i < 3; i++) // rows beyond n_rows must not matter
                dut_->row_rdata_i[static_cast<size_t>(i)] = rng_.u32() & (i == 2 ? 1u : ~0u);
            if (a < case_->rows.size()) {
                const Row &row = case_->rows[a];
                bench::set(dut_->row_rdata_i, 0, 32, case_->seqs[static_cast<size_t>(row.seq)].kv_off);
                bench::set(dut_->row_rdata_i, 32, 16, static_cast<uint64_t>(row.pos));
                bench::set(dut_->row_rdata_i, 48, 16, static_cast<uint64_t>(row.last()));
                bench::set(dut_->row_rdata_i, 64, 1, row.end != 0);
            }
            row_addr_ = -1;
        }
        if (q_addr_ >= 0) {
            for (size_t i = 0; i < 17; i++)
                dut_->q_rdata_i[i] = q_mem_[static_cast<size_t>(q_addr_)][i] & (i == 16 ? 0xFFFFu : ~0u);
            q_addr_ = -1;
        }
        if (pm_addr_ >= 0) {
            dut_->pm_rdata_i = pm_mem_[static_cast<size_t>(pm_addr_)];
            pm_addr_ = -1;
        }
    }

    void observe(OutMap *out, std::map<int, uint16_t> *pm_out)
    {
        if (dut_->row_ren_o)
            row_addr_ = static_cast<int>(dut_->row_raddr_o);
        if (dut_->q_ren_o)
            q_addr_ = static_cast<int>(dut_->q_raddr_o);
        if (dut_->pm_ren_o)
            pm_addr_ = static_cast<int>(dut_->pm_raddr_o);
        if (dut_->pm_we_o) {
            if (!pm_out || pm_out->count(static_cast<int>(dut_->pm_waddr_o)))
                fail("prefix maximum written twice");
            else
                (*pm_out)[static_cast<int>(dut_->pm_waddr_o)] = dut_->pm_wdata_o;
        }
        for (int l = 0; dut_->keep_we_o && l < 4 * N; l++) {
            int at = static_cast<int>(dut_->keep_waddr_o) * 4 * N + l;
            if (!kept.emplace(at, bench::get(dut_->keep_wdata_o, 32 * l, 32)).second)
                fail("kept twice");
        }
        errs += dut_->err_o;
        busy += dut_->cnt_busy_o;
        idle += dut_->cnt_idle_o;
        wait += dut_->cnt_wait_kv_o;
        if (dut_->cnt_busy_o + dut_->cnt_idle_o + dut_->cnt_wait_kv_o != 1)
            fail("counter strobes");
        saw_nan |= dut_->nan_o;
        saw_ovf |= dut_->ovf_o;
        b_ready_.saw(dut_->b_valid_o);
        job_ready_.saw(dut_->kv_job_valid_o != 0);
        for (int ch = 0; ch < N; ch++) {
            Channel &m = ch_[ch];
            bool valid = (dut_->kv_job_valid_o >> ch) & 1;
            bool ready = (dut_->kv_job_ready_i >> ch) & 1;
            Job j{static_cast<uint32_t>(bench::get(dut_->kv_job_off_o, 32 * ch, 32)),
                  static_cast<uint32_t>(bench::get(dut_->kv_job_beats_o, 32 * ch, 32))};
            if (m.held && (!valid || j.off != m.held_job.off || j.beats != m.held_job.beats))
                fail("KV job not stable");
            m.held = valid && !ready;
            m.held_job = j;
            if ((dut_->kv_valid_i >> ch) & 1) {
                m.credit--;
                m.beats++;
                m.due.pop_front();
                if (++m.next == m.jobs.front().beats) {
                    m.next = 0;
                    m.jobs.pop_front();
                }
            }
            if ((dut_->kv_credit_o >> ch) & 1)
                m.credit++;
            if (m.credit > KV_DEPTH)
                fail("too many credits");
            if (valid && ready) {
                if (j.beats == 0 || j.beats > 1000000) {
                    fail("KV job without beats");
                    continue;
                }
                m.jobs.push_back(j);
                uint64_t at = dut_.cycles() + (stalls_on_ ? static_cast<uint64_t>(rng_.range(1, 60)) : 4);
                for (uint32_t i = 0; i < j.beats; i++) {
                    m.last_due = std::max(m.last_due, at);
                    m.due.push_back(m.last_due);
                }
            }
        }
        std::vector<uint8_t> payload(42);
        if (dut_->b_valid_o) {
            bench::take_bytes(dut_->b_data_o, payload.data(), 33);
            uint32_t w[2] = {static_cast<uint32_t>(dut_->b_slot_o << 16 | dut_->b_word_o),
                             static_cast<uint32_t>(dut_->b_region_o | dut_->b_first_o << 2 | dut_->b_lo_o << 3)};
            memcpy(&payload[34], w, 8);
        }
        if (b_held_ && (!dut_->b_valid_o || payload != b_prev_))
            fail("b_ payload not stable");
        b_held_ = dut_->b_valid_o && !dut_->b_ready_i;
        b_prev_ = payload;
        if (dut_->b_valid_o && dut_->b_ready_i) {
            if (!out) {
                fail("unexpected block");
                return;
            }
            std::pair<int, int> key{dut_->b_slot_o, dut_->b_word_o};
            if (out->count(key))
                fail("block written twice");
            Out o{{}, static_cast<bool>(dut_->b_first_o), static_cast<bool>(dut_->b_lo_o)};
            o.blk.code = payload[32];
            memcpy(o.blk.q, payload.data(), 32);
            (*out)[key] = o;
            if (dut_->b_region_o != case_->dst_slot)
                fail("region");
        }
    }
};

// ---- cases ----------------------------------------------------------------------------------------

static void layout(Rng &r, Case &c)
{
    int len = 1;
    for (const Seq &s : c.seqs)
        len = std::max(len, s.len);
    uint32_t local = static_cast<uint32_t>((len + N - 1) / N);
    uint32_t pad = static_cast<uint32_t>(r.range(0, 5));
    c.v_beats = local * static_cast<uint32_t>(c.rec()) + pad;
    c.pm_beats = 2 * c.v_beats;
    c.layer_beats = c.pm_beats + local * static_cast<uint32_t>(c.sbw()) + pad;
    uint32_t at = static_cast<uint32_t>(r.range(0, 9));
    for (Seq &s : c.seqs) {
        s.kv_off = at;
        at += static_cast<uint32_t>(c.layer + 1) * c.layer_beats;
    }
}

// end: of the sequence, for rows that see all of it; 0: rows see what is before them.
static void add_run(Case &c, int pos, int rows, int end = 0)
{
    Seq s;
    s.len = std::max(pos + rows, end);
    c.seqs.push_back(s);
    for (int i = 0; i < rows; i++)
        c.rows.push_back({static_cast<int>(c.seqs.size()) - 1, pos + i, i > 0, end});
}

static Case shape(Rng &r, int heads, int hp, bool two)
{
    Case c;
    c.heads = heads;
    c.hp = hp;
    c.two = two;
    c.layer = static_cast<int>(r.range(0, 2));
    c.scale = static_cast<float>(0.02 + 0.2 * r.unit());
    c.q_base = static_cast<int>(r.range(0, QKV_WORDS - c.words()));
    c.dst_base = static_cast<int>(r.range(0, 200));
    c.keep = c.dst_base & 1;
    c.dst_slot = static_cast<int>(r.range(0, 3));
    return c;
}

static void random_shape(Rng &r, int &heads, int &hp)
{
    do {
        hp = 64 * static_cast<int>(r.range(1, 4));
        heads = static_cast<int>(r.chance(30) ? P::HEADS : r.range(1, P::HEADS));
    } while (hp > P::HP || hp * heads > P::W_MAX);
}

class Bench {
  public:
    Bench(const bench::Args &args) : rng(args.seed), world(args, rng) {}
    Rng rng;
    World world;
    bench::Tap tap;
    uint64_t cycles = 0, read = 0, nan_blocks = 0, all_blocks = 0, zero_blocks = 0, kept_floats = 0;

    // The smallest window that holds all that a command reads, in beats of the fullest channel.
    static uint64_t need(const Case &c, bool pm)
    {
        uint64_t most = 0;
        for (const Row &row : c.rows) {
            uint64_t at = c.seqs[static_cast<size_t>(row.seq)].kv_off +
                          static_cast<uint64_t>(c.layer) * c.layer_beats;
            int loaded = c.loaded(row);
            if (!pm)
                at += c.v_beats + static_cast<uint64_t>(row.last() / N + 1) * static_cast<uint64_t>(c.rec());
            else if (loaded < 0)
                continue;
            else
                at += c.pm_beats + static_cast<uint64_t>(loaded / N + 1) * static_cast<uint64_t>(c.sbw());
            most = std::max(most, at);
        }
        return most;
    }

    // With a beat less an error comes before done, and nothing is read beyond the window.
    bool one_beat_short(const Case &c, bool pm)
    {
        OutMap blocks;
        std::map<int, uint16_t> maxima;
        if (need(c, pm) == 0)
            return true;
        world.load(c);
        world.window(need(c, pm) - 1);
        world.run(pm, &blocks, &maxima, 20000000);
        outside++;
        if (world.errs != 1)
            tap.note("%u errors of a window that is a beat short", world.errs);
        return world.good && world.errs == 1;
    }
    unsigned outside = 0;

    bool attend(const Case &c)
    {
        KeptMap keep;
        OutMap want = reference(c, keep), got;
        bool good = one_beat_short(c, false);
        world.load(c);
        world.window(need(c, false));
        uint64_t before = world.kv_beats(0);
        cycles = world.run(false, &got, nullptr, 20000000);
        read = world.kv_beats(0) - before; // of the channel that has most
        good &= world.good && world.errs == 0;
        if (!good)
            tap.note("%s", world.why.c_str());
        int shown = 0;
        for (const auto &[key, o] : want) {
            all_blocks++;
            nan_blocks += o.blk.code == 255 && !o.lo;
            zero_blocks += o.blk.code == 0;
            auto it = got.find(key);
            bool same = it != got.end() && it->second.blk == o.blk && it->second.first == o.first &&
                        it->second.lo == o.lo;
            if (!same && shown++ < 4)
                tap.note("slot %d word %d: %s code %d want %d, q[0] %d want %d, first %d lo %d (heads %d hp %d "
                         "two %d)", key.first, key.second, it == got.end() ? "missing" : "differs",
                         it == got.end() ? -1 : it->second.blk.code, o.blk.code,
                         it == got.end() ? 0 : it->second.blk.q[0], o.blk.q[0],
                         it == got.end() ? 0 : it->second.first, it == got.end() ? 0 : it->second.lo, c.heads,
                         c.hp, c.two);
            good &= same;
        }
        if (keep != world.kept) {
            tap.note("%zu floats kept, expected %zu", world.kept.size(), keep.size());
            good = false;
        }
        kept_floats += keep.size();
        if (got.size() != want.size()) {
            tap.note("%zu blocks, expected %zu", got.size(), want.size());
            good = false;
        }
        return good;
    }

    bool pm_load(const Case &c)
    {
        std::map<int, uint16_t> want, got;
        for (size_t i = 0; i < c.rows.size(); i++) {
            const Row &row = c.rows[i];
            int loaded = c.loaded(row);
            if (loaded < -1)
                continue;
            for (int w = 0; w < c.words(); w++) {
                const Seq &s = c.seqs[static_cast<size_t>(row.seq)];
                uint16_t x = static_cast<uint16_t>(prefix_max(s, loaded, 2 * w) |
                                                   prefix_max(s, loaded, 2 * w + 1) << 8);
                want[static_cast<int>(i) * PM_WORDS + w] = x;
            }
        }
        bool good = one_beat_short(c, true);
        world.load(c);
        world.window(need(c, true));
        cycles = world.run(true, nullptr, &got, 1000000);
        if (!world.good)
            tap.note("%s", world.why.c_str());
        return good && world.good && world.errs == 0 && want == got;
    }
};

// Latencies of plan, load, QK, merge, PV and drain: 3 log2 N of them are levels of the adder and
// maximum trees, and a block passes the quantiser in 32/V beats twice. From the last block to done_o.
static constexpr long kLog2N = N == 1 ? 0 : N == 2 ? 1 : N == 4 ? 2 : N == 8 ? 3 : 4;
static constexpr long kFirstBlock = 91 + 3 * kLog2N + 2 * (N >= 8 ? 1 : 8 / N), kDone = 2;

// Cycles of a step on a beat of data.
#if defined VARIANT_n1fold
static constexpr long kTurns = 16;
#else
static constexpr long kTurns = 1;
#endif

// The formula of mr_attn's header for a group of `rows`, up to the first block on b_, and from there.
static long first_block_cycles(const Case &c, int rows, int lanes)
{
    long np = c.two ? 2 : 1, wr = c.words() * rows;
    return lanes * (2L * c.sbw() + kTurns * (wr * np + wr)) + wr * np + c.heads * rows + c.hp / 64 * rows * np +
           kFirstBlock - (c.sbw() - 1); // V's scale beats are taken while the first p is on its way
}

static long drain_cycles(const Case &c, int rows)
{
    return (2L * c.words() * rows - 1) * (N >= 8 ? 1 : 8 / N) + kDone;
}

static int max_rows(bool two)
{
    return two ? T / 2 : T;
}

// Exact cycles of a run of one group without stalls. The drain of two passes is the quantiser's affair.
static bool timing(Bench &b, const Case &c, int rows, int lanes)
{
    long first = first_block_cycles(c, rows, lanes), all = first + drain_cycles(c, rows);
    bool good = static_cast<long>(b.world.first_block) == first &&
                (c.two || static_cast<long>(b.cycles) == all);
    if (!good)
        b.tap.note("rows %d two %d heads %d hp %d lanes %d: first block at %llu, formula %ld; done at %llu, "
                   "formula %ld",
                   rows, c.two, c.heads, c.hp, lanes, static_cast<unsigned long long>(b.world.first_block),
                   first, static_cast<unsigned long long>(b.cycles), all);
    return good;
}

// Random run: several sequences, decode rows and chunks mixed.
static Case mixed(Rng &r, bool two, int longest, int budget)
{
    int heads, hp;
    random_shape(r, heads, hp);
    Case c = shape(r, heads, hp, two);
    do {
        int left = max_rows(two) - static_cast<int>(c.rows.size());
        int rows = static_cast<int>(r.chance(40) ? 1 : r.range(1, std::min(left, 11)));
        int pos = static_cast<int>(r.chance(25) ? 0 : r.chance(50) ? r.range(0, 12) : r.range(0, longest));
        int end = r.chance(60) ? 0 : pos + rows + static_cast<int>(r.chance(50) ? 0 : r.range(1, 40));
        add_run(c, pos, rows, end);
        budget -= std::max(pos + rows, end) * rows * c.words();
    } while (budget > 0 && static_cast<int>(c.rows.size()) < max_rows(two) && c.seqs.size() < 5);
    layout(r, c);
    return c;
}

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    Bench b(args);
    Rng &r = b.rng;
    Style usual;
    int n = args.cases_or(6);

    b.world.stalls(true);
    bool good = true;
    for (int k = 0; k < n && good; k++) {
        Case c = mixed(r, false, 200, 4000);
        fill(r, c, usual, usual, usual);
        good = b.attend(c);
    }
    b.tap.ok(good, "attn: decode rows and chunks of several sequences");

    for (int k = 0; k < n && good; k++) {
        Case c = mixed(r, true, 120, 2500);
        fill(r, c, usual, usual, usual);
        good = b.attend(c);
    }
    b.tap.ok(good, "attn: two-pass");

    for (int k = 0; k < n && good; k++) {
        Case c = mixed(r, k & 1, 60, 3000);
        fill(r, c, usual, usual, usual);
        c.to_end = k % 3 == 2;
        good = b.pm_load(c);
        if (good)
            good = b.attend(c);
    }
    b.tap.ok(good, "attn: prefix maxima loaded");

    // one token, one position; and chunks that begin at 0
    for (int k = 0; k < n && good; k++) {
        int heads, hp;
        random_shape(r, heads, hp);
        Case c = shape(r, heads, hp, k & 1);
        add_run(c, 0, k < 2 ? 1 : static_cast<int>(r.range(1, std::min(9, max_rows(c.two)))));
        layout(r, c);
        fill(r, c, usual, usual, usual);
        good = b.attend(c);
    }
    b.tap.ok(good, "attn: first positions");

    // each row sees the whole sequence, from a run's first row to its last
    for (int k = 0; k < n && good; k++) {
        int heads, hp;
        random_shape(r, heads, hp);
        Case c = shape(r, heads, hp, k & 1);
        int rows = static_cast<int>(r.range(2, std::min(13, max_rows(c.two))));
        int pos = k % 2 ? 0 : static_cast<int>(r.range(0, 20));
        add_run(c, pos, rows, pos + rows + static_cast<int>(k % 3 ? 0 : r.range(1, 30)));
        c.to_end = true;
        layout(r, c);
        fill(r, c, usual, usual, usual);
        good = b.pm_load(c) && b.attend(c);
    }
    b.tap.ok(good, "attn: in both directions");

    // the tightest accumulator hazard: one head of one beat
    for (int k = 0; k < n && good; k++) {
        Case c = shape(r, 1, 64, k & 1);
        add_run(c, static_cast<int>(r.range(30, 90)), std::min(1 + k % 5, max_rows(c.two)));
        layout(r, c);
        fill(r, c, usual, usual, usual);
        b.world.stalls(k % 3 != 0);
        good = b.attend(c);
    }
    b.tap.ok(good, "attn: one head of 64");
    b.world.stalls(true);

    uint64_t nan0 = b.nan_blocks, all0 = b.all_blocks;
    for (int k = 0; k < n && good; k++) {
        Case c = mixed(r, k & 1, 100, 2500);
        Style s = usual;
        s.nan = 40; // of 10000
        Style none = usual;
        fill(r, c, k % 3 == 0 ? s : none, k % 3 == 1 ? s : none, k % 3 == 2 ? s : none);
        good = b.attend(c);
    }
    nan0 = b.nan_blocks - nan0;
    all0 = b.all_blocks - all0;
    b.tap.note("NaN blocks %llu of %llu", static_cast<unsigned long long>(nan0),
               static_cast<unsigned long long>(all0));
    b.tap.ok(good && nan0 && nan0 < all0 && b.world.saw_nan, "attn: NaN codes");

    // exponents far apart, zero blocks, extreme elements, overflow
    for (int k = 0; k < n && good; k++) {
        Case c = mixed(r, k & 1, 60, 2500);
        Style wide = usual;
        wide.lo = k % 3 == 0 ? 0 : k % 3 == 1 ? 200 : 90;
        wide.hi = k % 3 == 2 ? 140 : 254;
        wide.zero = 30;
        wide.extreme = k & 1;
        Style q = wide;
        if (k % 3 == 0) {
            q.lo = 1;
            q.hi = 60;
        }
        fill(r, c, q, wide, wide);
        good = b.attend(c);
    }
    b.tap.ok(good && b.zero_blocks, "attn: wide exponents, zero blocks, extreme elements");

    if (good) {
        Case c = shape(r, 1, 64, false);
        add_run(c, N == 1 ? 2047 : 1500, 1);
        layout(r, c);
        fill(r, c, usual, usual, usual);
        good = b.attend(c);
    }
    b.tap.ok(good, "attn: longest context");

    // scores of one head that fit for three rows of a run of four, for two and for one; and of two rows'
    // two heads, which then fit for the first row. A group's records, or its heads', are read once.
    auto local = [](int positions) { return static_cast<uint64_t>((positions + N - 1) / N); };
    for (int fit = 3; fit >= (P::HEADS > 1 ? 0 : 1) && good; fit--) {
        int rows = fit ? 4 : 2, pos = fit ? P::SCORES / (fit + 1) + 8 : P::SCORES / 2 - 1;
        Case c = shape(r, fit ? 1 : 2, 64, false);
        add_run(c, pos, rows);
        layout(r, c);
        fill(r, c, usual, usual, usual);
        good = b.attend(c);
        uint64_t beats = 0, rec = static_cast<uint64_t>(c.rec()), sbw = static_cast<uint64_t>(c.sbw());
        for (int row = 0; fit && row < rows; row += fit)
            beats += 2 * local(pos + std::min(row + fit, rows)) * rec;
        if (!fit)
            beats = 2 * local(pos + 1) * rec + 2 * local(pos + 2) * (rec + sbw);
        if (b.read != beats)
            b.tap.note("%d rows fit: %llu beats read, expected %llu", fit, static_cast<unsigned long long>(b.read),
                       static_cast<unsigned long long>(beats));
        good = good && b.read == beats;
    }
    b.tap.ok(good, "attn: contexts of which fewer rows fit");

    // cycles: see the header of mr_attn.sv
    b.world.stalls(false);
    int timed = 0;
    for (int k = 0; k < n && good; k++) {
        int heads, hp, pos = static_cast<int>(k == 0 ? 0 : r.range(1, 250));
        random_shape(r, heads, hp);
        int lanes = (pos + N) / N; // records of channel 0
        if (heads * lanes > P::SCORES / N)
            continue;
        Case c = shape(r, heads, hp, false);
        add_run(c, pos, 1);
        layout(r, c);
        fill(r, c, usual, usual, usual);
        good = b.attend(c);
        good = good && timing(b, c, 1, lanes);
        timed++;
    }
    b.tap.ok(good && timed > 0, "attn: decode cycles");

    // The same for a chunk in one group: every beat is used for all rows, twice in two-pass QK.
    timed = 0;
    for (int k = 0; k < 4 * n && good; k++) {
        int heads, hp, pos = static_cast<int>(r.range(N, 60));
        random_shape(r, heads, hp);
        int rows = static_cast<int>(r.range(2, 4));
        int lanes = (pos + rows + N - 1) / N;
        if (rows * heads * lanes > P::SCORES / N)
            continue;
        Case c = shape(r, heads, hp, k & 1);
        add_run(c, pos, rows);
        layout(r, c);
        fill(r, c, usual, usual, usual);
        good = b.attend(c);
        good = good && timing(b, c, rows, lanes);
        timed++;
    }
    b.tap.ok(good && timed > 0, "attn: chunk cycles");
    b.tap.note("busy %llu wait %llu idle %llu", static_cast<unsigned long long>(b.world.busy),
               static_cast<unsigned long long>(b.world.wait), static_cast<unsigned long long>(b.world.idle));
    b.tap.ok(good && (b.kept_floats != 0) == (ROW != 0),
             "attn: " + std::to_string(b.kept_floats) + " floats kept");
    b.tap.ok(good && b.outside > 0, "attn: windows that are a beat short");
    b.tap.ok(b.world.covered(b.tap), "attn: stalls covered");
    return b.tap.done();
}
