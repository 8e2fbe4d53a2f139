#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# millrace train: steps, going on, Ctrl-C, refusals. Its bits and gradients are held by the unit tests
# step and trainer. Prints TAP; runs from the repository's root on the model in models/demo.
set -u
. tests/tools/tap.sh
demo=models/demo
head -c 3000 $demo/heldout.txt >"$work/text"
learn() { timeout 600 "$millrace" train $demo --data "$work/text" --sequence 32 --batch 2 "$@"; }
short=(train $demo --data "$work/text" --sequence 32 --batch 2)

# ---- steps
learn -o "$work/a" --steps 4 --lr 1e-3 --accumulate 2 --eval-every 2 --export "$work/out-a" >"$work/log" 2>"$work/err"
ok four_steps test $? = 0 -a ! -s "$work/err"
ok the_windows_come_first test "$(head -n 1 "$work/log" | grep -cE '^[0-9]+ tokens; [0-9]+ windows to learn, [0-9]+ held out$')" = 1
ok a_line_a_step test "$(grep -cE '^step [1-4] +loss [0-9.]+ +norm [0-9.]+ +rate 1.000e-03$' "$work/log")" = 4
ok held_out_at_the_beginning_between_and_at_the_end test "$(sed -n 's/^step \([0-9]\) *held out .*/\1/p' "$work/log" | tr -d '\n')" = 024
ok held_out_loss_falls test "$(sed -n 's/^step [04] *held out \([0-9.]*\).*/\1/p' "$work/log" | sort -gr | head -1)" = \
    "$(sed -n 's/^step 0 *held out \([0-9.]*\).*/\1/p' "$work/log")"
"$millrace" generate "$work/out-a" "And the king" -n 4 -d model: >"$work/out" 2>"$work/err"
ok the_export_generates test $? = 0 -a "$(wc -c <"$work/out")" -gt 12

# ---- held-out data of its own
tail -c 1500 $demo/heldout.txt >"$work/other"
learn -o "$work/all" --steps 2 --heldout 0 -q >"$work/log" 2>"$work/err"
learn -o "$work/beside" --steps 2 --heldout-data "$work/other" >"$work/log" 2>>"$work/err"
ok held_out_data_is_not_learnt cmp "$work/all/state" "$work/beside/state"
ok held_out_data_has_a_loss test "$(grep -cE '^step [02] +held out [0-9.]+' "$work/log")" = 2
exits held_out_data_twice 2 '--heldout-data' "${short[@]}" -o "$work/none" --steps 1 --heldout-data "$work/other" --heldout 0.1
exits held_out_data_that_is_not_there 3 'No such file' "${short[@]}" -o "$work/none" --steps 1 --heldout-data "$work/no"

# ---- the simulated RTL gives the same weights, and counts
words=(train $demo --data "$work/text" --sequence 16 --batch 1 --eval-windows 1 --json)
"$millrace" "${words[@]}" --steps 2 -d model:tinyt -o "$work/by-model" --export "$work/model-out" >"$work/log-model" 2>"$work/err"
"$millrace" "${words[@]}" --steps 2 -d sim:tinyt -o "$work/by-rtl" --export "$work/rtl-out" >"$work/log-rtl" 2>>"$work/err"
ok the_rtl_trains test $? = 0 -a ! -s "$work/err"
ok the_rtl_gives_the_same_weights test "$(diff -r "$work/model-out" "$work/rtl-out" && echo same)" = same
ok the_rtl_counts_its_cycles test "$(grep -cE '"repeated":[01],"cycles":[0-9]{6,},"mac_utilisation":0\.[0-9]+' "$work/log-rtl")" = 2
ok and_gives_the_same_losses test "$(sed 's/,"cycles":.*/}/; s/"seconds":[^,]*,"tokens_per_second":[^,]*,//' "$work/log-rtl")" = "$(sed 's/"seconds":[^,]*,"tokens_per_second":[^,]*,//' "$work/log-model")"

# ---- a device that holds two layers: the same state, and what crosses the link
"$millrace" "${words[@]}" --steps 2 -d sim:tinyt,capacity=12M -o "$work/streamed" >"$work/log-streamed" 2>"$work/err"
ok layers_stream test $? = 0 -a ! -s "$work/err"
ok and_give_the_same_bytes cmp "$work/streamed/state" "$work/by-rtl/state"
ok what_crosses_the_link_is_counted test "$(grep -cE '"link_bytes_up":[0-9]{7,},"link_bytes_down":[0-9]{7,},"cycles_waited_12_gb_s":[0-9.]+,"cycles_waited_24_gb_s":' "$work/log-streamed")" = 2
"$millrace" "${words[@]:0:${#words[@]}-1}" --steps 3 -d model:tinyt,capacity=12M -o "$work/streamed" >"$work/log-streamed" 2>"$work/err"
ok and_said test "$(grep -cE '^layers from the host: 5 of 5 with the head; a step [0-9.]+ MB to the device, [0-9.]+ MB from it$' "$work/log-streamed")" = 1
exits too_little_memory_for_two_layers 3 'its memory of 5.243 MB is too small for training: two layers .* or a device with [0-9]*K of memory$' \
    "${words[@]}" --steps 2 -d model:tinyt,capacity=5M -o "$work/none"
