// SPDX-License-Identifier: Apache-2.0
// The timing analyser on netlists made by hand, whose longest path is known: each answer is added
// up here from the delays of delays.h.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "synth/sta/delays.h"
#include "synth/sta/paths.h"

// ---- netlists from short texts
// --------------------------------------------------------------------------------- A cell: "name
// TYPE PORT<b PORT>b,b .." with < for inputs and > for outputs; b is a bit or x. A port:
// "name<b,b".
struct text {
    char *s;
    size_t size;
    FILE *f;
};

static void put_bits(FILE *f, const char *list)
{
    fputs("[", f);
    for (const char *p = list; *p; p++) {
        if (*p == 'x')
            fputs("\"0\"", f);
        else
            fputc(*p, f);
    }
    fputs("]", f);
}

static void put_module(FILE *f, const char *name, const char *const *ports,
                       const char *const *cells, const char *names)
{
    char word[256];
    fprintf(f, "\"%s\": {\"attributes\": {}, \"ports\": {", name);
    for (int i = 0; ports[i]; i++) {
        size_t n = strcspn(ports[i], "<>");
        fprintf(f, "%s\"%.*s\": {\"direction\": \"%s\", \"bits\": ", i ? "," : "", (int)n, ports[i],
                ports[i][n] == '<' ? "input" : "output");
        put_bits(f, ports[i] + n + 1);
        fputs("}", f);
    }
    fputs("}, \"cells\": {", f);
    for (int i = 0; cells[i]; i++) {
        const char *p = cells[i];
        char cell[64], type[64], ports_text[4096] = "", directions[4096] = "",
                                 parameters[1024] = "";
        int used = 0;
        assert_int_equal(sscanf(p, "%63s %63s%n", cell, type, &used), 2);
        FILE *a = fmemopen(ports_text, sizeof ports_text, "w"),
             *b = fmemopen(directions, sizeof directions, "w");
        assert_non_null(a);
        assert_non_null(b);
        for (int k = 0; sscanf(p += used, "%255s%n", word, &used) == 1; k++) {
            size_t n = strcspn(word, "<>");
            if (!word[n]) { // PARAMETER=1
                size_t at = strlen(parameters), eq = strcspn(word, "=");
                snprintf(parameters + at, sizeof parameters - at, "%s\"%.*s\": \"0%s\"",
                         at ? "," : "", (int)eq, word, word + eq + 1);
                k--;
                continue;
            }
            fprintf(a, "%s\"%.*s\": ", k ? "," : "", (int)n, word);
            put_bits(a, word + n + 1);
            fprintf(b, "%s\"%.*s\": \"%s\"", k ? "," : "", (int)n, word,
                    word[n] == '<' ? "input" : "output");
        }
        fclose(a);
        fclose(b);
        fprintf(f,
                "%s\"%s\": {\"type\": \"%s\", \"parameters\": {%s}, \"port_directions\": {%s}, "
                "\"connections\": {%s}}",
                i ? "," : "", cell, type, parameters, directions, ports_text);
    }
    fprintf(f, "}, \"netnames\": {%s}}", names);
}

static json_t *parse(char *text)
{
    json_error_t why;
    json_t *root = json_loads(text, 0, &why);
    if (!root)
        fail_msg("%s in %s", why.text, text);
    return root;
}

struct timed {
    struct nl_library lib;
    struct ds_design design;
    struct pt_paths paths;
    struct pt_end worst[PT_FROMS][2];
    char to[256]; // name of the register where the longest path ends
};

static void take(const struct pt_end *e, void *context)
{
    struct timed *t = context;
    if (e->time > t->worst[e->from][e->to_port].time)
        t->worst[e->from][e->to_port] = *e;
}

