#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs unit tests and end-to-end tests on the program that counts what it executes. What they find is said elsewhere:
# here their results do not matter, and a few tests (a full disk) fail because of the counters' files.
# usage: tests/coverage/host.sh BUILD/coverage (from the root)
set -u
dir=$1 build=${BUILD:-build}
mkdir -p "$dir/logs"
find "$dir/san" "$dir/unit" -name '*.gcda' -delete
run() { # NAME COMMAND...
    local name=$1
    shift
    echo "# $name"
    timeout 900 "$@" >"$dir/logs/$name" 2>&1 </dev/null || true
}
export MEMORY_EVERY=1 # each allocation fails once
for t in "$dir"/unit/test_*; do
    [ ! -x "$t" ] || run "unit-$(basename "$t")" "$t"
done
# Leaks are of no interest here, and XRT's shim stops the look for them at a program's end.
export MILLRACE=$dir/san/millrace BUILD=$build LSAN_OPTIONS=detect_leaks=0
for s in tests/e2e/*.sh tests/serve/{serve,load}.sh tests/xrt/{generate,errors,library,update}.sh; do
    case $s in # those that make or install programs of their own
        */demo.sh | */demo-train.sh | */install.sh | */synth-runs.sh | */accuracy.sh | */examples.sh) ;;
        *) run "$(basename "$(dirname "$s")")-$(basename "$s" .sh)" bash "$s" ;;
    esac
done
# What tests/e2e/install.sh looks at, of the program as it is installed.
for c in "" $("$MILLRACE" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do run "man-$c" "$MILLRACE" man $c; done
for shell in bash zsh fish tcsh; do run "completion-$shell" "$MILLRACE" completion "$shell"; done
gcovr -r . -f host/ --exclude-throw-branches --gcov-ignore-parse-errors --csv "$dir/host.csv" --txt "$dir/host.txt" \
    "$dir/san/host" 2>"$dir/logs/gcovr"
