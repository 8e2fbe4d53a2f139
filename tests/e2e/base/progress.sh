#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Waits are never silent: on a terminal the prompt stands there at once and a line says where the
# device is, within a step too; the text comes out as in a pipe, and a pipe gets nothing else.
# The simulated memory holds most handshakes back, so that a prompt takes seconds on any machine.
set -u
. tests/tools/tap.sh
demo=models/demo slow=sim:tiny,stalls=90,seed=1
long=sim:sim,stalls=90,seed=1 # a prompt is one step, of seconds
${CC:-gcc} -std=c17 -Wall -Wextra -Werror -o "$work/screen" tests/tools/screen.c || exit 1
head -c 300 $demo/heldout.txt | tr -d '\r' | tr '\n' ' ' >"$work/prompt"
generate="$millrace generate $demo -f $work/prompt -d $slow"

# on COLUMNS ROWS COMMAND: what the terminal got is in $work/tty, what it shows in $work/shown.
on() {
    SHELL=/bin/sh TERM=${TERMINAL:-xterm} NO_COLOR=1 timeout 600 script -qec "stty cols $1 rows $2; $3" /dev/null \
        </dev/null >"$work/tty"
    "$work/screen" "$1" "$2" <"$work/tty" >"$work/shown"
}
has() { grep -qE -e "$1" "$work/tty"; }
has_no() { ! grep -qE -e "$1" "$work/tty"; }

# ---- generate: prompt at once, progress beneath it, text untouched
"$millrace" generate $demo -f "$work/prompt" -d model: -n 3 >"$work/want"
$generate -n 3 --stats >"$work/out" 2>"$work/err"
ok pipe_has_the_text_only cmp "$work/out" "$work/want"
ok pipe_has_no_progress bash -c "! grep -qE 'layer|left|\x1b' '$work/err'"
cycles=$(grep -o '^prefill: .* device runs*, [0-9]* cycles' "$work/err")
on 61 7 "$generate -n 3 --stats"
ok progress_of_the_prompt has 'prompt: [0-9]+ of [0-9]+ tokens, layer [1-4] of 4, [0-9.]+ (thou|mil)'
ok text_is_untouched diff <(head -1 "$work/shown") "$work/want"
ok prompt_comes_before_the_progress test "$(head -c 20 "$work/tty")" = "$(head -c 20 "$work/prompt")"
ok progress_changes_no_cycle grep -qF "$cycles" "$work/shown"
on 40 3 "$generate -n 3"
ok progress_in_a_small_window has 'prompt: [0-9]+ of [0-9]+ tokens'
ok text_is_untouched_in_a_small_window diff "$work/shown" "$work/want"
# A number that were cut would be another one: a narrow line ends between words.
total=$(grep -oE 'prompt: [0-9]+ of [0-9]+ tokens' "$work/tty" | grep -oE '[0-9]+ tokens' | head -1)
on 16 5 "$generate -n 1"
ok narrow_progress_ends_with_a_word bash -c \
    "grep -oE 'prompt: [0-9]+ of( [0-9]+)?'\$'\e' '$work/tty' >'$work/ends' && ! grep -E '[0-9]'\$'\e' '$work/ends' | grep -qv ' of ${total% *}'\$'\e'"
# The output goes to a file, and the terminal has nothing but the line, taken off at the end.
on 80 24 "$generate -n 3 >$work/file"
ok progress_has_the_time_left has '(thousand|million) cycles, [0-9]+ (s|min) left'
ok file_has_the_text_only cmp "$work/file" "$work/want"
ok progress_is_taken_off test -z "$(tr -d '\n' <"$work/shown")"
on 80 24 "$generate -n 1 -q"
ok quiet_has_no_progress has_no $'layer|\x1b'
TERMINAL=dumb on 80 24 "$generate -n 1"
ok dumb_terminal_gets_no_progress has_no $'layer|\x1b'

# ---- Ctrl-C while the line is there: it goes, the error has a line of its own
mkfifo "$work/keys"
SHELL=/bin/sh TERM=xterm NO_COLOR=1 timeout 600 script -qefc \
    "stty cols 80 rows 24; trap : INT; $generate -n 400 --ignore-eos; echo status \$?" /dev/null <"$work/keys" >"$work/tty" &
exec 8>"$work/keys"
for _ in $(seq 6000); do grep -q 'layer' "$work/tty" 2>/dev/null && break || sleep 0.1; done
printf '\003' >&8
for _ in $(seq 6000); do grep -q 'status' "$work/tty" 2>/dev/null && break || sleep 0.1; done
exec 8>&-
wait $!
"$work/screen" 80 24 <"$work/tty" | sed 's/\^C//' >"$work/shown"
ok ctrl_c_leaves_no_progress bash -c "! grep -q layer '$work/shown'"
ok ctrl_c_keeps_the_prompt test "$(head -c 250 "$work/shown")" = "$(head -c 250 "$work/prompt")"
ok ctrl_c_is_said_on_a_line_of_its_own grep -qx 'millrace: interrupted' "$work/shown"
ok ctrl_c_ends_with_130 grep -qx 'status 130' "$work/shown"

