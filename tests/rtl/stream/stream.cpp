// SPDX-License-Identifier: Apache-2.0
// mr_stream against a model written from the format in docs/inside/commands.md: random matrices and
// vectors, every element, scale code, column maximum and bias; stalls on both ends; one beat a
// cycle. The variant part has PART, and parts of matrices among them: what of a matrix does not
// belong to the part is left out, or dropped where it lies between codes and elements.
#include "Vdut.h"
#include "bench.h"

#include <array>
#include <deque>
#include <vector>

namespace {

#ifdef VARIANT_small
constexpr int kFifo = 24, kRing = 16, kVecWords = 20;
constexpr bool kFull = false;
#elif defined(VARIANT_part)
constexpr int kFifo = 64, kRing = 64, kVecWords = 20;
constexpr bool kFull = false;
#else
constexpr int kFifo = 256, kRing = 1024, kVecWords = 1024;
constexpr bool kFull = true;
#endif

using Beat = std::array<uint8_t, 64>;

struct Row {
    std::array<uint8_t, 128> e;
    std::array<uint8_t, 4> code;
    bool first, last; // of its group
};
struct Tile {
    std::array<uint8_t, 4> max;
    std::array<uint32_t, 4> bias;
};
struct Cmd {
    bool vec = false, fp4 = false, bias = false;
    uint32_t vec_beats = 0, kblocks = 0, groups = 0;
    uint32_t first = 0, in_head = 0; // of a part: block in its section, group in its header
    std::vector<Beat> beats;
    std::vector<Row> rows;
    std::vector<Tile> tiles;
    std::vector<uint32_t> gain, vbias; // padded to whole beats
};

// Twice the E2M1 value, by its definition: sign, 2 exponent bits (bias 1), 1 mantissa bit.
int8_t fp4_twice(unsigned x)
{
    int e = (x >> 1) & 3, m = x & 1;
    double v = e == 0 ? m * 0.5 : (1 + m * 0.5) * (1 << (e - 1));
    return static_cast<int8_t>((x & 8 ? -2 : 2) * v);
}

uint8_t random_code(bench::Rng &rng)
{
    static const uint8_t kEdge[] = {0, 1, 127, 254, 255};
    return rng.chance(20) ? kEdge[rng.range(0, 4)] : static_cast<uint8_t>(rng.u32());
}
uint32_t random_float_bits(bench::Rng &rng)
{
    static const uint32_t kEdge[] = {0, 0x80000000u, 1, 0x7F800000u, 0xFF800000u, 0x7FC00000u, 0x007FFFFFu};
    return rng.chance(20) ? kEdge[rng.range(0, 6)] : rng.u32();
}
void put32(Beat &b, int i, uint32_t x)
{
    memcpy(&b[static_cast<std::size_t>(4 * i)], &x, 4);
}

// Elements are taken from the matrix W[column][k], so the packing order is checked, not assumed.
// first, in_head: a part of a matrix that begins before it.
Cmd make_tiles(bench::Rng &rng, bool fp4, bool bias, uint32_t kblocks, uint32_t groups, uint32_t first = 0,
               uint32_t in_head = 0)
{
    Cmd c;
    c.first = first;
    c.in_head = in_head;
    c.fp4 = fp4;
    c.bias = bias;
    c.kblocks = kblocks;
    c.groups = groups;
    for (uint32_t g0 = 0, n; g0 < groups; g0 += n, in_head = 0) {
        n = groups - g0 < 16 - in_head ? groups - g0 : 16 - in_head;
        Beat head, bb[4];
        for (int i = 0; i < 64; i++) {
            head[static_cast<std::size_t>(i)] = random_code(rng); // the unused rest is noise
            put32(bb[i / 16], i % 16, random_float_bits(rng));
        }
        c.beats.push_back(head);
        if (bias)
            c.beats.insert(c.beats.end(), bb, bb + 4);
        for (uint32_t g = 0; g < n; g++) {
            Tile t;
            for (uint32_t col = 0; col < 4; col++) {
                uint32_t i = 4 * (in_head + g) + col;
                t.max[col] = head[i];
                t.bias[col] = 0;
                if (bias)
                    memcpy(&t.bias[col], &bb[i / 16][4 * (i % 16)], 4);
            }
            c.tiles.push_back(t);
            for (uint32_t k = first; k < first + kblocks; k++) {
                if (k % 16 == 0 || k == first) {
                    Beat s;
                    for (uint8_t &x : s)
                        x = random_code(rng);
                    c.beats.push_back(s);
                    for (uint32_t i = 0; i < 2 * (k % 16); i++) // blocks before the first one
                        c.beats.push_back(c.beats[rng.u32() % c.beats.size()]);
                }
                Row r;
                const Beat &scales = c.beats[c.beats.size() - 1 - (fp4 ? 1 : 2) * (k % 16)];
                for (uint32_t col = 0; col < 4; col++)
                    r.code[col] = scales[4 * (k % 16) + col];
                r.first = k == first;
                r.last = k == first + kblocks - 1;
                Beat d[2];
                for (uint32_t col = 0; col < 4; col++)
                    for (uint32_t e = 0; e < 32; e++) {
                        if (fp4) {
                            unsigned x = rng.u32() & 15;
                            uint8_t &byte = d[0][16 * col + e / 2];
                            byte = static_cast<uint8_t>(e % 2 ? (byte & 15) | (x << 4) : x);
                            r.e[32 * col + e] = static_cast<uint8_t>(fp4_twice(x));
                        } else {
                            uint8_t x = rng.chance(5) ? 0x80 : static_cast<uint8_t>(rng.u32());
                            d[col / 2][32 * (col % 2) + e] = x;
                            r.e[32 * col + e] = x;
                        }
                    }
                c.beats.push_back(d[0]);
                if (!fp4)
                    c.beats.push_back(d[1]);
                c.rows.push_back(r);
            }
        }
    }
    return c;
}

Cmd make_vec(bench::Rng &rng, uint32_t beats)
{
    Cmd c;
    c.vec = true;
    c.vec_beats = beats;
    for (std::vector<uint32_t> *v : {&c.gain, &c.vbias})
        for (uint32_t b = 0; b < beats; b++) {
            Beat x;
            for (int i = 0; i < 16; i++) {
                uint32_t f = random_float_bits(rng);
                v->push_back(f);
                put32(x, i, f);
            }
            c.beats.push_back(x);
        }
    return c;
}

struct Bench {
    bench::Dut<Vdut> dut;
    bench::Tap &tap;
    bench::Rng rng;
    bench::Stall w_go, cmd_go, free_go, pop_go;
    int credits = kFifo, bad = 0;
    std::deque<Beat> to_send;
    std::deque<Cmd> cmds;    // not accepted yet
    std::deque<Cmd> running; // accepted, not done
    std::deque<Row> rows;    // to be read
    std::deque<Tile> tiles;  // to be popped
    uint64_t row_count = 0;  // rows read
    uint64_t freed = 0, tiles_popped = 0, groups_read = 0;
    bool reading = false;
    Row read_row;
    uint64_t sent = 0, credited = 0, first_credit = 0, last_credit = 0;
    bool offered = false;
    Cmd vec;                     // whose vectors are being read
    int vec_left = 0;
    uint32_t vec_seen = ~0u;
    bool vec_running = false;
    std::deque<int64_t> vec_pipe;

