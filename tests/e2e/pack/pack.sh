#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pack and unpack: reports, formats, what is refused and what is left then. Prints TAP.
set -u
. tests/tools/tap.sh
. tests/tools/json.sh
demo=models/demo
"$millrace" pack $demo "$work/demo.mill" -q || echo "# pack failed"
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
ok json_of_pack is_json pack $demo "$work/again.mill" --json
exits rates_of_a_small_model_have_a_small_unit 0 '^read 8.41 MB in .*[0-9] [kMG]B/s;' pack models/demo "$work/rate.mill" --stats
exits directory_that_does_not_exist 3 'nowhere: there is no such directory; give' pack nowhere "$work/x.mill"
cp -r $demo "$work/nan"
head -c 200 /dev/zero | tr '\0' '\377' | dd of="$work/nan/model.safetensors" bs=1 seek=$(($(stat -c %s "$work/nan/model.safetensors") - 200)) conv=notrunc 2>/dev/null
exits calibration_by_itself_of_weights_that_are_none 3 'calibration: the reference has no finite logit' pack "$work/nan" "$work/nan.mill" --calibrate self
ok it_leaves_no_file test -z "$(ls "$work"/nan.mill* 2>/dev/null)"
# Weights of nothing but zeros: nothing is lost, and nothing divides by their size.
cp -r $demo "$work/zeros"
begin=$((8 + $(od -An -N8 -tu8 "$work/zeros/model.safetensors")))
size=$(stat -c %s "$work/zeros/model.safetensors")
truncate -s $begin "$work/zeros/model.safetensors"
truncate -s "$size" "$work/zeros/model.safetensors"
exits a_report_of_zeros_has_no_error 0 'matrices against the checkpoint: relative error 0[.]000e[+]00, inf dB$' pack "$work/zeros" "$work/zeros.mill" --report
exits zeros_have_no_decibels_in_json 0 '^    "snr_db": null' pack "$work/zeros" "$work/zeros.mill" --report --json
ln -s nowhere "$work/dangling"
exits pack_into_a_dangling_link 3 'dangling: is a link to what is not there; remove it' pack $demo "$work/dangling"
ok the_link_is_still_there test -L "$work/dangling"
exits pack_into_a_directory 2 'is a directory' pack $demo "$work"
exits unpack_of_a_directory 2 'only a packed file' unpack $demo "$work/new"
exits unpack_into_a_full_directory 3 'is not empty' unpack "$work/demo.mill" "$work"
exits unpack_without_a_name 2 'name of the directory' unpack "$work/demo.mill"
exits pack_without_a_name 2 'name of the packed file' pack $demo
exits pack_where_nothing_can_be_written 3 'No such file' pack $demo "$work/none/x.mill"
exits pack_of_a_packed_file 2 "'$work/demo.mill' is packed already" pack "$work/demo.mill" "$work/demo2.mill"
ok nothing_is_left_behind test -z "$(ls "$work" | grep -E 'mill\.')"
done_testing
