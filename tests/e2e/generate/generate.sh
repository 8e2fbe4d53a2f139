#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# millrace generate: where the prompt comes from, what ends the text, batches, saved KV stores, what a
# terminal sees. Prints TAP; runs from the repository's root on the model in models/demo.
set -u
. tests/tools/tap.sh
demo=models/demo
gen() { timeout 600 "$millrace" generate -m $demo "$@"; }
model() { gen -d model: "$@"; }

# ---- the prompt
model -p "And the king said" -n 12 >"$work/want"
model "And the king said" -n 12 >"$work/a"
ok prompt_as_an_argument cmp "$work/want" "$work/a"
printf 'And the king said' >"$work/prompt"
model -f "$work/prompt" -n 12 >"$work/a"
ok prompt_from_a_file cmp "$work/want" "$work/a"
model -n 12 <"$work/prompt" >"$work/a"
ok prompt_from_standard_input cmp "$work/want" "$work/a"
exits prompt_as_argument_and_option 2 "'x' is one argument too many" generate -m $demo -p y x

model "And the king said" -n 12 --no-echo >"$work/a"
ok no_echo_prints_what_is_new test "And the king said$(cat "$work/a")" = "$(cat "$work/want")"

# An interruption while it is awaited. Before the file is open nobody writes to it; then it ends behind the signal.
mkfifo "$work/typed"
for words in none "And the king"; do
    rm -f "$work/err"
    "$millrace" generate $demo -d model: -f "$work/typed" >"$work/a" 2>"$work/err" &
    pid=$!
    if [ "$words" = none ]; then
        # Once it catches signals, which bit 1 says, and waits.
        until [ "$(grep -cE '^Name:\s+millrace$|^State:\s+S|^SigCgt:.*[2367abef]$' /proc/$pid/status)" = 3 ]; do kill -0 $pid || break; done 2>/dev/null
        kill -INT $pid
        # Where it came to open the file only after the signal it needs somebody who writes.
        while kill -0 $pid 2>/dev/null; do sleep 0.1 && : <>"$work/typed"; done
    else
        exec 7>"$work/typed"
        printf '%s' "$words" >&7
        kill -INT $pid
        exec 7>&-
    fi
    wait $pid
    ok "interrupted_while_reading_$words" test $? = 130 -a "$(cat "$work/err")" = "millrace: interrupted"
done

# ---- what ends it
text=$(cat "$work/want")
model "And the king said" -n 12 --stop ", Go" >"$work/a"
ok stop_string_ends_the_text test "$(cat "$work/a")" = "${text%%, Go*}"
model "And the king said" -n 12 --stop nothing --stop "him" --stop ", Go" >"$work/a"
ok first_of_several_stop_strings test "$(cat "$work/a")" = "${text%%him*}"
model "And the LORD spake" -n 60 --stop '\n' --json >"$work/a"
ok stop_string_may_be_a_line_end grep -q '"stop": "stop_string"' "$work/a"
ok text_before_the_line_end bash -c "! grep '\"text\"' '$work/a' | grep -q '\\\\n'"
exits stop_with_an_unknown_escape 2 'a backslash is for' generate -m $demo x --stop '\x'
exits stop_that_is_empty 2 "'stop' is empty" generate -m $demo x --stop ''
# shellcheck disable=SC2046
exits stop_too_often 2 'more than 16 times' generate -m $demo x $(yes -- '--stop a' | head -17)
model "And the king said" -n 12 --repetition-penalty 1.3 >"$work/a"
ok repetition_penalty_changes_the_text bash -c "! cmp -s '$work/want' '$work/a'"
model "And the king said" -n 12 --repetition-penalty 1 >"$work/a"
ok repetition_penalty_of_one_does_not cmp "$work/want" "$work/a"
model "And the king said" -n 12 --frequency-penalty 1 --presence-penalty 0.5 >"$work/a"
ok frequency_penalty_changes_the_text bash -c "! cmp -s '$work/want' '$work/a'"
exits frequency_penalty_of_three 2 'not a number from' generate -m $demo x --frequency-penalty 3
exits repetition_penalty_of_zero 2 'not a number from' generate -m $demo x --repetition-penalty 0

