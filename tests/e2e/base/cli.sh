#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The command line: exit statuses, messages, JSON, signals. Prints TAP; runs from the repository's
# root on the model in models/demo.
set -u
. tests/tools/tap.sh
. tests/tools/json.sh
demo=models/demo

# ---- what there is
exits help_lists_the_commands 0 '' --help
ok no_command_shows_help bash -c "'$millrace' 2>&1 >/dev/null | grep -q '^usage: millrace'"
ok help_is_one_by_each_name test -z "$(for h in -h help; do diff <("$millrace" $h) <("$millrace" --help); done)"
exits version_is_shown 0 '' --version
exits unknown_command_is_refused 2 "there is no command 'frobnicate'" frobnicate
exits command_that_is_nearly_one 2 "no command 'genrate'; did you mean generate;" genrate
exits option_without_a_command_that_is_nearly_one 2 "'--versoin'; did you mean --version;" --versoin
exits help_that_is_nearly_one 2 "'hlep'; did you mean help;" hlep
exits option_that_is_nearly_one 2 "'--tempreature' is not known; did you mean --temperature;" generate --tempreature 1
exits option_by_another_programs_name 2 "'--learning-rate' is not known; give --lr;" train --learning-rate 1e-3
exits option_that_is_no_choice_here 2 "'--ctx-size' is not known: a text may have all positions of the model" serve models/demo --ctx-size 512
exits option_that_shares_its_word 2 "option '-Z' is not known" generate --stats -Zq
exits option_that_is_another_options_value 2 "option '--device' needs a value, and '--stats' is an option" generate -d --stats
exits value_that_is_no_option 2 "device '--frobnicate' is not known" generate models/demo x -d --frobnicate
exits help_of_an_unknown_command 2 "no command 'trcae'; did you mean trace;" help trcae
exits help_of_two_commands 2 "'plan' is one argument too many" help trace plan
for c in generate chat eval info pack unpack compare bench plan trace selftest devices serve; do
    ok "help_by_name_of_$c" diff <("$millrace" help $c) <("$millrace" $c --help)
    exits "help_of_$c" 0 '' $c --help
    ok "help_of_${c}_has_examples" grep -q "^example" "$work/out"
    exits "unknown_option_of_$c" 2 "option '--frobnicate' is not known" $c --frobnicate
    exits "excess_argument_of_$c" 2 'too many' $c x y z
done
# Options that a help text, and with it man page and completion, names: "generate --model PATH".
for c in $("$millrace" --help | sed -n '/^commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
    "$millrace" $c --help | sed -n "s/^ *\(-.,\)\{0,1\} *\(--[a-z0-9-]*\)\( [^ ]\{1,\}\)\{0,1\}\(  .*\)\{0,1\}$/$c \2\3/p"
done >"$work/options"
ok help_names_options test "$(wc -l <"$work/options")" -gt 90
while read -r c option value; do # one that has a value asks for it; another lets the next word be looked at
    words=$("$millrace" "$c" "$option" ${value:---frobnicate} 2>&1 </dev/null)
    [ -z "$value" ] || words=$("$millrace" "$c" "$option" 2>&1 </dev/null)
    case $words in
        *"option '$option' needs a value"*) [ -n "$value" ] && continue ;;
        *"option '--frobnicate' is not known"*) [ -z "$value" ] && continue ;;
    esac
    echo "$c $option $value: $words"
done <"$work/options" >"$work/strange"
ok options_of_the_help_are_known test ! -s "$work/strange"

make -s help >"$work/out"
ok make_help_has_groups test "$(grep -cE '^(Try it|Build|Test|Measure|Install|Packages)$' "$work/out")" = 6
# Copies of makefiles in build/ do not count.
ls Makefile ./*/*.mk ./*/*/*.mk | grep -v "^\./${BUILD:-build}/" | xargs cat >"$work/makefiles"
ok make_help_has_each_target_once test "$(grep -c '^  ' "$work/out")" = "$(grep -c '^## [a-z0-9-]*:' "$work/makefiles")"

# A day that there is, and one that no calendar has.
day() { SOURCE_DATE_EPOCH=$1 "$millrace" man info | sed -n '1s/[^"]*"\([^"]*\).*/\1/p'; }
ok pages_have_the_day_of_their_sources test "$(day 86400) $(day 9223372036854775807)" = "1970-01-02 1970-01-01"