ok and_leaves_no_state test ! -e "$work/none"

# ---- killed within a step on the RTL: the state is that of the step before, and goes on
cp -r "$work/by-rtl" "$work/killed"
"$millrace" "${words[@]}" -d sim:tinyt -o "$work/killed" --steps 1000 >"$work/log-rtl" 2>"$work/err" &
pid=$!
until_simulating $pid && sleep 1 && kill -KILL $pid
wait $pid 2>"$work/waited"
ok a_killed_simulation test $? = 137 -a ! -s "$work/log-rtl"
for f in header state; do ok "its_${f}_stays" cmp "$work/killed/$f" "$work/by-rtl/$f"; done
for d in killed by-model; do "$millrace" "${words[@]}" -d model:tinyt -o "$work/$d" --steps 3; done >"$work/log" 2>"$work/err"
ok and_goes_on_with_the_same_bytes test "$(grep -c "\"step\":3,\"loss" "$work/log")" = 2 -a "$(cmp "$work/killed/state" "$work/by-model/state" && echo same)" = same

# ---- a state is no model, and becomes one without its data
for format in f32 bf16; do "$millrace" export "$work/a" "$work/again-$format" --format $format; done >"$work/log" 2>"$work/err"
ok export_needs_neither_data_nor_options test "$(cat "$work/log")" = "$work/again-f32: the weights of step 4, f32
$work/again-bf16: the weights of step 4, bf16" -a ! -s "$work/err"
ok it_writes_what_train_does test "$(diff -r "$work/out-a" "$work/again-f32" && echo same)" = same
ok half_of_it_in_bf16 test $((2 * $(stat -c %s "$work/again-bf16/model.safetensors"))) -lt $(($(stat -c %s "$work/again-f32/model.safetensors") + 20000))
exits a_state_is_no_model 3 "a: is a training's state and no model; 'millrace export .*/a DIR'" generate "$work/a" "And the king" -d model:
exits export_without_a_directory 2 'the directory to write is missing' export "$work/a"
exits export_of_a_model 3 'header' export $demo "$work/none"
exits export_to_what_is_there 3 'exists and is not empty' export "$work/a" "$work/out-a"

# ---- stopped, on another device, in other chunks: the same bytes
learn -o "$work/b" --steps 1 --lr 1e-3 --accumulate 2 -q >"$work/log" 2>&1
learn -o "$work/b" --steps 3 --lr 1e-3 --accumulate 2 --chunk 32 -q --json >"$work/json" 2>&1
learn -o "$work/b" --steps 4 --lr 1e-3 --accumulate 2 -d model:wide --recompute -v --export "$work/out-b" >"$work/log" 2>"$work/err"
ok going_on_gives_the_same_bytes cmp "$work/out-a/model.safetensors" "$work/out-b/model.safetensors"
ok json_is_an_object_a_line test "$(grep -cE '^\{"step":[23],"loss":[0-9.]+,"targets":[0-9]+,.*"seconds":[0-9.e-]+,"tokens_per_second":[0-9.e+]+,"repeated":0\}$' "$work/json")" = 2
ok verbose_lines_have_seconds_and_tokens grep -qE '^step 4 .*  rate [0-9.e-]+  [0-9.e-]+ s, [0-9.e+]+ tokens/s$' "$work/log"
less=$(sed -n 's/.*; \([0-9]*\) bytes of device memory$/\1/p' "$work/err")
learn -o "$work/b" --steps 4 --accumulate 2 -d model:wide -v >"$work/log" 2>"$work/err"
kept=$(sed -n 's/.*; \([0-9]*\) bytes of device memory$/\1/p' "$work/err")
ok recomputation_takes_less_memory test "${less:-0}" -gt 0 -a "${kept:-0}" -gt "${less:-0}"
exits nothing_left_to_do 0 'b: has its 4 steps; nothing to learn' "${short[@]}" -o "$work/b" --steps 4 --accumulate 2
cp "$work/b/header" "$work/header"
exits fewer_steps_than_a_state_has 2 'b: has 4 steps already; --steps 3 is less: give more, or another directory' \
    "${short[@]}" -o "$work/b" --steps 3 --accumulate 2 --csv "$work/low.csv" --events "$work/low"
ok they_label_no_loss_and_change_no_state test ! -s "$work/out" -a ! -e "$work/low.csv" -a ! -e "$work/low" -a "$(cmp "$work/b/header" "$work/header" 2>&1)" = ""

