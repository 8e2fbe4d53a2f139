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
load() { # PARAMETER...
    insmod /millrace.ko "$@" && [ -c /dev/millrace0 ]
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

# MODE, vectors that there must be, parameters.
mode() {
    wanted=$2
    ok "irq_mode=$1: loads" reload "irq_mode=$1"
    ok "irq_mode=$1: $wanted vectors" [ "$(cat $sysfs/vectors)" = "$wanted" ]
    ok "irq_mode=$1: text, tokens and counters are sim:'s" generate
    [ "$wanted" = 0 ] && ok "irq_mode=$1: no interrupts" [ "$(interrupts)" = 0 ]
    [ "$wanted" = 0 ] || ok "irq_mode=$1: interrupts" [ "$(interrupts)" -gt 0 ]
}

for group; do
    case $group in
    uapi) ok "uapi" program uapi ;;
    generate) ok "text, tokens and counters are sim:'s" generate ;;
    modes)
        mode auto 16
        mode single 1
        mode msi 1 # more need an interrupt-remapping IOMMU on x86
        mode poll 0
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
