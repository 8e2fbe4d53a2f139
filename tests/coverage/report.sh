#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A table of folders, and a test a folder: not below its floor in tests/coverage/floors.tsv. Prints TAP.
# usage: tests/coverage/report.sh BUILD/coverage (from the root)
set -u
dir=$1
awk -F'[,\t]' '
    function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
    FILENAME ~ /floors.tsv$/ { if ($0 !~ /^#/ && NF) { lines_least[$1] = $2; branches_least[$1] = $3 }; next }
    $2 ~ /^[0-9]+$/ { f = folder($1); all[f] += $2; got[f] += $3; ways[f] += $5; taken[f] += $6 }
    END {
        for (f in all) {
            l = 100 * got[f] / all[f]
            b = ways[f] ? 100 * taken[f] / ways[f] : 100
            good = (f in lines_least) && l >= lines_least[f] && b >= branches_least[f]
            printf "%s\t%sok N - %s: %.1f %% of %d lines", f, good ? "" : "not ", f, l, all[f] | "sort | cut -f2-"
            if (ways[f]) printf ", %.1f %% of %d branches", b, ways[f] | "sort | cut -f2-"
            if (f in lines_least) printf "; floors %s, %s\n", lines_least[f], branches_least[f] | "sort | cut -f2-"
            else print "; has no floor in tests/coverage/floors.tsv" | "sort | cut -f2-"
        }
        close("sort | cut -f2-")
        for (f in lines_least) if (!(f in all)) print "not ok N - " f " has a floor and no lines"
    }' tests/coverage/floors.tsv "$dir"/{host,rtl}.csv | awk '{ sub(/ N /, " " NR " "); print; bad += /^not/ }
    END { print "1.." NR; exit bad > 0 }'
status=$?
echo "# lines that are not reached: $dir/host.txt, $dir/rtl.txt"
exit $status
