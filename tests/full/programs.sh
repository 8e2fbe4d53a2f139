#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program fuzzer over many seeds, in JOBS processes (one a processor); it prints its rate. TAP on stdout.
# SHARD="2/4" runs the second quarter of the seeds alone: the four may run apart, on other machines too.
# usage: [SHARD=I/N] [JOBS=N] tests/full/programs.sh FUZZ CASES (from the root)
set -u
fuzz=$1 cases=$2 shard=${SHARD:-1/1} lanes=${JOBS:-$(nproc)}
if ! [[ $shard =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]] || ((BASH_REMATCH[1] > BASH_REMATCH[2])); then
    echo "SHARD=$shard: want I/N, as 2/4" >&2
    exit 2
fi
i=${BASH_REMATCH[1]} n=${BASH_REMATCH[2]}
first=$((1 + (i - 1) * cases / n)) last=$((i * cases / n))
each=$(((last - first + lanes) / lanes))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
start=$SECONDS
echo "1..$lanes"
for ((i = 0; i < lanes; i++)); do
    from=$((first + i * each))
    some=$((from + each > last + 1 ? last + 1 - from : each))
    "$fuzz" cases=$some training=$((some / 10)) seed=$from >"$work/$i" 2>&1 &
    pids[i]=$!
done
bad=0
for ((i = 0; i < lanes; i++)); do
    if ! wait "${pids[i]}"; then
        printf 'not '
        bad=1
    fi
    echo "ok $((i + 1)) - programs from seed $((first + i * each)) on"
    grep -vE '^ok |^TAP |^1\.\.' "$work/$i" | sed 's/^not ok/# not ok/; /^#/!s/^/# /'
done
took=$((SECONDS - start))
echo "# $((last - first + 1)) programs in $took s, $(((last - first + 1) / (took ? took : 1))) a second"
exit $bad