# ---- a seed that was not given is drawn, said, and gives the same text again
sampled() { "$millrace" generate $demo "And the king said" -d model: -n 24 --temperature 1.2 "$@"; }
sampled >"$work/a" 2>"$work/err"
ok seed_that_was_drawn_is_said grep -qE '^millrace: sampled with --seed [0-9]+, ' "$work/err"
seed=$(sed -n 's/.*--seed \([0-9]*\),.*/\1/p' "$work/err")
sampled --seed "$seed" >"$work/b" 2>"$work/err"
ok seed_that_was_drawn_repeats_the_text cmp "$work/a" "$work/b"
ok seed_that_was_given_is_not_said test ! -s "$work/err"
sampled -q >"$work/a" 2>"$work/err"
ok drawn_seed_is_not_said_with_q test ! -s "$work/err"
for i in 1 2 3 4; do sampled --json -q 2>&1 | sed -n 's/.*"seed": *\([0-9]*\).*/\1/p'; done | sort -u >"$work/seeds"
ok seeds_that_are_drawn_differ test "$(wc -l <"$work/seeds")" -ge 3
ok greedy_text_has_no_seed bash -c "! '$millrace' generate $demo x -d model: -n 1 --json 2>&1 | grep -q seed"

# ---- whole characters, whatever the tokens are
model "And" -n 200 --temperature 8 --seed 5 --ignore-eos >"$work/a"
ok text_is_utf8 iconv -f UTF-8 -t UTF-8 -o /dev/null "$work/a"
ok text_had_broken_characters grep -q $'\xef\xbf\xbd' "$work/a"
"$millrace" generate -m $demo -d model: --json -n 2 <<<$'\xff\xfe' >"$work/a"
ok json_of_a_prompt_that_is_no_utf8 grep -q $'"prompt": "\xef\xbf\xbd\xef\xbf\xbd' "$work/a"

# ---- batches
for i in $(seq 20); do
    case $((i % 4)) in
        0) echo "And the king said" ;;
        1) echo "In the beginning God created the heaven and the earth. And the earth was $i" ;;
        2) printf 'The LORD\r\n' ;;
        3) echo "He said unto them, $i" ;;
    esac
done >"$work/prompts"
sampling=(-n 9 --temperature 0.9 --seed 4)
# Each line as a call of its own would have it.
n=0
while IFS= read -r line; do
    n=$((n + 1))
    [ $n -le 6 ] || break
    "$millrace" generate -m $demo -d model: -p "${line%$'\r'}" "${sampling[@]}" --json </dev/null |
        sed -n 's/^  "text": \(.*\),$/\1/p'
done <"$work/prompts" >"$work/alone"
model --batch "$work/prompts" "${sampling[@]}" >"$work/one" 2>"$work/err"
ok batch_has_a_line_for_each_prompt test "$(wc -l <"$work/one")" = 20 -a ! -s "$work/err"
ok batch_is_in_order test "$(sed 's/^{"line":\([0-9]*\),.*/\1/' "$work/one" | tr '\n' ' ')" = "$(seq -s' ' 20) "
sed -n '1,6s/.*"text":\(".*"\),"tokens".*/\1/p' "$work/one" >"$work/a"
ok batch_gives_each_line_what_it_gets_alone diff "$work/alone" "$work/a"
gen -d model:tiny,units=3 --sequences 2 --batch - "${sampling[@]}" --stats <"$work/prompts" >"$work/three" 2>"$work/err"
ok units_and_sequences_change_nothing cmp "$work/one" "$work/three"
ok all_units_work test "$(grep -cE '^unit [0-2]: [1-9][0-9]* tokens' "$work/err")" = 3
ok batch_statistics grep -qE '^20 prompts \(0 failed\), [0-9]+ new tokens on 3 units' "$work/err"
gen -d model:tiny,units=2 --batch <(head -4 "$work/prompts") -n 9 --stats >/dev/null 2>"$work/err"
ok a_short_batch_is_for_all_units test "$(grep -cE '^unit [01]: [1-9][0-9]* tokens' "$work/err")" = 2
gen -d sim:tiny,units=2 --batch <(head -3 "$work/prompts") "${sampling[@]}" >"$work/a"
ok batch_on_the_simulated_rtl cmp "$work/a" <(head -3 "$work/one")
printf 'And\n\n%s\nThe' "$(head -c 3000 $demo/heldout.txt | tr '\n' ' ')" >"$work/bad"
model --batch "$work/bad" -n 2 >"$work/a" 2>"$work/err"
ok batch_with_bad_lines_says_so test $? = 3 -a "$(cat "$work/err")" = "millrace: 2 of 4 prompts failed; their lines say why"
ok bad_lines_have_their_error test "$(sed -n 2p "$work/a")" = '{"line":2,"prompt":"","error":"the prompt is empty; give at least one token"}' \
    -a "$(sed -n 3p "$work/a" | grep -c '"error":"the prompt has .* positions')" = 1
