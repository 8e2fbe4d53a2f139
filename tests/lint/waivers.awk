# SPDX-License-Identifier: Apache-2.0
# Judges lint waivers, DPI and public attributes of RTL sources. Prints "rule<TAB>file:line: what" for
# each fault. usage: awk -f tests/lint/waivers.awk FILES
#   waiver  lint_off without a lint_on of the same rule after it, without a rule, or without a reason:
#           a comment beside it, in the line above it, or within the region that it covers
#   dpi     import or export "DPI"
#   public  a public attribute outside `ifdef MILLRACE_VIEW .. `else/`endif
#   config  lint rules switched off from a configuration file (`verilator_config`)
function fault(rule, line, what) { printf "%s\t%s:%d: %s\n", rule, file, line, what }
function finish(   r) {
    for (r in off)
        fault("waiver", off[r], "lint_off " r " has no lint_on")
    delete off
}
# Text of comments in s, without tool directives.
function remark(s,   t) {
    gsub(/\/[\/*][ \t]*verilator[^*]*(\*\/|$)/, "", s)
    if (!match(s, /\/[\/*]/))
        return ""
    t = substr(s, RSTART + 2)
    gsub(/[-=* \t\/]/, "", t)
    return t
}
FNR == 1 { finish(); file = FILENAME; depth = view = 0; above = "" }
/^[ \t]*`if(n)?def/ { depth++; if (/`ifdef[ \t]+MILLRACE_VIEW/) view = depth }
/^[ \t]*`else/ && view == depth { view = 0 }
/^[ \t]*`endif/ { if (view == depth) view = 0; depth-- }
/"DPI/ && /import|export/ { fault("dpi", FNR, "DPI") }
/verilator[ \t]+public/ && !view { fault("public", FNR, "public attribute outside MILLRACE_VIEW") }
/`verilator_config/ { fault("config", FNR, "waivers belong beside the code") }
/verilator[ \t]+lint_off/ {
    n = split(substr($0, match($0, /lint_off/) + 8), word, /[ \t*\/]+/)
    rule = word[1] == "" ? word[2] : word[1]
    if (rule == "")
        fault("waiver", FNR, "lint_off without a rule")
    else {
        if (rule in off)
            fault("waiver", FNR, "lint_off " rule " twice")
        off[rule] = FNR
        reason[rule] = remark($0) remark(above)
    }
}
{ for (r in off) reason[r] = reason[r] remark($0) }
/verilator[ \t]+lint_on/ {
    n = split(substr($0, match($0, /lint_on/) + 7), word, /[ \t*\/]+/)
    rule = word[1] == "" ? word[2] : word[1]
    if (!(rule in off))
        fault("waiver", FNR, "lint_on " rule " without lint_off")
    else if (reason[rule] == "")
        fault("waiver", off[rule], "lint_off " rule " without a reason")
    delete off[rule]
}
{ above = $0 }
END { finish() }
