#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# xrt: with simulators, xclbins and surroundings that are not right: one clear line each, nothing left
# behind. How long it took is printed.
set -u
. tests/tools/tap.sh
. tests/xrt/lib.sh
long=("${demo[@]}" -d xrt:0 -p "In the beginning" -n 200)
short=("${demo[@]}" -p "In the beginning" -n 2)
card=(-d xrt:0)
log='exec 2>"$MILLRACE_EMU_DIR/emulator.log"'

# ---- the simulator ends, hangs, or is no simulator -------------------------------------------------
killed_in_mid_run() {
    start "${long[@]}"
    under_way && kill -9 "$(emulator)"
    ended 4 "the simulator behind XRT's hw_emu has ended"
}
ok xrt_simulator_killed_in_mid_run killed_in_mid_run
stopped_in_mid_run() {
    start "${long[@]}"
    local sim
    sim=$(emulator)
    under_way && kill -STOP "$sim"
    ended 4 "has not answered for"
}
ok xrt_simulator_that_hangs stopped_in_mid_run
# The user does not wait for a device that hangs: he ends it when all its threads wait. A machine that stood still
# for as long as the device may leave a call without an answer gets another try.
stopped_and_interrupted() {
    for _ in 1 2 3; do
        start "${long[@]}"
        local sim
        sim=$(emulator)
        under_way && kill -STOP "$sim"
        asleep "$pid"
        kill -TERM "$pid"
        ended 130 "interrupted" >"$work/ended" && return
        grep -q "has not answered for" "$work/err" || break
    done
    cat "$work/ended"
    return 1
}
ok xrt_simulator_that_hangs_and_sigterm stopped_and_interrupted
two_units() {
    rm -f "$work/out"
    MILLRACE_XCLBIN=$xrt/millrace-tiny-x2.xclbin XRT_PARTS=killed sim/xrt/run "$tests/test_xrt" >"$work/out" 2>"$work/err" &
    pid=$!
    for _ in $(seq 3000); do grep -qs 'both units are at work' "$work/out" && break || sleep 0.1; done
    kill -9 "$(emulator)"
    finish
    [ "$status" = 0 ] && grep -q 'OK' "$work/out" && nothing_left "$pid" && return
    echo "# status $status after $seconds s"
    sed 's/^/# /' "$work/out" "$work/err"
    return 1
}
ok xrt_simulator_of_two_units_killed_in_mid_run two_units
batch_killed() { # each line says what has become of it
    yes "In the beginning" | head -6 >"$work/prompts"
    MILLRACE_XCLBIN=$xrt/millrace-tiny-x2.xclbin start "${demo[@]}" -d xrt:0 --batch "$work/prompts" --sequences 2 -n 400 --ignore-eos
    kill -9 "$(sim=$(emulator) && sleep 1 && echo "$sim")"
    ended 4 "the simulator behind XRT's hw_emu has ended" && [ "$(grep -c '"error":' "$work/out")" = "$(wc -l <"$work/out")" ]
}
ok xrt_simulator_of_a_batch_killed_in_mid_run batch_killed
with() { # NAME STATUS WORDS LINES...
    local name=$1 want=$2 words=$3
    shift 3
    xclbin "$name" "$@"
    MILLRACE_XCLBIN=$work/$name.xclbin start "${short[@]}" "${card[@]}"
    ended "$want" "$words"
}
ok xrt_simulator_killed_at_open with killed 4 "has ended" 'kill -9 $$'
ok xrt_simulator_that_cannot_start with missing 4 "has ended: .*not found" "$log" 'exec ./no-such-program'
ok xrt_simulator_that_says_why with words 4 "has ended: millrace-emulator: argument '--no' is not known" "$log" \
    'exec ./millrace-emulator --no'
for how in "bytes 0" "bytes 1" "short 1" "huge 1"; do
    ok "xrt_simulator_answers_garbage_${how/ /_after_}" with garbage 4 "has crashed|has ended|has not answered" \
        "exec ./garbage $how"
done