# ---- evaluations of some windows, which lie evenly
for n in 3 0; do learn -o "$work/some$n" --steps 1 --heldout 0.4 --eval-windows $n --json -q; done >"$work/json" 2>"$work/err"
learn -o "$work/some" --steps 1 --heldout 0.4 --eval-windows 3 -q >"$work/log" 2>>"$work/err"
all=$(sed -n '/"step":0.*held_out/s/.*"held_out":\([0-9]*\).*/\1/p' "$work/json" | sort -u)
ok some_windows_are_evaluated test "$(sed -n '/"step":0/s/.*"windows":\([0-9]*\).*/\1/p' "$work/json" | tr '\n' ' ')" = "3 $all " -a "${all:-0}" -gt 9
ok and_the_line_says_of_how_many grep -qE "^step 0 +held out [0-9.]+ \([0-9]+ tokens, 3 of $all windows\)$" "$work/log"

# ---- a training that diverges, and a warm-up that does not end
learn -o "$work/wild" --steps 4 --lr 1 -q >"$work/log" 2>"$work/err"
ok a_training_that_diverges_is_said_to test "$(grep -cE '^millrace: the loss has grown from [34][0-9.]+ to [0-9.]+, the training diverges; take a lower --lr' "$work/err")" = 1
ok others_are_not test -z "$(learn -o "$work/calm" --steps 2 --lr 1e-3 -q 2>&1 >/dev/null)"
exits a_warm_up_of_all_steps 0 'millrace: --warmup 5: the learning rate still grows at the last of 1 steps' "${short[@]}" -o "$work/warm" --steps 1 --warmup 5 -q

# ---- rates of a sequence
learn -o "$work/rates" --steps 4 --log-every 1 --schedule 'Linear(initial_learning_rate=0, end_learning_rate=1e-3, total_iters=2), StepLR(initial_learning_rate=1e-3, step_size=1, gamma=0.5)' >"$work/log" 2>"$work/err"
ok rates_follow_the_schedule test "$(sed -n 's/.*rate //p' "$work/log" | tr '\n' ' ')" = "0.000e+00 5.000e-04 1.000e-03 5.000e-04 "

# ---- SGD, stopped and gone on with
sgd=(--optimizer sgd --momentum 0.9 --dampening 0.2 --decay 1e-3 --lr 1e-2 -q)
learn -o "$work/s" --steps 3 "${sgd[@]}" --export "$work/out-s" >"$work/log" 2>&1
learn -o "$work/s2" --steps 2 "${sgd[@]}" >"$work/log" 2>&1
learn -o "$work/s2" --steps 3 "${sgd[@]}" --chunk 32 --export "$work/out-s2" >"$work/log" 2>&1
ok sgd_goes_on_with_the_same_bytes cmp "$work/out-s/model.safetensors" "$work/out-s2/model.safetensors"

# ---- frozen tensors, and some without decay
norm() { learn -o "$work/$1" --steps 1 -q "${@:2}" 2>&1 | sed -n 's/^step 1 .* norm \([0-9.]*\) .*/\1/p'; }
whole=$(norm f0) one=$(norm f --freeze '*' --freeze '!transformer.ln_f.bias') rest=$(norm f1 --freeze transformer.ln_f.bias)
ok what_is_frozen_has_no_norm awk -v w="${whole:-0}" -v o="${one:-0}" -v r="${rest:-0}" 'BEGIN { d = w * w - o * o - r * r; exit !(o > 0 && r > 0 && d < 0.01 && d > -0.01) }'
exits train_freezing_all 2 "freeze: no tensor is left to learn" "${short[@]}" -o "$work/none" --steps 1 --freeze '*'
exits train_freezing_without_the_first_word 2 "freeze 'h.0.\*': no tensor has such a name; did you mean '\*.h.0.\*', which transformer.h.0" "${short[@]}" -o "$work/none" --steps 1 --freeze 'h.0.*'
learn -o "$work/f2" --steps 2 -q --decay 0.1 --lr 1e-2 --freeze '*.h.[01].*' --no-decay '*.fc_*' --export "$work/out-f2" >"$work/log" 2>&1
learn -o "$work/f3" --steps 2 -q --decay 0.1 --lr 1e-2 --freeze '*.h.[01].*' --export "$work/out-f3" >"$work/log" 2>&1
ok some_do_not_decay test "$(cmp -s "$work/out-f2/model.safetensors" "$work/out-f3/model.safetensors"; echo $?)" = 1
exits train_freezing_what_is_not_there 2 "freeze 'no': no tensor has such a name; the last one is" "${short[@]}" -o "$work/none" --steps 1 --freeze no

