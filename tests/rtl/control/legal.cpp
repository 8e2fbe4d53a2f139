// SPDX-License-Identifier: Apache-2.0
// mr_legal beside the rules of the C model, which are made from the same lines of rtl/spec/device.def: programs of random
// commands, most of them legal and many of these at a limit, each up to the first that is not. Both must have the same
// verdict on every command. Each rule is broken, and each command is legal now and then.
#include "Vdut.h"
#include "bench.h"

extern "C" {
#include "cmodel/command.h"
#include "cmodel/legal.h"
}

#include <algorithm>
#include <deque>
#include <set>
#include <string>

namespace {

#if defined(VARIANT_train)
constexpr bool kTrain = true;
constexpr uint64_t kT = 32, kWMax = 1024, kRing = 2048;
#else
constexpr bool kTrain = false;
constexpr uint64_t kT = 16, kWMax = 512, kRing = 256;
#endif
constexpr size_t kHeld = 7; // HELD is 8

struct Field {
    unsigned op, field;
};
#define MR_OP_CMD 0
const std::vector<Field> kFields = {
#define FIELD(op, name)    {MR_OP_##op, MR_F_##op##_##name},
#define WORD(name, word)
#define RULE(text)
#define WINDOW(op, offset)
#include "mr_rules.inc"
#include "mr_training.inc"
#undef FIELD
#undef RULE
};
const std::vector<std::string> kRules = { // of commands and, not asked here, of descriptors
#define FIELD(op, name)
#define RULE(text) text,
#include "mr_rules.inc"
#if defined(VARIANT_train)
#include "mr_training.inc"
#endif
#undef FIELD
#undef RULE
};
struct Op {
    unsigned op;
    std::string name;
};
const std::vector<Op> kOps = {
#define X(op, name, queue) {op, name},
    MR_OP_LIST(X)
#undef X
};

struct Command {
    uint32_t word[16] = {};
};
void set(Command &c, unsigned field, uint32_t value)
{
    unsigned lsb = field >> 8 & 255, width = field & 255;
    uint32_t mask = width == 32 ? ~0u : (1u << width) - 1;
    uint32_t &w = c.word[field >> 16];
    w = (w & ~(mask << lsb)) | (value & mask) << lsb;
}

class Programs {
  public:
    explicit Programs(bench::Rng &rng) : rng_(rng) {}

    // As mr_legal_begin() leaves it.
    mr_legal begin()
    {
        mr_legal l = {};
        l.can_train = kTrain;
        l.v.n = 8;
        l.v.t = kT;
        l.v.act_words = 64;
        l.v.qkv_words = 32;
        l.v.d_max = 512;
        l.v.w_max = kWMax;
        l.v.rot_max = 64;
        l.v.ring = kRing;
        l.v.train = kTrain && rng_.chance(70);
        l.v.n_rows = l.v.train || rng_.chance(50) ? kT : static_cast<uint64_t>(rng_.range(1, static_cast<int64_t>(kT)));
        l.v.two_pass = !l.v.train && rng_.chance(50);
        l.v.input_beats = size();
        l.v.result_beats = size();
        l.v.rows_beats = l.v.train ? size() : 0;
        l.v.grad_beats = l.v.train ? size() : 0;
        for (int &queue : l.waits)
            queue = -1;
        bool fill = rng_.chance(10); // the list of matrices
        favourite_ = !fill ? any() : l.v.train && rng_.chance(50) ? MR_OP_STREAM_STASH : MR_OP_STREAM_TILES;
        share_ = fill ? 97 : 30;
        return l;
    }

    // Mostly a legal command: of the rules of its opcode, which are asked in their order, later and later ones are broken.
    Command draw(const mr_legal &l)
    {
        Command c;
        bool found = false;
        bool give_up = rng_.chance(5);
        for (int tries = 0; tries < 50 && !found; tries++) {
            unsigned op = rng_.chance(share_) ? favourite_ : any();
            if (op == MR_OP_END && !rng_.chance(5))
                continue;
            c = start(l, op);
            size_t rule = broken(l, c);
            int64_t steps = give_up ? rng_.range(0, 100) : 100;
            for (; steps > 0 && rule != kNone; steps--) {
                Command d = c;
                change(l, d);
                size_t now = broken(l, d);
                if (now >= rule || rng_.chance(5))
                    c = d, rule = now;
            }
            found = give_up || rule == kNone;
        }
        for (int i = 0; i < 24; i++) { // as far as it stays legal, or breaks what nothing has broken yet, other values
            Command d = c;
            change(l, d);
            size_t rule = broken(l, d);
            if (rule == kNone)
                c = d;
            else if (rule < kRules.size() && broken_.insert(rule).second)
                return d;
        }
        signals(l, c);
        if (rng_.chance(5))
            change(l, c);
        if (rng_.chance(1) && rng_.chance(20))
            c.word[0] ^= 1u << rng_.range(0, 31);
        return c;
    }

