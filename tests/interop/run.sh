#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make test-interop: the pinned Python environment (made once in build/interop-venv, some gigabytes), then the scripts here.
# What is missing is an error, not a skipped test. INTEROP_TESTS="speed" runs one of them.
set -u
build=${BUILD:-build} venv=${INTEROP_VENV:-${BUILD:-build}/interop-venv}
list=tests/interop/requirements.txt
PIP_OPTIONS=${INTEROP_PIP:-} tests/tools/venv.sh "$venv" "$list" test-interop || exit 1
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
MILLRACE_LIBRARY=$(realpath "$build/libmillrace.so")
export MILLRACE_LIBRARY
status=0
if ! tests/interop/ggml/build.sh "$venv" "$build/interop-ggml"; then
    echo "test-interop: ggml could not be built in $build/interop-ggml (network? g++?)" >&2
    exit 1
fi
for test in ${INTEROP_TESTS:-binding evaluate serve interop wordpiece bert schedules optimizers events configs data speed train scratch}; do
    "$venv/bin/python" tests/interop/$test.py "$build" || status=1
done
exit $status
