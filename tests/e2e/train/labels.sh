#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# millrace train of an encoder: texts with labels, the classifier, accuracy, the same bytes on the simulated RTL, with
# several engines and after a stop, the exported model; refusals. Prints TAP; runs from the repository's root.
set -u
. tests/tools/tap.sh
. tests/tools/bert.sh
none=',"hidden_dropout_prob":0,"attention_probs_dropout_prob":0'
encoder plain BertModel "$none"
encoder labels BertForSequenceClassification "$none,\"id2label\":{\"0\":\"no\",\"1\":\"yes\"}"
{
    printf 'label\tsentence\n'
    for i in $(seq 10); do printf '1\tthe good film %d is nice\n0\ta bad bad film it was\n' "$i"; done
} >"$work/films.tsv"
"$millrace" data "$work/plain" "$work/films.tsv" -o "$work/films.h5" --text-field sentence --labels no,yes --sequence 24 >"$work/out" || exit 1
train() { # STATE MODEL OPTIONS...
    "$millrace" train "$work/$2" --data "$work/films.h5" -o "$work/$1" --lr "${rate:-3e-3}" --batch 4 --accumulate 2 --seed 3 "${@:3}" \
        >"$work/$1.out" 2>"$work/$1.err"
}
# ---- what is said
train first plain --steps 4 --eval-every 2 --export "$work/tuned" --csv "$work/first.csv"
ok texts_are_counted grep -qE '^[0-9]+ tokens; 18 texts to learn, 2 held out$' "$work/first.out"
ok accuracy_is_said grep -qE '^step 4 +held out 0\.[0-9]+  accuracy [0-9.]+ % \(2 texts\)$' "$work/first.out"
ok a_drawn_classifier_is_said grep -qF 'plain: has no classifier of 2 labels, and no pooler; both are drawn from --seed 3' "$work/first.err"
ok accuracy_is_in_csv grep -qE "^4,,,,0\.[0-9]+,,,,(0|0\.5|1)$" "$work/first.csv"
train part plain --steps 1 --eval-windows 1
ok some_texts_are_evaluated grep -qE '^step 1 +held out 0\.[0-9]+  accuracy [0-9.]+ % \(1 text, 1 of 2\)$' "$work/part.out"
train own labels --steps 1 --json
ok one_that_is_there_is_kept test ! -s "$work/own.err"
ok accuracy_is_in_json grep -qE '"heldout_loss":[0-9.]+,"targets":2,"windows":2,"held_out":2,"accuracy":(0|0\.5|1)\.?0?\}' "$work/own.out"

# ---- the same bytes
train stopped plain --steps 2
train stopped plain --steps 4
ok a_stop_changes_nothing cmp "$work/first/state" "$work/stopped/state"
ok it_goes_on grep -qF 'stopped: goes on at step 3 of 4' "$work/stopped.out"
train chunks plain --steps 4 -d model:sim --chunk 32 --recompute
ok chunks_change_nothing cmp "$work/first/state" "$work/chunks/state"
train engines plain --steps 4 --engines 2
ok engines_change_nothing cmp "$work/first/state" "$work/engines/state"
train model plain --steps 1 -d model:tinyt
train rtl plain --steps 1 -d sim:tinyt
ok the_rtl_has_the_same_bytes cmp "$work/model/state" "$work/rtl/state"

# ---- the model
rate=1e-2 train more plain --steps 40 --heldout 0 --export "$work/learnt"
"$millrace" classify "$work/learnt" 'the good film 3 is nice' >"$work/out"
ok it_has_learnt grep -qE '^0\.[0-9]+ yes$' "$work/out"
# Twice the first loss is little where that is small: what diverges has grown by 3, too.
rate=3e-1 train double plain --steps 3 --heldout 0
ok a_small_loss_may_double test "$(awk '/^step [23] / { n += $4 > 1.39 && $4 < 3.69 } END { print n }' "$work/double.out") $(grep -c diverges "$work/double.err")" = "2 0"
ok a_state_is_exported "$millrace" export "$work/first" "$work/again" -q
ok an_export_in_json test "$("$millrace" export "$work/first" "$work/in-json" --json | tr -d ' \n')" = "{\"directory\":\"$work/in-json\",\"step\":4,\"format\":\"f32\"}"
ok exports_are_the_same cmp "$work/tuned/model.safetensors" "$work/again/model.safetensors"
ok the_vocabulary_goes_along cmp "$work/plain/vocab.txt" "$work/tuned/vocab.txt"
ok an_export_has_its_class grep -qF '"BertForSequenceClassification"' "$work/tuned/config.json"
train on tuned --steps 1
ok an_export_begins_a_training test ! -s "$work/on.err"
"$millrace" data "$work/plain" "$work/films.tsv" -o "$work/three.h5" --text-field sentence --labels no,yes,maybe --sequence 24 >"$work/out"
exits a_classifier_alone_is_drawn 0 'tuned: has no classifier of 3 labels; it is drawn from --seed 3$' train "$work/tuned" --data "$work/three.h5" -o "$work/three" --steps 1 --seed 3
encoder tokens BertForTokenClassification "$none,\"id2label\":{\"0\":\"yes\",\"1\":\"no\"}"
train tagged tokens --steps 1
ok a_classifier_of_tokens_is_drawn_anew grep -q 'tokens: has no classifier of 2 labels, and no pooler; both are drawn' "$work/tagged.err"
train untold tokens --steps 1 -q
ok it_is_not_said_quietly test ! -s "$work/untold.err" -a -s "$work/untold/state"

