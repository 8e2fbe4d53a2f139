#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lists the parts of make test-full whose last result is older than what they look at: their line in
# docs/results/test-full.txt names a revision, and files below the paths here have changed since.
# usage: [RESULT=FILE] tests/full/stale.sh (make test-full-stale). Status 1 if there is one.
set -u
result=${RESULT:-docs/results/test-full.txt}
rtl="rtl" host="host Makefile" devices="rtl sim hls host Makefile"

sources() { # part: where the files are that its result depends on, apart from its own test
    case $1 in
        synth | timing* | netlist) echo "$rtl tests/synth" ;;
        formal) echo "$rtl tests/formal" ;;
        mutants) echo "$devices tests/mutants tests/rtl tests/programs" ;;
        benches) echo "$rtl tests/rtl" ;;
        driver | debug) echo "$devices driver tests/driver" ;;
        fuzz | planted) echo "$host tests/fuzz" ;;
        interop) echo "$host tests/interop examples" ;;
        plan | serve | pack24) echo "$host tests/serve tests/full" ;;
        accuracy) echo "$host tests/unit models" ;;
        docs | test | dist | prepare) echo . ;;
        *) echo "$devices tests" ;;
    esac
}
stale=0 parts=0
while read -r part _ _ _ revision rest; do
    parts=$((parts + 1))
    # shellcheck disable=SC2046 # paths are words; results are no sources
    n=$(git rev-list --count "${revision%+}..HEAD" -- $(sources "$part") ':!docs/results' 2>/dev/null) || n=unknown
    [ "$n" = 0 ] && [ "$revision" = "${revision%+}" ] && continue
    stale=$((stale + 1))
    printf '%-12s %s %s  older than its sources: %s\n' "$part" "$revision" "${rest%% *}" \
        "$([ "$n" = unknown ] && echo 'a revision that is not here' || { [ "$n" = 0 ] && echo 'changes that were not checked in' || echo "$n commits"; })"
done < <(awk '($2 == "passed" || $2 == "FAILED") && $4 == "s"' "$result")
echo "$parts parts, $stale older than their sources"
[ $stale = 0 ] && [ $parts -gt 0 ]
