#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The command line: exit statuses, messages, JSON, signals. Prints TAP; runs from the repository's
# root on the model in models/demo.
set -u
. tests/tools/tap.sh
demo=models/demo

is_json() { # the C library that the program itself uses; jq is not a dependency
    "$millrace" "$@" >"$work/json" 2>"$work/err" </dev/null && "$work/json-check" "$work/json"
}
cat >"$work/json-check.c" <<'C'
#include <jansson.h>
int main(int n, char **v)
{
    json_t *j = n > 1 ? json_load_file(v[1], JSON_REJECT_DUPLICATES, NULL) : NULL;
    json_decref(j);
    return !j;
}
C
${CC:-gcc} -o "$work/json-check" "$work/json-check.c" -ljansson || exit 1

# ---- what there is
exits help_lists_the_commands 0 '' --help
ok no_command_shows_help bash -c "'$millrace' 2>&1 >/dev/null | grep -q '^usage: millrace'"
exits version_is_shown 0 '' --version
exits unknown_command_is_refused 2 "there is no command 'frobnicate'" frobnicate
exits command_that_is_nearly_one 2 "no command 'genrate'; did you mean generate;" genrate
exits option_without_a_command_that_is_nearly_one 2 "'--versoin'; did you mean --version;" --versoin
exits help_that_is_nearly_one 2 "'hlep'; did you mean help;" hlep
exits option_that_is_nearly_one 2 "'--tempreature' is not known; did you mean --temperature;" generate --tempreature 1
exits option_by_another_programs_name 2 "'--learning-rate' is not known; give --lr;" train --learning-rate 1e-3
exits option_that_is_no_choice_here 2 "'--ctx-size' is not known: a text may have all positions of the model" serve models/demo --ctx-size 512
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

