#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# KL of the engine's numerics from fp32 on held-out text of the demo model, in nats a token.
# TEST_FULL=1: 8192 tokens, else 2048. Prints TAP.
set -u
. tests/tools/tap.sh
tokens=2048
[ -z "${TEST_FULL:-}" ] || tokens=8192

# bar NAME BOUND OPTIONS...
bar() {
    local name=$1 bound=$2
    shift 2
    measure() {
        "$millrace" compare models/demo --file models/demo/heldout.txt -d model: -q -n $tokens \
            --max-kl "$bound" "$@" >"$work/out"
    }
    ok "$name" measure "$@"
    sed 's/^/# /' "$work/out"
}
bar kl_of_one_pass 3e-4
bar kl_of_two_passes 2e-4 --two-pass
bar kl_of_mxfp4 4e-3 --format mxfp4 --calibrate self
done_testing
