#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/generate.c is built as its head says, with the public header only, and run. Prints TAP.
set -u
. tests/tools/tap.sh
build=${BUILD:-build}

# The lines themselves, but for the directory and stricter warnings.
sed -n '2,/^#include/s|^//   ||p' examples/generate.c | sed "s|build/generate|$work/generate|; s|build/lib|$build/lib|" >"$work/lines"
ok head_has_three_lines test "$(wc -l <"$work/lines")" = 3
ok example_is_built bash -e <(sed "2s|^cc |${CC:-gcc} -std=c17 -Wall -Wextra -Werror |; 3d" "$work/lines")
bash <(sed -n 3p "$work/lines") >"$work/out"
ok example_runs test $? = 0
"$millrace" generate -m models/demo -d model: -p "In the beginning" -n 40 >"$work/want"
ok example_writes_the_same_text test "In the beginning$(cat "$work/out")" = "$(cat "$work/want")"
"$work/generate" no-such-model model: x >"$work/out" 2>"$work/err"
ok example_reports_errors test $? = 1 -a "$(cat "$work/err")" = \
    "generate: no-such-model: No such file or directory; give a Hugging Face directory or a packed file"
ok example_is_short test "$(grep -vcE '^(//|$)' examples/generate.c)" -le 45
done_testing
