#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Timelines of the demo model on the simulated device: they add up to the counters that bench prints,
# the files are what other programs read, wrong input is refused. Waves: tests/full/waves.sh.
set -u
. tests/tools/tap.sh
. tests/tools/bert.sh
demo=models/demo

cat >"$work/check.c" <<'C'
#include "unit/trace/trace_events.h"
// check TRACE.json [BENCH.json | train]: without a fault, and with the counters of bench's first
// point; commands of training take as long as their counters say, the one of the issue left out
int main(int n, char **v)
{
    json_t *trace = n > 1 ? json_load_file(v[1], JSON_REJECT_DUPLICATES, NULL) : NULL;
    int train = n > 2 && strcmp(v[2], "train") == 0, found[2];
    json_t *bench = n > 2 && !train ? json_load_file(v[2], JSON_REJECT_DUPLICATES, NULL) : NULL;
    const char *fault = trace ? events_fault(trace) : "no JSON", *name;
    json_t *point = json_array_get(json_object_get(bench, "points"), 0), *value;
    json_t *counters = json_object_get(json_object_get(trace, "otherData"), "counters");
    json_object_foreach(counters, name, value)
        if (bench && !fault && !json_equal(value, json_object_get(point, name)))
            fault = name;
    if (train && !fault) {
        json_int_t loads = event_commands(trace, "LOAD_ACT", &found[0]);
        json_int_t moves = event_commands(trace, "MOVE_ROWS", &found[1]);
        printf("# LOAD_ACT %d, %lld cycles; MOVE_ROWS %d, %lld\n", found[0], (long long)loads, found[1], (long long)moves);
        if (!found[0] || loads - event_int(counters, "act_loads") != found[0])
            fault = "LOAD_ACT";
        if (!found[1] || moves - event_int(counters, "move_busy") != found[1])
            fault = "MOVE_ROWS";
    }
    if (fault)
        printf("# %s: %s\n", v[1], fault);
    json_decref(trace);
    json_decref(bench);
    return fault != NULL;
}
C
${CC:-gcc} -Itests -o "$work/check" "$work/check.c" -ljansson || exit 1
is_picture() { [ "$(tail -1 "$1")" = "</svg>" ] && [ "$(wc -c <"$1")" -lt 200000 ] && grep -q "$2" "$1"; }

# ---- a token, and a prefill ----------------------------------------------------------------------
exits trace_up_to_a_cycle 0 '^  window      cycles 0 to 100 of [0-9]{5}$' trace $demo -d sim:tiny --decode 3 --chunk 64 --to 100
ok trace_says_nothing_with_q test -z "$("$millrace" trace $demo -d sim:tiny --decode 3 -q 2>&1)"
encoder plain BertModel
exits trace_of_an_encoder_has_a_text 0 'plain: a text of 64 tokens on sim:$' trace "$work/plain" -d sim:
exits trace_of_an_encoder_has_no_tokens 2 'BERT is an encoder: --length says how long its text is' trace "$work/plain" -d sim:tiny --decode 3
"$millrace" bench $demo -d sim: --decode 5 --json -q >"$work/bench.json"
exits trace_of_a_token 0 '' trace $demo --decode 5 --json "$work/t.json" --svg "$work/t.svg"
ok summary_has_the_cycles grep -qE '^  cycles +[0-9]{5,}$' "$work/out"
ok summary_has_the_units grep -qE '^  array +busy [0-9.]+ % weights' "$work/out"
ok token_adds_up_to_the_counters_of_bench "$work/check" "$work/t.json" "$work/bench.json"
ok picture_of_the_token is_picture "$work/t.svg" '>lm_head<'
ok commands_are_named grep -q '"name":"layer 3 fc_in"' "$work/t.json"
ok nothing_is_merged_in_a_small_run grep -q '"resolution":0' "$work/t.json"
"$millrace" bench $demo -d sim:sim,memory=hbm2 --prefill 6 --at 2 --json -q --no-head >"$work/bench.json"
exits trace_of_a_prefill 0 '' trace $demo -d sim:sim,memory=hbm2 --prefill 6 --at 2 --no-head \
    --json "$work/p.json" --max-events 1000
ok few_events_still_add_up "$work/check" "$work/p.json" "$work/bench.json"
ok merging_is_said_in_the_file grep -q 'were merged into slices named' "$work/p.json"
ok merging_is_said_to_the_user grep -q 'were merged (--max-events 1000)' "$work/out"
ok merged_file_is_smaller test "$(wc -c <"$work/p.json")" -lt 1000000