  private:
    bench::Rng &rng_;
    unsigned favourite_ = 0; // opcode of a program, and how much of it is that, in percent
    int share_ = 0;
    std::set<size_t> broken_;

    unsigned any() { return kOps[static_cast<size_t>(rng_.range(0, static_cast<int64_t>(kOps.size()) - 1))].op; }

    // With what a product has of its matrix, mostly: no search would find it.
    Command start(const mr_legal &l, unsigned op)
    {
        Command c;
        set(c, MR_F_CMD_OPCODE, op);
        if (op == MR_OP_MATMUL && rng_.chance(95)) {
            set(c, MR_F_MATMUL_KBLOCKS, static_cast<uint32_t>(l.v.tile_kblocks));
            set(c, MR_F_MATMUL_COLS, static_cast<uint32_t>(l.v.tile_cols));
            set(c, MR_F_MATMUL_FP4, l.v.tile_fp4 != 0);
            set(c, MR_F_MATMUL_BIAS, l.v.tile_bias != 0);
        }
        if (op == MR_OP_GRAD && rng_.chance(95)) {
            set(c, MR_F_GRAD_KBLOCKS, static_cast<uint32_t>(l.v.tile_kblocks));
            set(c, MR_F_GRAD_COLS, static_cast<uint32_t>(l.v.tile_cols));
        }
        return c;
    }

    uint64_t size() { return rng_.chance(10) ? rng_.u32() : static_cast<uint64_t>(rng_.range(1, 3000)); }

    // The number of the rule that a command breaks; windows come behind the rules.
    static constexpr size_t kNone = ~size_t{0};
    static size_t broken(mr_legal l, const Command &c)
    {
        const char *rule = nullptr;
        if (!mr_legal_command(&l, c.word, &rule))
            return kNone;
        return static_cast<size_t>(std::find(kRules.begin(), kRules.end(), rule) - kRules.begin());
    }

    // Takes what is there and what its queue may take; adds.
    void signals(const mr_legal &l, Command &c)
    {
        for (int s = 0; s < MR_SEMAPHORES; s++) {
            Command d = c;
            if (rng_.chance(12))
                d.word[MR_F_CMD_WAIT >> 16] |= 1u << ((MR_F_CMD_WAIT >> 8 & 255) + static_cast<unsigned>(s));
            if (rng_.chance(25))
                d.word[MR_F_CMD_SIGNAL >> 16] |= 1u << ((MR_F_CMD_SIGNAL >> 8 & 255) + static_cast<unsigned>(s));
            if (broken(l, d) == kNone || (rng_.chance(1) && rng_.chance(l.sem[s] == 15 ? 100 : 20)))
                c = d;
        }
    }

    // A field gets a value that a rule may ask for, or one beside it.
    void change(const mr_legal &l, Command &c)
    {
        std::vector<unsigned> fields;
        for (const Field &f : kFields)
            if (f.op == mr_field(c.word, MR_F_CMD_OPCODE))
                fields.push_back(f.field);
        if (fields.empty())
            return;
        unsigned field = fields[static_cast<size_t>(rng_.range(0, static_cast<int64_t>(fields.size()) - 1))];
        set(c, field, value(l.v));
    }

