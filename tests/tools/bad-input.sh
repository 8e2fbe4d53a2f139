#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every row of tests/bad-input.tsv names a test that ran and passed. Prints TAP.
# usage: tests/tools/bad-input.sh LOG_DIR, after all other tests
set -u
logs=$1 number=0 failed=0
while IFS=$'\t' read -r what name; do
    [ -n "$what" ] || continue
    number=$((number + 1))
    if grep -qhE -e "^[[:space:]]*ok [0-9]+ - $name( |\$)" "$logs"/*.log 2>/dev/null &&
        ! grep -qhE -e "^[[:space:]]*not ok [0-9]+ - $name( |\$)" "$logs"/*.log; then
        echo "ok $number - bad input: $what"
    else
        echo "not ok $number - bad input: $what: no test '$name' has passed in $logs"
        failed=1
    fi
done < <(grep -v '^#' tests/bad-input.tsv)
echo "1..$number"
[ $number -gt 0 ] && exit $failed
exit 1
