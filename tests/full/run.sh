#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make test-full: its parts, each with a log in build/full; the result in docs/results/test-full.txt.
# What several parts need is built first and "test" runs alone; the others, most of which keep one
# core busy, run JOBS at a time. A part that make does not know has failed. PARTS="a b" runs only those
# and writes the result beside the logs. usage: tests/full/run.sh (from the repository's root)
set -u
build=${BUILD:-build} make=${MAKE:-make} jobs=${JOBS:-2}
logs=$build/full
rm -f "$logs"/*.failed
mkdir -p "$logs" docs/results
# The longest first, so that the lanes end together.
all="prepare test debug mutants xrt driver synth timing netlist cards programs1 programs2 programs3 programs4 sweep plan gates fuzz planted benches serve pack24 accuracy waves formal docs fp dist"
result=docs/results/test-full.txt
[ -z "${PARTS:-}" ] || result=$logs/test-full.txt

goal() {
    case $1 in
        prepare) echo full-prepare ;;
        test) echo test ;;
        benches) echo full-benches ;;
        sweep) echo full-sweep ;;
        programs[1-4]) echo "full-$1" ;;
        plan) echo full-plan ;;
        cards) echo full-cards ;;
        gates) echo full-gates ;;
        fp) echo full-fp ;;
        formal) echo formal ;;
        fuzz) echo fuzz ;;
        planted) echo fuzz-planted ;;
        synth) echo synth ;;
        timing) echo timing ;;
        netlist) echo test-netlist ;;
        mutants) echo test-mutants ;;
        accuracy) echo full-accuracy ;;
        pack24) echo full-pack24 ;;
        waves) echo full-waves ;;
        xrt) echo full-xrt ;;
        serve) echo full-serve ;;
        docs) echo full-docs ;;
        dist) echo full-dist ;;
        driver) echo full-driver ;;
        debug) echo test-driver-debug ;;
        *) echo no-such-part ;;
    esac
}
part() { # name jobs
    local start=$SECONDS log=$logs/$1.log status
    timeout "${PART_TIMEOUT:-3000}" "$make" --no-print-directory -j"$2" JOBS="$2" "$(goal "$1")" >"$log" 2>&1 </dev/null
    status=$?
    # A TAP line that failed counts even where the status does not say so.
    [ $status != 0 ] || ! grep -qE '^[[:space:]]*not ok ' "$log" || status=1
    [ $status = 0 ] || touch "$logs/$1.failed"
    printf '%-10s %-7s %5d s  %s\n' "$1" "$([ $status = 0 ] && echo passed || echo FAILED)" \
        $((SECONDS - start)) "$(grep -E '[0-9]+ passed, [0-9]+ failed' "$log" | tail -1)"
    [ $status = 0 ] || tail -20 "$log" | sed 's/^/    /' >&2
}
parts() { # name...
    local p
    for p; do
        case $p in prepare | test)
            part "$p" "$jobs"
            continue
            ;;
        esac
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
        part "$p" 1 &
    done
    wait
}
{
    echo "make test-full"
    echo "date      $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    echo "revision  $(git rev-parse HEAD)$(git diff --quiet HEAD -- || echo ' with changes')"
    echo "cpu       $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores"
    echo
    # shellcheck disable=SC2086
    parts ${PARTS:-$all}
    echo
    echo "$(find "$logs" -name '*.failed' | wc -l) parts failed, $SECONDS s"
} | tee "$logs/result.tmp"
mv "$logs/result.tmp" "$result"
! grep -qE '^[a-z0-9]+ +FAILED' "$result" && grep -qE '^[a-z0-9]+ +passed' "$result"
