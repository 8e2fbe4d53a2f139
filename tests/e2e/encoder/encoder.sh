#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What an encoder answers: embed, fill-mask and classify on cpu:, and what they refuse. Prints TAP; runs from the
# repository's root.
set -u
. tests/tools/tap.sh
. tests/tools/bert.sh

encoder plain BertModel
encoder words BertForMaskedLM
encoder labels BertForSequenceClassification ',"id2label":{"0":"no","1":"maybe","2":"yes"}'
encoder tags BertForTokenClassification ',"id2label":{"0":"O","1":"NAME"}'
encoder many BertForSequenceClassification ',"problem_type":"multi_label_classification","num_labels":4'

# refused STATUS WORDS ARGUMENTS...: one line on standard error, none on standard output.
refused() {
    local status=$1 words=$2
    shift 2
    "$millrace" "$@" >"$work/out" 2>"$work/err" </dev/null
    [ $? = "$status" ] && [ ! -s "$work/out" ] && [ "$(wc -l <"$work/err")" = 1 ] && grep -qF -e "$words" "$work/err" && return
    sed 's/^/# /' "$work/out" "$work/err" | head -8
    return 1
}
# near FILE FILE: the same numbers, but for the last digits.
near() {
    paste -d' ' "$1" "$2" | awk '{ n = NF / 2; for (i = 1; i <= n; i++) { d = $i - $(i + n); if (d * d > 1e-10) exit 1; seen++ } } END { exit !seen }'
}
row() { # MODEL TEXT [OPTIONS]
    "$millrace" embed "$work/$1" "${@:2}"
}

