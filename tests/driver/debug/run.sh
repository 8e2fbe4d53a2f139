#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The driver in the debug kernel (kernel.config): the tests of tests/driver/run.sh, allocations that fail, and
# bugs planted for the detectors, which have to see them; TAP.
# usage: [BUILD=build] tests/driver/debug/run.sh DIRECTORY [suite|nomem|planted]; DIRECTORY: what kernel.sh printed
set -u
. tests/tools/tap.sh
export BUILD=${BUILD:-build}
export KERNEL=$1/bzImage KERNEL_MEMORY=384 VM_TIMEOUT=${VM_TIMEOUT:-1200} # some five times slower than Debian's
what=${2:-suite nomem planted}
ok "debug: the driver's module" driver/build.sh "$1/tree" "$work/driver"
ok "debug: its peer's" tests/driver/module/build.sh "$1/tree" "$work/peer"
export MODULE=$work/driver/millrace.ko PEER=$work/peer/peer.ko
mkdir "$work/files" && objcopy --strip-debug "$MODULE" "$work/files/millrace.ko"

# PARAMS, log, command.
machine() {
    local log=$2
    PARAMS=$1 EXTRA=$work/files sim/pci/vm.sh "${@:3}" >"$log"
}
# The kernel shows its stack when vmalloc fails, which is no fault. DMA_API_DEBUG gives up when its own memory fails.
nomem() { # CALL, or all but loading
    machine "dma_debug=off slub_debug=A,kmalloc-*,kernfs_node_cache,names_cache" "$work/log" nomem "$@"
    local status=$?
    sed 's/^/    /' "$work/log"
    return $status
}
# All in one machine. Lockdep is the first: it ends with what any detector reports.
bugs="none lock_inversion sleep_in_atomic use_after_free out_of_bounds shift bounds dma_not_mapped dma_kept timer_freed leak"
plant() {
    make --no-print-directory -s -C "$tree" M="$work/planted" modules >"$work/planted.log" 2>&1 || { sed 's/^/# /' "$work/planted.log" && return 1; }
    cp "$work/planted/planted.ko" "$work/files/"
    printf 'echo 1 >/sys/kernel/debug/dma-api/all_errors; for bug in %s; do echo "planted: $bug" >/dev/kmsg; insmod /planted.ko bug=$bug && rmmod planted; done; echo "planted: end" >/dev/kmsg\n' "$bugs" >"$work/files/plant.sh"
    # The machine that says nothing is wrong has failed.
    machine kasan_multi_shot "$work/planted.txt" sh /plant.sh && return 1
    grep -q 'guest: status 0' "$work/planted.txt" && grep -q 'vm.sh: the kernel or QEMU complained' "$work/planted.txt"
}
# The part of the log from one to the next, and the whole machine's end.
said_of() { sed -n "/^kernel: .*planted: $1\$/,/^kernel: .*planted: /p" "$work/planted.txt"; }
# BUG TEXT: its detector has said it, and the judge knows the words.
seen() {
    said_of "$1" | grep -qE "$2" && said_of "$1" | grep -qEf sim/pci/guest/reports && return
    said_of "$1" | head -20 | sed 's/^/# /'
    return 1
}
quiet() { [ "$(said_of none | wc -l)" -ge 2 ] && ! said_of none | grep -qEf sim/pci/guest/reports; }
ended() { grep -qE "$1" "$work/planted.txt"; }

for part in $what; do
    case $part in
    suite)
        tests/driver/run.sh full | sed 's/^/    /'
        ok "debug: the suite, nothing reported" [ "${PIPESTATUS[0]}" = 0 ]
        ;;
    nomem)
        IGNORE='Call Trace' ok "debug: every allocation fails once" nomem
        # What is 6.1's own: it warns when it cannot note a tracepoint's fields, which taints, and shows its stack when
        # a link in sysfs is there that it had made at the wrong place, without memory for the right one, and left.
        # kmemleak looks at the whole of an object where it cannot note which part matters.
        IGNORE='Call Trace|cut here|WARNING: .* event_define_fields|^detector: the kernel is tainted: 4608$|Cannot allocate a scan area' \
            ok "debug: every allocation of loading the module fails once" nomem loading
        ;;
    planted)
        tree=$(realpath "$1/tree")
        mkdir "$work/planted" && cp tests/driver/debug/{Kbuild,planted.c} "$work/planted/"
        ok "debug: bugs planted, the machine fails" plant
        ok "debug: no bug, nothing said" quiet
        ok "debug: lockdep sees an inversion" seen lock_inversion 'possible circular locking dependency'
        ok "debug: sleeping in atomic context is seen" seen sleep_in_atomic 'BUG: sleeping function called from invalid context'
        ok "debug: KASAN sees a use after free" seen use_after_free 'KASAN: (slab-)?use-after-free'
        ok "debug: KASAN sees an access out of bounds" seen out_of_bounds 'KASAN: slab-out-of-bounds'
        ok "debug: UBSAN sees a shift" seen shift 'UBSAN: shift-out-of-bounds'
        ok "debug: UBSAN sees an index" seen bounds 'UBSAN: array-index-out-of-bounds'
        ok "debug: DMA_API_DEBUG sees memory that was not mapped" seen dma_not_mapped 'DMA-API: .*free DMA memory it has not allocated'
        ok "debug: DEBUG_OBJECTS sees a timer freed" seen timer_freed 'ODEBUG: free active'
        ok "debug: kmemleak sees a leak" ended 'unreferenced object .*size 512'
        ok "debug: DMA_API_DEBUG sees memory that stays mapped" ended 'DMA-API: .*pending DMA allocations while released from device'
        ok "debug: at the end: tainted" ended '^detector: the kernel is tainted'
        ok "debug: at the end: errors of the DMA API" ended '^detector: [0-9]+ errors of the DMA API'
        ok "debug: at the end: lockdep has given up" ended '^detector: lockdep has given up'
        ;;
    *) ok "debug: part $part" false ;;
    esac
done
done_testing