ok good_lines_beside_bad_ones test "$(grep -c '"text"' "$work/a")" = 2
model --batch <(echo And) -n 2 --stop ' ' >"$work/a"
ok text_of_a_batch_may_be_empty grep -q '"text":"","tokens":\[[0-9, ]*\],"prompt_tokens":1,"stop":"stop_string"' "$work/a"
# Longer than what waits to be written; nobody is sent to lines that are not there.
model --batch <(head -c 9000 $demo/heldout.txt | tr '\n' ' ') -n 2 >/dev/full 2>"$work/err"
ok full_disk_ends_a_batch_of_long_lines test "$? $(cat "$work/err")" = "3 millrace: standard output: No space left on device"
# Others are at work when a line finds the disk full, as runs of 8 tokens let no two lines end together: they end without a word of their own.
gen -d model:tiny --sequences 2 --batch "$work/prompts" -n 40 --ignore-eos >/dev/full 2>"$work/err"
ok full_disk_ends_the_lines_under_way test "$? $(cat "$work/err")" = "3 millrace: standard output: No space left on device"
: >"$work/none"
ok batch_of_nothing model --batch "$work/none"
exits batch_that_is_not_there 3 'No such file or directory; name a file' generate -m $demo -d model: --batch "$work/no"
exits batch_that_is_a_directory 3 'Is a directory; name a file' generate -m $demo -d model: --batch "$work"
exits batch_and_prompt 2 'exclude each other' generate -m $demo -p x --batch y
exits batch_with_a_store 2 'no KV store' generate -m $demo --batch y --save-kv z
exits sequences_without_a_batch 2 'goes with --batch' generate -m $demo -p x --sequences 2
exits batch_on_too_little_memory 3 'its memory of 0.00 MB is too small' generate -m $demo -d model:,capacity=1K --batch "$work/prompts"
exits batch_on_no_units 2 'units' generate -m $demo -d model:units=0 --batch "$work/none"
exits prompts_on_no_units 2 'units' generate -m $demo -d model:units=0 --batch "$work/prompts"
yes "And the king said" | head -400 >"$work/many"
model --batch "$work/many" -n 30 --ignore-eos 2>"$work/err" | head -c 40 >/dev/null
ok closed_pipe_ends_a_batch test "${PIPESTATUS[0]}" = 141 -a ! -s "$work/err"
# An earlier test's output would end the wait before the program is there: the signal would meet the shell's own child,
# which removes $work.
rm -f "$work/a"
"$millrace" generate -m $demo -d model:units=2 --batch "$work/many" -n 400 --ignore-eos >"$work/a" 2>"$work/err" &
pid=$!
for _ in $(seq 3000); do [ -s "$work/a" ] && break || sleep 0.1; done
kill -INT $pid
wait $pid
ok interrupt_ends_a_batch test $? = 130 -a "$(cat "$work/err")" = "millrace: interrupted"
ok interrupted_batch_has_whole_lines test -z "$(grep -vE '^\{.*\}$' "$work/a")"

# ---- KV stores
head -c 500 $demo/heldout.txt >"$work/long"
model -f "$work/long" -n 15 --save-kv "$work/kv" >"$work/want"
for device in model:wide sim:tiny; do
    gen -d $device --load-kv "$work/kv" -n 15 --stats >"$work/a" 2>"$work/err"
    ok "loaded_store_goes_on_on_${device/:/_}" test "$(cat "$work/long" "$work/a")" = "$(cat "$work/want")"
    ok "loaded_store_runs_one_token_on_${device/:/_}" grep -q '^prefill: 1 token in 1 device run' "$work/err"
