#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a virtual machine with the driver and the Verilated device, without KVM.
# usage: [CONFIG=tiny] [MEMORY=256] [FUNCTION="--irq msi"] [PARAMS="millrace.irq_mode=poll"] sim/pci/vm.sh INITRD COMMAND...
# Its status is the command's. The kernel must not warn, whatever the command says.
set -uo pipefail
initrd=$1
shift
build=${BUILD:-build} config=${CONFIG:-tiny} memory=${MEMORY:-256}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
khz=$(awk -F: '/^cpu MHz/ { printf "%d", $2 * 1000; exit }' /proc/cpuinfo)
run=$(echo "$*" | tr ' ' +)
# shellcheck disable=SC2086
timeout --kill-after=5 "${VM_TIMEOUT:-600}" "$build/sim/$config/millrace-vm-$config" ${FUNCTION:-} -- \
    qemu-system-x86_64 -M microvm,pcie=on,acpi=on,rtc=on,pit=on,pic=on,isa-serial=on,auto-kernel-cmdline=off \
    -accel tcg -cpu qemu64 -smp 1 -m "$memory" \
    -object memory-backend-memfd,id=ram,size="${memory}M",share=on -machine memory-backend=ram \
    -nodefaults -no-user-config -display none -no-reboot -serial stdio \
    -device isa-debug-exit,iobase=0xf4,iosize=1 -device x-pci-proxy-dev,id=acc0,fd=3,bus=pcie.0,addr=5 \
    -chardev socket,id=qt,fd=4 -object qtest,id=qt0,chardev=qt,log=none \
    -chardev socket,id=qmp,fd=5 -mon chardev=qmp,mode=control \
    -kernel "$build/vm/vmlinuz" -initrd "$initrd" \
    -append "console=ttyS0 panic=-1 quiet loglevel=3 tsc_early_khz=${khz:-2600000} tsc=reliable mitigations=off cryptomgr.notests no_timer_check rcupdate.rcu_expedited=1 ${PARAMS:-} run=$run" \
    </dev/null 2>&1 | tr -d '\r' | tee "$log"
status=${PIPESTATUS[0]}
if grep -qE 'WARNING|BUG:|Oops|Call Trace|Blocked re-entrant|[Kk]ernel panic|cut here' "$log"; then
    echo "vm.sh: the kernel or QEMU complained"
    exit 1
fi
exit "$status"
