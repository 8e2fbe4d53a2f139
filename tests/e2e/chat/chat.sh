#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# millrace chat: each turn continues the text and runs only what is new; commands, saved conversations,
# the terminal. Prints TAP; runs from the repository's root on the model in models/demo.
set -u
. tests/tools/tap.sh
demo=models/demo
chat() { timeout 600 "$millrace" chat $demo "$@"; }
raw=(-d model: --template '{}' -n 12)
lines() { printf '%s\n' "$@"; }

# ---- what the model sees
lines "And the king said" " And he went" | chat "${raw[@]}" --stats >"$work/a" 2>"$work/err"
"$millrace" generate -m $demo -d model: -p "And the king said" -n 12 >"$work/first"
reply=$(sed 's/^And the king said *//' "$work/first")
ok first_reply_is_the_text_of_generate test "$(head -1 "$work/a")" = "$reply"
"$millrace" generate -m $demo -d model: -n 12 -p "$(cat "$work/first")
 And he went" >"$work/second"
ok second_reply_goes_on_with_all_of_the_text test "$(sed -n 2p "$work/a")" = "$(tail -1 "$work/second" | sed 's/^ And he went *//')"
# 4 of the prompt and 11 of 12 new ones; then the last of those, a line end, 3 words, 11 new ones.
ok only_new_tokens_are_run test "$(sed 's|, [0-9.]* tokens/s$||' "$work/err" | tr '\n' ' ')" = "15 tokens run, 16 in the conversation 16 tokens run, 32 in the conversation "
ok rate_of_each_turn_is_said test "$(grep -c ', [0-9]*[.][0-9] tokens/s$' "$work/err")" = 2
lines "And the king said" " And he went" | chat "${raw[@]}" -d model:tiny --chunk 3 >"$work/b" 2>&1
ok options_are_given_once grep -q "'device' is given twice" "$work/b"
lines "And the king said" " And he went" | chat --template '{}' -n 12 -d sim:tiny >"$work/b"
ok another_device_says_the_same cmp "$work/a" "$work/b"

# The default template; a reply ends where the other's turn begins again, also inside a token.
lines "Who art thou?" | chat -d model: -n 20 >"$work/a"
"$millrace" generate -m $demo -d model: -n 20 -p $'User: Who art thou?\nAssistant:' >"$work/b"
ok default_template test "$(cat "$work/a")" = "$(sed -n '2,$p' "$work/b" | sed 's/^Assistant: *//')"
lines "And the king said" " then" | chat "${raw[@]}" --stop "o, go" >"$work/a"
"$millrace" generate -m $demo -d model: -n 12 -p "$(printf '%s%s\n then' "And the king said" "${reply:+ ${reply%%o, go*}}")" >"$work/b"
ok reply_ends_inside_a_token test "$(head -1 "$work/a")" = "${reply%%o, go*}"
ok what_is_behind_a_stop_is_forgotten test "$(sed -n 2p "$work/a")" = "$(tail -1 "$work/b" | sed 's/^ then *//; s/o, go.*//')"
lines "it came" | chat "${raw[@]}" --preamble 'And\nthen ' >"$work/a"
"$millrace" generate -m $demo -d model: -n 12 -p $'And\nthen it came' | tail -n +2 | sed 's/^then it came *//' >"$work/b"
ok preamble_comes_first cmp "$work/a" "$work/b"

