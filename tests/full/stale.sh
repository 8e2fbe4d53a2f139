#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lists the parts of make test-full whose last result is older than what they look at, or that have none: their line in
# docs/results/test-full.txt names a revision, and files below the paths here have changed since. The suites of the part
# interop have their lines in docs/results/interop.txt.
# usage: [RESULT=FILE] [INTEROP=FILE] tests/full/stale.sh (make test-full-stale). Status 1 if there is one.
set -u
result=${RESULT:-docs/results/test-full.txt} interop=${INTEROP:-docs/results/interop.txt}
rtl="rtl" host="host Makefile" devices="rtl sim hls host Makefile"
suites="tests/interop/run.sh tests/interop/requirements.txt tests/interop/tap.py tests/interop/hub.py tests/interop/*.c"

sources() { # part: where the files are that its result depends on, apart from its own test
    case $1 in
        synth | timing* | netlist) echo "$rtl tests/synth" ;;
        formal) echo "$rtl tests/formal" ;;
        mutants) echo "$devices tests/mutants tests/rtl tests/programs" ;;
        benches) echo "$rtl tests/rtl" ;;
        driver | debug) echo "$devices driver tests/driver" ;;
        fuzz | planted) echo "$host tests/fuzz" ;;
        interop-train) echo "$host $suites tests/interop/train.py examples/train.py" ;;
        interop-scratch) echo "$host $suites tests/interop/scratch.py tests/train models/train" ;;
        interop-speed) echo "$host $suites tests/interop/speed.py tests/interop/ggml" ;;
        interop-configs) echo "$host $suites tests/interop/configs.*" ;;
        interop-*) echo "$host $suites tests/interop/${1#interop-}.py" ;;
        plan | serve | pack24) echo "$host tests/serve tests/full" ;;
        accuracy) echo "$host tests/unit models" ;;
        prepare) echo "$devices tests/rtl tests/unit tests/programs tests/full" ;;
        dist) echo "$devices driver models tests/full" ;;
        docs | test | lint) echo ". :!CHANGELOG.md :!SECURITY.md :!.github :!.ci" ;;
        *) echo "$devices tests" ;;
    esac
}
list=$(bash tests/full/run.sh --parts)
list="${list/ interop/} $(bash tests/interop/run.sh --parts | sed 's/[^ ]*/interop-&/g')"
# "part revision date": the lines of both tables
lines=$(awk '$2 == "passed" || $2 == "FAILED" { if ($4 == "s") print $1, $5, $6; else if ($4 == "ok") print "interop-" $1, $8, $9 }' \
    "$result" "$interop")
stale=0 parts=0
for part in $list; do
    parts=$((parts + 1))
    read -r revision date < <(awk -v part="$part" '$1 == part { print $2, $3 }' <<<"$lines") || revision=
    if [ -z "$revision" ]; then
        why='no result'
    else
        # shellcheck disable=SC2046 # paths are words; results are no sources
        n=$(git rev-list --count "${revision%+}..HEAD" -- $(sources "$part") ':!docs/results' 2>/dev/null) || n=unknown
        case $n$revision in
        0*+) why='changes that were not checked in' ;;
        0*) continue ;;
        unknown*) why='a revision that is not here' ;;
        *) why="$n commits" ;;
        esac
        why="older than its sources: $why"
    fi
    stale=$((stale + 1))
    printf '%-18s %s %s  %s\n' "$part" "${revision:--}" "${date:--}" "$why"
done
echo "$parts parts, $stale without a result as new as their sources"
[ $stale = 0 ]
