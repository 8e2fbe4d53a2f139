# SPDX-License-Identifier: Apache-2.0
# bundles.def -> mr_bundles.svh: for each bundle macros for module headers and instances. P, Q and W are
# prefixes of names, which may be empty; master and slave are the sides of a bundle.
#   MR_NAME_M(P, ..) MR_NAME_S(P, ..)   the ports P<signal>_o, P<signal>_i of a master, a slave
#   MR_NAME_M_TO(P, Q), .._S_TO         an instance's ports P are those of the module around it, Q
#   MR_NAME_M_ON(P, W), .._S_ON         they are on wires W
#   MR_NAME_W(W, ..)                    the declarations of these wires
#   .._TO_AT(P, Q, I), .._ON_AT         they are client I of ports Q, of wires W; with K alone
# usage: awk -f gen_bundles.awk bundles.def
function bad(why) { print "bundles.def:" NR ": " why >"/dev/stderr"; failed = 1; exit 1 }
function range(w) { return w == "1" ? "" : w ~ /:/ ? "[" w "] " : "[" w "-1:0] " }
# The bits of client I: [I], or of K*64 [64*(I)+:64].
function at(w,    one) {
    if (w == "K") return "[I]"
    if (w !~ /^K\*/) return ""
    one = substr(w, 3)
    return "[" one "*(I)+:" one "]"
}
function ports(side,    i, out) {
    printf "`define MR_%s_%s(P%s) \\\n", toupper(name), side, params
    for (i = 1; i <= n; i++) {
        out = (dir[i] == "out") == (side == "M")
        # What a slave takes a part of has its waiver here.
        printf "  %s%s logic %sP``%s_%s%s%s\n", part[i] && !out ? "/* verilator lint_off UNUSED */ " : "",
            out ? "output" : "input ", range(bits[i]), signal[i], out ? "o" : "i", i < n ? "," : "",
            (part[i] && !out ? " /* verilator lint_on UNUSED */" : "") (i < n ? " \\" : "")
    }
}
function wires(    i) {
    printf "`define MR_%s_W(P%s) \\\n", toupper(name), params
    for (i = 1; i <= n; i++) printf "  logic %sP``%s%s\n", range(bits[i]), signal[i], i < n ? "; \\" : ""
}
function connections(side, how, each,    i, s) {
    printf "`define MR_%s_%s_%s%s(P, %s%s) \\\n", toupper(name), side, how, each ? "_AT" : "", how == "TO" ? "Q" : "W",
        each ? ", I" : ""
    for (i = 1; i <= n; i++) {
        s = (dir[i] == "out") == (side == "M") ? "_o" : "_i"
        printf "  .P``%s%s(%s``%s%s%s)%s\n", signal[i], s, how == "TO" ? "Q" : "W", signal[i], how == "TO" ? s : "",
            each ? at(bits[i]) : "", i < n ? ", \\" : ""
    }
}
function flush(    side, k, i) {
    if (!n) return
    wires()
    for (k = 1; k <= 2; k++) {
        side = k == 1 ? "M" : "S"
        ports(side)
        connections(side, "TO", 0)
        connections(side, "ON", 0)
        if (params ~ /K/) { connections(side, "TO", 1); connections(side, "ON", 1) }
    }
    n = 0
}
BEGIN { print "// Generated from rtl/spec/bundles.def; do not edit.\n`ifndef MR_BUNDLES\n`define MR_BUNDLES" }
{ sub(/#.*/, "") }
NF == 0 { next }
$1 == "bundle" && NF >= 2 {
    flush()
    name = $2
    params = ""
    for (i = 3; i <= NF; i++) params = params ", " $i
    next
}
($1 == "in" || $1 == "out") && (NF == 3 || (NF == 4 && $4 == "part")) && name != "" {
    dir[++n] = $1
    bits[n] = $2
    signal[n] = $3
    part[n] = NF == 4
    next
}
{ bad("not a bundle, in or out line: " $0) }
END {
    if (failed) exit 1
    flush()
    print "`endif"
}
