#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program fuzzer over many seeds, in a process a processor. TAP on stdout.
# usage: tests/full/programs.sh FUZZ CASES (from the root)
set -u
fuzz=$1 cases=$2 lanes=$(nproc)
each=$(((cases + lanes - 1) / lanes))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "1..$lanes"
for ((i = 0; i < lanes; i++)); do
    "$fuzz" cases=$each seed=$((1 + i * each)) >"$work/$i" 2>&1 &
    pids[i]=$!
done
bad=0
for ((i = 0; i < lanes; i++)); do
    if ! wait "${pids[i]}"; then
        printf 'not '
        bad=1
    fi
    echo "ok $((i + 1)) - programs from seed $((1 + i * each)) on"
    grep '^#' "$work/$i"
done
exit $bad
