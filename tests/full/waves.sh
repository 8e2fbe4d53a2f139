#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Waves of a window: an FST file whose header says the window's times and that clock and units are in
# it. Needs the tracing build of tiny (make trace-tiny), which takes a minute to compile.
set -u
. tests/tools/tap.sh
fst=$work/w.fst
exits waves_are_written 0 '' trace models/demo -d sim:tiny --fst "$fst" --from 2000 --to 2500 --svg "$work/w.svg"
cp "$work/out" "$work/said"
# The header block: type 0, its length 329, first and last time (ten a cycle, the falling edge at five).
header() { [ "$(od -An -v -tx1 -N25 "$fst" | tr -d ' \n')" = "$(printf '00%016x%016x%016x' 329 20000 24995)" ]; }
ok header_has_the_window header
ok size_is_sensible test "$(wc -c <"$fst")" -gt 20000 -a "$(wc -c <"$fst")" -lt 2000000
# Where fst2vcd (package gtkwave) is there: every cycle's clock, and the counters' conditions as in the timeline.
if command -v fst2vcd >/dev/null; then
    fst2vcd "$fst" >"$work/w.vcd"
    "$millrace" trace models/demo -d sim:tiny --from 2000 --to 2500 >"$work/summary"
    busy=$(awk '
        $1 == "$var" && ($5 == "c_arr_busy") && !id { id = $4 }
        /^#/ { if (at % 10 == 5 && on == "1") n++; at = substr($0, 2) }
        /^[01]/ && substr($0, 2) == id { on = substr($0, 1, 1) }
        END { if (at % 10 == 5 && on == "1") n++; printf "%.2f", n / 5 }' "$work/w.vcd")
    ok waves_show_what_the_timeline_says grep -qE "^  array +busy $busy %" "$work/summary"
    ok every_cycle_is_there test "$(grep -c '^#' "$work/w.vcd")" = 1000
fi
# The view beside them: every signal that it names is in the file, by the reader that Verilator brings.
ok view_is_named grep -qF "'gtkwave $fst $work/w.gtkw' shows the main blocks" "$work/said"
lib=$(verilator -V | awk '$1 == "VERILATOR_ROOT" && !seen++ { print $3 }')/include/gtkwave
${CC:-gcc} -w -DFST_CONFIG_INCLUDE='"fst_config.h"' "-I$lib" -o "$work/fst-names" tests/tools/fst-names.c \
    "$lib/fstapi.c" "$lib/fastlz.c" "$lib/lz4.c" -lz || exit 1
"$work/fst-names" "$fst" | sort -u >"$work/names"
grep '^TOP\.' "$work/w.gtkw" | sort >"$work/shown"
ok view_has_the_main_blocks test "$(grep -cE '^-(sequencer|channel 0|array|epilogue|vector|attention|KV writer|host port)$' "$work/w.gtkw")" = 16
ok view_names_signals test "$(wc -l <"$work/shown")" -gt 60
ok signals_of_the_view_exist test -z "$(comm -23 "$work/shown" "$work/names")"
ok view_names_no_signal_twice test -z "$(uniq -d "$work/shown")"
ok view_begins_with_the_window grep -qx '\[timestart\] 20000' "$work/w.gtkw"
cp "$fst" "$work/before.fst"
exits waves_beyond_the_run 2 'the run has only' trace models/demo -d sim:tiny --fst "$fst" --from 9000000 --to 9000009
ok old_waves_outlive_a_failed_trace cmp -s "$fst" "$work/before.fst"
ok nothing_lies_beside_the_waves test "$(ls "$work" | grep -cE 'w\.(fst|gtkw)')" = 2
exits waves_into_no_directory 3 'fst: .*No such file' trace models/demo -d sim:tiny --fst "$work/none/w.fst" --from 0 --to 9
done_testing
