#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make area and make timing beside themselves: runs in one build folder give the counts of one run alone, and make no
# netlist twice; how far a run is, is said; a configuration that does not exist is refused before anything is done; what
# make route writes.
# A stand-in for Yosys makes three small modules, slowly. TAP.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0 bad=0
ok() { # name command...
    local name=$1
    shift
    n=$((n + 1))
    if "$@" >"$work/out" 2>&1; then echo "ok $n - $name"; else
        echo "not ok $n - $name"
        sed 's/^/# /' "$work/out"
        bad=1
    fi
}
mkdir -p "$work/bin" "$work/build/gen"
: >"$work/build/gen/mr_pkg.sv"
cat >"$work/bin/yosys" <<'FAKE'
#!/usr/bin/env bash
[ "${1:-}" != -V ] || { echo "Yosys of a test"; exit; }
script=${!#}
il=$(sed -n 's/.*write_rtlil \([^ ]*\).*/\1/p' <<<"$script")
if [ -n "$il" ]; then
    printf 'module %s\n  wire input 1 \\clk_i\n%send\n' '\mr_unit' '' '\mr_part' $'  cell \\mr_unit \\u_unit\n' \
        '\millrace_core' $'  cell \\mr_part \\u_part\n' >"$il"
    exit
fi
read -r module stat json < <(sed -n 's/.*select \([^ ;]*\); tee -o \([^ ]*\) stat.*json -o \(.*\)/\1 \2 \3/p' <<<"$script")
echo "$module" >>"$FAKE_LOG"
printf '=== %s ===\n\n   Number of cells: 5\n' "${module#\\}" >"$stat"
sleep 0.3
case $module in
    *unit) printf '     LUT6   5\n\n' ;;
    *part) printf '     mr_unit   1\n     LUT6   1\n\n' ;;
    *) printf '     mr_part   1\n     LUT6   1\n\n' ;;
esac >>"$stat"
echo '{}' >"$json"
FAKE
chmod +x "$work/bin/yosys"
export PATH=$work/bin:$PATH BUILD=$work/build FAKE_LOG=$work/made
: >"$FAKE_LOG"

counts() { # config: seven LUTs in the whole, five of them in the unit
    cut -f1,2,4 "$work/build/timing/area/$1/area.tsv" >"$work/counts"
    cat "$work/counts"
    printf '%s\tmr_unit\t5\n%s\tmillrace_core\t7\n' "$1" "$1" | cmp -s - "$work/counts"
}
tests/synth/area.sh tiny >"$work/first" 2>&1 &
tests/synth/area.sh sim >"$work/second" 2>&1 &
tests/synth/area.sh tiny >"$work/third" 2>&1 &
wait
ok runs_beside_each_other_count_once counts tiny
ok and_so_does_one_of_another_configuration counts sim
ok reading_the_files_is_announced grep -qxE '# tiny: Yosys reads [0-9]+ files, in up to half a minute' "$work/first" "$work/third"
ok no_netlist_is_made_twice test "$(wc -l <"$FAKE_LOG")" = 3
ok a_run_says_how_far_it_is grep -qh '^# [a-z]*: synthesised 3 of 3 modules' "$work/first" "$work/second" "$work/third"
: >"$FAKE_LOG"
ok a_second_run_makes_nothing bash -c "tests/synth/area.sh tiny | tee $work/again && test ! -s $FAKE_LOG"
ok and_reads_nothing bash -c "! grep reads $work/again"

refused() { # script
    "tests/synth/$1.sh" tiny tinny >"$work/refused" 2>&1
    local status=$?
    cat "$work/refused"
    [ $status = 2 ] && grep -q '^tinny: no such configuration; there are tiny, sim, .*u280, gw5a, tinyt' "$work/refused"
}
ok area_refuses_a_configuration_that_does_not_exist refused area
ok timing_refuses_a_configuration_that_does_not_exist refused timing

# make route --write: rows of modules that were not run stay, those of another set of parameters too.
head='| module | of | parameters | MHz |'
printf '%s\n' "$head" '| `mr_a` | `tiny` |  | 1 |' '| `mr_a` | `gw5a` |  | 2 |' '| `mr_b` | `tiny` | LANES=1 | 3 |' '| `mr_b` | `tiny` | LANES=2 | 4 |' >"$work/old"
printf '%s\n' '| `mr_a` | `tiny` |  | 5 |' '| `mr_b` | `tiny` | LANES=2 | 6 |' >"$work/new"
ok routed_modules_take_the_place_of_their_rows test "$(awk -f tests/synth/route/rows.awk "$work/new" "$work/old" | awk -F'|' '{ printf "%d ", $5 }')" = '5 6 2 3 '
ok none_routed_leaves_all test "$(awk -f tests/synth/route/rows.awk /dev/null "$work/old" | wc -l)" = 4

# A family of cells that is not there is refused before anything is done.
unknown_netlist() {
    FAMILY=gw9 tests/synth/netlist.sh >"$work/refused" 2>&1
    [ $? = 2 ] && [ "$(cat "$work/refused")" = 'make test-netlist: FAMILY=gw9 is not known; there are xcup and gw5a' ]
}
ok netlists_refuse_a_family_that_does_not_exist unknown_netlist
unknown_route() {
    FAMILY=ecp5 tests/synth/route/run.sh mr_pe >"$work/refused" 2>&1
    [ $? = 2 ] && [ "$(cat "$work/refused")" = 'make route: FAMILY=ecp5 is not known; there is gw5a, also without FAMILY' ] &&
        [ ! -e "$work/build/route" ]
}
ok routing_refuses_a_family_that_does_not_exist unknown_route
no_nextpnr() {
    NEXTPNR=true tests/synth/route/run.sh mr_pe >"$work/refused" 2>&1
    [ $? = 2 ] && [ "$(cat "$work/refused")" = 'make route: NEXTPNR=true does not tell its version' ] &&
        [ ! -e "$work/build/route" ]
}
ok routing_refuses_what_is_no_nextpnr no_nextpnr

# Silent work of minutes says that it goes on; its status stays.
. tests/synth/route/saying.sh
SAY_EVERY=1 while_saying 'mr_x: places' sh -c 'echo noise; sleep 2.6; exit 3' >"$work/said" 2>&1
ok a_silent_command_keeps_its_status test $? = 3
ok it_is_announced_and_goes_on test "$(sed 's/, [1-9][0-9]* s$/, N s/' "$work/said" | uniq | tr '\n' ' ')" = '# mr_x: places # mr_x: places, N s '
echo "1..$n"
exit $bad
