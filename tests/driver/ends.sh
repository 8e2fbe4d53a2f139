#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# However a virtual machine ends, nothing is left of it: neither the function's process nor QEMU, and whoever
# started it gets a status that says so. TAP. usage: [BUILD=build] tests/driver/ends.sh
set -u
. tests/tools/tap.sh
export BUILD=${BUILD:-build}
if [ ! -f "$BUILD/vm/vmlinuz" ]; then
    ok "driver: ends # SKIP no QEMU or kernel (make deps-driver)" true
    done_testing
fi
export PARAMS="marker=$$.$RANDOM" # of the kernel, so in the arguments of all processes of the machine
processes() { pgrep -f -- "$PARAMS"; }
named() { processes | while read -r pid; do [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ] && echo "$pid"; done; }
gone() {
    for _ in $(seq 600); do
        processes >/dev/null || return 0
        sleep 0.5
    done
    processes | while read -r pid; do echo "# left: $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c1-80)"; done
    return 1
}
# STATUS COMMAND...: the machine ends by itself.
ends() {
    local wanted=$1 status
    shift
    sim/pci/vm.sh "$@" >"$work/log" 2>&1
    status=$?
    [ "$wanted" = "$status" ] || echo "# status $status"
    [ "$wanted" = "$status" ] && gone
}
# STATUS SIGNAL WHOM: somebody ends it. WHOM is a process's name, or vm.sh.
killed() {
    local pid whom status
    sim/pci/vm.sh sleep 1000 >"$work/log" 2>&1 &
    pid=$!
    for _ in $(seq 3000); do
        [ -z "$(named qemu-system-x86)" ] || break
        sleep 0.1
    done
    sleep 1
    whom=$pid
    [ "$3" = vm.sh ] || whom=$(named "$3")
    [ -n "$whom" ] && [ -n "$(named qemu-system-x86)" ] || { kill "$pid"; return 1; }
    kill "-$2" $whom
    gone
    local left=$?
    # shellcheck disable=SC2046
    [ $left = 0 ] || kill -KILL $(processes)
    { wait "$pid"; } 2>/dev/null
    status=$?
    [ "$status" = "$1" ] || echo "# status $status"
    [ "$status" = "$1" ] && [ $left = 0 ]
}
ok "driver: ends: a command that is done" ends 0 true
ok "driver: ends: a command that fails" ends 7 sh -c 'exit 7'
VM_TIMEOUT=5 ok "driver: ends: its time is over" ends 124 sleep 1000
ok "driver: ends: the kernel panics" ends 1 sh -c 'echo c >/proc/sysrq-trigger; sleep 1000'
ok "driver: ends: switched off without a status" ends 131 poweroff -f
ok "driver: ends: the function is killed" killed 137 KILL millrace-vm-tin
ok "driver: ends: QEMU is killed" killed 130 KILL qemu-system-x86
ok "driver: ends: what limits its time is killed" killed 137 KILL timeout
ok "driver: ends: who started it is killed" killed 137 KILL vm.sh
ok "driver: ends: who started it is asked to end" killed 143 TERM vm.sh
nothing_built() { BUILD=$work/nothing sim/pci/vm.sh true 2>"$work/err"; [ $? = 125 ] && [ "$(wc -l <"$work/err")" = 1 ] && grep -q "make deps-driver" "$work/err"; }
ok "driver: ends: a machine that is not built says what to do" nothing_built
done_testing
