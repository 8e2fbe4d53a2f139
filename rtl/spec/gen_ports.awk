# SPDX-License-Identifier: Apache-2.0
# core_ports.def -> the text of one include file:
#   out=core_params        parameter declarations
#   out=core_params_pass   .N(N), ... for an instance
#   out=core_ports         all ports of millrace_core, clock and reset with them
#   out=core_bus_ports     those of axil, ch and host alone
#   out=core_memory_ports  those of ch and host alone
#   out=core_wires         a wrapper's wires for axil, status and what has a `wire` line, each core_NAME
#   out=core_pass          the connections of a wrapper's instance of millrace_core
# No list ends in a comma: what a wrapper adds comes before the include.
# usage: awk -v out=KIND -f gen_ports.awk core_ports.def
function prefix(group) { return group == "axil" ? "s_axil_" : group == "status" ? "" : "m_" group "_" }
function range(i) {
    if (group[i] == "ch") return bits[i] == 1 ? "[N-1:0]" : "[N*" bits[i] "-1:0]"
    return bits[i] == 1 ? "" : "[" bits[i] - 1 ":0]"
}
function port(i) { return prefix(group[i]) name[i] (dir[i] == "in" ? "_i" : "_o") }
function memory(i) { return group[i] == "ch" || group[i] == "host" }
function own_wire(i) { return !memory(i) || (group[i], name[i]) in wires }
function wire_name(i) { return "core_" (memory(i) ? group[i] "_" : "") name[i] }
function item(text) { list = list (list == "" ? "" : ",\n") "  " text }
function bad(why) { print "core_ports.def:" NR ": " why >"/dev/stderr"; failed = 1; exit 1 }
BEGIN { params = ports = 0 }
{ sub(/#.*/, "") }
NF == 0 { next }
$1 == "param" && NF == 3 { param[params] = $2; value[params++] = $3; next }
$1 == "wire" && NF == 3 { wires[$2, $3]; next }
$1 == "port" && NF == 5 && $2 ~ /^(axil|ch|host|status)$/ && $3 ~ /^(in|out)$/ && $4 + 0 > 0 {
    group[ports] = $2; dir[ports] = $3; bits[ports] = $4; name[ports++] = $5
    next
}
{ bad("not a param, port or wire line: " $0) }
END {
    if (failed) exit 1
    print "// Generated from rtl/spec/core_ports.def; do not edit."
    if (out == "core_params") for (i = 0; i < params; i++) item("parameter int " param[i] " = " value[i])
    else if (out == "core_params_pass") for (i = 0; i < params; i++) item("." param[i] "(" param[i] ")")
    else if (out == "core_wires") {
        # A wrapper needs some of them.
        print "  // verilator lint_off UNUSED"
        for (i = 0; i < ports; i++) if (own_wire(i)) printf "  logic %-12s %s;\n", range(i), wire_name(i)
        print "  // verilator lint_on UNUSED"
    } else if (out == "core_pass") {
        item(".clk_i"); item(".rst_ni")
        for (i = 0; i < ports; i++) item("." port(i) (own_wire(i) ? "(" wire_name(i) ")" : ""))
    } else if (out ~ /^core_(bus_|memory_|)ports$/) {
        if (out == "core_ports") { item("input  logic              clk_i"); item("input  logic              rst_ni") }
        for (i = 0; i < ports; i++)
            if (out == "core_ports" || memory(i) || (out == "core_bus_ports" && group[i] == "axil"))
                item(sprintf("%s logic %-12s %s", dir[i] == "in" ? "input " : "output", range(i), port(i)))
    } else { print "gen_ports.awk: out=" out " is not known" >"/dev/stderr"; exit 1 }
    if (list != "") print list
}
