#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make demo's script, cut short: text and statistics come out, a wrong device is noticed.
set -u
. tests/tools/tap.sh
export MILLRACE=$millrace TOKENS=3
demo() { bash tests/tools/demo.sh >"$work/demo.out" 2>"$work/demo.err"; }
ok "the demo ends well" demo
ok "the prompt is in the text" grep -q '^And it came to pass' "$work/demo.out"
ok "cycles are shown" grep -qE 'cycles' "$work/demo.err"
ok "the check is mentioned" grep -q 'each command.s result was the C model.s' "$work/demo.out"
the_text() { sed -n '/^And it came to pass/,/^$/p' "$1"; }
"$millrace" generate -m models/demo -d model: -p "And it came to pass" -n 3 --temperature 0.8 --seed 2 -q \
    >"$work/model.out"
same_text() { [ -s "$work/model.out" ] && the_text "$work/demo.out" | grep -qFx -e "$(head -1 "$work/model.out")"; }
ok "the text is the C model's" same_text
export DEVICE=sim:nosuch
wrong() { ! bash tests/tools/demo.sh >"$work/demo.out" 2>&1 && ! grep -q 'command.s result was' "$work/demo.out"; }
ok "without a device it fails" wrong
done_testing
