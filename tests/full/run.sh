#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make test-full: its parts, each with a log in build/full and a line in docs/results/test-full.txt,
# which names the revision. What several parts need is built first and "test" runs alone; the others,
# most of which keep one core busy, run JOBS at a time. A part that make does not know has failed.
# PARTS="a b" runs only those; the lines of the others stay.
# usage: [RESULT=FILE] tests/full/run.sh (from the repository's root)
#        tests/full/run.sh --parts (what it would run, in a line)
set -u
# The longest first, so that the lanes end together.
all="prepare test lint debug memory mutants xrt driver synth timing timing-u280t timing-u280 timing-u250 timing-u50 timing-sim timing-kv260 timing-tinyt timing-u50t netlist cards programs1 programs2 programs3 programs4 sweep plan gates train whole fuzz planted benches serve pack24 accuracy waves formal docs fp coverage dist interop"
case ${1-} in
'') ;;
--parts) echo "$all" && exit ;;
*) echo "tests/full/run.sh: '$1' is no option; name parts in PARTS=, of: $all" >&2 && exit 2 ;;
esac
build=${BUILD:-build} make=${MAKE:-make} jobs=${JOBS:-2}
logs=$build/full
rm -f "$logs"/*.failed
mkdir -p "$logs" docs/results
result=${RESULT:-docs/results/test-full.txt}
# Changes that are not checked in are shown by a plus.
revision=$(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD -- . ':!docs/results' || echo +)
machine="$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores"

goal() {
    case $1 in
        prepare) echo full-prepare ;;
        test) echo test ;;
        lint) echo lint ;;
        benches) echo full-benches ;;
        memory) echo full-memory ;;
        sweep) echo full-sweep ;;
        programs[1-4]) echo "full-$1" ;;
        plan) echo full-plan ;;
        cards) echo full-cards ;;
        gates) echo full-gates ;;
        train) echo full-train ;;
        whole) echo full-whole ;;
        fp) echo full-fp ;;
        formal) echo formal ;;
        fuzz) echo fuzz ;;
        planted) echo fuzz-planted ;;
        synth) echo synth ;;
        timing) echo timing ;;
        timing-*) echo "full-$1" ;;
        netlist) echo test-netlist ;;
        mutants) echo test-mutants ;;
        accuracy) echo full-accuracy ;;
        pack24) echo full-pack24 ;;
        waves) echo full-waves ;;
        xrt) echo full-xrt ;;
        serve) echo full-serve ;;
        docs) echo full-docs ;;
        coverage) echo coverage ;;
        dist) echo full-dist ;;
        interop) echo test-interop ;;
        driver) echo full-driver ;;
        debug) echo test-driver-debug ;;
        *) echo no-such-part ;;
    esac
}
part() { # name jobs
    local start=$SECONDS log=$logs/$1.log status
    timeout "${PART_TIMEOUT:-6000}" "$make" --no-print-directory -j"$2" JOBS="$2" "$(goal "$1")" >"$log" 2>&1 </dev/null
    status=$?
    # A TAP line that failed counts even where the status does not say so.
    [ $status != 0 ] || ! grep -qE '^[[:space:]]*not ok ' "$log" || status=1
    [ $status = 0 ] || touch "$logs/$1.failed"
    printf '%-12s %-7s %5d s  %s %s  %s\n' "$1" "$([ $status = 0 ] && echo passed || echo FAILED)" \
        $((SECONDS - start)) "$revision" "$(date -u +%Y-%m-%d)" \
        "$(grep -E '[0-9]+ passed, [0-9]+ failed' "$log" | tail -1)"
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
# The lines of this run in place of what the table had for their parts, in the order of $all.
write_table() { # LINES
    [ -e "$result" ] || : >"$result"
    echo "make test-full: each part's last run, its revision and date"
    echo "cpu       $machine"
    echo
    awk -v all="$all" '
        $2 != "passed" && $2 != "FAILED" || $4 != "s" { next }
        { sub(/ +$/, ""); line[$1] = $0; seconds[$1] = $3; failed[$1] = $2 == "FAILED" }
        END { n = split(all, part)
              for (i = 1; i <= n; i++) if (part[i] in line) {
                  print line[part[i]]
                  parts++; bad += failed[part[i]]; sum += seconds[part[i]]
              }
              printf "\n%d parts, %d failed; %d s one after the other\n", parts, bad, sum }' "$result" "$1"
}
# shellcheck disable=SC2086
parts ${PARTS:-$all} | tee "$logs/lines"
echo "$(find "$logs" -name '*.failed' | wc -l) parts failed, $SECONDS s"
# A whole run has no lines of before.
[ -n "${PARTS:-}" ] || : >"$result"
write_table "$logs/lines" >"$logs/table" && cp "$logs/table" "$result"
! grep -qE '^[^ ]+ +FAILED' "$logs/lines" && grep -qE '^[^ ]+ +passed' "$logs/lines"