# ---- a configuration
cat >"$work/classifier.yaml" <<END
train_input: {data_processor: SST2DataProcessor, data_dir: $work/films.h5, batch_size: 4, shuffle: true, shuffle_seed: 1}
eval_input: {data_processor: SST2DataProcessor, data_dir: $work/films.h5, batch_size: 4}
model: {name: bert/classifier, num_labels: 2, hidden_size: 20, num_hidden_layers: 2, num_heads: 4, filter_size: 36, dropout_rate: 0}
optimizer: {optimizer_type: AdamW, learning_rate: 1e-3}
runconfig: {max_steps: 4, checkpoint_steps: 4}
END
"$millrace" train "$work/classifier.yaml" -m train_and_eval -o "$work/by-file" --checkpoint_path "$work/plain" >"$work/out" 2>"$work/err"
ok a_configuration_trains grep -qE '^step 4 +held out 0\.[0-9]+  accuracy [0-9.]+ % \(20 texts\)$' "$work/out"
last=$(grep 'step 4 .*held out' "$work/out")
"$millrace" train "$work/classifier.yaml" -m eval_all -o "$work/by-file" >"$work/out"
ok its_checkpoint_has_the_accuracy grep -qF "$last" "$work/out"

# ---- refusals
x="-o $work/x --steps 1"
exits train_encoder_of_no_file 3 'none.h5: No such file' train "$work/plain" --data "$work/none.h5" $x
exits train_encoder_of_a_text 2 "an encoder learns texts with labels; 'millrace data' makes a file" train "$work/plain" --data "$work/films.tsv" $x
"$millrace" data models/demo models/demo/heldout.txt -o "$work/windows.h5" --sequence 16 -q
exits train_encoder_of_another_length 2 '--sequence 12: the texts of .*films.h5 have up to 24 tokens' train "$work/plain" --data "$work/films.h5" $x --sequence 12
encoder longer BertModel "$none" 128
"$millrace" data "$work/longer" "$work/films.tsv" -o "$work/long.h5" --text-field sentence --labels no,yes --sequence 80 -q || exit 1
exits train_encoder_of_texts_beyond_it 3 'long.h5: has texts of up to 80 tokens; the model has 64 positions' train "$work/plain" --data "$work/long.h5" $x
exits train_encoder_of_windows 3 'windows.h5: ' train "$work/plain" --data "$work/windows.h5" $x
exits train_encoder_positions 2 'are not for encoders' train "$work/plain" --data "$work/films.h5" $x --n-positions 32
exits train_encoder_lora 2 'are not for encoders' train "$work/plain" --data "$work/films.h5" $x --lora r=2
"$millrace" data "$work/plain" "$work/films.tsv" -o "$work/other.h5" --text-field sentence --labels bad,good --sequence 24 >"$work/out"
exits train_encoder_other_held_labels 3 'has other labels than' train "$work/plain" --data "$work/films.h5" --heldout-data "$work/other.h5" $x
"$millrace" data "$work/plain" "$work/films.tsv" -o "$work/turned.h5" --text-field sentence --labels yes,no --sequence 24 >"$work/out"
exits train_encoder_labels_in_another_order 3 "turned.h5: label 0 is 'yes', the model's label 1; make the file" train "$work/labels" --data "$work/turned.h5" $x
exits train_encoder_other_labels 2 'began with another text than' train "$work/plain" --data "$work/other.h5" -o "$work/first" --steps 5 --batch 4 --accumulate 2 --seed 3
sed 's/num_labels: 2/num_labels: 3/' "$work/classifier.yaml" >"$work/three.yaml"
exits train_encoder_of_a_text_among_others 3 'films.tsv: ' train "$work/classifier.yaml" -o "$work/x" --checkpoint_path "$work/plain" --set "train_input.data_dir=[$work/films.tsv, $work/films.h5]"
exits train_encoder_number_of_labels 3 'num_labels: 3, and .*films.h5 has 2 labels' train "$work/three.yaml" -o "$work/x" --checkpoint_path "$work/plain"
ok nothing_is_left test ! -e "$work/x"
done_testing
