#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does tests/docs/run.sh see a page that is wrong? TAP.
set -u
. tests/tools/tap.sh

page() { # LINES of a page
    printf '%s\n' "$@" >"$work/page.md"
}
green() { bash tests/docs/run.sh quick "$work/page.md" >"$work/out" 2>&1; }
red() { ! green && grep -q "$1" "$work/out"; }

page '```console' '$ printf "one 17\ntwo 18\nthree\n"' 'one 17' 'two 18' 'three' '```'
ok right_output_is_green green
page '```console' '$ printf "one 17\ntwo 18\nthree\n"' 'one 17' 'two 19' 'three' '```'
ok wrong_number_is_red red 'page:   two 19'
page '```console' '$ printf "one\ntwo\n"' 'one' '```'
ok line_too_many_is_red red 'page:   (ends here)'
page '```console' '$ printf "one\n"' 'one' 'two' '```'
ok line_too_few_is_red red 'the output has ended'
page '```console' '$ printf "one\na\nb\nlast 5\n"' 'one' '...' 'last [...]' '```'
ok elided_lines_and_text_are_green green
page '```console' '$ printf "one\na\nb\nlast 5 s\n"' 'one' '...' 'last [...] min' '```'
ok what_stands_beside_elided_text_counts red 'output:'
page '```console' '$ false' '```'
ok unexpected_status_is_red red 'exit status 1 instead of 0'
page '<!-- docs: status 3 -->' '```console' '$ exit 3' '```'
ok expected_status_is_green green
page '<!-- docs: slwo -->' '```console' '$ true' '```'
ok unknown_mark_is_red red 'not understood'
page '<!-- docs: slow -->' '' 'text'  '```console' '$ true' '```'
ok mark_without_block_is_red red 'has no console block'
page '```console' '$ echo a \' '>     b' 'a b' '```'
ok continued_command_is_green green
page '```console' '$ echo x >file' '```' '```console' '$ cat file' 'x' '```'
ok commands_of_a_page_share_files green
not_left() { [ ! -e file ]; }
ok nothing_is_left_in_the_tree not_left
page '```console' '$ build/millrace serve models/demo --port 8080 &' 'millrace: serving demo (mxint8, 512 positions, 8 texts at a time, model:sim) on http://127.0.0.1:8080' \
    '$ curl -s http://127.0.0.1:8080/health' '{"status":"ok"}' '```'
ok server_runs_beside_the_next_command green
page '<!-- docs: not here: needs a board -->' '```console' '$ false' '```' '```console' '$ true' '```'
counted() { green && grep -q 'not run here: 1 of: needs a board' "$work/out"; }
ok what_is_not_run_is_counted counted
page '```console' '$ true' '$ echo something' '```'
ok output_that_the_page_does_not_show_is_green green
page 'text without commands'
ok page_without_commands_is_red red 'there are commands'
page '```console' '$ false | cat' '```'
ok failure_in_front_of_a_pipe_is_red red 'exit status 1 instead of 0'
page '```console' '$ echo one' '[...]' '```'
ok output_that_is_elided_alone_is_red red 'shows nothing'
page '```console' '$ echo one' '...' '[...]' '```'
ok also_with_elided_lines red 'shows nothing'
page '```console' '$ printf "one\nmillrace eval: no such option\n"' 'one' '[...]option' '```'
ok an_error_is_no_elided_text red 'output: millrace eval'
page '```console' '$ printf "millrace: no such option\n"' 'millrace: [...]option' '```'
ok unless_the_page_shows_one green
done_testing
