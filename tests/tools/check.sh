#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does make check know which suites a change concerns? TAP. usage: [BUILD=build] check.sh (from the root, built)
set -u
n=0 bad=0
expect() { # files, suite that is concerned, suite that is not
    local got
    # shellcheck disable=SC2086 # files are words
    got=$(tests/check.sh --plan $1)
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
expect tests/rtl/bench.h rtl-writer@c2 unit-test_num
expect host/cmodel/num.h unit-test_mx unit-test_sta
expect host/text/tokenizer.c unit-test_tokenizer unit-test_sta
expect tests/unit/pack/test_mx.c unit-test_mx unit-test_num
expect host/cli/chat/chat.c e2e-chat e2e-make-synth
expect host/cli/train/curve.c e2e-train-lora e2e-chat
expect tests/e2e/train/config/first.yaml e2e-train-config e2e-train
expect driver/check.c driver-check rtl-writer@c2
expect docs/use/faq.md docs e2e-chat
expect tests/mutants/table.tsv mutants-apply unit-test_sta
expect tests/reference/backward.c mutants-reference mutants-store
expect rtl/fp/mr_vslope.sv mutants-apply unit-test_sta
expect tests/check.sh check lint
expect sim/pci/link.c driver xrt-generate
expect 'Makefile host/python/millrace.py host/text/tokenizer.c' 'no suite known for: Makefile host/python/millrace.py ' docs
# Where nothing was built: by what a bench names and a unit test includes; the others are not known.
new=$(mktemp -d) && trap 'rm -rf "$new"' EXIT
export BUILD=$new
expect rtl/array/mr_pe.sv rtl-pe@portable rtl-writer@c2
expect tests/rtl/bench.h rtl-writer@c2 unit-test_num
expect host/text/tokenizer.c unit-test_tokenizer unit-test_num
expect host/text/tokenizer.c 'never built here, so not known whether concerned: [0-9][0-9]* unit tests, 0 benches .*' docs
unset BUILD
n=$((n + 1))
if BASE=nosuch tests/check.sh >/dev/null 2>&1; then echo "not ok $n - a BASE that is no revision is refused"; bad=1; else echo "ok $n - a BASE that is no revision is refused"; fi
echo "1..$n"
exit $((bad != 0))
