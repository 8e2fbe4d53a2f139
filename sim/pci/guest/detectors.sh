#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the kernel's detectors know when everything is over and the driver has gone: a line "detector: ..."
# for each finding. A kernel without one of them says nothing of it.
# usage: detectors.sh before|after (the driver's unloading)
debug=/sys/kernel/debug
case $1 in
before) # so that addresses of the module in a report mean something
    [ ! -e $debug/kmemleak ] || echo "# millrace.ko was at $(cat /sys/module/millrace/sections/.text 2>/dev/null)"
    exit 0
    ;;
esac
# W, D, bad page, soft lockup: whatever it was, the kernel has complained.
tainted=$(cat /proc/sys/kernel/tainted)
[ $((tainted & (1 << 9 | 1 << 7 | 1 << 5 | 1 << 14))) = 0 ] || echo "detector: the kernel is tainted: $tainted"
if [ -e $debug/dma-api ] && ! grep -q dma_debug=off /proc/cmdline; then
    [ "$(cat $debug/dma-api/disabled)" = N ] || echo "detector: DMA-API debugging has given up"
    errors=$(cat $debug/dma-api/error_count)
    [ "$errors" = 0 ] || [ -n "$(cat $debug/dma-api/driver_filter)" ] || echo "detector: $errors errors of the DMA API"
fi
if [ -e /proc/lockdep_stats ]; then
    grep -q 'debug_locks: *1$' /proc/lockdep_stats || echo "detector: lockdep has given up"
fi
if [ -e $debug/kmemleak ]; then
    # An object counts when it is 5 s old and two scans have found it the same and unreferenced.
    sleep 6
    for scan in 1 2; do
        echo scan >$debug/kmemleak || echo "detector: kmemleak has given up"
        sleep 1
    done
    cat $debug/kmemleak
    echo "# kmemleak: scanned"
fi
