#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench: points, the parts of training on the RTL, and what is refused. Prints TAP.
set -u
. tests/tools/tap.sh
. tests/tools/json.sh
demo=models/demo
"$millrace" pack $demo "$work/demo.mill" -q || echo "# pack failed"
ok json_of_bench is_json bench "$work/demo.mill" -d model: --decode 0,3 --prefill 4 --json
ok json_of_a_batch is_json bench "$work/demo.mill" -d model: --decode 3 --batch 5 --json
exits bench_prefill_beyond_the_model 2 '--prefill 600: the model has 512 positions' bench $demo -d model: --prefill 600
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
exits json_of_a_part_of_training 0 '"forward"' bench $learner --train 9 -d sim:tinyt --part forward --json -q
ok and_of_that_part_only bash -c "! grep -qE '\"(dX|dW|attention|LayerNorm)\"' '$work/out'"
exits bench_of_training_one_sequence 0 '^training of .*: a micro-batch of 9 tokens in 1 sequence$' bench $learner --train 9 -d sim:tinyt --part forward
exits bench_of_training_without_cycles 2 "counts no cycles; bench --train needs sim:tinyt" bench $learner --train 20 -d model:tinyt
exits bench_of_training_without_its_commands 2 'sim:tiny cannot train; sim:tinyt and model:sim can$' bench $learner --train 20 -d sim:tiny
exits bench_of_training_beyond_the_positions 2 'a sequence of 600; the model has 24' bench $learner --train 600 -d sim:tinyt
exits bench_of_an_unknown_part 2 'is none of forward, dX' bench $learner --train 20 -d sim:tinyt --part all
exits bench_of_a_part_that_there_is_not 2 'there is no such program; --recompute makes them' bench $learner --train 20 -d sim:tinyt --part again
exits bench_of_a_part_of_decoding 2 'goes with --train' bench $demo --part dX
exits bench_position_beyond_the_model 2 'positions 0..511' bench $demo -d model: --decode 512
exits bench_at_without_a_prefill 2 'goes with --prefill' bench $demo -d model: --at 4
exits bench_batch_of_none 2 'not a whole number' bench $demo -d model: --batch 0
done_testing