# ---- what curves are drawn from
learn -o "$work/g" --steps 2 --events "$work/ev" --csv "$work/csv" -q >"$work/log" 2>&1
learn -o "$work/g" --steps 3 --events "$work/ev" --csv "$work/csv" >"$work/log" 2>"$work/err"
ok going_on_is_said grep -q 'g: goes on at step 3 of 3$' "$work/log"
ok csv_has_a_row_for_each_line test "$(cut -d, -f1 "$work/csv" | tr '\n' ' ')" = "step 0 1 2 2 3 3 "
ok csv_has_seconds_and_tokens test "$(grep -cE '^(1,.*,1|[23],.*,0),[0-9.e-]+,[0-9.e+]+,$' "$work/csv")" = 3
ok each_run_has_its_event_file test "$(ls "$work/ev" | tr '\n' ' ')" = "events.out.tfevents.0000000000.millrace events.out.tfevents.0000000002.millrace "
exits train_events_nowhere 3 'No such file' "${short[@]}" -o "$work/g" --steps 4 --events "$work/no/ev"
learn -o "$work/piped" --steps 100000 2>"$work/err" | head -n 1 >"$work/log"
status=${PIPESTATUS[0]} # of a closed pipe, as SIGPIPE would have it
ok nobody_reads_any_longer test "$status" = 141 -a ! -s "$work/err"
exits train_csv_nowhere 3 'No such file' "${short[@]}" -o "$work/g" --steps 4 --csv "$work/no/csv"
exits train_new_with_csv_nowhere 3 '^millrace: --csv .*/no/csv: No such file or directory; name a file' "${short[@]}" -o "$work/none" --steps 1 --csv "$work/no/csv"
exits train_new_with_csv_on_a_full_device 3 'full: No space left' "${short[@]}" -o "$work/none" --steps 1 --csv /dev/full
ok a_state_without_a_step_is_not_left test ! -e "$work/none"
exits train_new_with_csv_in_the_place_of_a_directory 3 '^millrace: --csv .*: Is a directory; name a file' "${short[@]}" -o "$work/none" --steps 1 --csv "$work/g"
exits train_new_with_events_in_a_file 3 '^millrace: --events .*/text: Not a directory; name a directory' "${short[@]}" -o "$work/none" --steps 1 --events "$work/text"
learn -o "$work/curved" --steps 1 --csv "$work/curved/csv" --events "$work/curved/events" -q >"$work/log" 2>&1
ok curves_may_stand_in_the_new_state test $? = 0 -a -s "$work/curved/csv"

# ---- what may change is said
learn -o "$work/ch" --steps 2 --lr 1e-3 -q >"$work/log" 2>"$work/err"
learn -o "$work/ch" --steps 3 --lr 1e-3 >"$work/log" 2>"$work/err"
ok nothing_changed test ! -s "$work/err"
learn -o "$work/ch" --steps 4 --lr 5e-4 --beta2 0.99 --clip 2 >"$work/log" 2>"$work/err"
learn -o "$work/ch" --steps 5 --lr 1e-3 --decay 0.3 -q >"$work/log" 2>"$work/quiet"
ok changes_are_not_named_quietly test ! -s "$work/quiet"
ok changes_are_named grep -q "^millrace: $work/ch: rate was 0.001, is 0.0005; beta2 was 0.95, is 0.99; clip was 1, is 2\$" "$work/err"
learn -o "$work/co" --steps 2 --lr 1e-3 --schedule cosine -q >"$work/log" 2>"$work/err"
learn -o "$work/co" --steps 2 --lr 1e-3 --schedule cosine >"$work/log" 2>"$work/err"
ok a_schedule_is_no_change test "$(grep -c 'rate was' "$work/err")" = 0