# ---- JSON
mkdir "$work/adapter" && echo '{}' >"$work/adapter/adapter_config.json"
"$millrace" pack $demo "$work/demo.mill" -q || echo "# pack failed"
"$millrace" pack $demo "$work/fp4.mill" --format mxfp4 --no-smoothing -q || echo "# pack failed"
ok json_of_info is_json info $demo --json
ok json_of_info_on_a_packed_file is_json info "$work/demo.mill" --verify --json
ok json_of_unpack is_json unpack "$work/demo.mill" "$work/unpacked" --json
ok json_of_info_on_an_unpacked_directory is_json info "$work/unpacked" --json
ok json_of_info_on_a_pytorch_file is_json info tests/fixtures/torch/views/pytorch_model.bin --json
exits info_shows_safetensors 0 '' info $demo
ok info_shows_the_types_and_what_a_token_reads bash -c "grep -q 'safetensors' '$work/out' && grep -q 'bf16 .* of weights' '$work/out' && grep -q '(3916800 bytes)' '$work/out'"
exits info_shows_pytorch_shards 0 '' info tests/fixtures/torch/bf16-sharded
ok info_counts_the_shards grep -q 'PyTorch, 3 files' "$work/out"
exits info_shows_a_packed_file 0 '' info tests/fixtures/packed/v1.mill
ok info_shows_the_version grep -q '88512 bytes), version 1' "$work/out"
exits info_shows_smoothing 0 '' info "$work/demo.mill"
ok info_shows_millions_and_smoothing bash -c "grep -q '4.2 million parameters (packed file)' '$work/out' && grep -qxF '  weights mxint8, smoothed; a token reads' '$work/out'"
"$millrace" info synthetic:gptj-6b --format mxfp4 >"$work/out" 2>"$work/err"
ok info_shows_mxfp4 test $? = 0
ok random_weights_in_mxfp4_are_announced grep -qx 'millrace: synthetic:gptj-6b: makes about 3.10 GB of random weights' "$work/err"
ok info_shows_mxfp4_and_gigabytes bash -c "grep -qxF '  weights mxfp4 (head mxint8); a token reads' '$work/out' && grep -qE ' weights +[0-9]\.[0-9] GB ' '$work/out'"
exits mxfp4_is_in_json 0 '"format": "mxfp4"' info "$work/fp4.mill" --json
exits info_refuses_adapters_by_name 3 'LoRA' info "$work/adapter"
ok json_of_devices is_json devices --json
ok json_of_generate is_json generate -m "$work/demo.mill" -d model: -p "And the king" -n 4 --json
ok json_of_compare is_json compare $demo --file $demo/heldout.txt -n 8 --json
exits streamed_layers_are_in_json 0 '"streamed": 4' generate $demo "And the king" -n 2 -d model:,capacity=5500K --json
ok streamed_layers_are_json "$work/json-check" "$work/out"
ok streamed_layers_are_counted bash -c "'$millrace' generate $demo 'And the king' -n 1 -d sim:tiny,capacity=5M --stats 2>&1 | grep -cE '^(weights from the host: .*, 3 of 5 layers|a link of (12|24) GB/s: [0-9]+ cycles more)' | grep -qx 3"
ok json_of_selftest is_json selftest -d model:tiny --json