# ---- a part --------------------------------------------------------------------------------------
exits trace_of_cycles 0 '' trace $demo --from 1000 --to 3000 --json "$work/c.json" --svg "$work/c.svg"
ok cycles_are_cut "$work/check" "$work/c.json"
ok window_is_in_the_file grep -q '"from":1000,"to":3000' "$work/c.json"
exits trace_up_to_a_cycle 0 '' trace $demo --to 2000 --svg "$work/c.svg"
ok picture_says_up_to_where grep -q 'shown: cycles 0 to 2,000<' "$work/c.svg"
exits trace_of_weights_that_mean_nothing 0 'decode at position 5 on' trace synthetic:gpt2,layers=1,vocab=64 --decode 5
exits trace_of_a_layer 0 '' trace $demo --layer 2 --json "$work/l.json" --svg "$work/l.svg" --check
ok layer_is_cut "$work/check" "$work/l.json"
other_layers() { ! grep -q '"opcode":"MATMUL".*"layer":[013]' "$1" && grep -q '"opcode":"MATMUL".*"layer":2' "$1"; }
ok layer_has_its_matrices_and_no_other other_layers "$work/l.json"
ok picture_of_the_layer is_picture "$work/l.svg" '>out_proj<'

# ---- programs of training: a list, whose sums are those of plan ------------------------------------
exits trace_lists_training 0 '' trace $demo --train 40,7 -d model:tinyt
cp "$work/out" "$work/list"
"$millrace" plan $demo --train --rows 47 --length 40 --config tinyt >"$work/plan"
planned=$(awk '$1 == "all" { print $2 }' "$work/plan")
ok list_has_the_products_of_plan test "$(sed -nE 's/^  all .* programs +([0-9]+).*/\1/p' "$work/list")" = "${planned:-none}"
ok list_has_all_its_commands test "$(sed -nE 's/^  all +([0-9]+) commands.*/\1/p' "$work/list")" = \
    "$(grep -cE '^  [A-Z]' "$work/list")"
ok list_names_matrices grep -qE '^  MATMUL +fc_in +15 x 256 x 1024 -> activations, GELU, turned +[0-9]+' "$work/list"
ok list_has_attention_of_each_chunk grep -q '^layer 3, attention of .*, from row 32 on, 15 at a time$' "$work/list"
exits trace_lists_a_layer_of_training 0 '' trace $demo --train 40,7 -d model:tinyt --layer 4 --chunk 32
ok layer_of_the_list_is_no_other test -z "$(grep '^layer' "$work/out" | grep -v '^layer 4,')"
exits trace_lists_recomputation 0 'layer 0, forward again, from row 0 on, 32 at a time' trace $demo --train 40 -d model:tinyt --recompute
exits trace_of_training_of_a_device_without_it 2 "sim: cannot train; with ',train' it can" trace $demo --train 40
exits trace_of_training_with_too_few_rows 3 'tiny has 8 rows; training needs 32 at a time, which tinyt has$' trace $demo --train 40 -d model:tiny
exits trace_of_training_beyond_the_positions 2 'sequence of 600; the model has 512' trace $demo --train 600 -d model:tinyt
exits trace_of_training_of_no_layer 2 'layer 5: the model has layers 0..3' trace $demo --train 40 -d model:tinyt --layer 5
exits trace_of_a_list_to_a_cycle 2 'lists programs; a timeline needs -d sim:sim,train' trace $demo --train 40 -d model:tinyt --to 9
exits trace_of_a_list_as_a_picture 2 'lists programs; a timeline needs -d sim:sim,train' trace $demo --train 40 -d model:tinyt --svg "$work/t.svg"
exits trace_of_a_list_as_json 2 'lists programs; a timeline needs -d sim:sim,train' trace $demo --train 40 -d model:tinyt --json "$work/t.json"
exits trace_of_training_on_the_cpu 2 "draws what sim: does, or lists the programs of model:, not 'cpu:'" trace $demo --train 40 -d cpu:

# ---- training as it runs ---------------------------------------------------------------------------
learner=tests/fixtures/train/gptj-d12-r4
exits trace_of_training 0 '' trace $learner --train 20,9 -d sim:tinyt --json "$work/n.json" --svg "$work/n.svg"
ok training_says_what_the_array_waits_for grep -qE '^  the idle array waits for .*MOVE_ROWS [0-9.]+ %' "$work/out"
ok training_adds_up_to_the_counters "$work/check" "$work/n.json" train
ok training_is_drawn is_picture "$work/n.svg" '>MOVE_ROWS<'
ok commands_of_training_are_named grep -q '"name":"layer 1 dW fc_in"' "$work/n.json"
exits trace_of_a_layer_of_training 0 ': training, a micro-batch of 8 . 8 . 5 . 4 . \.\. tokens on sim:tinyt,train, layer 1$' trace $learner --train 8,8,5,4,4 -d sim:tinyt,train --layer 1 --json "$work/m.json"
ok layer_of_training_adds_up "$work/check" "$work/m.json" train
ok layer_of_training_is_no_other test -z "$(grep '"layer":0' "$work/m.json")" -a -n "$(grep '"layer":1' "$work/m.json")"
exits trace_of_a_window_of_training 0 '' trace $learner --train 20,9 -d sim:tinyt --from 1000 --to 9000 --json "$work/m.json"
ok window_of_training_is_cut "$work/check" "$work/m.json"
exits trace_of_training_before_anything_waits 0 '^  the idle array waits for nothing$' trace $learner --train 20,9 -d sim:tinyt --from 0 --to 1
exits trace_of_training_behind_its_end 2 'begins at cycle 900000000, but the programs' trace $learner --train 20 -d sim:tinyt --from 900000000