    Bench(const bench::Args &a, bench::Tap &t)
        : dut(a), tap(t), rng(a.seed), w_go(rng, "w"), cmd_go(rng, "cmd"), free_go(rng, "ring"),
          pop_go(rng, "tile")
    {
        dut->w_valid_i = dut->cmd_valid_i = dut->vec_ren_i = dut->ring_ren_i = 0;
        dut->ring_free_i = dut->tile_pop_i = 0;
        dut.reset();
    }
    void fail(const char *what, uint64_t x, uint64_t y)
    {
        if (bad++ < 8)
            tap.note("cycle %llu: %s: %llx %llx", (unsigned long long)dut.cycles(), what,
                     (unsigned long long)x, (unsigned long long)y);
    }
    void add(Cmd c)
    {
        for (const Beat &b : c.beats)
            to_send.push_back(b);
        for (const Row &r : c.rows)
            rows.push_back(r);
        for (const Tile &t : c.tiles)
            tiles.push_back(t);
        cmds.push_back(std::move(c));
    }
    void all_go(int percent)
    {
        for (bench::Stall *s : {&w_go, &cmd_go, &free_go, &pop_go})
            percent < 0 ? s->random() : s->density(percent);
    }
    bool idle() const
    {
        return to_send.empty() && cmds.empty() && running.empty() && rows.empty() && tiles.empty() &&
               freed == row_count && !reading && vec_left == 0 && !vec_pending();
    }
    bool vec_pending() const
    {
        for (int64_t a : vec_pipe)
            if (a >= 0)
                return true;
        return false;
    }
    // Reads of the vector memory, after a STREAM_VEC and until the next one is offered.
    void vec_port()
    {
        bool ren = vec_left > 0 && rng.chance(70);
        uint32_t n = vec.vec_beats * 4 < kVecWords ? vec.vec_beats * 4 : kVecWords;
        uint32_t w = 0, at = 0;
        if (ren) {
            w = vec_left == 50 ? 0 : vec_left == 49 ? n - 1 : static_cast<uint32_t>(rng.range(0, n - 1));
            at = w + (rng.chance(50) ? kVecWords : 0);
            vec_left--;
        }
        dut->vec_ren_i = ren;
        dut->vec_raddr_i = static_cast<uint16_t>(ren ? at : rng.u32() % (2 * kVecWords));
        vec_pipe.push_back(ren ? static_cast<int64_t>(at) : -1);
    }
    void vec_check()
    {
        if (vec_pipe.size() < 3)
            return;
        int64_t a = vec_pipe.front();
        vec_pipe.pop_front();
        if (a >= 0)
            vec_seen = static_cast<uint32_t>(a);
        if (vec_seen == ~0u)
            return; // otherwise the word of the last read is held
        const std::vector<uint32_t> &v = vec_seen >= kVecWords ? vec.vbias : vec.gain;
        for (uint32_t j = 0; j < 4; j++)
            if (bench::get(dut->vec_rdata_o, static_cast<int>(32 * j), 32) !=
                v[4 * (vec_seen % kVecWords) + j])
                fail("vector word", vec_seen, j);
    }