# ---- commands
lines "And the king said" "/reset" "And the king said" | chat "${raw[@]}" >"$work/a"
ok reset_forgets test "$(sed -n 1p "$work/a")" = "$(sed -n 2p "$work/a")"
lines "And the king said" "/save $work/kv" " And he went" | chat "${raw[@]}" >"$work/a"
lines "And the king said" "/save $work/kv" | chat "${raw[@]}" 2>"$work/err" >"$work/b"
ok save_says_what_it_has grep -qE "^millrace: $work/kv: has the conversation, [0-9]+ tokens; /load goes on from it\$" "$work/err"
lines "And the king said" "/save $work/kv" | chat "${raw[@]}" -q 2>"$work/err" >"$work/b"
ok save_is_quiet_with_q test ! -s "$work/err"
lines " And he went" | chat --template '{}' -n 12 -d model:wide --load-kv "$work/kv" >"$work/b"
ok saved_conversation_goes_on_elsewhere test "$(sed -n 2p "$work/a")" = "$(cat "$work/b")"
lines "Something else" "/load $work/kv" " And he went" | chat "${raw[@]}" | tail -1 >"$work/c"
ok load_takes_its_place cmp "$work/b" "$work/c"
lines "/help" "" "/quit" "And" | chat "${raw[@]}" >"$work/a"
ok quit_ends_it test "$(grep -c '^/' "$work/a")" = 5 -a "$(wc -l <"$work/a")" = 5
"$millrace" generate -m $demo -d model: -p "/And" -n 12 >"$work/b"
lines "//And" | chat "${raw[@]}" >"$work/a"
ok two_slashes_are_text test "$(cat "$work/a")" = "$(sed 's|^/And *||' "$work/b")"
lines "And the king said" | chat "${raw[@]}" --stop "o, go" --stop "go" >"$work/a"
ok reply_ends_at_the_first_of_two_stops test "$(head -1 "$work/a")" = "${reply%%o, go*}"
lines "And the king said" | chat "${raw[@]}" --stop "no such word" --stop "o, go" >"$work/b"
ok reply_ends_at_the_one_of_two_stops_that_comes cmp "$work/a" "$work/b"
exits chat_template_without_a_place 2 'needs [{][}] once, where the message goes' chat $demo --template nowhere
# An interruption while nothing is typed; what stands in an unfinished line is no turn.
mkfifo "$work/typed"
"$millrace" chat $demo "${raw[@]}" <"$work/typed" >"$work/a" 2>"$work/err" &
exec 8>"$work/typed"
printf 'And the king said\nAnd' >&8
for _ in $(seq 3000); do [ "$(wc -l <"$work/a")" = 0 ] || break; sleep 0.1; done
sleep 0.2
kill -INT $!
wait $!
ok interrupted_without_a_whole_line test $? = 130 -a "$(cat "$work/a")" = "$reply"
exec 8>&-
# A program at the other end of the pipes, which waits for the answer to a command.
"$millrace" chat $demo "${raw[@]}" <"$work/typed" >"$work/a" 2>"$work/err" &
exec 8>"$work/typed"
echo /help >&8
for _ in $(seq 3000); do ! grep -q '^/quit' "$work/a" || break; sleep 0.1; done
ok help_is_there_before_the_next_line grep -q '^/quit' "$work/a"
exec 8>&-
wait $!
refuses() { # name status words lines...
    local name=$1 status=$2 words=$3
    shift 3
    lines "$@" | chat "${raw[@]}" >"$work/out" 2>"$work/err"
    ok "$name" test "${PIPESTATUS[1]}" = "$status" -a "$(grep -cE "^millrace: .*$words" "$work/err")" = 1 -a "$(wc -l <"$work/err")" = 1
}
refuses chat_command_unknown 2 'no command /frobnicate' /frobnicate
lines "And the king said" " And he went" | chat "${raw[@]}" >"$work/a"
lines "And the king said" "/frobnicate" " And he went" | chat "${raw[@]}" 2>"$work/err" >"$work/b"
ok chat_goes_on_behind_an_unknown_command test "${PIPESTATUS[1]}" = 2 -a "$(wc -l <"$work/b")" = 2 -a "$(wc -l <"$work/err")" = 1
ok and_its_text_is_as_without_it cmp "$work/a" "$work/b"
refuses chat_save_without_a_file 2 'needs the name' /save
refuses chat_save_of_nothing 2 'nothing to save' "/save $work/x"
refuses chat_save_where_nothing_can_be_written 3 'No such file' And "/save $work/no/x"
refuses chat_load_of_what_is_no_store 3 'not a saved KV store' "/load Makefile"
refuses chat_turn_too_long 3 'model has 512 positions' "$(head -c 3000 $demo/heldout.txt | tr '\n' ' ')"
# Standard input that cannot be read, and what is no text.
chat "${raw[@]}" >"$work/b" 2>"$work/err" <&-
ok chat_without_standard_input test "$? $(cat "$work/err")" = '3 millrace: standard input: Bad file descriptor' -a ! -s "$work/b"
chat "${raw[@]}" >"$work/b" 2>"$work/err" </
ok chat_from_a_directory test "$? $(cat "$work/err")" = '3 millrace: standard input: Is a directory' -a ! -s "$work/b"
printf 'And\n\0he\n' | chat "${raw[@]}" >"$work/b" 2>"$work/err"
ok chat_takes_no_nul test "${PIPESTATUS[1]}" = 3 -a "$(cat "$work/err")" = 'millrace: standard input: line 2 has a NUL byte'
ok and_what_stood_before_was_answered test "$(wc -l <"$work/b")" = 1
exits chat_template_without_a_gap 2 'needs \{\} once' chat $demo --template x
exits chat_template_with_two_gaps 2 'needs \{\} once' chat $demo --template '{}{}'
mapfile -t stops < <(printf -- '--stop\n%s\n' $(seq 16))
exits chat_template_without_room_for_its_stop 2 'needs one of the 16 --stop for itself' chat $demo "${stops[@]}"
lines "And" "/reset" | chat -d model: --template '{}' -n 600 --ignore-eos >"$work/a" 2>"$work/err"
ok positions_that_are_used_up_are_said test "$?" = 0 -a "$(cat "$work/err")" = "millrace: the model's positions are used up; /reset begins again"
head -c 700 "$work/kv" >"$work/short"
exits chat_with_a_truncated_store 3 'truncated' chat $demo -d model: --load-kv "$work/short"
yes "And the king said" | chat "${raw[@]}" 2>"$work/err" | head -c 30 >/dev/null
ok closed_pipe_ends_a_chat test "${PIPESTATUS[1]}" = 141 -a ! -s "$work/err"