# ---- embed
row plain "the mill stands" >"$work/one"
ok a_row_has_n_embd_numbers test "$(wc -w <"$work/one")" = 20
ok a_row_has_length_1 awk '{ for (i = 1; i <= NF; i++) s += $i * $i; exit !(s > 0.99999 && s < 1.00001) }' "$work/one"
row plain $'THE m\xc3\xafll  stands' >"$work/loud"
ok case_and_accents_are_lost cmp "$work/loud" "$work/one"
printf 'the mill stands\nthe water runs where the wheel turns, and runs\n\nthe\n' >"$work/lines"
row plain -f "$work/lines" >"$work/four"
ok a_line_for_each_text test "$(wc -l <"$work/four")" = 4
head -1 "$work/four" >"$work/first"
ok texts_do_not_change_each_other near "$work/one" "$work/first"
row plain "the mill stands" --no-normalize >"$work/raw"
ok without_normalising_it_is_longer awk '{ for (i = 1; i <= NF; i++) s += $i * $i; exit !(s > 1.1) }' "$work/raw"
row plain "the mill stands" --pooling cls >"$work/cls"
ok cls_is_not_the_mean bash -c "! cmp -s '$work/cls' '$work/one'"
cp -r "$work/plain" "$work/st"
mkdir "$work/st/1_Pooling"
cat >"$work/st/modules.json" <<'END'
[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
 {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
 {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]
END
echo '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}' >"$work/st/1_Pooling/config.json"
echo '{"max_seq_length": 6}' >"$work/st/sentence_bert_config.json"
cp -r "$work/labels" "$work/st-labels"
cp "$work/st/sentence_bert_config.json" "$work/st-labels"
row st "the" >"$work/st-row"
row plain "the" --pooling cls >"$work/cls-row"
ok the_directory_says_how_rows_become_one cmp "$work/st-row" "$work/cls-row"
row st "the" --pooling mean >"$work/st-mean"
row plain "the" >"$work/mean-row"
ok unless_an_option_does cmp "$work/st-mean" "$work/mean-row"
TERM=xterm timeout 600 script -qec "$millrace embed $work/plain" /dev/null </dev/null >"$work/out"
ok no_text_is_awaited_of_a_terminal test $? = 2 -a "$(grep -c 'the text is missing' "$work/out")" = 1
ok json_has_tokens_and_numbers bash -c "'$millrace' embed '$work/plain' the --json | grep -qE '^\{\"text\":\"the\",\"tokens\":3,\"embedding\":\[-?[0-9.e-]+(,-?[0-9.e-]+){19}\]\}$'"
yes the | head -n 300 | "$millrace" embed "$work/plain" --json >/dev/full 2>"$work/err"
ok json_on_a_full_disk_is_one_message test $? = 3 -a "$(cat "$work/err")" = 'millrace: standard output: No space left on device'

# ---- on the engine
# The smallest cosine of lines with those of the other file is above 0.999.
alike() {
    paste -d' ' "$1" "$2" | awk '{ s = a = b = 0; n = NF / 2; for (i = 1; i <= n; i++) { s += $i * $(i + n); a += $i * $i; b += $(i + n) * $(i + n) }
        if (!(s > 0.999 * sqrt(a * b))) exit 1 } END { exit NR == 0 }'
}
row plain -f "$work/lines" -d model:sim >"$work/model-four"
ok an_engine_answers_as_the_reference alike "$work/four" "$work/model-four"
ok but_for_its_rounding bash -c "! cmp -s '$work/four' '$work/model-four'"
row plain "the mill stands" -d model:wide >"$work/model-one"
ok texts_share_a_run_without_a_change bash -c "head -1 '$work/model-four' | cmp - '$work/model-one'"
row plain "the" -d model:tiny >"$work/model-the"
row plain "the" -d sim:tiny >"$work/sim-the"
ok the_rtl_gives_the_c_models_bits cmp "$work/sim-the" "$work/model-the"
ok and_any_geometry_the_same bash -c "tail -1 '$work/model-four' | cmp - '$work/model-the'"
long="the water runs where the wheel turns, and runs"
row plain "$long" -d model:sim >"$work/model-long"
row plain "$long" -d sim:tiny >"$work/sim-long"
ok a_text_of_several_runs_has_the_same_bits cmp "$work/sim-long" "$work/model-long"
# far FILE FILE: the mean square of the differences.
far() {
    paste -d' ' "$1" "$2" | awk '{ n = NF / 2; for (i = 1; i <= n; i++) { d = $i - $(i + n); s += d * d } } END { printf "%.9e", s / NR }'
}
row plain -f "$work/lines" -d model:sim --two-pass >"$work/twice-four"
ok two_passes_are_nearer awk -v a="$(far "$work/four" "$work/twice-four")" -v b="$(far "$work/four" "$work/model-four")" 'BEGIN { exit !(a > 0 && a < b / 1.5) }'
row plain "$long" -d model:tiny --two-pass >"$work/twice-tiny"
row plain "$long" -d model:sim --two-pass >"$work/twice-long"
ok two_passes_have_the_same_bits_on_any_geometry cmp "$work/twice-tiny" "$work/twice-long"
row plain -f "$work/lines" -d model:sim --two-pass --calibrate "$work/lines" >"$work/calibrated"
ok calibrated_weights_are_nearer awk -v a="$(far "$work/four" "$work/calibrated")" -v b="$(far "$work/four" "$work/twice-four")" 'BEGIN { exit !(a > 0 && a < b) }'
"$millrace" classify "$work/labels" "the mill" >"$work/label"
"$millrace" classify "$work/labels" "the mill" -d model:sim >"$work/model-label"
ok labels_come_from_the_engine_too bash -c "cut -d' ' -f2 '$work/label' | cmp - <(cut -d' ' -f2 '$work/model-label')"

# ---- texts that are too long
ok refuses_texts_too_long_for_an_encoder refused 3 'too long: the model reads 6' embed "$work/st" "the water runs where the wheel turns"
printf '%s\n' the mill "the water runs where the wheel turns" the >"$work/third"
ok their_line_is_named refused 3 'third: line 3: a text of 20 tokens is too long' embed "$work/st" -f "$work/third"
ok and_where_lines_are_answered_one_by_one bash -c "'$millrace' classify '$work/st-labels' -f '$work/third' 2>&1 >'$work/out' | grep -q 'third: line 3: a text of 20 tokens' && test \$(wc -l <'$work/out') = 2"
ok refuses_a_line_without_an_end refused 3 'line 1 has more than 64 MiB' embed "$work/plain" -f /dev/zero
ok truncate_cuts_them bash -c "'$millrace' embed '$work/st' 'the water runs where the wheel turns' --truncate --json | grep -q '\"tokens\":6'"

# ---- fill-mask
"$millrace" fill-mask "$work/words" "the [MASK] stands where the [MASK] runs" -k 3 >"$work/filled"
ok words_for_each_mask test "$(grep -c '^0\.[0-9]* ..*$' "$work/filled")" = 6
ok the_likeliest_first bash -c "head -3 '$work/filled' | sort -rnc"
ok json_has_masks bash -c "'$millrace' fill-mask '$work/words' 'the [MASK]' -k 2 --json | grep -qE '\"masks\":\[\[\{\"word\":.*\},\{.*\}\]\]\}$'"
cp -r "$work/words" "$work/padded" && head -n 420 "$work/words/vocab.txt" >"$work/padded/vocab.txt"
"$millrace" fill-mask "$work/padded" "the [MASK] and [MASK]" -k 100 --json >"$work/filled"
ok a_token_without_text_has_an_empty_word test "$(grep -oE '"word":"",' "$work/filled" | wc -l) $(grep -o '"token"' "$work/filled" | wc -l)" = "2 200"
ok refuses_texts_without_a_mask refused 2 'no [MASK]' fill-mask "$work/words" "the mill"

# ---- classify
ok a_label_by_its_name bash -c "'$millrace' classify '$work/labels' 'the mill' | grep -qE '^0\.[0-9]{4} (no|maybe|yes)$'"
sum() { # of the probabilities of a text's labels
    "$millrace" classify "$work/$1" "the mill" --json | grep -oE '":[0-9.e-]+' | cut -c3- | awk '{ s += $1 } END { print s }'
}
ok probabilities_sum_to_1 awk -v s="$(sum labels)" 'BEGIN { exit !(s > 0.9999 && s < 1.0001) }'
ok but_not_where_labels_are_independent awk -v s="$(sum many)" 'BEGIN { exit !(s > 0 && (s < 0.999 || s > 1.001)) }'
encoder single BertForSequenceClassification ',"id2label":{"0":"only"}'
ok a_single_label_is_not_certain awk -v s="$(sum single)" 'BEGIN { exit !(s > 0 && s < 0.999) }'
"$millrace" classify "$work/labels" "the mill" --pair "the wheel" --json >"$work/pair"
"$millrace" classify "$work/labels" "the mill the wheel" --json >"$work/whole"
ok a_pair_is_not_one_text bash -c "! cmp -s <(cut -d, -f2- '$work/pair') <(cut -d, -f2- '$work/whole')"
printf '%s\n' "the mill" "the wheel" "the" >"$work/firsts"
printf '%s\n' "the wheel" "the" "the mill" >"$work/seconds"
"$millrace" classify "$work/labels" -f "$work/firsts" --pair-file "$work/seconds" --json >"$work/pairs"
ok a_pair_is_in_json grep -q '^{"text":"the mill","pair":"the wheel","labels":' "$work/pair"
ok pairs_of_two_files test "$(head -1 "$work/pairs")" = "$(cat "$work/pair")" -a "$(wc -l <"$work/pairs")" = 3
echo "the" >>"$work/firsts"
printf 'the mill\nthe\n' | "$millrace" classify "$work/labels" --pair "the wheel" --json >"$work/pairs"
ok one_pair_of_all_texts test "$(head -1 "$work/pairs")" = "$(cat "$work/pair")" -a "$(grep -c '"pair":"the wheel"' "$work/pairs")" = 2
pair_of() { "$millrace" classify "$work/st-labels" "the" --pair "$@" --json | sed 's/.*"labels"//'; }
ok the_longer_text_of_a_pair_is_cut test "$(pair_of "the the the the" --truncate)" = "$(pair_of "the the")" -a -n "$(pair_of "the the")"
ok refuses_a_text_without_its_pair refused 3 'seconds has fewer lines' classify "$work/labels" -f "$work/firsts" --pair-file "$work/seconds"
ok refuses_a_pair_without_its_text refused 3 'firsts has more lines' classify "$work/labels" -f "$work/seconds" --pair-file "$work/firsts"
ok refuses_one_input_for_texts_and_pairs refused 2 'name a file' classify "$work/labels" --pair-file -
ok refuses_one_input_that_is_named_twice refused 2 'name a file' classify "$work/labels" -f - --pair-file -
ok refuses_pairs_of_no_texts refused 3 'seconds has more lines than standard input' classify "$work/labels" --pair-file "$work/seconds"
ok refuses_texts_of_no_pairs refused 3 'standard input has fewer lines than' classify "$work/labels" -f "$work/seconds" --pair-file -
ok refuses_pairs_of_one_text refused 2 'pair-file goes with' classify "$work/labels" the --pair-file "$work/seconds"
ok each_token_has_its_label bash -c "'$millrace' classify '$work/tags' 'the the' | cut -d' ' -f3 | tr '\n' ' ' | grep -qxF '[CLS] the the [SEP] '"
ok each_token_is_in_json bash -c "'$millrace' classify '$work/tags' 'the the' --json | grep -o '\"token\":\"[^\"]*\"' | cut -d: -f2 | tr -d '\n' | grep -qxF '\"[CLS]\"\"the\"\"the\"\"[SEP]\"'"

ok several_labels_by_their_probability bash -c "'$millrace' classify '$work/labels' 'the mill' --top 9 | awk '{ exit !(NF == 6 && \$1 >= \$3 && \$3 >= \$5 && \$1 + \$3 + \$5 > 0.999) }'"
# Weights that are all 0 find all labels as likely: they come in their own order, each once.
cp -r "$work/labels" "$work/no-weights"
head=$(($(od -An -tu8 -N8 "$work/labels/model.safetensors") + 8))
head -c $head "$work/labels/model.safetensors" >"$work/no-weights/model.safetensors"
truncate -s "$(stat -c %s "$work/labels/model.safetensors")" "$work/no-weights/model.safetensors"
ok labels_of_one_probability_are_in_their_order test "$("$millrace" classify "$work/no-weights" the --top 3)" = '0.3333 no  0.3333 maybe  0.3333 yes'
ok several_labels_of_each_token bash -c "'$millrace' classify '$work/tags' 'the the' --top 2 | awk 'NF != 5 { bad = 1 } END { exit bad || NR != 4 }'"

# ---- what is in them
"$millrace" info "$work/labels" >"$work/info" 2>"$work/err"
ok info_of_an_encoder test $? = 0 -a ! -s "$work/err"
ok info_has_its_labels grep -qxF '  classify   3 labels a text: no, maybe, yes' "$work/info"
encoder ten BertForTokenClassification ',"id2label":{"0":"a","1":"b","2":"c","3":"d","4":"e","5":"f","6":"g","7":"h","8":"i","9":"j"}'
ok info_of_one_label bash -c "'$millrace' info '$work/single' | grep -qxF '  classify   1 label a text: only'"
ok info_of_many_labels bash -c "'$millrace' info '$work/ten' | grep -qxF '  classify   10 labels a token: a, b, c, d, e, f, g, h, ...'"
ok info_of_pooling bash -c "'$millrace' info '$work/st' | grep -qxF '  embed      pooling cls' && '$millrace' info '$work/plain' | grep -qxF '  embed      pooling mean'"
ok info_of_masked_words bash -c "'$millrace' info '$work/words' | grep -q '^  fill-mask '"
exits info_of_thousands_of_parameters 0 '^.*/plain: BERT, an encoder, [0-9.]+ thousand parameters without heads \(safetensors\)$' info "$work/plain"
exits info_of_a_drawn_encoder 0 '^synthetic:minilm-l6,layers=2: BERT, an encoder, 15\.5 million parameters without heads \(synthetic\)$' info synthetic:minilm-l6,layers=2
ok which_reads_texts_and_has_no_store bash -c "grep -qxF '  vocabulary 30522 (no tokenizer), positions 512, texts of at most 512 tokens' '$work/out' && ! grep -qE 'KV|a token reads|embed |classify' '$work/out'"
exits and_runs_in_its_format 0 '^  runs on    engines, in mxfp4; a run reads weights of [0-9.]+ MB ' info synthetic:minilm-l6,layers=2 --format mxfp4
"$millrace" info synthetic:minilm-l6,layers=2 --json >"$work/drawn"
"$millrace" info "$work/plain" --json >"$work/json"
ok its_json_has_an_encoders_keys bash -c "cmp <(grep -o '^  \"[a-z_]*\"' '$work/drawn') <(grep -o '^  \"[a-z_]*\"' '$work/json') && grep -q '\"max_tokens\": 512' '$work/drawn'"
cp -r "$work/plain" "$work/cut" && truncate -s 100 "$work/cut/model.safetensors"
ok info_of_weights_that_are_cut_off refused 3 'cut/model.safetensors' info "$work/cut"
ok info_of_labels_of_tokens bash -c "'$millrace' info '$work/tags' --json | grep -q '\"labels_tokens\": *true'"

# ---- packed files
for m in plain words labels tags st; do "$millrace" pack "$work/$m" "$work/$m.mill" -q || exit 1; done
packed() { # MODEL COMMAND..: a file answers as its directory
    local m=$1
    shift
    cmp <("$millrace" "$1" "$work/$m" "${@:2}" -d model:sim) <("$millrace" "$1" "$work/$m.mill" "${@:2}" -d model:sim)
}
ok a_packed_file_embeds_alike packed plain embed -f "$work/lines"
ok with_the_directorys_pooling_and_length packed st embed "the" --json
ok which_refuses_what_is_too_long refused 3 'too long: the model reads 6' embed "$work/st.mill" "the water runs where the wheel turns" -d model:tiny
ok a_packed_file_fills_alike packed words fill-mask "the [MASK] stands" --json
ok a_packed_file_classifies_alike packed labels classify "the mill" --pair "the wheel" --json
ok and_each_token packed tags classify "the the"
ok an_engine_in_rtl_takes_it cmp <("$millrace" embed "$work/plain.mill" "the" -d sim:tiny) "$work/model-the"
"$millrace" pack "$work/plain" "$work/near.mill" --calibrate "$work/lines" -q
printf ' \n' >"$work/blank"
exits a_line_without_words_calibrates_too 0 '^.*/blank.mill: [0-9]* bytes, weights mxint8, smoothed, calibrated, [0-9]* bytes read for each run$' pack "$work/plain" "$work/blank.mill" --calibrate "$work/blank"
exits its_rate_is_that_of_an_encoder 0 'a plain read of the same takes' pack "$work/plain" "$work/rate.mill" --stats
ok calibration_is_kept cmp <("$millrace" embed "$work/near.mill" -f "$work/lines" -d model:sim --two-pass) "$work/calibrated"
ok info_tells_it_apart bash -c "'$millrace' info '$work/near.mill' | grep -qE '^  file +[0-9.]+ [kM]B \([0-9]+ bytes\), version 1, calibrated$'"
ok info_knows_its_labels bash -c "'$millrace' info '$work/labels.mill' | grep -qxF '  classify   3 labels a text: no, maybe, yes'"
ok plan_takes_it bash -c "cmp <('$millrace' plan '$work/plain' --length 6 --json | grep -v '"model"') <('$millrace' plan '$work/plain.mill' --length 6 --json | grep -v '"model"')"
head -c -1 "$work/labels.mill" >"$work/short.mill"
ok verify_finds_a_short_file refused 3 'is truncated' info "$work/short.mill" --verify
ok refuses_a_packed_encoder_on_cpu refused 3 'name an engine' embed "$work/plain.mill" the
ok refuses_to_calibrate_a_packed_encoder refused 2 'packed already' embed "$work/plain.mill" the -d model:tiny --calibrate "$work/lines"
ok refuses_an_encoder_in_fp4 refused 3 'mxint8 alone' pack "$work/plain" "$work/fp4.mill" --format mxfp4
ok refuses_to_unpack_an_encoder refused 2 'is an encoder' unpack "$work/plain.mill" "$work/unpacked"
ok writes_nothing_then test ! -e "$work/fp4.mill" -a ! -e "$work/unpacked"
ok refuses_to_generate refused 3 'writes none' generate -m "$work/plain.mill" -p the
ok refuses_to_train_a_packed_encoder refused 2 'is packed already' train "$work/labels.mill" -o "$work/state" --data "$work/lines" -d model:tinyt --steps 1

# ---- what a run takes
# The smallest model that there is beside a decoder's options.
ok plan_of_texts bash -c "'$millrace' plan '$work/plain' --length 6 --batch 4 --config tiny | grep -qE '^4 texts of 6 tokens: [0-9]+ cycles'"
ok plan_of_texts_as_json bash -c "'$millrace' plan '$work/plain' --length 2,6 --json | grep -c '\"kind\": *\"texts\"' | grep -qx 2"
ok trace_of_a_text bash -c "'$millrace' trace '$work/plain' --length 6 | tail -1 | grep -q 'are those of the device.s counters'"
ok plan_of_a_text_in_a_short_model bash -c "'$millrace' plan '$work/plain' --config tiny | grep -qE '^1 text of 64 tokens: [0-9]+ cycles'"
ok plan_of_an_encoder_in_mxfp4 refused 2 'it has texts (--length, --batch) in mxint8' plan "$work/plain" --length 6 --format mxfp4
ok plan_of_a_text_without_a_length bash -c "'$millrace' plan synthetic:bert-base --config sim | grep -qE '^1 text of 128 tokens: [0-9]+ cycles'"
ok refuses_a_decoders_options_for_an_encoder refused 2 'BERT is an encoder' plan "$work/plain" --prefill 3
ok refuses_texts_of_a_decoder refused 2 '--length goes with --train, or with an encoder' plan models/demo --length 3
ok refuses_texts_longer_than_an_encoder refused 2 'the model has' plan "$work/plain" --length 4096
ok refuses_memory_too_small_for_an_encoder refused 3 'do not stream' plan synthetic:bert-base --capacity 0.01
ok refuses_a_prompt_in_a_trace_of_an_encoder refused 2 'BERT is an encoder' trace "$work/plain" --prefill 3
ok refuses_a_text_in_a_trace_of_a_decoder refused 2 'of an encoder' trace models/demo --length 3

# ---- what they refuse
ok refuses_fill_mask_without_its_head refused 3 'no head for masked words' fill-mask "$work/plain" "the [MASK]"
ok refuses_classify_without_its_head refused 3 'no classifier' classify "$work/words" "the"
ok refuses_calibration_by_itself_of_an_encoder refused 2 'writes no text to calibrate with' embed "$work/plain" the -d model: --calibrate self
: >"$work/empty"
ok refuses_an_empty_calibration_of_an_encoder refused 3 'calibration text is empty' embed "$work/plain" the -d model: --calibrate "$work/empty"
cp -r "$work/plain" "$work/wordless"
rm "$work/wordless/vocab.txt"
ok refuses_to_calibrate_an_encoder_without_its_words refused 3 "an encoder's calibration needs its WordPiece tokenizer" pack "$work/wordless" "$work/none.mill" --calibrate "$work/lines"
ok refuses_two_passes_of_the_reference refused 2 'two-pass is of an engine' embed "$work/plain" the --two-pass
ok refuses_to_calibrate_the_reference refused 2 'calibrate is of an engine' embed "$work/plain" the --calibrate "$work/empty"
ok refuses_no_device refused 2 'nowhere' embed "$work/plain" the -d nowhere:
ok refuses_a_writer_of_text_as_an_encoder refused 3 'GPT-J writes text' embed models/demo the
for command in generate eval; do
    case $command in
    generate) more=(the) ;;
    eval) more=(--perplexity "$work/lines") ;;
    *) more=() ;;
    esac
    ok "refuses_an_encoder_in_$command" refused 3 'BERT reads texts and writes none' $command "$work/plain" "${more[@]}"