    void cycle()
    {
        // stream
        bool w = w_go.want() && !to_send.empty() && credits > 0;
        w_go.saw(!to_send.empty() && credits == kFifo);
        dut->w_valid_i = w;
        if (w) {
            bench::put_bytes(dut->w_data_i, to_send.front().data(), 64);
            to_send.pop_front();
            credits--;
            sent++;
        } else {
            for (int i = 0; i < 16; i++)
                dut->w_data_i[i] = rng.u32();
        }
        // command
        bool want = cmd_go.want();
        if (!offered)
            offered = want && !cmds.empty() &&
                      !(cmds.front().vec && (vec_running || vec_left || vec_pending()));
        dut->cmd_valid_i = offered;
        if (offered) {
            const Cmd &c = cmds.front();
            dut->cmd_vec_i = c.vec;
            dut->cmd_vec_beats_i = static_cast<uint16_t>(c.vec_beats);
            dut->cmd_fp4_i = c.fp4;
            dut->cmd_bias_i = c.bias;
            dut->cmd_kblocks_i = static_cast<uint16_t>(c.kblocks);
            dut->cmd_groups_i = c.groups;
            dut->cmd_first_i = static_cast<uint8_t>(c.first);
            dut->cmd_in_head_i = static_cast<uint8_t>(c.in_head);
        } else {
            dut->cmd_first_i = rng.u32() & 15;
            dut->cmd_in_head_i = rng.u32() & 15;
            dut->cmd_vec_i = rng.u32() & 1;
            dut->cmd_vec_beats_i = static_cast<uint16_t>(rng.u32());
            dut->cmd_fp4_i = rng.u32() & 1;
            dut->cmd_bias_i = rng.u32() & 1;
            dut->cmd_kblocks_i = static_cast<uint16_t>(rng.u32());
            dut->cmd_groups_i = rng.u32();
        }
        vec_port();
        dut->ring_ren_i = 0;
        dut->ring_free_i = 0;
        dut->tile_pop_i = 0;
        dut->ring_raddr_i = static_cast<uint16_t>(rng.u32() % kRing);
        dut.settle();

        if (offered && dut->cmd_ready_o) {
            running.push_back(std::move(cmds.front()));
            if (running.back().vec) {
                vec_running = true;
                vec_seen = ~0u;
            }
            cmds.pop_front();
            offered = false;
        } else {
            cmd_go.saw(dut->cmd_ready_o && !cmds.empty() && !offered);
        }
        if (dut->w_credit_o) {
            if (++credits > kFifo)
                fail("too many credits", 0, 0);
            if (credited++ == 0)
                first_credit = dut.cycles();
            last_credit = dut.cycles();
        }
        vec_check();
        if (dut->cmd_done_o) {
            if (running.empty()) {
                fail("done without a command", 0, 0);
            } else {
                Cmd c = std::move(running.front());
                running.pop_front();
                if (c.vec && c.vec_beats) {
                    vec = std::move(c);
                    vec_left = 50;
                }
                vec_running = vec_running && !c.vec;
            }
        }
        // what was read in the last cycle
        if (reading) {
            for (int i = 0; i < 128; i++)
                if (bench::get(dut->ring_rdata_o, 8 * i, 8) != read_row.e[static_cast<std::size_t>(i)]) {
                    fail("row element", row_count - 1, static_cast<unsigned>(i));
                    break;
                }
            for (int i = 0; i < 4; i++)
                if (((dut->ring_rcode_o >> (8 * i)) & 255) != read_row.code[static_cast<std::size_t>(i)])
                    fail("scale code", row_count - 1, static_cast<unsigned>(i));
        }
        reading = false;
        // ring: k-rows in order, each as early as it can be seen
        uint16_t avail = static_cast<uint16_t>(dut->ring_count_o - row_count);
        if (avail > kRing)
            fail("ring count", dut->ring_count_o, row_count);
        bool go = free_go.want();
        if (avail && rows.empty()) {
            fail("more rows than sent", avail, 0);
        } else if (avail) {
            if (rows.front().first && groups_read == tiles_popped && !dut->tile_valid_o)
                fail("tile entry is late", row_count, 0);
            free_go.saw(true);
            if (go) {
                read_row = rows.front();
                rows.pop_front();
                dut->ring_ren_i = 1;
                dut->ring_raddr_i = static_cast<uint16_t>(row_count % kRing);
                row_count++;
                groups_read += read_row.last;
                reading = true;
            }
        }
        // free at once in the cycle of the read, or some time later
        if (freed < row_count && (go || (!free_go.stopped() && rng.chance(50)))) {
            dut->ring_free_i = 1;
            freed++;
        }
        bool pop = pop_go.want();
        pop_go.saw(dut->tile_valid_o);
        if (pop && dut->tile_valid_o) {
            if (tiles.empty()) {
                fail("more tiles than sent", 0, 0);
            } else {
                for (int i = 0; i < 4; i++) {
                    std::size_t u = static_cast<std::size_t>(i);
                    if (bench::get(dut->tile_max_o, 8 * i, 8) != tiles.front().max[u] ||
                        bench::get(dut->tile_bias_o, 32 * i, 32) != tiles.front().bias[u])
                        fail("tile entry", tiles_popped, u);
                }
                tiles.pop_front();
            }
            tiles_popped++;
            dut->tile_pop_i = 1;
        }
        dut.edge();
    }
    bool run(int limit)
    {
        for (int i = 0; i < limit; i++) {
            if (idle())
                return true;
            cycle();
        }
        tap.note("no end: beats %zu cmds %zu+%zu rows %zu tiles %zu", to_send.size(), cmds.size(),
                 running.size(), rows.size(), tiles.size());
        return false;
    }
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    Bench b(args, tap);
    bench::Rng &rng = b.rng;

