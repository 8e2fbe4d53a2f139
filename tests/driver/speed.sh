#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A layer of GPT-J-6B through the driver in the virtual machine against sim: outside of it, in one run: the
# same cycles. TAP. Both wall times are printed, the best of all decodes; the bar, 1.1 times that of sim:, is judged with
# BARS=1, on a machine without other work, in up to five pairs. The first decode in the guest also copies the weights
# to the card and is never the best. The libraries of configuration sim must have been built.
set -u
. tests/tools/tap.sh
build=${BUILD:-build} most=1.1
if [ ! -f "$build/vm/vmlinuz" ]; then
    ok "driver: speed # SKIP no QEMU or kernel (make deps-driver)" true
    done_testing
fi
run=(bench synthetic:gptj-6b,layers=1,vocab=64 --no-head --decode 0,0,0,0,0 -q)
best() { sed -n 's/.*: \([0-9.]*\) s wall.*/\1/p' "$1" | sort -n | head -1; }
cycles() { awk '$1 == "cycles" { print $2 }' "$1" | sort | uniq -c; }
pairs() {
    for _ in 1 2 3 4 5; do
        "$millrace" "${run[@]}" -d sim:sim >"$work/sim" || return 1
        CONFIG=sim MEMORY=2048 sim/pci/vm.sh millrace "${run[@]}" -d pci:0 >"$work/pci" || return 1
        cat "$work/sim" >>"$work/sims"
        cat "$work/pci" >>"$work/pcis"
        echo "# best so far: $(best "$work/pcis") s in the guest, $(best "$work/sims") s with sim:"
        [ -n "${BARS:-}" ] || return 0
        awk -v a="$(best "$work/pcis")" -v b="$(best "$work/sims")" -v most=$most 'BEGIN { exit !(a && b && a <= most * b) }' && return
    done
    return 1
}
ok "driver: a full-size layer runs in the guest${BARS:+, in at most $most times the wall time of sim:}" pairs
same() { [ "$(cycles "$work/sim" | awk '{ print $1 }')" = 5 ] && diff <(cycles "$work/sim") <(cycles "$work/pci"); }
ok "driver: a full-size layer counts the cycles of sim:" same
done_testing
