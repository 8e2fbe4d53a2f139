#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The driver in virtual machines (sim/pci): TAP. usage: [KERNEL=FILE MODULE=FILE PEER=FILE] tests/driver/run.sh quick|full
# KERNEL, MODULE, PEER: the debug kernel, the driver's module for it, and the one of tests/driver/module (tests/driver/debug).
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
if [ -n "${MODULE:-}" ]; then
    objcopy --strip-debug "$MODULE" "$work/files/millrace.ko" || exit 1
    : >"$work/files/exporters"
    mkdir "$work/files/bin" && cp "$PEER" "$work/files/bin/" || exit 1
fi
"$millrace" generate -m models/demo -q -d sim:tiny -p "And it came to pass" -n 6 --json >"$work/sim.json" || exit 1
grep -v open_seconds "$work/sim.json" >"$work/files/expect.json"

# vm_command COMMAND...: one machine. vm GROUP...: tests in one.
bounced=swiotlb=131072,force
vm_command() { EXTRA=$work/files sim/pci/vm.sh "$@" >"$work/log"; }
vm() {
    # DMA_API_DEBUG's __hash_bucket_find() does not find the mapping of a part that is synchronised when the device
    # has its page twice (docs/board/driver-inside.md). These tests map twice (also a page that processes share after fork): there
    # each mapping gets bounce buffers of its own. Other exporters cannot be bounced, so it looks away for them. The
    # fuzzer imports one buffer more often than the seven times that it can count.
    local group twice="" uncounted="" once="" params=${PARAMS:-}
    if [[ -n ${MODULE:-} && $params != *,force* ]]; then
        for group; do
            case $group in
            fuzz) uncounted+=" $group" ;;
            hostile | dmabuf | clients | three | some-stress | stress | leaks) twice+=" $group" ;;
            *) once+=" $group" ;;
            esac
        done
        # shellcheck disable=SC2086
        {
            [ -z "$twice" ] || PARAMS="$params $bounced" MEMORY=768 in_one $twice || return
            [[ $twice != *dmabuf* ]] || PARAMS="$params dma_debug_driver=none" in_one dmabuf || return
            [ -z "$uncounted" ] || PARAMS="$params dma_debug=off" in_one $uncounted || return
            [ -n "$once" ] || return 0
            set -- $once
        }
    fi
    in_one "$@"
}
in_one() {
    # 6.1's own hot plugging takes two of its locks in either order, which lockdep says as soon as a slot is emptied.
    [[ -z ${MODULE:-} || " $* " != *" hotplug "* ]] || local -x PARAMS="${PARAMS:-} sysctl.kernel.prove_locking=0"
    # With CONFIG_DEBUG_VM, 6.1 shows its stack when memory that userfaultfd answers for is pinned, and then refuses.
    [[ -z ${MODULE:-} || " $* " != *" recovery "* ]] || local -x IGNORE='Call Trace'
    vm_command guest.sh "$@"
    local status=$?
    sed 's/^/    /' "$work/log"
    return $status
}

ok "driver: uapi, memory, dma-buf, isolation, clients, stress, removal, its peers, interrupt modes" vm uapi zero memory hostile dmabuf isolation clients some-stress removal peer costs modes
ok "driver: faults of the device" vm probe faults
ok "driver: recovery" vm recovery
if [ "$1" = full ]; then
    PARAMS=$bounced MEMORY=768 ok "driver: bounced DMA" vm uapi memory dmabuf isolation clients removal peer generate
    ok "driver: selftest" vm selftest
    PARAMS=slub_debug=FZP ok "driver: loading and unloading, with checks of all objects in memory" vm leaks
    PARAMS=slub_debug=FZP ok "driver: off and on again 200 times, likewise" vm rebind
    ok "driver: faults of the whole device" vm broken
    MACHINE=q35 ok "driver: errors of the bus, hot plugging" vm hotplug
    MACHINE=q35 ok "driver: suspend to RAM" vm suspend
    ok "driver: 10,000 jobs" vm stress
    # FUZZ_SECONDS=600 FUZZ_SEED=2 for more, or others.
    echo "${FUZZ_SECONDS:-60} ${FUZZ_SEED:-1}" >"$work/files/fuzz"
    VM_TIMEOUT=$((${FUZZ_SECONDS:-60} + 3000)) ok "driver: fuzzer of the uapi" vm fuzz
    FUNCTION="--irq none" ok "driver: no vectors" vm polled recovery
    FUNCTION="--irq msi" ok "driver: MSI only" vm generate
    FUNCTION="--vectors 3" ok "driver: fewer vectors than rings" vm three
