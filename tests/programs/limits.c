// SPDX-License-Identifier: Apache-2.0
// Programs at the limits of rtl/spec/device.def: one field or descriptor word of a small legal
// program takes values on both sides of where a rule begins to refuse it. Fields, words and rules
// are lists made from device.def, so that a new one is tried too. Then limits that are found only
// while a command runs: the ends of windows.
#include "limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/legal.h"
#include "device/configs.h"

static const struct {
    const char *op, *name;
    unsigned code, field;
} fields[] = {
#define MR_OP_CMD       0
#define FIELD(op, name) {#op, #name, MR_OP_##op, MR_F_##op##_##name},
#define WORD(name, word)
#define RULE(text)
#define WINDOW(op, offset)
#include "mr_rules.inc"
#undef FIELD
#undef WORD
};

static const struct {
    const char *name;
    int word;
} words[] = {
#define FIELD(op, name)
#define WORD(name, word) {#name, word},
#include "mr_rules.inc"
#undef WORD
#undef RULE
#undef WINDOW
};

static const struct {
    const char *op, *text; // text: of a rule, or the field that a window's offset is
} rules[] = {
#define WORD(name, word)
#define RULE(text)         {NULL, text},
#define WINDOW(op, offset) {#op, #offset},
#include "mr_rules.inc"
};

enum { FIELDS = sizeof fields / sizeof *fields, RULES = sizeof rules / sizeof *rules };
enum { DENSE = 1100, MOST_VALUES = DENSE + 400, SKEW = -1 };

// What is varied: a field of a command and perhaps of another with it, a word of the descriptor, or
// the descriptor's place.
struct knob {
    const char *op, *name;
    int command, twin; // twin: another command, or -1
    unsigned field, twin_field, twin_factor;
    int word;
};

struct outcome {
    unsigned code, command;
    const char *rule;
};

struct search {
    struct program_case *c, base;
    const uint64_t *at;
    struct mr_legal start;
    limit_run *run;
    void *arg;
    bool seen[RULES];
    unsigned long cases;
};

static uint32_t knob_get(const struct program_case *c, const struct knob *k)
{
    return k->command >= 0   ? mr_command_get(&c->cmds[k->command], k->field)
           : k->word == SKEW ? c->run_skew
                             : c->desc[k->word];
}

static void knob_set(struct program_case *c, const struct knob *k, uint32_t value)
{
    if (k->twin >= 0)
        mr_command_set(&c->cmds[k->twin], k->twin_field, value * k->twin_factor);
    if (k->command >= 0)
        mr_command_set(&c->cmds[k->command], k->field, value);
    else if (k->word == SKEW)
        c->run_skew = value;
    else
        c->desc[k->word] = value;
}

// The program by the rules alone.
static struct outcome judge(struct search *s)
{
    const struct program_case *c = s->c;
    struct mr_legal l = s->start;
    struct outcome o = {.rule = mr_legal_begin(&l, c->desc, s->at[DESC] + c->run_skew)};
    if (o.rule) {
        o.code = MR_DEVERR_DESCRIPTOR;
        return o;
    }
    for (int i = 0; i < c->count && (uint32_t)i < c->desc[MR_RUN_N_CMDS]; i++) {
        o.command = (unsigned)i;
        o.code = mr_legal_command(&l, c->cmds[i].word, &o.rule);
        if (o.code || mr_command_get(&c->cmds[i], MR_F_CMD_OPCODE) == MR_OP_END)
            return o;
    }
    return (struct outcome){MR_DEVERR_WATCHDOG, c->desc[MR_RUN_N_CMDS], "no END"};
}

// The base again, its knob at a value.
static void turn(struct search *s, const struct knob *k, uint32_t value)
{
    memcpy(s->c->cmds, s->base.cmds, sizeof s->c->cmds);
    memcpy(s->c->desc, s->base.desc, sizeof s->c->desc);
    s->c->run_skew = 0;
    s->c->streamed = s->base.streamed;
    knob_set(s->c, k, value);
}