static void analyse_text(struct timed *t, char *json, const char *top)
{
    char err[512] = "";
    json_t *root = parse(json);
    *t = (struct timed){0};
    if (!nl_add(&t->lib, root, "test", err, sizeof err) || !nl_bind(&t->lib, err, sizeof err))
        fail_msg("%s", err);
    json_decref(root);
    assert_non_null(nl_find(&t->lib, top));
    if (!ds_expand(&t->design, nl_find(&t->lib, top), err, sizeof err))
        fail_msg("%s", err);
    pt_find(&t->paths, &t->design);
    pt_each_end(&t->paths, take, t);
    const struct pt_end *e = &t->worst[PT_REGISTER][0];
    if (e->time > 0 && e->cell >= 0) {
        const struct nl_module *m = t->design.instance[e->instance].module;
        ds_name(&t->design, e->instance, -1, m->cell[e->cell].name, t->to, sizeof t->to);
    }
}

static void done(struct timed *t)
{
    pt_free(&t->paths);
    ds_free(&t->design);
    nl_free(&t->lib);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
static const char *const no_ports[] = {NULL};

static void analyse(struct timed *t, const char *const *ports, const char *const *cells,
                    const char *names)
{
    char *s = NULL;
    size_t size;
    FILE *f = open_memstream(&s, &size);
    assert_non_null(f);
    fputs("{\"modules\": {", f);
    put_module(f, "mr_top", ports, cells, names);
    fputs("}}", f);
    fclose(f);
    analyse_text(t, s, "mr_top");
    free(s);
}

static void expect(double got, double want)
{
    if (got < want - 1e-4 || got > want + 1e-4)
        fail_msg("%.4f ns, %.4f expected", got, want);
}

// ---- tests
// -----------------------------------------------------------------------------------------------------
static void luts_between_registers(void **state)
{
    (void)state;
    struct timed t;
    analyse(&t, no_ports,
            LIST("a FDRE C<2 D<x Q>10", "l1 LUT2 I0<10 I1<x O>11", "l2 LUT2 I0<11 I1<10 O>12",
                 "b FDRE C<2 D<12 CE<x R<x Q>13", "c FDRE C<2 D<10 Q>14"),
            "\"a_q\": {\"hide_name\": 0, \"bits\": [10]}");
    // The last LUT stands beside its flip-flop.
    expect(t.worst[PT_REGISTER][0].time, STA_FF_CQ + 2 * (STA_NET + STA_LUT) + STA_SETUP);
    assert_int_equal(t.worst[PT_REGISTER][0].levels.lut, 2);
    assert_string_equal(t.to, "b");
    assert_int_equal(t.paths.loops, 0);
    expect(t.worst[PT_PORT][0].time, 0);
    done(&t);
    // A LUT more on the way: it must be found, wherever it stands.
    analyse(&t, no_ports,
            LIST("a FDRE C<2 D<x Q>10", "l1 LUT2 I0<10 I1<x O>11", "l2 LUT2 I0<11 I1<10 O>12",
                 "b FDRE C<2 D<12 CE<20 R<x Q>13", "l3 LUT1 I0<12 O>20", "c FDRE C<2 D<10 Q>14"),
            "");
    expect(t.worst[PT_REGISTER][0].time,
           STA_FF_CQ + 3 * (STA_NET + STA_LUT) + STA_NET + STA_SETUP); // a net to CE
    done(&t);
}

static void ports(void **state)
{
    (void)state;
    struct timed t;
    analyse(&t, LIST("i<3,4", "o>11,12", "p>13"),
            LIST("l1 LUT2 I0<3 I1<4 O>5", "l2 LUT1 I0<5 O>11", "f FDRE C<2 D<5 Q>13",
                 "l3 LUT1 I0<13 O>12"),
            "");
    expect(t.worst[PT_PORT][0].time, STA_FF_CQ + STA_NET + STA_LUT + STA_SETUP);
    expect(t.worst[PT_PORT][1].time, STA_FF_CQ + 2 * (STA_NET + STA_LUT) + STA_SETUP);
    expect(t.worst[PT_REGISTER][1].time, STA_FF_CQ + STA_NET + STA_LUT + STA_SETUP);
    expect(t.worst[PT_REGISTER][0].time, 0);
    done(&t);
}

static void carry_bits(void **state)
{
    (void)state;
    struct timed t;
    // S of bit 2 reaches O[2] and O[3] and CO[2], not O[0], O[1]: a late S[2] must not make O[1]
    // late.
    analyse(&t, no_ports,
            LIST("a FDRE C<2 D<x Q>10", "l LUT1 I0<10 O>11",
                 "k CARRY4 CI<x CYINIT<x S<x,x,11,x DI<x,x,x,x O>20,21,22,23 CO>24,25,26,27",
                 "b FDRE C<2 D<21 Q>30"),
            "");
    expect(t.worst[PT_REGISTER][0].time, 0);
    done(&t);
    analyse(&t, no_ports,
            LIST("a FDRE C<2 D<x Q>10", "l LUT1 I0<10 O>11",
                 "k CARRY4 CI<x CYINIT<x S<x,x,11,x DI<x,x,x,x O>20,21,22,23 CO>24,25,26,27",
                 "k2 CARRY4 CI<27 CYINIT<x S<x,x,x,x DI<x,x,x,x O>40,41,42,43 CO>44,45,46,47",
                 "b FDRE C<2 D<40 Q>30"),
            "");
    double s = STA_FF_CQ + STA_NET + STA_LUT; // a LUT beside the chain: no net
    expect(t.worst[PT_REGISTER][0].time,
           s + STA_CARRY_IN + 2 * STA_CARRY_STEP + STA_CARRY_OUT + STA_SETUP);
    assert_int_equal(t.worst[PT_REGISTER][0].levels.carry, 1);
    done(&t);
    // DI from a register has a net; DI of a bit is not in that bit's sum.
    analyse(&t, no_ports,
            LIST("a FDRE C<2 D<x Q>10",
                 "k CARRY4 CI<x CYINIT<x S<x,x,x,x DI<x,10,x,x O>20,21,22,23 CO>24,25,26,27",
                 "b FDRE C<2 D<21 Q>30"),
            "");
    expect(t.worst[PT_REGISTER][0].time, 0);
    done(&t);
    analyse(&t, no_ports,
            LIST("a FDRE C<2 D<x Q>10",
                 "k CARRY4 CI<x CYINIT<x S<x,x,x,x DI<x,10,x,x O>20,21,22,23 CO>24,25,26,27",
                 "b FDRE C<2 D<22 Q>30"),
            "");
    expect(t.worst[PT_REGISTER][0].time,
           STA_FF_CQ + STA_NET + STA_CARRY_IN + STA_CARRY_STEP + STA_CARRY_OUT + STA_SETUP);
    done(&t);
}

static void multiplexers_and_dsps(void **state)
{
    (void)state;
    struct timed t;
    analyse(&t, no_ports,
            LIST("a FDRE C<2 D<x Q>10", "l1 LUT1 I0<10 O>11", "l2 LUT1 I0<x O>12",
                 "m MUXF7 I0<11 I1<12 S<x O>13", "b FDRE C<2 D<13 Q>30"),
            "");
    expect(t.worst[PT_REGISTER][0].time, STA_FF_CQ + STA_NET + STA_LUT + STA_MUXF + STA_SETUP);
    done(&t);
    analyse(&t, no_ports,
            LIST("a FDRE C<2 D<x Q>10", "d DSP48E2 CLK<2 CEA1<10 A<10,x B<x,x P>20,21",
                 "e DSP48E2 CLK<2 A<x B<21 P>22", "b FDRE C<2 D<22 Q>30"),
            "");
    expect(t.worst[PT_REGISTER][0].time, STA_FF_CQ + 2 * (STA_NET + STA_DSP) + STA_NET + STA_SETUP);
    assert_int_equal(t.worst[PT_REGISTER][0].levels.dsp, 2);
    done(&t);
    // A cascade: from the first product to the register P of the third, and no net between.
    const char *link = "AREG=1 BREG=1 DREG=1 MREG=1";
    char first[256], second[256], third[256];
    snprintf(first, sizeof first, "d DSP48E2 %s PREG=0 CLK<2 A<10 PCIN<x PCOUT>20,21", link);
    snprintf(second, sizeof second, "e DSP48E2 %s PREG=0 CLK<2 A<10 PCIN<20,21 PCOUT>22", link);
    snprintf(third, sizeof third, "g DSP48E2 %s PREG=1 CLK<2 A<10 PCIN<22 P>23", link);
    analyse(&t, no_ports, LIST("a FDRE C<2 D<x Q>10", first, second, third), "");
    expect(t.worst[PT_REGISTER][0].time, STA_DSP_PRODUCT + 2 * STA_DSP_ADD + STA_SETUP);
    done(&t);
    // An operand ends at its register, a control input behind the adder; P begins at the clock.
    analyse(&t, no_ports, LIST("a FDRE C<2 D<x Q>10", third), "");
    expect(t.worst[PT_REGISTER][0].time, STA_FF_CQ + STA_NET + STA_SETUP);
    done(&t);
    analyse(&t, no_ports,
            LIST("a FDRE C<2 D<x Q>10", "d DSP48E2 CREG=1 PREG=1 CLK<2 C<10 OPMODE<10 P>20"), "");
    expect(t.worst[PT_REGISTER][0].time, STA_FF_CQ + STA_NET + STA_DSP_ADD + STA_SETUP);
    done(&t);
    analyse(&t, no_ports, LIST("a FDRE C<2 D<x Q>10", "d DSP48E2 CREG=1 PREG=1 CLK<2 C<10 P>20"),
            "");
    expect(t.worst[PT_REGISTER][0].time, STA_FF_CQ + STA_NET + STA_SETUP);
    done(&t);
    analyse(
        &t, no_ports,
        LIST("d DSP48E2 CREG=1 PREG=1 CLK<2 C<x P>20", "l LUT1 I0<20 O>21", "b FDRE C<2 D<21 Q>30"),
        "");
    expect(t.worst[PT_REGISTER][0].time, STA_DSP_CQ + STA_NET + STA_LUT + STA_SETUP);
    done(&t);
    // The adder: A, B and control inputs go through, C begins at the clock and ends at its
    // register.
    const double through_adder = STA_NET + STA_DSP_ADD + STA_DSP_CQ + STA_NET + STA_SETUP;
    analyse(
        &t, no_ports,
        LIST("a FDRE C<2 D<x Q>10", "d DSP48E2 CREG=1 CLK<2 A<10 C<x P>20", "b FDRE C<2 D<20 Q>30"),
        "");
    expect(t.worst[PT_REGISTER][0].time, STA_FF_CQ + through_adder);
    done(&t);
    analyse(&t, no_ports, LIST("d DSP48E2 CREG=1 CLK<2 C<x P>20", "b FDRE C<2 D<20 Q>30"), "");
    expect(t.worst[PT_REGISTER][0].time, through_adder - STA_NET);
    done(&t);
    analyse(&t, no_ports, LIST("a FDRE C<2 D<x Q>10", "d DSP48E2 CREG=1 CLK<2 C<10 P>20"), "");
    expect(t.worst[PT_REGISTER][0].time, STA_FF_CQ + STA_NET + STA_SETUP);
    done(&t);
    // Without C's register C goes through like A and B.
    analyse(&t, no_ports,
            LIST("a FDRE C<2 D<x Q>10", "d DSP48E2 USE_MULT=NONE CLK<2 C<10 P>20",
                 "b FDRE C<2 D<20 Q>30"),
            "");
    expect(t.worst[PT_REGISTER][0].time, STA_FF_CQ + through_adder);
    done(&t);
    // Without A's register A ends behind the multiplier; a link's P leaves the column.
    const char *alone = "d DSP48E2 BREG=1 DREG=1 MREG=1 CLK<2 A<10 P>20";
    analyse(&t, no_ports, LIST("a FDRE C<2 D<x Q>10", alone), "");
    expect(t.worst[PT_REGISTER][0].time, STA_FF_CQ + STA_NET + STA_DSP_OPERAND + STA_SETUP);
    done(&t);
    analyse(&t, no_ports,
            LIST("d DSP48E2 BREG=1 DREG=1 MREG=1 CLK<2 A<x P>20", "b FDRE C<2 D<20 Q>30"), "");
    expect(t.worst[PT_REGISTER][0].time, STA_DSP_PRODUCT + STA_DSP_CQ + STA_NET + STA_SETUP);
    done(&t);
}

static void memories(void **state)
{
    (void)state;
    struct timed t;
    // Block RAM ends a path and begins one.
    analyse(&t, no_ports,
            LIST("a FDRE C<2 D<x Q>10", "r RAMB36E2 CLKARDCLK<2 ADDRARDADDR<10 DOUTADOUT>20",
                 "l LUT1 I0<20 O>21", "b FDRE C<2 D<21 Q>30"),
            "");
    expect(t.worst[PT_REGISTER][0].time, STA_BRAM_CQ + STA_NET + STA_LUT + STA_SETUP);
    done(&t);
    // Distributed RAM is read at once: the path goes on through its address, of this output only.
    analyse(&t, no_ports,
            LIST("a FDRE C<2 D<x Q>10", "l LUT1 I0<10 O>11",
                 "r RAM64M8 WCLK<2 WE<x ADDRA<11 ADDRB<x ADDRH<x DOA>20 DOB>22",
                 "b FDRE C<2 D<20 Q>30", "c FDRE C<2 D<22 Q>31"),
            "");
    expect(t.worst[PT_REGISTER][0].time, STA_FF_CQ + 2 * (STA_NET + STA_LUT) + STA_NET + STA_SETUP);
    assert_string_equal(t.to, "b");
    done(&t);
    // Its write address ends one.
    analyse(
        &t, no_ports,
        LIST("a FDRE C<2 D<x Q>10", "l LUT1 I0<10 O>11", "r RAM64M8 WCLK<2 WE<x ADDRH<11 DOA>20"),
        "");
    expect(t.worst[PT_REGISTER][0].time, STA_FF_CQ + STA_NET + STA_LUT + STA_NET + STA_SETUP);
    done(&t);
    // A shift register: its address is read at once, its data are not.
    analyse(&t, no_ports,
            LIST("a FDRE C<2 D<x Q>10", "s SRLC32E CLK<2 CE<x D<10 A<x,x Q>20 Q31>21",
                 "b FDRE C<2 D<20 Q>30"),
            "");
    expect(t.worst[PT_REGISTER][0].time, STA_SRL_CQ + STA_NET + STA_SETUP);
    done(&t);
}

static void loop(void **state)
{
    (void)state;
    struct timed t;
    analyse(&t, no_ports,
            LIST("a FDRE C<2 D<x Q>10", "l1 LUT2 I0<10 I1<12 O>11", "l2 LUT1 I0<11 O>12",
                 "b FDRE C<2 D<12 Q>30"),
            "");
    assert_int_equal(t.paths.loops, 1);
    done(&t);
    // Through two bits of a carry cell there is none, backwards there is.
    analyse(&t, no_ports,
            LIST("k CARRY4 CI<x CYINIT<x S<10,11,x,x DI<x,x,x,x O>20,21,22,23 CO>24,25,26,27",
                 "l LUT1 I0<20 O>11", "a FDRE C<2 D<23 Q>10"),
            "");
    assert_int_equal(t.paths.loops, 0);
    done(&t);
    analyse(&t, no_ports,
            LIST("k CARRY4 CI<x CYINIT<x S<11,10,x,x DI<x,x,x,x O>20,21,22,23 CO>24,25,26,27",
                 "l LUT1 I0<21 O>11", "a FDRE C<2 D<23 Q>10"),
            "");
    assert_true(t.paths.loops > 0);
    done(&t);
}

// Two blocks: the path from the one's register through the other's ports, and a wire straight
// through a third.
static void blocks(void **state)
{
    (void)state;
    struct timed t;
    char *s = NULL;
    size_t size;
    FILE *f = open_memstream(&s, &size);
    assert_non_null(f);
    fputs("{\"modules\": {", f);
    put_module(f, "mr_from", LIST("clk_i<2", "o>4"), LIST("q FDRE C<2 D<x Q>3", "l LUT1 I0<3 O>4"),
               "");
    fputs(",", f);
    put_module(f, "mr_wire", LIST("i<2", "o>2"), (const char *const[]){NULL}, "");
    fputs(",", f);
    put_module(f, "mr_to", LIST("clk_i<2", "i<3"), LIST("l LUT1 I0<3 O>4", "q FDRE C<2 D<4 Q>5"),
               "");
    fputs(",", f);
    put_module(
        f, "mr_top", LIST("clk_i<2"),
        LIST("u_from mr_from clk_i<2 o>10", "u_wire mr_wire i<10 o>11", "u_to mr_to clk_i<2 i<11"),
        "");
    fputs("}}", f);
    fclose(f);
    analyse_text(&t, s, "mr_top");
    expect(t.worst[PT_REGISTER][0].time, STA_FF_CQ + 2 * (STA_NET + STA_LUT) + STA_SETUP);
    assert_string_equal(t.to, "u_to.q");
    done(&t);
    analyse_text(&t, s, "mr_to"); // alone, its port stands for a register
    expect(t.worst[PT_PORT][0].time, STA_FF_CQ + STA_NET + STA_LUT + STA_SETUP);
    expect(t.worst[PT_REGISTER][0].time, 0);
    done(&t);
    free(s);
}

static void names(void **state)
{
    (void)state;
    struct timed t;
    char name[64];
    analyse(&t, no_ports, LIST("a FDRE C<2 D<x Q>10", "b FDRE C<2 D<x Q>11"),
            "\"$_1\": {\"hide_name\": 0, \"bits\": [10]}, \"$1\": {\"hide_name\": 1, \"bits\": "
            "[10]}, \"long_name\": {\"hide_name\": 0, "
            "\"bits\": [10]},"
            "\"n_q\": {\"hide_name\": 0, \"bits\": [11, 10]}");
    assert_true(ds_name(&t.design, 0, 10, "a", name, sizeof name));
    assert_string_equal(name, "n_q[1]"); // of the RTL, and shorter than the other that is
    assert_false(ds_name(&t.design, 0, 2, "a", name, sizeof name));
    assert_string_equal(name, "a");
    done(&t);
}

static void refuse(char *json, const char *why)
{
    struct nl_library lib = {0};
    struct ds_design d = {0};
    char err[512] = "";
    json_t *root = parse(json);
    bool ok = nl_add(&lib, root, "file", err, sizeof err) && nl_bind(&lib, err, sizeof err) &&
              ds_expand(&d, nl_find(&lib, "mr_top"), err, sizeof err);
    assert_false(ok);
    if (!strstr(err, why))
        fail_msg("\"%s\" does not say \"%s\"", err, why);
    assert_null(strchr(err, '\n'));
    json_decref(root);
    ds_free(&d);
    nl_free(&lib);
}

static void refused(void **state)
{
    (void)state;
    refuse("{}", "not a netlist");
    refuse("{\"modules\": {\"mr_top\": {\"cells\": {\"x\": {\"type\": \"LDCE\", \"connections\": "
           "{}}}}}}",
           "LDCE");
    refuse("{\"modules\": {\"mr_top\": {\"cells\": {\"x\": {\"type\": \"LUT1\", \"connections\": "
           "{\"I0\": [2]}}}}}}",
           "no direction");
    refuse("{\"modules\": {\"mr_top\": {\"cells\": {\"x\": {\"type\": \"mr_other\", "
           "\"connections\": {}}}}}}",
           "no netlist of mr_other");
    refuse("{\"modules\": {\"mr_top\": {\"cells\": {\"x\": {\"type\": \"DSP48E2\", \"parameters\": "
           "{\"PREG\": \"01\"}, "
           "\"connections\": {}}}}}}",
           "DSP48E2 with registers");
    refuse("{\"modules\": {\"mr_top\": {\"cells\": {\"x\": {\"type\": \"LUT1\", "
           "\"port_directions\": {\"O\": \"output\"}, "
           "\"connections\": {\"O\": [2]}}, \"y\": {\"type\": \"LUT1\", \"port_directions\": "
           "{\"O\": \"output\"}, "
           "\"connections\": {\"O\": [2]}}}}}}",
           "two drivers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(luts_between_registers),
        cmocka_unit_test(ports),
        cmocka_unit_test(carry_bits),
        cmocka_unit_test(multiplexers_and_dsps),
        cmocka_unit_test(memories),
        cmocka_unit_test(loop),
        cmocka_unit_test(blocks),
        cmocka_unit_test(names),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
