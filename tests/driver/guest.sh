#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests of tests/driver/run.sh inside the virtual machine; TAP. usage: guest.sh GROUP...
number=0 failed=0
sysfs=/sys/class/misc/millrace0

ok() { # NAME COMMAND...
    name=$1
    shift
    number=$((number + 1))
    if "$@"; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        failed=1
    fi
}
# A program that prints TAP itself, as a subtest.
program() {
    { "$@"; echo $? >/tmp/status; } | sed 's/^/    /'
    [ "$(cat /tmp/status)" = 0 ]
}
# Another one, whose output is remarks.
remarks() {
    { "$@"; echo $? >/tmp/status; } 2>&1 | sed 's/^/# /'
    [ "$(cat /tmp/status)" = 0 ]
}
load() { # PARAMETER...
    insmod /millrace.ko stop_ms="${stop_ms:-300}" "$@" && [ -c /dev/millrace0 ]
}
reload() {
    rmmod millrace && load "$@"
}
# Interrupts that all vectors of the driver have had.
interrupts() {
    awk '/millrace/ { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' /proc/interrupts
}

generate() {
    millrace generate -m /demo -q -d pci:0 -p "And it came to pass" -n 6 --json >/tmp/all.json 2>/tmp/err &&
        grep -v open_seconds /tmp/all.json >/tmp/pci.json && cmp /expect.json /tmp/pci.json && return
    sed 's/^/# /' /tmp/err
    diff /expect.json /tmp/pci.json | head -8 | sed 's/^/# /'
    return 1
}

# Rows to the last bit; of labels the names, since probabilities are the host's, whose OpenBLAS knows other processors.
encoder() { # COMMAND [FIELD OF THE LINES]
    millrace "$1" /encoder -f /encoder/texts -d pci:0 2>/tmp/err | cut -d' ' -f"${2:-1-}" >/tmp/rows
    cmp "/encoder/$1" /tmp/rows && [ ! -s /tmp/err ] && return
    sed 's/^/# /' /tmp/err
    return 1
}

# MODE, vectors that there must be, parameters.
mode() {
    wanted=$2
    ok "irq_mode=$1: loads" reload "irq_mode=$1"
    ok "irq_mode=$1: $wanted vectors" [ "$(cat $sysfs/vectors)" = "$wanted" ]
    ok "irq_mode=$1: text, tokens and counters are sim:'s" generate
    ok "irq_mode=$1: jobs end in time" program uapi soon
    [ "$wanted" = 0 ] && ok "irq_mode=$1: no interrupts" [ "$(interrupts)" = 0 ]
    [ "$wanted" = 0 ] || ok "irq_mode=$1: interrupts" [ "$(interrupts)" -gt 0 ]
}

# Accesses to BAR 0 and interrupts since the machine began, as the function counts them.
counts() {
    # shellcheck disable=SC2046
    set -- $(od -An -tu4 -j192 -N12 /sys/bus/pci/devices/0000:00:05.0/config)
    echo $(($2)) "$3"
}
decode() { millrace generate -m /demo -q -d pci:0 -p And -n "$1" >/dev/null 2>&1; }
# Ten decoded tokens more: register writes and interrupts.
token_costs() {
    a=$(counts) && decode 2 && b=$(counts) && t=$(cut -d. -f1 /proc/uptime) && decode 12 && c=$(counts) || return 1
    # Every half a second the driver rings once more for what has not begun.
    looks=$((2 * ($(cut -d. -f1 /proc/uptime) - t + 1)))
    # shellcheck disable=SC2086
    set -- $a $b $c
    writes=$(($5 - $3 - ($3 - $1))) irqs=$(($6 - $4 - ($4 - $2)))
    echo "# 10 tokens: $writes register writes, $irqs interrupts"
    [ $writes -ge 10 ] && [ $writes -le $((20 + looks)) ] && [ $irqs -ge 10 ] && [ $irqs -le 10 ]
}

