#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# xrt: test_xrt in emulation, and opening and closing under Valgrind: nothing of ours is lost or wrong.
set -u
. tests/tools/tap.sh
. tests/xrt/lib.sh
export MILLRACE_XCLBIN_X2=$xrt/millrace-tiny-x2.xclbin

number=$(CMOCKA_MESSAGE_OUTPUT=TAP sim/xrt/run "$tests/test_xrt" 2>"$work/err" | tee "$work/tap" | grep -c '^\(not \)\?ok [0-9]')
grep -v '^1\.\.\|^# \(not \)\?ok - ' "$work/tap"
grep -q '^ok 8 ' "$work/tap" && ! grep -q '^not ok' "$work/tap" || { failed=1; sed 's/^/# /' "$work/err"; }

# Reports of Valgrind that name a function of this repository, other than a thread's or a call's frame
# below XRT's own.
ours() {
    awk '/^==[0-9]+== +(at|by) 0x/ { line = $0; if (!frames++) top = ""; if (line ~ /libxrt|libprotobuf|libstdc|libboost|libuuid/) foreign = 1; text = text "\n" line; if (!foreign && line ~ /\((xrt|engine|device|registers|file|error|test_xrt)[a-z_]*\.c:/) own = 1; next }
         { if (own) print head text; head = $0; text = ""; foreign = own = frames = 0 }
         END { if (own) print head text }' "$1"
}
clean() {
    XRT_PARTS=loop FAST=1 sim/xrt/run valgrind -q --leak-check=full --show-leak-kinds=definite,indirect \
        --trace-children=no --log-file="$work/vg" "$tests/test_xrt" >"$work/loop" 2>&1 || { sed 's/^/# /' "$work/loop"; return 1; }
    ours "$work/vg" >"$work/ours"
    [ ! -s "$work/ours" ] && return
    head -40 "$work/ours" | sed 's/^/# /'
    return 1
}
ok xrt_open_and_close_is_clean_under_valgrind clean
done_testing