done
echo '[{"path": "", "type": "x.Transformer"}, {"path": "2_Dense", "type": "x.Dense"}]' >"$work/st/modules.json"
ok refuses_other_modules refused 3 'x.Dense' embed "$work/st" the
echo '[{"path": "../plain", "type": "x.Pooling"}]' >"$work/st/modules.json"
ok refuses_a_pooling_outside_the_directory refused 3 'is not a folder' embed "$work/st" the
echo '[{"path": "/1_Pooling", "type": "x.Pooling"}]' >"$work/st/modules.json"
ok refuses_a_pooling_at_another_place refused 3 'is not a folder' embed "$work/st" the
echo '[{"type": "x.Pooling"}]' >"$work/st/modules.json"
ok refuses_a_pooling_without_a_folder refused 3 'module 0 of modules.json, "x.Pooling", is not' embed "$work/st" the
echo '[{"path": "1_Pooling"}]' >"$work/st/modules.json"
ok refuses_a_module_of_no_type refused 3 'module 0 of modules.json, "?", is not' embed "$work/st" the
echo '[{"path": "1_Pooling", "type": "Pooling"}]' >"$work/st/modules.json"
for kind in '_cls_token": true' '": "cls"' '_mean_tokens": true' '": "mean"'; do # old and new words for each
    echo "{\"pooling_mode$kind}" >"$work/st/1_Pooling/config.json"
    "$millrace" embed "$work/st" the | cksum