# ---- the other commands
on 100 24 "$millrace compare $demo --file $work/prompt -d $slow"
ok compare_shows_progress has 'sim:tiny,stalls=90,seed=1 [0-9]+ of [0-9]+ tokens, layer [1-4] of 4, .* left'
ok compare_begins_clean bash -c "head -1 '$work/shown' | grep -q '^$slow against cpu: on'"
printf '{"context": "%s", "choices": ["one"], "gold": 0}\n' "$(tr -d '"\\' <"$work/prompt")" >"$work/questions"
on 80 24 "$millrace eval $demo --tasks $work/questions -d $slow"
ok eval_shows_progress has '[0-9]+ of [0-9]+ tokens, layer [1-4] of 4, .* left'
ok eval_begins_clean bash -c "head -1 '$work/shown' | grep -q '^multiple choice '"
for _ in 1 2; do cat "$work/prompt" && echo; done >"$work/prompts"
on 100 24 "$millrace generate $demo --batch $work/prompts -d $long,units=2 -n 1"
ok batch_shows_progress has '[01] prompts done, unit [01], [0-9]+ tokens, layer [1-4] of 4, [0-9.]+ (thousand|million) cycles'
on 100 24 "$millrace generate $demo --batch $work/prompts -d $long -n 1"
ok batch_of_one_unit_names_none has '[01] prompts done, [0-9]+ tokens, layer [1-4] of 4, [0-9.]+ (thousand|million) cycles'
ok batch_lines_are_whole test "$(grep -c '^{"line":.*}$' "$work/shown")" = 2
turn() { sed 's/^/And /' "$work/prompt" && echo; }
turn >"$work/turn"
turn | "$millrace" chat $demo -d model: -n 3 >"$work/want"
on 80 24 "$millrace chat $demo -d $slow -n 3 <$work/turn"
ok chat_shows_progress has 'prompt: [0-9]+ of [0-9]+ tokens, layer [1-4] of 4'
ok chat_reply_is_untouched test "$(head -1 "$work/shown")" = "$(cat "$work/want")"

on 80 24 "$millrace bench $demo --decode 60 -d $slow"
ok bench_shows_progress has '[0-9]+ of 61 tokens, layer [1-4] of 4, .* left'
on 80 24 "$millrace trace $demo --decode 60 -d $slow"
ok trace_shows_progress has '[0-9]+ of 61 tokens, layer [1-4] of 4, .* left'
ok trace_begins_clean bash -c "head -1 '$work/shown' | grep -q '^$demo: decode at position 60'"

# ---- serve: a line while a unit computes, and the log beside it
layer='^millrace_device_step_layer\{unit="[01]"\} [1-4]$'
line='1 running, 0 waiting, [0-9]+ tokens* in this step, layer [1-4] of 4'
# asked DEVICE LINE: a server on a terminal, asked until that has LINE and the metrics of that moment are in $work/metrics.
asked() {
    rm -f "$work/tty" "$work/metrics"
    SHELL=/bin/sh TERM=xterm NO_COLOR=1 timeout 600 script -qefc \
        "stty cols 80 rows 24; echo pid \$\$; exec $millrace serve $demo -d $1 --port 0 --log" /dev/null </dev/null >"$work/tty" &
    server=$!
    for _ in $(seq 6000); do
        grep -q 'serving' "$work/tty" 2>/dev/null || ! kill -0 $server 2>/dev/null && break || sleep 0.1
    done
    url=$(tr -d '\r' <"$work/tty" | grep -o 'http://[0-9.:]*' | head -1)
    # The prompt is one step. A machine on which that is over before anybody has looked is asked again.
    for _ in $(seq 50); do
        rm -f "$work/reply"
        curl -s "$url/v1/completions" -H 'Content-Type: application/json' \
            -d "{\"model\": \"demo\", \"prompt\": \"$(tr -d '"\\' <"$work/prompt")\", \"max_tokens\": 2}" >"$work/reply" &
        client=$!
        for _ in $(seq 6000); do
            curl -s "$url/metrics" >"$work/now"
            ! grep -qE "$layer" "$work/now" || cp "$work/now" "$work/metrics"
            { [ -s "$work/metrics" ] && has "$2"; } || [ -s "$work/reply" ] && break || sleep 0.1
        done
        wait $client
        [ -s "$work/metrics" ] && has "$2" && break
    done
}
ended() { # what it has left on the terminal is in $work/shown
    kill -INT "$(sed -n 's/^pid \([0-9]*\).*/\1/p' "$work/tty")"
    wait $server
    "$work/screen" 80 24 <"$work/tty" >"$work/shown"
}
asked "$long" "$line"
ok serve_metrics_have_the_layer grep -qE "$layer" "$work/metrics"
ok serve_metrics_have_the_share grep -qE '^millrace_device_step_share\{unit="0"\} (0\.[0-9]+|1\.0+)$' "$work/metrics"
ok serve_has_answered grep -q '"finish_reason"' "$work/reply"
curl -s "$url/metrics" >"$work/metrics"
ok serve_metrics_say_when_nothing_runs grep -qE '^millrace_device_step_seconds\{unit="0"\} 0\.000$' "$work/metrics"
ended
ok serve_shows_progress has "$line"
ok serve_of_one_unit_names_none has_no "unit [0-9]"
ok serve_log_has_whole_lines grep -qxE '/v1/completions 200 [0-9.]+ s' "$work/shown"
ok serve_leaves_no_progress bash -c "! grep -q layer '$work/shown'"
asked "$long,units=2" "unit [01]: $line"
ended
ok serve_names_the_unit has "unit [01]: $line"
done_testing