# ---- xclbins ---------------------------------------------------------------------------------------
run_with() { # XCLBIN STATUS WORDS [ARGUMENTS]
    local file=$1 want=$2 words=$3
    shift 3
    [ $# != 0 ] || set -- "${card[@]}"
    MILLRACE_XCLBIN=$file start "${short[@]}" "$@"
    ended "$want" "$words"
}
head -c 100000 /dev/urandom >"$work/noise.xclbin"
no_name() { # as if it were not set
    MILLRACE_XCLBIN='' start "${short[@]}" "${card[@]}"
    finish
    [ "$status" = 0 ] && grep -q . "$work/out" && nothing_left "$pid"
}
ok xrt_name_of_the_xclbin_is_empty no_name
ok xrt_file_that_is_no_xclbin run_with "$work/noise.xclbin" 3 "not an xclbin"
ok xrt_xclbin_that_does_not_exist run_with "$work/none.xclbin" 3 "cannot be read"
head -c 5000 "$MILLRACE_XCLBIN" >"$work/cut.xclbin"
ok xrt_truncated_xclbin run_with "$work/cut.xclbin" 3 "cut off: 5000 of"
# One bit of the file is another one. Not only the last line is looked at: XRT, its assertions and unzip say
# something too.
flipped() { # OFFSET-COMMAND STATUS WORDS [ARGUMENTS]
    local at byte want=$2 words=$3
    cp "$MILLRACE_XCLBIN" "$work/flip.xclbin" && at=$(eval "$1") && [ -n "$at" ] || return 1
    shift 3
    byte=$(od -An -tu1 -j "$at" -N 1 "$work/flip.xclbin")
    printf "\\x$(printf %x $((byte ^ 16)))" | dd of="$work/flip.xclbin" bs=1 seek="$at" conv=notrunc status=none
    run_with "$work/flip.xclbin" "$want" "$words" "$@" && [ "$(wc -l <"$work/err")" = 1 ]
}
bank=$(grep -abo bank0 "$MILLRACE_XCLBIN" | cut -d: -f1) # its name, behind where it begins; the number of banks
ok xrt_bit_of_the_simulator_flipped flipped 'echo 150000' 4 "has given up: .*(CRC|compressed)"
ok xrt_bit_of_a_section_s_place_flipped flipped 'echo 486' 3 "its sections are not all in the file"
ok xrt_bit_of_a_bank_s_begin_flipped flipped 'echo $((bank - 8))' 3 "memory banks are not possible"
ok xrt_high_bit_of_a_bank_s_begin_flipped flipped 'echo $((bank - 2))' 3 "no memory of [0-9]+ bytes in memory group"
ok xrt_high_bit_of_a_bank_s_begin_flipped_and_weights_in_pages flipped 'echo $((bank - 2))' 3 "no memory of [0-9]+ bytes in memory group" -d xrt:0,bo=2
ok xrt_bit_of_the_number_of_banks_flipped flipped 'echo $((bank - 30))' 3 "memory banks are not possible"
other_kernel() {
    xclbin other 'exec ./millrace-emulator'
    sed 's/millrace_kernel/another_kernel_/g' "$work/other.xclbin" >"$work/other2.xclbin"
    run_with "$work/other2.xclbin" 4 "no compute unit millrace_kernel_1"
}
ok xrt_xclbin_of_another_kernel other_kernel
ok xrt_xclbin_of_another_version with version 4 "not a Millrace device of version .*version 0x00020000" \
    'exec ./millrace-emulator --register 0x014=0x00020000'
ok xrt_xclbin_of_another_configuration with small 3 "does not fit configuration.*n_embd" \
    'exec ./millrace-emulator --register 0x020=0x01000080'
sed '/"weights3_0"/s/offset="0x320"/offset="0x328"/' "$build/gen/kernel/tiny/metadata-1.xml" >"$work/metadata.xml"
metadata=$work/metadata.xml ok xrt_xclbin_of_other_arguments with arguments 4 "argument 10 is at 0x328, not 0x320" 'exec ./millrace-emulator'
ok xrt_end_of_a_run_not_noticed with unnoticed 4 "XRT has not noticed the end of a run$" 'exec ./millrace-emulator --register 0x000=0'
ok xrt_xclbin_without_that_unit run_with "$MILLRACE_XCLBIN" 4 "no compute unit millrace_kernel_3" -d xrt:0,unit=2
out_of_memory() {
    bank_kib=4096 xclbin memory 'exec ./millrace-emulator'
    run_with "$work/memory.xclbin" 3 "no memory of [0-9]+ bytes in memory group"
}
ok xrt_out_of_device_memory out_of_memory

# ---- surroundings ----------------------------------------------------------------------------------
options() {
    exits "xrt_options_$1" 2 "is not an option" "${short[@]}" -d "xrt:$2"
}
options unknown 0,fast
options range 0,bo=0
options index first
no_emulation() { # a machine without a card
    (unset XCL_EMULATION_MODE && "$millrace" "${short[@]}" "${card[@]}") >"$work/out" 2>"$work/err" &
    pid=$!
    ended 4 "XILINX_XRT is not set"
}
ok xrt_without_card_or_emulation no_emulation
other_mode() {
    XCL_EMULATION_MODE=sw_emu "$millrace" "${short[@]}" "${card[@]}" >"$work/out" 2>"$work/err" &
    pid=$!
    ended 3 "only hw_emu"
}
ok xrt_software_emulation other_mode
no_library() {
    mkdir -p "$work/empty"
    XILINX_XRT=$work/empty start "${short[@]}" "${card[@]}"
    ended 4 "libxrt_hwemu.so.2 is not there"
}
ok xrt_environment_of_an_xrt_that_is_not_there no_library
no_ini() {
    XRT_INI_PATH=$work/none.ini start "${short[@]}" "${card[@]}"
    ended 3 "XRT_INI_PATH=.*none.ini: No such file"
}
ok xrt_ini_that_does_not_exist no_ini
# What a process has left that was killed before its simulator had begun goes with the next one; what a process
# still has does not.
left_behind() {
    local gone mine=/tmp/millrace-$$-ABCDEF
    sh -c : &
    gone=/tmp/millrace-$!-ABCDEF
    wait $!
    mkdir -p "$gone/xrt" "$mine" && touch -d '1 hour ago' "$gone/xrt/file" "$gone" "$mine"
    start "${short[@]}" "${card[@]}"
    finish
    [ "$status" = 0 ] && nothing_left "$pid" && [ ! -e "$gone" ] && [ -d "$mine" ]
    status=$?
    rm -rf "$gone" "$mine"
    return $status
}
ok xrt_what_a_killed_process_left_goes_with_the_next left_behind
no_user() {
    env -u USER -u LOGNAME -u HOME sim/xrt/run "$millrace" "${short[@]}" "${card[@]}" >"$work/out" 2>"$work/err" &
    pid=$!
    finish
    [ "$status" = 0 ] && grep -q . "$work/out" && nothing_left "$pid"
}
ok xrt_without_USER no_user
# Program, model and working directory where the user may not write; root becomes another one for it, as nothing
# is read-only for root. The shim needs /dev/null, which not every container lets others write to.
# No room: a limit on the size of a file takes the place of a full /tmp.
no_room() { # KIB STATUS WORDS
    (ulimit -f "$1" && exec sim/xrt/run "$millrace" "${short[@]}" "${card[@]}") >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
    ended "$2" "$3"
}
ok xrt_no_room_for_its_files no_room 100 3 "xrt.ini: File too large"
ok xrt_no_room_for_the_simulator no_room 400 4 "has given up"
# A /tmp of its own, where mounting is allowed.
full_tmp() { # SIZE STATUS WORDS
    unshare -m sh -c 'mount --bind . /mnt && mount --bind "$2" /opt && mount -t tmpfs -o size=$1 none /tmp && shift 2 && cd /mnt && exec "$@"' \
        sh "$1" "$build" env BUILD=/opt MILLRACE_XCLBIN=/opt/xrt/millrace-tiny.xclbin sim/xrt/run /opt/millrace \
        "${short[@]}" "${card[@]}" >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
    ended "$2" "$3"
}
if unshare -m true 2>/dev/null; then
    ok xrt_tmp_without_room_for_the_simulator full_tmp 500k 3 "/tmp: [0-9]+ KiB are free"
fi
in_read_only() { # DIRECTORY
    local user=() dir=$1 nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
    [ "$(id -u)" != 0 ] || user=($nobody)
    "${user[@]}" test -w /dev/null || user=(unshare -m sh -c 'mount -t tmpfs none "$0" && mknod -m 666 "$0/null" c 1 3 &&
        mount --bind "$0/null" /dev/null && exec '"$nobody"' "$@"' "$dir/dev")
    mkdir "$dir/dev" "$dir/xrt" && cp sim/xrt/run "$build/millrace" "$dir" && cp -r models/demo "$dir/model" &&
        cp "$xrt/nosleep.so" "$MILLRACE_XCLBIN" "$dir/xrt" && chmod -R a+rX,a-w "$dir" &&
        ! "${user[@]}" test -w "$dir" -o -w "$dir/millrace" -o ! -x "$dir/millrace" || return 1
    (cd "$dir" && unset MILLRACE_XCLBIN && BUILD=$dir exec "${user[@]}" ./run ./millrace generate -m model \
        -d xrt:0 -q -p "In the beginning" -n 2) >"$work/out" 2>"$work/err" &
    pid=$!
    finish
    sed 's/^/# /' "$work/err"
    [ "$status" = 0 ] && grep -q . "$work/out" && nothing_left "$pid" && [ "$(find "$dir" -name '*.log')" = "" ]
}
read_only() {
    local dir status
    dir=$(mktemp -d /tmp/xrt-read-only-XXXXXX) || return 1
    in_read_only "$dir"
    status=$?
    chmod -R u+w "$dir" && rm -rf "$dir"
    return $status
}
ok xrt_read_only_directory read_only
interrupted() {
    start "${long[@]}"
    under_way && kill -INT "$pid"
    ended 130 interrupted
}
ok xrt_interrupt_ends_with_130 interrupted
host_killed() {
    start "${long[@]}"
    under_way && kill -9 "$pid"
    finish
    nothing_left "$pid"
}
ok xrt_simulator_ends_with_a_killed_host host_killed
done_testing
