#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A table of folders, and a test a folder: not below its floor in tests/coverage/floors.tsv. What no bench reaches of
# rtl/ stands in tests/coverage/unreached.tsv, with its reason, what nothing reaches of host/ in unreached-host.tsv, and
# which of its lines do not take each of their branches in unreached-branches.tsv.
# Prints TAP.
# usage: tests/coverage/report.sh BUILD/coverage (from the root)
set -u
dir=$1
# Places by their text: lines move. A file with processes that is in no bench is one place.
{
    cut -d: -f1,2 "$dir/rtl.txt" | sort -u | while IFS=: read -r file line; do
        printf '%s\t%s\n' "$file" "$(sed -n "${line}s/^ *//p" "$file")"
    done
    grep -lE '^ *always' rtl/*.sv rtl/*/*.sv | grep -vxFf <(cut -d, -f1 "$dir/rtl.csv") | sed 's/$/\tall of it/'
} | sort >"$dir/rtl.places"
awk -F'\t' -v OFS='\t' '!/^#/ { print $1, $2 }' tests/coverage/unreached.tsv | sort | diff - "$dir/rtl.places" |
    sed -n 's/^< /is reached, or is not there: /p; s/^> /is not reached: /p' >"$dir/rtl.diff"
# Of host/ by patterns, each of which fits so many lines at most.
judge() { # TABLE LIST
    awk -F'\t' '
    FNR == NR { if (!/^#/) { n++; file[n] = "^" $1 "$"; gsub(/\./, "[.]", file[n]); gsub(/\*/, ".*", file[n]); line[n] = $2; most[n] = $3 }; next }
    {
        at = index($0, ":")
        text = substr($0, at + 1)
        sub(/^[0-9]*:/, "", text)
        for (i = 1; i <= n && !(substr($0, 1, at - 1) ~ file[i] && text ~ line[i]); i++) {}
        if (i > n) print "is not reached, and has no reason: " $0
        else if (++count[i] > most[i]) print "is not reached, and is one more than " most[i] " of " file[i] " " line[i] ": " $0
    }
    END { for (i = 1; i <= n; i++) if (!count[i]) print "nothing is left of: " file[i] " " line[i] }
    ' "$@"
}
judge tests/coverage/unreached-host.tsv "$dir/host.txt" >"$dir/host.diff"
judge tests/coverage/unreached-branches.tsv "$dir/branches.txt" >"$dir/branches.diff"
{
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
    }' tests/coverage/floors.tsv "$dir"/{host,rtl}.csv
    [ ! -s "$dir/rtl.diff" ] || printf 'not '
    echo "ok N - what no bench reaches of rtl/ stands in tests/coverage/unreached.tsv, and nothing else does"
    sed 's/^/# /' "$dir/rtl.diff"
    ! grep -q '^is not' "$dir/host.diff" || printf 'not '
    echo "ok N - what nothing reaches of host/ has its reason in tests/coverage/unreached-host.tsv"
    sed 's/^/# /' "$dir/host.diff"
    ! grep -q '^is not' "$dir/branches.diff" || printf 'not '
    echo "ok N - lines of host/ of which a branch is not taken have their reason in tests/coverage/unreached-branches.tsv"
    sed 's/^/# /' "$dir/branches.diff"
} | awk '/^#/ { print; next } { sub(/ N /, " " ++n " "); print; bad += /^not/ } END { print "1.." n; exit bad > 0 }'
status=$?
exit $status