    uint32_t value(const mr_values &v)
    {
        const uint64_t known[] = {
#define X(name) v.name,
            MR_VALUE_LIST(X)
#undef X
        };
        uint64_t x;
        switch (rng_.range(0, 4)) {
        case 0: x = static_cast<uint64_t>(rng_.range(0, 4)); break;
        case 1: x = 1ull << rng_.range(0, 31); break;
        case 2: x = static_cast<uint64_t>(rng_.range(1, 16)) << rng_.range(0, 7); break;
        case 3: x = rng_.chance(10) ? rng_.u64() >> rng_.range(0, 63) : static_cast<uint64_t>(rng_.range(0, 600)); break;
        default:
            x = known[rng_.range(0, static_cast<int64_t>(std::size(known)) - 1)];
            x = rng_.chance(30) ? x << rng_.range(0, 5) : rng_.chance(40) ? x >> rng_.range(0, 6) : x;
        }
        return static_cast<uint32_t>(rng_.chance(20) ? x + static_cast<uint64_t>(rng_.range(-1, 1)) : x);
    }
};

struct Held {
    uint64_t from; // the first cycle of its verdict
    unsigned code;
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    bench::Dut<Vdut> dut(args);
    bench::Rng rng(args.seed);
    bench::Stall load(rng, "load"), take(rng, "take");
    Programs programs(rng);
    std::set<std::string> broken;
    std::set<unsigned> legal;
    uint64_t bad = 0, commands = 0, full = 0, codes[8] = {};
    dut->load_i = dut->take_i = 0;
    for (int i = 0; i < args.cases_or(4000); i++) {
        mr_legal l = programs.begin();
        dut->n_rows_i = static_cast<uint16_t>(l.v.n_rows);
        dut->two_pass_i = l.v.two_pass != 0;
        dut->input_beats_i = static_cast<uint32_t>(l.v.input_beats);
        dut->result_beats_i = static_cast<uint32_t>(l.v.result_beats);
        dut->train_i = l.v.train != 0;
        dut->rows_beats_i = static_cast<uint32_t>(l.v.rows_beats);
        dut->grad_beats_i = static_cast<uint32_t>(l.v.grad_beats);
        dut.reset();
        std::deque<Held> held;
        bool ended = false, judged = false;
        for (int n = 0; !judged;) {
            bool put = load.want() && !ended && held.size() < kHeld;
            Command c;
            unsigned code = 0;
            if (put) {
                const char *rule = nullptr;
                c = programs.draw(l);
                code = mr_legal_command(&l, c.word, &rule);
                ended = code || mr_field(c.word, MR_F_CMD_OPCODE) == MR_OP_END || ++n == 60;
                codes[code & 7]++;
                if (code)
                    broken.insert(rule);
                else
                    legal.insert(mr_field(c.word, MR_F_CMD_OPCODE));
                commands++;
            }
            full += held.size() == kHeld;
            dut->load_i = put;
            for (int w = 0; w < 16; w++)
                bench::set(dut->cmd_i, 32 * w, 32, c.word[w]);
            bool there = !held.empty() && held.front().from <= dut.cycles();
            bool go = there && take.want() && !held.front().code;
            dut->take_i = go;
            dut.settle();
            if (there) {
                const Held &h = held.front();
                if ((dut->bad_o != (h.code != 0) || (h.code && dut->code_o != h.code)) && bad++ < 5)
                    tap.note("program %d: code %u, the model has %u", i, dut->bad_o ? dut->code_o : 0, h.code);
                judged = h.code || (go && ended && !put && held.size() == 1);
            }
            if (go)
                held.pop_front();
            if (put)
                held.push_back({dut.cycles() + 3, code});
            dut.edge();
        }
        dut->load_i = dut->take_i = 0;
    }
    tap.ok(!bad, "legal: every verdict is the C model's");
    size_t never = 0;
    for (const std::string &rule : kRules) {
        std::string of = rule.substr(0, rule.find(':'));
        bool of_command = false;
        for (const Op &op : kOps)
            of_command |= op.name == of;
        if (of_command && !broken.count(rule) && never++ < 10)
            tap.note("never broken: %s", rule.c_str());
    }
    tap.ok(!never && broken.count("a semaphore counts to 15") && codes[MR_DEVERR_WINDOW] && codes[MR_DEVERR_WATCHDOG],
           "legal: every rule of commands was broken");
    for (const Op &op : kOps)
        if (!legal.count(op.op) && (kTrain || op.op < MR_OP_STREAM_STASH) && never++ < 20)
            tap.note("never legal: %s", op.name.c_str());
    tap.ok(!never && full, "legal: every command was legal");
    tap.note("%llu commands: %llu are legal, %llu break a rule, %llu a window, %llu wait for nothing", //
             (unsigned long long)commands, (unsigned long long)codes[0], (unsigned long long)codes[MR_DEVERR_COMMAND],
             (unsigned long long)codes[MR_DEVERR_WINDOW], (unsigned long long)codes[MR_DEVERR_WATCHDOG]);
    return tap.done();
}
