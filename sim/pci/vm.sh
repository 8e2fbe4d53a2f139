#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a virtual machine with the driver and the Verilated device, without KVM.
# usage: sim/pci/vm.sh COMMAND...; its status is the command's. The kernel must not warn, whatever the
# command says. Environment:
#   CONFIG=tiny                   of the device
#   KERNEL=FILE                   in place of build/vm/vmlinuz; EXTRA then has its millrace.ko
#   FUNCTION="--irq msi"          options of millrace-vm-CONFIG
#   PARAMS="swiotlb=4096,force"   of the kernel; with "millrace." in front, of the driver
#   EXTRA=DIRECTORY               whose files are added to the guest's root
#   MEMORY=256                    MiB; KERNEL_MEMORY=0, for what the kernel itself needs more of it
#   SMP=1                         processors; they take turns, one thread of QEMU does their work
#   MACHINE=q35                   in place of microvm: the function is behind a root port, in a slot that it
#                                 can be taken from (sim/pci/fault.h: orders)
#   IGNORE=REGEX                  lines that are no complaint of the kernel
set -uo pipefail
build=${BUILD:-build} config=${CONFIG:-tiny} memory=$((${MEMORY:-256} + ${KERNEL_MEMORY:-0})) smp=${SMP:-1}
for need in qemu-system-x86_64 "$build/sim/$config/millrace-vm-$config" "$build/vm/guest.cpio" "${KERNEL:-$build/vm/vmlinuz}"; do
    [ -e "$need" ] || command -v "$need" >/dev/null || {
        echo "vm.sh: no $need; make deps-driver vm-$config driver-tests" >&2
        exit 125
    }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The kernel unpacks one archive after the other: programs, then this run's command and files.
mkdir "$dir/root"
[ -z "${EXTRA:-}" ] || cp -r "$EXTRA/." "$dir/root/"
for word; do printf "'%s' " "${word//\'/\'\\\'\'}"; done >"$dir/root/command"
(cd "$dir/root" && find . -mindepth 1 | cpio -o -H newc --quiet --owner=0:0) >"$dir/command.cpio" || exit 125
cat "$build/vm/guest.cpio" "$dir/command.cpio" >"$dir/initrd" || exit 125

khz=$(awk -F: '/^cpu MHz/ { printf "%d", $2 * 1000; exit }' /proc/cpuinfo)
case ${MACHINE:-microvm} in
microvm)
    # Without a timer of known rate: the processor's is the host's.
    machine=(-M microvm,pcie=on,acpi=on,rtc=on,pit=on,pic=on,isa-serial=on,auto-kernel-cmdline=off)
    slot=bus=pcie.0,addr=5 clock="tsc_early_khz=${khz:-2600000} tsc=reliable"
    ;;
q35)
    machine=(-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off -M "q35,sata=off,smbus=off,usb=off,vmport=off,i8042=off"
        -device pcie-root-port,id=rp0,bus=pcie.0,addr=5,chassis=1,slot=1)
    slot=bus=rp0 clock=
    ;;
*)
    echo "vm.sh: MACHINE=$MACHINE is not known: microvm or q35" >&2
    exit 125
    ;;
esac
# setpriv: killed with this script.
# shellcheck disable=SC2086
setpriv --pdeathsig KILL timeout --kill-after=5 "${VM_TIMEOUT:-3000}" "$build/sim/$config/millrace-vm-$config" ${FUNCTION:-} -- \
    qemu-system-x86_64 "${machine[@]}" -accel tcg,thread=single -cpu qemu64 -smp "$smp" -m "$memory" \
    -object memory-backend-memfd,id=ram,size="${memory}M",share=on -machine memory-backend=ram \
    -nodefaults -no-user-config -display none -no-reboot -serial stdio \
    -device isa-debug-exit,iobase=0xf4,iosize=1 -device x-pci-proxy-dev,id=acc0,fd=3,"$slot" \
    -chardev socket,id=qt,fd=4 -object qtest,id=qt0,chardev=qt,log=none \
    -chardev socket,id=qmp,fd=5 -mon chardev=qmp,mode=control \
    -kernel "${KERNEL:-$build/vm/vmlinuz}" -initrd "$dir/initrd" \
    -append "console=ttyS0 panic=-1 reboot=t quiet loglevel=3 $clock mitigations=off cryptomgr.notests no_timer_check rcupdate.rcu_expedited=1 ${PARAMS:-}" \
    </dev/null 2>&1 | stdbuf -oL tr -d '\r' | tee "$dir/log"
status=${PIPESTATUS[0]}
if grep -qEf sim/pci/guest/reports <(grep -vE "${IGNORE:-^\$^}" "$dir/log"); then
    echo "vm.sh: the kernel or QEMU complained"
    exit 1
fi
exit "$status"
