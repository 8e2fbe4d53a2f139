#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# xrt: millrace_update as the second kernel of an xclbin, in emulation: steps of a store on the card, a training
# through stock XRT on the Verilated RTL, and xclbins whose second kernel is not right.
set -u
. tests/tools/tap.sh
. tests/xrt/lib.sh
# With TEST_FULL also weights in two channels, whose engine takes a while to build.
export XCLBINS="$xrt/millrace-tiny.xclbin${TEST_FULL:+ $xrt/millrace-sim2.xclbin}"
export WITHOUT_TRAINING=$xrt/millrace-tiny.xclbin
export TRAINING=$xrt/millrace-tinyt.xclbin

number=$(CMOCKA_MESSAGE_OUTPUT=TAP sim/xrt/run "$tests/test_update" 2>"$work/err" | tee "$work/tap" | grep -c '^\(not \)\?ok [0-9]')
grep -v '^1\.\.\|^# \(not \)\?ok - ' "$work/tap"
grep -q '^ok 5 ' "$work/tap" && ! grep -q '^not ok' "$work/tap" || { failed=1; sed 's/^/# /' "$work/err"; }

# ---- the command: who updates the weights ----------------------------------------------------------------
# A tiny model, and a state of it whose steps are done, so that it is only opened.
head -c 1000 models/demo/heldout.txt >"$work/text"
"$millrace" train tests/e2e/train/config/first.yaml -m train -o "$work/from" --set "train_input.data_dir=$work/text" \
    --max_steps 1 >"$work/log" 2>&1
words=(train "$work/from/checkpoint-0" --data "$work/text" --sequence 32 --batch 2 --heldout 0 --lr 1e-3)
learn() { # DEVICE STATE OPTIONS...
    sim/xrt/run "$millrace" "${words[@]}" -d "$1" -o "$work/$2" "${@:3}" >"$work/log" 2>"$work/err" && return
    sed 's/^/# /' "$work/err"
    return 1
}
says() { # XCLBIN WORDS WHERE
    MILLRACE_XCLBIN=$1 learn xrt: state --steps 2 -v && grep -q "; weights are updated on the $3; " "$work/err" &&
        [ "$(grep -c 'on the host: ' "$work/err")" = "$([ "$3" = host ] && echo 1 || echo 0)" ] && grep -q "$2" "$work/err" && return
    sed 's/^/# /' "$work/err"
    return 1
}
named() { # such a card's configuration has a name, too
    MILLRACE_XCLBIN=$TRAINING sim/xrt/run "$millrace" bench synthetic:gpt2,layers=1,vocab=64 -d xrt:0 >"$work/out" 2>"$work/err"
    grep -q "the model does not fit configuration 'tinyt': " "$work/err" && return
    sed 's/^/# /' "$work/err"
    return 1
}
ok xrt_names_a_configuration_that_trains named
learn model:tinyt state --steps 2 || failed=1
ok xrt_training_says_that_the_card_updates says "$TRAINING" . device
# Engine and update on the card, each in RTL's or the kernel's own code: all files of the state are the C model's.
export MILLRACE_XCLBIN=$TRAINING
ok xrt_trains_on_the_rtl learn xrt: card --steps 2
same_files() { for f; do cmp "$work/state/$f" "$work/card/$f" || return 1; done; }
ok xrt_all_files_are_the_c_models same_files header state gradients
# Streams are made anew when a state is opened: that of a step on the card is in the card's memory.
learn model:tinyt card --steps 2 || failed=1
ok xrt_so_are_the_streams_when_it_is_opened same_files header state gradients w.stream wt.stream
# With the memory of two layers the host updates them, and the card gets each in its turn.
least=$("$millrace" "${words[@]}" -d model:tinyt,capacity=64K -o "$work/none" --steps 2 2>&1 |
    awk '/is too small for training/ { print $(NF - 2) }')
streams() {
    learn "xrt:0,capacity=$least" streamed --steps 2 && grep -q '^layers from the host: 3 of 3 with the head;' "$work/log" &&
        grep -q '^millrace: weights are updated on the host: its memory does not hold all layers$' "$work/err" && return
    sed 's/^/# /' "$work/log" "$work/err"
    return 1
}
ok xrt_layers_stream_in_training streams
ok xrt_and_give_the_same_weights cmp "$work/state/state" "$work/streamed/state"
adapter() { # DEVICE: two steps of a LoRA adapter
    learn "$1" "adapter-${1%%:*}" --steps 2 --lora r=4 --export "$work/adapter-${1%%:*}.out"
}
adapter model:tinyt || failed=1
adapter xrt: && grep -q '^millrace: weights are updated on the host: a LoRA adapter.s state is updated by the host$' "$work/err"
ok xrt_trains_an_adapter_on_the_host test $? = 0
ok xrt_gives_the_same_adapter cmp "$work/adapter-model.out/adapter_model.safetensors" \
    "$work/adapter-xrt.out/adapter_model.safetensors"
# Its kernel has one optimizer's update.
sgd() { # DEVICE STATE
    learn "$1" "$2" --steps 2 --optimizer sgd --momentum 0.9
}
sgd model:tinyt sgd-model || failed=1
sgd xrt: sgd-card && grep -q "^millrace: weights are updated on the host: its kernel has AdamW's update alone\$" "$work/err"
ok xrt_another_optimizers_update_is_the_hosts test $? = 0
ok xrt_and_has_the_same_weights cmp "$work/sgd-model/state" "$work/sgd-card/state"
xml=$build/gen/kernel/tinyt/metadata-1.xml
with() { # NAME WORDS
    metadata=$work/$1.xml kernel_so=$build/sim/tinyt/libmillrace-kernel-tinyt.so xclbin "$1" 'exec ./millrace-emulator' &&
        says "$work/$1.xclbin" "^millrace: weights are updated on the host: $2\$" host
}
sed '/<kernel name="millrace_update"/,/<\/kernel>/d; s/numComputeUnits="2"/numComputeUnits="1"/' "$xml" >"$work/none.xml"
ok xrt_xclbin_without_the_update with none "the xclbin has no compute unit millrace_update_1"
sed '/name="decay"/s/offset="0x0CC"/offset="0x0D4"/' "$xml" >"$work/other.xml"
ok xrt_update_of_another_version with other "its kernel millrace_update is of another version"
cp "$xml" "$work/room.xml"
bank_kib=4096 ok xrt_no_room_for_the_state with room "xrt:0: no memory of [0-9]* bytes in memory group 0 of the card.*"

# ---- a kernel that never ends ------------------------------------------------------------------------------
hangs() {
    xclbin hangs 'exec ./millrace-emulator --update-hangs'
    MILLRACE_XCLBIN=$work/hangs.xclbin XRT_PARTS=hangs sim/xrt/run "$tests/test_update" >"$work/out" 2>"$work/err" && return
    sed 's/^/# /' "$work/out" "$work/err"
    return 1
}
ok xrt_update_that_hangs hangs
done_testing