# ---- the same text whichever way
"$millrace" generate -m $demo -d model: -p "And the king said" -n 12 >"$work/a"
"$millrace" generate -m "$work/demo.mill" -d model:wide -p "And the king said" -n 12 >"$work/b"
printf 'And the king said' | "$millrace" generate -m "$work/demo.mill" -d model:tiny -n 12 >"$work/c"
ok packed_file_gives_the_same_text cmp -s "$work/a" "$work/b"
ok standard_input_gives_the_same_text cmp -s "$work/a" "$work/c"
ok text_goes_on_after_the_prompt test "$(wc -c <"$work/a")" -gt 30
# What ends a text, and what it cost in its two parts. The demo model has 512 positions.
head -c 1500 $demo/heldout.txt >"$work/long.txt"
"$millrace" generate -m $demo -d model: -f "$work/long.txt" -n 900 --ignore-eos >"$work/out" 2>"$work/err"
ok text_cut_by_the_context_says_so grep -qE '^millrace: stopped after [0-9]+ of 900 tokens: .* positions are used up' "$work/err"
"$millrace" generate -m $demo -d model: -f "$work/long.txt" -n 900 --ignore-eos -q >"$work/out" 2>"$work/err"
ok quiet_text_cut_by_the_context test ! -s "$work/err"
"$millrace" generate -m $demo -d model: -f "$work/long.txt" -n 900 --ignore-eos --json >"$work/out" 2>"$work/err"
ok json_says_that_the_context_ended_it grep -q '"stop": "context"' "$work/out"
"$millrace" generate -m $demo -d model: -p "And" -n 2 --ignore-eos --json >"$work/out"
ok json_says_that_the_length_ended_it grep -q '"stop": "length"' "$work/out"
"$millrace" generate -m $demo -d sim: -p "And the king said" -n 3 --ignore-eos --stats >"$work/out" 2>"$work/err"
ok stats_tell_prefill_from_decode test "$(grep -cE '^(prefill: [3-9] tokens in 1|decode: 2 tokens in 2) device runs?, [0-9]+ cycles, .*tokens/s at' "$work/err")" = 2
"$millrace" devices >"$work/out"
for kind in cpu: model:tiny model:u280 model:tinyt sim:tinyt sim:tiny sim:u280 xrt:0 pci:0; do
    ok "devices_lists_$kind" test "$(grep -c "^$kind " "$work/out")" = 1
done
MILLRACE_SIM_DIR= MILLRACE_XCLBIN= XCL_EMULATION_MODE= "$millrace" devices >"$work/out"
ok devices_says_how_to_get_an_xclbin grep -q "^xrt:0 .*not here: .*'make xclbin" "$work/out"
[ -e /dev/millrace0 ] || ok devices_says_how_to_load_the_driver grep -q "^pci:0 .*not here: .*'modprobe millrace'" "$work/out"
mkdir "$work/alone" && cp "$millrace" "$work/alone/millrace"
"$work/alone/millrace" devices >"$work/out2"
ok devices_says_how_to_build_a_simulator grep -q "^sim:tiny .*not here: .*'make sim-tiny'" "$work/out2"
"$work/alone/millrace" devices --json >"$work/out2"
ok json_of_devices_says_what_is_there test "$(grep -c '"available": false' "$work/out2")" -ge 7
ok json_of_devices_has_reasons test "$(grep -c '"reason"' "$work/out2")" = "$(grep -c '"available": false' "$work/out2")"
ok one_channel_is_singular grep -q '^model:tiny .* 1 channel, ' "$work/out"
"$millrace" info "$work/demo.mill" --json >"$work/out"
ok packed_file_says_whether_it_was_calibrated grep -q '"calibrated": false' "$work/out"
"$millrace" pack tests/fixtures/torch/bf16-sharded "$work/calibrated.mill" --calibrate self -q
exits info_shows_calibration 0 '^  weights mxint8, smoothed, calibrated; a token reads$' info "$work/calibrated.mill"
exits selftest_passes_on_the_model 0 '' selftest -d model:wide
exits selftest_says_how_many_steps_passed 0 '^model:wide passed 5 of 5 steps$' selftest -d model:wide
exits selftest_names_the_default_configuration 0 '^model:sim passed 5 of 5 steps$' selftest -d model:
exits selftest_ends_where_a_device_is_too_small 3 'its memory of 0.00 MB is too small' selftest -d model:,capacity=1K
ok and_runs_one_step_only test "$(cat "$work/out" | sed 's/  [0-9.]* s$//')" = 'decode token by token          failed'
exits json_of_a_selftest_that_fails 3 '^  "ok": false,$' selftest -d model:,capacity=1K --json
ok which_is_json_too "$work/json-check" "$work/out"
TMPDIR='' exits selftest_with_an_empty_tmpdir 0 '^sim:sim passed 5 of 5 steps$' selftest -d sim:
printf x >"$work/letter"
exits one_token_is_singular 0 '^model:tiny against cpu: on 1 token \(' compare $demo --file "$work/letter" -d model:tiny --tokens 9
exits bench_of_both_kinds 0 '^prefill of 4: .* does not count cycles' bench $demo -d model:tiny --prefill 4 --decode 3
ok and_says_where_it_decodes grep -q '^decode at position 3: .* s wall, .* tokens/s (' "$work/out"
"$millrace" generate $demo x -d sim:tiny -n 1 --json --stats >"$work/out"
ok nothing_decoded_has_no_rate test "$(sed -n '/"decode"/,/}/p' "$work/out" | grep -cE '"tokens": 0|tokens_per_second')" = 1
exits selftest_is_not_for_cpu 2 'cpu: is fp32' selftest -d cpu:

# ---- a long simulation is said before it begins
# is_said ARGUMENTS...: runs until standard error has the forecast, for some minutes.
forecast="^millrace: about [0-9.]+ (m|b)illion cycles on sim:, some [0-9]+ [a-z]+; '-d model:' gives the same"
is_said() {
    rm -f "$work/err"
    timeout 600 "$millrace" "$@" -d sim: >"$work/out" 2>"$work/err" &
    pid=$!
    for _ in $(seq 3000); do grep -qs cycles "$work/err" && break || sleep 0.1; done
    kill -INT $pid
    wait $pid
    grep -qE "$forecast" "$work/err"
}
points="^millrace: about [0-9.]+ (m|b)illion cycles on sim:, some [0-9]+ [a-z]+; 'millrace plan' predicts the cycles at once$"
forecast=$points ok long_bench_is_said is_said bench synthetic:gptj-6b,layers=1,vocab=64 --prefill 1024
forecast=$points ok long_trace_is_said is_said trace synthetic:gptj-6b,layers=2,vocab=64 --prefill 128
exits short_bench_is_not_announced 0 '' bench $demo -d sim: --decode 0
ok long_simulation_is_said is_said compare $demo --file $demo/heldout.txt
# It would be said before the simulator is there.
timeout 600 "$millrace" compare $demo --file $demo/heldout.txt -d sim: -q >"$work/out" 2>"$work/err" &
pid=$!
until_simulating $pid && sleep 1
kill -INT $pid
wait $pid
ok long_simulation_is_not_said_with_q bash -c "! grep -q cycles '$work/err'"
for _ in $(seq 300); do head -c 400 $demo/heldout.txt | tr '\r\n' '  ' && echo; done >"$work/prompts"
ok long_batch_is_said is_said generate $demo --batch "$work/prompts" -n 100
for i in $(seq 100); do
    echo "{\"context\": \"$(head -c 1200 $demo/heldout.txt | tr -d '"\r' | tr '\n' ' ')\", \"continuation\": \" and $i\"}"
done >"$work/questions"
ok long_evaluation_is_said is_said eval $demo --tasks "$work/questions"
"$millrace" generate $demo "And" -n 2 -d sim: >"$work/out" 2>"$work/err"
ok short_simulation_is_not_said test ! -s "$work/err"

# ---- little memory
# OpenBLAS' threads must not be there where nobody needs them: they wait for memory for ever, and exit() for them.
limited() { (ulimit -v "$1" && shift && timeout -s KILL 600 "$millrace" "$@" >"$work/out" 2>"$work/err" </dev/null); }
limited 60000 --version
ok little_memory_is_enough_for_the_version test $? = 0
limited 150000 info $demo
ok little_memory_is_enough_for_info test $? = 0
limited 250000 generate -m $demo -d cpu: -p x
ok cpu_without_memory_is_refused test $? = 3 -a "$(grep -c "^millrace: .*raise 'ulimit -v'" "$work/err")" = 1 -a "$(wc -l <"$work/err")" = 1

