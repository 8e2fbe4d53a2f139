#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# xrt: in emulation gives what sim: gives: text, tokens and every counter, on one and on several compute
# units and processes; and it is Debian's shim that it talks to.
set -u -o pipefail
. tests/tools/tap.sh
. tests/xrt/lib.sh
runs=${RUNS:-3}
prompt=(-p "And it came to pass" -n 6 --json)
timeless() { grep -v '"open_seconds":'; } # the one line that differs between two runs
model=models/demo
json() { # NAME DEVICE [XCLBIN]
    MILLRACE_XCLBIN=${3:-$MILLRACE_XCLBIN} sim/xrt/run "$millrace" generate -m "$model" -q -d "$2" "${prompt[@]}" 2>"$work/err.$1" |
        timeless >"$work/$1"
}

# The same JSON: prompt, text, tokens, all counters.
"$millrace" generate -m models/demo -q -d sim:tiny "${prompt[@]}" | timeless >"$work/sim"
same() { # NAME [REFERENCE]
    local want=$work/${2:-sim}
    cmp -s "$want" "$work/$1" && grep -q '"cycles": [1-9]' "$work/$1" && [ ! -s "$work/err.$1" ] && return
    diff "$want" "$work/$1" | sed 's/^/# /' | head -8
    sed 's/^/# /' "$work/err.$1" | head -8
    return 1
}
alike() { json "$@" && same "$1"; }
ok xrt_text_bits_and_counters_equal_sim alike a xrt:
ok xrt_weights_in_several_buffer_objects alike b xrt:0,bo=1
# A GPT-2, whose rows the host adds up from two tables.
. tests/tools/gpt2.sh
"$millrace" generate -m "$gpt2" -q -d sim:tiny "${prompt[@]}" | timeless >"$work/sim-gpt2"
of_gpt2() { local model=$gpt2 && json gpt2-xrt xrt: && same gpt2-xrt sim-gpt2; }
ok xrt_of_a_gpt2_equals_sim of_gpt2
# An encoder.
. tests/tools/bert.sh
encoder labels BertForSequenceClassification ',"id2label":{"0":"no","1":"maybe","2":"yes"}'
printf '%s\n' "the mill stands" "the water runs where the wheel turns, and runs" "the" >"$work/texts"
of_an_encoder() {
    local command
    for command in embed classify; do
        "$millrace" $command "$work/labels" -f "$work/texts" -d sim:tiny --json >"$work/want" &&
            sim/xrt/run "$millrace" $command "$work/labels" -f "$work/texts" -d xrt: --json >"$work/got" 2>"$work/err" &&
            [ "$(wc -l <"$work/got")" = 3 ] && cmp "$work/want" "$work/got" || { sed 's/^/# /' "$work/err"; return 1; }
    done
}
ok xrt_of_an_encoder_equals_sim of_an_encoder
# Four memories a channel: the weights' pages take turns, 4 KiB at a time. Memories of 6 MiB hold them so, and one of
# them does not.
four() { # NAME BANKS
    "$xrt/mkxclbin" "$work/$1.xclbin" "$build/gen/kernel/tiny/metadata-1.xml" "$xrt/millrace-tiny.xclbin.zip" 1 1 $(($2 * 6144)) "$2"
}
in_turn() {
    four one 1 && four four 4 || return 1
    "$millrace" generate -m models/demo -q -d sim:tiny "${prompt[@]:0:4}" >"$work/want" || return 1
    MILLRACE_XCLBIN=$work/one.xclbin sim/xrt/run "$millrace" generate -m models/demo -q -d xrt: "${prompt[@]:0:4}" >"$work/got" 2>"$work/err" &&
        { echo "# one memory holds the weights"; return 1; }
    MILLRACE_XCLBIN=$work/four.xclbin sim/xrt/run "$millrace" generate -m models/demo -q -d xrt: "${prompt[@]:0:4}" >"$work/got" 2>"$work/err" &&
        cmp "$work/want" "$work/got" && MILLRACE_XCLBIN=$work/four.xclbin sim/xrt/run "$millrace" selftest -d xrt: >"$work/got" 2>"$work/err" &&
        grep -q 'passed 5 of 5' "$work/got" && return
    sed 's/^/# /' "$work/err" "$work/got" | head -8
    return 1
}
ok xrt_weights_over_four_memories_in_turn in_turn
# Of a packed file the weights stay on the card until the process ends, which then leaves nothing behind either.
packed_file() {
    "$millrace" pack -q models/demo "$work/demo.mill" &&
        "$millrace" generate -m "$work/demo.mill" -q -d sim:tiny -p "In the beginning" -n 4 >"$work/packed" || return 1
    start generate -m "$work/demo.mill" -q -d xrt: -p "In the beginning" -n 4
    finish
    [ "$status" = 0 ] && cmp "$work/packed" "$work/out" && [ ! -s "$work/err" ] && nothing_left "$pid"
}
ok xrt_packed_file packed_file
ok xrt_second_compute_unit alike c xrt:0,unit=1 "$xrt/millrace-tiny-x2.xclbin"

