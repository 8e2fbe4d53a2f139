#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs test programs that print TAP and adds their results up.
# usage: tests/run.sh LIST LOGDIR [JOBS]   LIST: lines of "name<TAB>command"
# Last line: "N passed, N failed". A program that prints no test, dies, or skips (in CI) has failed.
# LOGDIR/times.txt: seconds by the clock and of processors of each, the longest first; BEFORE, a file of lines "wall user
# system name", is what came before.
set -u
# What a test makes is a make of its own, not a part of the one that called.
unset MAKEFLAGS MFLAGS MAKELEVEL
list=$1 logs=$2 jobs=${3:-2}
mkdir -p "$logs"
rm -f "$logs"/*.log "$logs"/*.sum "$logs"/*.time
export logs

# What failed in a log, with the remarks in front of it.
failures() {
    awk '/^[ \t]*#/ { remarks = remarks $0 "\n"; next }
         /^[ \t]*not ok / { printf "%s%s\n", remarks, $0 }
         { remarks = "" }' "$1" | head -30
}

run_one() {
    name=${1%%$'\t'*} cmd=${1#*$'\t'}
    TIMEFORMAT="%R %U %S $name"
    { time timeout "${TEST_TIMEOUT:-3600}" bash -c "$cmd" >"$logs/$name.log" 2>&1 </dev/null; } 2>"$logs/$name.time"
    status=$?
    read -r seconds _ <"$logs/$name.time"
    awk -v status="$status" -v ci="${CI:-}" '
        /^[ \t]*ok /     { if (ci != "" && /# *[Ss][Kk][Ii][Pp]/) { failed++; next } passed++ }
        /^[ \t]*not ok / { failed++ }
        END { if (status != 0 && failed == 0) failed = 1
              if (passed + failed == 0) failed = 1
              print passed + 0, failed + 0 }' "$logs/$name.log" >"$logs/$name.sum"
    read -r p f <"$logs/$name.sum"
    printf '%-36s %4d passed %3d failed  %4d s\n' "$name" "$p" "$f" "${seconds%.*}"
    if [ "$f" != 0 ]; then
        echo "---- $name: exit status $status; last lines of $logs/$name.log"
        { failures "$logs/$name.log"; tail -15 "$logs/$name.log"; } | sed 's/^/    /'
    fi
}
export -f failures run_one

# "last-" in front of a name: after all others, for what looks at their logs.
run_all() {
    tr '\n' '\0' | xargs -0 -r -P "$jobs" -I{} bash -c 'run_one "$1"' _ {}
}
grep -v '^last-' "$list" | run_all
grep '^last-' "$list" | run_all
# What did not run, and again what failed: at the end, where a cut log still has it.
grep -HE '^[ \t]*ok .*# *[Ss][Kk][Ii][Pp]' "$logs"/*.log | sed -E 's|^.*/([^/]*)\.log:[ \t]*|skipped: \1: |'
grep -lv ' 0$' "$logs"/*.sum | while read -r sum; do
    log=${sum%.sum}.log
    echo "failed: $(basename "$sum" .sum)"
    failures "$log" | sed 's/^[ \t]*/    /'
done
{
    echo '# wall s, processor s, what'
    cat ${BEFORE:+"$BEFORE"} "$logs"/*.time |
        awk '{ printf "%8.1f %8.1f %s\n", $1, $2 + $3, $4; wall += $1; cpu += $2 + $3 }
             END { printf "%8.1f %8.1f %s\n", wall, cpu, "sum" }' | sort -k2,2nr
} >"$logs/times.txt"
awk '$3 == "sum" { printf "processor time: %d s, by suite in %s\n", $2, FILENAME }' "$logs/times.txt"
cat "$logs"/*.sum | awk '{ p += $1; f += $2 } END { printf "%d passed, %d failed\n", p, f; exit f != 0 || p == 0 }'