# ---- refusals ------------------------------------------------------------------------------------
exits trace_of_a_model_in_stages 2 'a timeline is of one device run, and this memory holds the model in stages; leave capacity= out' trace $demo -d sim:tiny,capacity=3700K --decode 3
exits trace_into_no_directory 3 '\-\-svg: .*none/t.svg: .*No such file' trace $demo --svg "$work/none/t.svg"
exits trace_into_no_directory_of_the_first_file 3 '\-\-json: .*none/t.json: .*No such file' trace $demo --json "$work/none/t.json" --svg "$work/t.svg"
exits trace_of_training_into_no_directory 3 '\-\-svg: .*none/t.svg: .*No such file' trace $demo --train 40 -d sim:tinyt --svg "$work/none/t.svg"
mkdir "$work/v.gtkw" # the view of "v"
exits trace_waves_whose_view_cannot_be_written 3 '\-\-fst: .*/v.gtkw: cannot be written: Is a directory' trace $demo -d sim:tiny --fst "$work/v" --from 0 --to 9
ln -s /dev/full "$work/full" # by a link: a fault here must not remove the device
exits trace_onto_a_full_disk 3 '\-\-json: .*/full: .*No space left' trace $demo --json "$work/full"
# The disk is full at the last bytes alone, which wait until the picture ends.
(ulimit -f $((($(stat -c %s "$work/c.svg") - 1) / 1024)); exits trace_onto_a_disk_that_is_full_at_the_end 3 '\-\-svg: .*/full.svg: .*File too large' trace $demo --to 2000 --svg "$work/full.svg"; exit $failed) || failed=1
number=$((number + 1))
ok nothing_is_left_of_it test -z "$(ls "$work" | grep 'full\.svg')"
ok device_of_a_failed_trace_is_not_removed test -L "$work/full"
exits trace_on_the_model 2 'no timeline: its cycles are not simulated' trace $demo -d model:
exits trace_on_the_cpu 2 'no timeline' trace $demo -d cpu: --json "$work/gone.json"
ok file_of_a_failed_trace_does_not_appear test ! -e "$work/gone.json"
# What was there before stays until a run has succeeded, and nothing else lies beside it.
mkdir "$work/old" && for f in svg json fst; do echo old >"$work/old/f.$f"; done
is_old() { for f in svg json fst; do [ "$(cat "$work/old/f.$f")" = old ] || return 1; done && [ "$(ls -A "$work/old" | wc -l)" = 3 ]; }
old=(--svg "$work/old/f.svg" --json "$work/old/f.json")
exits trace_that_fails_in_the_model 2 '512 positions' trace $demo --decode 512 "${old[@]}"
exits trace_that_fails_in_the_run 2 'begins at cycle 9000000' trace $demo --from 9000000 "${old[@]}"
exits trace_that_fails_in_an_output 3 '\-\-json: .*No space' trace $demo --svg "$work/old/f.svg" --json "$work/full"
ok old_files_outlive_a_failed_trace is_old
"$millrace" trace $demo --decode 500 "${old[@]}" >"$work/out" 2>"$work/err" &
pid=$!
until_simulating $pid && kill -TERM $pid
wait $pid
ok trace_can_be_interrupted test $? -ge 130
ok old_files_outlive_an_interrupted_trace is_old
ln -s f.svg "$work/old/link"
exits trace_in_place_of_an_old_file 0 '' trace $demo --svg "$work/old/link"
ok new_picture_is_where_the_link_points test -L "$work/old/link" -a "$(tail -1 "$work/old/f.svg")" = "</svg>"
exits trace_into_one_file_twice 2 'json and --svg name the same file' trace $demo --svg "$work/x" --json "$work/./x"
exits trace_into_one_file_by_a_link 2 'json and --svg name the same file' trace $demo --svg "$work/old/link" --json "$work/old/f.svg"
long=sim:$(printf '%5000s' '' | tr ' ' x)
exits trace_on_a_device_without_end 2 '^millrace: (x+|sim:x+)[.]{3}: too long$' trace $demo -d "$long"
exits trace_of_training_on_a_device_without_end 2 '^millrace: sim:x+[.]{3}: too long$' trace $demo --train 40 -d "$long"
exits trace_into_a_directory 3 'Is a directory' trace $demo --svg "$work/old"
exits trace_onto_standard_output 2 'standard output is not for files' trace $demo --json -
exits trace_waves_into_a_device 3 'not a regular file' trace $demo --fst "$work/full" --from 0 --to 9
exits trace_at_without_a_prefill 2 'goes with --prefill' trace $demo --at 0
exits trace_window_beyond_the_run 2 'begins at cycle 9000000, but the run has only' \
    trace $demo --from 9000000
