#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# millrace data: texts, JSON lines, CSV and TSV become one file that train learns from as from the text; refusals. Readers,
# windows and files are held by the unit test data. Prints TAP; runs from the repository's root on models/demo.
set -u
. tests/tools/tap.sh
demo=models/demo
head -c 3000 $demo/heldout.txt >"$work/text"
learn() { timeout 600 "$millrace" train $demo --batch 2 --steps 2 -q "$@" >"$work/log" 2>"$work/err"; }

# ---- a text: the same windows, so the same training
"$millrace" data $demo "$work/text" -o "$work/text.h5" --sequence 32 >"$work/out" 2>"$work/err"
ok a_text_becomes_windows test $? = 0 -a ! -s "$work/err"
head -c 20 "$work/text" >"$work/short" && "$millrace" data $demo "$work/short" -o "$work/short.h5" --sequence 32 >"$work/one"
ok one_window_is_singular grep -q 'short.h5: 1 document in 1 window of 32; ' "$work/one"
ok windows_are_counted grep -qE '^.*/text.h5: 1 document in 2[0-9] windows of 32; ([0-9]+) tokens, \1 of them learnt; [0-9.]+ % padding$' "$work/out"
learn --data "$work/text" --sequence 32 -o "$work/a"
learn --data "$work/text.h5" -o "$work/b"
ok training_is_that_of_the_text cmp "$work/a/state" "$work/b/state"
MILLRACE_THREADS=3 "$millrace" data $demo "$work/text" -o "$work/again.h5" --sequence 32 -q
ok the_same_bytes_again cmp "$work/text.h5" "$work/again.h5"
"$millrace" data $demo - --from text -o "$work/again.h5" --sequence 32 -q <"$work/text"
ok standard_input_is_a_text cmp "$work/text.h5" "$work/again.h5"

mkdir "$work/several" && cp "$work/text.h5" "$work/several/only.h5"
learn --data "$work/several" -o "$work/d"
ok a_directory_is_its_files cmp "$work/b/state" "$work/d/state"
learn --data "$work/text" --sequence 32 --seed 1 -o "$work/e"
ok another_order_is_another_training test "$(cmp "$work/a/state" "$work/e/state" 2>&1)"

# ---- pairs: JSON lines, compressed and not, CSV and TSV are the same file
printf '%s\n' '{"prompt": "The LORD is", "completion": " my shepherd; I shall \"not\" want."}' '' \
    '{"completion": " king", "prompt": "And the", "more": null}' >"$work/pairs.jsonl"
printf 'id,completion,prompt\r\n1," my shepherd; I shall ""not"" want.",The LORD is\r\n2, king,And the\r\n' >"$work/pairs.csv"
printf 'id\tcompletion\tprompt\n1\t my shepherd; I shall "not" want.\tThe LORD is\n2\t king\tAnd the\n' >"$work/pairs.tsv"
zstd -q "$work/pairs.jsonl" -o "$work/pairs.jsonl.zst"
for f in pairs.jsonl pairs.jsonl.zst pairs.csv pairs.tsv; do
    "$millrace" data $demo "$work/$f" -o "$work/$f.h5" --sequence 16 --overlap 4 --json >"$work/$f.json" 2>>"$work/err"
done
ok compressed_lines_are_the_same cmp "$work/pairs.jsonl.h5" "$work/pairs.jsonl.zst.h5"
ok csv_is_the_same cmp "$work/pairs.jsonl.h5" "$work/pairs.csv.h5"
ok tsv_is_the_same cmp "$work/pairs.jsonl.h5" "$work/pairs.tsv.h5"
ok json_counts grep -qE '"documents": 2' "$work/pairs.csv.json"
ok prompts_are_not_learnt test "$(sed -n 's/.*"tokens": \([0-9]*\).*/\1/p' "$work/pairs.csv.json")" -gt \
    "$(sed -n 's/.*"learnt": \([0-9]*\).*/\1/p' "$work/pairs.csv.json")"
learn --data "$work/pairs.csv.h5" -o "$work/c" --heldout 0
ok pairs_are_learnt grep -q '^step 2 ' "$work/log"
sed 's/"prompt"/"in"/; s/"completion"/"out"/' "$work/pairs.jsonl" >"$work/named.jsonl"
"$millrace" data $demo "$work/named.jsonl" -o "$work/named.h5" --sequence 16 --overlap 4 --prompt-field in --completion-field out -q
ok fields_have_the_names_that_are_given cmp "$work/pairs.jsonl.h5" "$work/named.h5"

sed '1s/{/{"id": 18446744073709551616, /' "$work/pairs.jsonl" >"$work/numbered.jsonl"
"$millrace" data $demo "$work/numbered.jsonl" -o "$work/numbered.h5" --sequence 16 --overlap 4 -q
ok large_numbers_are_passed_over cmp "$work/pairs.jsonl.h5" "$work/numbered.h5"
printf 'a\0b, and some more' >"$work/forced"
"$millrace" data $demo "$work/forced" --from text -o "$work/forced.h5" -q
ok a_text_is_one_if_somebody_says_so test -s "$work/forced.h5"

