#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does make check know which suites a change concerns? TAP. usage: [BUILD=build] check.sh (from the root, built)
set -u
n=0 bad=0
expect() { # file, suite that is concerned, suite that is not
    local got
    got=$(tests/check.sh --plan "$1")
    n=$((n + 1))
    if grep -qx -- "$2" <<<"$got" && ! grep -qx -- "$3" <<<"$got"; then
        echo "ok $n - $1 concerns $2, and not $3"
    else
        echo "not ok $n - $1 concerns $2, and not $3"
        tr '\n' ' ' <<<"$got" | sed 's/^/# /'
        bad=$((bad + 1))
    fi
}
expect rtl/array/mr_pe.sv rtl-pe@portable rtl-writer@c2
expect tests/rtl/common/bench.h rtl-writer@c2 unit-test_num
expect host/cmodel/num.h unit-test_mx unit-test_sta
expect host/text/tokenizer.c unit-test_tokenizer unit-test_sta
expect tests/unit/test_mx.c unit-test_mx unit-test_num
expect host/cli/chat.c e2e-chat e2e-synth-runs
expect driver/check.c driver-check rtl-writer@c2
expect docs/faq.md docs e2e-chat
n=$((n + 1))
if BASE=nosuch tests/check.sh >/dev/null 2>&1; then echo "not ok $n - a BASE that is no revision is refused"; bad=1; else echo "ok $n - a BASE that is no revision is refused"; fi
echo "1..$n"
exit $((bad != 0))