several() {
    local i pids=()
    for ((i = 0; i < 3; i++)); do
        json "p$i" xrt:0 &
        pids+=($!)
    done
    wait "${pids[@]}"
    for ((i = 0; i < 3; i++)); do same "p$i" || return 1; done
}
ok xrt_several_processes_at_once several

# A batch uses all compute units that are there: the lines of one unit, and of as many units of sim:.
printf '%s\n' "In the beginning" "And the king said" "The earth" "Now" >"$work/prompts"
batch() { # NAME DEVICE XCLBIN UNITS
    MILLRACE_XCLBIN=$3 sim/xrt/run "$millrace" generate -m models/demo -q -d "$2" --batch "$work/prompts" -n 5 --sequences 1 --stats \
        >"$work/$1" 2>"$work/err.$1" && [ "$(grep -cE '^unit [0-9]+: [1-9][0-9]* tokens .* [1-9][0-9]* cycles$' "$work/err.$1")" = "$4" ] &&
        [ "$(wc -l <"$work/$1")" = 4 ] && ! grep -q '"error"' "$work/$1" && cmp "$work/b1" "$work/$1" && return
    sed 's/^/# /' "$work/$1" "$work/err.$1"
    return 1
}
batches() {
    batch b1 xrt:0 "$xrt/millrace-tiny.xclbin" 1 && batch b2 xrt:0 "$xrt/millrace-tiny-x2.xclbin" 2 &&
        batch b3 xrt:0,unit=1 "$xrt/millrace-tiny-x2.xclbin" 1 && batch b4 sim:tiny,units=2 "" 2
}
ok xrt_batch_on_all_compute_units batches

# The host's memory: XRT's libraries are those of the packages, and nothing of ours takes a shim's place.
mapped() { # files that the program has mapped in mid-run, to $map
    start "${demo[@]}" -d xrt:0 -p "In the beginning" -n 200
    under_way
    map=$(awk '$6 ~ /^\// { print $6 }' "/proc/$pid/maps" | sort -u)
    kill -INT "$pid"
    finish
    nothing_left "$pid"
}
memory_map() {
    local map lib file
    mapped || return 1
    for lib in libxrt_coreutil libxrt_hwemu; do
        file=$(grep -E "/$lib\.so\.[0-9.]+$" <<<"$map") || { echo "# no $lib in the map"; return 1; }
        [ "$(wc -l <<<"$file")" = 1 ] && dpkg-query -S "$file" 2>/dev/null | grep -q '^libxrt1:' ||
            { echo "# $lib is $file"; return 1; }
    done
    # Of this build there is the program alone, and nosleep.so, which has no other function.
    file=$(grep "^$build/" <<<"$map")
    [ "$file" = "$(printf '%s\n' "$build/millrace" "$xrt/nosleep.so")" ] || { echo "# ${file//$'\n'/ }"; return 1; }
    [ "$(nm -D --defined-only "$xrt/nosleep.so" | awk '{ print $3 }')" = sleep ] &&
        ! grep -qE '/lib(xrt_core|xrt_swemu|xrt_noop)\.so' <<<"$map"
}
ok xrt_the_shim_is_the_package_s memory_map

