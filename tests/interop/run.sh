#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make test-interop: the pinned Python environment (made once in build/interop-venv, some gigabytes), then the scripts here.
# What is missing is an error, not a skipped test. INTEROP_TESTS="speed" runs one of them.
set -u
build=${BUILD:-build} venv=${INTEROP_VENV:-${BUILD:-build}/interop-venv}
list=tests/interop/requirements.txt
if ! [ -e "$venv/installed" ] || ! cmp -s "$list" "$venv/installed"; then
    if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
        echo "test-interop: python3 with venv and pip is needed: apt-get install python3-venv" >&2
        exit 1
    fi
    # shellcheck disable=SC2086
    if ! { python3 -m venv "$venv" && "$venv/bin/pip" install -q ${INTEROP_PIP:-} -r "$list" && cp "$list" "$venv/installed"; }; then
        echo "test-interop: the environment of $list could not be made in $venv (network? disk? Python 3.11?)" >&2
        exit 1
    fi
fi
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
MILLRACE_LIBRARY=$(realpath "$build/libmillrace.so")
export MILLRACE_LIBRARY
status=0
if ! tests/interop/ggml/build.sh "$venv" "$build/interop-ggml"; then
    echo "test-interop: ggml could not be built in $build/interop-ggml (network? g++?)" >&2
    exit 1
fi
for test in ${INTEROP_TESTS:-binding evaluate serve interop schedules configs data speed train}; do
    "$venv/bin/python" tests/interop/$test.py "$build" || status=1
done
exit $status