    bool good = true;
    int cases = args.cases_or(25);
    for (int k = 0; k < cases && good; k++) {
        b.all_go(-1);
        for (int64_t n = rng.range(1, 6); n > 0; n--) {
            if (rng.chance(25)) {
                // now and then more than the memory holds: the rest is dropped
                b.add(make_vec(rng, static_cast<uint32_t>(rng.range(rng.chance(10) ? 0 : 1, kVecWords / 4 + 2))));
                continue;
            }
            static const uint32_t kLens[] = {1, 2, 15, 16, 17, 31, 32, 33, 48, 64};
            uint32_t kb = rng.chance(60) ? kLens[rng.range(0, 9)] : static_cast<uint32_t>(rng.range(1, 70));
            uint32_t groups = static_cast<uint32_t>(rng.range(rng.chance(5) ? 0 : 1, kb > 20 ? 20 : 50));
#ifdef VARIANT_part
            if (rng.chance(70)) {
                b.add(make_tiles(rng, false, false, kb, groups, rng.u32() & 15, rng.u32() & 15));
                continue;
            }
#endif
            b.add(make_tiles(rng, rng.chance(50), rng.chance(50), kb, groups));
        }
        good = b.run(200000) && b.bad == 0;
    }
    tap.ok(good, "stream: random matrices and vectors, both formats, random stalls");
    bool cover = true;
    for (const bench::Stall *s : {&b.w_go, &b.cmd_go, &b.free_go, &b.pop_go})
        cover = s->covered(tap) && cover;
    tap.ok(cover, "stream: every handshake was stalled");