# ---- refusals
exits model_missing_on_the_command_line 2 'the model is missing; give a Hugging Face' generate -d model: -p x
mkfifo "$work/silent"
timeout 600 "$millrace" generate 2>"$work/err" <>"$work/silent" # which never has a prompt
ok model_missing_before_a_prompt_is_read test $? = 2
mkdir "$work/nothing"
exits directory_without_a_config 3 'nothing: has no config.json; give the directory of a Hugging Face' generate "$work/nothing" x
[ -e /dev/millrace0 ] || exits device_has_its_name_in_errors 4 '^millrace: pci:0: ' generate $demo x -d pci:
exits model_that_does_not_exist 3 'no-such-model: No such file or directory; give a' generate -m no-such-model -d model: -p x
exits file_that_is_no_model 3 'not a packed model' info Makefile
exits file_of_one_byte 3 'letter: is not a packed model' info "$work/letter"
exits unknown_device 2 "device 'gpu:0' is not known; 'millrace devices'" generate -m $demo -d gpu:0 -p x
exits device_that_is_nearly_one 2 "device 'modle:tiny' is not known; did you mean model:;" generate $demo x -d modle:tiny
exits device_without_its_colon 2 "device 'sim' is not known; did you mean sim:;" chat $demo -d sim
exits device_before_the_model_is_loaded 2 "device 'nonesuch:0' is not known; 'millrace" generate nowhere x -d nonesuch:0
exits device_is_quoted_in_errors 2 "^millrace: device 'model:' cannot be checked" generate $demo x -d model: --check
exits unknown_configuration 2 'huge: no such configuration; tiny, .*, kv260, u50, u250, u280, gw5a, tinyt, u50t and u280t exist$' generate -m $demo -d model:huge -p x
exits unknown_configuration_of_the_rtl 2 'huge: no such configuration; tiny, .*, kv260, u50, u250, u280, gw5a, tinyt, u50t and u280t exist$' generate -m $demo -d sim:huge -p x
exits cpu_on_a_packed_file 3 'fp32 checkpoint' generate -m "$work/demo.mill" -d cpu: -p x
exits compare_needs_a_directory 3 'fp32 checkpoint' compare "$work/demo.mill" --file $demo/heldout.txt
exits compare_needs_a_text 2 '\-\-file' compare $demo
exits compare_reports_a_difference 5 'above --max-kl' compare $demo --file $demo/heldout.txt -n 4 --max-kl 0 -q
exits prompt_too_long 3 'model has 512 positions' generate -m $demo -d model: -f $demo/heldout.txt
empty="the prompt is empty; 'millrace generate --help'"
: >"$work/empty"
exits prompt_that_is_empty 2 "$empty" generate -m $demo -d model: -p ''
exits prompt_that_is_an_empty_argument 2 "$empty" generate $demo '' -d model:
exits prompt_from_an_empty_file 2 "$empty" generate $demo -d model: -f "$work/empty"
exits prompt_from_nothing 2 "$empty" generate $demo -d model:
exits model_that_is_empty 2 'the model is empty' generate '' x -d model:
exits compare_with_an_empty_text 3 'empty: the text is empty' compare $demo --file "$work/empty"
exits perplexity_of_an_empty_text 3 'empty: the text is empty' eval $demo --perplexity "$work/empty"
printf '\n' >"$work/one-token"
exits perplexity_of_one_token 3 'one-token: one token is too short' eval $demo --perplexity "$work/one-token"
# What has no tokenizer is refused before its weights are made or looked at.
memory=$(ulimit -Sv)
ulimit -Sv 4000000 # too little for them
for c in "generate synthetic:gptj-6b x" "chat synthetic:gptj-6b" "eval synthetic:gptj-6b --perplexity $demo/heldout.txt" \
    "compare synthetic:gptj-6b --file $demo/heldout.txt"; do
    # shellcheck disable=SC2086 # the command is words
    exits "no_text_of_synthetic_weights_${c%% *}" 2 'synthetic: weights have no tokenizer' $c
