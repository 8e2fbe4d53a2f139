#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make test-interop: the pinned Python environment (made once in build/interop-venv, some gigabytes), then the scripts here.
# What is missing is an error, not a skipped test. INTEROP_TESTS="speed" runs one of them.
# usage: tests/interop/run.sh [--parts] (that option: what it would run, in a line)
set -u
all="binding evaluate serve interop wordpiece bert trained schedules optimizers events configs data speed train lora scratch"
[ "${1-}" != --parts ] || { echo "$all" && exit; }
build=${BUILD:-build} venv=${INTEROP_VENV:-${BUILD:-build}/interop-venv}
list=tests/interop/requirements.txt
PIP_OPTIONS=${INTEROP_PIP:-} tests/tools/venv.sh "$venv" "$list" test-interop || exit 1
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
MILLRACE_LIBRARY=$(realpath "$build/libmillrace.so")
export MILLRACE_LIBRARY
status=0
result=docs/results/interop.txt
lines=$(mktemp) || exit 1
trap 'rm -f "$lines"' EXIT
revision=$(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD -- . ':!docs/results' || echo +)
if [[ " ${INTEROP_TESTS:-$all} " == *" speed "* ]] && ! tests/interop/ggml/build.sh "$venv" "$build/interop-ggml"; then
    echo "test-interop: ggml could not be built in $build/interop-ggml (network? g++?)" >&2
    exit 1
fi
mkdir -p "$build/interop"
for test in ${INTEROP_TESTS:-$all}; do
    log=$build/interop/$test.log
    "$venv/bin/python" tests/interop/$test.py "$build" 2>&1 | tee "$log"
    ended=${PIPESTATUS[0]}
    grep -q '^not ok ' "$log" && ended=1
    [ "$ended" = 0 ] || status=1
    printf '%-11s %s  %4d ok %3d not ok  %s %s\n' "$test" "$([ "$ended" = 0 ] && echo passed || echo FAILED)" \
        "$(grep -c '^ok ' "$log")" "$(grep -c '^not ok ' "$log")" "$revision" "$(date -u +%Y-%m-%d)" >>"$lines"
done
# The lines of this run in place of those of before.
tests/interop/table.sh "$all" "$result" "$lines"
exit $status
