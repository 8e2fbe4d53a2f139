# SPDX-License-Identifier: Apache-2.0
# An elaborated design in RTLIL -> a file for each module, which Yosys synthesises alone: the module, and its children
# as black boxes with their ports. Attributes that synthesis does not look at are left out, so that the file changes only
# with what the module does: its hash is the key of the cache.
# Modules that differ in nothing but the number of their channel (parameter CH) are one: the last one stands for all.
# usage: awk -v dir=DIR -f split.awk DESIGN.il DESIGN.il
#   DIR/N.il     the N-th module
#   DIR/modules  lines of "N<TAB>type in Yosys<TAB>module<TAB>PARAMETER=value,..<TAB>1 for units: what stands in the parts of millrace_core"
function base(type,   part) { split(type, part, "\\"); return part[2] }
# Variables of functions have names with a running number of the whole design: $fN, N counted in the module.
function renumber(   i) {
    for (i = 1; i <= NF; i++)
        if ($i ~ /\$func\$/) {
            if (!($i in variable)) variable[$i] = "$f" ++variables
            $i = variable[$i]
        }
}
function same(type) { return (type in group) ? last[group[type]] : type }

NR == FNR {
    if ($1 == "module") { mod = $2; stub[mod] = "attribute \\blackbox 1\nmodule " mod "\n" }
    else if ($1 == "wire" && $0 ~ / (input|output|inout) [0-9]+ /) stub[mod] = stub[mod] $0 "\n"
    else if ($1 == "parameter" && $0 ~ /^  p/) {
        params[mod] = params[mod] (params[mod] == "" ? "" : ",") substr($2, 2) "=" $3
        if ($2 == "\\CH") channel[mod] = $3
    } else if ($1 == "cell" && !((mod, $2) in inside)) {
        inside[mod, $2] = 1
        contents[mod] = contents[mod] " " $2
    }
    else if ($0 == "end") {
        stub[mod] = stub[mod] "end\n"
        if (mod in channel) {
            key = params[mod]
            sub(/CH=[0-9]+/, "CH", key)
            group[mod] = key = base(mod) " " key
            if (!(key in last) || channel[mod] > channel[last[key]]) last[key] = mod
        }
    }
    next
}

# The units: what stands in the parts of the core.
FNR == 1 {
    k = split(contents["\\millrace_core"], part, " ")
    for (i = 1; i <= k; i++) {
        u = split(contents[part[i]], unit, " ")
        for (j = 1; j <= u; j++) if (unit[j] in stub) block[unit[j]] = 1
    }
}
/^(autoidx|#)/ || /^  parameter / { next }
/^ *attribute / { # of what stands on the next line
    if ($2 ~ /^\\(keep|init|ram_style|rom_style|no_rw_check)$/) kept = kept $0 "\n"
    next
}
$1 == "module" {
    mod = $2
    kept = children = ""
    split("", child)
    split("", variable)
    variables = 0
    skip = same(mod) != mod
    if (!skip) file = dir "/" ++n ".il"
}
skip { next }
$1 == "cell" && ($2 in stub) {
    $2 = same($2)
    $0 = "  cell " $2 " " $3
    if (!($2 in child)) { child[$2] = 1; children = children stub[$2] }
}
/\$func\$/ { renumber() }
{ print kept $0 >file; kept = "" }
$0 == "end" {
    printf "%s", children >file
    close(file)
    printf "%d\t%s\t%s\t%s\t%d\n", n, mod, base(mod), params[mod], mod in block >(dir "/modules")
}