# ---- JSON
mkdir "$work/adapter" && echo '{}' >"$work/adapter/adapter_config.json"
"$millrace" pack $demo "$work/demo.mill" -q || echo "# pack failed"
ok json_of_info is_json info $demo --json
ok json_of_info_on_a_packed_file is_json info "$work/demo.mill" --verify --json
ok json_of_report is_json pack $demo "$work/again.mill" --report --json
ok report_has_every_matrix test "$(grep -c '"snr_db"' "$work/json")" = 26 # 6 a layer, the head, all
exits report_is_a_table 0 "" pack $demo "$work/again.mill" --report
ok report_names_the_worst grep -q "^transformer.h.*mxint8" "$work/out"
exits pack_says_the_format 0 ': [0-9]* bytes, weights mxfp4, [0-9]* bytes read for each token$' pack $demo "$work/fp4.mill" --format mxfp4 --no-smoothing --report
ok report_of_mxfp4_says_so grep -q '^transformer\.h.* mxfp4 ' "$work/out"
exits unpack_to_a_name_with_slashes 0 '' unpack "$work/demo.mill" "$work/slashes//"
ok the_directory_is_there test -s "$work/slashes/config.json"
exits unpack_says_the_format 0 ': bf16, values of mxfp4$' unpack "$work/fp4.mill" "$work/fp4"
exits unpack_in_json_says_the_format 0 '"format": "mxfp4"' unpack "$work/fp4.mill" "$work/fp4-again" --json
exits stats_are_in_json_too 0 '"plain_read_processor_seconds": [0-9]' pack $demo "$work/again.mill" --stats --json
# Heads of two elements, stored as 64: too wide for every configuration, and packed all the same.
mkdir "$work/heads"
cp models/demo/* "$work/heads"
sed -i 's/"n_head": *4\b/"n_head": 128/; s/"rotary_dim": *[0-9]*/"rotary_dim": 2/' "$work/heads/config.json"
"$millrace" pack "$work/heads" "$work/heads.mill" >"$work/out" 2>"$work/err"
ok model_that_nothing_runs_is_packed test $? = 0 -a -s "$work/heads.mill"
ok model_that_nothing_runs_gets_one_warning test "$(wc -l <"$work/err")" = 1
ok warning_names_the_limits grep -q "warning: .*attention width is 8192, 'sim' has 4096.*n_head is 128, 'sim' has 64" "$work/err"
ok model_that_nothing_runs_quietly test -z "$("$millrace" pack "$work/heads" "$work/heads.mill" -q 2>&1)"
exits model_that_nothing_runs_in_json 0 '"exceeds": "attention width is 8192' pack "$work/heads" "$work/heads.mill" -q --json
exits model_that_nothing_runs_does_not_run 3 'does not fit configuration' generate -m "$work/heads.mill" -d model: -p x
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
exits info_shows_mxfp4 0 '' info synthetic:gptj-6b --format mxfp4 -q
ok info_shows_mxfp4_and_gigabytes bash -c "grep -qxF '  weights mxfp4 (head mxint8); a token reads' '$work/out' && grep -qE ' weights +[0-9]\.[0-9] GB ' '$work/out'"
exits info_refuses_adapters_by_name 3 'LoRA' info "$work/adapter"
ok json_of_devices is_json devices --json
ok json_of_pack is_json pack $demo "$work/again.mill" --json
ok json_of_generate is_json generate -m "$work/demo.mill" -d model: -p "And the king" -n 4 --json
ok json_of_compare is_json compare $demo --file $demo/heldout.txt -n 8 --json
exits streamed_layers_are_in_json 0 '"streamed": 4' generate $demo "And the king" -n 2 -d model:,capacity=5500K --json
ok streamed_layers_are_json "$work/json-check" "$work/out"
ok streamed_layers_are_counted bash -c "'$millrace' generate $demo 'And the king' -n 1 -d sim:tiny,capacity=5M --stats 2>&1 | grep -cE '^(weights from the host: .*, 3 of 5 layers|a link of (12|24) GB/s: [0-9]+ cycles more)' | grep -qx 3"
exits streamed_layers_of_a_plan_are_in_json 0 '"link_bytes": 3916800' plan $demo --config sim --capacity 0.0049 --json
exits streamed_layers_of_a_training_are_in_json 0 '"streamed": 5' plan $demo --train --config n=2,r=4,t=64,train --capacity 0.03 --json
exits plan_of_another_clock 0 'on sim .*, 150 MHz assumed' plan $demo --config sim --clock 150
exits plan_of_an_encoder_s_training 3 'cannot be planned or traced yet' plan synthetic:minilm-l6 --train
ok json_of_bench is_json bench "$work/demo.mill" -d model: --decode 0,3 --prefill 4 --json
ok json_of_a_batch is_json bench "$work/demo.mill" -d model: --decode 3 --batch 5 --json
ok json_of_plan is_json plan $demo --positions 0,127 --prefill 16 --board u280 --json
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
exits selftest_passes_on_the_model 0 '' selftest -d model:wide
exits selftest_says_how_many_steps_passed 0 '^model:wide passed 5 of 5 steps$' selftest -d model:wide
exits selftest_names_the_default_configuration 0 '^model:sim passed 5 of 5 steps$' selftest -d model:
exits rates_of_a_large_engine_are_plain_numbers 0 ' [0-9]{5,} tokens/s' plan models/demo --config u280
exits energy_of_a_large_step_is_a_plain_number 0 'at most [0-9]{5,} J a step' plan synthetic:gptj-6b --train --board u280 --micro-batches 4
ok no_figure_has_an_exponent bash -c "! grep -E '[0-9]e[+]' '$work/out'"
exits rates_of_a_small_model_have_a_small_unit 0 '^read 8.41 MB in .*[0-9] [kMG]B/s;' pack models/demo "$work/rate.mill" --stats
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
exits bench_prefill_beyond_the_model 2 '--prefill 600: the model has 512 positions' bench $demo -d model: --prefill 600
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
exits directory_that_does_not_exist 3 'nowhere: there is no such directory; give' pack nowhere "$work/x.mill"
mkdir "$work/nothing"
exits directory_without_a_config 3 'nothing: has no config.json; give the directory of a Hugging Face' generate "$work/nothing" x
[ -e /dev/millrace0 ] || exits device_has_its_name_in_errors 4 '^millrace: pci:0: ' generate $demo x -d pci:
exits model_that_does_not_exist 3 'no-such-model: No such file or directory; give a' generate -m no-such-model -d model: -p x
exits file_that_is_no_model 3 'not a packed model' info Makefile
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
cp -r $demo "$work/nan"
head -c 200 /dev/zero | tr '\0' '\377' | dd of="$work/nan/model.safetensors" bs=1 seek=$(($(stat -c %s "$work/nan/model.safetensors") - 200)) conv=notrunc 2>/dev/null
exits calibration_by_itself_of_weights_that_are_none 3 'calibration: the reference has no finite logit' pack "$work/nan" "$work/nan.mill" --calibrate self
ok it_leaves_no_file test -z "$(ls "$work"/nan.mill* 2>/dev/null)"
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
exits plan_without_a_model 2 'a model or --geometry' plan
exits plan_of_nonsense_geometry 2 'geometry: d is 100; give a multiple of heads' plan --geometry d=100,heads=3
exits plan_format_of_a_packed_file_is_fixed 2 "weights are mxint8" plan "$work/demo.mill" --format mxfp4
exits plan_on_an_unknown_board 2 "board 'de10' is not known; there are kv260" plan $demo --board de10
exits plan_on_a_board_in_capitals 0 '' plan $demo --board KV260
exits plan_on_an_unknown_configuration 2 "configuration 'huge' is not known" plan $demo --config huge
exits plan_on_an_unknown_memory 2 "memory 'sdram' is not known" plan $demo --memory sdram
exits plan_position_beyond_the_model 2 'positions 0..511' plan $demo --positions 512
exits plan_prefill_beyond_the_model 2 'model has 512 positions' plan $demo --prefill 128 --at 400
exits plan_of_a_model_too_large_for_the_configuration 3 'does not fit configuration' plan synthetic:gptj-6b --config tiny
exits plan_of_an_engine_too_large_for_the_board_is_said 0 '' plan $demo --board kv260 --config sim
ok plan_says_what_does_not_fit grep -q 'XCK26 has 64: .*DOES NOT FIT' "$work/out"
ok plan_has_one_verdict test "$(grep -c '^  verdict    does not fit (block RAM, UltraRAM)$' "$work/out")" = 1
ok plan_of_what_does_not_run_says_would_be grep -q '^decode at position 0, batch 1: would be [0-9]* cycles' "$work/out"
exits plan_of_a_chip_of_another_family 0 '' plan $demo --board tang-138k
ok plan_has_its_places grep -q '^  logic      103\.5 thousand places of a LUT4 and its flip-flop; GW5AST-138C has 138: 75 %, fits ' "$work/out"
ok plan_has_its_block_rams grep -q '^  on chip    135 block RAMs of 36 Kb; GW5AST-138C has 170: 79 %, fits ' "$work/out"
ok plan_says_what_was_counted grep -q '^             places and multipliers as Yosys counts gw5a$' "$work/out"
ok plan_says_that_it_fits grep -q '^  verdict    fits$' "$work/out"
ok plan_says_that_a_clock_is_measured grep -q ', 99 MHz measured$' "$work/out"
ok plan_says_whose_timing_a_memory_has grep -q ': DDR3-800 with the timing of ddr4-2400, ' "$work/out"
ok plan_says_that_energy_is_not_known grep -q '^  energy     not known: nothing here says what tang-138k may draw$' "$work/out"
exits plan_scales_no_counts_to_another_family 0 '' plan $demo --board tang-138k --config n=1,r=1,t=16
ok plan_says_that_nothing_was_counted grep -q 'not counted for GW5AST-138C' "$work/out"
ok plan_has_no_luts_then test -z "$(grep 'thousand' "$work/out")"
exits plan_has_no_verdict_in_json_then 0 '"fits": null' plan $demo --board tang-138k --config n=1,r=1,t=16 --json
ok plan_has_no_engine_that_fits_then grep -q '"holds_engine": null' "$work/out"
ok plan_counts_no_multipliers_then grep -q '"array_multipliers": null' "$work/out"
exits plan_says_what_does_not_fit_without_counts 0 '"fits": false' plan $demo --board tang-138k --config n=2,r=1,t=16 --json
exits plan_says_in_json_that_it_fits 0 '"fits": true' plan $demo --board tang-138k --json
exits plan_of_another_family_has_the_clock_of_the_board 0 ', 99 MHz assumed$' plan $demo --board tang-138k --config tiny
exits plan_with_fold_is_not_scaled_from_counts_without 0 'not counted for XCK26 with FOLD 4' plan $demo --board kv260 --config gw5a
ok and_has_no_clock_of_another_family grep -q ', 200 MHz assumed$' "$work/out"
exits plan_of_a_model_too_large_for_the_board_is_said 0 '' plan synthetic:gptj-6b --board kv260
ok plan_of_a_board_without_a_link_streams_nothing grep -q '^  streams    not: kv260 has no link' "$work/out"
ok plan_says_that_its_memory_is_too_small grep -q '^  verdict    does not fit (memory)$' "$work/out"
exits plan_with_the_processor_of_a_board 0 '' plan synthetic:gptj-6b --format mxfp4 --batch 2 --board kv260
ok plan_keeps_its_memory_for_it grep -q '^  memory     4\.203 GB: .* has 4\.29 GB, 0\.54 of them for its processor (assumed): DOES NOT FIT$' "$work/out"
exits plan_of_a_board_that_streams 0 '' plan synthetic:gptj-6b --board u50 --capacity 4
ok plan_of_streams_says_so grep -q '^  verdict    fits; layers stream from the host$' "$work/out"
# A token's 34 M cycles keep the memory busy, and its copies half as long again.
ok plan_has_the_copies_in_its_figures awk '/^decode/ { c = $7 } END { exit !(c > 48e6 && c < 53e6) }' "$work/out"
exits plan_without_room_for_two_layers 0 '^  streams    not: there is no room for two layers, which take 0\.416 GB$' plan synthetic:gptj-6b --board u50 --capacity 0.01
ok plan_has_too_little_memory_then grep -q '^  verdict    does not fit (memory)$' "$work/out"
exits plan_of_an_encoder_without_room 0 "^  streams    not: an encoder's weights stay on the device$" plan synthetic:bert-base --board kv260 --capacity 0.01
ok plan_has_too_little_memory_for_it grep -q '^  verdict    does not fit (memory)$' "$work/out"
exits plan_on_a_board_with_fewer_channels 0 '^  channels   N is 4; kv260 has 1: DOES NOT FIT$' plan $demo --board kv260 --config n=4,r=4,t=16
ok plan_has_channels_in_its_verdict grep -q '^  verdict    does not fit (.*, channels)$' "$work/out"
ok plan_says_what_it_has_scaled grep -q "^             LUTs and multipliers scaled from Yosys' counts of others$" "$work/out"
small='layers=1,d=64,heads=2,vocab=257,inner=64,rotary=8,ctx=64'
exits plan_measures 0 '^  measured   [0-9]+ cycles on sim:tiny,memory=ddr4-2400$' plan --geometry $small --config tiny --positions 3 --prefill 4 --measure --svg "$work/measured.svg"
ok plan_measures_each_point_near_its_plan awk '/^(decode|prefill)/ { for (i = 1; $i != "cycles,"; i++) c = $i } /^  measured/ { near += $2 != c && $2 > 0.75 * c && $2 < 1.25 * c } END { exit near != 2 }' "$work/out"
ok plan_draws_what_it_has_measured grep -q 'measured by the device' "$work/measured.svg"
exits plan_measures_what_can_be_simulated 2 '--measure needs a --config that can be simulated' plan --geometry $small --config n=1,r=1,t=16 --measure
exits plan_picture_that_cannot_be_written 3 'none/x.svg: cannot create a file there: No such' plan $demo --svg "$work/none/x.svg"
ln -s /dev/full "$work/full.svg"
exits plan_picture_on_a_full_disk 3 'cannot be written: No space' plan $demo --svg "$work/full.svg"
ok plan_leaves_a_device_as_it_is test -c /dev/full
exits plan_picture_with_no_measured_points 3 'no measured points' plan $demo --svg "$work/x.svg" --measured $demo/config.json
point() { echo '{"points": [{"kind": "decode", "cycles": '$1', "weight_beats": '$2', "kv_beats": 0, "host_beats": 0, "write_beats": 0, "mac_blocks": '$3'}]}' >"$work/bench.json"; }
point 65116 0 119808 # the intensity is infinite: its axis had no end
exits plan_of_measured_points_without_bytes 3 'bench.json: point 1: has no beats' plan $demo --svg "$work/x.svg" --measured "$work/bench.json"
point 1e308 61200 119808
exits plan_of_measured_points_of_absurd_cycles 3 '"cycles" is no whole number' plan $demo --svg "$work/x.svg" --measured "$work/bench.json"
point 65116 61200 9000000000000000000
exits plan_of_measured_points_of_absurd_products 3 '"mac_blocks" is no whole number' plan $demo --svg "$work/x.svg" --measured "$work/bench.json"
point 65116 61200 1041857
exits plan_of_measured_points_beyond_the_array 3 'array of 4 x 4' plan $demo --svg "$work/x.svg" --measured "$work/bench.json"
point 65116 130233 119808
exits plan_of_measured_points_beyond_the_memory 3 'more than 1 channel can move' plan $demo --svg "$work/x.svg" --measured "$work/bench.json"
point 9007199254740992 61200 1
exits plan_of_measured_points_far_from_the_roofs 3 'x.svg: .* too far from the roofs' plan $demo --svg "$work/x.svg" --measured "$work/bench.json"
point 65116 61200 119808
exits plan_picture_onto_its_points 2 '--svg .*: is the input, which would be replaced' plan $demo --svg "$work/bench.json" --measured "$work/bench.json"
exits plan_of_measured_points 0 '' plan $demo --svg "$work/y.svg" --measured "$work/bench.json"
ok plan_draws_measured_points grep -q 'measured by the device' "$work/y.svg"
exits plan_picture_on_standard_output 2 'standard output is not for files' plan $demo --svg -
exits plan_of_training_on_a_configuration_without_it 2 'configuration sim cannot train; --config sim,train' plan $demo --train --config sim
for c in tiny tiny,train; do exits plan_of_training_with_too_few_rows_$c 3 'device tiny has 8 rows; training needs 32 at a time, which tinyt has$' plan $demo --train --config $c; done
exits plan_of_training_on_a_board_with_too_few_rows 3 'gw5a has 8 rows; .* which tinyt has$' plan $demo --train --board tang-138k
exits plan_of_training_with_too_long_sequences 2 'length 600: the model has 512 positions' plan $demo --train --length 600
exits plan_of_an_adapter 0 'of an adapter; while it is open, 0.008 GB of streams' plan $demo --train --lora r=4,targets=all-linear
exits plan_of_an_adapter_of_nothing 2 "LoRA's target 'c_attn'" plan $demo --train --lora r=4,targets=c_attn
exits plan_of_training_without_a_link 0 'link       none: kv260 has no link' plan $demo --train --board kv260
exits plan_of_training_with_too_large_a_micro_batch 3 'micro-batch of 16384 rows does not fit' plan $demo --train --rows 16384 --config tinyt
exits plan_of_training_without_saying_so 2 "',train' goes with --train" plan $demo --config sim,train
exits plan_of_rows_without_training 2 'rows goes with --train' plan $demo --rows 64
exits plan_of_training_at_a_position 2 'train and --positions exclude each other' plan $demo --train --positions 3
exits plan_of_training_on_a_board 0 '; u50 has 8.59 GB: 29 of 29 layers stream' plan synthetic:gptj-6b --train --length 256 --board u50
ok plan_of_training_says_that_the_engine_fits grep -q '^  logic      [0-9.]* thousand LUTs; XCU50 has 872: [0-9]* % with its shell, fits$' "$work/out"
ok plan_of_training_has_a_verdict grep -q '^  verdict    fits; layers stream from the host$' "$work/out"
exits plan_of_training_on_a_chip_that_is_too_small 0 '^  verdict    does not fit \(block RAM, UltraRAM\)$' plan $demo --train --board kv260
exits plan_of_training_in_too_little_memory_of_a_board 0 '^  verdict    does not fit \(memory, block RAM, UltraRAM\)$' plan synthetic:gptj-6b --train --length 256 --board kv260
exits plan_of_training_scales_no_counts 0 '^  logic      not counted for u250 with training; counts without it are not scaled$' plan $demo --train --board u250
ok plan_of_training_knows_no_verdict_then grep -q '^  verdict    not known ' "$work/out"
exits plan_of_training_without_a_board_has_no_verdict 0 '^  a step' plan $demo --train --config tinyt
ok it_has_no_verdict test -z "$(grep -E 'verdict|logic' "$work/out")"
exits plan_of_training_has_the_engine_in_json 0 '"holds_engine": false' plan $demo --train --board kv260 --json
ok plan_of_training_has_the_verdict_in_json grep -q '"fits": false' <(sed -n '/"board"/,/"store"/p' "$work/out")
exits plan_of_training_beyond_a_channel 0 '; u280 has 8.59 GB: DOES NOT FIT' plan synthetic:gptj-6b --train --length 256 --board u280
exits plan_of_training_takes_the_card_that_trains 0 '^training of .* on u50t .*, 300 MHz estimated$' plan synthetic:gptj-6b --train --length 256 --board u50
exits plan_of_training_in_little_memory 0 'of 3.758 GB: 29 of 29 layers stream$' plan synthetic:gptj-6b --train --length 256 --capacity 3.5
exits plan_of_training_in_too_little_memory 0 'of 2.147 GB: DOES NOT FIT$' plan synthetic:gptj-6b --train --length 256 --capacity 2
exits plan_of_a_run 0 'a run      1000 steps, 1024000 tokens: [0-9.]* hours, at most [0-9.]* kWh$' plan synthetic:gptj-6b --train --length 1024 --board u50 --steps 1000
exits plan_of_a_run_has_its_energy_in_json 0 '"joules_at_most": [1-9][0-9.]*' plan synthetic:gptj-6b --train --length 256 --board u50 --steps 10 --json
exits plan_of_sequences_of_their_own_lengths 0 '1 micro-batch of 108 rows, sequences of 12 to 66: 108 tokens$' plan $demo --train --length 66,12,30
exits plan_of_rows_in_several_lengths 2 'rows goes with one --length' plan $demo --train --length 66,12 --rows 78
exits plan_of_a_run_without_training 2 'steps goes with --train' plan $demo --steps 3
bash tests/train/scale.sh "$millrace" >"$work/scale"
ok the_page_has_what_plan_says_of_all_sizes test "$(grep -cxFf "$work/scale" docs/inside/performance.md)" = "$(grep -c '^| ' "$work/scale")" -a -s "$work/scale"
ok json_of_plan_of_a_run is_json plan $demo --train --length 64 --config tinyt --steps 5 --json
ok json_of_plan_of_training is_json plan $demo --train --length 64 --config tinyt --json
exits plan_at_without_a_prefill 2 'goes with --prefill' plan $demo --at 5
exits plan_geometry_with_a_key_twice 2 "'layers' is there twice" plan --geometry layers=1,layers=2
exits plan_on_a_board_with_ideal_memory 0 'ideal, 300 MHz estimated$' plan $demo --board kv260 --memory ideal
ok ideal_memory_loses_nothing grep -q 'a sequential reader gets 100.0 %' "$work/out"
exits plan_of_a_run_of_one_step 0 'a run      1 step, 256 tokens: ' plan synthetic:gptj-6b --train --length 256 --board u50 --steps 1
exits plan_picture_on_a_board 0 '' plan $demo --board kv260 --two-pass --format mxfp4 --positions 5 --prefill 2 --at 510 --svg "$work/board.svg"
ok plan_picture_names_the_board_and_the_format bash -c "grep -q 'on kv260, ' '$work/board.svg' && grep -q 'MXFP4 layers, ' '$work/board.svg'"
exits plan_on_a_board 0 '' plan $demo --board kv260
ok plan_says_that_a_clock_is_estimated grep -q ', 300 MHz estimated$' "$work/out"
ok plan_of_a_board_ends_its_needs_with_a_verdict grep -q '^  verdict    fits$' "$work/out"
ok plan_says_the_units_of_luts grep -qE 'thousand LUTs; XCK26 has 117: [0-9]+ %, fits' "$work/out"
ok plan_leaves_no_picture_behind test -z "$(ls "$work" | grep 'x\.svg')"
learner=tests/fixtures/train/gptj-d12-r4
exits bench_of_training 0 '' bench $learner --train 9,20,3 -d sim:tinyt
cp "$work/out" "$work/parts"
# The parts add up to the whole, and one alone has its programs' cycles.
adds_up() { awk '$1 ~ /^(forward|dX|dW|attention|LayerNorm)$/ { sum += $3; n++ } $1 == "all" { all = $3 } END { exit !(n == 5 && all > 0 && (sum - all) ^ 2 < 9) }' "$1"; }
ok parts_of_training_add_up adds_up "$work/parts"
near() { awk '$1 == "all" { off = $5; n++ } END { exit !(n == 1 && off ^ 2 < 16) }' "$1"; }
ok plan_of_training_is_within_4_percent_of_the_rtl near "$work/parts"
ok training_is_measured_beside_the_plan grep -qE '^  measured +[0-9.]+ of the three products .*; planned [0-9.]+$' "$work/parts"
exits bench_of_a_part_of_training 0 '' bench $learner --train 9,20,3 -d sim:tinyt --part forward
# Each alone has its programs' cycles, with what they have of dW: together those are the whole, too.
alone() {
    local part sum=0
    for part in forward dX dW attention LayerNorm; do
        "$millrace" bench $learner --train 9,20,3 -d sim:tinyt --part $part >"$work/one-part" || return 1
        sum=$((sum + $(awk -v p=$part '$1 == p { print $3 }' "$work/one-part")))
    done
    [ $sum = "$(awk '$1 == "all" { print $3 }' "$work/parts")" ]
}
ok parts_of_training_alone_add_up alone
same_forward() { diff <(grep '^  forward' "$work/out") <(grep '^  forward' "$work/parts"); }
ok part_of_training_alone_is_the_same same_forward
json_of_training() { "$millrace" bench $learner --train 9,20,3 -d sim:tinyt --json -q >"$work/json" && grep -q '"move_busy": [1-9]' "$work/json"; }
ok json_of_training_has_the_counters json_of_training
exits bench_of_training_without_cycles 2 "counts no cycles; bench --train needs sim:tinyt" bench $learner --train 20 -d model:tinyt
exits bench_of_training_without_its_commands 2 'sim:tiny cannot train; sim:tinyt and model:sim can$' bench $learner --train 20 -d sim:tiny
exits bench_of_training_beyond_the_positions 2 'a sequence of 600; the model has 24' bench $learner --train 600 -d sim:tinyt
exits bench_of_an_unknown_part 2 'is none of forward, dX' bench $learner --train 20 -d sim:tinyt --part all
exits bench_of_a_part_that_there_is_not 2 'there is no such program; --recompute makes them' bench $learner --train 20 -d sim:tinyt --part again
exits bench_of_a_part_of_decoding 2 'goes with --train' bench $demo --part dX
exits bench_position_beyond_the_model 2 'positions 0..511' bench $demo -d model: --decode 512
exits bench_at_without_a_prefill 2 'goes with --prefill' bench $demo -d model: --at 4
exits bench_batch_of_none 2 'not a whole number' bench $demo -d model: --batch 0
ln -s nowhere "$work/dangling"
exits pack_into_a_dangling_link 3 'dangling: is a link to what is not there; remove it' pack $demo "$work/dangling"
ok the_link_is_still_there test -L "$work/dangling"
exits pack_into_a_directory 2 'is a directory' pack $demo "$work"
exits unpack_of_a_directory 2 'only a packed file' unpack $demo "$work/new"
exits unpack_into_a_full_directory 3 'is not empty' unpack "$work/demo.mill" "$work"
exits unpack_without_a_name 2 'name of the directory' unpack "$work/demo.mill"
exits pack_without_a_name 2 'name of the packed file' pack $demo
exits pack_where_nothing_can_be_written 3 'No such file' pack $demo "$work/none/x.mill"
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
exits pack_of_a_packed_file 2 "'$work/demo.mill' is packed already" pack "$work/demo.mill" "$work/demo2.mill"
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
exits prompt_file_is_a_directory 3 "Is a directory; name a file" generate -m $demo -d model: -f "$work"
mkdir "$work/other" && echo '{"model_type": "llama"}' >"$work/other/config.json"
exits unknown_architecture 3 'architecture "llama" is not supported' info "$work/other"
head -c 100000 "$work/demo.mill" >"$work/short.mill"
exits truncated_packed_file 3 'truncated: 100000 bytes' info "$work/short.mill"
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
TMPDIR=$work/none exits selftest_without_room_for_its_model 3 'cannot make a directory: No such file or directory; set TMPDIR' selftest -d model:tiny
ok and_no_step_of_it_is_shown test ! -s "$work/out"
exits option_without_a_name 2 "option '--' is not known;" plan --=3
exits option_in_place_of_a_value 2 "option '--train' needs a value, and '--svg' is an option" trace $demo --train --svg x.svg
ok and_it_makes_no_file test ! -e x.svg
exits option_in_place_of_a_file 2 "option '--svg' needs a value, and '--json' is an option" plan $demo --svg --json

# What takes long is announced, off a terminal too; less is not.
memory=$(ulimit -Sv)
ulimit -Sv 2000000 # too little for them: they are not made here
"$millrace" bench synthetic:gptj-6b -d model: --decode 0 >"$work/out" 2>"$work/err"
ok random_weights_are_announced grep -qx 'millrace: synthetic:gptj-6b: makes about 6.03 GB of random weights' "$work/err"
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
ok nothing_is_left_behind test -z "$(ls "$work" | grep -E 'mill\.')"
done_testing