static void note_rule(struct search *s, const struct outcome *o, const struct knob *k)
{
    for (int i = 0; i < RULES; i++)
        s->seen[i] |=
            rules[i].op ? o->code == MR_DEVERR_WINDOW && o->command == (unsigned)k->command &&
                              strcmp(rules[i].op, k->op) == 0 && strcmp(rules[i].text, k->name) == 0
                        : o->rule && strcmp(rules[i].text, o->rule) == 0;
}

// Both devices, and what the rules alone have said.
static void run_at(struct search *s, const struct knob *k, uint32_t value)
{
    turn(s, k, value);
    struct outcome o = judge(s);
    note_rule(s, &o, k);
    refill(s->c);
    (void)snprintf(s->c->limit, sizeof s->c->limit, "%s %s = %u: %s", k->op, k->name, value,
                   o.rule ? o.rule : "legal");
    s->c->what = s->c->limit;
    s->run(s->arg, s->c, o.code, o.command);
    s->cases++;
}

static int ascending(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

// Values to look at: small ones, powers of two, and what is beside them and beside the present one.
static int candidates(uint32_t v[MOST_VALUES], uint32_t was, uint32_t most, bool address)
{
    static const uint32_t step[] = {0, 1, 2, 4, 8, 16, 32, 63, 64, 65, 128};
    int n = 0;
    for (uint32_t i = 0; i < DENSE && !address; i++)
        v[n++] = i;
    for (size_t j = 0; j < sizeof step / sizeof *step; j++) {
        v[n++] = was + step[j];
        v[n++] = was - step[j];
        for (int k = 10; k < 32 && !address; k++) {
            v[n++] = (1u << k) + step[j];
            if (n < MOST_VALUES - 60 && step[j] <= 1)
                v[n++] = (1u << k) - step[j];
        }
    }
    if (!address)
        v[n++] = most;
    int kept = 0;
    qsort(v, (size_t)n, sizeof *v, ascending);
    for (int i = 0; i < n; i++)
        if (v[i] <= most && (kept == 0 || v[kept - 1] != v[i]))
            v[kept++] = v[i];
    return kept;
}

// Runs the smallest and largest legal value, and of those that break a rule: the ones next to the
// legal ones from below and above, and next to `was`.
static void limits_of(struct search *s, const struct knob *k, uint32_t most, bool address)
{
    static uint32_t v[MOST_VALUES];
    static struct outcome o[MOST_VALUES];
    static bool take[MOST_VALUES];
    uint32_t was = knob_get(&s->base, k);
    int n = candidates(v, was, most, address), low = -1, high = -1, now = -1;
    memset(take, 0, sizeof take);
    for (int i = 0; i < n; i++) {
        turn(s, k, v[i]);
        o[i] = judge(s);
        if (v[i] == was)
            now = i;
        if (o[i].code == 0) {
            low = low < 0 ? i : low;
            high = i;
        }
    }
    if (low < 0)
        return; // no legal value: another command refuses it
    take[low] = take[high] = true;
    take[0] = take[n - 1] = !address;
    for (int i = 0; i < n; i++) {
        if (o[i].code == 0)
            continue;
        bool lower = i<low, upper = i> high, before = i < now, first = true;
        // Whether another value with this rule lies nearer to the limit.
        for (int j = 0; j < n && first; j++) {
            if (j == i || o[j].rule != o[i].rule || o[j].command != o[i].command)
                continue;
            if (lower)
                first = !(j > i && j < low);
            else if (upper)
                first = !(j < i && j > high);
            else if (before)
                first = !(j > i && j < now);
            else
                first = !(j < i && j > now);
        }
        take[i] |= first;
    }
    for (int i = 0; i < n; i++)
        if (take[i])
            run_at(s, k, v[i]);
}

static void limits_of_commands(struct search *s)
{
    for (int i = 0; i < s->base.count; i++) {
        unsigned op = mr_command_get(&s->base.cmds[i], MR_F_CMD_OPCODE);
        for (int f = 0; f < FIELDS; f++) {
            // Waits and signals only where there must be none: others keep the order.
            bool all = fields[f].code == MR_OP_CMD && op == MR_OP_STREAM_TILES &&
                       fields[f].field != MR_F_CMD_OPCODE;
            if (fields[f].code != op && !all)
                continue;
            unsigned width = fields[f].field & 255;
            struct knob k = {.op = fields[f].op,
                             .name = fields[f].name,
                             .command = i,
                             .twin = -1,
                             .field = fields[f].field};
            limits_of(s, &k, width == 32 ? UINT32_MAX : (1u << width) - 1, false);
        }
    }
}

// What must be said twice, said twice.
static void limits_of_twins(struct search *s)
{
    static const struct {
        unsigned op, twin_op, field, twin_field, factor;
        const char *name;
    } twins[] = {
        {MR_OP_MATMUL, MR_OP_STREAM_TILES, MR_F_MATMUL_KBLOCKS, MR_F_STREAM_TILES_KBLOCKS, 1,
         "KBLOCKS"},
        {MR_OP_MATMUL, MR_OP_STREAM_TILES, MR_F_MATMUL_COLS, MR_F_STREAM_TILES_COLS, 1, "COLS"},
        {MR_OP_MATMUL, MR_OP_STREAM_TILES, MR_F_MATMUL_FP4, MR_F_STREAM_TILES_FP4, 1, "FP4"},
        {MR_OP_MATMUL, MR_OP_STREAM_TILES, MR_F_MATMUL_BIAS, MR_F_STREAM_TILES_BIAS, 1, "BIAS"},
        {MR_OP_LAYERNORM, MR_OP_LOAD_ROWS, MR_F_LAYERNORM_DBLOCKS, MR_F_LOAD_ROWS_RES_BEATS, 2,
         "DBLOCKS"},
    };
    for (size_t t = 0; t < sizeof twins / sizeof *twins; t++)
        for (int i = 1; i < s->base.count; i++)
            for (int j = i - 1; j >= 0; j--)
                if (mr_command_get(&s->base.cmds[i], MR_F_CMD_OPCODE) == twins[t].op &&
                    mr_command_get(&s->base.cmds[j], MR_F_CMD_OPCODE) == twins[t].twin_op) {
                    unsigned width = twins[t].field & 255;
                    struct knob k = {.op = "both",
                                     .name = twins[t].name,
                                     .command = i,
                                     .twin = j,
                                     .field = twins[t].field,
                                     .twin_field = twins[t].twin_field,
                                     .twin_factor = twins[t].factor};
                    limits_of(s, &k, width == 32 ? 1u << 19 : (1u << width) - 1, false);
                    break;
                }
}

static void limits_of_descriptor(struct search *s)
{
    struct knob k = {.op = "descriptor", .command = -1, .twin = -1};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        k.name = words[w].name;
        k.word = words[w].word;
        size_t length = strlen(k.name);
        if (strcmp(k.name + length - 3, "_HI") == 0)
            continue; // nothing is there
        limits_of(s, &k, UINT32_MAX, strcmp(k.name + length - 3, "_LO") == 0);
    }
    k.name = "RUN_ADDR";
    k.word = SKEW;
    limits_of(s, &k, 128, false);
}