# ---- a terminal: the line is edited (a wrong letter, taken back), Ctrl-D ends
# at_terminal OPTIONS...: a chat whose keys are typed with keys TEXT; what it writes is in $work/out.
at_terminal() {
    rm -f "$work/keys" "$work/out" && mkfifo "$work/keys"
    TERM=xterm timeout 600 script -qefc "$millrace chat $demo --template {} $*" /dev/null <"$work/keys" >"$work/out" &
    exec 8>"$work/keys"
}
keys() { printf "$1" >&8; }
# seen COUNT PATTERN: waits until so many lines of it have it, for some minutes.
seen() {
    for _ in $(seq 6000); do
        [ "$(grep -c -e "$2" "$work/out" 2>/dev/null)" -lt "$1" ] || return 0
        sleep 0.1
    done
    echo "# $2 was not seen $1 times"
}
left() { exec 8>&- && wait $!; }
at_terminal -d model: -n 12
seen 1 '^> '
keys '\n'
seen 2 '^> '
keys 'And the kinx\177g said\n'
seen 3 '^> '
keys '\004'
left
ok lines_are_edited_on_a_terminal grep -qF "${reply%,*}" "$work/out"
ok commands_are_listed_on_a_terminal grep -q '^/reset' "$work/out"
ok tokens_are_counted_on_a_terminal grep -q ' tokens run, ' "$work/out"
# Half a terminal: where errors go to a file no reply is counted, and where replies do, lines are taken as they come.
at_terminal -d model: -n 12 "2>$work/err"
seen 1 '^> '
keys 'And the king said\n'
seen 2 '^> '
keys '\004'
left
ok nothing_is_counted_where_errors_go_to_a_file test -z "$(cat "$work/err")" -a "$(grep -c ' tokens run, ' "$work/out")" = 0
ok and_the_reply_is_there grep -qF "${reply%,*}" "$work/out"
at_terminal -d model: -n 12 ">$work/a"
keys 'And the king said\n'
keys '\004'
left
ok replies_to_a_file_are_the_text_only test "$(cat "$work/a")" = "$reply"
# Ctrl-C ends a reply, not the conversation, each time.
at_terminal -d sim: -q -n 400 --ignore-eos
seen 1 '^> '
for turn in 1 2; do
    keys 'And\n'
    seen $turn '[a-z][a-z][a-z] [a-z]'
    keys '\003'
    seen $((turn + 1)) '^> '
done
keys '/help\n'
seen 1 '^/quit'
keys '\004'
left
ok ctrl_c_ends_a_reply_only grep -q '^/quit' "$work/out"
ok replies_were_there_before_ctrl_c test "$(grep -c '[a-z][a-z][a-z] [a-z]' "$work/out")" -ge 2
ok ctrl_c_has_ended_both test "$(grep -c '\^C' "$work/out")" = 2
done_testing
