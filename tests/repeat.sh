#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs test suites again and again, to see whether one fails now and then. Modes:
#   quiet   as `make test` runs them: as many at a time as there are processors
#   one     each has one processor and sees no other
#   load    four times as many at a time as there are processors, so that each gets a quarter of one
# make test-repeat builds what it needs.
# usage: tests/repeat.sh LIST [PATTERN...]   LIST: as of tests/run.sh; PATTERN: part of a suite's name
# Environment:
#   TIMES=10                   runs of each suite in each mode, those in the table included
#   MODES="quiet one load"     one after the other
#   TABLE=docs/results/repeat.txt   read, and written anew with the runs added
#   LOGS=build/repeat          of runs that failed
# A suite's line counts runs of all revisions from the first named to the last. When its test or what it tests was
# mended, delete the line, so that its runs start again.
# Status 1 when a run has failed. TIMES=0 only sorts the table.
# "last-" suites judge the logs of the others, so they are left out.
set -u
list=$1
shift
times=${TIMES:-10} modes=${MODES:-quiet one load}
table=${TABLE:-docs/results/repeat.txt} logs=${LOGS:-build/repeat}
here=$(dirname "$0")
# Changes that are not checked in are shown by a plus.
revision=$(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD -- . ':!docs/results' || echo +)
machine="$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) processors"
mkdir -p "$(dirname "$table")" "$logs" || exit 1
work=$(mktemp -d) || exit 1
touch "$work/record"

# What this script has started is ended with it: the tests and all that they have started.
declare -A running=() # pid -> lane
end_tree() { # PID...
    local p children
    for p; do
        # The parent first, so that it writes down no run that was cut short.
        mapfile -t children < <(pgrep -P "$p")
        kill "$p" 2>/dev/null
        [ ${#children[@]} = 0 ] || end_tree "${children[@]}"
    done
}

# Adds the record of this call to the table.
write_table() {
    exec {lock}>"$work/lock"
    flock "$lock" # no run is written down between reading the record and emptying it
    [ -e "$table" ] || : >"$table"
    {
        echo "make test-repeat: how often each suite ran, and how often it failed. Modes: quiet, as many at a time as"
        echo "there are processors; one, each on one processor; load, four times as many at a time as there are"
        echo "processors. Seconds, shortest and longest run; the load average when runs began; first and last revision."
        echo
        echo "machine   $machine"
        echo "date      $(date -u +%Y-%m-%d)"
        echo
        awk -v table="$table" '
            FILENAME == table && ($2 != "quiet" && $2 != "one" && $2 != "load" || NF != 11) { next }
            { k = sprintf("%-28s %-6s", $1, $2)
              if (!(k in n)) { least[k] = $5; most[k] = $6; low[k] = $7; high[k] = $9; first[k] = $10 }
              n[k] += $3; bad[k] += $4; last[k] = $11
              if ($5 + 0 < least[k] + 0) least[k] = $5
              if ($6 + 0 > most[k] + 0) most[k] = $6
              if ($7 + 0 < low[k] + 0) low[k] = $7
              if ($9 + 0 > high[k] + 0) high[k] = $9 }
            END { form = "%s %5s %7s %9s %9s   %6s to %-6s %s %s\n"
                  printf form, sprintf("%-28s %-6s", "suite", "mode"), "runs", "failed", "shortest", "longest", "load",
                         "load", "first       ", "last"
                  fewest = -1
                  for (k in n) {
                      printf form, k, n[k], bad[k], least[k], most[k], low[k], high[k], first[k], last[k] | "LC_ALL=C sort"
                      runs += n[k]; failed += bad[k]; lines++
                      if (fewest < 0 || n[k] < fewest) fewest = n[k]
                  }
                  close("LC_ALL=C sort")
                  printf "\n%d runs, %d failed; %d lines, at least %d runs in each\n", runs, failed, lines,
                         fewest < 0 ? 0 : fewest }' "$table" "$work/record"
    } >"$work/table" && cp "$work/table" "$table.tmp" && mv "$table.tmp" "$table" && : >"$work/record"
    exec {lock}>&-
}
finish() {
    trap - EXIT
    end_tree "${!running[@]}"
    write_table
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

done_already() { # MODE SUITE
    awk -v m="$1" -v s="$2" '$2 == m && $1 == s && NF == 11 { n += $3 } END { print n + 0 }' "$table" "$work/record"
}
one_run() { # MODE SUITE NUMBER LANE
    local mode=$1 suite=$2 at=$work/$4 begun status pin=() load seconds log
    [ "$mode" != one ] || pin=(taskset -c "$4")
    mkdir -p "$at"
    grep -P "^\Q$suite\E\t" "$list" >"$at/list"
    begun=$(date +%s%N) load=$(cut -d' ' -f1 /proc/loadavg)
    "${pin[@]}" "$here/run.sh" "$at/list" "$at/logs" 1 >"$at/out" 2>&1 </dev/null
    status=$?
    seconds=$(awk "BEGIN { printf \"%.1f\", ($(date +%s%N) - $begun) / 1e9 }")
    flock "$work/lock" tee -a "$work/record" >/dev/null \
        <<<"$suite $mode 1 $((status != 0)) $seconds $seconds $load to $load $revision $revision"
    [ $status = 0 ] && return
    log=$logs/$mode-$suite-$3-$revision.log
    cat "$at/out" "$at"/logs/*.log >"$log"
    echo "FAILED: $suite ($mode, run $3): $log"
    touch "$work/failed"
}
# Waits until fewer than MAX suites run, and until SUITE is none of them.
wait_below() { # MAX SUITE
    local p ended
    while [ "${#running[@]}" -ge "$1" ] || [[ " ${running[*]} " == *" $2:"* ]]; do
        wait -n -p ended || true
        unset "running[$ended]"
    done
    for ((lane = 0; ; lane++)); do
        for p in "${running[@]}"; do [ "${p##*:}" != "$lane" ] || continue 2; done
        return
    done
}

[ -e "$table" ] || write_table
mapfile -t suites < <(cut -f1 "$list" | grep -v '^last-' | { [ $# = 0 ] && cat || grep -F "$(printf '%s\n' "$@")"; })
[ ${#suites[@]} != 0 ] || { echo "tests/repeat.sh: no suite in $list has one of these in its name: $*" >&2; exit 2; }
processors=$(nproc)
# Round by round, so that what there was time for is spread over all suites. A round begins while the last
# suites of the one before still run: no processor waits for them.
for mode in $modes; do
    case $mode in
    quiet | one) lanes=$processors ;;
    load) lanes=$((4 * processors)) ;;
    *) echo "tests/repeat.sh: mode $mode is not known: quiet, one or load" >&2; exit 2 ;;
    esac
    for ((n = 1; n <= times; n++)); do
        for suite in "${suites[@]}"; do
            [ "$(done_already "$mode" "$suite")" -ge "$n" ] && continue
            wait_below "$lanes" "$suite"
            one_run "$mode" "$suite" "$n" "$lane" &
            running[$!]=$suite:$lane
        done
        [ ! -s "$work/record" ] || echo "$mode: the last suite of round $n of $times has begun, $(date -u +%H:%M:%S)"
        write_table
    done
    wait_below 1 - # before the mode changes
    write_table
done
[ ! -e "$work/failed" ]
