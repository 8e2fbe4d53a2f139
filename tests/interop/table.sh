#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/results/interop.txt: each suite's last run, in the order of ALL; the lines of LINES replace those of before.
# usage: tests/interop/table.sh ALL RESULT LINES
set -u
[ -e "$2" ] || : >"$2"
{
    echo "make test-interop: each suite's last run, its revision and date"
    echo
    awk -v all="$1" '$2 == "passed" || $2 == "FAILED" { line[$1] = $0; failed[$1] = $2 == "FAILED" }
        END { n = split(all, suite)
              for (i = 1; i <= n; i++) if (suite[i] in line) { print line[suite[i]]; ran++; bad += failed[suite[i]] }
              printf "\n%d of %d suites, %d failed\n", ran, n, bad }' "$2" "$3"
} >"$2.new" && mv "$2.new" "$2"