# What the kernel holds for the driver, by name.
named() { cat /proc/interrupts /proc/iomem /proc/vmallocinfo /proc/modules | grep -c millrace; }
# Objects of its general caches, pages that are pinned, KiB of memory that is nobody's: neither free, also in the
# processor's own stock (zoneinfo's count), nor of a cache or a process. Only with slub_debug do the caches count
# exactly: without it the free places of the slab in use count as objects, and a leak hides in them.
held() {
    for i in 1 2; do
        sleep 0.2
        echo 3 >/proc/sys/vm/drop_caches
        for cache in /sys/kernel/slab/*/shrink; do echo 1 >"$cache"; done 2>/dev/null
        echo 1 >/proc/sys/vm/compact_memory
        cat /proc/sys/vm/stat_refresh
    done
    awk '/^[^ ]*kmalloc/ { objects += $2 } $1 == "nr_foll_pin_acquired" { pins += $2 }
        $1 == "nr_foll_pin_released" { pins -= $2 } $1 == "MemTotal:" { rest += $2 }
        /^(MemFree|Buffers|Cached|Slab|AnonPages|PageTables|KernelStack|Percpu):/ { rest -= $2 }
        $1 == "count:" { rest -= 4 * $2 }
        END { print objects, pins, rest }' /proc/slabinfo /proc/vmstat /proc/meminfo /proc/zoneinfo
}
opens() { # 28 contexts
    for i in 1 2 3 4; do
        (exec 3<>/dev/millrace0 4<>/dev/millrace0 5<>/dev/millrace0 6<>/dev/millrace0 7<>/dev/millrace0 \
            8<>/dev/millrace0 9<>/dev/millrace0) || return 1
    done
}
# A program of which only what failed is of interest.
only_failures() {
    "$@" >/tmp/out && return
    grep 'not ok' /tmp/out | sed "s/^/# $1: /"
    return 1
}
cycle() {
    load "irq_mode=$1" && only_failures uapi && only_failures dmabuf && opens && rmmod millrace
}
# A leak grows in each of three windows of five times; what else the kernel does now and then, does not.
leaks() {
    rmmod millrace
    cycle auto && cycle poll && cycle auto && cycle poll || return 1
    least="999999 999999 999999"
    for window in 1 2 3; do
        before=$(held)
        for n in 1 2 3 4 5; do
            cycle auto || return 1
        done
        # shellcheck disable=SC2046
        set -- $before $(held) $least
        echo "# 5 times: $(($4 - $1)) objects, $(($5 - $2)) pinned pages, $(($6 - $3)) KiB"
        least=$(echo "$(($4 - $1)) $7 $(($5 - $2)) $8 $(($6 - $3)) $9" |
            awk '{ print $1 < $2 ? $1 : $2, $3 < $4 ? $3 : $4, $5 < $6 ? $5 : $6 }')
    done
    left=$(named)
    load
    # shellcheck disable=SC2086
    set -- $least
    echo "# at least: $1 objects, $2 pinned pages, $3 KiB; $left entries in /proc"
    # One object a time would be 5, a page of each context about 600 KiB; what is not leaked moves by 100 KiB.
    [ "$left" = 0 ] && [ "$1" -lt 3 ] && [ "$2" -lt 3 ] && [ "$3" -lt 300 ]
}

# Off and on again, with contexts open in two rounds of three; measured as for loading, in windows of 50 rounds.
rebind() {
    program removal 50 || return 1
    least="999999 999999 999999"
    for window in 1 2 3; do
        before=$(held)
        removal 50 >/tmp/out || return 1
        # shellcheck disable=SC2046
        set -- $before $(held) $least
        echo "# 50 times: $(($4 - $1)) objects, $(($5 - $2)) pinned pages, $(($6 - $3)) KiB"
        least=$(echo "$(($4 - $1)) $7 $(($5 - $2)) $8 $(($6 - $3)) $9" |
            awk '{ print $1 < $2 ? $1 : $2, $3 < $4 ? $3 : $4, $5 < $6 ? $5 : $6 }')
    done
    # shellcheck disable=SC2086
    set -- $least
    [ "$1" -lt 25 ] && [ "$2" -lt 25 ] && [ "$3" -lt 400 ]
}

# The module plays the other driver.
with_peer() {
    insmod /bin/peer.ko && program peer && rmmod peer
}

for group; do
    # A ring that is told to stop has ten minutes for it, so that a slow machine is no fault. Where rings are stuck
    # on purpose, or work is cut off by a reset, it has as little as the driver's default says.
    case $group in
    faults | broken | recovery | polled | probe | peer | hotplug | suspend | fuzz | nomem | training) stop_ms=300 ;;
    *) stop_ms=600000 ;;
    esac
    echo $stop_ms >/sys/module/millrace/parameters/stop_ms
    case $group in
    uapi | zero | memory | hostile | clients | removal | isolation | dmabuf | faults | recovery | probe | hotplug | suspend | nomem | training) ok "$group" program "$group" ;;
    # shellcheck disable=SC2046
    fuzz) ok "fuzzer of the uapi" program fuzz $(cat /fuzz) ;;
    peer) ok "peer" with_peer ;;
    stress) ok "10,000 jobs, killed processes" program stress 10000 8 ;;
    some-stress) ok "jobs, killed processes" program stress 1000 8 ;;
    generate) ok "text, tokens and counters are sim:'s" generate ;;
    encoder)
        ok "embeddings of an encoder are sim:'s" encoder embed
        ok "labels of an encoder are sim:'s" encoder classify 2
        ;;
    modes)
        mode auto 16
        mode single 1
        mode msi 1 # more need an interrupt-remapping IOMMU on x86
        mode poll 0
        ;;
    rebind) ok "nothing is left of taking the driver off and on again 200 times" rebind ;;
    broken) ok "faults of the whole device" program faults whole ;;
    costs) ok "a decoded token costs 2 register writes and 1 interrupt at most" token_costs ;;
    selftest) ok "millrace selftest" remarks millrace selftest -d pci:0 ;;
    leaks) ok "nothing is left of loading, using and unloading" leaks ;;
    three) # rings share vectors
        ok "3 vectors" [ "$(cat $sysfs/vectors)" = 3 ]
        ok "clients" program clients
        ok "text, tokens and counters are sim:'s" generate
        ;;
    polled)
        ok "without vectors the driver polls" [ "$(cat $sysfs/vectors)" = 0 ]
        ok "text, tokens and counters are sim:'s, polled" generate
        ;;
    *) ok "group $group" false ;;
    esac
done
echo "1..$number"
exit $failed
