#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# millrace data for an encoder: texts with labels of TSV, CSV and JSON lines become one file; refusals. The file itself
# is tested in tests/unit/data/test_labels.c. Prints TAP; runs from the repository's root.
set -u
. tests/tools/tap.sh
. tests/tools/bert.sh
encoder plain BertModel
encoder labels BertForSequenceClassification ',"id2label":{"0":"bad","1":"good"}'
encoder tags BertForTokenClassification ',"id2label":{"0":"O","1":"NAME"}'
data() { # NAME [MODEL] OPTIONS...: $work/NAME.h5 of $work/NAME
    "$millrace" data "$work/$2" "$work/$1" -o "$work/$1.h5" "${@:3}" >"$work/$1.out"
}

# ---- the same texts, whatever they are written in
printf 'label\tsentence\n1\tthe mill stands\n0\tthe "water" runs, and runs\n1\tthe wheel turns\n' >"$work/a.tsv"
printf 'sentence,label\r\nthe mill stands,1\r\n"the ""water"" runs, and runs",0\r\nthe wheel turns,1\r\n' >"$work/a.csv"
printf '%s\n' '{"sentence": "the mill stands", "label": 1}' '{"label": 0, "sentence": "the \"water\" runs, and runs"}' '' \
    '{"sentence": "the wheel turns", "label": "1", "more": null}' >"$work/a.jsonl"
zstd -q "$work/a.tsv" -o "$work/a.tsv.zst"
for f in a.tsv a.csv a.jsonl a.tsv.zst; do data $f plain --text-field sentence; done
ok csv_is_the_same cmp "$work/a.tsv.h5" "$work/a.csv.h5"
ok lines_are_the_same cmp "$work/a.tsv.h5" "$work/a.jsonl.h5"
ok compressed_is_the_same cmp "$work/a.tsv.h5" "$work/a.tsv.zst.h5"
ok texts_are_counted grep -qE 'a.tsv.h5: 3 texts of at most 64 tokens, [0-9]+ tokens; labels: 0, 1$' "$work/a.tsv.out"
head -2 "$work/a.tsv" | cat - <(printf '0\t\n') >"$work/one.tsv"
data one.tsv plain --text-field sentence --labels bad,good
ok one_text_is_singular grep -qE 'one.tsv.h5: 1 text of at most 64 tokens' "$work/one.tsv.out"
cp "$work/a.tsv" "$work/named.tsv"
data named.tsv plain --text-field sentence --labels bad,good
ok labels_have_names grep -q 'labels: bad, good$' "$work/named.tsv.out"
ok names_are_in_the_file bash -c "! cmp -s '$work/a.tsv.h5' '$work/named.tsv.h5'"
cp "$work/a.tsv" "$work/own.tsv"
data own.tsv labels --text-field sentence
ok the_model_names_its_labels cmp "$work/own.tsv.h5" "$work/named.tsv.h5"

# ---- pairs, long and empty ones
printf '%s\n' '{"a": "the mill stands", "b": "the wheel turns", "c": "yes"}' '{"a": "the mill", "b": " \t ", "c": "yes"}' \
    '{"a": "the mill and the water and the wheel and the mill and the mill and the mill and the mill", "b": "the mill", "c": "no"}' >"$work/pairs.jsonl"
data pairs.jsonl plain --text-field a --pair-field b --label-field c --sequence 30 --json
ok pairs_are_read grep -qF '"texts": 2' "$work/pairs.jsonl.out"
ok long_ones_are_cut grep -qF '"cut": 1' "$work/pairs.jsonl.out"
ok empty_ones_are_passed_over grep -qF '"empty": 1' "$work/pairs.jsonl.out"
ok labels_are_sorted bash -c "tr -d '\n ' <'$work/pairs.jsonl.out' | grep -qF '[\"no\",\"yes\"]'"
"$millrace" data "$work/plain" "$work/pairs.jsonl" -o "$work/short.h5" --text-field a --pair-field b --label-field c --sequence 30 >"$work/out"
ok both_are_said grep -qF '; 1 cut; 1 empty, passed over; labels: no, yes' "$work/out"

# ---- refusals
x="-o $work/x.h5 --text-field sentence"
exits data_labels_without_the_text 3 "line 1: has no 'text'; name the fields with --text-field" data "$work/plain" "$work/a.tsv" -o "$work/x.h5"
exits data_labels_misspelt 3 "line 1: has no 'lable', but label" data "$work/plain" "$work/a.csv" $x --label-field lable
exits data_labels_without_the_pair 3 "line 1: has no 'sentence2', but sentence" data "$work/plain" "$work/a.jsonl" $x --pair-field sentence2
exits data_label_unknown 3 "a.tsv: line 2: label '1' is none of the 1: bad; --labels names others" data "$work/plain" "$work/a.tsv" $x --labels bad
printf 'label\tsentence\nfair\tthe mill\n' >"$work/fair.tsv"
exits data_label_of_many 3 "line 2: label 'fair' is none of the 9: a, b, c, d, e, f, g, h, ...; --labels names others" data "$work/plain" "$work/fair.tsv" $x --labels a,b,c,d,e,f,g,h,i
exits data_label_of_no_model 3 "line 2: label 'fair' is none of the 2: bad, good" data "$work/labels" "$work/fair.tsv" $x
exits data_of_one_label 3 "all texts have the label 'fair'" data "$work/tags" "$work/fair.tsv" $x
printf 'label\tsentence\n1\t\n' >"$work/none.tsv"
exits data_of_empty_texts 3 'has no text that is not empty' data "$work/plain" "$work/none.tsv" $x
: >"$work/nothing.tsv"
exits data_of_an_empty_file 3 'nothing.tsv: is empty; its first line names the columns' data "$work/plain" "$work/nothing.tsv" $x
exits data_labels_of_a_text 3 'is a plain text by its name, which has no labels' data "$work/plain" models/demo/heldout.txt $x
printf 'label\tsentence\ncaf\xe9\tthe mill\nno\tthe wheel\n' >"$work/latin.tsv"
exits data_labels_not_utf8 3 'is not of 1 to 63 bytes of UTF-8' data "$work/plain" "$work/latin.tsv" $x
exits data_labels_too_long 3 '--sequence 65: the model reads 64 tokens' data "$work/plain" "$work/a.tsv" $x --sequence 65
exits data_labels_too_short 3 '2 tokens are too few for any text' data "$work/plain" "$work/a.tsv" $x --sequence 2
exits data_labels_with_overlap 2 '--overlap is for windows of a text' data "$work/plain" "$work/a.tsv" $x --overlap 2
exits data_labels_with_positions 2 '--n-positions is for windows of a text' data "$work/plain" "$work/a.tsv" $x --n-positions 32
exits data_labels_twice 3 "label 'a' is there twice" data "$work/plain" "$work/a.tsv" $x --labels a,a
exits data_labels_of_a_decoder 2 '--labels is for the texts of an encoder' data models/demo "$work/a.tsv" $x --labels a,b
exits data_pairs_of_a_decoder 2 '--pair-field is for the texts of an encoder' data models/demo "$work/a.tsv" $x --pair-field b
exits data_label_field_of_a_decoder 2 '--label-field is for the texts of an encoder' data models/demo "$work/a.tsv" $x --label-field b
exits train_of_labels 3 "has texts with labels, which an encoder's classifier learns" train models/demo --data "$work/a.tsv.h5" -o "$work/x" --steps 1
ok nothing_is_left test ! -e "$work/x.h5"
done_testing