done
model --load-kv "$work/kv" " And then" -n 5 >"$work/a"
model -p "$(cat "$work/long") And then" -n 5 >"$work/b"
ok text_behind_a_loaded_store test "$(cat "$work/long" "$work/a")" = "$(cat "$work/b")"
ok loaded_text_is_not_repeated test "$(head -c 9 "$work/a")" = " And then"
model --load-kv "$work/kv" " And then" --save-kv "$work/kv2" -n 1 >/dev/null
model --load-kv "$work/kv2" -n 5 >"$work/c"
ok stores_can_be_continued test " And then$(cat "$work/c")" = "$(cat "$work/a")"
head -c 1000 "$work/kv" >"$work/short"
exits store_that_is_truncated 3 'is truncated or too long: 1000 bytes' generate -m $demo -d model: --load-kv "$work/short"
{ head -c 5000 "$work/kv"; printf X; tail -c +5002 "$work/kv"; } >"$work/flipped"
exits store_that_is_damaged 3 'is damaged \(checksum\)' generate -m $demo -d model: --load-kv "$work/flipped"
exits store_of_another_format 3 'another model' generate -m $demo -d model: --format mxfp4 --load-kv "$work/kv"
exits store_with_two_passes 3 'without --two-pass' generate -m $demo -d model: --two-pass --load-kv "$work/kv"
exits store_that_is_none 3 'is not a saved KV store' generate -m $demo -d model: --load-kv Makefile
exits store_on_cpu 3 'fp32' generate -m $demo -d cpu: --load-kv "$work/kv"
cp "$work/kv" "$work/kv3"
model --load-kv "$work/kv3" " And then" --save-kv "$work/kv3" -n 1 >/dev/null
ok a_store_may_replace_the_one_it_continues cmp "$work/kv2" "$work/kv3"
exits store_where_nothing_can_be_written 3 'No such file' generate -m $demo -d model: -p x --save-kv "$work/no/kv"
exits store_on_standard_output 2 'standard output is not for files' generate -m $demo -p x --save-kv -

# ---- who looks
on_terminal() { TERM=xterm timeout 600 script -qec "$1" /dev/null </dev/null >"$work/out"; }
on_terminal "NO_COLOR= $millrace generate -m $demo -d model: -p And -n 2"
ok prompt_is_bold_on_a_terminal grep -q $'\e\\[1mAnd\e\\[0m' "$work/out"
on_terminal "NO_COLOR=1 $millrace generate -m $demo -d model: -p And -n 2"
ok no_color_is_heeded bash -c "! grep -q \$'\e\[[0-9;]*m' '$work/out'"
on_terminal "$millrace generate $demo -d model: -n 2"
ok typed_prompt_is_asked_for grep -q 'type the prompt; Ctrl-D' "$work/out"
on_terminal "$millrace generate $demo -d model: -n 2 -f $work/prompts"
ok prompt_from_a_file_is_not_asked_for bash -c "! grep -q 'type the prompt' '$work/out'"
on_terminal "$millrace generate $demo -d model: -n 2 -q"
ok typed_prompt_is_not_asked_for_with_q test "$(grep -c 'type the prompt' "$work/out")$(grep -c 'the prompt is empty' "$work/out")" = 01
head -c 3000 $demo/heldout.txt >"$work/too-long"
on_terminal "NO_COLOR=1 $millrace generate $demo -d model: -n 2 -q -f $work/too-long"
ok prompt_that_does_not_fit_is_not_shown bash -c \
    "[ \$(wc -l <'$work/out') = 1 ] && grep -qE '^millrace: the prompt has [0-9]+ tokens, the model has 512 positions' '$work/out'"
on_terminal "$millrace generate -m $demo -d model: --batch $work/prompts -n 2"
ok batch_shows_progress_on_a_terminal grep -q '20 prompts done' "$work/out"
model -p And -n 2 -v >"$work/a" 2>"$work/err"
ok verbose_says_what_is_done test "$(grep -c '^millrace: ' "$work/err")" = 2
ok no_escapes_without_a_terminal bash -c "! cat '$work/a' '$work/err' | grep -q \$'\e'"
done_testing
