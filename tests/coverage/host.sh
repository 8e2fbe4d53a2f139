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
export MILLRACE=$dir/san/millrace XRT_PROGRAMS=$dir/counted BUILD=$build LSAN_OPTIONS=detect_leaks=0
for s in tests/e2e/*/*.sh tests/serve/{serve,load}.sh tests/xrt/{generate,errors,library,update}.sh; do
    case $s in # those that make or install programs of their own
        tests/e2e/make/*.sh | tests/e2e/eval/accuracy.sh | tests/e2e/examples/examples.sh) ;;
        *) name=${s#tests/} name=${name%.sh} && run "${name//\//-}" bash "$s" ;;
    esac
done
# What tests/e2e/make/install.sh looks at, of the program as it is installed.
for c in "" $("$MILLRACE" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do run "man-$c" "$MILLRACE" man $c; done
for shell in bash zsh fish tcsh; do run "completion-$shell" "$MILLRACE" completion "$shell"; done
gcovr -r . -f host/ --exclude-throw-branches --gcov-ignore-parse-errors --csv "$dir/host.csv" --xml-pretty \
    --xml "$dir/host.xml" "$dir/san/host" 2>"$dir/logs/gcovr"
# FILE:LINE:TEXT of lines on stdin, "FILE" and then ":LINE" of it; a line that is only a brace is no statement.
texts() {
    awk '/^:/ { wanted[file] = wanted[file] " " substr($0, 2); next } { file = $0 }
         END {
             for (file in wanted) {
                 n = split(wanted[file], line, " ")
                 at = 0
                 for (i = 1; i <= n; i++) {
                     while (at < line[i] && (getline text <file) > 0) at++
                     sub(/^ +/, "", text)
                     if (text !~ /^[{}]*;?$/) print file ":" line[i] ":" text
                 }
                 close(file)
             }
         }' | sort -t: -k1,1 -k2,2n
}
# What none of them reaches, and lines that are reached and do not take each of their branches.
name='s/.*filename="\([^"]*\)".*/\1/p'
sed -n "$name"'; s/.*line number="\([0-9]*\)" hits="0".*/:\1/p' "$dir/host.xml" | texts >"$dir/host.txt"
sed -n "$name"'; /hits="0"\|"100%/d; s/.*line number="\([0-9]*\)".*condition-coverage.*/:\1/p' "$dir/host.xml" | texts >"$dir/branches.txt"
