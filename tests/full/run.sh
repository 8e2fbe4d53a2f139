#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make test-full: its parts one after the other, each with a log in build/full; the result in
# docs/results/test-full.txt. A part that make does not know has failed. PARTS="a b" runs only those
# and writes the result beside the logs. usage: tests/full/run.sh (from the repository's root)
set -u
build=${BUILD:-build} make=${MAKE:-make}
logs=$build/full
mkdir -p "$logs" docs/results
failed=0 all="test benches sweep fp formal fuzz planted synth netlist mutants accuracy"
result=docs/results/test-full.txt
[ -z "${PARTS:-}" ] || result=$logs/test-full.txt

goal() {
    case $1 in
        test) echo test ;;
        benches) echo full-benches ;;
        sweep) echo full-sweep ;;
        fp) echo full-fp ;;
        formal) echo formal ;;
        fuzz) echo fuzz ;;
        planted) echo fuzz-planted ;;
        synth) echo synth ;;
        netlist) echo test-netlist ;;
        mutants) echo test-mutants ;;
        accuracy) echo full-accuracy ;;
        *) echo no-such-part ;;
    esac
}
part() {
    local start=$SECONDS log=$logs/$1.log status
    timeout "${PART_TIMEOUT:-3000}" "$make" --no-print-directory -j"${JOBS:-2}" "$(goal "$1")" >"$log" 2>&1 </dev/null
    status=$?
    # A TAP line that failed counts even where the status does not say so.
    [ $status != 0 ] || ! grep -qE '^[[:space:]]*not ok ' "$log" || status=1
    [ $status = 0 ] || failed=$((failed + 1))
    printf '%-10s %-7s %5d s  %s\n' "$1" "$([ $status = 0 ] && echo passed || echo FAILED)" \
        $((SECONDS - start)) "$(grep -E '[0-9]+ passed, [0-9]+ failed' "$log" | tail -1)"
    [ $status = 0 ] || tail -20 "$log" | sed 's/^/    /' >&2
}
{
    echo "make test-full"
    echo "date      $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    echo "revision  $(git rev-parse HEAD)$(git diff --quiet HEAD -- || echo ' with changes')"
    echo "cpu       $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores"
    echo
    for p in ${PARTS:-$all}; do part "$p"; done
    echo
    echo "$failed parts failed, $SECONDS s"
} | tee "$logs/result.tmp"
mv "$logs/result.tmp" "$result"
! grep -qE '^[a-z]+ +FAILED' "$result" && grep -qE '^[a-z]+ +passed' "$result"
