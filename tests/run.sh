#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs test programs that print TAP and adds their results up.
# usage: tests/run.sh LIST LOGDIR [JOBS]   LIST: lines of "name<TAB>command"
# Last line: "N passed, N failed". A program that prints no test, dies, or skips (in CI) has failed.
set -u
# What a test makes is a make of its own, not a part of the one that called.
unset MAKEFLAGS MFLAGS MAKELEVEL
list=$1 logs=$2 jobs=${3:-2}
mkdir -p "$logs"
rm -f "$logs"/*.log "$logs"/*.sum
export logs

run_one() {
    name=${1%%$'\t'*} cmd=${1#*$'\t'}
    start=$(date +%s)
    timeout "${TEST_TIMEOUT:-3600}" bash -c "$cmd" >"$logs/$name.log" 2>&1 </dev/null
    status=$?
    awk -v status="$status" -v ci="${CI:-}" '
        /^[ \t]*ok /     { if (ci != "" && /# *[Ss][Kk][Ii][Pp]/) { failed++; next } passed++ }
        /^[ \t]*not ok / { failed++ }
        END { if (status != 0 && failed == 0) failed = 1
              if (passed + failed == 0) failed = 1
              print passed + 0, failed + 0 }' "$logs/$name.log" >"$logs/$name.sum"
    read -r p f <"$logs/$name.sum"
    printf '%-36s %4d passed %3d failed  %4d s\n' "$name" "$p" "$f" $(($(date +%s) - start))
    if [ "$f" != 0 ]; then
        echo "---- $name: exit status $status; last lines of $logs/$name.log"
        { grep -E '^[ \t]*not ok ' "$logs/$name.log" | head -10; tail -15 "$logs/$name.log"; } |
            sed 's/^/    /'
    fi
}
export -f run_one

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
    grep -E '^[ \t]*not ok ' "$log" | head -10 | sed 's/^[ \t]*/    /'
done
cat "$logs"/*.sum | awk '{ p += $1; f += $2 } END { printf "%d passed, %d failed\n", p, f; exit f != 0 || p == 0 }'