# ---- a picture, which goes on with the state
points() { sed -n "s/^$1 \([0-9]*\) .*/\1/p" "$work/curve.svg" | tr '\n' ' '; }
learn -o "$work/p" --steps 2 --svg "$work/curve.svg" -q >"$work/log" 2>&1
ok a_picture_is_drawn test "$(head -c 4 "$work/curve.svg")$(tail -n 1 "$work/curve.svg")" = "<svg</svg>"
ok for_light_and_dark grep -q 'prefers-color-scheme: dark' "$work/curve.svg"
learn -o "$work/p" --steps 4 --svg "$work/curve.svg" -q >"$work/log" 2>&1
ok it_goes_on_with_the_state test "$(points step)/$(points held)" = "1 2 3 4 /0 2 4 "
learn -o "$work/p2" --steps 4 --svg "$work/curve2.svg" -q >"$work/log" 2>&1
learn -o "$work/p2" --steps 4 --svg "$work/curve2.svg" -q >>"$work/log" 2>&1 # evaluates its last step again
ok a_point_is_there_once test "$(sed -n 's/^held \([0-9]*\) .*/\1/p' "$work/curve2.svg" | tr '\n' ' ')" = "0 4 "
ok as_one_that_did_not_stop test "$(grep '^step ' "$work/curve.svg")" = "$(grep '^step ' "$work/curve2.svg")"
learn -o "$work/p2" --steps 5 --svg "$work/text2.svg" -q >"$work/log" 2>&1
ok another_file_begins_where_it_is grep -q '^step 5 ' "$work/text2.svg"
{ grep '^<!-- millrace train' "$work/curve.svg"; printf 'step 3 nan inf\nstep x\nheld 1 1e999\nstep 1 3 1\nstep 2 3.0000000000000004 1\nstep 9 3 1\nheld 9 3\n'; } >"$work/odd.svg"
learn -o "$work/p2" --steps 6 --svg "$work/odd.svg" -q >"$work/log" 2>&1
sed 's/^<!-- millrace train [0-9a-f]*/<!-- millrace train 1234567890abcdef/' "$work/curve.svg" >"$work/other.svg"
learn -o "$work/p2" --steps 6 --svg "$work/other.svg" -q >>"$work/log" 2>&1
ok points_of_another_training_are_left_out test "$(grep -c '^step ' "$work/other.svg")" = 0
ok those_of_later_steps_are_left_out test "$(grep -cE '^step [12] ' "$work/odd.svg")/$(grep -cE '^(step|held) 9 ' "$work/odd.svg")" = 2/0
ok odd_points_do_not_matter test "$(tail -n 1 "$work/odd.svg")" = "</svg>" -a "$(grep -c 'points="[^"]*nan' "$work/odd.svg")" = 0
learn -o "$work/all" --steps 2 --heldout 0 -q --svg "$work/bare.svg" >"$work/log" 2>&1 # nothing is left to learn
ok a_picture_without_a_point_is_one_too test "$(tail -n 1 "$work/bare.svg")/$(grep -cE '^(step|held) |nan|inf' "$work/bare.svg")" = "</svg>/0"
case $millrace in /*) program=$millrace ;; *) program=$PWD/$millrace ;; esac
cp -r $demo "$work/demo"
(cd "$work" && "$program" train demo --data text --sequence 32 --batch 2 -o named --steps 1 -q --svg named.svg)
ok the_picture_names_the_model grep -q '>training of demo, state named<' "$work/named.svg"
"$millrace" train $demo/ --data "$work/text" --sequence 32 --batch 2 -o "$work/named" --steps 2 -q --svg "$work/named.svg"
ok also_with_a_slash_behind_it grep -q ">training of $demo/, state " "$work/named.svg"
exits train_picture_nowhere 3 '^millrace: --svg .*/no/x.svg: No such file or directory; name a file' "${short[@]}" -o "$work/none" --steps 1 --svg "$work/no/x.svg"
ln -s /dev/full "$work/full.svg"
exits train_picture_on_a_full_disk 3 'full.svg: .*No space' "${short[@]}" -o "$work/undrawn" --steps 1 -q --svg "$work/full.svg"

# ---- a model that is wrong leaves no state
mkdir "$work/infinite"
mkdir "$work/words" && cp $demo/* "$work/words" && sed -i 's/"attn_pdrop": *0.0/"attn_pdrop": "x"/' "$work/words/config.json"
exits train_a_dropout_that_is_no_number 3 'attn_pdrop' train "$work/words" --data "$work/text" --sequence 32 --batch 2 -o "$work/none" --steps 1
cp $demo/* "$work/infinite" && { head -c 4000000 $demo/model.safetensors; head -c $(($(stat -c %s $demo/model.safetensors) - 4000000)) /dev/zero | tr '\0' '\177'; } >"$work/infinite/model.safetensors"
for heldout in 0 0.1; do
    exits "train_weights_without_a_loss_$heldout" 3 '^millrace: .*/infinite: the loss of row 0 is infinite or not a number' train "$work/infinite" --data "$work/text" --sequence 32 --batch 2 --heldout $heldout -q -o "$work/none" --steps 1
done

# ---- a training that diverges until it has no loss: the state has the step before, and its files are whole
lost=(--lr 1 --optimizer sgd --momentum 0.9 --clip 0 --heldout 0)
learn -o "$work/lost" --steps 60 "${lost[@]}" >"$work/log" 2>"$work/err"
status=$? last=$(tail -n 1 "$work/log" | sed 's/^step \([0-9]*\) .*/\1/')
ok a_loss_that_becomes_infinite_ends_the_training test $status = 3
ok it_is_said_to_diverge_before grep -q 'the training diverges; take a lower --lr' "$work/err"
ok the_step_is_named grep -qE "^millrace: .*/lost, step $((last + 1)): the (loss of row|gradient of) .* is infinite or not a number" "$work/err"
exits so_it_is_when_it_goes_on 3 "/lost, step $((last + 1)): the" "${short[@]}" -o "$work/lost" --steps 60 "${lost[@]}"
exits the_state_has_the_steps_before 0 "its $last steps; nothing to learn" "${short[@]}" -o "$work/lost" --steps "$last" "${lost[@]}"

# ---- dropout, of which there is none
mkdir "$work/dropout" && cp $demo/* "$work/dropout" && sed -i 's/"\(attn\|resid\)_pdrop": *0.0/"\1_pdrop": 0.1/' "$work/dropout/config.json"
timeout 600 "$millrace" train "$work/dropout" --data "$work/text" --sequence 32 --batch 2 -o "$work/d" --steps 1 -q --export "$work/out-d" >"$work/log" 2>"$work/err"
ok dropout_is_said_to_be_left_out test $? = 0 -a "$(cat "$work/err")" = "millrace: the model's config has attn_pdrop 0.1, resid_pdrop 0.1; there is no dropout yet: trained without"
ok the_export_says_what_was_trained test "$(grep -cE '"(attn|embd|resid)_pdrop": *0\.0,?$' "$work/out-d/config.json")" = 3

# ---- more positions than the checkpoint has
head -c 3000 $demo/heldout.txt | tr '\n' ' ' >"$work/long"
mkdir "$work/longer" && cp $demo/* "$work/longer" && sed -i 's/"n_positions": *512/"n_positions": 520/' "$work/longer/config.json"
long=(--data "$work/long" --sequence 520 --batch 1 --heldout 0 --steps 1 -q)
timeout 600 "$millrace" train $demo "${long[@]}" --n-positions 520 -o "$work/l" --export "$work/out-l" >"$work/log" 2>&1
ok longer_sequences_than_the_checkpoints test $? = 0
timeout 600 "$millrace" train "$work/longer" "${long[@]}" -o "$work/m" --export "$work/out-m" >"$work/log" 2>&1
ok are_those_of_a_checkpoint_that_has_them cmp "$work/out-l/model.safetensors" "$work/out-m/model.safetensors"
ok so_is_the_configuration cmp "$work/out-l/config.json" "$work/out-m/config.json"
exits longer_sequences_go_on_with_their_option 3 'of 520 positions, not 512' train $demo "${long[@]:0:2}" --sequence 512 --batch 1 --heldout 0 --steps 2 -o "$work/l"
exits fewer_positions_than_the_checkpoints 2 'n_positions 511: the model has 512; from there to 4096' train $demo "${long[@]}" --n-positions 511 -o "$work/x"
exits data_in_longer_windows 0 . data $demo "$work/long" -o "$work/long.h5" --sequence 520 --n-positions 520
exits plan_of_longer_sequences 0 'tokens/s' plan $demo --train --length 600 --n-positions 600
exits trace_of_longer_sequences 0 . trace $demo --train 600 --n-positions 600 --layer 0 -d model:sim
exits learned_positions_stay 2 'GPT-2 has learned positions' plan synthetic:gpt2 --train --n-positions 2048

# ---- Ctrl-C, and a second process
: >"$work/log" # an earlier step would end the wait before the program is there
"$millrace" "${short[@]}" -o "$work/c" --steps 100000 >"$work/log" 2>"$work/err-c" &
pid=$!
for _ in $(seq 6000); do
    grep -q '^step 1 ' "$work/log" && break
    sleep 0.05
done
exits two_processes 3 'another process' "${short[@]}" -o "$work/c" --steps 5
kill -INT $pid
wait $pid
ok interrupted test $? = 130
done_steps=$(sed -n 's/.*stopped after step \([0-9]*\) of 100000; .*the same command goes on$/\1/p' "$work/err-c")
ok interrupt_says_how_to_go_on test "${done_steps:-0}" -ge 1 -a "$(wc -l <"$work/err-c")" = 1
ok each_step_has_its_line test "$(grep -c 'loss' "$work/log")" = "${done_steps:-0}"
learn -o "$work/c" --steps $((${done_steps:-0} + 1)) >"$work/log" 2>"$work/err"
ok goes_on_where_it_stopped grep -q "^step $((${done_steps:-0} + 1)) " "$work/log"

# ---- Ctrl-C in an evaluation of some minutes
for _ in 1 2 3 4 5; do cat $demo/heldout.txt; done >"$work/long"
: >"$work/log"
"$millrace" train $demo --data "$work/long" --sequence 32 --batch 1 --heldout 0.9 -v -o "$work/held" --steps 2 >"$work/log" 2>"$work/err-d" &
pid=$!
for _ in $(seq 6000); do
    grep -qs 'windows to learn' "$work/log" && break
    kill -0 $pid || break
    sleep 0.05
done
kill -INT $pid
wait $pid
ok evaluation_interrupted test $? = 130 -a "$(wc -l <"$work/log")" = 1
ok it_says_what_was_done grep -q 'stopped after step 0 of 2' "$work/err-d"

# ---- refusals
printf 'And' >"$work/word"
exits train_without_steps 2 '--steps N is missing' "${short[@]}" -o "$work/x"
exits train_with_two_rates 2 '--lr, --warmup and --min-lr go with constant and cosine' "${short[@]}" -o "$work/x" --steps 1 --lr 1e-3 --schedule 'Constant(learning_rate=1e-3)'
exits train_with_a_schedule_that_is_nearly_one 2 "schedule 'cosin' is not known; did you mean cosine;" "${short[@]}" -o "$work/x" --steps 1 --schedule cosin
exits train_with_a_misspelt_schedule 2 "schedule: the schedule 'Linar' is not known; did you mean Linear" "${short[@]}" -o "$work/x" --steps 1 --schedule 'Linar()'
exits train_with_betas_of_sgd 2 '--beta1, --beta2 and --epsilon go with adamw and adam' "${short[@]}" -o "$work/x" --steps 1 --optimizer sgd --beta1 0.8
exits train_with_momentum_of_adam 2 '--momentum, --dampening and --nesterov go with --optimizer sgd' "${short[@]}" -o "$work/x" --steps 1 --momentum 0.9
exits train_nesterov_without_momentum 2 "Nesterov's way needs a momentum" "${short[@]}" -o "$work/x" --steps 1 --optimizer sgd --nesterov
exits train_with_a_misspelt_optimizer 2 "optimizer 'lion' is none of" "${short[@]}" -o "$work/x" --steps 1 --optimizer lion
exits train_without_a_directory 2 '-o DIR is missing' "${short[@]}" --steps 1
exits train_without_a_text 2 '--data FILE is missing' train $demo -o "$work/x" --steps 1
exits train_text_missing 3 'No such file' train $demo --data "$work/no" -o "$work/x" --steps 1
printf '\050\265\057\375and' >"$work/zstd"
cp "$work/text" "$work/text.jsonl"
exits train_on_compressed_text 3 'compressed with zstd; millrace data' train $demo --data "$work/zstd" -o "$work/x" --steps 1
exits train_on_json_lines 3 'JSON lines by its name; millrace data' train $demo --data "$work/text.jsonl" -o "$work/x" --steps 1
: >"$work/empty.txt"
cp "$work/word" "$work/word.csv"
exits train_text_that_is_csv 3 '^millrace: [^ ]*word.csv: is CSV by its name' train $demo --data "$work/word.csv" -o "$work/x" --steps 1
exits train_text_that_is_empty 3 'empty.txt: the text is empty' train $demo --data "$work/empty.txt" -o "$work/x" --steps 1
printf 'in the beginning' >"$work/beginning"
exits train_text_all_of_it_held_out 2 'beginning: the text is too short: its 4 tokens make 1 window, of which 1' train $demo --data "$work/beginning" -o "$work/x" --steps 1
printf 'in the beginning<|endoftext|>in the beginning' >"$work/twice"
exits train_windows_end_with_a_document 2 'twice: .* its 9 tokens make 2 windows, of which 2' train $demo --data "$work/twice" -o "$work/x" --steps 1 --heldout 0.9
printf '<|endoftext|>a' >"$work/apart"
exits train_documents_of_a_token_each 3 'apart: the text is too short: its 2 tokens make no window' train $demo --data "$work/apart" -o "$work/x" --steps 1
exits train_text_too_short 3 'word: the text is too short: its 1 token makes no window' train $demo --data "$work/word" -o "$work/x" --steps 1
exits train_misspelt 2 'did you mean --steps' "${short[@]}" -o "$work/x" --stepz 1
exits train_sequence_too_long 3 '--sequence 513: the model has 512 positions' train $demo --data "$work/text" -o "$work/x" --steps 1 --sequence 513
for width in 2048 5120; do
    cat >"$work/$width.yaml" <<END
train_input: {data_dir: $work/text, batch_size: 1, max_sequence_length: 8}
model: {name: gptj, vocab_size: 257, hidden_size: $width, num_hidden_layers: 1, num_heads: 8,
  filter_size: 64, rotary_dim: 8, max_position_embeddings: 64}
optimizer: {optimizer_type: AdamW, learning_rate: 1e-3}
runconfig: {max_steps: 1}
END
done
exits train_a_model_too_wide_for_the_device 3 'n_embd .padded. is 2048, the device has 1024; model:sim holds it$' \
    train "$work/2048.yaml" -o "$work/x" -d model:tinyt
exits train_a_model_too_wide_for_all 3 'n_embd .padded. is 5120, the device has 1024; no configuration holds it$' \
    train "$work/5120.yaml" -o "$work/x" -d model:tinyt
exits and_that_is_said_before_weights_are_drawn 3 'n_embd .padded. is 2048' train "$work/2048.yaml" -o /proc/none/x -d model:tinyt
for d in cpu: sim: sim:tiny; do
    exits "train_on_$d" 2 "device $d cannot train[:;] .* model:sim can\$" "${short[@]}" -o "$work/b" --accumulate 2 --steps 5 -d $d
done
exits train_on_a_misspelt_option 2 "sim:sim,trane: 'trane' is not an option" "${short[@]}" -o "$work/b" --accumulate 2 --steps 5 -d sim:sim,trane
exits train_in_odd_chunks 2 'a multiple of 32' "${short[@]}" -o "$work/b" --accumulate 2 --steps 5 --chunk 33
exits train_with_another_optimizer 2 'began with the optimizer AdamW, not SGD' "${short[@]}" -o "$work/b" --accumulate 2 --steps 5 --optimizer sgd
exits train_with_several_other_settings 2 'began with --sequence 32, not 16; --batch 2, not 3; --seed 0, not 7; --heldout 0.1, not 0.2; give' train $demo --data "$work/text" --sequence 16 --batch 3 -o "$work/b" --accumulate 2 --steps 5 --seed 7 --heldout 0.2
LC_ALL=C sed 's/MRTRAIN/foreign/g' "$millrace" >"$work/foreign" && chmod +x "$work/foreign" # its steps have another note
millrace=$work/foreign learn -o "$work/not-ours" --steps 1 -q >"$work/log" 2>&1
exits train_where_another_program_has_trained 2 "not-ours: its last step is another program's training" "${short[@]}" -o "$work/not-ours" --steps 2
exits train_with_another_seed 2 'began with --seed 0, not 7' "${short[@]}" -o "$work/b" --accumulate 2 --steps 5 --seed 7
exits train_in_other_batches 2 'began with --batch 2, not 3' train $demo --data "$work/text" --sequence 32 --batch 3 -o "$work/b" --accumulate 2 --steps 5
head -c 2900 $demo/heldout.txt >"$work/other"
learn -o "$work/e" --steps 1 --seed 9007199254740993 --heldout 0.3 -q >"$work/log" 2>&1
exits train_with_almost_that_seed 2 '--seed 9007199254740993, not 9007199254740992;' "${short[@]}" -o "$work/e" --heldout 0.3 --steps 2 --seed 9007199254740992
exits train_with_less_held_out 2 '--heldout 0.3, not 0.1;' "${short[@]}" -o "$work/e" --steps 2 --seed 9007199254740993
exits train_on_another_text 2 'began with another text' train $demo --data "$work/other" --sequence 32 --batch 2 --accumulate 2 -o "$work/b" --steps 5
exits train_where_there_is_something 3 'exists and is not empty' "${short[@]}" -o "$work/out-a" --steps 1
mkdir "$work/headless" && touch "$work/headless/state"
exits train_without_the_header 3 'headless/header: is missing' "${short[@]}" -o "$work/headless" --steps 1
exits train_new_on_no_device 2 'nope' "${short[@]}" -o "$work/none" --steps 1 -d model:nope
exits train_new_in_odd_chunks 2 'a multiple of 32' "${short[@]}" -o "$work/none" --steps 1 --chunk 16
exits train_new_in_large_batches 3 'does not fit' train $demo --data "$work/text" --sequence 512 --batch 1024 -o "$work/none" --steps 1
ln -s nowhere "$work/dangling"
exits train_into_a_dangling_link 3 'dangling: is a link to what is not there; remove it' "${short[@]}" -o "$work/dangling" --steps 1
exits train_export_to_what_exists 3 'exists and is not empty' "${short[@]}" -o "$work/none" --steps 1 --export $demo
exits train_export_nowhere 3 'No such file' "${short[@]}" -o "$work/none" --steps 1 --export "$work/no/x"
exits train_export_into_the_state 2 'two directories' "${short[@]}" -o "$work/none" --steps 1 --export "$work/none"
exits train_export_into_the_state_by_another_name 2 'two directories' "${short[@]}" -o "$work/none" --steps 1 --export "$work/./none/"
ok refusals_leave_no_state test -z "$(find "$work" -maxdepth 1 -name 'none*')"
exits train_nowhere 3 'No such file' "${short[@]}" -o "$work/no/x" --steps 1
(ulimit -f 2000; exits train_on_a_full_disk 3 'File too large|No space' "${short[@]}" -o "$work/full" --steps 1; exit $failed) || failed=1
number=$((number + 1))
ok a_full_disk_leaves_nothing test ! -e "$work/full"
mkdir "$work/model" && cp $demo/* "$work/model" && sed -i 's/"n_positions": *512/"n_positions": 256/' "$work/model/config.json"
exits train_the_state_of_another_model 3 'state of another model' train "$work/model" --data "$work/text" --sequence 32 --batch 2 --accumulate 2 -o "$work/b" --steps 5
exits train_from_what_it_has_learnt 3 'it began from other weights' train "$work/out-b" --data "$work/text" --sequence 32 --batch 2 --accumulate 2 -o "$work/b" --steps 5
printf '\377\377' | dd of="$work/b/state" bs=1 seek=70000 conv=notrunc status=none
printf '\377\377' | dd of="$work/b/state" bs=1 seek=$(($(stat -c %s "$work/b/state") - 70000)) conv=notrunc status=none
exits train_a_damaged_state 3 'checksum' "${short[@]}" -o "$work/b" --accumulate 2 --steps 5
rm "$work/c/gradients"
exits train_without_a_file 3 'gradients' "${short[@]}" -o "$work/c" --steps 500
done_testing
