#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The driver in virtual machines (sim/pci): TAP. usage: tests/driver/run.sh quick|full
set -u
. tests/tools/tap.sh
build=${BUILD:-build}
args=(generate -m models/demo -n 1 -p a -d)
exits pci_number_that_is_none 2 "not the number of a device" "${args[@]}" pci:x
exits pci_negative_number 2 "not the number of a device" "${args[@]}" pci:-1
exits pci_number_behind_the_last 2 "not the number of a device" "${args[@]}" pci:1000
[ -e /dev/millrace0 ] || exits pci_driver_not_loaded 4 "is the driver loaded" "${args[@]}" pci:0
if [ ! -f "$build/vm/vmlinuz" ]; then
    ok "driver # SKIP no QEMU or kernel (make deps-driver)" true
    done_testing
fi
# What the guest compares its results with.
mkdir "$work/files"
"$millrace" generate -m models/demo -q -d sim:tiny -p "And it came to pass" -n 6 --json >"$work/sim.json" || exit 1
grep -v open_seconds "$work/sim.json" >"$work/files/expect.json"

# vm GROUP...: one machine.
vm() {
    EXTRA=$work/files sim/pci/vm.sh guest.sh "$@" >"$work/log"
    local status=$?
    sed 's/^/    /' "$work/log"
    return $status
}

ok "driver: uapi and interrupt modes" vm uapi modes
if [ "$1" = full ]; then
    PARAMS=swiotlb=4096,force ok "driver: bounced DMA" vm uapi generate
    FUNCTION="--irq none" ok "driver: no vectors" vm polled
    FUNCTION="--irq msi" ok "driver: MSI only" vm generate
fi
done_testing