fi
[ "$1" != full ] || [ -n "${MODULE:-}" ] || CONFIG=sim ok "driver: isolation on configuration sim" vm isolation
if [ "$1" = full ]; then
    . tests/tools/bert.sh
    encoder files/encoder BertForSequenceClassification ',"id2label":{"0":"no","1":"maybe","2":"yes"}'
    printf '%s\n' "the mill stands" "the water runs where the wheel turns, and runs" "the" >"$work/files/encoder/texts"
    "$millrace" embed "$work/files/encoder" -f "$work/files/encoder/texts" -d sim:tiny >"$work/embed" || exit 1
    "$millrace" classify "$work/files/encoder" -f "$work/files/encoder/texts" -d sim:tiny | cut -d' ' -f2 >"$work/classify" || exit 1
    mv "$work/embed" "$work/classify" "$work/files/encoder/"
    # Its heads are the host's, by OpenBLAS, which the guest lacks.
    blas=$(ldconfig -p | awk '/libopenblas\.so\.0 / { print $NF; exit }')
    for f in $blas $(ldd "$blas" | awk '$3 ~ /^\// { print $3 }'); do
        mkdir -p "$work/files$(dirname "$f")" && cp -L "$f" "$work/files$f" || exit 1
    done
    MEMORY=768 ok "driver: an encoder" vm encoder
    rm -r "$work/files/encoder" "$work/files/usr" "$work/files/lib"
    # A tiny model, and what model: makes of it.
    mkdir "$work/files/train" && head -c 1000 models/demo/heldout.txt >"$work/files/train/text"
    "$millrace" train tests/e2e/train/config/first.yaml -m train -o "$work/first" -q \
        --set "train_input.data_dir=$work/files/train/text" --max_steps 1 || exit 1
    mv "$work/first/checkpoint-0" "$work/files/train/model"
    for step in 1 2; do
        "$millrace" train "$work/files/train/model" --data "$work/files/train/text" -d model:tinyt -o "$work/state" \
            --sequence 32 --batch 2 --heldout 0 --lr 1e-3 --steps $step -q || exit 1
        cp -r "$work/state" "$work/files/train/after$step"
    done
    CONFIG=tinyt ok "driver: training" vm training
    CONFIG=tinyt ok "driver: isolation on an engine that trains" vm isolation
    rm -r "$work/files/train"
fi
# The judge itself, in Debian's kernel, with the module one line of which is changed.
if [ "$1" = full ] && [ -z "${MODULE:-}" ]; then
    built_with() { # FILE SED
        local kdir=${KDIR:-/usr/src/linux-headers-$(cat "$build/vm/release")} out=$work/changed
        rm -rf "$work/tree" && mkdir "$work/tree" && cp -r --parents driver rtl/spec "$work/tree/" && sed -i "$2" "$work/tree/driver/$1" &&
            ! cmp -s "driver/$1" "$work/tree/driver/$1" && (cd "$work/tree" && driver/build.sh "$kdir" "$out") || return 1
        mkdir -p "$out/files" && objcopy --strip-debug "$out/millrace.ko" "$out/files/millrace.ko"
    }
    leak() { # FILE SED WHAT
        built_with "$1" "$2" || return 1
        PARAMS=slub_debug=FZP EXTRA=$work/changed/files sim/pci/vm.sh guest.sh leaks >"$work/log" && return 1
        sed 's/^/    # /' "$work/log"
        grep -q "^not ok 1 - nothing is left" "$work/log" && grep -q "^# at least:.*$3" "$work/log"
    }
    leftover() {
        built_with scrub.c 's/FETCH_ROWS_ROW, 1/FETCH_ROWS_ROW, 0/' || return 1
        CONFIG=tinyt EXTRA=$work/changed/files sim/pci/vm.sh guest.sh isolation >"$work/log" && return 1
        sed 's/^/    # /' "$work/log"
        grep -q "not ok .* second row memory: another one finds nothing" "$work/log"
    }
    ok "driver: 8 bytes that each loading leaves are found" leak pci.c 's/^\tkref_init(&dev->refs);/\t(void)kmalloc(8, GFP_KERNEL);\n&/' " [1-9][0-9]* objects"
    ok "driver: a page of each mapping that stays pinned is found" leak memory.c 's|dirty_lock(memory->pages, memory->npages,|dirty_lock(memory->pages, memory->npages - 1,|' " [1-9][0-9]* pinned"
    ok "driver: memory of a ring that is not given back is found" leak ring.c 's|^\tif (q->descriptors)$|\tif (0)|' " [1-9][0-9]* KiB"
    ok "driver: a page that each context leaves is found" leak context.c 's|^\treturn nonseekable_open|\t(void)__get_free_page(GFP_KERNEL);\n&|' " [3-9][0-9][0-9] KiB"
    ok "driver: rows that the program between two clients leaves are found" leftover
    complains() { vm_command sh -c 'echo "WARNING: planted" >/dev/kmsg' && return 1; grep -q "complained" "$work/log"; }
    ok "driver: a warning of the kernel fails the run" complains
    status_of() { vm_command sh -c 'exit 7'; [ $? = 7 ]; }
    ok "driver: the command's status is the run's" status_of
    hangs() {
        VM_TIMEOUT=6 vm_command sleep 1000
        [ $? = 124 ] || return
        for _ in $(seq 300); do
            pgrep -f "marker=$$" >/dev/null || return 0
            sleep 1
        done
        return 1
    }
    PARAMS="marker=$$" ok "driver: a machine that hangs is ended, and nothing is left of it" hangs
fi
done_testing