    // A prompt consumer: beats leave the FIFO in every cycle, whatever their kind.
    for (int fp4 = 0; fp4 < 2; fp4++)
        for (int bias = 0; bias < 2; bias++) {
            b.all_go(0);
            b.bad = 0;
            b.credited = 0;
            b.add(make_tiles(rng, fp4, bias, 40, 50));
            uint64_t n = b.to_send.size();
            b.w_go.density(100); // the FIFO is full before the command comes
            for (int i = 0; i < 300; i++)
                b.cycle();
            b.all_go(100);
            good = b.run(100000) && b.bad == 0 && b.credited == n;
            uint64_t lost = b.last_credit - b.first_credit + 1 - n;
            tap.note("%s%s: %llu beats, %llu bubbles", fp4 ? "MXFP4" : "MXINT8", bias ? " with bias" : "",
                     (unsigned long long)n, (unsigned long long)lost);
            tap.ok(good && lost == 0, std::string("stream: one beat a cycle, ") +
                                          (fp4 ? "MXFP4" : "MXINT8") + (bias ? " with bias" : ""));
        }

    // With nothing freed the ring takes exactly RING k-rows (a tile of the longest K needs them
    // all) and the stream stops there without losing a beat.
    for (int fp4 = 0; fp4 < 2; fp4++) {
        b.bad = 0;
        b.all_go(100);
        b.free_go.density(0);
        uint64_t before = b.row_count;
        b.add(make_tiles(rng, fp4, true, kFull ? 1024 : 48, 2));
        for (int i = 0; i < 3 * kRing + 500; i++)
            b.cycle();
        uint16_t held = static_cast<uint16_t>(b.dut->ring_count_o - before);
        b.free_go.density(100);
        good = held == kRing && b.run(100000) && b.bad == 0;
        tap.ok(good, fp4 ? "stream: full ring, MXFP4" : "stream: full ring, MXINT8");
    }

    if (kFull) { // the longest contraction axis (32768), and the row count wraps
        b.bad = 0;
        b.add(make_tiles(rng, false, true, 1024, 3));
        b.add(make_tiles(rng, true, false, 1024, 62));
        good = b.run(400000) && b.bad == 0;
        tap.note("%llu k-rows so far", (unsigned long long)b.row_count);
        tap.ok(good && b.row_count > 65536, "stream: longest K, row count wraps");
    }
    return tap.done();
}