done
ulimit -Sv "$memory"
exits text_of_a_drawn_model 2 'synthetic: weights have no tokenizer and no text' generate synthetic:gptj-6b,layers=1,vocab=64 x
mkdir "$work/mute" && cp $demo/config.json $demo/model.safetensors "$work/mute/"
"$millrace" pack "$work/mute" "$work/mute.mill" -q
printf 'damage' | dd of="$work/mute.mill" bs=1 seek=2000000 conv=notrunc 2>/dev/null
exits directory_without_a_tokenizer 3 "into the directory\$" generate "$work/mute" x -d model:
exits packed_file_without_a_tokenizer 3 'that it was packed from, and pack it again$' generate "$work/mute.mill" x -d model:
exits and_its_damage_is_found_where_it_is_used 3 'sums do not agree|checksum' bench "$work/mute.mill" -d model:
exits prompt_file_missing 3 'No such file or directory; name a file' generate -m $demo -d model: -f "$work/none"
exits prompt_and_file_together 2 'exclude' generate -m $demo -p x -f y
ok prompt_behind_the_model diff <("$millrace" generate $demo "And he" -d model: -n 4) <("$millrace" generate -m $demo -p "And he" -d model: -n 4)
ok prompt_behind_m diff <("$millrace" generate -m $demo "And he" -d model: -n 4) <("$millrace" generate "And he" -m $demo -d model: -n 4)
exits value_missing 2 "needs a value" generate -m $demo -p
exits number_out_of_range 2 "whole number" generate -m $demo -p x -n 0
exits number_that_is_none 2 "not a number" generate -m $demo -p x --temperature warm
exits format_unknown 2 'neither mxint8 nor mxfp4' generate -m $demo -p x --format int3
exits format_of_a_packed_file_is_fixed 2 '\-\-format is for Hugging Face directories.*it is mxint8' info "$work/demo.mill" --format mxfp4
exits format_of_an_mxfp4_file_is_fixed 2 '\-\-format is for Hugging Face directories.*it is mxfp4' info "$work/fp4.mill" --format mxint8
exits no_smoothing_where_there_is_none 0 '' info "$work/fp4.mill" --no-smoothing
exits format_that_a_packed_file_has 0 '' info "$work/demo.mill" --format mxint8
exits smoothing_of_a_packed_file_is_fixed 2 '\-\-no-smoothing is for' info "$work/demo.mill" --no-smoothing
exits adapter_of_a_packed_file 2 '\-\-adapter is for' generate -m "$work/demo.mill" -d model: -p x --adapter "$work/adapter"
exits adapter_that_is_none 3 '"peft_type" is not "LORA"' generate $demo -d model: -p x --adapter "$work/adapter"
exits adapter_that_is_not_there 3 'has no adapter_config.json; give the directory of a PEFT adapter' pack $demo "$work/again.mill" --adapter $demo
exits adapter_of_a_drawn_model 2 'an adapter is of a checkpoint' info synthetic:gptj-6b,layers=1 --adapter "$work/adapter"
exits calibration_of_a_packed_file_is_fixed 2 '\-\-calibrate is for' generate -m "$work/demo.mill" -d model: -p x --calibrate self
for list in 5,,6 5, ,5 5,x 5:6; do
    exits "decode_list_${list//[^0-9x]/_}_is_refused" 2 'not a whole number' bench $demo -d model: --decode "$list"
done
exits empty_value_is_refused 2 "value of option 'device' is empty" generate -m $demo -d '' -p x
exits option_given_twice 2 "option 'max-tokens' is given twice" generate -m $demo -p x -n 3 --max-tokens 4
for uri in sim, sim,,seed=1 sim,seed= sim,memory= sim,stalls=5x; do
    exits "device_uri_${uri//[^a-z0-9]/_}_is_refused" 2 'is not an option' generate -m $demo -d "sim:$uri" -p x
done
exits two_configurations_of_the_simulator 2 "'tiny' is not an option, and the configuration is 'sim' already" generate -m $demo -d sim:sim,tiny -p x
exits simulator_with_train 4 "sim:gw5a,train: libmillrace-sim-gw5a-train.so is not there; build it with 'make sim-gw5a-train'" generate -m $demo -d sim:gw5a,train -p x
for uri in sim,seed=1,seed=2 sim,check,check sim,memory=ideal,memory=ideal; do
    exits "device_uri_${uri//[^a-z0-9]/_}_is_refused" 2 'is there twice; leave one out' generate -m $demo -d "sim:$uri" -p x
done
exits synthetic_option_given_twice 2 'each at most once' info synthetic:gptj-6b,layers=1,layers=2,vocab=64
exits prompt_without_an_end 3 "/dev/zero: has more than 64 MiB" generate -m $demo -d model: -f /dev/zero
for e in THREADS=abc THREADS=0 THREADS=2x SIMD=foo; do
    export "MILLRACE_$e"
    exits "environment_${e//[=]/_}_is_refused" 2 "MILLRACE_${e%=*}: '${e#*=}' is no" info $demo
    unset "MILLRACE_${e%=*}"
