#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Instructions that the host executes for one simulated cycle, counted by Valgrind: the speed of the
# simulation as a figure that no machine's load changes. TAP on stdout.
# usage: [MILLRACE=build/millrace] [BUILD=build] tests/bench/instructions.sh (from the root)
#
# Counted is a decode step of the demo model as the difference of a run of three and a run of one,
# so that start and loading drop out. The ceiling is 1 % above 7601: 7204 before the rules of
# device.def were checked in hardware, 7264 with them, and the rest for shorter paths and less area,
# of which 63 are the drain of mr_attn_mac: a select of its own took 2,000 LUTs off kv260.
set -euo pipefail
ceiling=7677

millrace=${MILLRACE:-build/millrace}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo 1..1

count() { # positions -> instructions, cycles
    if ! OPENBLAS_NUM_THREADS=1 valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null \
        --log-file="$work/log" "$millrace" bench "$work/demo.mill" -d sim: --no-head --decode "$1" \
        --json >"$work/json"; then
        # A simulator for this machine only (MARCH=native) has instructions that Valgrind lacks.
        tail -5 "$work/log" | sed 's/^/# /' >&2
    fi
    awk '/I *refs:/ { gsub(",", ""); print $NF }' "$work/log"
    awk '/"cycles":/ { gsub(",", ""); n += $2 } END { print n }' "$work/json"
}

"$millrace" pack -q models/demo "$work/demo.mill" >/dev/null
{ read -r i1; read -r c1; } < <(count 0)
{ read -r i3; read -r c3; } < <(count 0,0,0)
each=$(((i3 - i1) / (c3 - c1)))
echo "# $each instructions a simulated cycle, over $((c3 - c1)) cycles; the ceiling is $ceiling"
[ "$c3" -gt "$((2 * c1))" ] && [ "$each" -gt 0 ] && [ "$each" -le "$ceiling" ] || printf 'not '
echo "ok 1 - instructions a simulated cycle"
