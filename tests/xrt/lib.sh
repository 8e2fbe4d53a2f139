#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of xrt: after tests/tools/tap.sh: starting the program in emulation, xclbins with
# another simulator in them, and what a process has left behind.
build=$(realpath "${BUILD:-build}")
xrt=$build/xrt
tests=${XRT_PROGRAMS:-$xrt} # test_xrt and test_update
export MILLRACE_XCLBIN=$xrt/millrace-tiny.xclbin
unset XILINX_XRT XRT_INI_PATH EMCONFIG_PATH SDACCEL_EM_RUN_DIR
demo=(generate -m models/demo -q)

# start ARGUMENTS...: millrace in emulation in the background; its process is $pid.
start() {
    rm -f "$work/out" "$work/err" # of an earlier one
    sim/xrt/run "$millrace" "$@" >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
}
# finish: waits for it; $status, and $seconds since start of the wait.
finish() {
    local from=$SECONDS
    wait "$pid" 2>/dev/null
    status=$?
    seconds=$((SECONDS - from))
}
# emulators PID: the simulators that this process has started.
emulators() {
    local p line
    for p in /proc/[0-9]*; do
        read -r line <"$p/stat" || continue
        line=${line##*) }
        case $(readlink "$p/exe") in
        /tmp/millrace-"$1"-*) [ "${line%% *}" = Z ] || echo "${p#/proc/}" ;;
        esac
    done 2>/dev/null
}
# emulator: waits until $pid has started its simulator, and gives its process.
emulator() {
    local i found
    for ((i = 0; i < 3000; i++)); do
        found=$(emulators "$pid")
        [ -n "$found" ] && echo "$found" && return
        sleep 0.1
    done
}
# under_way: waits until the program that was started has written text, so that a run is under way.
under_way() {
    local i
    for ((i = 0; i < 3000; i++)); do
        [ ! -s "$work/out" ] || return 0
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    echo "# no text"
    return 1
}
# asleep PID: waits until all its threads sleep in what they wait for.
asleep() {
    local i
    for ((i = 0; i < 3000; i++)); do
        ! sed 's/.*) //' "/proc/$1"/task/*/stat 2>/dev/null | grep -qv '^[SD]' && return
        sleep 0.1
    done
}
# nothing_left PID: no process, no file, once the simulator has had a moment to end.
nothing_left() {
    local i
    for ((i = 0; i < 1800; i++)); do
        compgen -G "/tmp/millrace-$1-*" >/dev/null || [ -n "$(emulators "$1")" ] || return 0
        sleep 0.1
    done
    echo "# left behind: $(compgen -G "/tmp/millrace-$1-*") $(emulators "$1")"
    return 1
}
# ended STATUS WORDS: the program that was started ended so, with WORDS in the last line of standard
# error, and left nothing behind.
ended() {
    finish
    if [ "$status" = "$1" ] && tail -1 "$work/err" | grep -qE "^millrace: .*($2)"; then
        echo "# after $seconds s"
        nothing_left "$pid"
        return
    fi
    echo "# status $status (expected $1) after $seconds s:"
    sed 's/^/# /' "$work/err"
    return 1
}
# xclbin NAME LINE...: an xclbin whose launch script is these lines, with the emulator beside it.
xclbin() {
    local name=$1 dir=$work/$1.d
    shift
    rm -rf "$dir" && mkdir -p "$dir/behav_waveform/xsim"
    cp "$xrt/millrace-emulator" "$build/xrt/garbage" "$dir/behav_waveform/xsim/"
    cp "${kernel_so:-$build/sim/tiny/libmillrace-kernel-tiny.so}" "$dir/behav_waveform/xsim/libmillrace-kernel.so"
    printf '%s\n' '#!/bin/sh' "$@" >"$dir/behav_waveform/xsim/launch_hw_emu.sh"
    chmod +x "$dir/behav_waveform/xsim/launch_hw_emu.sh"
    (cd "$dir" && rm -f ../"$name".zip && zip -q -r ../"$name".zip behav_waveform)
    "$xrt/mkxclbin" "$work/$name.xclbin" "${metadata:-$build/gen/kernel/tiny/metadata-1.xml}" "$work/$name.zip" "${channels:-1}" 1 ${bank_kib:-}
    rm -rf "$dir"
}