done >"$work/kinds"
ok two_words_for_a_kind_of_pooling test "$(uniq -c "$work/kinds" | awk '{ print $1 }' | tr '\n' ' ')" = '2 2 '
echo '{}' >"$work/st/1_Pooling/config.json"
ok refuses_no_kind_of_pooling refused 3 'pooling "" is not supported' embed "$work/st" the
echo '[{"path": "1_Pooling", "type": "x.Pooling"}]' >"$work/st/modules.json"
echo '{"pooling_mode_max_tokens": true}' >"$work/st/1_Pooling/config.json"
ok refuses_other_kinds_of_pooling refused 3 'max_tokens' embed "$work/st" the
echo '{"pooling_mode": "mean", "pooling_mode_cls_token": true}' >"$work/st/1_Pooling/config.json"
ok refuses_two_kinds_of_pooling refused 3 'has several kinds, "mean" and "cls_token"' embed "$work/st" the
echo '["mean"]' >"$work/st/1_Pooling/config.json"
ok refuses_a_pooling_that_is_no_object refused 3 'has no object in config.json, for its pooling' embed "$work/st" the
echo '{"pooling_mode": ' >"$work/st/1_Pooling/config.json"
ok refuses_a_pooling_that_is_no_json refused 3 'config.json: is no JSON: ' embed "$work/st" the
echo '{"path": "1_Pooling", "type": "x.Pooling"}' >"$work/st/modules.json"
ok refuses_modules_that_are_no_list refused 3 'modules.json is an object where an array is expected' embed "$work/st" the
echo '[{"path": "1_Pooling", "type": "x.Pooling"}]' >"$work/st/modules.json"
echo '{"max_seq_length": "x"}' >"$work/st/sentence_bert_config.json"
echo '{"pooling_mode_cls_token": true}' >"$work/st/1_Pooling/config.json"
ok refuses_a_limit_that_is_no_number refused 3 'max_seq_length' embed "$work/st" the
for limit in 2 1048577; do
    echo "{\"max_seq_length\": $limit}" >"$work/st/sentence_bert_config.json"
    ok "refuses_a_limit_of_$limit" refused 3 'is no number of tokens' embed "$work/st" the