# Texts are encoded as many at a time as a batch takes: 16384, or 4 MiB. 17000 of one window, and five of 586.
yes '{"text": "mill"}' | head -n 17000 >"$work/many.jsonl"
for _ in 1 2 3 4 5; do printf '{"text": "%s"}\n' "$(yes ' the mill' | head -n 100000 | tr -d '\n')"; done >>"$work/many.jsonl"
"$millrace" data $demo "$work/many.jsonl" -o "$work/many.h5" --sequence 512 >"$work/out"
ok batches_of_texts_leave_none_out grep -q ': 17005 documents in 19930 windows of 512; ' "$work/out"

# ---- refusals of data
exits data_without_input 2 'the input is missing' data $demo -o "$work/x.h5"
exits data_without_output 2 '-o FILE is missing' data $demo "$work/text"
exits data_of_two_texts 2 "'b' is one argument too many; several texts are one input as 'cat FILE... |" data $demo a b -o "$work/x.h5"
exits data_input_missing 3 'No such file' data $demo "$work/no" -o "$work/x.h5"
exits data_of_a_directory 3 'Is a directory' data $demo "$work" -o "$work/x.h5"
exits data_with_too_much_overlap 2 '--overlap 32: windows have 32 tokens' data $demo "$work/text" -o "$work/x.h5" --sequence 32 --overlap 32
exits data_windows_too_long 3 '--sequence 513: the model has 512 positions' data $demo "$work/text" -o "$work/x.h5" --sequence 513
exits data_of_an_unknown_kind 2 "'json' is none of auto, text, jsonl, csv or tsv" data $demo "$work/text" -o "$work/x.h5" --from json
exits data_of_no_json 3 "text: line 1" data $demo "$work/text" -o "$work/x.h5" --from jsonl
exits data_without_the_field 3 "line 1: has neither 'ou' nor 'prompt' and 'completion', but out" data $demo "$work/named.jsonl" -o "$work/x.h5" --text-field ou
: >"$work/empty"
exits calibration_with_nothing 3 'empty: the calibration text is empty' pack $demo -o "$work/x" --format mxfp4 --calibrate "$work/empty"
exits data_of_nothing 3 'has nothing to learn: 0 documents' data $demo "$work/empty" -o "$work/x.h5"
echo '{"text": ""}' >"$work/empty.jsonl"
exits data_of_an_empty_text 3 'has nothing to learn: 1 documents' data $demo "$work/empty.jsonl" -o "$work/x.h5"
head -c 100 "$work/pairs.jsonl.zst" >"$work/cut.jsonl.zst"
exits data_cut_off 3 'ends within compressed data' data $demo "$work/cut.jsonl.zst" -o "$work/x.h5"
exits data_nowhere 3 'No such file' data $demo "$work/text" -o "$work/no/x.h5"
exits data_onto_a_directory 3 'no regular file' data $demo "$work/text" -o "$work/a"
(ulimit -f 4; exits data_on_a_full_disk 3 'File too large|No space' data $demo "$work/text" -o "$work/x.h5" --sequence 32; exit $failed) || failed=1
number=$((number + 1))
gzip -nc "$work/pairs.jsonl" >"$work/pairs.jsonl.gz"
cp "$work/pairs.csv" "$work/D.CSV"
exits data_of_gzip 3 'pairs.jsonl.gz: is gzip; unpack it' data $demo "$work/pairs.jsonl.gz" -o "$work/x.h5"
exits data_of_safetensors 3 'is safetensors; a model is no text' data $demo $demo/model.safetensors -o "$work/x.h5"
exits data_of_a_data_file 3 'is a file of millrace data; train --data takes it' data $demo "$work/text.h5" -o "$work/x.h5"
exits data_of_a_device_without_end 3 '/dev/full: has NUL bytes' data $demo /dev/full -o "$work/x.h5"
"$millrace" data $demo /dev/full --from text -o "$work/x.h5" -q 2>"$work/err" &
pid=$!
until [ "$(sed -n 's/^rchar: //p' /proc/$pid/io)" -gt 20000000 ]; do kill -0 $pid || break; done 2>/dev/null
kill -INT $pid
wait $pid
ok a_text_without_end_is_interrupted test $? = 130
# An added token that the tokenizer has and the model has not.
mkdir "$work/more" && cp $demo/* "$work/more" && sed -i 's/"added_tokens": *\[/&{"id": 2048, "content": "<|pad|>", "special": true}, /' "$work/more/tokenizer.json"
printf '{"text": "the mill"}\n{"text": "the mill<|pad|>"}\n' >"$work/pad.jsonl"
echo 'the mill<|pad|>' >"$work/pad.txt"
exits data_of_a_token_beyond_the_model 3 "pad.jsonl: document 2: token 2048 is outside the model's vocabulary of 2048; leave it out" data "$work/more" "$work/pad.jsonl" -o "$work/x.h5"
exits calibration_of_a_token_beyond_the_model 3 "pad.txt: token 2048 is outside the vocabulary of 2048" pack "$work/more" -o "$work/x" --format mxfp4 --calibrate "$work/pad.txt"
ok refused_data_leaves_nothing test -z "$(find "$work" -name 'x.h5*')"

# ---- refusals of train
exits train_data_in_other_windows 2 '--sequence 16: the windows of .*text.h5 have 32 tokens' train $demo --data "$work/text.h5" --sequence 16 -o "$work/x" --steps 1
exits train_data_that_is_other 2 'began with another text' train $demo --data "$work/named.h5" --sequence 16 --batch 2 -o "$work/b" --steps 3
cp "$work/text.h5" "$work/bad.h5"
printf '\377' | dd of="$work/bad.h5" bs=1 seek=3000 conv=notrunc status=none
exits train_data_damaged 3 'its checksum is wrong; make it again' train $demo --data "$work/bad.h5" -o "$work/x" --steps 1
for at in 3 512 515; do
    cp "$work/text.h5" "$work/bad" # another name than HDF5's
    printf '\210' | dd of="$work/bad" bs=1 seek=$at conv=notrunc status=none
    exits "train_data_damaged_at_$at" 3 'make it again with millrace data' train $demo --data "$work/bad" -o "$work/x" --steps 1
done
head -c 300 "$work/text.h5" >"$work/bad"
exits train_data_cut_at_300 3 'not as long as it was' train $demo --data "$work/bad" -o "$work/x" --steps 1
cp "$work/text" "$work/text-by-name.h5"
exits train_on_a_text_that_is_called_h5 3 'is no HDF5 file that can be read' train $demo --data "$work/text-by-name.h5" -o "$work/x" --steps 1
exits train_on_gzip 3 'pairs.jsonl.gz: is gzip; unpack it' train $demo --data "$work/pairs.jsonl.gz" -o "$work/x" --steps 1
exits train_on_safetensors 3 'is safetensors' train $demo --data $demo/model.safetensors -o "$work/x" --steps 1
exits train_on_a_csv_in_capitals 3 'D.CSV: is CSV by its name' train $demo --data "$work/D.CSV" -o "$work/x" --steps 1
exits train_on_a_device_without_end 3 '/dev/full: has NUL bytes' train $demo --data /dev/full -o "$work/x" --steps 1
exits eval_of_gzip 3 'pairs.jsonl.gz: is gzip' eval $demo --perplexity "$work/pairs.jsonl.gz" -d model:
exits eval_of_a_csv_in_capitals 3 'D.CSV: is CSV by its name' eval $demo --perplexity "$work/D.CSV" -d model:
exits compare_of_json_lines 3 'pairs.jsonl: is JSON lines by its name' compare $demo --file "$work/pairs.jsonl"
exits calibration_of_json_lines 3 'pairs.jsonl: is JSON lines by its name' pack $demo -o "$work/x" --format mxfp4 --calibrate "$work/pairs.jsonl"
exits compare_of_gzip 3 'pairs.jsonl.gz: is gzip' compare $demo --file "$work/pairs.jsonl.gz"
exits calibration_of_gzip 3 'pairs.jsonl.gz: is gzip' pack $demo -o "$work/x" --format mxfp4 --calibrate "$work/pairs.jsonl.gz"
mkdir "$work/texts" && cp "$work/text" "$work/texts/a.txt"
cp "$work/pairs.jsonl" "$work/own.jsonl" && ln "$work/own.jsonl" "$work/same.jsonl"
cp -r $demo "$work/own"
exits data_over_its_own_input 2 'is the input, which would be replaced' data $demo "$work/own.jsonl" -o "$work/own.jsonl"
"$millrace" data $demo - -o "$work/own.jsonl" --from jsonl <"$work/own.jsonl" 2>"$work/err"
ok data_over_its_standard_input grep -q 'is the input, which would be replaced' "$work/err"
exits data_over_it_by_another_name 2 'is the input, which would be replaced' data $demo "$work/own.jsonl" -o "$work/same.jsonl"
exits pack_over_its_model 2 '--output .*model.safetensors: is the input' pack "$work/own" -o "$work/own/model.safetensors"
exits trace_over_its_models_configuration 2 '--svg .*config.json: is the input' trace "$work/own" --svg "$work/own/config.json"
exits rows_over_the_text_to_learn 2 '--csv .*own.jsonl: is the input' train $demo --data "$work/own.jsonl" -o "$work/x" --csv "$work/own.jsonl"
ok the_model_is_as_it_was diff -r $demo "$work/own"
ok its_input_is_as_it_was cmp "$work/pairs.jsonl" "$work/own.jsonl"
exits train_on_a_directory_of_texts 3 "has 0 .h5 files; .* 'cat .*/texts/\*.txt \|' and '-'" train $demo --data "$work/texts" -o "$work/x" --steps 1
mkdir "$work/model" && cp $demo/* "$work/model" && sed -i 's/<|endoftext|>/<|endofbook|>/g' "$work/model/tokenizer.json"
exits train_data_of_another_tokenizer 3 'made with another tokenizer' train "$work/model" --data "$work/text.h5" -o "$work/x" --steps 1
ok refused_trainings_leave_nothing test ! -e "$work/x"
done_testing
