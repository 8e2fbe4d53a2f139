#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Verilog of hls/'s cores again and compares it with what is checked in, in which nobody
# may change a line by hand. TAP. --write: writes it instead.
# usage, from the root: [BUILD=build] tests/hls/cores.sh [--write]
set -u
build=${BUILD:-build} new=${BUILD:-build}/hls/cores cores=hls/rtl/cores
[ "${1:-}" != --write ] || new=$cores
rm -rf "$build/hls/cores"
PYTHONDONTWRITEBYTECODE=1 "$build/hls/venv/bin/python" hls/xls/generate.py "$new" || {
    echo "not ok 1 - the cores are made again"
    echo "1..1"
    exit 1
}
[ "$new" != "$cores" ] || exit 0
n=0 failed=0
for file in $({ ls "$new"; ls "$cores"; } | sort -u); do
    n=$((n + 1))
    if cmp -s "$new/$file" "$cores/$file"; then
        echo "ok $n - $file is what clang and XLS make"
    else
        failed=1
        echo "not ok $n - $file is not what clang and XLS make; run make hls-cores"
        diff "$cores/$file" "$new/$file" 2>&1 | head -10 | sed 's/^/# /'
        clang++-19 --version | head -1 | sed 's/^/# made with /'
    fi
done
echo "1..$n"
exit $failed
