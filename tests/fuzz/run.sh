#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each target for FUZZ_SECONDS, from the checked-in corpus; new inputs go to build/fuzz/new. TAP with
# executions and edges. usage: run.sh TARGET... (from the root; `make fuzz` builds the targets)
set -u
build=${BUILD:-build} seconds=${FUZZ_SECONDS:-60} n=0 failed=0
for t in "$@"; do
    n=$((n + 1))
    new=$build/fuzz/new/$t log=$build/fuzz/$t.log
    mkdir -p "$new"
    "$build/fuzz/$t" -max_total_time="$seconds" -timeout=600 -rss_limit_mb=2000 -print_final_stats=1 \
        -artifact_prefix="$build/fuzz/found-$t-" "$new" "tests/fuzz/corpus/$t" >"$log" 2>&1
    status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    edges=$(grep -oE 'cov: [0-9]+' "$log" | tail -1 | cut -d' ' -f2)
    if [ $status = 0 ]; then echo "ok $n - fuzz $t # $seconds s, ${runs:-?} executions, ${edges:-?} edges"; else
        failed=1
        echo "not ok $n - fuzz $t # status $status; the input is $build/fuzz/found-$t-*"
        grep -E 'ERROR|SUMMARY|runtime error|does not hold' "$log" | head -5 | sed 's/^/# /'
    fi
done
echo "1..$n"
exit $failed