done
MILLRACE_THREADS='' MILLRACE_SIMD='' exits environment_that_is_empty_says_nothing 0 '' info $demo
MILLRACE_THREADS=2 MILLRACE_SIMD=portable exits environment_that_is_right_says_nothing 0 '' info $demo
exits prompt_file_is_a_directory 3 "Is a directory; name a file" generate -m $demo -d model: -f "$work"
mkdir "$work/other" && echo '{"model_type": "llama"}' >"$work/other/config.json"
exits unknown_architecture 3 'architecture "llama" is not supported' info "$work/other"
head -c 100000 "$work/demo.mill" >"$work/short.mill"
exits truncated_packed_file 3 'truncated: 100000 bytes' info "$work/short.mill"
exits unpack_of_a_truncated_file 3 'truncated: 100000 bytes' unpack "$work/short.mill" "$work/short"
ok and_makes_no_directory test ! -e "$work/short"
# A name is bytes, and JSON is UTF-8.
latin=$work/$'d\xe9mo' && ln -s "$PWD/$demo" "$latin"
for train in '' --train; do
    exits "json_of_plan${train#--}_of_a_name_that_is_not_utf8" 3 'cannot write JSON: a name in it is not UTF-8; rename' plan "$latin" $train --json
done
"$millrace" info $demo >/dev/full 2>"$work/err"
ok full_disk_is_an_error test $? = 3 -a "$(wc -l <"$work/err")" = 1
# The reason is that of the write that failed, not of what came after it.
echo hi >"$work/turn" && full=0
for run in "generate $demo hi -d model: -n 2" "chat $demo -d model: -n 2" "generate $demo --batch - -d model: -n 2" \
    "serve $demo -d model: --port 0" "devices --json"; do
    timeout 300 "$millrace" $run >/dev/full 2>"$work/err" <"$work/turn"
    status=$?
    ok "full_disk_ends_$((++full))_${run%% *}_and_is_named" test "$status $(cat "$work/err")" = \
        "3 millrace: standard output: No space left on device"
done

