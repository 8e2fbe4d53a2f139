#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# plan: figures, verdicts on boards, pictures, training, and what is refused. Prints TAP.
set -u
. tests/tools/tap.sh
. tests/tools/json.sh
demo=models/demo
"$millrace" pack $demo "$work/demo.mill" -q || echo "# pack failed"
exits streamed_layers_of_a_plan_are_in_json 0 '"link_bytes": 3916800' plan $demo --config sim --capacity 0.0049 --json
exits streamed_layers_of_a_training_are_in_json 0 '"streamed": 5' plan $demo --train --config n=2,r=4,t=64,train --capacity 0.03 --json
cycles() { awk '/^prefill/ { for (i = 1; $i != "cycles,"; i++) c = $i; print c }' "$work/out"; }
exits plan_of_eight_channels 0 '' plan $demo --config n=8,r=4,t=64 --prefill 64
eight=$(cycles)
exits plan_of_as_many_channels_as_there_may_be 0 '' plan $demo --config n=16,r=4,t=64 --prefill 64
ok twice_the_channels_take_half_the_cycles_and_more test "$((2 * $(cycles)))" -gt "$eight" -a "$(cycles)" -lt "$eight"
exits plan_of_a_board_at_another_clock 0 'on u50 .*: hbm2, 200 MHz assumed$' plan $demo --board u50 --clock 200
exits plan_of_another_clock 0 'on sim .*, 150 MHz assumed' plan $demo --config sim --clock 150
exits plan_of_an_encoder_s_training 3 'cannot be planned or traced yet' plan synthetic:minilm-l6 --train
ok json_of_plan is_json plan $demo --positions 0,127 --prefill 16 --board u280 --json
exits rates_of_a_large_engine_are_plain_numbers 0 ' [0-9]{5,} tokens/s' plan models/demo --config u280
exits energy_of_a_large_step_is_a_plain_number 0 'at most [0-9]{5,} J a step' plan synthetic:gptj-6b --train --board u280 --micro-batches 4
ok no_figure_has_an_exponent bash -c "! grep -E '[0-9]e[+]' '$work/out'"
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
exits plan_of_streams_without_a_board 0 '^             a link of 12 GB/s: .* %; of 24 GB/s: ' plan synthetic:gptj-6b --capacity 4
# Layers that stay are neighbours of which one stage is made: together they take what the whole pass takes.
passes() { awk -v most="$1" '/^decode/ { c = $7 } /^  streams/ { for (i = 1; $i != "cycles"; i++) s = $i } END { exit !(s > 99e6 && s < 1.01 * 99129060 && c >= s && c < most) }' "$work/out"; }
exits plan_of_few_layers_that_stream 0 '^  streams    3 of 30 layers .* cycles in 7 runs$' plan synthetic:gptj-6b --capacity 6.1
ok its_stages_take_what_a_pass_takes passes 125e6
exits plan_of_streams_in_two_passes 0 '^  streams    14 of 30 layers .* cycles in 28 runs$' plan synthetic:gptj-6b --capacity 4 --two-pass
ok a_second_pass_takes_no_more_of_the_memory passes 150e6
exits plan_of_streams_without_the_head 0 '^  streams    14 of 30 layers .* cycles in 26 runs$' plan synthetic:gptj-6b --capacity 4 --no-head
exits plan_of_streams_without_counts 0 'not known \(LUTs and multipliers are not counted, layers stream from the host\)$' plan synthetic:gptj-6b --train --board u50 --config n=4,r=4,t=64,train
exits plan_of_training_without_room_for_routing 0 ', fits without room for routing$' plan $demo --train --board kv260 --config n=1,r=1,t=32,train
exits plan_of_training_on_a_board_that_says_no_watts 0 '^  logic      not counted for GW5AST-138C; counts of other' plan $demo --train --board tang-138k --length 32 --config n=1,r=1,t=32,train --steps 5
ok and_has_no_energy_and_no_link bash -c "! grep -qE '^  energy|over the link' '$work/out'"
exits plan_of_training_with_less_memory_than_the_board_has 0 '; of 1\.074 GB: fits$' plan $demo --train --board u50 --length 64 --capacity 1
exits plan_of_training_that_streams_is_in_json 0 '"holds_model": false' plan synthetic:gptj-6b --train --board u50 --length 64 --json
exits plan_of_a_model_too_large_for_the_board_in_json 0 '"fits": false' plan synthetic:gptj-6b --board kv260 --json
exits plan_without_the_head 0 '^  binds      memory; busy: memory 4' plan --geometry layers=2,d=64,heads=2,vocab=64,inner=64,rotary=8,ctx=512 --config n=2,r=1,t=16 --positions 3 --no-head
exits plan_where_the_vectors_bind 0 '^  binds      vector; ' plan --geometry layers=1,d=64,heads=2,vocab=64,inner=64,rotary=8,ctx=64 --positions 1 --config n=4,r=32,t=128
exits plan_where_they_bind_above_the_array 0 '^  binds      vector; busy: memory [0-9.]+ % array 17\.9 % attention 9\.4 % vector 43\.3 %$' plan --geometry layers=1,d=256,heads=1,vocab=4,inner=4,ctx=64 --config wide --memory ideal
exits plan_of_an_ideal_memory_has_no_pins 0 'a sequential reader gets 100.0 %$' plan $demo --memory ideal --clock 600
exits plan_with_another_memory_than_the_board_s 0 ': hbm2, 99 MHz' plan $demo --board tang-138k --memory hbm2
exits plan_on_a_board_with_fewer_channels 0 '^  channels   N is 4; kv260 has 1: DOES NOT FIT$' plan $demo --board kv260 --config n=4,r=4,t=16
ok plan_has_channels_in_its_verdict grep -q '^  verdict    does not fit (.*, channels)$' "$work/out"
ok plan_says_what_it_has_scaled grep -q "^             LUTs and multipliers scaled from Yosys' counts of others$" "$work/out"
small='layers=1,d=64,heads=2,vocab=257,inner=64,rotary=8,ctx=64'
exits plan_measures 0 '^  measured   [0-9]+ cycles on sim:tiny,memory=ddr4-2400$' plan --geometry $small --config tiny --positions 3 --prefill 4 --measure --svg "$work/measured.svg"
ok plan_measures_each_point_near_its_plan awk '/^(decode|prefill)/ { for (i = 1; $i != "cycles,"; i++) c = $i } /^  measured/ { near += $2 != c && $2 > 0.75 * c && $2 < 1.25 * c } END { exit near != 2 }' "$work/out"
ok plan_draws_what_it_has_measured grep -q 'measured by the device' "$work/measured.svg"
exits plan_measures_in_json_too 0 '"cycles"' plan --geometry $small --config tiny --positions 3 --measure --json
ok and_says_nothing_else "$work/json-check" "$work/out"
exits plan_draws_intensities_below_1 0 '' plan $demo --positions 500 --batch 16 --svg "$work/low.svg"
ok they_have_a_grid_of_their_own grep -qE 'text-anchor="middle"[^>]*>1/4<' "$work/low.svg"
exits plan_draws_a_prefill 0 '' plan --geometry $small --config tiny --prefill 4 --svg "$work/prefill.svg"
exits plan_measures_what_can_be_simulated 2 '--measure needs a --config that can be simulated' plan --geometry $small --config n=1,r=1,t=16 --measure
mkdir -p "$work/a/b/c" && cp "$millrace" "$work/a/b/c/millrace" # no simulated device lies near
millrace=$work/a/b/c/millrace exits plan_measures_nothing_without_a_simulator 4 'libmillrace-sim-tiny.so' plan $demo --config tiny --positions 3 --measure --svg "$work/x.svg"
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
point 65116 300000 119808
exits plan_of_measured_points_beyond_two_channels 3 'more than 2 channels can move' plan $demo --config sim2 --svg "$work/x.svg" --measured "$work/bench.json"
point 9007199254740992 61200 1
exits plan_of_measured_points_far_from_the_roofs 3 'x.svg: .* too far from the roofs' plan $demo --svg "$work/x.svg" --measured "$work/bench.json"
point 100000 100 1000 # less than a product a cycle
exits plan_of_a_slow_measured_point 0 '' plan $demo --svg "$work/slow.svg" --measured "$work/bench.json"
ok its_rates_have_fractions grep -qE 'text-anchor="end"[^>]*>1/2<' "$work/slow.svg"
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
exits plan_of_training_over_a_slow_link 0 '^  binds      link; .*, a link of 0.001 GB/s ' plan $demo --train --link 0.001
exits plan_of_training_that_waits_for_memory 0 '^  binds      memory; memory busy 9[5-9]\.' plan synthetic:gptj-6b --train --length 16 --config n=1,r=32,t=32,train --clock 1500
exits plan_of_training_in_too_little_memory_in_json 0 '^    "holds_model": false' plan synthetic:gptj-6b --train --length 256 --board kv260 --json
ok neither_of_its_memories_fits test "$(sed -n '/"device_memory"/,/"board"/p' "$work/out" | grep -c '"fits": false')" = 2
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
done_testing
