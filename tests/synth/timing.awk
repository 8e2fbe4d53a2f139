# SPDX-License-Identifier: Apache-2.0
# The analyser's lines -> the tables of docs/inside/synthesis.md.
# usage: awk -F'\t' -v configs="tiny sim" -v limit=3.23 -f timing.awk ALL.tsv
#   ALL.tsv: configuration, module, parameters, then what tests/synth/sta/main.c prints
function mhz(ns) { return int(1000 / (ns + 0.10)) }
function code(s) { return s == "-" ? "" : "`" s "`" }
function whole(config) { return ns[config, "millrace_core"] }
{
    if (!($2 in top) || $15 > top[$2]) { top[$2] = $15; levels[$2] = $16; from[$2] = $17; via[$2] = $18; to[$2] = $19 }
    if (!(($1, $2) in ns) || $15 > ns[$1, $2]) ns[$1, $2] = $15
    sets[$1]++
    if ($15 > limit) over[$1]++
}
END {
    n = split(configs, c, " ")
    print "| configuration | longest path of the whole core, ns | MHz | sets of parameters that miss " limit " ns |"
    print "|---|---:|---:|---:|"
    for (i = 1; i <= n; i++)
        printf "| `%s` | %.2f | %d | %d of %d |\n", c[i], whole(c[i]), mhz(whole(c[i])), over[c[i]], sets[c[i]]
    printf "\n| module |"
    for (i = 1; i <= n; i++) printf " `%s` |", c[i]
    print " MHz | LUT/carry/DSP | longest path |"
    printf "|---|"
    for (i = 1; i <= n; i++) printf "---:|"
    print "---:|---|---|"
    while (1) {
        best = ""
        for (m in top) if (!(m in done) && (best == "" || top[m] > top[best] || (top[m] == top[best] && m < best))) best = m
        if (best == "") break
        done[best] = 1
        printf "| `%s` |", best
        for (i = 1; i <= n; i++) printf " %s |", (c[i], best) in ns ? ns[c[i], best] : ""
        split(via[best], v, " ")
        printf " %d | %s | %s to %s%s |\n", mhz(top[best]), levels[best], code(from[best]), code(to[best]), v[1] == "-" ? "" : " by " code(v[1])
    }
}