# Nothing of a device that is not there is tested, and an option is not the value of another one.
exits selftest_of_an_absent_device 4 "xrt:0: name the xclbin" selftest -d xrt:0
exits selftest_of_an_absent_device_in_json 4 '"error": "xrt:0: name the xclbin' selftest -d xrt:0 --json
ok selftest_of_an_absent_device_is_json "$work/json-check" "$work/out"
room=$work$(printf '/.%.0s' $(seq $(((4095 - 25 - ${#work}) / 2)))) # for a directory, not for a file in it
TMPDIR=$room exits selftest_with_too_long_a_tmpdir 3 'millrace: ' selftest -d model:tiny
TMPDIR=$work/none exits selftest_without_room_for_its_model 3 'cannot make a directory: No such file or directory; set TMPDIR' selftest -d model:tiny
ok and_no_step_of_it_is_shown test ! -s "$work/out"
exits option_without_a_name 2 "option '--' is not known;" plan --=3
exits option_in_place_of_a_value 2 "option '--train' needs a value, and '--svg' is an option" trace $demo --train --svg x.svg
ok and_it_makes_no_file test ! -e x.svg
exits no_option_in_place_of_a_value 2 "'--nosuch' is not a whole number" generate $demo x --seed --nosuch
exits letter_behind_a_known_one 2 "option '-z' is not known" generate $demo x -qz
exits letter_before_a_known_one 2 "option '-z' is not known" generate $demo x -zq
exits option_in_place_of_a_file 2 "option '--svg' needs a value, and '--json' is an option" plan $demo --svg --json

# What takes long is announced, off a terminal too; less is not.
memory=$(ulimit -Sv)
ulimit -Sv 2000000 # too little for them: they are not made here
"$millrace" bench synthetic:gptj-6b -d model: --decode 0 >"$work/out" 2>"$work/err"
ok random_weights_are_announced grep -qx 'millrace: synthetic:gptj-6b: makes about 6.03 GB of random weights' "$work/err"
"$millrace" bench synthetic:gptj-6b -d model: --decode 0 -q >"$work/out" 2>"$work/err"
ok but_not_with_q test $? != 0 -a "$(grep -c 'random weights' "$work/err")" = 0
ulimit -Sv "$memory"
exits few_random_weights_are_not 0 '' bench synthetic:gptj-6b,layers=1,vocab=64 -d model: --no-head
# The tables of test-full and of its part interop beside a revision that is not here, and beside today's. A result itself,
# and the changelog, are no sources.
head=$(git rev-parse HEAD)
bash tests/full/run.sh --parts | tr ' ' '\n' | grep -vxE 'interop|fp' | sed "s/\$/ passed 9 s $head 2026-01-01/;
    s/^\(synth .* s \)[^ ]*/\10123456789ab/; s/^docs .*$head/&+/" >"$work/full.txt"
bash tests/interop/run.sh --parts | tr ' ' '\n' | sed "s/\$/ passed 4 ok 0 not ok $head 2026-01-01/;
    s/^\(speed .* ok \)[^ ]*/\10123456789ab/" >"$work/interop.txt"
RESULT=$work/full.txt INTEROP=$work/interop.txt bash tests/full/stale.sh >"$work/out"
ok results_older_than_their_sources_are_listed test $? = 1 -a "$(sed '$d; s/  *[^ ]* [-0-9]*  / /; s/:.*//' "$work/out" | tr '\n' '/')" = \
    'synth older than its sources/docs older than its sources/fp no result/interop-speed older than its sources/'
timeout 10 bash tests/full/run.sh --help >"$work/out" 2>"$work/err"
ok full_tests_refuse_an_option test $? = 2 -a "$(grep -c "'--help' is no option" "$work/err")" = 1 -a ! -s "$work/out"
git init -q "$work/tree" && mkdir -p "$work/tree"/{docs/results,host,tests/full,tests/interop}
echo 'echo test' >"$work/tree/tests/full/run.sh" && : >"$work/tree/tests/interop/run.sh"
for f in host/x docs/results/x CHANGELOG.md host/y; do
    : >"$work/tree/$f" && git -C "$work/tree" add "$f" && git -C "$work/tree" -c user.name=x -c user.email=x commit -qm "$f"
done
stale=$PWD/tests/full/stale.sh
since() { # revision, until: how the result of a revision is listed
    echo "test passed 9 s $(git -C "$work/tree" rev-parse "$1") 2026-01-01" >"$work/full.txt"
    git -C "$work/tree" checkout -q "$2"
    (cd "$work/tree" && RESULT=$work/full.txt INTEROP=/dev/null bash "$stale" | sed -n 's/^test.*  //p')
}
main=$(git -C "$work/tree" rev-parse HEAD)
ok a_changed_source_makes_a_result_old test "$(since "$main~3" "$main")" = 'older than its sources: 1 commits'
ok results_and_changelog_do_not test "$(since "$main~3" "$main~1")" = ''
printf 'bert passed 3 ok\n' >"$work/interop.txt" && printf 'speed FAILED 1 ok\n' >"$work/lines"
bash tests/interop/table.sh 'bert data speed' "$work/interop.txt" "$work/lines"
ok suites_of_interop_keep_their_lines test "$(sed -n '3,$p' "$work/interop.txt" | tr '\n' '/')" = 'bert passed 3 ok/speed FAILED 1 ok//2 of 3 suites, 1 failed/'

# ---- signals
# On the RTL, which takes seconds for so many tokens: the signal comes once there is text.
# Without what an earlier test left there, so that the signal cannot meet the shell's own child.
rm -f "$work/out"
"$millrace" generate -m $demo -d sim: -p "And" -n 500 --ignore-eos >"$work/out" 2>"$work/err" &
pid=$!
for _ in $(seq 3000); do [ -s "$work/out" ] && break || sleep 0.1; done
kill -INT $pid
wait $pid
ok interrupt_ends_with_130 test $? = 130 -a "$(cat "$work/err")" = "millrace: interrupted"
ok interrupted_text_ends_its_line test -z "$(tail -c 1 "$work/out")"
# A terminal that closes: what was begun is removed. The signal comes once the temporary directory is there.
for _ in $(seq 50); do
    "$millrace" unpack "$work/demo.mill" "$work/hup" >/dev/null 2>"$work/err" &
    pid=$!
    while kill -0 $pid 2>/dev/null && ! compgen -G "$work/hup.*" >/dev/null; do :; done
    kill -HUP $pid 2>/dev/null
    wait $pid
    status=$?
    [ $status = 0 ] || break
    rm -r "$work/hup"
done
ok hangup_leaves_nothing test $status = 130 -a -z "$(ls -d "$work"/hup* 2>/dev/null)"
"$millrace" generate -m $demo -d model: -p "And" -n 500 --ignore-eos 2>"$work/err" | head -c 20 >/dev/null
ok closed_pipe_ends_quietly test "${PIPESTATUS[0]}" = 141 -a ! -s "$work/err"
done_testing