static unsigned probe_at(struct search *s, const struct knob *k, uint32_t value, limit_probe *probe)
{
    turn(s, k, value);
    refill(s->c);
    return probe(s->arg, s->c);
}

// Where a legal value begins to fail while the command runs: both sides of it. `probe` runs it on
// the C model.
static void edge(struct search *s, const struct knob *k, uint32_t far, limit_probe *probe)
{
    uint32_t good = knob_get(&s->base, k), bad = far;
    if (probe_at(s, k, good, probe) != 0 || probe_at(s, k, bad, probe) == 0)
        return;
    while ((good < bad ? bad - good : good - bad) > 1) {
        uint32_t middle = good < bad ? good + (bad - good) / 2 : bad + (good - bad) / 2;
        if (probe_at(s, k, middle, probe) == 0)
            good = middle;
        else
            bad = middle;
    }
    run_at(s, k, good);
    run_at(s, k, bad);
}

static void edges(struct search *s, limit_probe *probe)
{
    static const struct {
        unsigned op, field;
        uint32_t far;
        const char *name;
    } at_run[] = {
        {MR_OP_MATMUL, MR_F_MATMUL_OUT_OFF, 1u << 20, "OUT_OFF"},
        {MR_OP_MATMUL, MR_F_MATMUL_OUT_STRIDE, 1u << 20, "OUT_STRIDE"},
        {MR_OP_PM_LOAD, MR_F_PM_LOAD_LAYER, 60000, "LAYER"},
        {MR_OP_STORE_KV, MR_F_STORE_KV_LAYER, 60000, "LAYER"},
        {MR_OP_ATTEND, MR_F_ATTEND_LAYER, 60000, "LAYER"},
    };
    static const struct {
        int word;
        uint32_t far;
        const char *name;
    } in_desc[] = {
        {MR_RUN_RESULT_BEATS, 0, "RESULT_BEATS"},
        {MR_RUN_INPUT_BEATS, 0, "INPUT_BEATS"},
        {MR_RUN_KV_LAYER_BEATS, UINT32_MAX, "KV_LAYER_BEATS"},
        {MR_RUN_KV_V_BEATS, UINT32_MAX, "KV_V_BEATS"},
        {MR_RUN_KV_PM_BEATS, UINT32_MAX, "KV_PM_BEATS"},
        {16 + 6, 0, "KV_BEATS"},
        {16 + 2, 0, "WEIGHTS_BEATS"},
    };
    for (int i = 0; i < s->base.count; i++)
        for (size_t e = 0; e < sizeof at_run / sizeof *at_run; e++)
            if (mr_command_get(&s->base.cmds[i], MR_F_CMD_OPCODE) == at_run[e].op)
                edge(s,
                     &(struct knob){.op = "edge",
                                    .name = at_run[e].name,
                                    .command = i,
                                    .twin = -1,
                                    .field = at_run[e].field},
                     at_run[e].far, probe);
    for (size_t e = 0; e < sizeof in_desc / sizeof *in_desc; e++)
        edge(s,
             &(struct knob){.op = "edge",
                            .name = in_desc[e].name,
                            .command = -1,
                            .twin = -1,
                            .word = in_desc[e].word},
             in_desc[e].far, probe);
}