# With XILINX_XRT every library of XRT comes from that installation; here it is a copy of Debian's.
own_xrt() {
    local map debian
    debian=$(dirname "$(dpkg-query -L libxrt1 | grep '/libxrt_coreutil\.so\.2$')")
    mkdir -p "$work/own/lib" && cp -P "$debian"/libxrt_* "$debian"/libxilinxopencl* "$work/own/lib/" || return 1
    XILINX_XRT=$work/own mapped || return 1
    grep -E '/lib(xrt|xilinx)' <<<"$map" >"$work/libs"
    grep -q "^$work/own/lib/libxrt_coreutil\.so\." "$work/libs" && grep -q "^$work/own/lib/libxrt_hwemu\.so\." "$work/libs" &&
        ! grep -v "^$work/own/lib/" "$work/libs" && return
    sed 's/^/# /' "$work/libs" "$work/err"
    return 1
}
ok xrt_the_user_s_own_xrt own_xrt

# Two memory channels, in one buffer a channel and in pages, and on the second of two units.
two_channels() {
    "$millrace" generate -m models/demo -q -d sim:sim2 "${prompt[@]}" | timeless >"$work/sim2"
    json c1 xrt:0 "$xrt/millrace-sim2.xclbin" && same c1 sim2 &&
        json c2 xrt:0,bo=1 "$xrt/millrace-sim2.xclbin" && same c2 sim2 &&
        json c3 xrt:0,unit=1 "$xrt/millrace-sim2-x2.xclbin" && same c3 sim2
}
[ -z "${TEST_FULL:-}" ] || ok xrt_two_channels two_channels

# Without nosleep.so it is the stock library alone, ten seconds slower.
stock() { FAST=0 json s xrt:0 && same s; }
[ -z "${TEST_FULL:-}" ] || ok xrt_without_anything_preloaded stock
# The bar: wall time a token at most 1.1 times that of sim:, start excluded; for the configuration of the demo
# (sim) and the smallest. The best of five each. It is judged with BARS=1, on a machine without other work; the times
# are printed anyway.
wall() { # CONFIGURATION DEVICE: seconds of 48 tokens
    MILLRACE_XCLBIN=$xrt/millrace-$1.xclbin sim/xrt/run "$millrace" generate -m models/demo -q -d "$2" -p "In the beginning" -n 48 \
        --ignore-eos --stats 2>&1 >/dev/null | sed -n 's/^\([0-9.]*\) s wall$/\1/p'
}
as_fast_as_sim() { # CONFIGURATION
    local i
    for i in 1 2 3 4 5; do
        echo "$(wall "$1" "sim:$1") $(wall "$1" xrt:)" >>"$work/wall.$1"
    done
    awk -v config="$1" -v bars="${BARS:-}" 'NF != 2 { bad = 1 } !a || $1 < a { a = $1 } !b || $2 < b { b = $2 }
        END { printf "# %s: 48 tokens in %s s, xrt: in %s s, best of %d\n", config, a, b, NR
              exit bad || !(a > 0 && b > 0) || (bars != "" && b > 1.1 * a) }' "$work/wall.$1"
}
[ -z "${TEST_FULL:-}" ] || ok xrt_wall_time_of_a_token as_fast_as_sim sim
[ -z "${TEST_FULL:-}" ] || ok xrt_wall_time_of_a_token_tiny as_fast_as_sim tiny
soak() {
    local i
    for ((i = 0; i < runs; i++)); do
        start "${demo[@]}" -d xrt:0 -p "In the beginning" -n 1
        finish
        [ "$status" = 0 ] && grep -q '^In the beginning ' "$work/out" && nothing_left "$pid" ||
            { echo "# run $i: status $status"; sed 's/^/# /' "$work/err"; return 1; }
    done
}
ok "xrt_soak" soak
again() { XRT_PARTS=soak sim/xrt/run "$tests/test_xrt" >"$work/again" 2>&1 || { sed 's/^/# /' "$work/again"; return 1; }; grep '^# ' "$work/again"; }
[ -z "${TEST_FULL:-}" ] || ok xrt_opened_again_and_again_in_one_process again
done_testing
