#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# millrace eval: perplexity against compare, questions, refusals. The numbers themselves are held by
# tests/unit/cli/test_eval.c. Prints TAP; runs from the repository's root on the model in models/demo.
set -u
. tests/tools/tap.sh
demo=models/demo
ev() { timeout 600 "$millrace" eval $demo "$@"; }
field() { sed -n "s/^ *\"$1\": \([^,]*\),\{0,1\}$/\1/p" "$work/out"; }

# ---- perplexity
ev --perplexity $demo/heldout.txt -n 257 --json >"$work/out" # 256 rows: one step that they fill
loss=$(field nats_per_token)
"$millrace" compare $demo --file $demo/heldout.txt -n 257 --json >"$work/out"
ok loss_is_that_of_compare test "$loss" = "$(field loss_device)"
ev --perplexity $demo/heldout.txt -n 200 --window 64 --stride 16 --json >"$work/out"
ok windows_are_counted test "$(field windows) $(field tokens | head -1) $(field stride)" = "10 199 16"
# Each window by itself: tokens that others have scored are taken off again.
ev --perplexity $demo/heldout.txt -n 200 --window 64 --stride 63 --sequences 3 >"$work/a"
ev --perplexity - -n 200 --window 64 --stride 63 --sequences 1 --chunk 5 -d model:wide <$demo/heldout.txt >"$work/b"
ok sequences_and_chunks_change_nothing cmp <(head -2 "$work/a") <(head -2 "$work/b")
ev --perplexity $demo/heldout.txt -n 200 --window 200 --stride 100 >"$work/b"
ok context_helps test "$(sed -n 's/^perplexity *\([0-9]*\).*/\1/p' "$work/a")" -gt "$(sed -n 's/^perplexity *\([0-9]*\).*/\1/p' "$work/b")"
ev --perplexity $demo/heldout.txt -n 12 -d sim:tiny >"$work/a"
ev --perplexity $demo/heldout.txt -n 12 >"$work/b"
ok simulated_rtl_gives_the_same_perplexity cmp <(head -2 "$work/a") <(head -2 "$work/b")

# ---- questions
cat >"$work/q" <<'Q'
{"context": "And the LORD said unto", "choices": ["Moses", "banana", "him"], "gold": 0}
{"context": "And he said unto them, ", "choices": ["banana", "Go"], "gold": 0}

{"context": "And the LORD said unto", "continuation": " Moses"}
{"context": "", "continuation": "And the"}
Q
ev --tasks "$work/q" --details "$work/details" --json >"$work/out"
ok questions_are_counted test "$(field questions | tr '\n' ' ')" = "2 2 "
ok accuracies test "$(field acc | tr '\n' ' ')" = "0.5 0.5 "
ok long_and_short_choices test "$(field acc_norm)" = 1.0 # "banana" is the worse, but less so a letter
ok standard_error test "$(field acc_stderr | tr '\n' ' ')" = "0.5 0.5 "
ok details_have_a_line_for_each test "$(cut -d, -f1 "$work/details" | tr -d '{}\n')" = '"line":1"line":2"line":4"line":5'
ok details_say_what_was_chosen test "$(grep -c '"gold":0,"chosen":[01],' "$work/details")" = 2
ev --tasks - --sequences 1 -d sim:tiny --details "$work/again" <"$work/q" >"$work/out"
ok simulated_rtl_gives_the_same_answers cmp "$work/details" "$work/again"
ok summary_is_a_table test "$(grep -cE '^  acc(_norm|_bytes)? +(0\.5000 \+- 0\.5000|1\.0000 \+- 0\.0000)' "$work/out")" = 4

# Questions of one kind have a summary of that kind.
kind() { ev --tasks - "$@"; }
ok choices_alone_have_no_cloze test "$(sed -n 1p "$work/q" | kind | grep -cE '^multiple choice |^cloze |perplexity')" = 1
ok cloze_alone_has_no_choices test "$(sed -n 4p "$work/q" | kind | grep -cE '^multiple choice |acc_norm|^cloze ')" = 1
ok choices_alone_in_json test "$(sed -n 1p "$work/q" | kind --json | grep -cE '"acc"|"perplexity"')" = 1
ok cloze_alone_in_json test "$(sed -n 4p "$work/q" | kind --json | grep -cE '"acc"|"acc_norm"')" = 1

# ---- refusals
exits eval_of_nothing 2 'either --perplexity FILE or --tasks FILE' eval $demo
exits eval_of_both 2 'either' eval $demo --perplexity x --tasks y
exits eval_text_missing 3 'No such file' eval $demo --perplexity "$work/no"
exits eval_text_of_one_token 3 '/dev/fd/[0-9]*: one token is too short' eval $demo --perplexity <(printf 'a')
exits eval_window_beyond_the_model 3 'model has 512 positions' eval $demo --perplexity $demo/heldout.txt --window 513
exits eval_stride_as_long_as_the_window 2 'not below --window' eval $demo --perplexity $demo/heldout.txt --window 64 --stride 64
exits eval_window_of_questions 2 'goes with --perplexity' eval $demo --tasks "$work/q" --window 5
exits eval_details_of_a_text 2 'goes with --tasks' eval $demo --perplexity x --details y
exits eval_details_on_standard_output 2 'standard output is not for files' eval $demo --tasks "$work/q" --details -
exits eval_details_nowhere 3 'No such file' eval $demo --tasks "$work/q" --details "$work/no/x"
echo '{"context": "a", "choices": ["b"], "gold": 2}' >>"$work/q"
exits eval_question_malformed 3 'q: line 6: "gold" is not the number of a choice' eval $demo --tasks "$work/q"
rm "$work/details"
exits eval_details_only_when_all_is_well 3 'line 6' eval $demo --tasks "$work/q" --details "$work/details"
ok nothing_is_left_of_details test ! -e "$work/details"
mkdir "$work/endless"
cp $demo/*.json $demo/model.safetensors "$work/endless"
sed -i 's/"eos_token_id": *[0-9]*/"eos_token_id": null/' "$work/endless/config.json"
exits eval_without_a_context_or_an_end 2 'the context is empty, and the model has no end-of-text token' eval "$work/endless" --tasks <(echo '{"context": "", "continuation": "And"}')
sed -i '/"eos_token_id"/d' "$work/endless/config.json" # GPT-J's own, 50256, is beyond this vocabulary
exits eval_without_a_context_and_an_end_beyond_the_vocabulary 2 'the context is empty, and the model has no end-of-text token' eval "$work/endless" --tasks <(echo '{"context": "", "continuation": "And"}')
cp -r $demo "$work/nan"
head -c 200 /dev/zero | tr '\0' '\377' | dd of="$work/nan/model.safetensors" bs=1 seek=$(($(stat -c %s "$work/nan/model.safetensors") - 200)) conv=notrunc 2>/dev/null
exits eval_of_weights_that_are_no_numbers 3 'NaN|finite' eval "$work/nan" --tasks <(echo '{"context": "And", "continuation": "the"}')
exits eval_of_a_text_by_another_name 2 "option '--text' is not known; give --perplexity" eval $demo --text "$work/text" -d model:
done_testing
