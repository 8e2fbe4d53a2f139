#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The driver in Debian 12's 6.12 kernel: the tests of tests/driver/run.sh in one more virtual machine; TAP.
# usage: [BUILD=build] tests/driver/next.sh
set -u
. tests/tools/tap.sh
export BUILD=${BUILD:-build}
if [ ! -f "$BUILD/vm/guest.cpio" ] || ! KERNEL=$(tests/driver/kernels.sh vmlinuz); then
    ok "driver: 6.12 # SKIP no QEMU or kernel" true
    done_testing
fi
export KERNEL
mkdir "$work/files"
ok "driver: module for 6.12" driver/build.sh "$(tests/driver/kernels.sh 6.12)" "$work/out"
objcopy --strip-debug "$work/out/millrace.ko" "$work/files/millrace.ko"
"$millrace" generate -m models/demo -q -d sim:tiny -p "And it came to pass" -n 6 --json | grep -v open_seconds >"$work/files/expect.json"

# The kernel says which one it is, so that the test cannot run in the other one.
machine() {
    EXTRA=$work/files sim/pci/vm.sh sh -c "uname -r; guest.sh $*" >"$work/log"
    local status=$?
    sed 's/^/    /' "$work/log"
    return $status
}
PARAMS=slub_debug=FZP ok "driver: 6.12: uapi, memory, files and processes, dma-buf, clients, removal, interrupt modes, selftest, leaks" \
    machine uapi memory hostile dmabuf clients removal modes selftest leaks
ok "it was 6.12" grep -q '^6\.12\.' "$work/log"
# Pinning waits for userfaultfd in this one.
ok "driver: 6.12: recovery" machine recovery
ok "6.12: killed in a mapping that waits" grep -q 'ok .* killed while it waits for its memory, in a mapping: ' "$work/log"
PARAMS=swiotlb=131072,force MEMORY=768 ok "driver: 6.12: bounced DMA" machine uapi memory dmabuf generate
done_testing
