#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the benches that count what they execute, and adds up what they reach of rtl/: lines, and branches (the ways of
# if, else and case), a file each in rtl.csv as in gcovr's table of host/. rtl.txt lists what no bench reaches.
# usage: tests/coverage/rtl.sh BUILD/coverage (from the root)
set -u
dir=$1
mkdir -p "$dir/logs"
rm -f "$dir"/rtl/*/tb.*.dat
for t in "$dir"/rtl/*/tb; do
    "$t" >"$dir/logs/rtl-$(basename "$(dirname "$t")")" 2>&1 || true
done
# A point of Verilator's: \001KEY\002VALUE..., and its count. f: file, l: line, n: number, o: kind, S: lines.
LC_ALL=C awk -v table="$dir/rtl.csv" '
    function value(key) { return match($0, "\001" key "\002[^\001'\'']*") ? substr($0, RSTART + 3, RLENGTH - 3) : "" }
    /^C / && (file = value("f")) ~ /^rtl\// {
        if (value("o") != "block") {
            way = file ":" value("l") ":" value("o") "\t" value("n")
            if (!(way in took)) ways[file]++
            took[way] += $NF
        }
        n = split(value("S"), part, ",")
        for (i = 1; i <= n; i++) {
            last = split(part[i], range, "-")
            for (l = range[1]; l <= range[last] + 0; l++) {
                line = file ":" l ":line"
                if (!(line in ran)) all[file]++
                ran[line] += $NF
            }
        }
    }
    END {
        for (line in ran) if (ran[line] == 0) print line
        for (way in took) if (took[way] == 0) print way
        for (line in ran) { split(line, at, ":"); got[at[1]] += ran[line] > 0 }
        for (way in took) { split(way, at, ":"); taken[at[1]] += took[way] > 0 }
        for (f in all) printf "%s,%d,%d,,%d,%d\n", f, all[f], got[f], ways[f], taken[f] >table
    }' "$dir"/rtl/*/tb.*.dat | cut -f1 | sort -t: -k1,1 -k2,2n >"$dir/rtl.txt"
