#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs test suites again and again, to see whether one fails now and then: on the machine as it is (quiet), on one
# processor (one), and beside a busy loop on each processor (load). make test-repeat builds what it needs.
# usage: tests/repeat.sh LIST [PATTERN...]   LIST: as of tests/run.sh; PATTERN: part of a suite's name
# Environment:
#   TIMES=10                   runs of each suite in each mode
#   MODES="quiet one load"     one after the other
#   RECORD=build/repeat.tsv    a line for each run, appended: what this revision has had already is not run again
#   TABLE=docs/results/repeat.txt
#   LOGS=build/repeat          of runs that failed
# Ends with a table of the revision's runs; status 1 when one of them has failed. TIMES=0 makes the table alone.
# "last-" suites judge the logs of the others, so they are left out.
set -u
list=$1
shift
times=${TIMES:-10} modes=${MODES:-quiet one load}
record=${RECORD:-build/repeat.tsv} table=${TABLE:-docs/results/repeat.txt} logs=${LOGS:-build/repeat}
here=$(dirname "$0")
# Changes that are not checked in are another revision, until the next commit.
revision=$(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD -- || echo +)
machine="$(uname -n), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) processors"
mkdir -p "$(dirname "$record")" "$(dirname "$table")" "$logs" && touch "$record" || exit 1
work=$(mktemp -d) || exit 1

# What this script has started is ended with it: a test and all that it has started, and the load.
end_tree() { # PID...
    local p
    for p; do
        # shellcheck disable=SC2046
        end_tree $(pgrep -P "$p")
        kill "$p" 2>/dev/null
    done
}
loops=() running=
finish() {
    # shellcheck disable=SC2086
    end_tree $running "${loops[@]}"
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
start_load() {
    local i
    for ((i = 0; i < $(nproc); i++)); do
        # It ends by itself, too, when this script was killed.
        bash -c 'while kill -0 "$1" 2>/dev/null; do for ((i = 0; i < 300000; i++)); do :; done; done' _ $$ &
        loops+=($!)
    done
}
stop_load() {
    [ ${#loops[@]} = 0 ] || kill "${loops[@]}" 2>/dev/null
    loops=()
}

done_already() { # MODE SUITE
    awk -F'\t' -v r="$revision" -v m="$1" -v s="$2" '$1 == r && $3 == m && $4 == s { n++ } END { print n + 0 }' "$record"
}
one_run() { # MODE SUITE NUMBER
    local mode=$1 suite=$2 begun status pin=() load
    [ "$mode" != one ] || pin=(taskset -c 0)
    grep -P "^\Q$suite\E\t" "$list" >"$work/list"
    begun=$(date +%s%N) load=$(cut -d' ' -f1 /proc/loadavg)
    "${pin[@]}" "$here/run.sh" "$work/list" "$work/logs" 1 >"$work/out" 2>&1 </dev/null &
    running=$!
    wait "$running"
    status=$?
    running=
    printf '%s\t%s\t%s\t%s\t%d\t%s\t%s\n' "$revision" "$machine" "$mode" "$suite" "$status" \
        "$(awk "BEGIN { printf \"%.1f\", ($(date +%s%N) - $begun) / 1e9 }")" "$load" >>"$record"
    [ $status = 0 ] && return
    cat "$work/out" "$work"/logs/*.log >"$logs/$mode-$suite-$3-$revision.log"
    echo "FAILED: $suite ($mode, run $3): $logs/$mode-$suite-$3-$revision.log"
}

mapfile -t suites < <(cut -f1 "$list" | grep -v '^last-' | { [ $# = 0 ] && cat || grep -F "$(printf '%s\n' "$@")"; })
[ ${#suites[@]} != 0 ] || { echo "tests/repeat.sh: no suite in $list has one of these in its name: $*" >&2; exit 2; }
# Round by round, so that what there was time for is spread over all suites.
for mode in $modes; do
    case $mode in quiet | one | load) ;; *) echo "tests/repeat.sh: mode $mode is not known: quiet, one or load" >&2; exit 2 ;; esac
    [ "$mode" != load ] || [ "$times" = 0 ] || start_load
    for ((n = 1; n <= times; n++)); do
        for suite in "${suites[@]}"; do
            [ "$(done_already "$mode" "$suite")" -ge "$n" ] || one_run "$mode" "$suite" "$n"
        done
    done
    stop_load
done

{
    echo "make test-repeat: how often each suite ran, and how often it failed. Seconds, shortest and longest; the load"
    echo "average when runs began says what else the machine did. Modes: quiet, nothing beside it from this script; one,"
    echo "on one processor; load, beside a busy loop on each processor."
    echo
    echo "revision  $revision"
    echo "machine   $machine"
    echo "date      $(date -u +%Y-%m-%d)"
    echo
    awk -F'\t' -v r="$revision" '
        $1 != r { next }
        { k = $4 "\t" $3; if (!(k in n)) { order[++keys] = k; least[k] = $6; most[k] = $6; low[k] = $7; high[k] = $7 }
          n[k]++; bad[k] += $5 != 0; runs++; failed += $5 != 0
          if ($6 + 0 < least[k] + 0) least[k] = $6
          if ($6 + 0 > most[k] + 0) most[k] = $6
          if ($7 + 0 < low[k] + 0) low[k] = $7
          if ($7 + 0 > high[k] + 0) high[k] = $7 }
        END { printf "%-28s %-6s %5s %7s %9s %9s   %s\n", "suite", "mode", "runs", "failed", "shortest", "longest", "load average"
              for (i = 1; i <= keys; i++) { k = order[i]; split(k, p, "\t")
                  printf "%-28s %-6s %5d %7d %9.1f %9.1f   %s to %s\n", p[1], p[2], n[k], bad[k], least[k], most[k], low[k], high[k] }
              printf "\n%d runs, %d failed\n", runs, failed }' "$record"
} >"$table.tmp" && mv "$table.tmp" "$table" && sed -n '5,$p' "$table"
! awk -F'\t' -v r="$revision" '$1 == r && $5 != 0 { bad = 1 } END { exit !bad }' "$record"
