#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The configurations of cards (rtl/spec/configs.def), at their full width: the self-test compares every logit and KV bit
# with the C model, and the demo model writes what it writes on model:. TAP on stdout.
# usage: [MILLRACE=build/millrace] tests/full/cards.sh CONFIG.. (from the root; the simulators are built)
set -u
. tests/tools/tap.sh
bits() { # CONFIG
    "$millrace" selftest -d "sim:$1" >"$work/out" 2>&1 && grep -q "^sim:$1 passed 5 of 5 steps$" "$work/out" && return
    sed 's/^/# /' "$work/out"
    return 1
}
text() { # DEVICE
    "$millrace" generate -m models/demo -q -d "$1" -p "And it came to pass" -n 16 --ignore-eos
}
same() { # CONFIG
    text model: >"$work/want" && text "sim:$1" >"$work/got" && [ -s "$work/want" ] && cmp "$work/want" "$work/got"
}
for config; do
    ok "cards_${config}_has_the_bits_of_the_c_model" bits "$config"
    ok "cards_${config}_writes_the_same_text" same "$config"
done
done_testing