// A rule that no value can break on this device: with one channel all is a multiple of N.
static bool cannot_break(const struct search *s, const char *text)
{
    return s->start.v.n == 1 && strstr(text, "% N ");
}

bool each_limit(struct program_case *c, const uint64_t at[PARTS], limit_run *run,
                limit_probe *probe, void *arg, unsigned long *cases)
{
    static struct search s;
    const struct mr_geometry *g = &mr_config_named("tiny")->g;
    s = (struct search){.c = c, .at = at, .run = run, .arg = arg};
    s.start.v = mr_values_of(g);
    for (int i = 0; make_base(c, i, at); i++) {
        s.base = *c;
        limits_of_commands(&s);
        limits_of_twins(&s);
        if (i == 0 || s.base.desc[MR_RUN_N_ROWS] > 4)
            limits_of_descriptor(&s);
        edges(&s, probe);
    }
    // Rules of the order are broken by programs of another shape.
    unsigned code, command;
    for (int i = 0; make_known(c, i, at, &code, &command); i++) {
        struct outcome o = judge(&s);
        note_rule(&s, &o, &(struct knob){.op = "", .command = -1});
    }
    bool all = true;
    for (int i = 0; i < RULES; i++) {
        if (s.seen[i] || cannot_break(&s, rules[i].text))
            continue;
        printf("# no case breaks %s%s%s\n", rules[i].op ? rules[i].op : "",
               rules[i].op ? ": window of " : "", rules[i].text);
        all = false;
    }
    *cases = s.cases;
    return all;
}