done
encoder gaps BertForSequenceClassification ',"id2label":{"0":"no","2":"yes"}'
ok refuses_labels_with_a_gap refused 3 'has no name for label 1' classify "$work/gaps" the
mkdir "$work/twice"
cp "$work/labels/"*.json "$work/labels/vocab.txt" "$work/twice"
cp "$work/labels/model.safetensors" "$work/twice/a.safetensors"
header='{"classifier.bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}'
{ printf "\\x$(printf %x ${#header})\0\0\0\0\0\0\0%s" "$header"; head -c 12 /dev/zero; } >"$work/twice/b.safetensors"
echo '{"weight_map":{"bert.embeddings.LayerNorm.bias":"a.safetensors","classifier.bias":"b.safetensors"}}' >"$work/twice/model.safetensors.index.json"
ok refuses_a_head_that_is_there_twice refused 3 'b.safetensors: tensor classifier.bias occurs twice' classify "$work/twice" the
cp -r "$work/gaps" "$work/crowd"
sed -i 's/"id2label":{[^}]*}/"id2label":{'"$(seq 0 4096 | sed 's/.*/"&":"&"/' | paste -sd,)"'}/' "$work/crowd/config.json"
ok refuses_labels_beyond_what_is_supported refused 3 '"id2label" has 4097 labels; at most 4096 are supported' classify "$work/crowd" the
sed -i 's/"id2label":{[^}]*}/"id2label":["no","yes"]/' "$work/gaps/config.json"
ok refuses_labels_in_a_list refused 3 '"id2label" is an array where an object is expected' classify "$work/gaps" the
encoder one-type BertForSequenceClassification ',"type_vocab_size":1'
ok refuses_pairs_of_an_encoder_with_one_type refused 3 'one type of tokens: it reads no pairs' classify "$work/one-type" the --pair the
cp -r "$work/words" "$work/maskless"
sed -i 's/^\[MASK\]$/[HIDE]/' "$work/maskless/vocab.txt"
ok refuses_to_fill_without_a_mask_token refused 3 'tokenizer has no [MASK]' fill-mask "$work/maskless" "the [MASK]"
cp -r "$work/plain" "$work/wordy"
echo superfluous >>"$work/wordy/vocab.txt"
ok refuses_more_words_than_the_model_has refused 3 "the tokenizer has ids up to 425, but the model's vocabulary has 425" embed "$work/wordy" the
printf 'a superfluous stream\nthe mill\n' >"$work/extra"
ok refuses_such_a_word_in_its_calibration refused 3 'extra: token 425 is outside the vocabulary of 425' pack "$work/wordy" "$work/none.mill" --calibrate "$work/extra"
# without_numbers MODEL NAME BYTES: a copy whose last bytes are no numbers.
without_numbers() {
    cp -r "$work/$1" "$work/$2"
    head -c "$3" /dev/zero | tr '\0' '\377' | dd of="$work/$2/model.safetensors" bs=1 seek=$(($(stat -c %s "$work/$2/model.safetensors") - $3)) conv=notrunc 2>/dev/null
}
without_numbers plain nan 80
ok refuses_to_embed_by_weights_that_are_no_numbers refused 3 'a number that is none; its weights are at fault' embed "$work/nan" the
without_numbers words nan-words 4
ok refuses_to_fill_by_them refused 3 'a number that is none; its weights are at fault' fill-mask "$work/nan-words" "the [MASK]"
without_numbers labels nan-labels 4
ok refuses_to_classify_by_them refused 3 'a number that is none; its weights are at fault' classify "$work/nan-labels" the
without_numbers tags nan-tags 4
ok refuses_to_classify_tokens_by_them refused 3 'a number that is none; its weights are at fault' classify "$work/nan-tags" the --json
ok refuses_to_pack_an_encoders_norm_of_no_numbers refused 3 'LayerNorm.bias: element 0 is infinite or NaN' pack "$work/nan" "$work/none.mill"
ok nothing_is_left_of_those_files test -z "$(ls "$work"/none* 2>/dev/null)"
cp -r "$work/plain" "$work/bytes"
rm "$work/bytes/vocab.txt"
cp models/demo/tokenizer.json "$work/bytes"
ok refuses_an_encoder_with_a_tokenizer_of_bytes refused 3 'byte-level BPE, not WordPiece' embed "$work/bytes" the
ok refuses_to_calibrate_it refused 3 "an encoder's calibration needs its WordPiece tokenizer" pack "$work/bytes" "$work/none.mill" --calibrate "$work/lines"
encoder short BertModel '' 2
ok refuses_to_calibrate_an_encoder_of_two_positions refused 3 'tokenizer and three positions' pack "$work/short" "$work/none.mill" --calibrate "$work/lines"
rm "$work/plain/vocab.txt"
ok refuses_a_calibration_without_a_tokenizer refused 3 "an encoder's calibration needs its WordPiece tokenizer" pack "$work/plain" "$work/none.mill" --calibrate "$work/lines"
ok refuses_an_encoder_without_a_tokenizer refused 3 'vocab.txt' embed "$work/plain" the
done_testing