exits trace_window_backwards 2 'not before' trace $demo --from 10 --to 10
exits trace_layer_that_is_not_there 2 'layers 0..3' trace $demo --layer 4
exits trace_layer_and_cycles 2 'exclude' trace $demo --layer 1 --from 5
exits trace_decode_and_prefill 2 'exclude' trace $demo --decode 1 --prefill 2
exits trace_of_more_than_a_run 2 'more than the 128' trace $demo --prefill 129
exits trace_of_more_than_a_run_of_two_passes 2 '5 tokens are more than the 4' trace $demo --prefill 5 --two-pass -d sim:tiny
exits trace_of_more_than_a_chunk 2 '3 tokens are more than the 2' trace $demo --prefill 3 --chunk 2 -d sim:tiny
exits trace_of_a_text_on_no_device 2 'sim:nothing,view: no such configuration' trace synthetic:minilm-l6,layers=1 --length 3 -d sim:nothing
exits trace_position_beyond_the_model 2 '512 positions' trace $demo --decode 512
exits trace_waves_without_a_window 2 '\-\-fst needs' trace $demo --fst "$work/w.fst"
exits trace_waves_without_a_window_by_a_short_name 2 '\-\-fst needs' trace $demo --fst w
exits trace_waves_without_an_end 2 '\-\-fst needs' trace $demo --fst "$work/w.fst" --from 5
exits trace_waves_of_too_much 2 'at most 100000' trace $demo --fst "$work/w.fst" --from 0 --to 100001
# A copy of the program where no simulated device lies near.
mkdir -p "$work/a/b/c" && cp "$millrace" "$work/a/b/c/millrace"
near=$millrace millrace=$work/a/b/c/millrace
exits trace_without_a_view_build 4 "make view-sim" trace $demo
MILLRACE_SIM_DIR=$(printf '%05000d' 0) exits trace_with_too_long_a_directory_of_simulators 4 "make view-sim" trace $demo
exits trace_without_a_tracing_build 4 "make trace-sim" trace $demo --fst "$work/w.fst" --from 0 --to 9
exits trace_waves_that_fail 4 "make trace-sim" trace $demo --fst "$work/old/f.fst" --from 0 --to 9
ok old_waves_outlive_a_failed_trace test "$(cat "$work/old/f.fst")" = old
millrace=$near
# ---- a view build that is older than the program: what it is, and what builds it again
cat >"$work/old.c" <<'C'
#include "sim/verilator/simlib.h"
static int open_sims;
static struct mr_sim *begin(const struct mr_sim_options *options, struct mr_error *err)
{
    (void)options, (void)err;
    open_sims++;
    return (struct mr_sim *)&open_sims;
}
static void end(struct mr_sim *sim) { (void)sim; }
static int get(struct mr_sim *sim, uint32_t at, uint32_t *value, struct mr_error *err)
{
    (void)sim, (void)err;
    *value = at == 0 ? 0x4E55524D : 1; // version 0.1
    return 0;
}
static double rate(const struct mr_sim *sim) { return sim ? 1 : 0; }
const struct mr_sim_api *mr_sim_get_api(void)
{
    static const struct mr_sim_api api = {.abi = MR_SIM_ABI OLDER, .channels = 1, .view = true, .config = "tiny", .open = begin,
        .close = end, .reg_read = get, .pin_rate = rate, .sequential_rate = rate};
    return &api;
}
C
echo 'const int none = 1;' >"$work/none.c" # without the function that gives the interface
stale() { # NAME SOURCE OPTION...
    ${CC:-gcc} -shared -fPIC -I. -Ihost/include -Ihost "${@:3}" -o "$work/libmillrace-sim-tiny-view.so" "$work/$2.c" || exit 1
    MILLRACE_SIM_DIR=$work "$millrace" trace $demo -d sim:tiny 2>"$work/err"
    local status=$?
    ok "$1" test "$status $(wc -l <"$work/err")" = "4 1" -a -n "$(grep "build it again with 'make view-tiny'" "$work/err")"
}
stale stale_view_build_names_its_target old -DOLDER=
stale stale_view_build_names_its_target_by_its_abi old -DOLDER=-1
stale stale_view_build_without_an_interface none
done_testing
